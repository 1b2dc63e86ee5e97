import Inference
import JSON
import Testing

@testable import FoundationModelsServer

@Suite struct RequestTests {
    private func chat(_ fields: String) throws -> ChatRequest {
        try ChatRequest(
            JSONParser.parse("{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]\(fields)}"))
    }

    private func param(_ body: () throws -> Void) -> String? {
        do {
            try body()
            return "accepted"
        } catch { return (error as? RequestError)?.param }
    }

    @Test func everyFieldIsReadOrRefused() throws {
        #expect(param { _ = try chat(", \"tempreature\": 1") } == "tempreature")
        #expect(
            param {
                _ = try chat(", \"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"schema\": {}, \"x\": 1}}")
            }
                == "response_format.json_schema.x")
        #expect(param { _ = try chat(", \"temperature\": 2.5") } == "temperature")
        #expect(param { _ = try chat(", \"top_logprobs\": 3") } == "top_logprobs")
        #expect(param { _ = try chat(", \"tool_choice\": \"required\"") } == "tool_choice")
        #expect(param { _ = try chat(", \"audio\": {}") } == "audio")
        #expect(
            param { _ = try chat(", \"modalities\": [\"text\"], \"user\": \"u\", \"store\": true, \"prediction\": {}") }
                == "accepted")
        // Null is like a field that is not there.
        #expect(param { _ = try chat(", \"tempreature\": null, \"stop\": null") } == "accepted")
        #expect(
            param {
                _ = try ChatRequest(
                    JSONParser.parse(
                        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", \"image_url\": {}}]}]}"))
            }
                == "messages[0].content[0].type")
    }

    @Test func fieldsAreHonoured() throws {
        let request = try chat(
            ", \"seed\": 7, \"top_p\": 0.5, \"logit_bias\": {\"5\": -100}, \"stop\": [\"a\", \"b\"], \"n\": 3, \"max_tokens\": 9, \"stream\": true, \"stream_options\": {\"include_usage\": true}"
        )
        #expect(request.turn.sampling.seed == 7 && request.turn.sampling.topP == 0.5)
        #expect(request.turn.sampling.biases.first?.value == -.infinity)
        #expect(request.turn.stops == ["a", "b"] && request.turn.maximumTokens == 9)
        #expect(request.reply.answers == 3 && request.reply.isStreamed && request.reply.includesUsage)
    }

    @Test func lastMessageOfTheAssistantIsContinued() throws {
        let body = """
            {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hel"}]}
            """
        guard case .chat(let chat) = try ChatRequest(JSONParser.parse(body)).turn.input else { return }
        #expect(chat.prefill == "Hel" && chat.messages.count == 1)
    }

    /// What another model wrote as arguments may be no JSON.
    @Test func malformedArgumentsPass() throws {
        let body = """
            {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
            "function": {"name": "f", "arguments": "{\\"a\\": "}}]}, {"role": "tool", "tool_call_id": "c1", "content": "x"}]}
            """
        guard case .chat(let chat) = try ChatRequest(JSONParser.parse(body)).turn.input else { return }
        #expect(chat.messages[1].toolCalls.first?.arguments == .string("{\"a\": "))
        #expect(chat.messages[2].toolName == "f")
    }

    /// A tool without parameters takes none: as a schema, `{}` would allow everything.
    @Test(arguments: ["", ", \"parameters\": {}", ", \"parameters\": {\"type\": \"object\", \"properties\": {}}"])
    func toolsWithoutParametersTakeNone(_ parameters: String) throws {
        let request = try chat(", \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"now\"\(parameters)}}]")
        #expect(request.turn.tools.tools.first?.parameters["additionalProperties"] == .bool(false))
    }

    @Test func toolChoices() throws {
        let tools = """
            , "tools": [{"type": "function", "function": {"name": "a"}}, {"type": "function", "function": {"name": "b"}}]
            """
        let allowed = try chat(
            tools
                + ", \"tool_choice\": {\"type\": \"allowed_tools\", \"allowed_tools\": {\"mode\": \"required\", \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"b\"}}]}}"
        ).turn.tools
        #expect(allowed.callable.map(\.name) == ["b"] && allowed.mustCall && allowed.tools.count == 2)
        #expect(try chat(tools + ", \"tool_choice\": \"none\"").turn.tools.callable.isEmpty)
        #expect(
            param { _ = try chat(tools + ", \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"c\"}}") }
                == "tool_choice")
    }

    @Test func messagesLeaveOutWhatOnlyTheServiceKnows() throws {
        let body = """
            {"model": "m", "max_tokens": 5, "new_field": 1, "system": [{"type": "text", "text": "x-anthropic-billing-header: 1"},
            {"type": "text", "text": "Be brief."}], "tools": [{"type": "bash_20250124", "name": "bash"}],
            "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "9"}]}]}
            """
        let request = try MessagesRequest(JSONParser.parse(body))
        #expect(request.skipped == ["tools[0].type bash_20250124", "new_field"])
        guard case .chat(let chat) = request.turn.input else { return }
        #expect(chat.messages.map(\.content) == ["Be brief.", "9"])
    }

    @Test func hostsAndOrigins() {
        let rules = OriginRules(hosts: ["ai.example"], origins: ["https://app.example"], isLoopback: true)
        func refusal(_ host: String?, _ origin: String? = nil, _ site: String? = nil) -> OriginRules.Refusal? {
            rules.refusal(host: host, origin: origin, fetchSite: site)
        }
        for host in ["localhost:8080", "127.0.0.1", "[::1]:80", "AI.example:443", "x.localhost"] { #expect(refusal(host) == nil) }
        for host in [
            "evil.example", "localhost.evil.example", "127.0.0.1:8091,evil.com", "10.0.0.1", "[::1].evil.com", "[::1",
            "127.0.0.1.evil.com",
        ] {
            #expect(refusal(host) == .host(host))
        }
        #expect(refusal("localhost", "https://app.example") == nil)
        #expect(refusal("localhost:1", "http://localhost:1") == nil)
        #expect(refusal("localhost:1", "http://localhost:2") == .origin("http://localhost:2"))
        #expect(refusal("localhost", "https://app.example.evil.com") == .origin("https://app.example.evil.com"))
        #expect(refusal("localhost", "null") == .origin("null"))
        #expect(refusal("localhost", nil, "cross-site") != nil)
        #expect(refusal("localhost", nil, "same-origin") == nil)
    }

    @Test func keysAreRead() throws {
        #expect(APIKey.hash(of: "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }
}
