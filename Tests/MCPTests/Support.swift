import FoundationModels
import JSON
import Synchronization
import TestSupport
import Testing

@testable import MCP

/// The value of a JSON text; null if the text is not valid.
func parsed(_ text: String) -> JSONValue { (try? JSONParser.parse(text)) ?? .null }

/// The elements of a list; none if it is not one.
func elements(_ value: JSONValue?) -> [JSONValue] { if case .array(let values)? = value { values } else { [] } }

/// The message of a client: a request.
///
/// - Parameters:
///   - params: as JSON.
///   - isModern: whether it is one of 2026, which says of what revision it is.
func request(_ id: Int, _ method: String, _ params: String = "{}", isModern: Bool) -> JSONValue {
    let params = isModern ? parsed(params).setting("_meta", clientEnvelope) : parsed(params)
    return MCPMessage.request(id: .int(id), method: method, params: params).json
}

/// What clients of 2026 say in each request.
let clientEnvelope = parsed(
    """
    {"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},
    "io.modelcontextprotocol/clientCapabilities":{}}
    """)

/// A value that tasks share.
final class Shared<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) { state = Mutex(value) }

    var value: Value { state.withLock { $0 } }

    func change(_ body: (inout Value) -> Void) { state.withLock { body(&$0) } }
}

/// Lets tasks through once it is open. Cancellation does not open it.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}

// MARK: - Tools

struct Shout: Tool {
    let name = "shout"
    let description = "Writes a text in capitals."
    @Generable struct Arguments { var text: String }
    func call(arguments: Arguments) async throws -> String { arguments.text.uppercased() }
}

struct Weather: Tool {
    let name = "weather"
    let description = "Tells the weather of a city."
    @Generable struct Arguments { var city: String }
    @Generable struct Report {
        var city: String
        var celsius: Double
    }
    func call(arguments: Arguments) async throws -> Report { Report(city: arguments.city, celsius: 27.25) }
}

struct Broken: Tool {
    struct Failure: Error, CustomStringConvertible { var description: String { "the disk is full" } }
    let name = "broken"
    let description = "Always fails."
    @Generable struct Arguments {}
    func call(arguments: Arguments) async throws -> String { throw Failure() }
}

/// Ends when it is cancelled, and not before.
final class Patient: Tool {
    let name = "wait"
    let description = "Waits until it is cancelled."
    @Generable struct Arguments {}
    let begun = Shared(0)
    let cancelled = Shared(0)

    func call(arguments: Arguments) async throws -> String {
        begun.change { $0 += 1 }
        do { try await Task.sleep(for: .seconds(86_400)) } catch {
            cancelled.change { $0 += 1 }
            throw error
        }
        return "nobody cancelled"
    }
}

/// Ends when its gate is open.
final class Guarded: Tool {
    let name = "guarded"
    let description = "Repeats a text many times, once it may."
    @Generable struct Arguments {
        var text: String
        var count: Int
    }
    let gate = Gate()
    let begun = Shared(0)

    func call(arguments: Arguments) async throws -> String {
        begun.change { $0 += 1 }
        await gate.wait()
        return String(repeating: arguments.text, count: arguments.count)
    }
}

/// Calls a tool of any type.
func callTool(_ tool: some Tool, _ arguments: String) async throws -> String {
    let content = try GeneratedContent(json: arguments)
    return "\(try await tool.call(arguments: try .init(content)))"
}

// MARK: - Sessions

/// A client that is a program: sends lines, and keeps what comes back.
final class LineClient: Sendable {
    let session: MCPSession
    private let messages: Shared<[JSONValue]>

    init(_ server: MCPServer) {
        let messages = Shared<[JSONValue]>([])
        self.messages = messages
        session = MCPSession(server) { message in messages.change { $0.append(message.json) } }
    }

    /// All messages of the server so far.
    var received: [JSONValue] { messages.value }

    func answers(to id: Int) -> [JSONValue] { received.filter { $0["id"]?.integer == id } }

    func send(_ line: String) { session.take(Array(line.utf8)) }

    func send(_ id: Int, _ method: String, _ params: String = "{}", isModern: Bool) {
        send(request(id, method, params, isModern: isModern).text)
    }

    func cancel(_ id: Int) {
        send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\(id)}}")
    }

    /// The answer to a request.
    func ask(_ id: Int, _ method: String, _ params: String = "{}", isModern: Bool) async -> JSONValue {
        send(id, method, params, isModern: isModern)
        await eventually { !answers(to: id).isEmpty }
        return answers(to: id).first ?? .null
    }
}

/// Requests that wait for their answers.
private final class Pending: Sendable {
    private let all = Mutex<[Int: CheckedContinuation<JSONValue, any Error>]>([:])

    func add(_ id: Int, _ continuation: CheckedContinuation<JSONValue, any Error>) { all.withLock { $0[id] = continuation } }

    func end(_ id: Int?, _ result: Result<JSONValue, any Error>) {
        guard let id else { return }
        let continuation = all.withLock { $0.removeValue(forKey: id) }
        continuation?.resume(with: result)
    }
}

/// The way to a server in this process, through its session.
final class SessionTransport: MCPTransport {
    private let session: MCPSession
    private let pending: Pending
    private let lastID = Mutex(0)
    private let isLegacy: Bool

    /// - Parameter isLegacy: whether the server is as those of 2025, which do not know the question that comes first.
    init(_ server: MCPServer, isLegacy: Bool) {
        let pending = Pending()
        (self.pending, self.isLegacy) = (pending, isLegacy)
        session = MCPSession(server) { message in
            switch message {
            case .result(let id, let result): pending.end(id.integer, .success(result))
            case .failure(let id, let failure): pending.end(id.integer, .failure(failure))
            case .request, .notification: break
            }
        }
    }

    func request(
        _ method: String, _ params: JSONValue, headers: [String: String], patience: Duration?
    ) async throws -> JSONValue {
        if isLegacy, method == "server/discover" { throw MCPFailure.unknownMethod(method) }
        let id = lastID.withLock { last in
            last += 1
            return last
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                pending.add(id, continuation)
                if Task.isCancelled { return pending.end(id, .failure(CancellationError())) }
                send(.request(id: .int(id), method: method, params: params))
            }
        } onCancel: {
            send(.notification(method: "notifications/cancelled", params: .object([.init("requestId", .int(id))])))
            pending.end(id, .failure(CancellationError()))
        }
    }

    private func send(_ message: MCPMessage) { session.take(message.json.bytes) }

    func notify(_ method: String, _ params: JSONValue) async throws { send(.notification(method: method, params: params)) }
    func use(_ revision: String) async {}
    func close() async { session.cancel() }
}

// MARK: - Scripted servers

/// A server that a test writes, and what it was asked.
final class ScriptedTransport: MCPTransport {
    typealias Answer = @Sendable (_ method: String, _ params: JSONValue) async throws -> JSONValue

    struct Request: Sendable {
        var method: String
        var params: JSONValue
        var headers: [String: String]
        var patience: Duration?
    }

    private struct Record: Sendable {
        var requests: [Request] = []
        var notifications: [String] = []
        var revisions: [String] = []
        var closings = 0
        var peer: MCPPeer?
    }

    private let record = Shared(Record())
    private let answer: Answer

    init(_ answer: @escaping Answer) { self.answer = answer }

    /// A server of 2026.
    ///
    /// - Parameter answer: to everything but the first question.
    static func modern(_ answer: @escaping Answer) -> ScriptedTransport {
        ScriptedTransport { method, params in
            if method == "server/discover" { return Self.discovery }
            return try await answer(method, params)
        }
    }

    static let discovery = parsed(
        """
        {"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"Be kind.",
        "ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"scripted","version":"1"}}}
        """)

    var requests: [Request] { record.value.requests }
    var methods: [String] { requests.map(\.method) }
    var notifications: [String] { record.value.notifications }
    var revisions: [String] { record.value.revisions }
    var closings: Int { record.value.closings }

    /// A client of the server.
    func client(patience: Duration = .seconds(60)) -> MCPClient {
        MCPClient(name: "scripted", patience: patience) { peer in
            self.record.change { $0.peer = peer }
            return self
        }
    }

    /// Sends a message that answers no request.
    func tell(_ method: String) { record.value.peer?.receive(method, .object([])) }

    func request(
        _ method: String, _ params: JSONValue, headers: [String: String], patience: Duration?
    ) async throws -> JSONValue {
        record.change { $0.requests.append(Request(method: method, params: params, headers: headers, patience: patience)) }
        return try await answer(method, params)
    }

    func notify(_ method: String, _ params: JSONValue) async throws { record.change { $0.notifications.append(method) } }
    func use(_ revision: String) async { record.change { $0.revisions.append(revision) } }
    func close() async { record.change { $0.closings += 1 } }
}
