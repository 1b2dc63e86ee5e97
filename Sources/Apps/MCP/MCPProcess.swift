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
    /// The messages that the program has not read.
    private let queued = Count()

    private final class Count: Sendable {
        private let count = Atomic(0)
        var value: Int { count.load(ordering: .relaxed) }
        func add(_ number: Int) { count.add(number, ordering: .relaxed) }
    }

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
        // A server that closes its input must not end this program. Programs that are started have the usual setting again.
        signal(SIGPIPE, SIG_IGN)
        let (stream, input) = AsyncStream<[UInt8]>.makeStream()
        self.input = input
        let queued = queued
        let errors = LastLines()
        self.errors = errors
        let name = peer.name
        let box = Weak()
        let (gate, open) = AsyncStream<Void>.makeStream()
        run = Task {
            for await _ in gate { break }
            let end = await Self.run(
                command, environment, folder, name, stream, errors, queued,
                // A program that writes faster than its lines are read waits.
                output: { await box.process?.take($0) },
                end: { await box.process?.finish(.ended(server: name, reason: "it has closed its output")) })
            await box.process?.finish(end)
        }
        box.set(self)
        open.yield()
    }

    /// The tasks must not keep the object alive.
    private final class Weak: Sendable {
        private struct Reference: @unchecked Sendable { weak var process: MCPProcess? }
        private let reference = Mutex(Reference())
        var process: MCPProcess? { reference.withLock { $0.process } }
        func set(_ process: MCPProcess) { reference.withLock { $0.process = process } }
    }

    /// How long a program has to end by itself when its input has ended.
    private static let grace = Duration.seconds(2)

    deinit {
        input.finish()
        let run = run
        Task.detached { await Self.end(run) }
    }

    func close() async {
        input.finish()
        finish(.ended(server: peer.name, reason: "the connection was closed"))
        await Self.end(run)
    }

    /// Waits until the program has ended, by force if it does not by itself.
    private static func end(_ run: Task<Void, Never>) async {
        let force = Task {
            try await Task.sleep(for: grace)
            run.cancel()
        }
        await run.value
        force.cancel()
    }

    func listen(_ params: JSONValue) {
        send(.request(id: .string("listen"), method: "subscriptions/listen", params: params))
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

    private func send(_ message: MCPMessage) {
        queued.add(1)
        input.yield(message.json.bytes + [0x0A])
    }

    /// The most messages that wait for a program that asks and does not read the answers.
    private static let maximumQueue = 256

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
        // Requests that wait have the first reason, later ones the last: the status of a program comes after the end of its output.
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
            // Programs also write what is no message. One that is nested too deeply is the answer to the request that waits, if only one does.
            let openings = bytes.count { $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "{") }
            if openings > JSONParser.maximumDepth, bytes.starts(with: Array("{\"jsonrpc\"".utf8)), waiting.count == 1 {
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
                guard queued.value < Self.maximumQueue else { return }
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
        _ errors: LastLines, _ queued: Count, output: @escaping @Sendable (MCPLines.Item) async -> Void,
        end: @escaping @Sendable () async -> Void
    ) async -> MCPError {
        var options = PlatformOptions()
        options.processGroupID = 0
        options.teardownSequence = [.send(signal: .terminate, toProcessGroup: true, allowedDurationToNextStep: grace)]
        let variables = Dictionary(
            uniqueKeysWithValues: environment.map { (Environment.Key(stringLiteral: $0.key), Optional($0.value)) })
        let group = ProcessGroup()
        // What the program has started does not outlive it.
        defer { group.kill() }
        do {
            let result = try await Subprocess.run(
                .name("env"), arguments: Arguments((folder.map { ["-C", $0.path] } ?? []) + ["--"] + command),
                environment: .inherit.updating(variables), platformOptions: options, input: .inputWriter, output: .sequence,
                error: .sequence
            ) { execution in
                group.set(execution.processIdentifier.value)
                try await withThrowingTaskGroup(of: Void.self) { tasks in
                    let writer = execution.standardInputWriter
                    tasks.addTask {
                        for await bytes in input {
                            _ = try await writer.write(bytes)
                            queued.add(-1)
                        }
                        try await writer.finish()
                    }
                    let standardError = execution.standardError
                    tasks.addTask {
                        defer { errors.end() }
                        for try await part in standardError { part.withUnsafeBytes { errors.add($0) } }
                    }
                    var lines = MCPLines()
                    for try await part in execution.standardOutput {
                        let items = part.withUnsafeBytes { lines.take($0) }
                        for item in items { await output(item) }
                    }
                    for item in lines.finish() { await output(item) }
                    // A program that ends closes its output first; then its last words and its status say more.
                    for _ in 0..<30 where group.isAlive || !errors.hasEnded { try await Task.sleep(for: .milliseconds(10)) }
                    if group.isAlive { await end() }
                    // Without an output it is of no use any more: it has the usual time to end by itself.
                    tasks.addTask {
                        try await Task.sleep(for: grace)
                        group.kill()
                    }
                    tasks.addTask {
                        while group.isAlive { try await Task.sleep(for: .milliseconds(20)) }
                        throw CancellationError()
                    }
                    do { while try await tasks.next() != nil {} } catch is CancellationError {}
                    tasks.cancelAll()
                }
            }
            let said = errors.text
            return .ended(server: name, reason: said.isEmpty ? "\(result.terminationStatus)" : said)
        } catch {
            let said = errors.text
            return .ended(server: name, reason: said.isEmpty ? "\(error)" : said)
        }
    }
}

/// The processes that a server consists of.
private final class ProcessGroup: Sendable {
    private let leader = Atomic<Int32>(0)

    func set(_ identifier: Int32) { leader.store(identifier, ordering: .relaxed) }

    /// Whether the first process has not ended, or nobody has asked how it ended.
    var isAlive: Bool {
        let identifier = leader.load(ordering: .relaxed)
        guard identifier > 0 else { return false }
        var information = siginfo_t()
        return waitid(P_PID, id_t(identifier), &information, WEXITED | WNOHANG | WNOWAIT) == 0 && information.si_signo == 0
    }

    func kill() {
        let identifier = leader.load(ordering: .relaxed)
        if identifier > 0 { _ = Glibc.kill(-identifier, SIGKILL) }
    }
}

/// The end of what a program writes to its standard error.
final class LastLines: Sendable {
    private let bytes = Mutex<[UInt8]>([])
    private let ended = Atomic(false)
    private static let maximum = 2_000

    /// Whether nothing more comes.
    var hasEnded: Bool { ended.load(ordering: .relaxed) }
    func end() { ended.store(true, ordering: .relaxed) }

    func add(_ part: UnsafeRawBufferPointer) {
        bytes.withLock { bytes in
            bytes += part.suffix(Self.maximum)
            if bytes.count > Self.maximum { bytes.removeFirst(bytes.count - Self.maximum) }
        }
    }

    var text: String {
        let text = String(decoding: bytes.withLock { $0 }, as: UTF8.self)
        let lines = text.split(whereSeparator: \.isNewline).suffix(3).map { String($0).quotable }
        return lines.joined(separator: " / ").trimmingCharacters(in: .whitespaces)
    }
}
