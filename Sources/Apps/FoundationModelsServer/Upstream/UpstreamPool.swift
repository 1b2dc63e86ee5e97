internal import AsyncHTTPClient
internal import Foundation
internal import FoundationModelsOpenAI
internal import JSON
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Synchronization

/// The servers behind this one, and the connections to them.
final class UpstreamPool: Sendable {
    private struct State {
        var choice: UpstreamChoice
        var models: [Int: [JSONValue]] = [:]
    }

    let urls: [String]
    private let key: String?
    private let state: Mutex<State>
    private let client: HTTPClient
    private static let start = ContinuousClock.now
    private static let maximumLine = 4 << 20
    private static let maximumReply = 64 << 20

    /// - Parameters:
    ///   - urls: the base addresses, such as `http://10.0.0.1:8000/v1`.
    ///   - key: what these servers want from this one; those of clients stay here.
    ///   - silence: the seconds without data after which a server counts as failed.
    init(_ urls: [String], key: String?, silence: Int) {
        self.urls = urls.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
        self.key = key
        state = Mutex(State(choice: UpstreamChoice(self.urls)))
        var configuration = HTTPClient.Configuration(timeout: .init(connect: .seconds(5), read: .seconds(Int64(silence))))
        configuration.redirectConfiguration = .disallow
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = .max
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    deinit { client.shutdown { _ in } }

    private static var now: Double { (ContinuousClock.now - start).seconds }

    // MARK: - Choice

    func choose(_ key: String, except tried: Set<Int>) -> Int? {
        state.withLock { $0.choice.choose(key, except: tried, now: Self.now) }
    }

    func end(_ server: Int, _ outcome: UpstreamChoice.Outcome) {
        state.withLock { $0.choice.end(server, outcome, now: Self.now) }
    }

    // MARK: - Requests

    /// Why a server has not answered.
    struct Failure: Error {
        /// The status of its reply; nil if there was none.
        var status: Int?
        var body: JSONValue
        /// What went wrong, for the log.
        var reason: String
    }

    /// Sends a request and passes on the data of the events of its reply; a reply that is no stream is one event.
    ///
    /// - Parameter receive: returns false at the end of the answer.
    /// - Throws: ``Failure``, the errors of `receive`, or `CancellationError`.
    func stream(_ body: JSONValue, to server: Int, receive: (_ data: [UInt8], _ isWhole: Bool) throws -> Bool) async throws {
        try await send(.POST, "/chat/completions", body, to: server, accept: "text/event-stream") { response in
            let isStream = response.headers.first(name: "Content-Type")?.lowercased().contains("event-stream") ?? false
            guard response.status == .ok else { throw try await self.failure(response) }
            guard isStream else {
                _ = try receive(try await self.bytes(response), true)
                return
            }
            var lines = EventLines(maximumLineLength: Self.maximumLine)
            var size = 0
            for try await buffer in response.body {
                size += buffer.readableBytes
                guard size <= Self.maximumReply else {
                    throw Failure(status: nil, body: .null, reason: "the reply has more than \(Self.maximumReply) bytes")
                }
                for data in try lines.append(buffer.readableBytesView) where try !receive(data, false) { return }
            }
            for data in try lines.append([UInt8(ascii: "\n")]) where try !receive(data, false) { return }
        }
    }

    /// The models of all servers, by name.
    func models() async -> [JSONValue] {
        if state.withLock({ $0.models.isEmpty }) { await refreshModels() }
        var known: [String: JSONValue] = [:]
        for list in state.withLock({ $0.models.values.map { $0 } }) {
            for model in list { if let id = model["id"]?.string { known[id] = known[id] ?? model } }
        }
        return known.sorted { $0.key < $1.key }.map(\.value)
    }

    private func refreshModels() async {
        await withTaskGroup(of: Void.self) { group in
            for server in urls.indices {
                group.addTask {
                    // A server that does not answer now keeps the list that it had; requests find out that it is down.
                    guard let list = try? await self.get("/models", from: server), case .array(let models)? = list["data"] else {
                        return
                    }
                    self.state.withLock { $0.models[server] = models }
                }
            }
        }
    }

    /// A server that says that it is not well gets no requests. One that has no address for it is taken for well.
    private func checkHealth() async {
        await withTaskGroup(of: Void.self) { group in
            for server in urls.indices {
                group.addTask {
                    let base = self.urls[server].hasSuffix("/v1") ? String(self.urls[server].dropLast(3)) : self.urls[server]
                    var request = HTTPClientRequest(url: base + "/health")
                    if let key = self.key { request.headers.add(name: "Authorization", value: "Bearer \(key)") }
                    // A server that does not answer is found out by requests.
                    guard let response = try? await self.client.execute(request, timeout: .seconds(5)) else { return }
                    // The status alone counts; the body is read so that the connection can be used again.
                    _ = try? await response.body.collect(upTo: 1 << 16)
                    self.state.withLock { $0.choice.noteHealth(server, isHealthy: response.status != .serviceUnavailable) }
                }
            }
        }
    }

    private func get(_ path: String, from server: Int) async throws -> JSONValue {
        try await send(.GET, path, nil, to: server, accept: "application/json", seconds: 5) { response in
            guard response.status == .ok else { throw try await self.failure(response) }
            return try JSONParser.parse(try await self.bytes(response))
        }
    }

    /// Looks at the servers again and again, until the task is cancelled.
    func watch() async throws {
        while true {
            async let models: Void = refreshModels()
            async let health: Void = checkHealth()
            _ = await (models, health)
            try await Task.sleep(for: .seconds(5))
        }
    }

    private func send<Value: Sendable>(
        _ method: HTTPMethod, _ path: String, _ body: JSONValue?, to server: Int, accept: String, seconds: Int64? = nil,
        _ read: (HTTPClientResponse) async throws -> Value
    ) async throws -> Value {
        var request = HTTPClientRequest(url: urls[server] + path)
        request.method = method
        request.headers.add(name: "Accept", value: accept)
        if let key { request.headers.add(name: "Authorization", value: "Bearer \(key)") }
        if let body {
            request.headers.add(name: "Content-Type", value: "application/json")
            request.body = .bytes(ByteBuffer(bytes: body.bytes))
        }
        do {
            return try await read(
                try await client.execute(request, deadline: seconds.map { .now() + .seconds($0) } ?? .distantFuture))
        } catch let error as HTTPClientError where error == .cancelled {
            throw CancellationError()
        } catch let error as HTTPClientError {
            throw Failure(status: nil, body: .null, reason: error.description)
        } catch let error as NIOConnectionError {
            throw Failure(status: nil, body: .null, reason: "\(error)")
        } catch let error as IOError {
            throw Failure(status: nil, body: .null, reason: "\(error)")
        } catch let error as OpenAILanguageModel.ServerError {
            throw Failure(status: nil, body: .null, reason: error.localizedDescription)
        } catch let error as HTTPParserError {
            throw Failure(status: nil, body: .null, reason: "\(error)")
        }
    }

    private func bytes(_ response: HTTPClientResponse) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        for try await buffer in response.body {
            bytes.append(contentsOf: buffer.readableBytesView)
            guard bytes.count <= Self.maximumReply else {
                throw Failure(status: nil, body: .null, reason: "the reply has more than \(Self.maximumReply) bytes")
            }
        }
        return bytes
    }

    private func failure(_ response: HTTPClientResponse) async throws -> Failure {
        let text = try await bytes(response).prefix(64 << 10)
        // Some servers send pages.
        let body = (try? JSONParser.parse(Array(text))) ?? .null
        return Failure(status: Int(response.status.code), body: body, reason: "status \(response.status.code)")
    }
}
