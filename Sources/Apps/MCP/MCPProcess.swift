internal import Foundation
internal import JSON
internal import Subprocess
internal import Synchronization

/// A server that is a program: a message in each line of its standard input and output.
///
/// The program ends when this object does, with all that it has started: first its input ends, then it is terminated, then killed.
actor MCPProcess: MCPTransport {
    private let peer: MCPPeer
    private let input: AsyncStream<[UInt8]>.Continuation
    private var waiting: [Int: Waiting] = [:]
    private var lastID = 0
    private var end: MCPError?
    private let run: Task<Void, Never>
    private let errors: LastLines

    private struct Waiting {
        let method: String
        let continuation: CheckedContinuation<JSONValue, any Error>
        var deadline: ContinuousClock.Instant
    }

    /// - Parameters:
    ///   - command: the program, a name or a path, and its arguments.
    ///   - environment: variables in addition to those of this process.
    init(_ command: [String], environment: [String: String], folder: URL?, _ peer: MCPPeer) {
        self.peer = peer
        let (stream, input) = AsyncStream<[UInt8]>.makeStream()
        self.input = input
        let errors = LastLines()
        self.errors = errors
        let name = peer.name
        let box = Weak()
        run = Task {
            // A program that writes faster than its lines are read waits.
            let end = await Self.run(command, environment, folder, name, stream, errors) { await box.process?.take($0) }
            await box.process?.finish(end)
        }
        box.set(self)
    }

    /// The tasks must not keep the object alive.
    private final class Weak: Sendable {
        private struct Reference: @unchecked Sendable { weak var process: MCPProcess? }
        private let reference = Mutex(Reference())
        var process: MCPProcess? { reference.withLock { $0.process } }
        func set(_ process: MCPProcess) { reference.withLock { $0.process = process } }
    }

    deinit {
        input.finish()
        run.cancel()
    }

    func close() {
        input.finish()
        run.cancel()
    }

    func use(_ revision: String) {}

    // MARK: - Messages

    func notify(_ method: String, _ params: JSONValue) throws {
        if let end { throw end }
        send(.notification(method: method, params: params))
    }

    func request(
        _ method: String, _ params: JSONValue, headers: [String: String], patience: Duration?
    ) async throws -> JSONValue {
        let patience = patience ?? peer.patience
        if let end { throw end }
        try Task.checkCancellation()
        lastID += 1
        let id = lastID
        let ticker = Task { [weak self] in
            // Progress moves the deadline.
            while !Task.isCancelled {
                try? await Task.sleep(for: min(patience, .seconds(1)))
                await self?.expire(id)
            }
        }
        defer { ticker.cancel() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                waiting[id] = Waiting(method: method, continuation: continuation, deadline: .now + patience)
                if Task.isCancelled { return fail(id, CancellationError(), tells: false) }
                send(.request(id: .int(id), method: method, params: Self.withToken(params, id)))
            }
        } onCancel: {
            Task { await self.fail(id, CancellationError(), tells: true) }
        }
    }

    /// A request whose progress is reported.
    private static func withToken(_ params: JSONValue, _ id: Int) -> JSONValue {
        guard params["name"] != nil else { return params }
        return params.setting("_meta", (params["_meta"] ?? .object([])).setting("progressToken", .int(id)))
    }

    private func send(_ message: MCPMessage) { input.yield(message.json.bytes + [0x0A]) }

    private func expire(_ id: Int) {
        guard let request = waiting[id], ContinuousClock.now >= request.deadline else { return }
        fail(id, MCPError.silent(server: peer.name, method: request.method), tells: true)
    }

    /// - Parameter tells: whether the server is told that nobody waits any more.
    private func fail(_ id: Int, _ error: any Error, tells: Bool) {
        guard let request = waiting.removeValue(forKey: id) else { return }
        if tells, request.method != "initialize", request.method != "server/discover" {
            send(.notification(method: "notifications/cancelled", params: .object([.init("requestId", .int(id))])))
        }
        request.continuation.resume(throwing: error)
    }

    private func finish(_ end: MCPError) {
        self.end = end
        let all = waiting
        waiting = [:]
        for request in all.values { request.continuation.resume(throwing: end) }
    }

    private func take(_ item: MCPLines.Item) {
        guard case .line(let bytes) = item else {
            // Nobody knows whose answer it is: whoever waits is not left waiting.
            return failAll(MCPError.invalidReply(server: peer.name, reason: "a line with more than 16 MB"))
        }
        // Programs that write something else between their messages are common.
        guard let json = try? JSONParser.parse(bytes), case .object = json else {
            // A message that cannot be read, such as one that is nested too deeply: if one request waits, it is its answer.
            if bytes.starts(with: Array("{\"jsonrpc\"".utf8)), waiting.count == 1 {
                failAll(MCPError.invalidReply(server: peer.name, reason: "an answer that is no usable JSON"))
            }
            return
        }
        do {
            switch try MCPMessage(json) {
            case .result(let id, let result): resume(id, .success(result))
            case .failure(let id, let failure): resume(id, .failure(failure))
            case .notification(let method, let params):
                if method == "notifications/progress" { extend(params["progressToken"]) }
                peer.receive(method, params)
            case .request(let id, let method, _):
                // What servers of 2025 ask of clients is not offered, and ping is always answered.
                send(method == "ping" ? .result(id: id, .object([])) : .failure(id: id, .unknownMethod(method)))
            }
        } catch {
            guard let id = json["id"] else { return }
            resume(id, .failure(MCPError.invalidReply(server: peer.name, reason: "an answer without a result")))
        }
    }

    private func resume(_ id: JSONValue, _ result: Result<JSONValue, any Error>) {
        guard let number = id.integer ?? id.string.flatMap({ Int($0) }),
            let request = waiting.removeValue(forKey: number)
        else { return }
        request.continuation.resume(with: result)
    }

    private func extend(_ token: JSONValue?) {
        guard let id = token?.integer else { return }
        waiting[id]?.deadline = .now + peer.patience
    }

    private func failAll(_ error: MCPError) {
        let all = waiting
        waiting = [:]
        for request in all.values { request.continuation.resume(throwing: error) }
    }

    // MARK: - The program

    /// Runs the program until it ends or the task is cancelled.
    private static func run(
        _ command: [String], _ environment: [String: String], _ folder: URL?, _ name: String, _ input: AsyncStream<[UInt8]>,
        _ errors: LastLines, _ output: @escaping @Sendable (MCPLines.Item) async -> Void
    ) async -> MCPError {
        var options = PlatformOptions()
        options.processGroupID = 0
        options.teardownSequence = [.send(signal: .terminate, toProcessGroup: true, allowedDurationToNextStep: .seconds(2))]
        let variables = Dictionary(
            uniqueKeysWithValues: environment.map { (Environment.Key(stringLiteral: $0.key), Optional($0.value)) })
        do {
            let result = try await Subprocess.run(
                .name("env"), arguments: Arguments((folder.map { ["-C", $0.path] } ?? []) + command),
                environment: .inherit.updating(variables), platformOptions: options, input: .inputWriter, output: .sequence,
                error: .sequence
            ) { execution in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    let writer = execution.standardInputWriter
                    group.addTask {
                        for await bytes in input { _ = try await writer.write(bytes) }
                        try await writer.finish()
                    }
                    let standardError = execution.standardError
                    group.addTask {
                        for try await part in standardError { part.withUnsafeBytes { errors.add($0) } }
                    }
                    var lines = MCPLines()
                    for try await part in execution.standardOutput {
                        let items = part.withUnsafeBytes { lines.take($0) }
                        for item in items { await output(item) }
                    }
                    group.cancelAll()
                }
            }
            let said = errors.text
            return .ended(
                server: name, reason: said.isEmpty ? "\(result.terminationStatus)" : said)
        } catch {
            let said = errors.text
            return .ended(server: name, reason: said.isEmpty ? "\(error)" : said)
        }
    }
}

/// The end of what a program writes to its standard error.
final class LastLines: Sendable {
    private let bytes = Mutex<[UInt8]>([])
    private static let maximum = 2_000

    func add(_ part: UnsafeRawBufferPointer) {
        bytes.withLock { bytes in
            bytes += part.suffix(Self.maximum)
            if bytes.count > Self.maximum { bytes.removeFirst(bytes.count - Self.maximum) }
        }
    }

    var text: String {
        let text = String(decoding: bytes.withLock { $0 }, as: UTF8.self)
        return text.split(whereSeparator: \.isNewline).suffix(3).joined(separator: " / ").trimmingCharacters(in: .whitespaces)
    }
}
