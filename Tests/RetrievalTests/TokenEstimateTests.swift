import Foundation
import FoundationModels
import FoundationModelsTesting
import Synchronization
import Testing
import TokenCounts

@testable import Retrieval

/// A model of an app's own that counts words, four more for each entry, and how often it was asked.
private struct WordCounter: TokenCounting {
    final class Log: Sendable {
        let requests = Mutex(0)
    }

    let script = ScriptedLanguageModel([])
    let log = Log()
    var contextSize: Int { 1_000 }
    var capabilities: LanguageModelCapabilities { script.capabilities }
    var executorConfiguration: Executor.Configuration { .init() }

    nonisolated(nonsending) func tokenCount(for transcriptEntries: some Collection<Transcript.Entry>) async throws -> Int {
        log.requests.withLock { $0 += 1 }
        return transcriptEntries.reduce(0) { count, entry in
            guard case .prompt(let prompt) = entry else { return count }
            return count + 4
                + prompt.segments.map(\.description).joined(separator: " ").split(whereSeparator: \.isWhitespace).count
        }
    }

    struct Executor: LanguageModelExecutor {
        typealias Model = WordCounter
        struct Configuration: Hashable, Sendable {}

        init(configuration: Configuration) {}

        nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: WordCounter,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws { await channel.send(.response(action: .appendText("Yes.", tokenCount: 1))) }
    }
}

/// A model that does not count tokens.
private struct Uncounted: LanguageModel {
    var capabilities: LanguageModelCapabilities { .init([.guidedGeneration, .toolCalling]) }
    var executorConfiguration: Executor.Configuration { .init() }

    struct Executor: LanguageModelExecutor {
        typealias Model = Uncounted
        struct Configuration: Hashable, Sendable {}

        init(configuration: Configuration) {}

        nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: Uncounted,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws { await channel.send(.response(action: .appendText("Yes.", tokenCount: 1))) }
    }
}

struct TokenEstimateTests {
    private static func text(_ text: String) -> [Transcript.Segment] { [.text(.init(content: text))] }

    @Test("a tool counts with the model that it is given, and estimates otherwise")
    func toolCountsTokens() async throws {
        let folder = try TemporaryFolder()
        let index = try await SearchIndex(url: folder.url.appendingPathComponent("test.index"), model: WordEmbedder())
        try await index.add(ExtractedText("The cat sleeps on the sofa.", format: .plain), path: "cat.txt")
        let arguments = try SearchTool.Arguments(GeneratedContent(properties: ["query": "cat"]))
        let cost = TokenEstimate.count("[99] cat.txt:1\nThe cat sleeps on the sofa.\n\n")
        // A scripted model counts the same, whatever is around the text.
        let scripted = ScriptedLanguageModel([])
        func tools(_ tokens: Int) -> [SearchTool] {
            [
                SearchTool(index: index, tokens: tokens), SearchTool(index: index, tokens: tokens, model: Uncounted()),
                SearchTool(index: index, tokens: tokens, model: scripted),
                SearchTool(index: index, tokens: tokens, model: RecordingLanguageModel(scripted)),
            ]
        }
        for tool in tools(cost) { #expect(try await tool.call(arguments: arguments).contains("sofa")) }
        for tool in tools(cost - 1) { #expect(try await tool.call(arguments: arguments) == "Nothing was found.") }
        let bytes = SearchTool(index: index, tokens: cost, count: { $0.utf8.count })
        #expect(try await bytes.call(arguments: arguments) == "Nothing was found.")
        // A heading of two words and six words of text.
        let words = WordCounter()
        #expect(try await SearchTool(index: index, tokens: 8, model: words).call(arguments: arguments).contains("sofa"))
        #expect(try await SearchTool(index: index, tokens: 7, model: words).call(arguments: arguments) == "Nothing was found.")
        let context = try await RetrievedContext(for: "cat", from: index, tokens: cost)
        #expect(context.citations.count == 1 && context.tokenCount == TokenEstimate.count(context.text))
        let answer = try await CitedAnswer(question: "Who?", from: index, tokens: cost - 1, model: scripted)
        #expect(!answer.isInDocuments)
    }

    @Test("what a template puts around texts is counted once") func template() async throws {
        let model = WordCounter()
        let tokens = TextTokens(model)
        var counts: [Int] = []
        for text in ["One two three.", "One", ""] { counts.append(try await tokens.count(text)) }
        #expect(counts == [3, 1, 0])
        #expect(model.log.requests.withLock { $0 } == 4 && tokens.contextSize == 1_000)
        #expect(TextTokens(Uncounted()).contextSize == nil)
    }

    @Test("tokens are estimated by script") func estimate() {
        #expect(TokenEstimate.count("") == 0 && TokenEstimate.count("Hello, world 12") == 8)
        // A token for four bytes would be 6.
        #expect(TokenEstimate.count("猫在沙发上睡觉。") == 12 && TokenEstimate.count("ソファーの猫") == 9)
        #expect(TokenEstimate.count("é") == 2 && TokenEstimate.count("🙂") == 3)
    }

    @Test("estimates of requests include roles, tools, calls, schemas and pictures") func requests() throws {
        let prompt = Transcript.Entry.prompt(.init(segments: Self.text("Hello, world 12")))
        let plain = TokenEstimate.count([prompt])
        #expect(plain > 8 && TokenEstimate.count([prompt, prompt]) > plain + 8)
        let schema = try GenerationSchema(
            root: DynamicGenerationSchema(
                name: "City", properties: [.init(name: "name", schema: DynamicGenerationSchema(type: String.self))]),
            dependencies: [])
        let size = TokenEstimate.count(schema.debugDescription)
        let guided = Transcript.Entry.prompt(
            .init(segments: Self.text("Hello, world 12"), responseFormat: .init(schema: schema)))
        #expect(TokenEstimate.count([guided]) >= plain + size)
        let tool = Transcript.ToolDefinition(name: "find", description: "Finds a city.", parameters: schema)
        let instructions = Transcript.Entry.instructions(.init(segments: [], toolDefinitions: [tool]))
        #expect(TokenEstimate.count([instructions, prompt]) >= plain + size + 300)
        let call = Transcript.Entry.toolCalls(
            .init([.init(id: "1", toolName: "find", arguments: GeneratedContent(properties: ["name": "Oslo"]))]))
        #expect(TokenEstimate.count([prompt, call]) >= plain + TokenEstimate.count("{\"name\": \"Oslo\"}"))
        let picture = Transcript.Entry.prompt(
            .init(segments: [.attachment(.init(content: .image(.init(imageURL: URL(filePath: "/a.png")))))]))
        #expect(TokenEstimate.count([picture]) > 1_600)
    }
}
