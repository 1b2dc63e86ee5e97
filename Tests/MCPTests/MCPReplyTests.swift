import FoundationModels
import JSON
import TestSupport
import Testing

@testable import MCP

/// Messages that come over HTTP, each in a request of its own.
struct MCPReplyTests {
    private let patient = Patient()

    private var server: MCPServer {
        MCPServer(
            name: "tests", tools: [.init(Shout(), isReadOnly: true), .init(Broken()), .init(patient)],
            resources: { [.init(uri: "note://köln", name: "note")] },
            readResource: { uri in
                if uri == "note://broken" { throw Broken.Failure() }
                return uri == "note://köln" ? "# Köln" : nil
            })
    }

    private func post(_ body: JSONValue?, _ headers: [String: String]) async throws -> MCPServer.HTTPReply {
        try await server.reply(to: body) { name in headers.first { $0.key.lowercased() == name.lowercased() }?.value }
    }

    /// The headers of a client of 2026.
    private func fields(_ method: String, name: String? = nil, version: String = "2026-07-28") -> [String: String] {
        var headers = ["mcp-protocol-version": version, "mcp-method": method]
        headers["mcp-name"] = name
        return headers
    }

    private let shout = request(3, "tools/call", #"{"name":"shout","arguments":{"text":"hi"}}"#, isModern: true)

    private func expect(
        _ status: Int, _ code: Int?, _ body: JSONValue?, _ headers: [String: String], _ comment: Comment,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let reply = try await post(body, headers)
        #expect(reply.status == status, comment, sourceLocation: sourceLocation)
        #expect(reply.body?["error"]?["code"]?.integer == code, comment, sourceLocation: sourceLocation)
    }

    // MARK: - 2026

    @Test("a request of 2026 is answered") func modern() async throws {
        let call = try await post(shout, fields("tools/call", name: "shout"))
        #expect(call.status == 200 && call.body?["id"]?.integer == 3)
        #expect(call.body?["result"]?["resultType"]?.string == "complete")
        #expect(elements(call.body?["result"]?["content"]).first?["text"]?.string == "HI")
        let list = try await post(request(4, "tools/list", isModern: true), fields("tools/list"))
        #expect(list.status == 200 && list.body?["result"]?["cacheScope"]?.string == "private")
        let discovery = try await post(request(5, "server/discover", isModern: true), fields("server/discover"))
        #expect(discovery.status == 200 && discovery.body?["result"]?["supportedVersions"] != nil)
    }

    @Test("headers must say what the body says") func headersAreChecked() async throws {
        let right = fields("tools/call", name: "shout")
        for missing in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
            var headers = right
            headers[missing] = nil
            try await expect(400, -32020, shout, headers, "without \(missing)")
        }
        try await expect(400, -32020, shout, fields("tools/call", name: "shout", version: "2099-01-01"), "another version")
        try await expect(400, -32020, shout, fields("tools/list", name: "shout"), "another method")
        try await expect(400, -32020, shout, fields("TOOLS/CALL", name: "shout"), "another method")
        for name in ["", "weather", "Shout", " shout", "=?base64?***?=", "=?base64?c2hvdXQ?", "=?base64?/////w==?="] {
            try await expect(400, -32020, shout, fields("tools/call", name: name), "another name, “\(name)”")
        }
        let reading = request(4, "resources/read", #"{"uri":"note://köln"}"#, isModern: true)
        try await expect(400, -32020, reading, fields("resources/read", name: "note://bonn"), "another address")
        try await expect(400, -32020, reading, fields("resources/read"), "no address")
        // The answers have the ids of their requests.
        let reply = try await post(shout, [:])
        #expect(reply.body?["id"]?.integer == 3)
    }

    @Test("names may be encoded, and must be if they have other characters") func encodedNames() async throws {
        // The tool “shout”, in base64.
        try await expect(200, nil, shout, fields("tools/call", name: "=?base64?c2hvdXQ=?="), "a name that need not be encoded")
        let reading = request(4, "resources/read", #"{"uri":"note://köln"}"#, isModern: true)
        let name = MCPHTTP.headerValue("note://köln")
        #expect(name == "=?base64?bm90ZTovL2vDtmxu?=")
        let reply = try await post(reading, fields("resources/read", name: name))
        #expect(reply.status == 200)
        #expect(elements(reply.body?["result"]?["contents"]).first?["text"]?.string == "# Köln")
    }

    @Test("each request of 2026 says what its client is") func envelopes() async throws {
        func call(_ meta: String) -> JSONValue {
            parsed(#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":"# + meta + "}}")
        }
        let headers = fields("tools/list")
        try await expect(400, -32602, request(1, "tools/list", isModern: false), headers, "no _meta")
        try await expect(400, -32602, call("{}"), headers, "nothing in _meta")
        try await expect(400, -32602, call("5"), headers, "another _meta")
        try await expect(
            400, -32602, call(#"{"io.modelcontextprotocol/clientCapabilities":{}}"#), headers, "no version")
        try await expect(
            400, -32602, call(#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#), headers, "no capabilities")
        let later = clientEnvelope.setting("io.modelcontextprotocol/protocolVersion", .string("2099-01-01"))
        let reply = try await post(call(later.text), fields("tools/list", version: "2099-01-01"))
        #expect(reply.status == 400 && reply.body?["error"]?["code"]?.integer == -32022)
        #expect(reply.body?["error"]?["data"]?.text == #"{"supported":["2026-07-28"],"requested":"2099-01-01"}"#)
    }

    /// The order of checks that clients know: the header is compared with the body before the version is.
    @Test("a version that differs from that of the header is a mismatch, also if it is unknown") func order() async throws {
        let later = clientEnvelope.setting("io.modelcontextprotocol/protocolVersion", .string("2099-01-01"))
        let body = request(1, "tools/list", "{\"_meta\":\(later.text)}", isModern: false)
        try await expect(400, -32020, body, fields("tools/list"), "another version in the body")
    }

    @Test("statuses of errors") func statuses() async throws {
        for method in ["foo/bar", "initialize", "ping", "subscriptions/listen", "logging/setLevel"] {
            try await expect(404, -32601, request(1, method, isModern: true), fields(method), "\(method)")
        }
        let unknown = request(1, "tools/call", #"{"name":"nope"}"#, isModern: true)
        try await expect(400, -32602, unknown, fields("tools/call", name: "nope"), "unknown tool")
        try await expect(400, -32602, request(1, "tools/call", isModern: true), fields("tools/call"), "no tool")
        let nowhere = request(1, "resources/read", #"{"uri":"note://nowhere"}"#, isModern: true)
        try await expect(400, -32602, nowhere, fields("resources/read", name: "note://nowhere"), "unknown text")
        let failure = request(1, "resources/read", #"{"uri":"note://broken"}"#, isModern: true)
        try await expect(200, -32603, failure, fields("resources/read", name: "note://broken"), "a failure of the server")
        // Failures of tools, and arguments that do not fit, are results.
        for (name, arguments) in [("broken", "{}"), ("shout", "{}"), ("shout", #"{"text":5}"#)] {
            let body = request(1, "tools/call", "{\"name\":\"\(name)\",\"arguments\":\(arguments)}", isModern: true)
            let reply = try await post(body, fields("tools/call", name: name))
            #expect(reply.status == 200 && reply.body?["result"]?["isError"] == .bool(true))
        }
    }

    @Test(
        "what is no message is refused without an id",
        arguments: [[:], ["mcp-protocol-version": "2026-07-28"]] as [[String: String]])
    func noMessages(headers: [String: String]) async throws {
        try await expect(400, -32700, nil, headers, "no JSON")
        let texts = [
            "[]", "1", "null", "{}", #"{"id":1,"method":"ping"}"#, #"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            #"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, #"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        ]
        for text in texts {
            try await expect(400, -32600, parsed(text), headers, "\(text)")
            let reply = try await post(parsed(text), headers)
            #expect(reply.body?["id"] == .null)
        }
    }

    // MARK: - 2025

    @Test(
        "requests of 2025 are answered with status 200, also with errors",
        arguments: [nil, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] as [String?])
    func legacy(version: String?) async throws {
        var headers: [String: String] = [:]
        headers["MCP-Protocol-Version"] = version
        let greeting = try await post(request(1, "initialize", #"{"protocolVersion":"2025-06-18"}"#, isModern: false), headers)
        #expect(greeting.status == 200 && greeting.body?["result"]?["protocolVersion"]?.string == "2025-06-18")
        let list = try await post(request(2, "tools/list", isModern: false), headers)
        #expect(list.status == 200 && elements(list.body?["result"]?["tools"]).count == 3)
        #expect(list.body?["result"]?["resultType"] == nil && list.body?["result"]?["_meta"] == nil)
        let ping = try await post(request(3, "ping", isModern: false), headers)
        #expect(ping.status == 200 && ping.body?["result"] == .object([]))
        try await expect(200, -32601, request(4, "server/discover", isModern: false), headers, "a method of 2026")
        try await expect(200, -32602, request(5, "tools/call", #"{"name":"nope"}"#, isModern: false), headers, "unknown tool")
    }

    @Test("the header says of what revision a request is") func headerDecides() async throws {
        let reply = try await post(shout, ["MCP-Protocol-Version": "2025-06-18"])
        #expect(reply.status == 200 && reply.body?["result"]?["content"] != nil && reply.body?["result"]?["resultType"] == nil)
    }

    @Test(
        "notifications are accepted, and have no answer",
        arguments: [[:], ["mcp-protocol-version": "2026-07-28"]] as [[String: String]])
    func notifications(headers: [String: String]) async throws {
        for method in ["notifications/initialized", "notifications/cancelled", "foo"] {
            let reply = try await post(parsed("{\"jsonrpc\":\"2.0\",\"method\":\"\(method)\"}"), headers)
            #expect(reply.status == 202 && reply.body == nil)
        }
    }

    @Test("answers to nothing are accepted in 2025, and refused in 2026") func responses() async throws {
        let answer = parsed(#"{"jsonrpc":"2.0","id":1,"result":{}}"#)
        let old = try await post(answer, ["mcp-protocol-version": "2025-06-18"])
        #expect(old.status == 202 && old.body == nil)
        try await expect(400, -32600, answer, ["mcp-protocol-version": "2026-07-28"], "an answer to nothing")
    }

    // MARK: - Ends

    @Test("a client that goes ends its call", .timeLimit(.minutes(1)), arguments: [true, false])
    func cancellation(isModern: Bool) async throws {
        let call = request(1, "tools/call", #"{"name":"wait"}"#, isModern: isModern)
        let headers = isModern ? fields("tools/call", name: "wait") : [:]
        let server = server
        let task = Task { try await server.reply(to: call) { headers[$0.lowercased()] } }
        await eventually { patient.begun.value == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(patient.cancelled.value == 1)
    }
}
