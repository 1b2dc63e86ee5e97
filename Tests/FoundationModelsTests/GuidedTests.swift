import Foundation
import FoundationModelsGGUF
import Grammar
import Inference
import InstalledModels
import TestSupport
import Testing

@testable import FoundationModels

/// Guided generation with fifty types. The tiny model has random weights, so its responses cover many different
/// outputs.
struct GuidedTests {
    /// Generates one value and checks that it satisfies its guides.
    private func check<Value: Checked>(
        _ type: Value.Type, _ model: some LanguageModel, seed: UInt64, limit: Int?
    ) async throws {
        let session = LanguageModelSession(model: model)
        let options = GenerationOptions(
            samplingMode: .random(probabilityThreshold: 1, seed: seed), temperature: 2, maximumResponseTokens: limit)
        let response: LanguageModelSession.Response<Value>
        do {
            response = try await session.respond(to: "Go", generating: type, includeSchemaInPrompt: false, options: options)
        } catch LanguageModelError.contextSizeExceeded where limit == nil && !Guided.closed.contains(where: { $0 == type }) {
            return  // a text or an array that fills the window is an error, not a shorter value
        }
        #expect(response.content.isValid, "\(type), seed \(seed): \(response.rawContent.jsonString)")
        #expect(response.rawContent.isComplete)
        if let limit { #expect(response.usage.output.totalTokenCount <= limit) }
        // Only free texts and open arrays may be much longer than the shortest value.
        if Guided.closed.contains(where: { $0 == type }) {
            let bytes = TokenVocabulary(texts: (UInt8.min...UInt8.max).map { [$0] } + [nil], endTokens: [256])
            let shortest = try Grammar(try type.generationSchema.grammarSource(), vocabulary: bytes).matcher().completionLength
            #expect(response.rawContent.jsonString.utf8.count <= 10 * shortest, "\(type): \(response.rawContent.jsonString)")
        }
        // The generated content of the value can be converted back to the type.
        let again = try Value(response.content.generatedContent)
        #expect(again.generatedContent.jsonString == response.content.generatedContent.jsonString)
        _ = response.content.asPartiallyGenerated()
    }

    @Test("[B2] 1,000 values of 50 types at temperature 2 satisfy all guides") func thousand() async throws {
        var tiny = TinyModel()
        tiny.context = 512
        let file = try tiny.file()
        let model = GGUFLanguageModel(url: URL(fileURLWithPath: file.path))
        // Half of them without a limit: then a value that fills the window is an error.
        for seed in 0..<20 {
            for type in Guided.all { try await check(type, model, seed: UInt64(seed), limit: seed % 2 == 0 ? 300 : nil) }
        }
    }

    /// `FM_VALUES=1000` checks as many values as the test with the random model, which takes minutes, and `FM_MODEL` chooses the model.
    @Test("[B2] values of a real model satisfy all guides, with a limit of tokens and without") func realModel() async throws {
        let count = ProcessInfo.processInfo.environment["FM_VALUES"].flatMap { Int($0) } ?? Guided.all.count
        let model = GGUFLanguageModel(url: URL(fileURLWithPath: ModelStore.defaultModelPath), contextSize: 1024)
        // Eight at once share each pass through the weights.
        await withTaskGroup(of: Void.self) { group in
            for seed in 0..<count {
                if seed >= 8 { await group.next() }
                group.addTask { await self.checkReal(model, seed: seed) }
            }
        }
    }

    private func checkReal(_ model: GGUFLanguageModel, seed: Int) async {
        let type = Guided.all[seed % Guided.all.count]
        // Each type with a limit in every second of its rounds, and half of the types in each round.
        let isLimited = (seed + seed / Guided.all.count) % 2 == 0
        do { try await check(type, model, seed: UInt64(seed), limit: isLimited ? 60 : nil) } catch {
            Issue.record("\(type) with seed \(seed): \(error)")
        }
    }

    @Test("[B9] a token limit that is too small for any value is an error") func tooShort() async throws {
        let session = LanguageModelSession()
        await #expect(throws: GeneratedContent.ParsingError.self) {
            try await session.respond(to: "Go", generating: Guided.S10.self, options: GenerationOptions(maximumResponseTokens: 3))
        }
        do {
            try await session.respond(to: "Go", generating: Guided.S10.self, options: GenerationOptions(maximumResponseTokens: 3))
        } catch LanguageModelSession.GenerationError.decodingFailure(let context) {
            #expect(context.debugDescription.contains("tokens"))
        }
        #expect(session.transcript.isEmpty)
    }

    @Test("[B8] without the schema in the prompt its tokens are saved, and the value still conforms to it")
    func schemaInPrompt() async throws {
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 100)
        let with = try await LanguageModelSession().respond(to: "Go", generating: Guided.T4.self, options: options)
        let without = try await LanguageModelSession().respond(
            to: "Go", generating: Guided.T4.self, includeSchemaInPrompt: false, options: options)
        #expect(without.content.isValid)
        let saved = with.usage.input.totalTokenCount - without.usage.input.totalTokenCount
        #expect(saved == (try await SystemLanguageModel.default.tokenCount(for: Guided.T4.generationSchema)))
        #expect(saved > 10)
    }

    @Test("[B7] snapshots grow in order, elements keep their identity, the last snapshot is the value")
    func streaming() async throws {
        let session = LanguageModelSession()
        let stream = session.streamResponse(
            to: "Three dice", generating: Guided.L6.self, options: GenerationOptions(samplingMode: .greedy))
        var ids: [GenerationID] = []
        var snapshots = 0
        var last: Guided.L6.PartiallyGenerated?
        for try await snapshot in stream {
            snapshots += 1
            let now = (snapshot.content.items ?? []).map(\.id)
            #expect(now.count >= ids.count && Array(now.prefix(ids.count)) == ids)
            ids = now
            last = snapshot.content
            if snapshots < 3 { #expect(!snapshot.rawContent.isComplete) }
        }
        let value = try await stream.collect().content
        #expect(last?.items?.map(\.die) == value.items.map(\.die))
        #expect(snapshots > 1)
    }

    @Test("[B1] numbers, lists and strings can be generated directly") func primitives() async throws {
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 60)
        _ = try await LanguageModelSession().respond(to: "What is 3+4?", generating: Int.self, options: options)
        _ = try await LanguageModelSession().respond(to: "Is water wet?", generating: Bool.self, options: options)
        _ = try await LanguageModelSession().respond(to: "Name colours", generating: [String].self, options: options)
        _ = try await LanguageModelSession().respond(to: "A price", generating: Decimal.self, options: options)
        let text = try await LanguageModelSession().respond(to: "Hi", generating: String.self, options: options)
        #expect(!text.content.hasPrefix("\""))
    }

    @Generable struct Unenforceable {
        @Guide(.pattern(/([ab])\1/)) var text: String
    }

    @Test("[G] a guide that cannot be enforced is an error before anything is generated") func unsupported() async throws {
        let session = LanguageModelSession()
        do {
            try await session.respond(to: "Go", generating: Unenforceable.self)
            Issue.record("the guide was accepted")
        } catch LanguageModelSession.GenerationError.unsupportedGuide(let context) {
            #expect(!context.debugDescription.isEmpty)
        }
        await #expect(throws: LanguageModelError.self) { try await session.respond(to: "Go", generating: Unenforceable.self) }
        #expect(session.transcript.isEmpty)
    }
}
