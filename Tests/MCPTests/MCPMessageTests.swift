import JSON
import Testing

@testable import MCP

struct MCPMessageTests {
    @Test(
        "messages are written as they were read",
        arguments: [
            #"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#,
            #"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
            #"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#,
            #"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#,
            #"{"jsonrpc":"2.0","id":3,"result":null}"#,
            #"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"No.","data":["x"]}}"#,
            #"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"No."}}"#,
        ])
    func written(text: String) throws {
        #expect(try MCPMessage(parsed(text)).json.text == text)
    }

    @Test("parameters that are missing are none, and none are not written") func parameters() throws {
        let message = try MCPMessage(parsed(#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#))
        guard case .request(let id, "ping", let params) = message else {
            Issue.record("It is no request.")
            return
        }
        #expect(id == .int(7) && params == .object([]))
        let empty = MCPMessage.notification(method: "notifications/initialized", params: .object([]))
        #expect(empty.json.text == #"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
    }

    @Test(
        "what is no message of JSON-RPC 2.0 is refused",
        arguments: [
            "[]", "1", "null", "{}", #"{"id":1,"method":"ping"}"#, #"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            #"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, #"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            #"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, #"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
            #"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, #"{"jsonrpc":"2.0","id":1}"#, #"{"jsonrpc":"2.0","result":{}}"#,
            #"{"jsonrpc":"2.0","id":1,"error":null}"#, #"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        ])
    func refused(text: String) {
        #expect(throws: MCPFailure.invalidRequest) { try MCPMessage(parsed(text)) }
    }

    @Test("errors of any shape are errors") func errors() throws {
        let texts = [
            #"{"jsonrpc":"2.0","id":1,"error":{}}"#, #"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
            #"{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":5}}"#, #"{"jsonrpc":"2.0","error":{},"result":{}}"#,
        ]
        for text in texts {
            guard case .failure(_, let failure) = try MCPMessage(parsed(text)) else {
                Issue.record("It is no error: \(text)")
                continue
            }
            #expect(failure.code == -32603 && !failure.message.isEmpty)
        }
        // A null is no error.
        let message = try MCPMessage(parsed(#"{"jsonrpc":"2.0","id":1,"error":null,"result":{"a":1}}"#))
        guard case .result(let id, let result) = message else {
            Issue.record("It is no result.")
            return
        }
        #expect(id == .int(1) && result["a"]?.integer == 1)
    }

    @Test("the error of a version says which ones there are") func versions() {
        let failure = MCPFailure.unsupportedVersion("2099-01-01")
        #expect(failure.code == -32022)
        #expect(failure.data?.text == #"{"supported":["2026-07-28"],"requested":"2099-01-01"}"#)
    }

    @Test("members are replaced where they are, or added at the end") func setting() {
        let object = parsed(#"{"a":1,"b":2}"#)
        #expect(object.setting("a", .int(3)).text == #"{"a":3,"b":2}"#)
        #expect(object.setting("c", .null).text == #"{"a":1,"b":2,"c":null}"#)
        #expect(JSONValue.null.setting("a", .int(1)).text == #"{"a":1}"#)
    }
}
