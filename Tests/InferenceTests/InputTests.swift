import CKernels
import Foundation
import TestSupport
import Testing

@testable import Inference

/// Inputs of tokens and vectors through tiny random models, compared with logits of transformers, which
/// `Tests/Tools/record_inputs.py` recorded in `Golden/Inputs`.
@Suite struct InputTests {
    /// A recipe with the parts of an input.
    private struct Recipe: Decodable {
        struct Part: Decodable {
            var tokens: [TokenID]?
            /// The name of the random numbers of vectors.
            var vectors: String?
            var low: Float?
            var high: Float?
            var count: Int?
            /// The columns of a picture; 0 if its vectors have successive positions.
            var columns: Int?
            var visible: Bool?
        }

        let model: ModelRecipe
        let parts: [Part]
        private enum Key: CodingKey { case parts }

        init(from decoder: any Decoder) throws {
            model = try ModelRecipe(from: decoder)
            parts = try decoder.container(keyedBy: Key.self).decode([Part].self, forKey: .parts)
        }

        /// - Parameter changing: the vectors of the run of this name are others.
        func input(width: Int, changing name: String? = nil) throws -> ModelInput {
            var input = ModelInput()
            for part in parts {
                if let tokens = part.tokens { input.append(tokens) }
                guard let vectors = part.vectors, let count = part.count, let columns = part.columns else { continue }
                let values = model.numbers(
                    vectors == name ? "other" : vectors, count: count * width, low: part.low ?? 0, high: part.high ?? 0)
                let places = (0..<count).map { RowPosition(time: 0, height: $0 / max(1, columns), width: $0 % max(1, columns)) }
                input.append(
                    try EmbeddingRun(values, width: width, places: columns == 0 ? [] : places, seesItself: part.visible == true))
            }
            return input
        }
    }

    private static let names = ["qwen2", "gemma3", "qwen2vl", "qwen3vl"]

    /// A model and its input.
    private struct Fixture {
        let recipe: Recipe
        let file: TemporaryFile
        let model: NeuralModel
        let input: ModelInput

        init(_ name: String, _ set: InstructionSet = .scalar) throws {
            recipe = try ModelRecipe.load(name, in: "Inputs", as: Recipe.self)
            file = try TemporaryFile(recipe.model.builder().bytes())
            model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 2, instructionSet: set))
            input = try recipe.input(width: model.shape.width)
        }

        func cache(_ format: CacheFormat = .binary16) throws -> KVCache {
            try KVCache(shape: model.shape, capacity: recipe.model.context, format: format)
        }

        /// Processes the rows up to `end`, in one pass. Returns the logits of each.
        @discardableResult func forward(_ input: ModelInput, to end: Int, _ cache: KVCache) throws -> [[Float]] {
            let rows = cache.rows.count..<end
            try cache.reserve(rows.count)
            var none: [RowState] = []
            try Array(input.ids[rows]).withUnsafeBufferPointer {
                try model.forward($0, parts: [PassPart(cache, rows.count, of: input)], states: &none) { false }
            }
            return (0..<rows.count).map { row in
                model.computeLogits(ofRows: [row], candidates: nil)
                return Array(model.logits(0))
            }
        }

        /// The logits after one more token.
        func logits(_ cache: KVCache, _ token: TokenID = 9) throws -> [Float] {
            try model.forward([token], cache: cache)
            return Array(model.logits)
        }
    }

    @Test("equal the logits of transformers, in one pass and in two", arguments: names)
    func logitsEqualTheReference(name: String) throws {
        for set in [InstructionSet.scalar, InstructionSet.available.last ?? .scalar] {
            let fixture = try Fixture(name, set)
            let input = fixture.input
            let all = try fixture.forward(input, to: input.count, fixture.cache())
            for (position, expected) in zip(fixture.recipe.model.positions, fixture.recipe.model.logits) {
                let difference = zip(all[position], expected).reduce(0) { $0 + pow(Double($1.0) - $1.1, 2) }
                #expect(difference / expected.reduce(0) { $0 + $1 * $1 } <= 1e-4, "\(name), position \(position), \(set)")
            }
            // Within runs, before and after ranges whose rows see each other.
            for cut in [1, 7, 16, 18, 20, 27, 30, 36, 42] {
                let cache = try fixture.cache()
                try fixture.forward(input, to: cut, cache)
                let rest = try fixture.forward(input, to: input.count, cache)
                #expect(rest == Array(all[cut...]), "\(name), cut at \(cut), \(set)")
                #expect(cache.rows == input.rows)
            }
        }
    }

    @Test("vectors that are the embeddings of tokens give the logits of these tokens", arguments: ModelRecipe.names)
    func embeddingsAsVectors(name: String) throws {
        let recipe = try ModelRecipe.load(name)
        let file = try TemporaryFile(recipe.builder().bytes())
        let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 1))
        let (shape, places) = (model.shape, 5..<11)
        var tokens = Array(recipe.tokens[..<16])
        // Of per-layer embeddings, vectors have those of the padding token.
        if shape.perLayerWidth > 0 { for place in places { tokens[place] = 0 } }
        let expected = try KVCache(shape: shape, capacity: recipe.context)
        try model.forward(tokens[...], cache: expected)
        let logits = Array(model.logits)
        var embedding = model.weights.tensors.embedding
        embedding.scale *= Float(shape.embeddingScale)
        var vectors = [Float](repeating: 0, count: places.count * shape.width)
        vectors.withUnsafeMutableBufferPointer { vectors in
            guard let start = vectors.baseAddress else { return }
            for place in places {
                model.kernels.copyRow(tokens[place], of: embedding, to: start + (place - places.lowerBound) * shape.width)
            }
        }
        var input = ModelInput(tokens[..<places.lowerBound])
        input.append(try EmbeddingRun(vectors, width: shape.width))
        input.append(tokens[places.upperBound...])
        let cache = try KVCache(shape: shape, capacity: recipe.context)
        try cache.reserve(input.count)
        var none: [RowState] = []
        try input.ids.withUnsafeBufferPointer {
            try model.forward($0, parts: [PassPart(cache, input.count, of: input)], states: &none) { false }
        }
        model.computeLogits(ofRows: [input.count - 1], candidates: nil)
        #expect(Array(model.logits(0)) == logits)
    }

    // MARK: - Prefixes

    @Test("caches share the rows before different vectors, and all of equal ones", arguments: names)
    func sharedPrefixes(name: String) throws {
        let fixture = try Fixture(name)
        let (model, input) = (fixture.model, fixture.input)
        let one = try fixture.cache()
        try fixture.forward(input, to: input.count, one)
        // The runs begin at rows 5, 20 and 36; the second and the third see themselves.
        for (changed, shared) in [("one", 5), ("two", 20), ("three", 36), ("none", input.count)] {
            let other = try fixture.recipe.input(width: model.shape.width, changing: changed)
            #expect(other.ids == input.ids)
            #expect(one.reusablePrefix(of: other.rows) == shared)
            let copy = try fixture.cache()
            try copy.copyPrefix(of: one, count: one.reusablePrefix(of: other.rows))
            #expect(copy.rows == other.rows.prefix(shared))
            if shared < other.count { try fixture.forward(other, to: other.count, copy) }
            let fresh = try fixture.cache()
            try fixture.forward(other, to: other.count, fresh)
            #expect(try fixture.logits(copy) == fixture.logits(fresh), "\(changed)")
        }
    }

    @Test("a cache loses rows that have seen removed ones", arguments: names)
    func rewinding(name: String) throws {
        let fixture = try Fixture(name)
        let input = fixture.input
        for (length, left) in [(46, 46), (41, 36), (36, 36), (26, 20), (21, 20), (20, 20), (10, 10), (0, 0)] {
            let cache = try fixture.cache()
            try fixture.forward(input, to: input.count, cache)
            #expect(cache.rewind(to: length) == left)
            #expect(cache.rows == input.rows.prefix(left))
            if left < input.count { try fixture.forward(input, to: input.count, cache) }
            let fresh = try fixture.cache()
            try fixture.forward(input, to: input.count, fresh)
            #expect(try fixture.logits(cache) == fixture.logits(fresh), "rewound to \(length)")
        }
    }

    @Test("a cache file contains runs, their places and digests, and ranges", arguments: names, [CacheFormat.binary16, .int8])
    func cacheFiles(name: String, format: CacheFormat) throws {
        let fixture = try Fixture(name)
        let input = fixture.input
        let cache = try fixture.cache(format)
        // Also in the middle of a run.
        for end in [10, input.count] {
            try fixture.forward(input, to: end, cache)
            let written = try TemporaryFile([])
            let file = CacheFile(url: URL(fileURLWithPath: written.path), model: 1)
            try file.write(cache)
            let read = try #require(try file.read(for: fixture.model, format: format) as? KVCache)
            #expect(read.rows == input.rows.prefix(end) && read.rows.runs.count == (end == 10 ? 1 : 3))
            #expect(read.reusablePrefix(of: input.rows) == end)
            let other = try fixture.recipe.input(width: fixture.model.shape.width, changing: "one")
            #expect(read.reusablePrefix(of: other.rows) == 5)
            let copy = try fixture.cache(format)
            try copy.copyPrefix(of: read, count: end)
            if end < input.count { try fixture.forward(input, to: input.count, copy) }
            let fresh = try fixture.cache(format)
            try fixture.forward(input, to: input.count, fresh)
            #expect(try fixture.logits(copy) == fixture.logits(fresh))
        }
    }

    // MARK: - The engine

    /// Runs inputs in an engine, at once. Returns what each ended with.
    private func run(
        _ inputs: [ModelInput], in caches: [KVCache], _ engine: Engine
    ) throws -> [Result<Void, any Error>] {
        var results: [Int: Result<Void, any Error>] = [:]
        for (index, input) in inputs.enumerated() {
            try engine.submit(
                PrefillWork(prompt: input), in: caches[index], priority: .interactive, signals: RequestSignals()
            ) { results[index] = $0 }
        }
        for _ in 0..<1_000 where results.count < inputs.count { _ = engine.step() }
        return try inputs.indices.map { try #require(results[$0]) }
    }

    @Test("a chunk of a prompt divides no range whose rows see each other", arguments: names, [7, 8, 16])
    func chunks(name: String, batch: Int) throws {
        let fixture = try Fixture(name)
        let (model, input) = (fixture.model, fixture.input)
        let engine = Engine(
            model: model, memory: PoolMemory(),
            limits: Scheduler.Limits(batchTokens: batch, mixedTokens: 4, shortTokens: 2))
        let other = try fixture.recipe.input(width: model.shape.width, changing: "two")
        let (inputs, caches) = ([input, other, input], [try fixture.cache(), try fixture.cache(), try fixture.cache()])
        for result in try run(inputs, in: caches, engine) { try result.get() }
        #expect(engine.processedTokens == 3 * input.count)
        for (input, cache) in zip(inputs, caches) {
            #expect(cache.rows == input.rows)
            let fresh = try fixture.cache()
            try fixture.forward(input, to: input.count, fresh)
            #expect(try fixture.logits(cache) == fixture.logits(fresh))
        }
    }

    @Test("an input that no pass can have is an error of its request")
    func unusableInputs() throws {
        let fixture = try Fixture("qwen2")
        let engine = Engine(
            model: fixture.model, memory: PoolMemory(),
            limits: Scheduler.Limits(batchTokens: 6, mixedTokens: 4, shortTokens: 2))
        var narrow = ModelInput([1, 2])
        narrow.append(try EmbeddingRun([1, 2, 3], width: 3))
        let results = try run(
            [fixture.input, ModelInput([1, 2, 3]), narrow], in: (0..<3).map { _ in try fixture.cache() }, engine)
        #expect(throws: GenerationFailure.unusableInput(.rangeTooLong(rows: 7, maximum: 6))) { try results[0].get() }
        try results[1].get()
        #expect(throws: GenerationFailure.unusableInput(.wrongWidth(3, expected: fixture.model.shape.width))) {
            try results[2].get()
        }
    }

    /// Two requests with equal pictures, and one with another, at the same time and one after another. Tokens are proposed, but none
    /// for vectors.
    @Test("turns with different pictures share only what is before them", arguments: [false, true])
    func turns(seesItself: Bool) async throws {
        let file = try TinyModel().file()
        let model = try await LoadedModel.load(path: file.path, threads: 1)
        let start = (0..<40).map { TokenID($0 * 7 % 250 + 1) }
        func input(_ seed: Float) throws -> ModelInput {
            var input = ModelInput(start)
            input.append(
                try EmbeddingRun((0..<20 * 64).map { sin(seed * Float($0)) }, width: 64, seesItself: seesItself))
            // The text before the picture again.
            input.append(start.suffix(6))
            return input
        }
        func answer(_ seed: Float, _ sequence: SequenceState, proposes: Bool = true) async throws -> GenerationResult {
            var request = GenerationRequest(tokens: [], sampling: .greedy, maximumTokens: 24)
            request.input = try input(seed)
            request.bannedTokens = Array(model.tokenizer.stopTokens)
            (request.detectsLoops, request.proposesTokens) = (false, proposes)
            return try await model.generate(request, in: sequence) { _ in true }
        }
        var alone: [[TokenID]] = []
        for seed in [1, 2] as [Float] {
            let result = try await answer(seed, model.makeSequence(contextSize: 256, sharesCache: false), proposes: false)
            alone.append(result.tokens)
        }
        #expect(alone[0] != alone[1])
        let sequence = try model.makeSequence(contextSize: 256)
        #expect(try await answer(1, sequence).tokens == alone[0])
        let changed = try await answer(2, sequence)
        #expect(changed.tokens == alone[1] && changed.usage.cachedTokens == 40)
        let again = try await answer(2, model.makeSequence(contextSize: 256))
        #expect(again.tokens == alone[1] && again.usage.cachedTokens == 65)
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<6 {
                let expected = alone[number % 2]
                group.addTask {
                    let other = try model.makeSequence(contextSize: 256)
                    return try await answer(Float(number % 2 + 1), other).tokens == expected
                }
            }
            for try await isEqual in group { #expect(isEqual) }
        }
    }
}
