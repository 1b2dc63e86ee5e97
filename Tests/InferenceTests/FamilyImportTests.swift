import Foundation
import TestSupport
import Testing

@testable import Inference

/// Every kind of language model in the Hugging Face form, against the logits of transformers; written by `Tests/Tools/record_import.py`.
/// `Tests/Tools/check_import.py` compares every tensor with llama.cpp's converter.
@Suite struct FamilyImportTests {
    private struct Family: Decodable {
        struct Tensor: Decodable { var name: String, shape: [Int], low: Float, high: Float }
        var tokenizer: String
        var tensors: [Tensor]
        var tokens: [TokenID]
        var logits: [Float]
    }

    private static let golden = URL(filePath: #filePath).deletingLastPathComponent().appendingPathComponent("Golden/Import")

    static let names: [String] = {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: golden.appendingPathComponent("Families").path)) ?? []
        return files.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()  // none fails `everyKind`
    }()

    @Test("[H1] every kind that is imported has logits of transformers") func everyKind() throws {
        // MiniCPM has no class there; its changes are those of Llama and Granite.
        let known = Set(Self.names.map { $0.replacing("_dense", with: "") }).union(["hunyuan_v1_dense", "minicpm"])
        for kind in DecoderFamily.all.keys where !["gemma3", "gemma4", "mistral3", "qwen3_5_moe_text"].contains(kind) {
            #expect(known.contains(kind), "\(kind)")
        }
    }

    @Test("[H1] the logits of transformers", arguments: names) func equalsTransformers(_ name: String) throws {
        let data = try Data(contentsOf: Self.golden.appendingPathComponent("Families/\(name).json"))
        let family = try JSONDecoder().decode(Family.self, from: data)
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("import-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // best effort
        for file in ["tokenizer.json", "tokenizer_config.json"] {
            try FileManager.default.copyItem(
                at: Self.golden.appendingPathComponent("\(family.tokenizer)/\(file)"), to: folder.appendingPathComponent(file))
        }
        let whole = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        try JSONSerialization.data(withJSONObject: try #require(whole["config"])).write(
            to: folder.appendingPathComponent("config.json"))
        let tensors = family.tensors.map { tensor in
            SafetensorsData.Tensor(
                name: tensor.name, shape: tensor.shape,
                values: ModelRecipe.numbers(
                    tensor.name, count: tensor.shape.reduce(1, *), low: tensor.low, high: tensor.high, seed: 1))
        }
        try SafetensorsData.file(tensors, metadata: [:], type: .f32).write(to: folder.appendingPathComponent("model.safetensors"))
        let output = folder.appendingPathComponent("model.gguf")
        try HuggingFaceFolder(folder).write(to: output, name: name, type: .f32)
        let model = try DecoderModel(file: try GGUFFile(path: output.path), pool: .shared())
        let cache = try KVCache(shape: model.shape, capacity: 64)
        try model.forward(family.tokens[...], cache: cache)
        var (error, size) = (Float(0), Float(0))
        for (value, wanted) in zip(model.logits, family.logits) {
            error = max(error, abs(value - wanted))
            size = max(size, abs(wanted))
        }
        // The cache has 16 bits.
        #expect(error < 4e-3 * size, "\(name): \(error) of \(size)")
    }
}
