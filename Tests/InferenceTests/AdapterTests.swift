import CKernels
import Foundation
import TestSupport
import Testing

@testable import Inference

/// Low-rank adapters: the logits equal those of a model with merged weights.
struct AdapterTests {
    private static let targets = [
        ("blk.0.attn_q.weight", 64, 64), ("blk.1.ffn_down.weight", 96, 64), ("output.weight", 64, TinyModel.tokens.count),
    ]
    private static let rank = 4
    private static let alpha: Float = 8

    /// Random matrices for a target, row by row: a `[rank][columns]`, b `[rows][rank]`.
    private static func halves(_ columns: Int, _ rows: Int, _ random: inout SeededGenerator) -> (a: [Float], b: [Float]) {
        (
            (0..<rank * columns).map { _ in random.uniform(-0.2...0.2) },
            (0..<rows * rank).map { _ in random.uniform(-0.2...0.2) }
        )
    }

    private static func bytes(_ values: [Float]) -> [UInt8] {
        values.flatMap { withUnsafeBytes(of: $0.bitPattern.littleEndian, Array.init) }
    }

    private static func adapter() -> GGUFBuilder {
        var random = SeededGenerator(9)
        var builder = GGUFBuilder()
        builder.metadata = [
            ("general.type", .string("adapter")), ("adapter.type", .string("lora")),
            ("general.architecture", .string("llama")), ("general.name", .string("shifted")),
            ("adapter.lora.alpha", .float32(alpha)),
        ]
        for (name, columns, rows) in targets {
            let (a, b) = halves(columns, rows, &random)
            builder.tensors.append((name + ".lora_a", .f32, [columns, rank], bytes(a)))
            builder.tensors.append((name + ".lora_b", .f32, [rank, rows], bytes(b)))
        }
        return builder
    }

    /// The same weights with the low-rank product added by simple loops.
    private static func merged(_ base: GGUFBuilder) -> GGUFBuilder {
        var random = SeededGenerator(9)
        var builder = base
        for (name, columns, rows) in targets {
            let (a, b) = halves(columns, rows, &random)
            guard let index = builder.tensors.firstIndex(where: { $0.name == name }) else { continue }
            var weights = builder.tensors[index].data.withUnsafeBytes { data in
                (0..<rows * columns).map { Float(bitPattern: data.loadUnaligned(fromByteOffset: $0 * 4, as: UInt32.self)) }
            }
            for row in 0..<rows {
                for column in 0..<columns {
                    var sum: Float = 0
                    for r in 0..<rank { sum += b[row * rank + r] * a[r * columns + column] }
                    weights[row * columns + column] += alpha / Float(rank) * sum
                }
            }
            builder.tensors[index].data = bytes(weights)
        }
        return builder
    }

    private func logits(_ file: TemporaryFile, adapter: AdapterFile? = nil) throws -> [Float] {
        let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 1), adapter: adapter)
        let cache = try KVCache(shape: model.shape, capacity: 64)
        let tokens: [TokenID] = [72, 101, 108, 108, 111, 32, 119]
        try model.forward(tokens[...], cache: cache)
        return Array(model.logits)
    }

    private func distance(_ a: [Float], _ b: [Float]) -> Float {
        let norm = b.reduce(0) { $0 + $1 * $1 }
        return (zip(a, b).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) } / norm).squareRoot()
    }

    @Test("[A10] an adapter gives the logits of the merged weights") func merging() throws {
        let base = TinyModel().builder()
        let file = try TemporaryFile(Self.adapter().bytes())
        let adapter = try AdapterFile(path: file.path)
        #expect(adapter.name == "shifted")
        let adapted = try logits(TemporaryFile(base.bytes()), adapter: adapter)
        let expected = try logits(TemporaryFile(Self.merged(base).bytes()))
        let plain = try logits(TemporaryFile(base.bytes()))
        #expect(distance(adapted, expected) < 1e-5)
        #expect(distance(plain, expected) > 0.05)
    }

    @Test("[A10] an adapter changes the logits of quantised weights", arguments: [TensorType.q8_0, .q4_1])
    func quantised(type: TensorType) throws {
        var tiny = TinyModel()
        tiny.type = type
        let file = try TemporaryFile(Self.adapter().bytes())
        let adapted = try logits(TemporaryFile(tiny.builder().bytes()), adapter: AdapterFile(path: file.path))
        let plain = try logits(TemporaryFile(tiny.builder().bytes()))
        #expect(adapted.allSatisfy { $0.isFinite })
        #expect(distance(adapted, plain) > 0.05)
    }

    @Test("[A10] an adapter for another model, or a damaged one, is rejected with a ModelError") func refused() throws {
        let model = try TemporaryFile(TinyModel().builder().bytes())
        var other = Self.adapter()
        other.tensors[0].name = "blk.7.attn_q.weight.lora_a"
        other.tensors[1].name = "blk.7.attn_q.weight.lora_b"
        var wrongShape = Self.adapter()
        wrongShape.tensors[0].shape = [32, Self.rank * 2]
        for builder in [other, wrongShape] {
            let file = try TemporaryFile(builder.bytes())
            #expect(throws: ModelError.self) { try logits(model, adapter: AdapterFile(path: file.path)) }
        }
        var half = Self.adapter()
        half.tensors.removeLast()
        #expect(throws: ModelError.self) { try AdapterFile(path: TemporaryFile(half.bytes()).path) }
        #expect(throws: ModelError.self) { try AdapterFile(path: model.path) }
        var foreign = Self.adapter()
        foreign.metadata[2] = ("general.architecture", .string("gemma"))
        let file = try TemporaryFile(foreign.bytes())
        #expect(throws: ModelError.self) { try logits(model, adapter: AdapterFile(path: file.path)) }
    }

    // MARK: - Beside the weights

    /// An adapter of random values for some matrices of a model. They are values of binary16, as in files and in memory.
    private static func adapter(
        _ architecture: String, _ targets: [(name: String, columns: Int, rows: Int)], rank: Int, seed: UInt64, factor: Float = 1
    ) throws -> (file: TemporaryFile, adapter: AdapterFile) {
        var random = SeededGenerator(seed)
        var builder = GGUFBuilder()
        builder.metadata = [
            ("general.type", .string("adapter")), ("adapter.type", .string("lora")),
            ("general.architecture", .string(architecture)), ("adapter.lora.alpha", .float32(factor * Float(rank))),
        ]
        for (name, columns, rows) in targets {
            let a = (0..<rank * columns).map { _ in ck_half_to_float(ck_float_to_half(random.uniform(-0.2...0.2))) }
            let b = (0..<rank * rows).map { _ in ck_half_to_float(ck_float_to_half(random.uniform(-0.2...0.2))) }
            builder.tensors.append((name + ".lora_a", .f32, [columns, rank], bytes(a)))
            builder.tensors.append((name + ".lora_b", .f32, [rank, rows], bytes(b)))
        }
        let file = try TemporaryFile(builder.bytes())
        return (file, try AdapterFile(path: file.path))
    }

    /// In every architecture, an adapter of all matrices that it may change gives the logits of the merged weights; and in
    /// one batch, sequences with different adapters have the logits that they have alone.
    @Test("[A10] adapters beside the weights, several in one batch", arguments: ArchitectureTests.Recipe.names)
    func besideTheWeights(name: String) throws {
        let recipe = try ArchitectureTests.Recipe.load(name)
        let file = try TemporaryFile(recipe.builder().bytes())
        let gguf = try GGUFFile(path: file.path)
        let pool = try WorkerPool(threads: 2)
        let model = try NeuralModel(file: gguf, pool: pool)
        let names = Set(model.weights.origins.filter(\.isAdaptable).map(\.name)).sorted()
        let targets = names.compactMap { name in gguf.tensors[name].map { (name, $0.shape[0], $0.shape[1]) } }
        #expect(!targets.isEmpty)
        let architecture = try #require(try gguf.metadata.string("general.architecture"))
        let one = try Self.adapter(architecture, targets, rank: 3, seed: 1)
        let other = try Self.adapter(architecture, Array(targets.suffix(3)), rank: 20, seed: 2)
        let tokens = recipe.tokens[..<20]
        func logits(_ adapter: LowRankAdapter?) throws -> [Float] {
            let cache = try KVCache(shape: model.shape, capacity: recipe.context, adapter: adapter)
            try model.forward(tokens, cache: cache)
            return Array(model.logits)
        }
        var adapters: [LowRankAdapter?] = [nil]
        for file in [one.adapter, other.adapter] {
            let adapter = try #require(try LowRankAdapter([file], for: model.weights.origins, model: gguf))
            let merged = try NeuralModel(file: gguf, pool: pool, adapter: file)
            let cache = try KVCache(shape: model.shape, capacity: recipe.context)
            try merged.forward(tokens, cache: cache)
            let error = distance(try logits(adapter), Array(merged.logits))
            // Keys and values are stored in binary16, so the last bit of a sum can become the last of 11. A matrix without its
            // adapter changes much more.
            #expect(error < 2e-3, "\(name): \(error)")
            adapters.append(adapter)
        }
        let alone = try adapters.map { try logits($0) }
        #expect(distance(alone[1], alone[0]) > 0.1 && distance(alone[2], alone[1]) > 0.1)
        let caches = try adapters.map { try KVCache(shape: model.shape, capacity: recipe.context, adapter: $0) }
        for cache in caches { try cache.reserve(tokens.count) }
        try Array(tokens + tokens + tokens).withUnsafeBufferPointer { all in
            var none: [RowState] = []
            try model.forward(all, parts: caches.map { PassPart($0, tokens.count) }, states: &none) { false }
        }
        model.computeLogits(ofRows: [19, 39, 59], candidates: nil)
        for index in 0..<3 { #expect(Array(model.logits(index)) == alone[index], "\(name): \(index)") }
    }

    @Test("[A10] an adapter applies to its model after that was loaded again") func reloadedModel() throws {
        let file = try TinyModel().file()
        let gguf = try GGUFFile(path: file.path)
        let models = try (0..<2).map { _ in try NeuralModel(file: gguf, pool: WorkerPool(threads: 1)) }
        let made = try Self.adapter(
            "llama", [("blk.0.attn_q.weight", 64, 64), ("blk.1.ffn_down.weight", 96, 64)], rank: 4, seed: 1)
        let adapter = try #require(try LowRankAdapter([made.adapter], for: models[0].weights.origins, model: gguf))
        func logits(_ model: NeuralModel, _ adapter: LowRankAdapter?) throws -> [Float] {
            let cache = try KVCache(shape: model.shape, capacity: 16, adapter: adapter)
            try model.forward([5, 9, 77], cache: cache)
            return Array(model.logits)
        }
        // Both are in memory, so that their weights have different addresses.
        let first = try logits(models[0], adapter)
        #expect(try logits(models[1], adapter) == first)
        #expect(try logits(models[1], nil) != first)
    }

    @Test("[A10] an adapter of the output matrix, of a high rank, or with large values is merged instead")
    func mustBeMerged() throws {
        let model = try TemporaryFile(TinyModel().builder().bytes())
        let gguf = try GGUFFile(path: model.path)
        let origins = try NeuralModel(file: gguf, pool: WorkerPool(threads: 1)).weights.origins
        let output = try TemporaryFile(Self.adapter().bytes())
        #expect(try LowRankAdapter([AdapterFile(path: output.path)], for: origins, model: gguf) == nil)
        // Values up to 80,000 are outside the range of binary16.
        let large = try Self.adapter("llama", [("blk.0.attn_q.weight", 64, 64)], rank: 2, seed: 1, factor: 400_000)
        #expect(try LowRankAdapter([large.adapter], for: origins, model: gguf) == nil)
        let high = try Self.adapter("llama", [("blk.0.attn_q.weight", 64, 64)], rank: 257, seed: 1)
        #expect(try LowRankAdapter([high.adapter], for: origins, model: gguf) == nil)
        #expect(throws: ModelError.self) {
            let foreign = try Self.adapter("gemma", [("blk.0.attn_q.weight", 64, 64)], rank: 2, seed: 1)
            _ = try LowRankAdapter([foreign.adapter], for: origins, model: gguf)
        }
    }

    @Test("[A10] an adapter is not checked with a file that has replaced the model's") func replacedModel() async throws {
        var tiny = TinyModel()
        let file = try tiny.file()
        let model = try await LoadedModel.load(path: file.path, threads: 1)
        let targets = [("blk.0.attn_q.weight", 64, 64)]
        let first = try Self.adapter("llama", targets, rank: 2, seed: 1).file
        #expect(try await model.adapter(paths: [first.path]) != nil)
        // Another model with the same shapes.
        tiny.seed = 2
        try Data(tiny.builder().bytes()).write(to: URL(filePath: file.path), options: .atomic)
        let second = try Self.adapter("llama", targets, rank: 2, seed: 2).file
        await #expect {
            try await model.adapter(paths: [second.path])
        } throws: { error in
            if case ModelError.unreadable(file.path, let reason) = error { reason.contains("replaced") } else { false }
        }
    }

    /// Requests with different adapters at the same time have the responses that they have alone, and do not continue from
    /// each other's keys and values.
    @Test("[A10] sequences with adapters share a loaded model") func sharedModel() async throws {
        let file = try TinyModel().file()
        let model = try await LoadedModel.load(path: file.path, threads: 2)
        let targets = [("blk.0.attn_q.weight", 64, 64), ("blk.1.ffn_down.weight", 96, 64), ("blk.1.attn_v.weight", 64, 32)]
        let files = try [UInt64(3), 4].map { try Self.adapter("llama", targets, rank: 8, seed: $0).file }
        var adapters: [LowRankAdapter?] = [nil]
        for file in files {
            let adapter = try await model.adapter(paths: [file.path])
            #expect(adapter != nil)
            adapters.append(adapter)
        }
        #expect(try await model.adapter(paths: [files[0].path]) === adapters[1], "the same file is read once")
        let prompt = (0..<120).map { TokenID($0 * 11 % 250 + 1) }
        @Sendable func respond(_ adapter: LowRankAdapter?) async throws -> GenerationResult {
            let sequence = try model.makeSequence(contextSize: 256, adapter: adapter)
            return try await model.generate(
                GenerationRequest(tokens: prompt, sampling: .greedy, maximumTokens: 30), in: sequence
            ) { _ in true }
        }
        var alone: [[TokenID]] = []
        for adapter in adapters {
            let result = try await respond(adapter)
            #expect(result.usage.cachedTokens == 0, "the keys of another adapter are not used")
            alone.append(result.tokens)
            #expect(try await respond(adapter).usage.cachedTokens > 100)
        }
        #expect(Set(alone).count == 3)
        let together = try await withThrowingTaskGroup(of: (Int, [TokenID]).self) { group in
            for index in 0..<12 {
                let adapter = adapters[index % 3]
                group.addTask { (index, try await respond(adapter).tokens) }
            }
            return try await group.reduce(into: [Int: [TokenID]]()) { $0[$1.0] = $1.1 }
        }
        for index in 0..<12 { #expect(together[index] == alone[index % 3]) }
    }
}
