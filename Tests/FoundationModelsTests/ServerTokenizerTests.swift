import Foundation
import FoundationModels
import FoundationModelsOpenAI
import Testing
import TokenCounts

/// How tokens are counted for models on servers.
struct ServerTokenizerTests {
    private typealias Answer = ChatServer.Answer

    private static let missing = Answer(status: "404 Not Found", body: "{\"detail\":\"Not Found\"}")

    private static func text(_ text: String) -> [Transcript.Segment] { [.text(.init(content: text))] }

    private let prompt = [Transcript.Entry.prompt(.init(segments: text("Hello there")))]

    private func withTools() throws -> [Transcript.Entry] {
        let schema = try GenerationSchema(root: DynamicGenerationSchema(name: "Arguments", properties: []), dependencies: [])
        let tool = Transcript.ToolDefinition(name: "clock", description: "Tells the time.", parameters: schema)
        return [.instructions(.init(segments: Self.text("Be brief."), toolDefinitions: [tool]))] + prompt
    }

    /// The roles of the messages in a request.
    private func roles(_ request: String) throws -> [String] {
        let messages = try GeneratedContent(json: request).value([GeneratedContent].self, forProperty: "messages")
        return try messages.map { try $0.value(String.self, forProperty: "role") }
    }

    @Test("vLLM counts messages", arguments: ["", "?api-version=1"]) func messages(query: String) async throws {
        let count = Answer(body: "{\"count\":17,\"max_model_len\":4096,\"tokens\":[1,2]}")
        let server = try await ChatServer([count, count])
        let model = OpenAILanguageModel(name: "m", url: server.url + query, contextSize: 8192)
        #expect(model.contextSize == 8192)
        #expect(try await model.tokenCount(for: prompt) == 17)
        // A prompt that servers do not continue, for templates that demand one.
        let response = Transcript.Entry.response(.init(assetIDs: [], segments: Self.text("Hello")))
        #expect(try await model.tokenCount(for: prompt + [response]) == 17)
        #expect(server.targets == ["/tokenize" + query, "/tokenize" + query])
        #expect(try roles(server.requests[0]) == ["user"] && roles(server.requests[1]) == ["user", "assistant", "user"])
    }

    @Test("versions of vLLM that leave out the tools count too little, so that the tools are estimated") func messagesWithTools()
        async throws
    {
        func count(_ number: Int) -> Answer { Answer(body: "{\"count\":\(number)}") }
        let server = try await ChatServer([count(100), count(40), count(40), count(40)])
        let model = OpenAILanguageModel(name: "m", url: server.url)
        let entries = try withTools()
        #expect(try await model.tokenCount(for: entries) == 100)
        #expect(try await model.tokenCount(for: entries) == 40 + RequestTexts.estimate(ofToolsIn: entries))
        let sizes = try server.requests.map { try GeneratedContent(json: $0) }.map { request -> Bool in
            guard case .structure(let members, _) = request.kind else { return false }
            return members["tools"] != nil
        }
        #expect(sizes == [true, false, true, false])
    }

    @Test("llama-server writes the prompt and divides it into tokens") func promptText() async throws {
        let (prompt, tokens) = (Answer(body: "{\"prompt\":\"<s>Hello there\"}"), Answer(body: "{\"tokens\":[1,15,27]}"))
        // Without a text to divide, it has no tokens.
        let server = try await ChatServer([Answer(body: "{\"tokens\":[]}"), prompt, tokens, prompt, tokens])
        let model = OpenAILanguageModel(name: "m", url: server.url)
        #expect(try await model.tokenCount(for: self.prompt) == 3)
        #expect(try await model.tokenCount(for: withTools()) == 3)
        #expect(
            server.targets == ["/tokenize", "/apply-template", "/tokenize", "/apply-template", "/tokenize"])
        let request = try GeneratedContent(json: server.requests[2])
        #expect(try request.value(String.self, forProperty: "content") == "<s>Hello there")
        #expect(server.requests[3].contains("\"clock\""))
    }

    @Test("llama-cpp-python counts the texts, and what is around them is estimated") func texts() async throws {
        let count = Answer(body: "{\"count\":2}")
        let server = try await ChatServer([Self.missing, Self.missing, count, count])
        let model = OpenAILanguageModel(name: "m", url: server.url)
        for _ in 1...2 { #expect(try await model.tokenCount(for: prompt) == 2 + RequestTexts(prompt).overhead) }
        #expect(
            server.targets == ["/tokenize", "/apply-template", "/extras/tokenize/count", "/extras/tokenize/count"])
        #expect(server.requests[3].contains("\"Hello there\""))
    }

    @Test(
        "other servers are asked once, and tokens are estimated",
        arguments: ["404 Not Found", "401 Unauthorized", "403 Forbidden"])
    func estimate(status: String) async throws {
        let missing = Answer(status: status, body: "{\"detail\":\"No.\"}")
        let server = try await ChatServer([missing, missing, missing])
        let model = OpenAILanguageModel(name: "m", url: server.url)
        for _ in 1...2 { #expect(try await model.tokenCount(for: prompt) == TokenEstimate.count(prompt)) }
        #expect(server.targets.count == 3)
        // Reasoning is not sent.
        let reasoning = Transcript.Entry.reasoning(.init(segments: Self.text("A greeting.")))
        #expect(try await model.tokenCount(for: prompt + [reasoning]) == TokenEstimate.count(prompt))
        let nobody = OpenAILanguageModel(name: "m", url: "http://127.0.0.1:1/v1")
        #expect(try await nobody.tokenCount(for: prompt) == TokenEstimate.count(prompt))
    }

    @Test("a server that is not ready is asked again") func loading() async throws {
        let busy = Answer(status: "503 Service Unavailable", body: "{\"error\":{\"message\":\"Loading model\"}}")
        let server = try await ChatServer([busy, Self.missing, Self.missing, Answer(body: "{\"count\":5}")])
        let model = OpenAILanguageModel(name: "m", url: server.url)
        #expect(try await model.tokenCount(for: prompt) == TokenEstimate.count(prompt))
        #expect(try await model.tokenCount(for: prompt) == 5)
    }

    @Test(
        "the small model reads no more tokens of a request than estimated",
        arguments: ["en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "ro", "bg", "ru"])
    func estimateOfLanguages(language: String) async throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Languages/sentences.tsv")
        let sentences = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            .filter { $0.hasPrefix(language + "\t") }.map { $0.dropFirst(language.count + 1) }
        #expect(sentences.count >= 10)
        for start in stride(from: 0, to: sentences.count - 9, by: 10) {
            let text = sentences[start..<start + 10].joined(separator: "\n")
            let entries = [
                Transcript.Entry.instructions(.init(segments: Self.text("Be brief."), toolDefinitions: [])),
                .prompt(.init(segments: Self.text(text))),
            ]
            #expect(try await SystemLanguageModel.default.tokenCount(for: entries) <= TokenEstimate.count(entries))
        }
    }
}
