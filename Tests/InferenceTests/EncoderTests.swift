import CKernels
import Foundation
import TestSupport
import Testing

@testable import Inference
@testable import ModelTools

/// Compares tiny random encoders of every architecture with vectors that transformers (PyTorch, binary64) computed from the same
/// numbers (written by `Tests/Tools/record_encoders.py`).
struct EncoderTests {
    private struct Recorded: Decodable {
        var texts: [[TokenID]]
        var vectors: [[Double]]
    }

    static let names = ["bert", "bert-cls", "nomic-bert", "modern-bert", "gemma-embedding", "qwen3-embedding"]

    private func load(_ name: String) throws -> (recorded: Recorded, file: TemporaryFile) {
        let recipe = try GoldenFile.load("Encoders/\(name)", as: ArchitectureTests.Recipe.self)
        return (
            try GoldenFile.load("Encoders/\(name)", as: Recorded.self), try TemporaryFile(recipe.builder().bytes())
        )
    }

    private func model(_ path: String, _ set: InstructionSet) throws -> (NeuralModel, ModelShape.Pooling) {
        let model = try NeuralModel(
            file: GGUFFile(path: path), pool: WorkerPool(threads: 2, instructionSet: set), batchSize: 256)
        return (model, try #require(model.shape.pooling))
    }

    private func embed(_ texts: [[TokenID]], _ model: NeuralModel, _ pooling: ModelShape.Pooling, _ caches: [KVCache]) throws
        -> [[Float]]
    {
        let width = model.shape.embeddingWidth
        var output = [Float](repeating: .nan, count: texts.count * width)
        for (cache, text) in zip(caches, texts) { try cache.reserve(text.count) }
        try output.withUnsafeMutableBufferPointer { output in
            let start = try #require(output.baseAddress)
            try texts.flatMap(\.self).withUnsafeBufferPointer { tokens in
                try model.embed(
                    tokens, parts: Array(zip(caches, texts.map(\.count))), pooling: pooling, into: start, isCancelled: { false })
            }
        }
        return (0..<texts.count).map { Array(output[$0 * width..<($0 + 1) * width]) }
    }

    @Test(arguments: names)
    func vectorsEqualTheReference(name: String) throws {
        let (recorded, file) = try load(name)
        #expect(recorded.texts.count > 5)
        for set in [InstructionSet.scalar, InstructionSet.available.last ?? .scalar] {
            let (model, pooling) = try model(file.path, set)
            let caches = try recorded.texts.map { _ in
                try KVCache(shape: model.shape, capacity: 64, sharesLayers: true)
            }
            // All texts in one batch, then each alone: the others must not affect the result, nor what the caches had before.
            let together = try embed(recorded.texts, model, pooling, caches)
            for (index, text) in recorded.texts.enumerated() {
                let expected = recorded.vectors[index]
                let cosine = zip(together[index], expected).reduce(0) { $0 + Double($1.0) * $1.1 }
                // Keys and values are binary16.
                #expect(cosine > 0.999_99, "\(name), \(text.count) tokens, \(set)")
                #expect(abs(together[index].reduce(0) { $0 + Double($1) * Double($1) } - 1) < 1e-5)
                #expect(try embed([text], model, pooling, [caches[0]])[0] == together[index], "\(name), \(text.count) tokens")
            }
        }
    }

    @Test func poolingIsRequired() async throws {
        let file = try TemporaryFile(TinyModel().builder().bytes())
        await #expect(throws: ModelError.self) { try await TextEmbedder.load(path: file.path) }
    }

    @Test(arguments: [InstructionSet.scalar] + InstructionSet.available)
    func quantizationEqualsTheScalarOne(set: InstructionSet) throws {
        var random = SeededGenerator(3)
        for columns in [32, 96, 384] {
            let rows = 5
            var values = (0..<rows * columns).map { _ in random.uniform(-3...3) }
            for index in 0..<32 { values[index] = 0 }
            values[40] = 300
            #expect(try quantized(values, rows, columns, set) == quantized(values, rows, columns, .scalar))
        }
    }

    private func quantized(_ values: [Float], _ rows: Int, _ columns: Int, _ set: InstructionSet) throws -> [Double] {
        let pool = try WorkerPool(threads: 1, instructionSet: set)
        var layout = MemoryLayoutBuilder()
        _ = RowBuffer(rows * columns, hasUnits: false, &layout, nil)
        let memory = try Memory(bytes: layout.bytes)
        layout = MemoryLayoutBuilder()
        let buffer = RowBuffer(rows * columns, hasUnits: false, &layout, memory)
        buffer.set(rows: rows, columns: columns)
        buffer.x.update(from: values, count: values.count)
        var result: [Double] = []
        for row in 0..<rows { pool.kernels.pointee.quantize(&buffer.rows, Int32(row)) }
        for index in 0..<rows * columns { result.append(Double(buffer.rows.q[index])) }
        for index in 0..<rows * columns / 32 { result += [Double(buffer.rows.d[index]), Double(buffer.rows.s[index])] }
        for index in 0..<rows * columns / 16 { result.append(Double(buffer.rows.sums[index])) }
        return result
    }
}

/// Import of Hugging Face folders. The files are not trusted.
struct HuggingFaceTests {
    private final class Folder {
        let url: URL
        init() throws {
            url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        }
        deinit { try? FileManager.default.removeItem(at: url) }  // the system removes what is left
        func write(_ name: String, _ data: Data) throws { try data.write(to: url.appendingPathComponent(name)) }
    }

    private static let width = 32

    /// A BERT with two layers and ten tokens, as Sentence Transformers writes it.
    private func folder() throws -> Folder {
        let folder = try Folder()
        let config = """
            {"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64,
             "max_position_embeddings": 16, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}
            """
        try folder.write("config.json", Data(config.utf8))
        try folder.write("sentence_bert_config.json", Data(#"{"max_seq_length": 8}"#.utf8))
        let tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "भ", "##ा"]
        let vocabulary = tokens.enumerated().map { "\"\($0.element)\": \($0.offset)" }.joined(separator: ", ")
        let special = tokens.prefix(5).enumerated().map {
            "{\"id\": \($0.offset), \"content\": \"\($0.element)\", \"special\": true}"
        }
        try folder.write(
            "tokenizer.json",
            Data(
                """
                {"model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {\(vocabulary)}},
                 "normalizer": {"lowercase": true}, "added_tokens": [\(special.joined(separator: ", "))]}
                """.utf8))
        try folder.write("model.safetensors", try safetensors())
        return folder
    }

    private func safetensors(change: (inout [(String, [Int])]) -> Void = { _ in }) throws -> Data {
        let w = Self.width
        var tensors: [(String, [Int])] = [
            ("embeddings.word_embeddings.weight", [10, w]), ("embeddings.position_embeddings.weight", [16, w]),
            ("embeddings.token_type_embeddings.weight", [2, w]), ("embeddings.LayerNorm.weight", [w]),
            ("embeddings.LayerNorm.bias", [w]), ("pooler.dense.weight", [w, w]),
        ]
        let layer = "encoder.layer.0."
        for (name, rows, columns) in [
            ("attention.self.query", w, w), ("attention.self.key", w, w), ("attention.self.value", w, w),
            ("attention.output.dense", w, w), ("intermediate.dense", 64, w), ("output.dense", w, 64),
        ] { tensors += [(layer + name + ".weight", [rows, columns]), (layer + name + ".bias", [rows])] }
        for name in ["attention.output.LayerNorm", "output.LayerNorm"] {
            tensors += [(layer + name + ".weight", [w]), (layer + name + ".bias", [w])]
        }
        change(&tensors)
        var random = SeededGenerator(5)
        var data = Data()
        var entries: [String] = []
        for (name, shape) in tensors {
            let count = shape.reduce(1, *)
            entries.append(
                "\"\(name)\": {\"dtype\": \"F32\", \"shape\": \(shape), \"data_offsets\": [\(data.count), \(data.count + 4 * count)]}"
            )
            for _ in 0..<count {
                withUnsafeBytes(of: random.uniform(-1...1).bitPattern.littleEndian) { data.append(contentsOf: $0) }
            }
        }
        let header = Data("{\"__metadata__\": {\"format\": \"pt\"}, \(entries.joined(separator: ", "))}".utf8)
        return withUnsafeBytes(of: UInt64(header.count).littleEndian) { Data($0) } + header + data
    }

    @Test(arguments: [TensorType.f32, .f16, .q8_0])
    func imported(type: TensorType) async throws {
        let folder = try folder()
        let target = folder.url.appendingPathComponent("model.gguf")
        var last = 0.0
        try HuggingFaceFolder(folder.url).write(to: target, name: "tiny", type: type) { last = $0 }
        #expect(last == 1)
        let embedder = try await TextEmbedder.load(path: target.path, threads: 1)
        #expect(embedder.maximumTokens == 8 && embedder.shape.embeddingWidth == Self.width)
        // “##ा” begins with a character that combines with the mark before it.
        #expect(embedder.tokens(of: "The cats भा dog") == [2, 5, 6, 7, 8, 9, 1, 3])
        #expect(embedder.tokens(of: "") == [2, 3])
        #expect(embedder.tokens(of: "the cat the cat the cat the cat") == [2, 5, 6, 5, 6, 5, 6, 3])
        #expect(embedder.tokens(of: "[CLS] cat") != [2, 2, 6, 3])
        #expect(embedder.tokens(of: String(repeating: "s", count: 101)) == [2, 1, 3])
        let vectors = try await embedder.embed(texts: ["the cat", "cats", "", "the cat"])
        #expect(vectors[0] == vectors[3] && vectors[0] != vectors[1])
        #expect(try await embedder.embed(texts: ["cats"])[0] == vectors[1])
        #expect(vectors.allSatisfy { abs($0.reduce(0) { $0 + $1 * $1 } - 1) < 1e-4 })
        let copy = folder.url.appendingPathComponent("copy.gguf")
        try FileManager.default.copyItem(at: target, to: copy)
        #expect(try await TextEmbedder.load(path: copy.path, threads: 1).fingerprint == embedder.fingerprint)
    }

    /// Headers and indices with wrong lengths, offsets and shapes cause typed errors and leave no file.
    @Test func damagedFiles() throws {
        let folder = try folder()
        let whole = try safetensors()
        var random = SeededGenerator(11)
        func fails(_ data: Data) throws -> Bool {
            try folder.write("model.safetensors", data)
            let target = folder.url.appendingPathComponent("x.gguf")
            defer { try? FileManager.default.removeItem(at: target) }  // usually not there
            do {
                try HuggingFaceFolder(folder.url).write(to: target, name: "x")
                _ = try NeuralModel(file: GGUFFile(path: target.path), pool: WorkerPool(threads: 1))
                return false
            } catch is ModelError { return true }
        }
        #expect(try !fails(whole))
        for length in [1, 7, 8, 20, whole.count / 2, whole.count - 1] { #expect(try fails(whole.prefix(length))) }
        #expect(try fails(Data([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]) + whole.dropFirst(8)))
        #expect(try fails(safetensors { $0[1].1 = [7, 32] }))  // fewer positions than texts have
        #expect(try fails(safetensors { $0.removeLast() }))
        #expect(try fails(safetensors { $0.append(("encoder.layer.0.unknown.weight", [4])) }))
        // Random changes of the header either change nothing or cause a typed error.
        for _ in 0..<200 {
            var data = whole
            data[8 + Int(random.next() % 1500)] = UInt8(truncatingIfNeeded: random.next())
            _ = try fails(data)
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(!names.contains { $0.hasSuffix(".part") })
    }

    /// Numbers and shapes that overflow, and folders that convert to nothing usable, leave an existing file alone.
    @Test func hostileNumbers() throws {
        let folder = try folder()
        let target = folder.url.appendingPathComponent("model.gguf")
        try HuggingFaceFolder(folder.url).write(to: target, name: "good")
        let good = try Data(contentsOf: target)
        func refused(_ file: String, _ change: (String) -> String) throws -> Bool {
            let url = folder.url.appendingPathComponent(file)
            let before = try Data(contentsOf: url)
            defer { try? before.write(to: url) }  // the next check would fail
            try Data(change(String(decoding: before, as: UTF8.self)).utf8).write(to: url)
            do { try HuggingFaceFolder(folder.url).write(to: target, name: "bad") } catch is ModelError { return true }
            return false
        }
        #expect(try refused("tokenizer.json") { $0.replacing("\"cat\": 6", with: "\"cat\": 9223372036854775807") })
        #expect(try refused("tokenizer.json") { $0.replacing("\"cat\": 6", with: "\"cat\": 4000000") })
        #expect(try refused("tokenizer.json") { $0.replacing("\"cat\": 6", with: "\"cat\": -1") })
        #expect(try refused("config.json") { $0.replacing("\"num_attention_heads\": 2", with: "\"num_attention_heads\": 7") })
        #expect(try refused("config.json") { $0.replacing("1e-12", with: "-1") })
        #expect(
            try refused("config.json") { $0.replacing("\"num_hidden_layers\": 1", with: "\"num_hidden_layers\": 4294967295") })
        let name = "embeddings.word_embeddings.weight"
        for shape in ["[0, 9223372036854775807, 9223372036854775807]", "[]", "[1, 1, 1, 1, 320]", "[-1, -320]", "[2147483648]"] {
            let header = Data("{\"\(name)\": {\"dtype\": \"F32\", \"shape\": \(shape), \"data_offsets\": [0, 0]}}".utf8)
            let data = withUnsafeBytes(of: UInt64(header.count).littleEndian) { Data($0) } + header
            try folder.write("model.safetensors", data)
            #expect(throws: ModelError.self) { try HuggingFaceFolder(folder.url).write(to: target, name: "bad") }
        }
        #expect(try Data(contentsOf: target) == good)
        #expect(!(try FileManager.default.contentsOfDirectory(atPath: folder.url.path)).contains { $0.hasSuffix(".part") })
    }

    /// An encoder has no output head.
    @Test func encodersGenerateNoText() async throws {
        let folder = try folder()
        let target = folder.url.appendingPathComponent("model.gguf")
        try HuggingFaceFolder(folder.url).write(to: target, name: "tiny")
        await #expect {
            try await LoadedModel.load(path: target.path, threads: 1)
        } throws: { "\($0)".contains("computes embeddings") }
    }

    @Test func namedPipesDoNotBlock() throws {
        let folder = try Folder()
        #expect(mkfifo(folder.url.appendingPathComponent("config.json").path, 0o600) == 0)
        #expect(throws: ModelError.self) { try HuggingFaceFolder(folder.url) }
    }

    @Test func otherModels() throws {
        let folder = try folder()
        try folder.write("config.json", Data(#"{"model_type": "t5"}"#.utf8))
        #expect(throws: ModelError.self) { try HuggingFaceFolder(folder.url) }
        try folder.write("config.json", Data("not JSON".utf8))
        #expect(throws: ModelError.self) { try HuggingFaceFolder(folder.url) }
        try folder.write("model.safetensors.index.json", Data(#"{"weight_map": {"a": "../../etc/passwd"}}"#.utf8))
        try folder.write("config.json", Data(#"{"model_type": "bert"}"#.utf8))
        #expect(throws: ModelError.self) { try HuggingFaceFolder(folder.url) }
    }
}
