import Foundation
import FoundationModels
import FoundationModelsOpenAI
import JSON
import Testing

@testable import FoundationModelsServer

/// With the small model, which ./test installs.
@Suite(.enabled(if: SystemLanguageModel.default.isAvailable), .serialized) struct ServerTests {
    @Test func answer() async throws {
        try await TestServer.run { server in
            let reply = try await server.chat(", \"temperature\": 0, \"max_tokens\": 12")
            #expect(reply.status == 200 && reply.headers["x-request-id"]?.hasPrefix("req_") == true)
            let choice = try #require(reply.json["choices"]?.first)
            #expect(choice["message"]?["content"]?.string?.isEmpty == false)
            #expect(choice["message"]?["refusal"] == .null && choice["logprobs"] == .null)
            let usage = try #require(reply.json["usage"])
            let count = try await server.send(
                "/v1/chat/completions/input_tokens",
                "{\"model\": \"default\", \"messages\": [{\"role\": \"user\", \"content\": \"Name a colour.\"}]}")
            #expect(usage["prompt_tokens"] == count.json["input_tokens"])
            #expect(
                usage["total_tokens"]?.integer == (usage["prompt_tokens"]?.integer ?? 0)
                    + (usage["completion_tokens"]?.integer ?? 0))
        }
    }

    @Test func stream() async throws {
        try await TestServer.run { server in
            let whole = try await server.chat(", \"temperature\": 0, \"max_tokens\": 12")
            let reply = try await server.chat(
                ", \"temperature\": 0, \"max_tokens\": 12, \"stream\": true, \"stream_options\": {\"include_usage\": true}")
            #expect(reply.headers["content-type"] == "text/event-stream" && reply.text.hasSuffix("data: [DONE]\n\n"))
            let events = reply.events
            #expect(events.first?["choices"]?.first?["delta"]?["role"]?.string == "assistant")
            let texts = events.compactMap { $0["choices"]?.first?["delta"]?["content"]?.string }
            #expect(texts.joined() == whole.json["choices"]?.first?["message"]?["content"]?.string)
            #expect(events.last?["usage"]?["prompt_tokens"] == whole.json["usage"]?["prompt_tokens"])
            #expect(events.dropLast().allSatisfy { $0["usage"] == .null })
            #expect(Set(events.compactMap { $0["id"]?.string }).count == 1)
        }
    }

    /// A model may end its answer at once; the conversation can go on after that in every API.
    @Test func emptyAnswers() async throws {
        try await TestServer.run { server in
            let end = ", \"temperature\": 0, \"logit_bias\": {\"2\": 100}"
            let reply = try await server.chat(end)
            let choice = try #require(reply.json["choices"]?.first)
            #expect(choice["message"]?["content"]?.string == "" && choice["finish_reason"]?.string == "stop")
            let streamed = try await server.chat(end + ", \"stream\": true").events.compactMap { $0["choices"]?.first?["delta"] }
            #expect(streamed.contains { $0["content"]?.string == "" })
            // The end comes alone.
            #expect(streamed.last == .object([]))
        }
        var writer = ResponsesWriter(
            id: "resp_1", created: 1, request: try ResponsesRequest(try JSONParser.parse(#"{"input": "Name a colour."}"#)))
        _ = writer.texts(for: .end(answer: 0, TurnFinish(reason: .stop, usage: TurnUsage())))
        let output = try #require(writer.final()["output"]?.first)
        #expect(output["type"]?.string == "message" && output["content"]?.first?["text"]?.string == "")
    }

    @Test func formsAreEnforced() async throws {
        try await TestServer.run { server in
            let schema = """
                {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}, "n": {"type": "integer", "minimum": 3, "maximum": 5}},
                "required": ["colour", "n"], "additionalProperties": false}
                """
            for (path, body) in [
                (
                    "/v1/chat/completions",
                    "\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": \"a\", \"schema\": \(schema)}}"
                ),
                (
                    "/v1/responses",
                    "\"input\": \"x\", \"text\": {\"format\": {\"type\": \"json_schema\", \"name\": \"a\", \"schema\": \(schema)}}"
                ),
                (
                    "/api/chat",
                    "\"stream\": false, \"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"format\": \(schema)"
                ),
            ] {
                let reply = try await server.send(path, "{\"model\": \"default\", \(body)}")
                #expect(reply.status == 200)
                let text =
                    reply.json["choices"]?.first?["message"]?["content"]?.string
                    ?? reply.json["output"]?.first?["content"]?.first?["text"]?.string
                    ?? reply.json["message"]?["content"]?.string
                let value = try JSONParser.parse(text ?? "")
                #expect(["red", "blue"].contains(value["colour"]?.string) && (3...5).contains(value["n"]?.integer ?? 0))
            }
            // What cannot be enforced is said before anything is generated, with its place.
            let refused = try await server.chat(
                ", \"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"schema\": {\"properties\": {\"a\": {\"type\": \"nothing\"}}}}}"
            )
            #expect(refused.status == 400 && refused.json["error"]?["pointer"]?.string == "/properties/a/type")
            #expect(refused.json["error"]?["param"]?.string == "response_format.json_schema.schema")
            // No room for the shortest answer: cut, and no text that looks like one.
            let cut = try await server.chat(
                ", \"max_tokens\": 2, \"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"schema\": \(schema)}}")
            #expect(cut.json["choices"]?.first?["finish_reason"]?.string == "length")
        }
    }

    @Test func window() async throws {
        try await TestServer.run { server in
            let long = String(repeating: "one two three ", count: 3_000)
            let reply = try await server.chat("", prompt: long)
            #expect(reply.status == 400 && reply.json["error"]?["code"]?.string == "context_length_exceeded")
            #expect(reply.json["error"]?["n_ctx"]?.integer == 4_096)
            #expect((reply.json["error"]?["n_prompt_tokens"]?.integer ?? 0) > 4_096)
            // A conversation of many turns goes on if it may; a single message that does not fit does not.
            let turns = (0..<60).map { number in
                "{\"role\": \"user\", \"content\": \"\(number) \(String(repeating: "word ", count: 60))\"}, {\"role\": \"assistant\", \"content\": \"\(String(repeating: "well ", count: 40))\"}"
            }
            let body =
                "\"messages\": [\(turns.joined(separator: ", ")), {\"role\": \"user\", \"content\": \"Name a colour.\"}], \"max_tokens\": 4"
            let refused = try await server.send("/v1/chat/completions", "{\"model\": \"default\", \(body)}")
            #expect(refused.status == 400)
            let fitted = try await server.send(
                "/v1/chat/completions", "{\"model\": \"default\", \(body), \"truncation\": \"auto\"}")
            #expect(fitted.status == 200)
            #expect((1..<4_096).contains(fitted.json["usage"]?["prompt_tokens"]?.integer ?? 0))
            #expect(try await server.chat(", \"truncation\": \"auto\"", prompt: long).status == 400)
        }
    }

    /// Whatever else is in the batch, greedy answers are the same.
    @Test func answersDoNotDependOnOthers() async throws {
        try await TestServer.run { server in
            let prompts = [
                "Name a colour.", "What is 2 + 3?", "Write a line about the sea, please.", "Who wrote Hamlet?",
                "List three fruits.",
                "Say hello in French.",
            ]
            @Sendable func ask(_ prompt: String) async throws -> String {
                try await server.chat(", \"temperature\": 0, \"max_tokens\": 24", prompt: prompt)
                    .json["choices"]?.first?["message"]?["content"]?.string ?? ""
            }
            var alone: [String] = []
            for prompt in prompts { alone.append(try await ask(prompt)) }
            let together = try await withThrowingTaskGroup(of: (Int, String).self) { group in
                for round in 0..<2 {
                    for (index, prompt) in prompts.enumerated() {
                        group.addTask { (index, try await ask(prompt + (round == 0 ? "" : ""))) }
                    }
                }
                var answers: [(Int, String)] = []
                for try await answer in group { answers.append(answer) }
                return answers
            }
            for (index, answer) in together { #expect(answer == alone[index]) }
        }
    }

    @Test func placesAreFreeWhenClientsGo() async throws {
        try await TestServer.run { server in
            let task = Task {
                try await server.chat(", \"max_tokens\": 3000, \"ignore_eos\": true, \"stream\": true", prompt: "Count for ever.")
            }
            while server.server.gate.load.active == 0 { try await Task.sleep(for: .milliseconds(5)) }
            task.cancel()
            while server.server.gate.load.active > 0 { try await Task.sleep(for: .milliseconds(5)) }
            #expect(server.server.gate.load.waiting == 0)
        }
    }

    @Test func keysHostsAndRoutes() async throws {
        var configuration = ModelServer.Configuration()
        configuration.keys = [APIKey(name: "a", key: "secret", requestsPerMinute: 2)]
        try await TestServer.run(configuration) { server in
            #expect(try await server.send("/health").status == 200)
            let none = try await server.send("/v1/models")
            #expect(none.status == 401 && none.json["error"]?["code"]?.string == "invalid_api_key")
            #expect(try await server.send("/v1/models", headers: ["Authorization": "Bearer wrong"]).status == 401)
            #expect(try await server.send("/v1/models", headers: ["Authorization": "Bearer secret"]).status == 200)
            #expect(try await server.send("/v1/models", headers: ["x-api-key": "secret"]).status == 200)
            let limited = try await server.send("/v1/models", headers: ["x-api-key": "secret"])
            #expect(limited.status == 429 && limited.headers["retry-after"] != nil)
            #expect(try await server.send("/health", headers: ["Host": "evil.example"]).status == 403)
            #expect(try await server.send("/health", headers: ["Origin": "http://evil.example"]).status == 403)
            let unknown = try await server.send("/v1/nothing")
            #expect(unknown.status == 404 && unknown.json["error"]?["message"]?.string != nil)
            #expect(try await server.send("/v1/chat/completions").status == 405)
        }
    }

    @Test func responsesAreKept() async throws {
        try await TestServer.run { server in
            let first = try await server.send(
                "/v1/responses", "{\"model\": \"default\", \"input\": \"My name is Ada.\", \"max_output_tokens\": 16}")
            let id = try #require(first.json["id"]?.string)
            let again = try await server.send("/v1/responses/\(id)")
            #expect(again.json["output"] == first.json["output"])
            let second = try await server.send(
                "/v1/responses",
                "{\"model\": \"default\", \"input\": \"And now?\", \"previous_response_id\": \"\(id)\", \"max_output_tokens\": 16}"
            )
            #expect((second.json["usage"]?["input_tokens"]?.integer ?? 0) > (first.json["usage"]?["input_tokens"]?.integer ?? 0))
            let stream = try await server.send(
                "/v1/responses",
                "{\"model\": \"default\", \"input\": \"Hi\", \"stream\": true, \"store\": false, \"max_output_tokens\": 16}")
            let types = stream.events.compactMap { $0["type"]?.string }
            #expect(types.first == "response.created" && types.dropFirst().first == "response.in_progress")
            #expect(["response.completed", "response.incomplete"].contains(types.last))
            #expect(stream.events.compactMap { $0["sequence_number"]?.integer } == Array(0..<types.count))
            let unstored = stream.events.last?["response"]?["id"]?.string ?? ""
            #expect(try await server.send("/v1/responses/\(unstored)").status == 404)
        }
    }

    @Generable struct Pair {
        @Guide(.anyOf(["left", "right"])) var side: String
        @Guide(.range(1...9)) var count: Int
    }

    struct Clock: Tool {
        let name = "clock"
        let description = "Says what time it is."
        @Generable struct Arguments {
            @Guide(.anyOf(["Rome", "Oslo"])) var city: String
        }
        func call(arguments: Arguments) async throws -> String { "Noon in \(arguments.city)." }
    }

    /// Sessions of the framework use the server as they use a model of this machine.
    @Test func sessionsOfTheFramework() async throws {
        try await TestServer.run { server in
            let model = OpenAILanguageModel(name: "default", url: server.address + "/v1")
            let session = LanguageModelSession(model: model, instructions: "Be brief.")
            #expect(try await !session.respond(to: "Name a colour.", options: .init(maximumResponseTokens: 12)).content.isEmpty)
            let pair = try await session.respond(to: "Choose.", generating: Pair.self).content
            #expect(["left", "right"].contains(pair.side) && (1...9).contains(pair.count))
            var last = ""
            for try await snapshot in session.streamResponse(to: "Say hello.", options: .init(maximumResponseTokens: 12)) {
                #expect(snapshot.content.hasPrefix(last))
                last = snapshot.content
            }
            #expect(!last.isEmpty)
            #expect(session.transcript.count == 7)
            let own = try await model.tokenCount(for: session.transcript)
            #expect(own > 20)
            let other = LanguageModelSession(model: model, tools: [Clock()])
            _ = try await other.respond(
                to: "What time is it in Rome?", options: .init(maximumResponseTokens: 24, toolCallingMode: .allowed))
            await #expect(throws: LanguageModelError.self) {
                try await session.respond(to: String(repeating: "one two three ", count: 3_000))
            }
        }
    }
}

extension JSONValue {
    var first: JSONValue? { if case .array(let values) = self { values.first } else { nil } }
}
