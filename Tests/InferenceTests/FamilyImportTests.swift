import Foundation
import TestSupport
import Testing

@testable import Inference
@testable import ModelTools

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

    /// A model for embeddings.
    private struct Encoder: Decodable {
        var tokenizer: String
        var tensors: [Family.Tensor]
        var dense: [Family.Tensor]
        var tokens: [TokenID]
        var lines: [ImportTests.Expected.Line]
        var vector: [Float]
    }

    private static let golden = URL(filePath: #filePath).deletingLastPathComponent().appendingPathComponent("Golden/Import")

    static let names: [String] = {
        // Without files, `everyKind` fails.
        let files = (try? FileManager.default.contentsOfDirectory(atPath: golden.appendingPathComponent("Families").path)) ?? []
        return files.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
    }()

    @Test("[H1] every kind that is imported has logits of transformers") func everyKind() throws {
        // MiniCPM has no class there; its changes are those of Llama and Granite.
        let known = Set(Self.names.map { $0.replacing("_dense", with: "") }).union(["hunyuan_v1_dense", "minicpm"])
        for kind in DecoderFamily.all.keys where !["gemma3", "gemma4", "mistral3", "qwen3_5_moe_text"].contains(kind) {
            #expect(known.contains(kind), "\(kind)")
        }
    }

    /// The folder that a recording describes.
    private static func folder(_ data: Data, tokenizer: String, _ tensors: [Family.Tensor]) throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("import-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let whole = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        for file in ["tokenizer.json", "tokenizer_config.json"] {
            let target = folder.appendingPathComponent(file)
            if let own = (whole["tokenizerFiles"] as? [String: Any])?[file] {
                try JSONSerialization.data(withJSONObject: own).write(to: target)
            } else {
                try FileManager.default.copyItem(at: golden.appendingPathComponent("\(tokenizer)/\(file)"), to: target)
            }
        }
        try JSONSerialization.data(withJSONObject: try #require(whole["config"])).write(
            to: folder.appendingPathComponent("config.json"))
        if let pooling = whole["pooling"] {
            try FileManager.default.createDirectory(
                at: folder.appendingPathComponent("1_Pooling"), withIntermediateDirectories: true)
            try JSONSerialization.data(withJSONObject: pooling).write(
                to: folder.appendingPathComponent("1_Pooling/config.json"))
        }
        try write(tensors, to: folder.appendingPathComponent("model.safetensors"))
        return folder
    }

    private static func write(_ tensors: [Family.Tensor], name: String? = nil, to url: URL) throws {
        let all = tensors.map { tensor in
            SafetensorsData.Tensor(
                name: name ?? tensor.name, shape: tensor.shape,
                values: ModelRecipe.numbers(
                    tensor.name, count: tensor.shape.reduce(1, *), low: tensor.low, high: tensor.high, seed: 1))
        }
        try SafetensorsData.file(all, metadata: [:], type: .f32).write(to: url)
    }

    @Test(
        "[H1] the tokens and vectors of transformers",
        arguments: ["bert", "roberta", "xlm_roberta", "nomic_bert", "modernbert", "embedding_gemma", "qwen3_embedding"])
    func encoderEqualsTransformers(_ name: String) async throws {
        let data = try Data(contentsOf: Self.golden.appendingPathComponent("Encoders/\(name).json"))
        let recorded = try JSONDecoder().decode(Encoder.self, from: data)
        let folder = try Self.folder(data, tokenizer: recorded.tokenizer, recorded.tensors)
        defer { try? FileManager.default.removeItem(at: folder) }  // best effort
        for tensor in recorded.dense {
            let module = folder.appendingPathComponent(tensor.name)
            try FileManager.default.createDirectory(at: module, withIntermediateDirectories: true)
            try Self.write([tensor], name: "linear.weight", to: module.appendingPathComponent("model.safetensors"))
        }
        let source = try HuggingFaceFolder(folder)
        #expect(source.isEncoder)
        let output = folder.appendingPathComponent("model.gguf")
        try source.write(to: output, name: name, type: .f32)
        let embedder = try await TextEmbedder.load(path: output.path, threads: 1)
        for line in recorded.lines { #expect(embedder.tokens(of: line.text) == line.ids, "\(name): \(line.text)") }
        let vector = try await embedder.embed([recorded.tokens])[0]
        #expect(vector.count == recorded.vector.count)
        for (value, wanted) in zip(vector, recorded.vector) { #expect(abs(value - wanted) < 2e-3, "\(name)") }
    }

    /// A folder with a changed configuration and changed tensors must be an error, not a trap, and leave no file.
    @Test(
        "[H1] shapes and settings that do not fit are errors",
        arguments: [
            "llama", "glm4", "granitemoehybrid", "qwen3_5", "qwen3_next", "gpt_oss", "gemma4_moe", "deepseek_v3", "lfm2_moe",
        ])
    func hostile(_ name: String) throws {
        let data = try Data(contentsOf: Self.golden.appendingPathComponent("Families/\(name).json"))
        let family = try JSONDecoder().decode(Family.self, from: data)
        var random = SeededGenerator(9)
        var refused = 0
        let folder = try Self.folder(data, tokenizer: family.tokenizer, family.tensors)
        defer { try? FileManager.default.removeItem(at: folder) }  // best effort
        let output = folder.appendingPathComponent("model.gguf")
        func attempt() throws {
            do { try HuggingFaceFolder(folder).write(to: output, name: name, type: .f32) } catch is ModelError { refused += 1 }
            for suffix in ["", ".partial", ".partial.state"] {
                let path = output.path + suffix
                #expect(suffix.isEmpty || !FileManager.default.fileExists(atPath: path))
                unlink(path)
            }
        }
        // Some tensors in turn with a shape that they cannot have.
        let shapes = [[], [1], [7], [3, 5], [2, 3, 4]]
        for index in family.tensors.indices.shuffled(using: &random).prefix(24)
        where family.tensors[index].shape != shapes[index % shapes.count] {
            var tensors = family.tensors
            tensors[index].shape = shapes[index % shapes.count]
            try Self.write(tensors, to: folder.appendingPathComponent("model.safetensors"))
            let before = refused
            try attempt()
            #expect(refused == before + 1, "\(family.tensors[index].name)")
        }
        try Self.write(family.tensors, to: folder.appendingPathComponent("model.safetensors"))
        let whole = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        let config = try #require(whole["config"] as? [String: Any])
        let values: [Any] = [0, -1, 3, 1e300, Int.max, 1 << 31, "x", NSNull(), [1, 2], ["a": 1], true]
        for key in config.keys.sorted() {
            var changed = config
            changed[key] = values[Int.random(in: 0..<values.count, using: &random)]
            try JSONSerialization.data(withJSONObject: changed).write(to: folder.appendingPathComponent("config.json"))
            try attempt()
        }
    }

    @Test("[H1] the logits of transformers", arguments: names) func equalsTransformers(_ name: String) throws {
        let data = try Data(contentsOf: Self.golden.appendingPathComponent("Families/\(name).json"))
        let family = try JSONDecoder().decode(Family.self, from: data)
        let folder = try Self.folder(data, tokenizer: family.tokenizer, family.tensors)
        defer { try? FileManager.default.removeItem(at: folder) }  // best effort
        let output = folder.appendingPathComponent("model.gguf")
        try HuggingFaceFolder(folder).write(to: output, name: name, type: .f32)
        let model = try NeuralModel(file: try GGUFFile(path: output.path), pool: .shared())
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
