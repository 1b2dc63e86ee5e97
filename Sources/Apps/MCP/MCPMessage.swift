internal import JSON

/// A message of the Model Context Protocol: JSON-RPC 2.0.
///
/// Two revisions are spoken: 2026-07-28, in which every request stands alone, and 2025-11-25, which begins with a handshake. See
/// https://modelcontextprotocol.io/specification
enum MCPMessage: Sendable {
    case request(id: JSONValue, method: String, params: JSONValue)
    case notification(method: String, params: JSONValue)
    case result(id: JSONValue, JSONValue)
    case failure(id: JSONValue, MCPFailure)

    /// - Throws: ``MCPFailure`` if it is no message.
    init(_ json: JSONValue) throws(MCPFailure) {
        guard case .object = json, json["jsonrpc"]?.string == "2.0" else { throw .invalidRequest }
        let id = json["id"]
        let params = json["params"] ?? .object([])
        if let method = json["method"]?.string {
            guard let id else {
                self = .notification(method: method, params: params)
                return
            }
            guard Self.isIdentifier(id) else { throw .invalidRequest }
            self = .request(id: id, method: method, params: params)
        } else if let error = json["error"], error != .null {
            self = .failure(
                id: id ?? .null,
                MCPFailure(
                    code: error["code"]?.integer ?? -32603, message: error["message"]?.string ?? "The server failed.",
                    data: error["data"]))
        } else if let id, let result = json["result"] {
            self = .result(id: id, result)
        } else {
            throw .invalidRequest
        }
    }

    private static func isIdentifier(_ id: JSONValue) -> Bool { id.string != nil || id.integer != nil }

    var json: JSONValue {
        var members: [JSONValue.Member] = [.init("jsonrpc", .string("2.0"))]
        switch self {
        case .request(let id, let method, let params):
            members += [.init("id", id), .init("method", .string(method))] + Self.member(params)
        case .notification(let method, let params): members += [.init("method", .string(method))] + Self.member(params)
        case .result(let id, let result): members += [.init("id", id), .init("result", result)]
        case .failure(let id, let failure): members += [.init("id", id), .init("error", failure.json)]
        }
        return .object(members)
    }

    private static func member(_ params: JSONValue) -> [JSONValue.Member] {
        params == .object([]) ? [] : [.init("params", params)]
    }
}

/// The error of a request, as it stands in messages.
struct MCPFailure: Error, Sendable, Equatable {
    var code: Int
    var message: String
    var data: JSONValue?

    init(code: Int, message: String, data: JSONValue? = nil) { (self.code, self.message, self.data) = (code, message, data) }

    var json: JSONValue {
        .object(
            [.init("code", .number(DecimalNumber(code))), .init("message", .string(message))]
                + (data.map { [.init("data", $0)] } ?? []))
    }

    static let parseError = MCPFailure(code: -32700, message: "This is not JSON.")
    static let invalidRequest = MCPFailure(code: -32600, message: "This is no message of JSON-RPC 2.0.")

    static func unknownMethod(_ name: String) -> Self {
        Self(code: -32601, message: "There is no method “\(name)”.", data: .string(name))
    }

    static func invalidParams(_ message: String) -> Self { Self(code: -32602, message: message) }

    /// Of a version that the server does not speak.
    static func unsupportedVersion(_ requested: String) -> Self {
        Self(
            code: -32022, message: "The version \(requested) is not supported.",
            data: .object([
                .init("supported", .array([.string(MCPRevision.modern)])), .init("requested", .string(requested)),
            ]))
    }
}

/// The revisions of the protocol, and the names of what each message carries.
enum MCPRevision {
    static let modern = "2026-07-28"
    static let legacy = "2025-11-25"
    /// Handshakes that are answered with their own version.
    static let legacyVersions = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]

    static let versionKey = "io.modelcontextprotocol/protocolVersion"
    static let clientKey = "io.modelcontextprotocol/clientInfo"
    static let capabilitiesKey = "io.modelcontextprotocol/clientCapabilities"
    static let serverKey = "io.modelcontextprotocol/serverInfo"
    static let subscriptionKey = "io.modelcontextprotocol/subscriptionId"
}

extension JSONValue {
    /// The object with a member replaced or added.
    func setting(_ name: String, _ value: JSONValue) -> JSONValue {
        guard case .object(var members) = self else { return .object([.init(name, value)]) }
        if let place = members.firstIndex(where: { $0.name == name }) {
            members[place].value = value
        } else {
            members.append(.init(name, value))
        }
        return .object(members)
    }

    static func int(_ number: Int) -> JSONValue { .number(DecimalNumber(number)) }
}
