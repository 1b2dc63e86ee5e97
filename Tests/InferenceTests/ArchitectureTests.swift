import Foundation
import TestSupport
import Testing

@testable import Inference

/// Compares tiny random models of every architecture with logits that llama.cpp computed from the same files.
///
/// `Golden/Architectures` contains recipes: metadata, shapes, and ranges of random numbers that can be reproduced in
/// any language (written by `Tests/Tools/record_architectures.py`).
struct ArchitectureTests {
    typealias Recipe = ModelRecipe

    /// The mean square of the differences, relative to the mean square of the reference.
    private func error(_ found: [Float], _ expected: [Double]) -> Double {
        let difference = zip(found, expected).reduce(0) { $0 + pow(Double($1.0) - $1.1, 2) }
        return difference / expected.reduce(0) { $0 + $1 * $1 }
    }

    /// Kernels rely on these: a wrong size would make them write outside their memory.
    @Test(arguments: [
        ("llama", "llama.rope.dimension_count", GGUFBuilder.Value.uint32(64)),
        ("gemma4", "gemma4.rope.dimension_count_swa", .uint32(64)),
        ("gemma4", "gemma4.attention.head_count_kv", .int32s([2, 1, 2, 1, 1, 2, 1])),
        ("gemma4", "gemma4.attention.head_count_kv", .int32s([2, 1, 2, 1, 2, 2, 2])),
    ])
    func impossibleSizes(name: String, key: String, value: GGUFBuilder.Value) throws {
        var builder = try Recipe.load(name).builder()
        let place = try #require(builder.metadata.firstIndex { $0.0 == key })
        builder.metadata[place].1 = value
        let file = try TemporaryFile(builder.bytes())
        #expect { try ModelFamily.shape(of: GGUFFile(path: file.path)) } throws: { error in
            if case ModelError.invalid = error { true } else { false }
        }
    }

    @Test func thereAreRecipes() { #expect(Recipe.names.count >= 25) }

    @Test(arguments: Recipe.names)
    func logitsEqualTheReference(name: String) throws {
        let recipe = try Recipe.load(name)
        let file = try TemporaryFile(recipe.builder().bytes())
        for set in [InstructionSet.scalar, InstructionSet.available.last ?? .scalar] {
            let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 2, instructionSet: set))
            for (position, expected) in zip(recipe.positions, recipe.logits) {
                // In one batch, in two batches, and with the last token separately: states and caches must not affect
                // the result.
                for cut in Set([0, position / 2, position]) {
                    let cache = try KVCache(shape: model.shape, capacity: recipe.context)
                    if cut > 0 { try model.forward(recipe.tokens[..<cut], cache: cache, wantsLogits: false) }
                    try model.forward(recipe.tokens[cut...position], cache: cache)
                    let error = error(Array(model.logits), expected)
                    #expect(error <= 1e-4, "\(name), position \(position), cut at \(cut), \(set)")
                }
            }
        }
    }

    /// A profile measures the same computation.
    @Test(arguments: Recipe.names)
    func profilesChangeNothing(name: String) throws {
        let recipe = try Recipe.load(name)
        let file = try TemporaryFile(recipe.builder().bytes())
        let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 2))
        var results: [[Float]] = []
        func compute() throws {
            let cache = try KVCache(shape: model.shape, capacity: recipe.context)
            try model.forward(recipe.tokens[..<24], cache: cache)
            results.append(Array(model.logits))
        }
        try compute()
        let times = try model.profile(compute)
        #expect(results[0] == results[1])
        #expect(times.contains { $0.name == "products" && $0.calls > 0 && $0.weightBytes > 0 })
        let calls = try model.calls(of: compute)
        #expect(results[0] == results[2])
        let multiplied = Set(calls.flatMap(\.factors).compactMap(\.tensor))
        #expect(multiplied == Set(model.weights.origins.filter(\.isAdaptable).map(\.name)))
    }

    /// The tokens of several sequences in one batch give the logits that they give alone, bit for bit.
    @Test(arguments: Recipe.names)
    func batchesOfSequencesChangeNothing(name: String) throws {
        let recipe = try Recipe.load(name)
        let file = try TemporaryFile(recipe.builder().bytes())
        for set in [InstructionSet.scalar, InstructionSet.available.last ?? .scalar] {
            let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 2, instructionSet: set))
            // A sequence of one token, one that continues with a single token, one with several, and a long prompt.
            let starts = [0, 20, 7, 0], ends = [1, 21, 12, 24]
            var alone: [[Float]] = []
            var caches: [KVCache] = []
            for (start, end) in zip(starts, ends) {
                let cache = try KVCache(shape: model.shape, capacity: recipe.context)
                try model.forward(recipe.tokens[..<end], cache: cache)
                alone.append(Array(model.logits))
                let other = try KVCache(shape: model.shape, capacity: recipe.context)
                if start > 0 { try model.forward(recipe.tokens[..<start], cache: other, wantsLogits: false) }
                caches.append(other)
            }
            let tokens = zip(starts, ends).flatMap { recipe.tokens[$0..<$1] }
            let counts = zip(starts, ends).map { $1 - $0 }
            for (cache, count) in zip(caches, counts) { try cache.reserve(count) }
            try tokens.withUnsafeBufferPointer {
                var none: [RowState] = []
                try model.forward($0, parts: zip(caches, counts).map { PassPart($0, $1) }, states: &none) { false }
            }
            let rows = counts.indices.map { counts[...$0].reduce(-1, +) }
            model.computeLogits(ofRows: rows[...], candidates: nil)
            for index in rows.indices { #expect(Array(model.logits(index)) == alone[index], "\(name) \(set), sequence \(index)") }
            // So are those of a few tokens, also of one panel of the output matrix; a soft cap is computed in another way.
            let candidates = [0, 3, 17, 18, model.shape.vocabularySize - 1]
            model.computeLogits(ofRows: rows[...], candidates: candidates.map { TokenID($0) })
            for index in rows.indices {
                let error = candidates.map { abs(model.logits(index)[$0] - alone[index][$0]) }.max() ?? .infinity
                #expect(error <= (model.shape.logitSoftCap > 0 ? 1e-4 : 0), "\(name) \(set), sequence \(index)")
            }
            for (cache, end) in zip(caches, ends) { #expect(cache.tokens == Array(recipe.tokens[..<end])) }
        }
    }

    /// Invalid metadata of each architecture results in a typed error or in a model that can be run.
    @Test(arguments: Recipe.names)
    func damagedMetadata(name: String) throws {
        let recipe = try Recipe.load(name)
        let whole = recipe.builder()
        var random = SeededGenerator(recipe.seed)
        var rejected = 0
        func use(_ builder: GGUFBuilder, _ what: @autoclosure () -> String) throws {
            let file = try TemporaryFile(builder.bytes())
            do {
                let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 1))
                let cache = try KVCache(shape: model.shape, capacity: 16)
                try model.forward(recipe.tokens[..<3], cache: cache)
            } catch is ModelError {
                rejected += 1
            } catch {
                Issue.record("\(what()): \(error)")
            }
        }
        for (index, entry) in whole.metadata.enumerated() {
            // Most keys are those of many architectures, so that each needs one kind of damage.
            for value in Self.damaged(entry.1).shuffled(using: &random).prefix(1) {
                var builder = whole
                builder.metadata[index].1 = value
                try use(builder, "\(entry.0) = \(value)")
            }
            var builder = whole
            builder.metadata.remove(at: index)
            try use(builder, "without \(entry.0)")
        }
        for index in whole.tensors.indices.shuffled(using: &random).prefix(10) {
            var builder = whole
            builder.tensors.remove(at: index)
            try use(builder, "without \(whole.tensors[index].name)")
            builder = whole
            builder.tensors[index].shape.reverse()
            try use(builder, "\(whole.tensors[index].name) with reversed shape")
        }
        #expect(rejected > 10)
    }

    private static func damaged(_ value: GGUFBuilder.Value) -> [GGUFBuilder.Value] {
        let integers: [UInt32] = [0, 1, 2, 3, 7, 64, 1 << 16, 1 << 31, .max]
        let floats: [Float] = [0, -1, 1e-30, 1e30, .infinity, .nan]
        switch value {
        case .uint32: return integers.map { .uint32($0) } + [.string("two"), .float32(1.5), .int32s([-1])]
        case .float32: return floats.map { .float32($0) } + [.uint32(0), .bool(true)]
        case .bool(let value): return [.bool(!value), .uint32(1)]
        case .string: return [.string(""), .string("none"), .uint32(1)]
        case .strings(let values): return [.strings([]), .strings(Array(values.prefix(1))), .uint32(1)]
        case .int32s(let values):
            return [
                .int32s([]), .int32s([Int32.min]), .int32s(values.map { _ in 0 }), .int32s(values.map { _ in Int32.max }),
                .uint32(1),
            ]
        case .uint32s(let values):
            return [.uint32s([]), .uint32s([0])] + integers.map { integer in .uint32s(values.map { _ in integer }) }
        case .float32s(let values):
            return [.float32s([])] + floats.map { float in .float32s(values.map { _ in float }) }
        case .bytes, .arrays: return [.bytes([]), .arrays([[1], []])]
        case .bools(let values): return [.bools([]), .bools(values.map { !$0 }), .bools(values.map { _ in true })]
        }
    }

    /// A cache that is read from a file continues like the one that was written, and can be rewound to the same positions.
    @Test(arguments: Recipe.names, [CacheFormat.binary16, .int8])
    func cacheFilesChangeNothing(name: String, format: CacheFormat) throws {
        let recipe = try Recipe.load(name)
        let file = try TemporaryFile(recipe.builder().bytes())
        let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 1))
        let tokens = recipe.tokens
        let cache = try KVCache(shape: model.shape, capacity: recipe.context, format: format)
        try model.forward(tokens[..<12], cache: cache, wantsLogits: false)
        cache.addCheckpoint()
        try model.forward(tokens[12..<20], cache: cache, wantsLogits: false)
        let written = try TemporaryFile([])
        let cacheFile = CacheFile(url: URL(fileURLWithPath: written.path), model: 1)
        try cacheFile.write(cache)
        let read = try #require(try cacheFile.read(for: model, format: format) as? KVCache)
        #expect(read.tokens == cache.tokens)
        #expect(read.checkpointPositions == cache.checkpointPositions)
        for length in [20, 12] {
            #expect(read.rewind(to: length) == cache.rewind(to: length))
            try model.forward(tokens[length..<length + 4], cache: cache)
            let expected = Array(model.logits)
            try model.forward(tokens[length..<length + 4], cache: read)
            #expect(Array(model.logits) == expected, "\(name)")
        }
    }

    /// With 8 bits, the logits differ little from those with binary16, and are the same in batches of any size.
    @Test(arguments: Recipe.names)
    func cachesWith8Bits(name: String) throws {
        let recipe = try Recipe.load(name)
        let file = try TemporaryFile(recipe.builder().bytes())
        for set in [InstructionSet.scalar, InstructionSet.available.last ?? .scalar] {
            let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 2, instructionSet: set))
            func logits(_ format: CacheFormat, _ parts: [Int]) throws -> [Float] {
                let cache = try KVCache(shape: model.shape, capacity: recipe.context, format: format)
                for (start, end) in zip([0] + parts, parts) { try model.forward(recipe.tokens[start..<end], cache: cache) }
                return Array(model.logits)
            }
            let (exact, rounded) = (try logits(.binary16, [24]), try logits(.int8, [24]))
            let norm = exact.reduce(0) { $0 + $1 * $1 }
            let error = (zip(exact, rounded).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) } / norm).squareRoot()
            // Random weights have sharp attention, which amplifies small differences. Without the factors the error is about 1.
            #expect(error < 0.2, "\(name) \(set): \(error)")
            let hasAttention = model.shape.layers.contains { if case .attention = $0.mixer { true } else { false } }
            #expect(error > 0 || !hasAttention)
            #expect(try logits(.int8, [1, 2, 17, 23, 24]) == rounded, "\(name) \(set)")
        }
    }

    /// Rewinding a cache and continuing gives the same logits as a new cache, also with recurrent states.
    @Test(arguments: Recipe.names)
    func rewindingChangesNothing(name: String) throws {
        let recipe = try Recipe.load(name)
        let file = try TemporaryFile(recipe.builder().bytes())
        let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 1))
        let tokens = recipe.tokens
        let cache = try KVCache(shape: model.shape, capacity: recipe.context)
        try model.forward(tokens[..<12], cache: cache, wantsLogits: false)
        cache.addCheckpoint()
        try model.forward(tokens[12..<20], cache: cache, wantsLogits: false)
        try model.forward([(tokens[20] + 1) % 90, 5, 7], cache: cache, wantsLogits: false)
        let copy = try KVCache(shape: model.shape, capacity: recipe.context)
        try copy.copyPrefix(of: cache, count: 20)
        for other in [cache, copy] {
            let left = other.rewind(to: other.reusablePrefix(of: InputRows(tokens)))
            #expect(left == (model.shape.isRecurrent ? 12 : 20))
            try model.forward(tokens[left..<24], cache: other)
            let continued = Array(model.logits)
            let fresh = try KVCache(shape: model.shape, capacity: recipe.context)
            try model.forward(tokens[..<24], cache: fresh)
            #expect(continued == Array(model.logits), "\(name)")
        }
        // A cancelled batch has no effect on later results, regardless of which layers it changed.
        var layers = 0
        #expect(throws: CancellationError.self) {
            try model.forward(tokens[24..<30], cache: cache) {
                layers += 1
                return layers > 1
            }
        }
        try model.forward(tokens[cache.tokens.count..<30], cache: cache)
        let continued = Array(model.logits)
        let fresh = try KVCache(shape: model.shape, capacity: recipe.context)
        try model.forward(tokens[..<30], cache: fresh)
        #expect(continued == Array(model.logits), "\(name) after a cancelled batch")
    }
}
