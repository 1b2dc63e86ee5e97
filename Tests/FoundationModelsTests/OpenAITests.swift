import Foundation
import FoundationModels
import FoundationModelsOpenAI
import TestSupport
import Testing

struct OpenAITests {
    private static func events(_ deltas: [String], usage: String? = nil, finish: String = "stop") -> String {
        var lines = deltas.map { "data: {\"choices\":[{\"index\":0,\"delta\":\($0)}]}\n\n" }
        lines.append("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"\(finish)\"}]}\n\n")
        if let usage { lines.append("data: {\"choices\":[],\"usage\":\(usage)}\n\n") }
        return lines.joined() + "data: [DONE]\n\n"
    }

    private func session(
        _ server: ChatServer, tools: [any Tool] = [], timeout: Duration = .seconds(10)
    ) -> LanguageModelSession {
        LanguageModelSession(
            model: OpenAILanguageModel(name: "m", url: server.url, apiKey: "k", timeout: timeout), tools: tools,
            instructions: "Be brief.")
    }

    @Test("text is streamed, usage is as the server reports it, options are sent") func text() async throws {
        let server = try await ChatServer([
            .init(
                body: Self.events(
                    ["{\"content\":\"Hel\"}", "{\"content\":\"lo é\"}"],
                    usage: "{\"prompt_tokens\":9,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":4}}"))
        ])
        let session = session(server)
        let options = GenerationOptions(samplingMode: .random(probabilityThreshold: 0.5, seed: 3), temperature: 0.7)
        var texts: [String] = []
        let stream = session.streamResponse(to: "Hi", options: options)
        for try await snapshot in stream { texts.append(snapshot.content) }
        let response = try await stream.collect()
        #expect(response.content == "Hello é")
        #expect(texts.last == "Hello é")
        #expect(response.usage.input.totalTokenCount == 9 && response.usage.input.cachedTokenCount == 4)
        #expect(response.usage.output.totalTokenCount == 2)
        let sent = try GeneratedContent(json: try #require(server.requests.first))
        #expect(try sent.value(Double.self, forProperty: "top_p") == 0.5)
        #expect(try sent.value(Int.self, forProperty: "seed") == 3)
        let messages = try sent.value([GeneratedContent].self, forProperty: "messages")
        #expect(try messages.map { try $0.value(String.self, forProperty: "role") } == ["system", "user"])
    }

    @Test("only parameters that were set are sent, and the limit of tokens under the name that the server accepts")
    func parameters() async throws {
        let rejection = """
            {"error":{"message":"Unsupported parameter: 'max_tokens'.","type":"invalid_request_error","param":"max_tokens",
            "code":"unsupported_parameter"}}
            """
        let answer = ChatServer.Answer(body: Self.events(["{\"content\":\"Yes.\"}"]))
        let server = try await ChatServer([answer, .init(status: "400 Bad Request", body: rejection), answer, answer])
        let session = session(server, tools: [Weather()])
        #expect(try await session.respond(to: "One").content == "Yes.")
        let limit = GenerationOptions(maximumResponseTokens: 5)
        #expect(try await session.respond(to: "Two", options: limit).content == "Yes.")
        #expect(try await session.respond(to: "Three", options: limit).content == "Yes.")
        let names = try server.requests.map { request -> Set<String> in
            guard case .structure(_, let names) = try GeneratedContent(json: request).kind else { return [] }
            return Set(names).subtracting(["model", "messages", "stream", "stream_options", "tools"])
        }
        #expect(names == [[], ["max_tokens"], ["max_completion_tokens"], ["max_completion_tokens"]])
        let other = rejection.replacingOccurrences(of: "max_tokens", with: "tools")
        let strict = try await ChatServer([.init(status: "400 Bad Request", body: other)])
        await #expect(throws: OpenAILanguageModel.ServerError.self) { try await self.session(strict).respond(to: "Hi") }
    }

    @Generable struct City {
        var name: String
        @Guide(.range(0...40_000_000)) var people: Int
    }

    @Test("the schema is sent to the server, and the structured response is parsed") func structured() async throws {
        let server = try await ChatServer([
            .init(
                body: Self.events([
                    "{\"content\":\"{\\\"name\\\": \\\"Oslo\\\",\"}", "{\"content\":\" \\\"people\\\": 700000}\"}",
                ]))
        ])
        let city = try await session(server).respond(to: "A city", generating: City.self).content
        #expect(city.name == "Oslo" && city.people == 700_000)
        let sent = try GeneratedContent(json: try #require(server.requests.first))
        let format = try sent.value(GeneratedContent.self, forProperty: "response_format")
        #expect(try format.value(String.self, forProperty: "type") == "json_schema")
    }

    @Test("a server that does not know json_schema gets the schema as json_object, once for all sessions of a model")
    func objectFormat() async throws {
        // As llama-cpp-python says it.
        let rejection = #"""
            {"error":{"type":"internal_server_error",
            "message":"[{'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or 'json_object'\"}]"}}
            """#
        let answer = ChatServer.Answer(body: Self.events(["{\"content\":\"{\\\"name\\\":\\\"Oslo\\\",\\\"people\\\":7}\"}"]))
        let server = try await ChatServer([.init(status: "500 Internal Server Error", body: rejection), answer, answer])
        let model = OpenAILanguageModel(name: "m", url: server.url)
        for _ in 1...2 {
            let session = LanguageModelSession(model: model)
            #expect(try await session.respond(to: "A city", generating: City.self).content.people == 7)
        }
        let formats = try server.requests.map {
            try GeneratedContent(json: $0).value(GeneratedContent.self, forProperty: "response_format")
        }
        #expect(
            try formats.map { try $0.value(String.self, forProperty: "type") } == ["json_schema", "json_object", "json_object"])
        let schema = try formats[1].value(GeneratedContent.self, forProperty: "schema")
        #expect(try schema.value(String.self, forProperty: "type") == "object")
    }

    struct Weather: Tool {
        let description = "Tells the weather."
        @Generable struct Arguments { var city: String }
        func call(arguments: Arguments) async throws -> String { "Sunny in \(arguments.city)" }
    }

    @Test("tool calls that arrive in parts are run, and their outputs are sent with their ids") func tools() async throws {
        let server = try await ChatServer([
            .init(
                body: Self.events(
                    [
                        "{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"Weather\",\"arguments\":\"{\\\"ci\"}}]}",
                        "{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"ty\\\":\\\"Rome\\\"}\"}}]}",
                        "{\"tool_calls\":[{\"index\":1,\"id\":\"c2\",\"function\":{\"name\":\"Weather\",\"arguments\":\"{\\\"city\\\":\\\"Bonn\\\"}\"}}]}",
                    ], usage: "{\"prompt_tokens\":5,\"completion_tokens\":7}", finish: "tool_calls")),
            .init(body: Self.events(["{\"content\":\"Sunny in both.\"}"])),
        ])
        let session = session(server, tools: [Weather()])
        #expect(try await session.respond(to: "Rome and Bonn?").content == "Sunny in both.")
        let kinds = session.transcript.map { entry in
            switch entry {
            case .instructions: "i"
            case .prompt: "p"
            case .toolCalls(let calls): "c\(calls.count)"
            case .toolOutput(let output): "o\(output.id)"
            case .response: "r"
            default: "?"
            }
        }
        #expect(kinds == ["i", "p", "c2", "oc1", "oc2", "r"])
        let second = try GeneratedContent(json: try #require(server.requests.last))
        let messages = try second.value([GeneratedContent].self, forProperty: "messages")
        #expect(
            try messages.map { try $0.value(String.self, forProperty: "role") } == [
                "system", "user", "assistant", "tool", "tool",
            ])
        #expect(try messages[3].value(String.self, forProperty: "tool_call_id") == "c1")
    }

    private func messages(_ request: String?) throws -> [GeneratedContent] {
        try GeneratedContent(json: try #require(request)).value([GeneratedContent].self, forProperty: "messages")
    }

    @Test("a text and the calls after it are one message") func textBeforeCalls() async throws {
        let call =
            "{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"Weather\",\"arguments\":\"{\\\"city\\\":\\\"Rome\\\"}\"}}]}"
        let server = try await ChatServer([
            .init(body: Self.events(["{\"content\":\"Let me look.\"}", call], finish: "tool_calls")),
            .init(body: Self.events(["{\"content\":\"Sunny.\"}"])),
        ])
        let session = session(server, tools: [Weather()])
        #expect(try await session.respond(to: "Rome?").content == "Sunny.")
        let sent = try messages(server.requests.last)
        #expect(try sent.map { try $0.value(String.self, forProperty: "role") } == ["system", "user", "assistant", "tool"])
        #expect(try sent[2].value(String.self, forProperty: "content") == "Let me look.")
        #expect(try sent[2].value([GeneratedContent].self, forProperty: "tool_calls").count == 1)
    }

    @Test("prompts without responses are joined, and outputs whose calls are gone are left out") func oddTranscript() async throws
    {
        let server = try await ChatServer([.init(body: Self.events(["{\"content\":\"Yes.\"}"]))])
        func text(_ text: String) -> [Transcript.Segment] { [.text(.init(content: text))] }
        let transcript = Transcript(entries: [
            .instructions(.init(segments: text("Be brief."), toolDefinitions: [])),
            .toolOutput(.init(id: "c0", toolName: "Weather", segments: text("Sunny"))), .prompt(.init(segments: text("One"))),
            .response(.init(assetIDs: [], segments: text("First."))), .response(.init(assetIDs: [], segments: text("Second."))),
            .prompt(.init(segments: text("Two"))),
        ])
        let session = LanguageModelSession(model: OpenAILanguageModel(name: "m", url: server.url), transcript: transcript)
        #expect(try await session.respond(to: "Three").content == "Yes.")
        let sent = try messages(server.requests.last)
        #expect(try sent.map { try $0.value(String.self, forProperty: "role") } == ["system", "user", "assistant", "user"])
        #expect(try sent[2].value(String.self, forProperty: "content") == "First.\nSecond.")
        #expect(try sent[3].value(String.self, forProperty: "content") == "Two\nThree")
    }

    @Test("a query of the address stays at its end", arguments: ["", "/", "?api-version=1&key=a%20b", "/?api-version=1"])
    func query(end: String) async throws {
        let server = try await ChatServer([.init(body: Self.events(["{\"content\":\"Yes.\"}"]))])
        let session = LanguageModelSession(model: OpenAILanguageModel(name: "m", url: server.url + end))
        #expect(try await session.respond(to: "Hi").content == "Yes.")
        #expect(server.targets == ["/v1/chat/completions" + end.drop { $0 == "/" }])
    }

    @Test("a response that the limit of tokens has cut says so") func length() async throws {
        let usage = "{\"prompt_tokens\":9,\"completion_tokens\":2}"
        func json(_ text: String) -> [String] { ["{\"content\":\"\(text.replacing("\"", with: "\\\""))\"}"] }
        let whole = "{\"name\":\"Oslo\",\"people\":7}"
        let call = "{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"Weather\",\"arguments\":\"{\\\"ci\"}}]}"
        let server = try await ChatServer([
            .init(body: Self.events(json("One two"), usage: usage, finish: "length")),
            .init(body: Self.events(json("One") + json(" two"), finish: "length")),
            .init(body: Self.events(json("One two"), usage: usage)),
            .init(body: Self.events(json(whole), usage: usage, finish: "length")),
            .init(body: Self.events(json(String(whole.dropLast(5))), usage: usage, finish: "length")),
            .init(body: Self.events([call], usage: usage, finish: "length")),
        ])
        func session() -> LanguageModelSession { self.session(server, tools: [Weather()]) }
        for reason in ["maximumTokens", "maximumTokens", "endOfTurn"] {
            let response = try await session().respond(to: "Hi")
            #expect(response.content == "One two" && response.usage.output.totalTokenCount == 2)
            #expect(try response.usage.metadata["stopReason"]?.value(String.self) == reason)
        }
        // A value may end exactly at the limit.
        #expect(try await session().respond(to: "A city", generating: City.self).content.people == 7)
        for isGuided in [true, false] {
            let session = session()
            let error = await #expect(throws: GeneratedContent.ParsingError.self) {
                if isGuided {
                    try await session.respond(to: "A city", generating: City.self)
                } else {
                    try await session.respond(to: "The weather?")
                }
            }
            #expect(error?.debugDescription.contains("length") == true)
            #expect(session.transcript.count == 1)
        }
    }

    @Test("[G] rate limit, refusal, context size, content filter, API key, timeout: each has its own error")
    func errors() async throws {
        func failure(_ answer: ChatServer.Answer, timeout: Duration = .seconds(10)) async throws -> any Error {
            let server = try await ChatServer([answer])
            do {
                try await session(server, timeout: timeout).respond(to: "Hi")
                return CancellationError()
            } catch { return error }
        }
        let limited = try await failure(
            .init(status: "429 Slow", headers: "Retry-After: 30\r\n", body: "{\"error\":{\"message\":\"slow\"}}"))
        guard case .rateLimited(let limit)? = limited as? LanguageModelError, let date = limit.resetDate else {
            Issue.record("\(limited)")
            return
        }
        #expect((20...31).contains(date.timeIntervalSinceNow))
        #expect({ if case .rateLimited? = limited as? LanguageModelSession.GenerationError { true } else { false } }())
        let refused = try await failure(.init(body: Self.events(["{\"refusal\":\"I will \"}", "{\"refusal\":\"not.\"}"])))
        guard case .refusal(let refusal, _)? = refused as? LanguageModelSession.GenerationError else {
            Issue.record("\(refused)")
            return
        }
        #expect(try await refusal.explanation.content == "I will not.")
        var explanation = ""
        for try await snapshot in refusal.explanationStream { explanation = snapshot.content }
        #expect(explanation == "I will not.")
        let full = try await failure(
            .init(
                status: "400 Bad",
                body:
                    "{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"This model's maximum context length is 4096 tokens, you have 5000.\"}}"
            ))
        guard case .contextSizeExceeded(let sizes)? = full as? LanguageModelError else {
            Issue.record("\(full)")
            return
        }
        #expect(sizes.contextSize == 4096 && sizes.tokenCount == 5000)
        // Servers name the error in different fields; the English text alone does not matter.
        for (body, size, count) in [
            (
                "{\"error\":{\"code\":400,\"type\":\"exceed_context_size_error\",\"message\":\"too long\",\"n_prompt_tokens\":9000,\"n_ctx\":8192}}",
                8192, 9000
            ),
            ("{\"object\":\"error\",\"message\":\"2048 and 2100\",\"param\":\"input_tokens\",\"code\":400}", 2048, 2100),
        ] {
            let error = try await failure(.init(status: "400 Bad", body: body))
            guard case .contextSizeExceeded(let sizes)? = error as? LanguageModelError else {
                Issue.record("\(error)")
                continue
            }
            #expect(sizes.contextSize == size && sizes.tokenCount == count)
        }
        let text = "{\"error\":{\"message\":\"The maximum context length is a fine subject.\"}}"
        #expect(
            try await failure(.init(status: "400 Bad", body: text)) as? OpenAILanguageModel.ServerError
                == .failed(status: 400, reason: "The maximum context length is a fine subject."))
        let filtered = try await failure(.init(body: Self.events(["{\"content\":\"x\"}"], finish: "content_filter")))
        #expect({ if case .guardrailViolation? = filtered as? LanguageModelError { true } else { false } }())
        let slow = try await failure(.init(body: "", hangs: true), timeout: .milliseconds(300))
        #expect({ if case .timeout? = slow as? LanguageModelError { true } else { false } }(), "\(slow)")
        typealias ServerError = OpenAILanguageModel.ServerError
        #expect(
            try await failure(.init(status: "401 No", body: "{\"error\":\"bad key\"}")) as? ServerError
                == .unauthorized(reason: "bad key"))
        #expect(try await failure(.init(body: "data: nonsense\n\n")) is ServerError)
        #expect(try await failure(.init(body: "data: {\"choices\":[{\"delta\":{\"content\":\"cut\"}}]}\n\n")) is ServerError)
        let nobody = LanguageModelSession(model: OpenAILanguageModel(name: "m", url: "http://127.0.0.1:1/v1"))
        await #expect(throws: ServerError.self) { try await nobody.respond(to: "Hi") }
        let wrong = LanguageModelSession(model: OpenAILanguageModel(name: "m", url: "nowhere"))
        await #expect(throws: ServerError.invalidURL("nowhere")) { try await wrong.respond(to: "Hi") }
    }

    @Test("Private Cloud Compute is unavailable until a server replaces it") func privateCloud() async throws {
        let model = PrivateCloudComputeLanguageModel()
        #expect(model.availability == .unavailable(.deviceNotEligible))
        await #expect(throws: PrivateCloudComputeLanguageModel.Error.self) {
            try await LanguageModelSession(model: model).respond(to: "Hi")
        }
        let server = try await ChatServer([.init(body: Self.events(["{\"content\":\"From afar.\"}"]))])
        OpenAILanguageModel(name: "m", url: server.url).answerForPrivateCloudCompute(contextSize: 1000)
        #expect(model.isAvailable)
        #expect(try await model.contextSize == 1000)
        #expect(try await LanguageModelSession(model: model).respond(to: "Hi").content == "From afar.")
    }

    @Test("the sessions of a model do not wait for each other", .timeLimit(.minutes(1))) func manySessions() async throws {
        let count = 20
        let server = try await ChatServer(Array(repeating: .init(body: "", hangs: true), count: count))
        let model = OpenAILanguageModel(name: "m", url: server.url)
        let tasks = (1...count).map { number in
            Task { try await LanguageModelSession(model: model).respond(to: "Number \(number)").content }
        }
        await eventually { server.requests.count == count }
        for task in tasks { task.cancel() }
        for task in tasks { _ = await task.result }
    }

    @Test("cancelling closes the connection and frees the session", .timeLimit(.minutes(1))) func cancellation() async throws {
        let server = try await ChatServer([
            .init(body: "data: {\"choices\":[{\"delta\":{\"content\":\"One \"}}]}\n\n", hangs: true)
        ])
        let session = session(server)
        let reading = Task {
            for try await snapshot in session.streamResponse(to: "Hi") where !snapshot.content.isEmpty { return }
        }
        try await reading.value
        // If the connection stayed open, this would not end.
        await eventually { !session.isResponding }
        #expect(session.transcript.contains { if case .prompt = $0 { true } else { false } })
    }
}
