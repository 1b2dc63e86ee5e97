import ContextKit
import Foundation
import FoundationModels
import FoundationModelsTesting
import Safety
import Synchronization
import Testing
import TokenCounts

/// Guarded and recorded models are planned for like those that they wrap.
struct GuardedTokenTests {
    private func prompt(_ text: String) -> [Transcript.Entry] { [.prompt(.init(segments: [.text(.init(content: text))]))] }

    @Test("a guarded model counts what the model behind it reads, with other text in place of terms") func counts() async throws {
        let replacement = "an unnamed project of ours"
        let store = DenyListStore([
            try DenyList(terms: ["falcon"], action: .replace(with: replacement)), try DenyList(name: "rejected", terms: ["darn"]),
        ])
        let base = ScriptedLanguageModel([], contextSize: 700)
        let model = RecordingLanguageModel(GuardedLanguageModel(base, denyLists: store))
        #expect(model.contextSize == 700)
        let count = try await model.tokenCount(for: prompt("What is Falcon, darn?"))
        #expect(try await count == base.tokenCount(for: prompt("What is \(replacement), darn?")))
        // Responses are not replaced.
        let response = [Transcript.Entry.response(.init(assetIDs: [], segments: [.text(.init(content: "Falcon"))]))]
        #expect(try await model.tokenCount(for: response) == base.tokenCount(for: response))
    }

    /// A model that keeps what it is to prepare for.
    private final class Prepared: LanguageModel {
        let texts = Mutex<[String]>([])
        var capabilities: LanguageModelCapabilities { .init([]) }
        var executorConfiguration: Executor.Configuration { .init() }

        struct Executor: LanguageModelExecutor {
            typealias Model = Prepared
            struct Configuration: Hashable, Sendable {}

            init(configuration: Configuration) {}

            func prewarm(model: Prepared, transcript: Transcript) {
                model.texts.withLock { $0 = transcript.map(\.description) }
            }

            nonisolated(nonsending) func respond(
                to request: LanguageModelExecutorGenerationRequest, model: Prepared,
                streamingInto channel: LanguageModelExecutorGenerationChannel
            ) async throws {}
        }
    }

    @Test("a guarded model is prepared for what it will read, with other text in place of terms") func prewarm() throws {
        let store = DenyListStore([try DenyList(terms: ["falcon"], action: .replace(with: "a project"))])
        let base = Prepared()
        LanguageModelSession(model: GuardedLanguageModel(base, denyLists: store)).prewarm(promptPrefix: Prompt("What is Falcon?"))
        #expect(base.texts.withLock { $0 } == ["(Prompt) What is a project?"])
    }

    @Test("a KV cache can be saved with the models that have one, guarded or recorded") func caches() {
        let (system, scripted) = (SystemLanguageModel.default, ScriptedLanguageModel([]))
        let models: [any LanguageModel] = [
            system, GuardedLanguageModel(system), RecordingLanguageModel(system),
            scripted, GuardedLanguageModel(scripted), RecordingLanguageModel(scripted),
        ]
        #expect(models.map { $0 is any KVCacheSaving } == [true, true, true, false, false, false])
        #expect(models.allSatisfy { $0 is any TokenCounting })
    }

    @Test("a conversation with a guarded scripted model stays within its window, and rejects terms") func conversation()
        async throws
    {
        let store = DenyListStore([try DenyList(name: "projects", terms: ["falcon"])])
        let story = Array(repeating: "The old mill at the river was built of grey stone by three brothers.", count: 5)
            .joined(separator: " ")
        let script = ScriptedLanguageModel(Array(repeating: .text(story), count: 12) + [.text("Falcon.")], contextSize: 1_000)
        let model = GuardedLanguageModel(script, denyLists: store)
        let conversation = try await Conversation(model: model, instructions: "Tell stories.")
        for number in 1...12 {
            #expect(try await conversation.respond(to: "Tell story \(number).").content == story)
            #expect(try await model.tokenCount(for: conversation.transcript) <= 1_000)
        }
        #expect(await conversation.transcript.count < 24)
        let violation = try await DenyListTests.violation { _ = try await conversation.respond(to: "What is the project?") }
        #expect(violation?.metadata["list"] as? String == "projects")
    }
}
