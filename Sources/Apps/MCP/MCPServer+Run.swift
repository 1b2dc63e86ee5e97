internal import Foundation
package import JSON
internal import Synchronization

/// The messages of a server, on standard input and output or over HTTP.
extension MCPServer {
    /// Answers the messages of standard input on standard output until the input ends: how clients run servers that are programs. Nothing
    /// else may be written to standard output.
    ///
    /// - Throws: an error of standard output.
    public func run() async throws {
        try await run(reading: .standardInput, writing: .standardOutput)
    }

    /// - Parameters:
    ///   - input: a file or a pipe with messages in lines.
    ///   - output: where each answer is a line.
    func run(reading input: FileHandle, writing output: FileHandle) async throws {
        let lines = LineWriter(output)
        let session = MCPSession(self) { lines.write($0.json.bytes + [0x0A]) }
        let (parts, feed) = AsyncStream<Data>.makeStream()
        // Reading waits, and must not hold up the threads of tasks.
        let reader = Thread {
            while true {
                let data = input.availableData
                if data.isEmpty { break }
                feed.yield(data)
            }
            feed.finish()
        }
        reader.start()
        var incoming = MCPLines()
        func take(_ items: [MCPLines.Item]) {
            for item in items {
                switch item {
                case .line(let bytes): session.take(bytes)
                case .tooLong: session.refuse(.parseError)
                }
            }
        }
        for await part in parts { take(incoming.take(part)) }
        take(incoming.finish())
        session.cancel()
        try lines.check()
    }
}

/// Writes whole lines: answers of calls that run together do not mix.
private final class LineWriter: Sendable {
    private let file: FileHandle
    private let failure = Mutex<(any Error)?>(nil)

    init(_ file: FileHandle) { self.file = file }

    func write(_ line: [UInt8]) {
        failure.withLock { failure in
            guard failure == nil else { return }
            do { try file.write(contentsOf: Data(line)) } catch { failure = error }
        }
    }

    /// - Throws: why a line was not written.
    func check() throws { if let error = failure.withLock({ $0 }) { throw error } }
}

/// The messages between a server and one client that is a program.
final class MCPSession: Sendable {
    private let server: MCPServer
    private let send: @Sendable (MCPMessage) -> Void
    private let state = Mutex(State())

    private struct State {
        /// Whether the client's first message was one of 2026; nil before it.
        var isModern: Bool?
        var calls: [JSONValue: Task<Void, Never>] = [:]
    }

    /// The most calls that run at the same time.
    private static let maximumCalls = 64

    init(_ server: MCPServer, send: @escaping @Sendable (MCPMessage) -> Void) { (self.server, self.send) = (server, send) }

    func refuse(_ failure: MCPFailure) { send(.failure(id: .null, failure)) }

    func take(_ bytes: [UInt8]) {
        guard let json = try? JSONParser.parse(bytes) else { return refuse(.parseError) }
        let message: MCPMessage
        do { message = try MCPMessage(json) } catch { return refuse(error) }
        switch message {
        case .request(let id, let method, let params): answer(id, method, params)
        case .notification("notifications/cancelled", let params):
            guard let id = params["requestId"] else { return }
            state.withLock { $0.calls.removeValue(forKey: id) }?.cancel()
        // Nothing is asked of clients, so that answers are meant for somebody else.
        case .notification, .result, .failure: break
        }
    }

    /// Ends what is running: the client has gone.
    func cancel() {
        let calls = state.withLock { state in
            defer { state.calls = [:] }
            return state.calls
        }
        for call in calls.values { call.cancel() }
    }

    private func answer(_ id: JSONValue, _ method: String, _ params: JSONValue) {
        let isModern = state.withLock { state in
            let isModern = state.isModern ?? MCPServer.isModern(method, params)
            state.isModern = isModern
            return isModern
        }
        if isModern {
            if method == "initialize" {
                return send(.failure(id: id, .unsupportedVersion(params["protocolVersion"]?.string ?? "")))
            }
            if let failure = MCPServer.failure(ofEnvelope: params) { return send(.failure(id: id, failure)) }
        }
        let (isFull, isKnown) = state.withLock { ($0.calls.count >= Self.maximumCalls, $0.calls[id] != nil) }
        if isKnown { return send(.failure(id: id, MCPFailure(code: -32600, message: "Another request has this id."))) }
        if isFull { return send(.failure(id: id, MCPFailure(code: -32603, message: "Too many calls run already."))) }
        let (server, send) = (server, send)
        // The task must be known before it ends.
        state.withLock { state in
            state.calls[id] = Task { [self] in
                let message: MCPMessage?
                do {
                    message = .result(id: id, try await server.result(of: method, params, isModern: isModern))
                } catch let failure as MCPFailure {
                    message = .failure(id: id, failure)
                } catch {
                    // Nobody waits for the answer of a call that was cancelled.
                    message = Task.isCancelled ? nil : .failure(id: id, MCPFailure(code: -32603, message: "\(error)"))
                }
                let isWanted = self.state.withLock { $0.calls.removeValue(forKey: id) } != nil
                if isWanted, let message { send(message) }
            }
        }
    }
}

extension MCPServer {
    /// Whether a first message is of 2026: it says so itself.
    static func isModern(_ method: String, _ params: JSONValue) -> Bool {
        method != "initialize" && params["_meta"]?[MCPRevision.versionKey] != nil
    }

    /// What is wrong with the part of a request of 2026 that says what the client is.
    static func failure(ofEnvelope params: JSONValue) -> MCPFailure? {
        if let failure = missing(inEnvelope: params) { return failure }
        let version = params["_meta"]?[MCPRevision.versionKey]?.string ?? ""
        return version == MCPRevision.modern ? nil : .unsupportedVersion(version)
    }

    private static func missing(inEnvelope params: JSONValue) -> MCPFailure? {
        let meta = params["_meta"]
        guard meta?[MCPRevision.versionKey]?.string != nil else {
            return .invalidParams("“_meta” must have “\(MCPRevision.versionKey)”.")
        }
        guard case .object? = meta?[MCPRevision.capabilitiesKey] else {
            return .invalidParams("“_meta” must have “\(MCPRevision.capabilitiesKey)”.")
        }
        return nil
    }

    /// A reply to a message over HTTP.
    package struct HTTPReply: Sendable {
        package var status: Int
        /// nil for a reply without a body.
        package var body: JSONValue?

        fileprivate init(_ status: Int, _ message: MCPMessage? = nil) { (self.status, body) = (status, message?.json) }
    }

    /// Answers a message that came over HTTP.
    ///
    /// - Parameters:
    ///   - body: of the request; nil if it is not JSON.
    ///   - header: the value of a header of the request.
    /// - Throws: `CancellationError`
    package func reply(to body: JSONValue?, header: @Sendable (String) -> String?) async throws -> HTTPReply {
        guard let body else { return HTTPReply(400, .failure(id: .null, .parseError)) }
        let message: MCPMessage
        do { message = try MCPMessage(body) } catch { return HTTPReply(400, .failure(id: .null, error)) }
        let version = header("MCP-Protocol-Version")
        guard case .request(let id, let method, let params) = message else {
            if case .notification = message { return HTTPReply(202) }
            // Servers of 2026 ask nothing, so that nothing is answered.
            let isLegacy = version.map { MCPRevision.legacyVersions.contains($0) } ?? true
            return isLegacy ? HTTPReply(202) : HTTPReply(400, .failure(id: .null, .invalidRequest))
        }
        let isModern =
            version.map { !MCPRevision.legacyVersions.contains($0) } ?? (params["_meta"]?[MCPRevision.versionKey] != nil)
        if isModern {
            if let failure = Self.missing(inEnvelope: params) ?? Self.mismatch(method, params, header)
                ?? Self.failure(ofEnvelope: params)
            {
                return HTTPReply(400, .failure(id: id, failure))
            }
            if ["initialize", "ping"].contains(method) { return HTTPReply(404, .failure(id: id, .unknownMethod(method))) }
        }
        do {
            return HTTPReply(200, .result(id: id, try await result(of: method, params, isModern: isModern)))
        } catch let failure as MCPFailure {
            let status = !isModern ? 200 : failure.code == -32601 ? 404 : failure.code == -32603 ? 200 : 400
            return HTTPReply(status, .failure(id: id, failure))
        } catch {
            try Task.checkCancellation()
            return HTTPReply(200, .failure(id: id, MCPFailure(code: -32603, message: "\(error)")))
        }
    }

    /// Headers by which requests are routed must say what their bodies say.
    private static func mismatch(_ method: String, _ params: JSONValue, _ header: (String) -> String?) -> MCPFailure? {
        func mismatch(_ name: String) -> MCPFailure {
            MCPFailure(code: -32020, message: "The header \(name) is missing, or differs from the body.")
        }
        if header("MCP-Protocol-Version") != params["_meta"]?[MCPRevision.versionKey]?.string {
            return mismatch("MCP-Protocol-Version")
        }
        if header("Mcp-Method") != method { return mismatch("Mcp-Method") }
        let named =
            ["tools/call", "prompts/get"].contains(method) ? params["name"] : method == "resources/read" ? params["uri"] : nil
        if let name = named?.string, header("Mcp-Name").flatMap(decoded) != name { return mismatch("Mcp-Name") }
        return nil
    }

    /// The value of a header that may be encoded, because it has other characters than those of ASCII.
    private static func decoded(_ text: String) -> String? {
        guard text.hasPrefix("=?base64?"), text.hasSuffix("?=") else { return text }
        return Data(base64Encoded: String(text.dropFirst(9).dropLast(2))).flatMap { String(data: $0, encoding: .utf8) }
    }
}
