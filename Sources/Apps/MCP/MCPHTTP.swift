internal import AsyncHTTPClient
internal import Foundation
internal import JSON
internal import NIOCore
internal import NIOHTTP1
internal import Synchronization

/// A server behind HTTP: each message is a request, and its answer is JSON or a stream of events.
actor MCPHTTP: MCPTransport {
    private let url: String
    private let headers: [String: String]
    private let peer: MCPPeer
    private var revision: String?
    /// Of servers of 2025 that have sessions.
    private var session: String?
    private var lastID = 0
    private var isClosed = false

    /// Where nobody listens, nobody waits; and where a server sends its clients to is not where its user wants to go.
    private static let client: HTTPClient = {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.connectionPool.retryConnectionEstablishment = false
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }()

    private static let maximumBytes = 16 << 20
    /// The most bytes of all events of an answer.
    private static let maximumStream = 64 << 20

    /// - Parameter headers: such as `Authorization`.
    init(_ url: URL, headers: [String: String], _ peer: MCPPeer) {
        (self.url, self.headers, self.peer) = (url.absoluteString, headers, peer)
    }

    func use(_ revision: String) { self.revision = revision }

    func close() async {
        isClosed = true
        guard session != nil else { return }
        var request = base()
        request.method = .DELETE
        // The server ends the session by itself, if it does not hear of the end.
        _ = try? await Self.client.execute(request, deadline: .now() + .seconds(2))
        session = nil
    }

    func notify(_ method: String, _ params: JSONValue) async throws {
        let response = try await post(.notification(method: method, params: params), [:], method)
        guard (200..<300).contains(response.status.code) else {
            throw MCPError.refused(server: peer.name, code: Int(response.status.code), message: "HTTP \(response.status.code)")
        }
    }

    func request(
        _ method: String, _ params: JSONValue, headers own: [String: String], patience: Duration?
    ) async throws -> JSONValue {
        if isClosed { throw MCPError.ended(server: peer.name, reason: "the connection was closed") }
        lastID += 1
        let id = lastID
        var own = own
        if revision == nil || revision == MCPRevision.modern {
            own["Mcp-Method"] = method
            if let name = params["name"]?.string ?? params["uri"]?.string { own["Mcp-Name"] = Self.headerValue(name) }
        }
        do {
            let watch = Watch(patience ?? peer.patience)
            let (message, headers) = (MCPMessage.request(id: .int(id), method: method, params: params), own)
            return try await withThrowingTaskGroup(of: JSONValue.self) { group in
                group.addTask { [self] in
                    let response = try await post(message, headers, method, patience)
                    await noteSession(response)
                    return try await answer(to: id, method, response, watch)
                }
                group.addTask { [peer] in
                    try await watch.wait()
                    throw MCPError.silent(server: peer.name, method: method)
                }
                defer { group.cancelAll() }
                guard let result = try await group.next() else { throw CancellationError() }
                return result
            }
        } catch let error as CancellationError {
            // Where requests stand alone, the closed connection says it.
            if revision != MCPRevision.modern, method != "initialize", method != "server/discover" {
                let params = JSONValue.object([.init("requestId", .int(id))])
                Task { [self] in try? await notify("notifications/cancelled", params) }
            }
            throw error
        }
    }

    private func noteSession(_ response: HTTPClientResponse) {
        if let made = response.headers.first(name: "Mcp-Session-Id") { session = made }
    }

    /// Whether the server said that it does not know the session, which is then forgotten here too.
    private func losesSession(_ response: HTTPClientResponse) -> Bool {
        guard response.status.code == 404, session != nil else { return false }
        session = nil
        return true
    }

    /// The time since a server has said something that counts.
    private final class Watch: Sendable {
        private let patience: Duration
        private let last = Mutex(ContinuousClock.now)

        init(_ patience: Duration) { self.patience = patience }

        func note() { last.withLock { $0 = .now } }

        /// Returns when the server has been silent for too long.
        func wait() async throws {
            while true {
                let rest = last.withLock { $0 } + patience - .now
                if rest <= .zero { return }
                try await Task.sleep(for: rest)
            }
        }
    }

    private func base() -> HTTPClientRequest {
        var request = HTTPClientRequest(url: url)
        for (name, value) in headers { request.headers.replaceOrAdd(name: name, value: value) }
        request.headers.replaceOrAdd(name: "Accept", value: "application/json, text/event-stream")
        if let session { request.headers.replaceOrAdd(name: "Mcp-Session-Id", value: session) }
        if let revision { request.headers.replaceOrAdd(name: "MCP-Protocol-Version", value: revision) }
        return request
    }

    private func post(
        _ message: MCPMessage, _ own: [String: String], _ method: String, _ patience: Duration? = nil
    ) async throws -> HTTPClientResponse {
        var request = base()
        request.method = .POST
        request.headers.replaceOrAdd(name: "Content-Type", value: "application/json")
        if method == "server/discover" {
            request.headers.replaceOrAdd(name: "MCP-Protocol-Version", value: MCPRevision.modern)
        }
        for (name, value) in own { request.headers.replaceOrAdd(name: name, value: value) }
        request.body = .bytes(ByteBuffer(bytes: message.json.bytes))
        do {
            return try await Self.client.execute(
                request, deadline: .now() + .nanoseconds((patience ?? peer.patience).nanoseconds))
        } catch {
            try Task.checkCancellation()
            if (error as? HTTPClientError) == .deadlineExceeded { throw MCPError.silent(server: peer.name, method: method) }
            throw MCPError.ended(server: peer.name, reason: "\(error)".quotable)
        }
    }

    private func answer(
        to id: Int, _ method: String, _ response: HTTPClientResponse, _ watch: Watch
    ) async throws -> JSONValue {
        if losesSession(response) { throw MCPSessionGone() }
        let type = response.headers.first(name: "Content-Type")?.lowercased() ?? ""
        do {
            if type.hasPrefix("text/event-stream") {
                var events = MCPEvents(maximumBytes: Self.maximumBytes)
                var bytes = 0
                for try await part in response.body {
                    bytes += part.readableBytes
                    guard bytes < Self.maximumStream else {
                        throw MCPError.invalidReply(server: peer.name, reason: "events with more than 64 MB")
                    }
                    for event in try events.take(part.readableBytesView) {
                        watch.note()
                        if let result = try take(event, id) { return result }
                    }
                }
                throw MCPError.ended(server: peer.name, reason: "the stream ended before the answer")
            }
            let body = try await response.body.collect(upTo: Self.maximumBytes)
            if let result = try take(Array(body.readableBytesView), id, isOnly: true) { return result }
        } catch let error as MCPFailure {
            throw error
        } catch let error as MCPError {
            throw error
        } catch {
            try Task.checkCancellation()
            throw MCPError.invalidReply(server: peer.name, reason: "\(error)")
        }
        // Servers that are none of MCP, or refuse before they read.
        switch response.status.code {
        case 404: throw MCPFailure.unknownMethod(method)
        default: throw MCPFailure(code: -Int(response.status.code), message: "HTTP \(response.status.code)")
        }
    }

    /// The answer to a request, if a message is one.
    private func take(_ bytes: [UInt8], _ id: Int, isOnly: Bool = false) throws -> JSONValue? {
        guard let json = try? JSONParser.parse(bytes), case .object = json else { return nil }
        switch try? MCPMessage(json) {
        case .result(let own, let result) where isOnly || own.integer == id: return result
        case .failure(let own, let failure) where isOnly || own == .null || own.integer == id: throw failure
        case .notification(let method, let params):
            peer.receive(method, params)
            return nil
        case .request(let own, let method, _):
            let answer: MCPMessage =
                method == "ping" ? .result(id: own, .object([])) : .failure(id: own, .unknownMethod(method))
            Task { [self] in _ = try? await post(answer, [:], "") }
            return nil
        default: return nil
        }
    }

    /// A value as a header may have it: other characters than those of ASCII are encoded.
    static func headerValue(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { (0x20...0x7E).contains($0) } && text.first != " " && text.last != " "
        return isPlain && !text.isEmpty && !text.hasPrefix("=?") ? text : "=?base64?\(Data(text.utf8).base64EncodedString())?="
    }
}

extension Duration {
    fileprivate var nanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}

/// Server-sent events: the data of each, from the bytes of a stream. https://html.spec.whatwg.org/multipage/server-sent-events.html
struct MCPEvents {
    let maximumBytes: Int
    private var lines: MCPLines
    private var data: [UInt8] = []
    private var hasData = false

    struct TooLong: Error {}

    init(maximumBytes: Int) {
        self.maximumBytes = maximumBytes
        lines = MCPLines(maximumBytes: maximumBytes, keepsEmpty: true)
    }

    mutating func take(_ bytes: some Collection<UInt8>) throws(TooLong) -> [[UInt8]] {
        var events: [[UInt8]] = []
        for item in lines.take(bytes) {
            guard case .line(var line) = item else { throw TooLong() }
            if line.last == 0x0D { line.removeLast() }
            if line.isEmpty {
                if hasData { events.append(data) }
                (data, hasData) = ([], false)
            } else if line.starts(with: Array("data:".utf8)) {
                var text = line.dropFirst(5)
                if text.first == 0x20 { text = text.dropFirst() }
                guard data.count + text.count < maximumBytes else { throw TooLong() }
                if hasData { data.append(0x0A) }
                data += text
                hasData = true
            }
        }
        return events
    }
}
