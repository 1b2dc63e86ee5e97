import Foundation
import FoundationModelsGGUF
import Inference
import InstalledModels
import TestSupport
import Testing

@testable import FoundationModels

/// Adapters that lie beside a model's file, and are used without being named.
@Suite(.timeLimit(.minutes(1))) struct InstalledAdapterTests {
    /// A folder with a model, and the adapters that a test writes.
    private final class Folder {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("adapters-\(UUID().uuidString)")
        var model: String { url.appendingPathComponent("tiny.gguf").path }

        init() throws {
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
            try writeModel(seed: 1)
        }

        deinit { try? FileManager.default.removeItem(at: url) }  // otherwise the system removes it

        func writeModel(seed: UInt64) throws {
            var tiny = TinyModel()
            tiny.seed = seed
            try write(tiny.builder().bytes(), model)
        }

        func write(_ bytes: [UInt8], _ path: String) throws { try Data(bytes).write(to: URL(filePath: path), options: .atomic) }

        /// Writes an adapter of the model.
        ///
        /// - Parameter base: The fingerprint that it names; nil for the right one.
        @discardableResult
        func install(_ use: AdapterUse, seed: UInt64, base: String? = nil) throws -> String {
            var builder = TinyModel().adapter(seed: seed)
            builder.metadata.append(("base_fingerprint", .string(try base ?? GGUFFile(path: model).fingerprint())))
            try write(builder.bytes(), use.path(beside: model))
            return use.path(beside: model)
        }

        /// Writes an adapter of a user.
        func own(seed: UInt64, isBased: Bool, changesOutput: Bool = false) throws -> String {
            var builder = TinyModel().adapter(seed: seed)
            if isBased { builder.metadata.append(("base_adapter", .string("cbf29ce484222325"))) }
            if changesOutput {
                var random = SeededGenerator(seed)
                for (half, shape) in [("lora_a", [TinyModel().width, 4]), ("lora_b", [4, TinyModel.tokens.count])] {
                    let values = TinyModel.randomBlocks(.f32, shape[0] * shape[1], &random)
                    builder.tensors.append(("output.weight.\(half)", .f32, shape, values))
                }
            }
            let path = url.appendingPathComponent("own-\(seed).fmadapter").path
            try write(builder.bytes(), path)
            return path
        }

        func value(adapter: String? = nil, usesInstalledAdapter: Bool = true) -> GGUFLanguageModel {
            GGUFLanguageModel(
                url: URL(filePath: model), adapter: adapter.map { URL(filePath: $0) }, usesInstalledAdapter: usesInstalledAdapter,
                checksText: false)
        }
    }

    private func answers(_ model: GGUFLanguageModel) async throws -> [String] {
        var answers: [String] = []
        for prompt in ["a", "the thing", "Hello, world", "in 1, 2, 3"] {
            let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 6)
            answers.append(try await LanguageModelSession(model: model).respond(to: prompt, options: options).content)
        }
        return answers
    }

    @Test("the adapter of a model has the name of its file, and lies beside it") func places() {
        #expect(AdapterUse.assistant.path(beside: "/m/a-q4_k_m.gguf") == "/m/a-q4_k_m.assistant.fmadapter")
        #expect(AdapterUse.tagging.path(beside: "a") == "a.tagging.fmadapter")
    }

    @Test("the adapter beside a model's file is used by default, for content tagging the other one, and can be turned off")
    func uses() async throws {
        let folder = try Folder()
        func paths(_ useCase: SystemLanguageModel.UseCase, _ uses: Bool = true) throws -> [String] {
            try SystemLanguageModel(file: folder.model, usesInstalledAdapter: uses, useCase: useCase).localModel.adapterPaths
        }
        #expect(try paths(.general) == [] && paths(.contentTagging) == [])
        let plain = try await answers(folder.value())
        let assistant = try folder.install(.assistant, seed: 3)
        #expect(try paths(.general) == [assistant] && paths(.contentTagging) == [])
        let tagging = try folder.install(.tagging, seed: 4)
        #expect(try paths(.general) == [assistant] && paths(.contentTagging) == [tagging])
        #expect(try paths(.general, false) == [] && paths(.contentTagging, false) == [])
        let adapted = try await answers(folder.value())
        #expect(adapted != plain)
        #expect(try await answers(folder.value(adapter: assistant, usesInstalledAdapter: false)) == adapted)
        #expect(try await answers(folder.value(usesInstalledAdapter: false)) == plain)
        #expect(folder.value().executorConfiguration != folder.value(usesInstalledAdapter: false).executorConfiguration)
    }

    @Test("an adapter of a user is used alone, or together with the model's if it was trained on top of it") func together()
        async throws
    {
        let folder = try Folder()
        let (alone, based) = try (folder.own(seed: 5, isBased: false), folder.own(seed: 6, isBased: true))
        #expect(try folder.value(adapter: alone).localModel.adapterPaths == [alone])
        #expect(try folder.value(adapter: based, usesInstalledAdapter: false).localModel.adapterPaths == [based])
        // Without the other one, it would answer otherwise.
        await #expect {
            try await answers(folder.value(adapter: based))
        } throws: { error in
            guard case SystemLanguageModel.Error.assetsUnavailable(let details) = error else { return false }
            return details.debugDescription.contains(based) && details.debugDescription.contains("tiny.assistant.fmadapter")
        }
        let assistant = try folder.install(.assistant, seed: 3)
        #expect(try folder.value(adapter: alone).localModel.adapterPaths == [alone])
        #expect(try folder.value(adapter: based).localModel.adapterPaths == [assistant, based])
        let tagging = LocalModel(path: folder.model, maximumContext: 512, adapter: based, isTagging: true)
        #expect(try tagging.adapterPaths == [assistant, based])
        let together = try await answers(folder.value(adapter: based))
        #expect(try await together != answers(folder.value()))
        #expect(try await together != answers(folder.value(adapter: based, usesInstalledAdapter: false)))
    }

    @Test("an adapter that must be merged into the weights is used alone") func merged() async throws {
        let folder = try Folder()
        try folder.install(.assistant, seed: 3)
        let own = try folder.own(seed: 7, isBased: true, changesOutput: true)
        let local = folder.value(adapter: own).localModel
        let lease = try await local.lease()
        #expect(lease.model.hasMergedAdapter)
        #expect(try await local.adapter(for: lease.model) == nil)
        let expected = try await answers(folder.value(adapter: own, usesInstalledAdapter: false))
        #expect(try await answers(folder.value(adapter: own)) == expected)
    }

    @Test("an adapter that is damaged or of another model is left out, and files that were replaced are read again")
    func replaced() throws {
        let folder = try Folder()
        func installed() throws -> [String] { try folder.value().localModel.adapterPaths }
        let path = try folder.install(.assistant, seed: 3, base: "0")
        #expect(try installed() == [])
        try folder.write(TinyModel().adapter(seed: 3).bytes(), path)
        #expect(try installed() == [], "it does not say of which model it is")
        try folder.write(Array("no adapter".utf8), path)
        #expect(try installed() == [])
        try folder.install(.assistant, seed: 3)
        #expect(try installed() == [path])
        try folder.writeModel(seed: 2)
        #expect(try installed() == [])
        try FileManager.default.removeItem(atPath: path)
        #expect(try installed() == [])
    }

    @Test("a saved KV cache belongs to the model with its adapter") func savedCaches() async throws {
        let folder = try Folder()
        try folder.install(.assistant, seed: 3)
        let (adapted, plain) = (folder.value(), folder.value(usesInstalledAdapter: false))
        let session = LanguageModelSession(model: adapted)
        _ = try await session.respond(
            to: "Hello", options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 4))
        let file = folder.url.appendingPathComponent("cache")
        let count = try await adapted.saveKVCache(for: session.transcript, to: file)
        #expect(count > 0)
        await #expect(throws: (any Error).self) { try await plain.restoreKVCache(from: file) }
        #expect(try await adapted.restoreKVCache(from: file) == count)
    }

    @Test("what reads states reads those of the model alone, with each version of its adapter") func states() async throws {
        let folder = try Folder()
        func states(_ model: GGUFLanguageModel) async throws -> [Float] {
            try #require(await PromptStates(model: model)?.states(of: "Hello, world", layers: [1]).first)
        }
        func distance(_ a: [Float], _ b: [Float]) -> Float { zip(a, b).map { abs($0 - $1) }.max() ?? .infinity }
        let before = try await states(folder.value())
        let path = try folder.install(.assistant, seed: 3)
        #expect(try await distance(states(folder.value()), before) < 0.01)
        #expect(try await distance(states(folder.value(adapter: path)), before) > 0.1)
    }

    @Test("a probe of the guardrail belongs to the model alone, or to the model with its adapter") func probes() {
        func probe(_ threshold: Float, assistant: Bool, schemas: Bool = true) -> GuardrailProbe {
            GuardrailProbe(
                fingerprint: "a", layers: [1], usesAssistant: assistant, readsSchemas: schemas, scale: 1, bias: 0,
                threshold: threshold, marginOfSuspicion: 1, weights: "")
        }
        let probes = [probe(1, assistant: false), probe(2, assistant: true, schemas: false)]
        func threshold(_ assistant: Bool, _ schema: Bool, _ fingerprint: String? = "a") -> Float? {
            GuardrailProbe.probe(of: fingerprint, usesAssistant: assistant, hasSchema: schema, among: probes)?.threshold
        }
        #expect(threshold(false, false) == 1 && threshold(true, false) == 2)
        #expect(threshold(true, true) == 1, "none was trained with the adapter and schemas")
        #expect(threshold(true, false, "b") == nil && threshold(false, false, nil) == nil)
        let withAdapterOnly = [probe(2, assistant: true)]
        #expect(GuardrailProbe.probe(of: "a", usesAssistant: false, hasSchema: false, among: withAdapterOnly) == nil)
    }
}
