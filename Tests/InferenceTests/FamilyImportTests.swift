import Embeddings
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

    private struct Ranker: Decodable {
        var tensors: [Family.Tensor], head: [Family.Tensor]
        var tokens: [TokenID]
        /// A question and a text, and the tokens of both.
        var question: String, text: String, pair: [TokenID]
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

    /// A model that reads question and text together, and its folder.
    private static func ranker() throws -> (recorded: Ranker, folder: URL) {
        let data = try Data(contentsOf: golden.appendingPathComponent("Encoders/modernbert_ranker.json"))
        let recorded = try JSONDecoder().decode(Ranker.self, from: data)
        let folder = try folder(data, tokenizer: "", recorded.tensors)
        for (name, tensors) in Dictionary(grouping: recorded.head, by: { String($0.name.prefix { $0 != "/" }) }) {
            let module = folder.appendingPathComponent(name)
            try FileManager.default.createDirectory(at: module, withIntermediateDirectories: true)
            let all = tensors.map { tensor in
                SafetensorsData.Tensor(
                    name: String(tensor.name.dropFirst(name.count + 1)), shape: tensor.shape,
                    values: ModelRecipe.numbers(
                        tensor.name, count: tensor.shape.reduce(1, *), low: tensor.low, high: tensor.high, seed: 1))
            }
            try SafetensorsData.file(all, metadata: [:], type: .f32).write(to: module.appendingPathComponent("model.safetensors"))
        }
        let kinds = [
            ("base.modules.transformer.Transformer", ""), ("sentence_transformer.modules.pooling.Pooling", "1_Pooling"),
            ("base.modules.dense.Dense", "2_Dense"), ("sentence_transformer.modules.layer_norm.LayerNorm", "3_LayerNorm"),
            ("base.modules.dense.Dense", "4_Dense"),
        ]
        func write(_ value: Any, _ name: String) throws {
            try JSONSerialization.data(withJSONObject: value).write(to: folder.appendingPathComponent(name))
        }
        try write(kinds.map { ["type": "sentence_transformers.\($0.0)", "path": $0.1] }, "modules.json")
        try write(["activation_function": "torch.nn.modules.activation.GELU"], "2_Dense/config.json")
        try write(["activation_function": "torch.nn.modules.linear.Identity"], "4_Dense/config.json")
        return (recorded, folder)
    }

    @Test("[H1] a model that reads question and text together has the scores of transformers") func rankerEqualsTransformers()
        async throws
    {
        let (recorded, folder) = try Self.ranker()
        defer { try? FileManager.default.removeItem(at: folder) }  // best effort
        let output = folder.appendingPathComponent("model.gguf")
        try HuggingFaceFolder(folder).write(to: output, name: "ranker", type: .f32)
        let reader = try await TextEmbedder.load(path: output.path, threads: 1)
        #expect(reader.readsPairs && reader.maximumTokens == 512)
        let other: [TokenID] = [1, 20, 2, 30, 2]
        let scores = try await reader.scores(of: [recorded.tokens, other, []])
        #expect(abs(scores[0] - Double(recorded.vector[0])) < 2e-3, "\(scores)")
        #expect(try await reader.scores(of: [other]) == [scores[1]] && scores[1] != scores[0] && scores[2] == 0)

        // The public type makes the pairs that the tokenizer makes.
        let reranker = Reranker(model: GGUFEmbeddingModel(url: output))
        let pair = try await reader.scores(of: [recorded.pair])[0]
        let found = try await reranker.scores(
            of: [recorded.text, String(repeating: "so on ", count: 900)], for: recorded.question)
        #expect(abs(found[0] - 1 / (1 + exp(-pair))) < 1e-6 && (0...1).contains(found[1]))
        let context = String(repeating: "before that ", count: 300)
        let later = try await reranker.scores(of: [.init(recorded.text, context: context)], for: recorded.question)
        #expect(Reranker.pairs(of: [.init("so", context: context)], for: "Why?", reader)[0].count == 1)
        #expect((0...1).contains(later[0]))
        await #expect(throws: EmbeddingError.self) { try await GGUFEmbeddingModel(url: output).embed(["a"], as: .document) }
        #expect(try await reranker.identifier() == nil)
        await #expect(throws: EmbeddingError.self) { try await reranker.prepared(question: "Why?") }
    }

    @Test("[H1] a ranker whose modules are not those that are computed is an error") func hostileRankers() throws {
        func check(_ change: (URL) throws -> Void) throws {
            let (_, folder) = try Self.ranker()
            defer { try? FileManager.default.removeItem(at: folder) }  // best effort
            try change(folder)
            let output = folder.appendingPathComponent("model.gguf")
            #expect(throws: ModelError.self) { try HuggingFaceFolder(folder).write(to: output, name: "ranker", type: .f32) }
            #expect(!FileManager.default.fileExists(atPath: output.path))
        }
        try check {
            try Data(#"{"activation_function": "torch.nn.ReLU"}"#.utf8).write(to: $0.appending(path: "2_Dense/config.json"))
        }
        try check { try FileManager.default.removeItem(at: $0.appending(path: "4_Dense/config.json")) }
        try check { folder in
            // Without the last module, the others mean something else.
            let file = folder.appending(path: "modules.json")
            let modules = try #require(try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [Any])
            try JSONSerialization.data(withJSONObject: modules.dropLast() as [Any]).write(to: file)
        }
        try check { folder in
            let file = folder.appending(path: "config.json")
            var config = try #require(try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
            config["norm_eps"] = 1e-6
            try JSONSerialization.data(withJSONObject: config).write(to: file)
        }
        try check { try FileManager.default.removeItem(at: $0.appending(path: "2_Dense/model.safetensors")) }
        try check { folder in
            let narrow = [
                SafetensorsData.Tensor(name: "linear.weight", shape: [1, 32], values: [Float](repeating: 1, count: 32))
            ]
            try SafetensorsData.file(narrow, metadata: [:], type: .f32).write(
                to: folder.appending(path: "4_Dense/model.safetensors"))
        }
        try check { try Data(#"{"pooling_mode": "max"}"#.utf8).write(to: $0.appending(path: "1_Pooling/config.json")) }
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
