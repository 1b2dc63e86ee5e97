import Foundation
import TestSupport
import Testing

@testable import FoundationModelsTraining
@testable import Inference
@testable import ModelTools

struct AdapterDataTests {
    private func data(_ seed: UInt64 = 1, ranks: [Int] = [4, 4, 4, 4]) -> AdapterData {
        var numbers = SeededGenerator(seed)
        var data = AdapterData(architecture: "llama")
        data.texts = ["name": "mine", "head_dimension": "16", "base_model": "tiny"]
        for ((name, rows, columns), rank) in zip(
            [("attn_q", 64, 64), ("attn_k", 32, 64), ("ffn_down", 64, 96), ("ffn_up", 96, 64)], ranks)
        {
            data.pairs["blk.1.\(name).weight"] = AdapterData.Pair(
                rank: rank, rows: rows, columns: columns, a: (0..<rank * columns).map { _ in numbers.uniform(-0.2...0.2) },
                b: (0..<rows * rank).map { _ in numbers.uniform(-0.2...0.2) }, scale: 8 / Double(rank))
        }
        return data
    }

    private func product(_ pair: AdapterData.Pair) -> [Float] {
        (0..<pair.rows * pair.columns).map { index in
            let (row, column) = (index / pair.columns, index % pair.columns)
            return Float(pair.scale)
                * (0..<pair.rank).reduce(0) { $0 + pair.b[row * pair.rank + $1] * pair.a[$1 * pair.columns + column] }
        }
    }

    private func expectEqual(_ one: AdapterData, _ other: AdapterData) {
        #expect(one.pairs.keys.sorted() == other.pairs.keys.sorted())
        for (name, pair) in one.pairs {
            guard let found = other.pairs[name] else { continue }
            #expect(zip(product(pair), product(found)).allSatisfy { abs($0 - $1) < 1e-5 }, "\(name)")
        }
    }

    private func folder() throws -> URL {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("adapter-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
    }

    @Test("[A10] .fmadapter, GGUF and PEFT have the same contents", arguments: [[4, 4, 4, 4], [4, 2, 8, 4]])
    func roundTrips(ranks: [Int]) throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // a temporary folder
        let model = try TinyModel().file()
        let original = data(ranks: ranks)
        let (own, gguf, peft) = (
            folder.appendingPathComponent("a.fmadapter"), folder.appendingPathComponent("a.gguf"),
            folder.appendingPathComponent("peft")
        )
        try original.write(to: own)
        expectEqual(original, try AdapterData(contentsOf: own))
        try AdapterData(contentsOf: own).writeGGUF(to: gguf)
        expectEqual(original, try AdapterData(importing: gguf, for: model.path))
        try AdapterData(contentsOf: own).writePEFT(to: peft)
        expectEqual(original, try AdapterData(importing: peft, for: model.path))
    }

    @Test("[A10] a small adapter has numbers of 8 bits, and nearly the same contents", arguments: [[4, 4, 4, 4], [4, 2, 8, 1]])
    func small(ranks: [Int]) throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // a temporary folder
        let original = data(ranks: ranks)
        let (large, small) = (folder.appendingPathComponent("a.fmadapter"), folder.appendingPathComponent("b.fmadapter"))
        try original.write(to: large)
        try original.write(to: small, isSmall: true)
        let read = try AdapterData(contentsOf: small)
        #expect(read.pairs.keys == original.pairs.keys && read.texts["name"] == "mine")
        for (name, pair) in original.pairs {
            let (exact, rounded) = (product(pair), product(try #require(read.pairs[name])))
            let error = zip(exact, rounded).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) }.squareRoot()
            let size = exact.reduce(0) { $0 + $1 * $1 }.squareRoot()
            #expect(error > 0 && error < 0.06 * size, "\(name): \(error / size)")
        }
        func numbers(_ url: URL) throws -> Int {
            let bytes = try Data(contentsOf: url)
            return bytes.count - 8 - bytes.prefix(8).enumerated().reduce(0) { $0 + Int($1.element) << (8 * $1.offset) }
        }
        #expect(try numbers(small) * 3 < numbers(large))
        // Written again, integers stay what they are.
        try read.write(to: large, isSmall: true)
        expectEqual(read, try AdapterData(contentsOf: large))
    }

    @Test("[A10] small adapters whose factors are missing, or are others, are errors; so are numbers that are not finite")
    func damagedSmall() throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // a temporary folder
        let url = folder.appendingPathComponent("a.fmadapter")
        let metadata = ["format": "fmadapter", "version": "1", "architecture": "llama", "alpha": "4"]
        let matrices: [SafetensorsData.Tensor] = [
            .init(name: "x.lora_a", shape: [2, 3], integers: [1, 2, 3, -4, -5, -6]),
            .init(name: "x.lora_b", shape: [4, 2], integers: [1, 2, 3, 4, 5, 6, 7, 127]),
        ]
        func factors(_ half: String, _ values: [Float]) -> SafetensorsData.Tensor {
            .init(name: "x.lora_\(half).scale", shape: [values.count], values: values)
        }
        func read(_ tensors: [SafetensorsData.Tensor]) throws -> AdapterData {
            try SafetensorsData.file(tensors, metadata: metadata, type: .f32).write(to: url)
            return try AdapterData(contentsOf: url)
        }
        let whole = try read(matrices + [factors("a", [0.5, 2]), factors("b", [1, 10])])
        #expect(whole.pairs["x"]?.a == [0.5, 1, 1.5, -8, -10, -12] && whole.pairs["x"]?.b == [1, 20, 3, 40, 5, 60, 7, 1270])
        #expect(throws: TrainingError.self) { try read(matrices) }
        #expect(throws: TrainingError.self) { try read(matrices + [factors("a", [0.5, 2])]) }
        #expect(throws: TrainingError.self) { try read(matrices + [factors("a", [0.5, 2]), factors("b", [1, 10, 100])]) }
        let all = matrices + [factors("a", [0.5, 2]), factors("b", [1, 10])]
        #expect(throws: TrainingError.self) { try read(all + [factors("c", [1])]) }
        let endless = try read(matrices + [factors("a", [0.5, .infinity]), factors("b", [1, 10])])
        #expect(throws: TrainingError.self) { try endless.write(to: url, isSmall: true) }
    }

    @Test("[A10] what PEFT folders have that cannot be represented is named") func refused() throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // a temporary folder
        let model = try TinyModel().file()
        try data().writePEFT(to: folder)
        let url = folder.appendingPathComponent("adapter_config.json")
        let plain = try String(contentsOf: url, encoding: .utf8)
        for (key, value) in [
            ("use_dora", "true"), ("modules_to_save", "[\"lm_head\"]"), ("lora_bias", "true"),
            ("init_lora_weights", "\"pissa_niter_4\""),
            ("layer_replication", "[[0, 1]]"), ("trainable_token_indices", "[1]"), ("bias", "\"all\""),
        ] {
            let changed = "{\"\(key)\": \(value)," + plain.dropFirst().replacingOccurrences(of: "\"bias\" : \"none\",", with: "")
            try changed.write(to: url, atomically: true, encoding: .utf8)
            #expect {
                try AdapterData(importing: folder, for: model.path)
            } throws: { error in
                "\(error)".contains(key)
            }
        }
        try "{".write(to: url, atomically: true, encoding: .utf8)
        #expect(throws: TrainingError.self) { try AdapterData(importing: folder, for: model.path) }
        try plain.write(to: url, atomically: true, encoding: .utf8)
        let weights = folder.appendingPathComponent("adapter_model.safetensors")
        let bytes = try Data(contentsOf: weights)
        for size in [0, 4, 100, bytes.count - 1] {
            try bytes.prefix(size).write(to: weights)
            #expect(throws: TrainingError.self) { try AdapterData(importing: folder, for: model.path) }
        }
    }

    @Test("[A10] an adapter of another model is refused with both names and fingerprints; damaged files are errors")
    func foreign() throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // a temporary folder
        let model = try TinyModel().file()
        let url = folder.appendingPathComponent("a.fmadapter")
        var foreign = data()
        foreign.texts["base_fingerprint"] = "abc123"
        foreign.texts["base_model"] = "Other model"
        try foreign.write(to: url)
        let file = try GGUFFile(path: model.path)
        #expect {
            try AdapterFile(path: url.path).check(file)
        } throws: { error in
            let text = "\(error)"
            return text.contains("Other model") && text.contains("abc123") && text.contains("tiny")
                && text.contains((try? file.fingerprint()) ?? "?")
        }
        let bytes = try Data(contentsOf: url)
        var numbers = SeededGenerator(5)
        for _ in 0..<300 {
            var damaged = bytes
            for _ in 0..<3 {
                damaged[Int.random(in: 0..<min(2_000, bytes.count), using: &numbers)] = UInt8.random(in: 0...255, using: &numbers)
            }
            if Bool.random(using: &numbers) { damaged = damaged.prefix(Int.random(in: 1..<bytes.count, using: &numbers)) }
            try damaged.write(to: url)
            // Either it is read, or it is a ModelError: never a trap.
            do { try AdapterFile(path: url.path).check(file) } catch { #expect(!error.description.isEmpty) }
        }
        // Apple's package is recognised.
        let package = folder.appendingPathComponent("apple.fmadapter")
        try FileManager.default.createDirectory(at: package, withIntermediateDirectories: true)
        try Data().write(to: package.appendingPathComponent("adapter_weights.bin"))
        #expect {
            try AdapterFile(path: package.path)
        } throws: { error in
            "\(error)".contains("Apple")
        }
    }
}
