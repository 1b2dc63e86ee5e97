import FoundationModels
import TokenCounts
import FoundationModelsTesting
import Synchronization
import Testing

@testable import ContextKit

/// What a conversation keeps as an answer, and in which order it answers.
struct AnswerTests {
    @Generable struct Article { var title: String }

    /// A model that writes a text and may then throw an error.
    private struct Writer: TokenCounting {
        final class Log: Sendable { let hasCountedSchema = Mutex(false) }

        var text: String
        var error: LanguageModelError?
        let log = Log()

        var contextSize: Int { 1_000 }
        var capabilities: LanguageModelCapabilities { LanguageModelCapabilities([.guidedGeneration]) }
        var executorConfiguration: Executor.Configuration { .init() }

        nonisolated(nonsending) func tokenCount(for transcriptEntries: some Collection<Transcript.Entry>) async throws -> Int {
            for case .prompt(let prompt) in transcriptEntries where prompt.responseFormat != nil {
                log.hasCountedSchema.withLock { $0 = true }
            }
            return StubModel.count(transcriptEntries)
        }

        struct Executor: LanguageModelExecutor {
            typealias Model = Writer
            struct Configuration: Hashable, Sendable {}
            init(configuration: Configuration) {}

            nonisolated(nonsending) func respond(
                to request: LanguageModelExecutorGenerationRequest, model: Writer,
                streamingInto channel: LanguageModelExecutorGenerationChannel
            ) async throws {
                await channel.send(.response(action: .appendText(model.text, tokenCount: 1)))
                if let error = model.error { throw error }
            }
        }
    }

    private static let refusal = LanguageModelError.refusal(.init(explanation: "I'm sorry.", debugDescription: "declined"))

    @Test(
        "[D4] a refusal and a value that is incomplete or of another type are neither in the archive nor in the context",
        arguments: [
            Writer(text: #"{"title": "I'm sorry, Halcyon"}"#, error: refusal), Writer(text: #"{"title": "Halcyon"#),
            Writer(text: #"{"name": "Halcyon"}"#), Writer(text: "Halcyon"),
        ])
    private func noAnswers(model: Writer) async throws {
        let archive = try ConversationArchive()
        let conversation = try await Conversation(model: model, archive: archive, id: "a")
        await #expect(throws: (any Error).self) {
            try await conversation.respond(to: "Write about Halcyon.", generating: Article.self)
        }
        #expect(try archive.turns(of: "a").isEmpty)
        #expect(await conversation.transcript.isEmpty)
        #expect(try archive.store.turns(with: ["halcyon"], in: "a", count: 5, limit: 5) == [[]])
    }

    @Test("[D4] a refusal in words is kept only if no error says that it is one") func refusalsInWords() async throws {
        for error in [Self.refusal, nil] {
            let conversation = try await Conversation(model: Writer(text: "I'm sorry.", error: error))
            _ = try? await conversation.respond(to: "Write.")  // only what is kept matters
            #expect(try conversation.archive.turns(of: conversation.id).map(\.response) == (error == nil ? ["I'm sorry."] : []))
        }
    }

    @Test("[D4] the outputs of tools are kept without the broken value that followed them") func outputsOfTools() async throws {
        let call = ScriptedLanguageModel.Step.toolCalls([.init(name: "act", arguments: GeneratedContent(properties: [:]))])
        let model = Counting(base: ScriptedLanguageModel([call, .text(#"{"title": "I'm"#)]))
        let tool = ConcurrencyTests.Action { "paid" }
        let conversation = try await Conversation(model: model, tools: [tool])
        await #expect(throws: (any Error).self) { try await conversation.respond(to: "Pay.", generating: Article.self) }
        let turn = try #require(try conversation.archive.turns(of: conversation.id).first)
        #expect(turn.response.isEmpty && turn.text.contains("paid") && turn.entries.count == 3)
    }

    @Test("[D4] text is asked for without a schema, and none is counted for it") func textWithoutSchema() async throws {
        let text = Writer(text: "Fine.")
        #expect(try await Conversation(model: text).respond(to: "How are you?", generating: String.self).content == "Fine.")
        #expect(!text.log.hasCountedSchema.withLock { $0 })
        let value = Writer(text: #"{"title": "A"}"#)
        #expect(try await Conversation(model: value).respond(to: "A title.", generating: Article.self).content.title == "A")
        #expect(value.log.hasCountedSchema.withLock { $0 })
    }

    @Test("[A4] prompts are answered in the order of the calls, also those of streams") func order() async throws {
        let conversation = try await Conversation(model: StubModel(contextSize: 10_000))
        let prompts = (0..<60).map { "Prompt \($0)." }
        let streams = prompts.dropLast().map { conversation.streamResponse(to: $0) }
        try await conversation.respond(to: prompts[59])
        for stream in streams { for try await _ in stream {} }
        #expect(try conversation.archive.turns(of: conversation.id).map(\.prompt) == prompts)
    }
}
