import FoundationModels
import FoundationModelsTesting
import JSON
import TestSupport
import Testing

@testable import MCP

/// The tools of a server whose definitions and results a test writes.
final class ToolServer: Sendable {
    /// The definitions, as JSON; they can be changed.
    let definitions: Shared<[String]>
    let transport: ScriptedTransport

    init(
        _ definitions: [String],
        call: @escaping @Sendable (_ params: JSONValue) async throws -> JSONValue = { _ in ToolServer.text("done") }
    ) {
        let shared = Shared(definitions)
        self.definitions = shared
        transport = .modern { method, params in
            switch method {
            case "tools/list": return parsed("{\"resultType\":\"complete\",\"tools\":[\(shared.value.joined(separator: ","))]}")
            case "tools/call": return try await call(params)
            default: throw MCPFailure.unknownMethod(method)
            }
        }
    }

    /// A server whose tools all return a result.
    convenience init(_ definitions: [String], result: String) { self.init(definitions) { _ in parsed(result) } }

    func connect(_ options: MCPTools.Options = .init(approval: .all)) async throws -> MCPTools {
        try await MCPTools(transport.client(), options)
    }

    /// The parameters of the calls that came.
    var calls: [JSONValue] { transport.requests.filter { $0.method == "tools/call" }.map(\.params) }

    /// Says that the tools have changed.
    func change(_ definitions: [String]) {
        self.definitions.change { $0 = definitions }
        transport.tell("notifications/tools/list_changed")
    }

    /// The definition of a tool.
    ///
    /// - Parameter more: further members.
    static func tool(
        _ name: String, _ description: String = "Does something.", schema: String = #"{"type":"object","properties":{}}"#,
        more: String = ""
    ) -> String {
        let (name, description) = (JSONValue.string(name).text, JSONValue.string(description).text)
        return "{\"name\":\(name),\"description\":\(description),\"inputSchema\":\(schema)\(more)}"
    }

    static func reader(_ name: String) -> String { tool(name, more: #","annotations":{"readOnlyHint":true}"#) }

    /// A result.
    static func text(_ text: String, isError: Bool = false) -> JSONValue {
        parsed("{\"content\":[{\"type\":\"text\",\"text\":\(JSONValue.string(text).text)}],\"isError\":\(isError)}")
    }
}

extension MCPTools {
    /// Calls a tool as a session does.
    func output(_ name: String, _ arguments: String = "{}") async throws -> String {
        let tool = try #require(tools.first { $0.name == name })
        return try await callTool(tool, arguments)
    }
}
