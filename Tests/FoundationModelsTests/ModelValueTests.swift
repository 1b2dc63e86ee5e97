import Foundation
import FoundationModelsGGUF
import Inference
import InstalledModels
import TestSupport
import Testing

@testable import FoundationModels

/// A model is a value: its file, its adapter and its settings. Requests with other values at the same time change nothing.
@Suite(.timeLimit(.minutes(2))) struct ModelValueTests {
    /// Two models, and two adapters that fit both.
    private struct Files {
        let models: [TemporaryFile]
        let adapters: [TemporaryFile]

        init() throws {
            models = try [1, 2].map { (seed: UInt64) in
                var tiny = TinyModel()
                tiny.seed = seed
                return try tiny.file()
            }
            adapters = try [3, 4].map { try TemporaryFile(TinyModel().adapter(seed: $0).bytes()) }
        }

        /// The paths of each model, alone and with each adapter.
        var pairs: [(model: String, adapter: String?)] {
            models.flatMap { model in ([nil] + adapters.map(\.path)).map { (model.path, $0) } }
        }
    }

    private static func file(_ model: String, _ adapter: String?) -> GGUFLanguageModel {
        GGUFLanguageModel(
            url: URL(filePath: model), adapter: adapter.map { URL(filePath: $0) }, checksText: false)
    }

    private static let prompts = ["a", "the thing", "Hello, world", "in 1, 2, 3"]

    private static func answer(_ prompt: String, _ model: any LanguageModel) async throws -> String {
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 6)
        return try await LanguageModelSession(model: model).respond(to: prompt, options: options).content
    }

    @Test("1,000 requests at once, with two models and two adapters, are each answered by their own")
    func requestsAtOnce() async throws {
        let files = try Files()
        let pairs = files.pairs
        var alone: [[String]] = []
        for pair in pairs {
            var answers: [String] = []
            for prompt in Self.prompts { answers.append(try await Self.answer(prompt, Self.file(pair.model, pair.adapter))) }
            alone.append(answers)
        }
        #expect(Set(alone).count == pairs.count)
        let expected = alone
        let wrong = try await withThrowingTaskGroup(of: Int?.self) { group in
            for number in 0..<1_000 {
                let (choice, prompt) = (number % pairs.count, number / pairs.count % Self.prompts.count)
                let pair = pairs[choice]
                // Both kinds of values run on the same weights.
                let model: any LanguageModel =
                    number % 5 == 0
                    ? SystemLanguageModel(
                        file: pair.model, adapter: pair.adapter, guardrails: .permissiveContentTransformations)
                    : Self.file(pair.model, pair.adapter)
                group.addTask {
                    try await Self.answer(Self.prompts[prompt], model) == expected[choice][prompt] ? nil : number
                }
            }
            return try await group.compactMap(\.self).reduce(into: []) { $0.append($1) }
        }
        #expect(wrong == [])
    }

    @Test("two adapters of one file are two models, which share the weights") func equality() async throws {
        let files = try Files()
        let models = files.pairs.map { Self.file($0.model, $0.adapter) }
        #expect(Set(models.map(\.executorConfiguration)).count == models.count)
        #expect(
            Set((files.pairs + files.pairs).map { Self.file($0.model, $0.adapter).executorConfiguration }).count == models.count)
        let alone = try await models[0].localModel.lease()
        for model in models[1...2] { #expect(try await model.localModel.lease().model === alone.model) }
        #expect(try await models[3].localModel.lease().model !== alone.model)
    }

    @Test("an adapter that cannot be used is an error of the first request that names the adapter") func unusableAdapter()
        async throws
    {
        let model = try TinyModel().file()
        var other = TinyModel()
        other.layers = 3
        let adapters = [
            try TemporaryFile(TinyModel().adapter(seed: 3, architecture: "gemma").bytes()),
            try TemporaryFile(other.adapter(seed: 3).bytes()), try TemporaryFile(Array("no adapter".utf8), suffix: ".fmadapter"),
        ]
        for path in adapters.map(\.path) + ["/nowhere/a.fmadapter"] {
            let value = Self.file(model.path, path)
            #expect(value.contextSize == 512)
            await #expect {
                try await Self.answer("a", value)
            } throws: { error in
                guard case SystemLanguageModel.Error.assetsUnavailable(let details) = error else { return false }
                return details.debugDescription.contains(path) && details.debugDescription.contains(model.path)
            }
        }
        #expect(try await !Self.answer("a", Self.file(model.path, nil)).isEmpty)
    }

    @Test("a system model with a file has settings of its own, and the default keeps those of the machine") func settings() throws
    {
        let files = try Files()
        let (model, adapter) = (files.models[0].path, files.adapters[0].path)
        let value = SystemLanguageModel(
            file: model, adapter: adapter, contextSize: 128, cacheBits: 8, guardrails: .permissiveContentTransformations)
        #expect(value.contextSize == 128 && value.isAvailable && value.variant.displayName == "tiny")
        #expect(value.localModel.path == model && value.localModel.adapter == adapter && !value.localModel.checksText)
        #expect(value.localModel.cacheFormat == .int8)
        #expect(SystemLanguageModel(file: model, cacheBits: 16).localModel.cacheFormat == .binary16)
        #expect(SystemLanguageModel(file: model).executorConfiguration != value.executorConfiguration)
        #expect(SystemLanguageModel(file: model).executorConfiguration == SystemLanguageModel(file: model).executorConfiguration)
        let standard = SystemLanguageModel.default.localModel
        #expect(standard.path == ModelStore.defaultModelPath && standard.adapter == nil && standard.maximumContext == 4_096)
    }
}
