import FoundationModels
import JSON
import TestSupport
import Testing

@testable import MCP

/// The messages between a server and a client that is a program.
struct MCPServerTests {
    private let patient = Patient()

    private func server(_ tools: [any Tool] = [], instructions: String? = "Be kind.") -> MCPServer {
        let offers: [MCPServer.Offer] = [
            .init(Shout(), title: "Shout", isReadOnly: true), .init(Weather()), .init(Broken(), isDestructive: true),
            .init(patient),
        ]
        return MCPServer(
            name: "tests", version: "2.0", instructions: instructions, tools: offers + tools.map { MCPServer.Offer($0) },
            resources: { [.init(uri: "note://köln", name: "note", description: "A note.", mediaType: "text/markdown")] },
            readResource: { uri in
                switch uri {
                case "note://köln": "# Köln"
                case "note://hidden": "hidden"
                default: nil
                }
            })
    }

    private func client(_ tools: [any Tool] = []) -> LineClient { LineClient(server(tools)) }

    private func code(_ answer: JSONValue) -> Int? { answer["error"]?["code"]?.integer }

    /// Whether a result has what each result of 2026 has.
    private func isMarked(_ result: JSONValue?) -> Bool {
        let info = result?["_meta"]?["io.modelcontextprotocol/serverInfo"]
        return result?["resultType"]?.string == "complete" && info?["name"]?.string == "tests"
            && info?["version"]?.string == "2.0"
    }

    /// Whether a result says how long it may be kept.
    private func isTimed(_ result: JSONValue?) -> Bool {
        result?["ttlMs"]?.integer == 0 && result?["cacheScope"]?.string == "private"
    }

    // MARK: - Openings

    @Test("a client of 2026 learns what there is") func discovery() async {
        let client = client()
        let answer = await client.ask(1, "server/discover", isModern: true)
        let result = answer["result"]
        #expect(answer["jsonrpc"]?.string == "2.0" && answer["id"]?.integer == 1)
        #expect(isMarked(result) && isTimed(result))
        #expect(elements(result?["supportedVersions"]) == [.string("2026-07-28")])
        #expect(result?["capabilities"]?["tools"] == .object([]) && result?["capabilities"]?["resources"] == .object([]))
        #expect(result?["instructions"]?.string == "Be kind.")
        let silent = await LineClient(server(instructions: nil)).ask(1, "server/discover", isModern: true)
        #expect(silent["result"]?["instructions"] == nil)
    }

    @Test("a client of 2025 is greeted in its own version, or in the last one") func greeting() async {
        let versions = [
            ("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-03-26"),
            ("2024-11-05", "2024-11-05"),
            ("1999-01-01", "2025-11-25"), ("2026-07-28", "2025-11-25"), ("", "2025-11-25"),
        ]
        for (asked, answered) in versions {
            let params =
                "{\"protocolVersion\":\"\(asked)\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}"
            let result = await client().ask(1, "initialize", params, isModern: false)["result"]
            #expect(result?["protocolVersion"]?.string == answered, "\(asked)")
            #expect(result?["serverInfo"]?["name"]?.string == "tests" && result?["serverInfo"]?["version"]?.string == "2.0")
            #expect(result?["capabilities"]?["tools"] != nil && result?["instructions"]?.string == "Be kind.")
            #expect(result?["resultType"] == nil && result?["_meta"] == nil && result?["ttlMs"] == nil)
        }
        let result = await client().ask(1, "initialize", isModern: false)["result"]
        #expect(result?["protocolVersion"]?.string == "2025-11-25")
    }

    @Test("the first message of a client says of what revision it is") func eras() async {
        // A client of 2026 that asks a server of 2025 first, and then greets it, as it would.
        let old = client()
        let refusal = await old.ask(1, "server/discover", isModern: false)
        #expect(code(refusal) == -32601)
        #expect(await old.ask(2, "initialize", isModern: false)["result"]?["protocolVersion"]?.string == "2025-11-25")
        #expect(await old.ask(3, "ping", isModern: false)["result"] == .object([]))
        // Who speaks one of 2026 is not greeted, and there is no ping.
        let new = client()
        #expect(await new.ask(1, "tools/list", isModern: true)["result"] != nil)
        let greeted = await new.ask(2, "initialize", #"{"protocolVersion":"2025-11-25"}"#, isModern: false)
        #expect(code(greeted) == -32022)
        #expect(elements(greeted["error"]?["data"]?["supported"]) == [.string("2026-07-28")])
        #expect(greeted["error"]?["data"]?["requested"]?.string == "2025-11-25")
        let ping = await new.ask(3, "ping", isModern: true)
        #expect(code(ping) == -32601)
    }

    @Test("each request of 2026 says of what revision it is, and what the client can do") func envelopes() async {
        let client = client()
        #expect(await client.ask(1, "server/discover", isModern: true)["result"] != nil)
        let bare = await client.ask(2, "tools/list", isModern: false)
        #expect(code(bare) == -32602)
        #expect(bare["error"]?["message"]?.string?.contains("io.modelcontextprotocol/protocolVersion") == true)
        let without = await client.ask(
            3, "tools/list", #"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#, isModern: false)
        #expect(code(without) == -32602)
        #expect(without["error"]?["message"]?.string?.contains("io.modelcontextprotocol/clientCapabilities") == true)
        let other = clientEnvelope.setting("io.modelcontextprotocol/protocolVersion", .string("2099-01-01"))
        let wrong = await client.ask(4, "tools/list", "{\"_meta\":\(other.text)}", isModern: false)
        #expect(code(wrong) == -32022)
        #expect(wrong["error"]?["data"]?.text == #"{"supported":["2026-07-28"],"requested":"2099-01-01"}"#)
        #expect(await client.ask(5, "tools/list", isModern: true)["result"] != nil)
    }

    @Test("a client of a later revision learns which one there is") func laterRevision() async {
        let client = client()
        let other = clientEnvelope.setting("io.modelcontextprotocol/protocolVersion", .string("2099-01-01"))
        let answer = await client.ask(1, "server/discover", "{\"_meta\":\(other.text)}", isModern: false)
        #expect(code(answer) == -32022 && answer["error"]?["data"]?["requested"]?.string == "2099-01-01")
        #expect(await client.ask(2, "server/discover", isModern: true)["result"] != nil)
    }

    // MARK: - Tools

    @Test("tools are listed with what each revision wants", arguments: [true, false]) func list(isModern: Bool) async {
        let result = await client().ask(1, "tools/list", isModern: isModern)["result"]
        #expect(isMarked(result) == isModern && isTimed(result) == isModern)
        if !isModern { #expect(result?["resultType"] == nil && result?["_meta"] == nil && result?["cacheScope"] == nil) }
        let tools = elements(result?["tools"])
        #expect(tools.map { $0["name"]?.string } == ["shout", "weather", "broken", "wait"])
        let shout = tools.first
        #expect(shout?["title"]?.string == "Shout" && shout?["description"]?.string == "Writes a text in capitals.")
        #expect(shout?["annotations"]?.text == #"{"title":"Shout","readOnlyHint":true}"#)
        #expect(shout?["inputSchema"]?["type"]?.string == "object" && shout?["outputSchema"] == nil)
        #expect(shout?["inputSchema"]?["properties"]?["text"]?["type"]?.string == "string")
        let weather = tools.first { $0["name"]?.string == "weather" }
        #expect(weather?["title"] == nil)
        #expect(weather?["annotations"]?.text == #"{"readOnlyHint":false,"destructiveHint":false}"#)
        #expect(weather?["outputSchema"]?["type"]?.string == "object")
        #expect(weather?["outputSchema"]?["properties"]?["celsius"]?["type"]?.string == "number")
        let broken = tools.first { $0["name"]?.string == "broken" }
        #expect(broken?["annotations"]?["destructiveHint"] == .bool(true))
        // A tool without parameters has a schema, too.
        #expect(broken?["inputSchema"]?["type"]?.string == "object")
    }

    @Test("the text of a tool is its result", arguments: [true, false]) func text(isModern: Bool) async {
        let params = #"{"name":"shout","arguments":{"text":"são paulo"}}"#
        let result = await client().ask(1, "tools/call", params, isModern: isModern)["result"]
        #expect(result?["content"]?.text == #"[{"type":"text","text":"SÃO PAULO"}]"#)
        #expect(result?["isError"] == .bool(false) && result?["structuredContent"] == nil)
        #expect(isMarked(result) == isModern && result?["ttlMs"] == nil)
        if !isModern { #expect(result?["resultType"] == nil && result?["_meta"] == nil) }
    }

    @Test("a value is structured, satisfies its schema, and is repeated as text") func structured() async throws {
        let client = client()
        let list = await client.ask(1, "tools/list", isModern: true)
        let answer = await client.ask(2, "tools/call", #"{"name":"weather","arguments":{"city":"Rome"}}"#, isModern: true)
        let value = try #require(answer["result"]?["structuredContent"])
        #expect(value.isEqual(to: parsed(#"{"city":"Rome","celsius":27.25}"#)))
        let text = try #require(elements(answer["result"]?["content"]).first?["text"]?.string)
        #expect(parsed(text).isEqual(to: value))
        let schema = try #require(elements(list["result"]?["tools"]).first { $0["name"]?.string == "weather" }?["outputSchema"])
        #expect(Set(elements(schema["required"])) == [.string("city"), .string("celsius")])
    }

    @Test("arguments that do not fit are a result that says so, which models read") func badArguments() async {
        let client = client()
        let missing = await client.ask(1, "tools/call", #"{"name":"shout","arguments":{}}"#, isModern: true)
        #expect(missing["result"]?["isError"] == .bool(true) && isMarked(missing["result"]))
        #expect(elements(missing["result"]?["content"]).first?["text"]?.string?.contains("text") == true)
        let wrong = await client.ask(2, "tools/call", #"{"name":"shout","arguments":{"text":5}}"#, isModern: true)
        #expect(wrong["result"]?["isError"] == .bool(true) && wrong["error"] == nil)
        let none = await client.ask(3, "tools/call", #"{"name":"shout"}"#, isModern: true)
        #expect(none["result"]?["isError"] == .bool(true))
    }

    @Test("a tool that fails is a result with the reason") func failure() async {
        let answer = await client().ask(1, "tools/call", #"{"name":"broken","arguments":{}}"#, isModern: true)
        #expect(answer["result"]?["isError"] == .bool(true))
        let text = elements(answer["result"]?["content"]).first?["text"]?.string
        #expect(text?.contains("broken") == true && text?.contains("the disk is full") == true)
    }

    @Test("calls that no tool can be made of are errors", arguments: [true, false]) func badCalls(isModern: Bool) async {
        let client = client()
        let calls = [
            #"{"name":"nope","arguments":{}}"#, #"{"arguments":{}}"#, #"{"name":5}"#, #"{"name":"shout","arguments":"hi"}"#,
            #"{"name":"shout","arguments":[1]}"#, "{}",
        ]
        for (index, params) in calls.enumerated() {
            let answer = await client.ask(index, "tools/call", params, isModern: isModern)
            #expect(code(answer) == -32602, "\(params)")
        }
        let method = await client.ask(99, "logging/setLevel", isModern: isModern)
        #expect(code(method) == -32601 && method["error"]?["data"]?.string == "logging/setLevel")
    }

    // MARK: - Messages

    @Test("what is no message is an error without an id, and the session goes on") func noMessages() async {
        let client = client()
        let noJSON = ["hello", "{", #"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#, String(repeating: "[", count: 100_000)]
        for line in noJSON { client.send(line) }
        client.session.take([0x7B, 0xFF, 0x7D])
        #expect(client.received.map { code($0) } == [Int?](repeating: -32700, count: noJSON.count + 1))
        let noMessages = ["[]", "1", #"{"id":1,"method":"ping"}"#, #"{"jsonrpc":"2.0","id":null,"method":"ping"}"#]
        for line in noMessages { client.send(line) }
        let codes = client.received.suffix(noMessages.count).map { code($0) }
        #expect(codes == [Int?](repeating: -32600, count: noMessages.count))
        for message in client.received { #expect(message["id"] == .null) }
        // None of them says of what revision the client is.
        #expect(await client.ask(1, "tools/list", isModern: true)["result"] != nil)
    }

    @Test("notifications and answers to nothing are not answered") func unanswered() async {
        let client = client()
        client.send(#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        client.send(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}"#)
        client.send(#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#)
        client.send(#"{"jsonrpc":"2.0","id":5,"result":{}}"#)
        client.send(#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"no"}}"#)
        #expect(await client.ask(1, "tools/list", isModern: true)["result"] != nil)
        #expect(client.received.count == 1)
    }

    @Test("ids come back as they were, texts too") func ids() async {
        let client = client()
        client.send(#"{"jsonrpc":"2.0","id":"a-1","method":"ping"}"#)
        client.send(#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#)
        client.send(#"{"jsonrpc":"2.0","id":-5,"method":"ping"}"#)
        await eventually { client.received.count == 3 }
        #expect(Set(client.received.compactMap { $0["id"]?.text }) == [#""a-1""#, "0", "-5"])
    }

    @Test("a call that is cancelled ends, and is not answered", .timeLimit(.minutes(1)), arguments: [true, false])
    func cancellation(isModern: Bool) async {
        let client = client()
        client.send(1, "tools/call", #"{"name":"wait"}"#, isModern: isModern)
        await eventually { patient.begun.value == 1 }
        client.cancel(1)
        await eventually { patient.cancelled.value == 1 }
        // Once more is no harm.
        client.cancel(1)
        #expect(await client.ask(2, "tools/list", isModern: isModern)["result"] != nil)
        #expect(client.answers(to: 1).isEmpty)
        // The id is free again.
        let params = #"{"name":"shout","arguments":{"text":"x"}}"#
        #expect(await client.ask(1, "tools/call", params, isModern: isModern)["result"]?["isError"] == .bool(false))
    }

    @Test("the end of the client ends its calls", .timeLimit(.minutes(1))) func end() async {
        let client = client()
        for id in 1...3 { client.send(id, "tools/call", #"{"name":"wait"}"#, isModern: true) }
        await eventually { patient.begun.value == 3 }
        client.session.cancel()
        await eventually { patient.cancelled.value == 3 }
        #expect(client.received.isEmpty)
    }

    @Test("64 calls run at the same time, and one more is refused", .timeLimit(.minutes(1))) func manyCalls() async {
        let client = client()
        for id in 1...65 { client.send(id, "tools/call", #"{"name":"wait"}"#, isModern: true) }
        #expect(client.received.count == 1 && client.answers(to: 65).map { code($0) } == [-32603])
        await eventually { patient.begun.value == 64 }
        // There is room again.
        client.cancel(7)
        let params = #"{"name":"shout","arguments":{"text":"x"}}"#
        #expect(await client.ask(66, "tools/call", params, isModern: true)["result"] != nil)
        client.session.cancel()
        await eventually { patient.cancelled.value == 64 }
        #expect(client.received.count == 2)
    }

    @Test("two requests with one id are both answered", .timeLimit(.minutes(1))) func equalIDs() async {
        let guarded = Guarded()
        let client = client([guarded])
        for text in ["a", "b"] {
            client.send(
                7, "tools/call", "{\"name\":\"guarded\",\"arguments\":{\"text\":\"\(text)\",\"count\":1}}", isModern: true)
        }
        await eventually { guarded.begun.value == 2 || !client.received.isEmpty }
        guarded.gate.open()
        await eventually { client.answers(to: 7).count == 2 }
    }

    // MARK: - Resources

    @Test("texts are listed and read", arguments: [true, false]) func resources(isModern: Bool) async {
        let client = client()
        let list = await client.ask(1, "resources/list", isModern: isModern)["result"]
        #expect(
            list?["resources"]?.text
                == #"[{"uri":"note://köln","name":"note","description":"A note.","mimeType":"text/markdown"}]"#)
        #expect(isMarked(list) == isModern && isTimed(list) == isModern)
        let read = await client.ask(2, "resources/read", #"{"uri":"note://köln"}"#, isModern: isModern)["result"]
        #expect(read?["contents"]?.text == ##"[{"uri":"note://köln","mimeType":"text/markdown","text":"# Köln"}]"##)
        #expect(isMarked(read) == isModern && isTimed(read) == isModern)
        let hidden = await client.ask(3, "resources/read", #"{"uri":"note://hidden"}"#, isModern: isModern)["result"]
        #expect(elements(hidden?["contents"]).first?["mimeType"]?.string == "text/plain")
        let unknown = await client.ask(4, "resources/read", #"{"uri":"note://nowhere"}"#, isModern: isModern)
        #expect(code(unknown) == -32602 && unknown["error"]?["data"]?["uri"]?.string == "note://nowhere")
        let none = await client.ask(5, "resources/read", isModern: isModern)
        #expect(code(none) == -32602)
        let templates = await client.ask(6, "resources/templates/list", isModern: isModern)["result"]
        #expect(templates?["resourceTemplates"] == .array([]) && isTimed(templates) == isModern)
        let prompts = await client.ask(7, "prompts/list", isModern: isModern)["result"]
        #expect(prompts?["prompts"] == .array([]) && isTimed(prompts) == isModern)
    }

    @Test("a server without texts has an empty list, and one that cannot list them says so") func noResources() async {
        let client = LineClient(MCPServer(name: "tests", tools: []))
        let empty = await client.ask(1, "resources/list", isModern: true)
        #expect(empty["result"]?["resources"] == .array([]))
        let unknown = await client.ask(2, "resources/read", #"{"uri":"x:"}"#, isModern: true)
        #expect(code(unknown) == -32602)
        let broken = LineClient(MCPServer(name: "tests", tools: [], resources: { throw Broken.Failure() }))
        let failure = await broken.ask(1, "resources/list", isModern: true)
        #expect(code(failure) == -32603)
    }
}
