import Foundation
import TestSupport
import Testing

@testable import Inference
@testable import ModelTools

/// Types, mixtures, importance matrices and whole files. `Tests/Tools/check_quantize.c` compares the instruction sets.
@Suite struct QuantizationTests {
    private static func numbers(_ count: Int, seed: UInt64 = 1) -> [Float] {
        var random = SeededGenerator(seed)
        return (0..<count).map { _ in random.uniform(-1...1) * random.uniform(0...1) }
    }

    private func error(_ a: [Float], _ b: [Float], _ weights: [Float]? = nil) -> Double {
        zip(a, b).enumerated().reduce(0) { sum, item in
            let difference = Double(item.1.0 - item.1.1)
            return sum + difference * difference * Double(weights?[item.0 % (weights?.count ?? 1)] ?? 1)
        }
    }

    @Test("[H1] more bits have smaller errors, and importance moves the error to where it counts less")
    func errors() throws {
        let numbers = Self.numbers(4096)
        let importance = (0..<512).map { Float($0 % 7 == 0 ? 100 : 1) }
        var last = 0.0
        for type in [
            TensorType.q8_0, .q6_K, .q5_K, .q4_K, .iq3_S, .iq3_XXS, .iq2_S, .iq2_XS, .iq2_XXS, .q8_0, .q4_K, .q3_K, .q2_K,
        ] {
            if type == .q8_0 { last = 0 }
            let plain = type.decode(try ModelQuantizer.encode(numbers, columns: 512, type), count: 4096)
            #expect(error(numbers, plain) > last, "\(type)")
            last = error(numbers, plain)
            guard type != .q8_0 else { continue }
            let weighted = type.decode(try ModelQuantizer.encode(numbers, columns: 512, type, [importance]), count: 4096)
            #expect(error(numbers, weighted, importance) < error(numbers, plain, importance), "\(type)")
            #expect(error(numbers, weighted) > error(numbers, plain), "\(type)")
        }
        for type in [TensorType.q4_0, .q4_1, .q5_0, .q5_1, .iq4_NL, .iq4_XS, .mxfp4] {
            let decoded = type.decode(try ModelQuantizer.encode(numbers, columns: 512, type), count: 4096)
            #expect(error(numbers, decoded) < 0.03 * error(numbers, [Float](repeating: 0, count: 4096)), "\(type)")
        }
    }

    struct Recorded: Decodable {
        var n_embd: Int, n_ff: Int, n_layer: Int, n_head: Int, n_head_kv: Int
        var mixtures: [String: [String: [String: [Int]]]]
    }

    @Test("[H1] mixtures give each matrix the type that llama.cpp gives it (record_mixtures.py)")
    func mixtures() throws {
        for (name, model) in try GoldenFile.load("mixtures", as: [String: Recorded].self) {
            let isTied = try #require(model.mixtures["Q4_K_M"]).values.contains { $0["token_embd.weight"] != nil }
            let parts = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
            var tensors = (0..<model.n_layer).flatMap { layer in
                parts.map { part in
                    QuantizationMix.Tensor(
                        name: "blk.\(layer).\(part).weight", shape: [part == "ffn_down" ? model.n_ff : model.n_embd, 256],
                        type: .f32)
                }
            }
            tensors.append(.init(name: "blk.0.attn_norm.weight", shape: [model.n_embd], type: .f32))
            tensors.append(.init(name: "token_embd.weight", shape: [model.n_embd, 256], type: .f32))
            if !isTied { tensors.append(.init(name: "output.weight", shape: [model.n_embd, 256], type: .f32)) }
            for mix in QuantizationMix.allCases where mix != .mxfp4 {
                let recorded = try #require(model.mixtures[mix.rawValue])
                var expected: [String: TensorType] = ["blk.0.attn_norm.weight": .f32]
                for tensor in tensors where tensor.shape.count > 1 { expected[tensor.name] = mix.type }
                for (type, names) in recorded {
                    let type = try #require(TensorType.allCases.first { $0.name == type })
                    for (part, layers) in names {
                        if layers.isEmpty { expected[part] = type }
                        for layer in layers { expected["blk.\(layer).\(part)"] = type }
                    }
                }
                let found = mix.types(
                    tensors,
                    .init(
                        architecture: "llama", layers: model.n_layer, groups: model.n_head / model.n_head_kv, hasImportance: true)
                )
                // Recorded with an importance matrix for the types that need one, and without for the others.
                let other = mix.types(
                    tensors, .init(architecture: "llama", layers: model.n_layer, groups: model.n_head / model.n_head_kv))
                #expect(found == expected || other == expected, "\(name) \(mix.rawValue)")
            }
        }
    }

    @Test("[H1] rows that are no whole blocks get a type that fits, as llama.cpp's") func fallbacks() {
        #expect(QuantizationMix.fitting(.q4_K, columns: 576) == .q5_0 && QuantizationMix.fitting(.q6_K, columns: 96) == .q8_0)
        #expect(QuantizationMix.fitting(.iq4_XS, columns: 64) == .iq4_NL && QuantizationMix.fitting(.q2_K, columns: 33) == .f16)
        #expect(QuantizationMix.fitting(.q4_K, columns: 512) == .q4_K)
    }

    @Test("[H1] every type of large blocks has one of smaller blocks, and the steps of mixtures are those that were measured")
    func choices() {
        for type in ModelQuantizer.writable where type.blockElements > 32 {
            #expect(type.smallerBlocks.map { $0.isWritable && $0.blockElements <= 32 } ?? false, "\(type)")
        }
        #expect(MixtureSearch.ladder == [.q2_K, .q3_K, .q4_K, .q5_K, .q6_K, .q8_0])
        #expect(TensorType.allCases.filter(\.needsImportance) == [.iq2_XXS, .iq2_XS, .iq3_XXS, .iq2_S])
    }

    @Test("types that can be written are encoded and decoded, numbers as they are") func writable() {
        let numbers = Self.numbers(256)
        for type in ModelQuantizer.writable {
            let decoded = type.decode(type.encode(numbers), count: 256)
            #expect(error(numbers, decoded) < 0.3 * error(numbers, [Float](repeating: 0, count: 256)), "\(type)")
        }
        #expect(TensorType.f32.decode(TensorType.f32.encode(numbers), count: 256) == numbers)
        // Halves are rounded to even; a number that is none stays so.
        let rounded = TensorType.bf16.decode(TensorType.bf16.encode([1.00390625, 1.01171875, .nan, .infinity]), count: 4)
        #expect(rounded[0] == 1 && rounded[1] == 1.015625 && rounded[2].isNaN && rounded[3] == .infinity)
    }

    @Test("a type that was asked for is not replaced by another one that fits") func overridesThatDoNotFit() throws {
        let file = try TinyModel().file()
        let url = output()
        defer { unlink(url.path) }
        #expect { try self.quantize(file, .q8_0, overrides: [(try Regex("attn_q"), .q4_K)], to: url) } throws: {
            "\($0)".contains("attn_q.weight") && "\($0)".contains("rows of 64")
        }
        // Mixtures of 16 bits have them too.
        _ = try quantize(file, .f16, overrides: [(try Regex("attn_q"), .q8_0)], to: url)
        let types = try GGUFFile(path: url.path).tensors.mapValues(\.type)
        #expect(types["blk.0.attn_q.weight"] == .q8_0 && types["blk.0.attn_k.weight"] == .f16)
    }

    private func output() -> URL { FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString + ".gguf") }

    private func quantize(
        _ file: TemporaryFile, _ mix: QuantizationMix, importance: ImportanceMatrix? = nil, requantize: Bool = false,
        overrides: [(pattern: Regex<AnyRegexOutput>, type: TensorType)] = [], to url: URL,
        progress: (Double) throws -> Void = { _ in }
    ) throws -> ModelQuantizer.Result {
        let model = try GGUFFile(path: file.path)
        let types = try mix.types(of: model, hasImportance: importance != nil, overrides: overrides)
        return try ModelQuantizer.write(
            model, types: types, fileType: mix, importance: importance, allowsQuantized: requantize, to: url, progress: progress)
    }

    @Test("[H1] a whole model: the same bytes twice, metadata, overrides, no quantising again unasked")
    func wholeModel() throws {
        let file = try TinyModel().file()
        let (one, two) = (output(), output())
        defer { for url in [one, two] { unlink(url.path) } }
        let result = try quantize(file, .q8_0, overrides: [(try Regex("attn_v"), .f16)], to: one)
        _ = try quantize(file, .q8_0, overrides: [(try Regex("attn_v"), .f16)], to: two)
        #expect(try Data(contentsOf: one) == Data(contentsOf: two) && result.bytes > 0)
        let (before, after) = (try GGUFFile(path: file.path), try GGUFFile(path: one.path))
        #expect(try after.metadata.integer("general.file_type", in: 0...100) == 7)
        #expect(after.tensorNames == before.tensorNames && Set(before.metadata.keys).isSubset(of: after.metadata.keys))
        for name in after.tensorNames {
            let (tensor, original) = (try #require(after.tensors[name]), try #require(before.tensors[name]))
            let isMatrix = tensor.shape.count > 1
            #expect(tensor.type == (name.contains("attn_v") ? .f16 : isMatrix ? .q8_0 : .f32))
            for (value, wanted) in zip(try after.values(of: tensor), try before.values(of: original)) {
                #expect(abs(value - wanted) <= abs(wanted) / 100 + 0.05)
            }
        }
        #expect(throws: ModelError.self) { try self.quantize(TemporaryFile([UInt8](Data(contentsOf: one))), .q4_0, to: two) }
        _ = try quantize(TemporaryFile([UInt8](Data(contentsOf: one))), .q4_0, requantize: true, to: two)
        // The model itself is never overwritten, and a stopped run leaves no file.
        #expect(throws: ModelError.self) { try self.quantize(file, .q8_0, to: URL(filePath: file.path)) }
        unlink(two.path)
        #expect(throws: CancellationError.self) { try self.quantize(file, .q8_0, to: two) { _ in throw CancellationError() } }
        let folder = try FileManager.default.contentsOfDirectory(atPath: two.deletingLastPathComponent().path)
        #expect(!folder.contains { $0.hasPrefix(two.lastPathComponent) })
    }

    @Test("[H1] importance matrices: measured, written, read") func importance() throws {
        let file = try TinyModel().file()
        let measurement = try TextMeasurement(path: file.path, window: 8)
        var matrix = ImportanceMatrix()
        matrix.datasets = ["a.txt"]
        for window in [[1, 2, 3, 4], [5, 6, 7, 3]] as [[TokenID]] {
            try measurement.collect(window, into: &matrix, isCancelled: { false })
        }
        let model = try GGUFFile(path: file.path)
        let matrices = model.tensorNames.filter { $0.hasPrefix("blk.") && model.tensors[$0]?.shape.count == 2 }
        #expect(Set(matrix.columns.keys) == Set(matrices) && matrix.chunks == 2)
        for name in matrices {
            let (item, tensor) = (try #require(matrix.columns[name]), try #require(model.tensors[name]))
            #expect(item.sums[0].count == tensor.shape[0] && item.counts == [8] && item.sums[0].allSatisfy { $0 >= 0 })
        }
        // Matrices with the same input have the same sums.
        #expect(matrix.columns["blk.0.attn_q.weight"]?.sums == matrix.columns["blk.0.attn_v.weight"]?.sums)
        let url = output()
        defer { unlink(url.path) }
        try matrix.write(to: url)
        let read = try ImportanceMatrix(contentsOf: url)
        #expect(read.chunks == 2 && read.datasets == ["a.txt"])
        #expect(read.columns.mapValues(\.sums) == matrix.columns.mapValues(\.sums))
        let quantized = output()
        defer { unlink(quantized.path) }
        #expect(try quantize(file, .q4_0, importance: read, to: quantized).withoutImportance.isEmpty)
        #expect(try GGUFFile(path: quantized.path).metadata.integer("quantize.imatrix.chunks_count", in: 0...9) == 2)
        #expect(throws: ModelError.self) { try ImportanceMatrix(contentsOf: URL(filePath: file.path)) }
    }

    @Test("[H1] the importance of experts: each with the rows that it was chosen for") func importanceOfExperts() throws {
        let source = output()
        defer { unlink(source.path) }
        var builder = try ModelRecipe.load("qwen3moe").builder()
        builder.metadata.removeAll { $0.0.hasPrefix("tokenizer.") }
        builder.metadata += TinyModel().builder().metadata.filter { $0.0.hasPrefix("tokenizer.") }
        try Data(builder.bytes()).write(to: source)
        let measurement = try TextMeasurement(path: source.path, window: 16)
        var matrix = ImportanceMatrix()
        try measurement.collect(Array(1...12), into: &matrix, isCancelled: { false })
        for part in ["gate", "up", "down"] {
            let item = try #require(matrix.columns["blk.1.ffn_\(part)_exps.weight"])
            // Three of ten experts for each token.
            #expect(item.counts.count == 10 && item.counts.reduce(0, +) == 36 && item.counts.contains { $0 > 0 })
            for (sums, count) in zip(item.sums, item.counts) { #expect((sums.reduce(0, +) > 0) == (count > 0)) }
        }
        #expect(matrix.columns["blk.1.ffn_gate_exps.weight"]?.sums == matrix.columns["blk.1.ffn_up_exps.weight"]?.sums)
        let url = output()
        defer { unlink(url.path) }
        try matrix.write(to: url)
        let read = try ImportanceMatrix(contentsOf: url)
        let file = try GGUFFile(path: source.path)
        let values = try read.values(of: try #require(file.tensors["blk.1.ffn_up_exps.weight"]))
        #expect(values?.count == 10)
        try read.check(file, datasets: [])
    }

    @Test("[H1] a model does not diverge from itself, and more from fewer bits") func divergence() throws {
        let file = try TinyModel().file()
        let window: [TokenID] = (0..<24).map { TokenID(3 + $0 % 20) }
        let first = try TextMeasurement(path: file.path, window: 32)
        let expected = try WindowPredictions(window, by: first, isCancelled: { false })
        var means: [Double] = []
        for mix in [QuantizationMix.f16, .q8_0, .q4_0] {
            let url = output()
            defer { unlink(url.path) }
            _ = try quantize(file, mix, to: url)
            let other = try TextMeasurement(path: url.path, window: 32)
            var divergence = ModelDivergence()
            try divergence.add(window, expected, other, isCancelled: { false })
            #expect(divergence.count == 11 && divergence.quantile(1) >= divergence.quantile(0.5))
            means.append(divergence.mean)
        }
        #expect(means[0] < means[2] && means[1] < means[2])
        var same = ModelDivergence()
        try same.add(window, expected, TextMeasurement(path: file.path, window: 32), isCancelled: { false })
        #expect(same.mean < 1e-6 && same.equalShare == 1)
        // The perplexity is that of the log-probabilities of the engine's own scoring.
        let losses = same.losses.map(\.first)
        #expect(ModelDivergence.perplexity(losses).value == exp(losses.reduce(0, +) / Double(losses.count)))
    }

    @Test("[H1] a mixture keeps to a size, and with more bytes it diverges less") func mixtureSearch() throws {
        let file = try TinyModel().file()
        let model = try GGUFFile(path: file.path)
        let temporary = output()
        let window: [TokenID] = (0..<24).map { TokenID(3 + $0 % 20) }
        let search = try MixtureSearch(
            model, importance: nil, windows: { _ in [window] }, temporary: temporary, isCancelled: { false }, progress: { _ in })
        #expect(!FileManager.default.fileExists(atPath: temporary.path))
        let whole = search.mixture()
        #expect(whole.bytes > search.smallestBytes)
        var last = Double.infinity
        for share in [0.0, 0.3, 0.6, 1] {
            let limit = search.smallestBytes + Int(share * Double(whole.bytes - search.smallestBytes))
            let mixture = search.mixture(bytes: limit)
            #expect(mixture.bytes <= limit && mixture.divergence <= last && mixture.curve.last?.bytes == mixture.bytes)
            last = mixture.divergence
        }
        let some = search.mixture(divergence: whole.divergence * 2)
        #expect(some.divergence <= whole.divergence * 2 && some.bytes <= whole.bytes)
        // What is chosen can be written.
        let url = output()
        defer { unlink(url.path) }
        _ = try ModelQuantizer.write(
            model, types: some.types, fileType: .q4_K_M, importance: nil, allowsQuantized: false, to: url, progress: { _ in })
        #expect(try FileManager.default.attributesOfItem(atPath: url.path)[.size] as? Int ?? .max <= some.bytes)
        #expect(throws: CancellationError.self) {
            try MixtureSearch(
                model, importance: nil, windows: { _ in [window] }, temporary: temporary, isCancelled: { true },
                progress: { _ in })
        }
    }

    @Test("[H1] numbers that a type cannot hold, and importance that is none, are errors") func extremeNumbers() throws {
        var builder = TinyModel().builder()
        let index = try #require(builder.tensors.firstIndex { $0.name == "blk.0.ffn_gate.weight" })
        builder.tensors[index].data.withUnsafeMutableBytes { $0.storeBytes(of: Float(1e30).bitPattern, as: UInt32.self) }
        let file = try TemporaryFile(builder.bytes())
        let url = output()
        for mix in [QuantizationMix.f16, .q8_0, .q4_0] {
            #expect(throws: ModelError.self) { try self.quantize(file, mix, to: url) }
        }
        #expect(!FileManager.default.fileExists(atPath: url.path))
        let good = try TinyModel().file()
        var matrix = ImportanceMatrix()
        matrix.columns["blk.0.attn_q.weight"] = .init(sums: [[Float](repeating: 1, count: 64)], counts: [.leastNonzeroMagnitude])
        #expect(throws: ModelError.self) { try self.quantize(good, .q4_0, importance: matrix, to: url) }
        #expect(throws: ModelError.self) { try matrix.check(GGUFFile(path: good.path), datasets: ["other.txt"]) }
    }
}
