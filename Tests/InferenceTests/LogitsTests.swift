import CKernels
import Foundation
import TestSupport
import Testing

@testable import Inference

struct LogitsTests {
    /// Compares a real model with llama.cpp. Both quantise activations to 8 bits, but at different points and in
    /// different orders, so log-probabilities differ by a random error; measured over all prompts: mean 0.05–0.1,
    /// maximum about 0.5. The bounds are twice that; a wrong kernel, scale or rotation causes errors of several units.
    @Test(arguments: InstructionSet.available.filter { $0 != .scalar })
    func smallModelEqualsLlamaCpp(set: InstructionSet) throws {
        let cases = try GoldenFile.load("logits", as: [GoldenFile.Logits].self)
        #expect(cases.count >= 20)
        let model = try NeuralModel(file: GGUFFile(path: SmallModel.path), pool: WorkerPool(instructionSet: set))
        let cache = try KVCache(shape: model.shape, capacity: 4096)
        var differences: [Double] = []
        for test in cases {
            cache.rewind(to: 0)
            try model.forward(test.tokens[...], cache: cache)
            let logits = model.logits.map(Double.init)
            let maximum = logits.max() ?? 0
            let logTotal = log(logits.reduce(0) { $0 + exp($1 - maximum) }) + maximum
            let found = test.top.map { logits[$0] - logTotal }
            for (a, b) in zip(found, test.logProbabilities) { differences.append(abs(a - b)) }
            // The most probable token is the same unless the two best tokens of the reference have similar
            // probabilities.
            if test.logProbabilities[0] - test.logProbabilities[1] > 0.5 {
                #expect(logits.firstIndex(of: maximum) == test.top[0], "\(test.prompt)")
            }
        }
        let mean = differences.reduce(0, +) / Double(differences.count)
        let worst = differences.max() ?? 0
        print("log-probabilities against llama.cpp, \(set): mean difference \(mean), maximum \(worst)")
        #expect(mean < 0.2)
        #expect(worst < 1.0)
    }

    /// Results must be bit-identical, regardless of the cache contents and of how tokens are split into batches.
    @Test(arguments: InstructionSet.available.filter { $0 != .scalar })
    func batchesDoNotMatter(set: InstructionSet) throws {
        let model = try NeuralModel(file: GGUFFile(path: SmallModel.path), pool: WorkerPool(threads: 2, instructionSet: set))
        let tokens = (0..<700).map { TokenID($0 * 7919 % 49_000 + 50) }
        let cache = try KVCache(shape: model.shape, capacity: 1024)
        try model.forward(tokens[...], cache: cache)
        let atOnce = Array(model.logits)
        for cuts in [[699], [17, 300, 695, 696, 697, 698, 699], [256, 512]] {
            cache.rewind(to: 0)
            var start = 0
            for end in cuts + [700] {
                try model.forward(tokens[start..<end], cache: cache)
                start = end
            }
            #expect(Array(model.logits) == atOnce, "\(set) cut at \(cuts)")
        }
    }

    static func values(of path: String) throws -> [String: [Float]] {
        let file = try GGUFFile(path: path)
        return try file.tensors.mapValues(file.values)
    }

    /// The tolerated error of tiny models' logits compared with double precision, relative to their root mean square.
    static func tolerance(_ type: TensorType) -> Double {
        switch type {
        case .f32, .f16, .bf16: 2e-3  // the KV cache is binary16
        default: 0.05  // activations are quantised to 8 bits
        }
    }

    @Test(arguments: TensorType.allCases)
    func tinyModelsEqualTheFormulas(type: TensorType) throws {
        var tiny = TinyModel()
        tiny.type = type
        (tiny.width, tiny.feedForward, tiny.heads, tiny.kvHeads) = type.blockElements > 32 ? (256, 512, 4, 2) : (96, 160, 6, 2)
        try compare(tiny, tokenCounts: [1, 2, 17, 40, 5, 9, 23, 31])
    }

    @Test func oddShapes() throws {
        var tiny = TinyModel()
        (tiny.width, tiny.feedForward, tiny.heads, tiny.kvHeads) = (70, 37, 7, 1)  // heads of 10 dimensions
        try compare(tiny, tokenCounts: [1, 19])
        (tiny.width, tiny.feedForward, tiny.heads, tiny.kvHeads) = (52, 33, 26, 2)  // 13 heads share one KV head
        try compare(tiny, tokenCounts: [1, 19])
        tiny.hasOutputHead = false
        try compare(tiny, tokenCounts: [1, 19, 33])
    }

    /// From position 512 on, attention may use products of bfloat16: the same ones however the prompt is divided, and with
    /// the tolerated error.
    @Test func longPrompts() throws {
        var tiny = TinyModel()
        (tiny.type, tiny.context) = (.q8_0, 1_024)
        (tiny.width, tiny.feedForward, tiny.heads, tiny.kvHeads) = (192, 160, 6, 1)
        let file = try tiny.file()
        var random = SeededGenerator(5)
        let tokens = (0..<700).map { _ in TokenID.random(in: 0..<256, using: &random) }
        let reference = ReferenceTransformer(tiny, values: try Self.values(of: file.path))
        let expected = reference.logits(tokens)
        let spread = (expected.reduce(0) { $0 + $1 * $1 } / Double(expected.count)).squareRoot()
        for set in InstructionSet.available {
            let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 2, instructionSet: set))
            for format in [CacheFormat.binary16, .int8] {
                var results: [[Float]] = []
                for parts in [[700], [505, 14, 181], [511, 1, 1, 187], [513, 100, 86, 1], [256, 256, 188]] {
                    let cache = try KVCache(shape: model.shape, capacity: 1_024, format: format)
                    var start = 0
                    for part in parts {
                        try model.forward(tokens[start..<start + part], cache: cache)
                        start += part
                    }
                    results.append(Array(model.logits))
                }
                #expect(results.allSatisfy { $0 == results[0] }, "\(set) \(format)")
                let error = zip(results[0], expected).reduce(0) { $0 + pow(Double($1.0) - $1.1, 2) } / Double(expected.count)
                #expect(error.squareRoot() <= Self.tolerance(.q8_0) * spread, "\(set) \(format)")
            }
        }
    }

    private func compare(_ tiny: TinyModel, tokenCounts: [Int]) throws {
        let file = try tiny.file()
        let reference = ReferenceTransformer(tiny, values: try Self.values(of: file.path))
        var random = SeededGenerator(9)
        let cases = tokenCounts.map { count in
            let tokens = (0..<count).map { _ in TokenID.random(in: 0..<256, using: &random) }
            return (tokens, reference.logits(tokens))
        }
        var errors: [InstructionSet: Double] = [:]
        for set in InstructionSet.available {
            let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 2, instructionSet: set))
            for (index, (tokens, expected)) in cases.enumerated() {
                let count = tokens.count
                // Quantized activations: the error of a single case depends on chance, up to 5.7 % for the scalar kernels. The
                // first four hold the tolerance each (except Q6_K where sums are integers: 5.5 %), the others on average.
                let isExempt = index >= 4 || tiny.type == .q6_K && model.kernels.sumsBlocks
                let slack = isExempt && Self.tolerance(tiny.type) > 0.01 ? 1.25 : 1
                let cache = try KVCache(shape: model.shape, capacity: 64)
                // The whole prompt in one call, and the last token in a separate call: the cache must not affect the
                // result.
                try model.forward(tokens[...], cache: cache)
                let atOnce = Array(model.logits)
                cache.rewind(to: count - 1)
                try model.forward(tokens[(count - 1)...], cache: cache)
                let step = Array(model.logits)
                let spread = (expected.reduce(0) { $0 + $1 * $1 } / Double(expected.count)).squareRoot()
                for found in [atOnce, step] {
                    let error = zip(found, expected).reduce(0) { $0 + pow(Double($1.0) - $1.1, 2) } / Double(expected.count)
                    #expect(error.squareRoot() <= slack * Self.tolerance(tiny.type) * spread, "\(set) \(tiny.type) \(count)")
                    errors[set, default: 0] += error.squareRoot() / spread / Double(2 * cases.count)
                }
            }
        }
        let scalar = try #require(errors[.scalar])
        for (set, error) in errors {
            #expect(error <= Self.tolerance(tiny.type), "\(set) \(tiny.type)")
            // No instruction set pays for its speed with accuracy.
            if Self.tolerance(tiny.type) > 0.01 { #expect(error <= 1.15 * scalar, "\(set) \(tiny.type)") }
        }
    }

    @Test func dequantizationEqualsTheReference() throws {
        let tests = try GoldenFile.load("dequantized", as: [GoldenFile.Dequantized].self)
        // gguf-py does not decode these.
        let unknown = ["F32", "Q1_0", "Q2_0"]
        #expect(Set(tests.map(\.type) + unknown) == Set(TensorType.allCases.map(\.name)))
        for test in tests {
            let type = try #require(TensorType.allCases.first { $0.name == test.type })
            let bytes = stride(from: 0, to: test.bytes.count, by: 2).map { offset -> UInt8 in
                let start = test.bytes.index(test.bytes.startIndex, offsetBy: offset)
                return UInt8(test.bytes[start...].prefix(2), radix: 16) ?? 0
            }
            var values = [Float](repeating: 0, count: test.values.count)
            ck_dequantize(type.kernelType, bytes, values.count, &values)
            for (a, b) in zip(values, test.values) { #expect(abs(a - b) <= 1e-6 * max(1, abs(b)), "\(test.type)") }
        }
    }

    /// Frequencies of each kind of context extension, compared with values calculated with the papers' formulas.
    @Test func rotaryScaling() throws {
        func table(_ rope: [(String, GGUFBuilder.Value)]) throws -> RotaryTable {
            var tiny = TinyModel()
            tiny.rope = rope
            let file = try tiny.file()
            return try withExtendedLifetime(file) {
                RotaryTable(try ModelShape(file: GGUFFile(path: file.path)).rotaries[0])
            }
        }
        let plain = try table([])
        #expect(plain.frequencies[0] == 1 && abs(plain.frequencies[4] - 0.01) < 1e-12)
        let linear = try table([("llama.rope.scaling.type", .string("linear")), ("llama.rope.scaling.factor", .float32(4))])
        #expect(linear.frequencies[0] == 0.25)
        let yarn = try table([
            ("llama.rope.scaling.type", .string("yarn")), ("llama.rope.scaling.factor", .float32(4)),
            ("llama.rope.scaling.original_context_length", .uint32(128)),
        ])
        #expect(yarn.frequencies[0] == 1)  // many rotations within 128 positions: kept
        #expect(abs(yarn.frequencies[7] - plain.frequencies[7] / 4) < 1e-12)  // few rotations: interpolated
        #expect(abs(yarn.magnitude - (1 + 0.1 * log(4.0))) < 1e-12)
    }

    @Test func cancelledForwardKeepsFinishedBatches() throws {
        let file = try TinyModel().file()
        let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 1))
        let cache = try KVCache(shape: model.shape, capacity: 512)
        var asked = 0
        #expect(throws: CancellationError.self) {
            try model.forward(Array(repeating: 5, count: 400)[...], cache: cache) {
                asked += 1
                return asked > 3
            }
        }
        #expect(cache.tokens.count == 256)
        #expect(asked == 4)
    }
}
