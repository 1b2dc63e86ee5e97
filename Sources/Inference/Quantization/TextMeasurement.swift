internal import CKernels
internal import Foundation

/// Runs a model over texts to measure it: the importance of its columns, its perplexity, its divergence from another model.
///
/// Texts are divided into windows of the same length. Of each, the second half is scored, so that every token has some context. Used by
/// one thread at a time; the calls compute and must not be made on the threads of tasks.
package final class TextMeasurement: @unchecked Sendable {
    package let path: String
    package let file: GGUFFile
    let model: DecoderModel
    private let tokenizer: Tokenizer
    let cache: KVCache

    package static let usualWindow = 512

    /// - Parameters:
    ///   - window: the length of windows in tokens.
    ///   - isKept: whether the packed weights are written to the cache, for later uses of the file.
    /// - Throws: ``ModelError`` if the model cannot be used.
    package init(path: String, window: Int = TextMeasurement.usualWindow, isKept: Bool = true) throws(ModelError) {
        self.path = path
        file = try GGUFFile(path: path)
        try ModelShape(file: file).checkGeneratesText()
        model = try DecoderModel(file: file, pool: .shared(), cache: isKept ? PackedCache.standard : nil)
        tokenizer = try Tokenizer(file: file)
        cache = try KVCache(shape: model.shape, capacity: window)
    }

    package var vocabularySize: Int { model.shape.vocabularySize }
    /// Whether another model has the same tokens with the same numbers.
    package func hasSameVocabulary(as other: TextMeasurement) -> Bool {
        func tokens(_ file: GGUFFile) -> UnsafeRawBufferPointer.SubSequence? {
            guard case .array(let array)? = file.metadata["tokenizer.ggml.tokens"] else { return nil }
            return file.header.bytes[array.range]
        }
        guard vocabularySize == other.vocabularySize, let own = tokens(file), let others = tokens(other.file) else {
            return false
        }
        return own.elementsEqual(others)
    }
    /// The memory of the weights in bytes.
    package var weightBytes: Int { model.packedBytes }
    /// The bytes of weights that a generated token reads.
    package var bytesPerToken: Int { model.bytesPerToken }

    /// The windows of texts, each with the token that begins texts of this model, if there is one. The rest of the texts is left out.
    package func windows(of texts: [String], length: Int = TextMeasurement.usualWindow, limit: Int = .max) -> [[TokenID]] {
        // What the file wants before a text.
        let (plain, whole) = (tokenizer.encode("a"), tokenizer.encode([.user("a")], addsBoundaryTokens: true))
        let beginning: [TokenID] = Array(whole.prefix(plain.first.flatMap { whole.firstIndex(of: $0) } ?? 0))
        let tokens: [TokenID] = texts.flatMap { tokenizer.encode($0) }
        let size = length - beginning.count
        let count = min(limit, tokens.count / size)
        return (0..<max(0, count)).map { (index: Int) -> [TokenID] in beginning + tokens[(index * size)..<((index + 1) * size)] }
    }

    /// Adds the squares of all activations of a window.
    package func collect(_ window: [TokenID], into matrix: inout ImportanceMatrix, isCancelled: () -> Bool) throws {
        cache.rewind(to: 0, keepsPages: true)
        // The function that receives the activations escapes. A window counts only when it is complete.
        final class Box { var matrix = ImportanceMatrix() }
        let box = Box()
        try model.observe { name, rows in
            box.matrix.add(name, rows.x, count: Int(rows.count), width: Int(rows.columns))
        } _: {
            try model.forward(window[...], cache: cache, wantsLogits: false, isCancelled: isCancelled)
        }
        matrix.add(box.matrix)
        matrix.chunks += 1
    }

    /// Passes the logits of the second half of a window to a function, row by row, with the token that follows. The function may
    /// overwrite them.
    package func score(
        _ window: [TokenID], isCancelled: () -> Bool,
        _ body: (_ row: Int, _ logits: UnsafeMutableBufferPointer<Float>, _ next: TokenID) throws -> Void
    ) throws {
        cache.rewind(to: 0, keepsPages: true)
        let first = window.count / 2
        var start = 0
        while start < window.count {
            let end = min(start + model.scratch.batch, window.count)
            try model.forward(window[start..<end], cache: cache, wantsLogits: false, isCancelled: isCancelled)
            var row = max(start, first)
            while row < end, row < window.count - 1 {
                let count = min(Scratch.maximumLogitRows, min(end, window.count - 1) - row)
                model.pass.head(count: count) { row - start + $0 }
                for index in 0..<count { try body(row + index - first, model.logits(index), window[row + index + 1]) }
                row += count
            }
            start = end
        }
    }

    /// Tokens per second of a prompt and of generation, each the best of three.
    package func speed(isCancelled: () -> Bool) throws -> (prompt: Double, generation: Double) {
        let tokens = [TokenID](repeating: 0, count: min(Self.usualWindow / 2, cache.capacity - Self.generatedTokens))
        var best = (prompt: 0.0, generation: 0.0)
        for _ in 0..<3 {
            cache.rewind(to: 0, keepsPages: true)
            var start = ContinuousClock.now
            try model.forward(tokens[...], cache: cache, isCancelled: isCancelled)
            best.prompt = max(best.prompt, Double(tokens.count) / (ContinuousClock.now - start).seconds)
            start = .now
            for _ in 0..<Self.generatedTokens { try model.forward([0][...], cache: cache, isCancelled: isCancelled) }
            best.generation = max(best.generation, Double(Self.generatedTokens) / (ContinuousClock.now - start).seconds)
        }
        return best
    }

    private static let generatedTokens = 24

    /// The logarithms of all probabilities, in place.
    package static func normalize(_ logits: UnsafeMutableBufferPointer<Float>) {
        guard let base = logits.baseAddress else { return }
        var largest = base[0]
        for index in 0..<logits.count { largest = max(largest, base[index]) }
        var sum = 0.0
        for index in 0..<logits.count { sum += Double(exp(base[index] - largest)) }
        let total = largest + Float(log(sum))
        for index in 0..<logits.count { base[index] -= total }
    }
}

/// The logarithms of all probabilities for the scored tokens of a window, `[tokens][vocabulary]`.
package struct WindowPredictions: Sendable {
    package fileprivate(set) var logarithms: [Float] = []
    package let vocabularySize: Int

    package init(_ window: [TokenID], by model: TextMeasurement, isCancelled: () -> Bool) throws {
        vocabularySize = model.vocabularySize
        var all: [Float] = []
        all.reserveCapacity(window.count / 2 * vocabularySize)
        try model.score(window, isCancelled: isCancelled) { _, logits, next in
            TextMeasurement.normalize(logits)
            guard logits[Int(next)].isFinite else {
                throw ModelError.invalid(field: model.path, reason: "computes numbers that are infinite or not a number")
            }
            all.append(contentsOf: logits)
        }
        logarithms = all
    }
}

/// How one model differs from another for the same tokens.
package struct ModelDivergence: Sendable {
    /// Of each scored token: the negative logarithm of its probability by both models, the Kullback-Leibler divergence of the other model
    /// from the first, and whether both have the same most probable token.
    package var losses: [(first: Double, other: Double)] = []
    package var divergences: [Double] = []
    package var equalTokens = 0

    package init() {}

    /// Adds what another model says of a window.
    ///
    /// - Parameter expected: what the first model says of it.
    package mutating func add(
        _ window: [TokenID], _ expected: WindowPredictions, _ other: TextMeasurement, isCancelled: () -> Bool
    ) throws {
        let size = expected.vocabularySize
        precondition(other.vocabularySize == size, "models with the same vocabulary")
        try expected.logarithms.withUnsafeBufferPointer { memory in
            guard let base = memory.baseAddress else { return }
            try other.score(window, isCancelled: isCancelled) { row, logits, next in
                TextMeasurement.normalize(logits)
                let p = base + row * size
                var (sum, pBest, qBest) = (0.0, 0, 0)
                for token in 0..<size {
                    // Less than 1e-7 of the probability: it adds nothing.
                    if !(p[token] <= -16) { sum += Double(exp(p[token])) * Double(p[token] - logits[token]) }
                    if p[token] > p[pBest] { pBest = token }
                    if logits[token] > logits[qBest] { qBest = token }
                }
                guard sum.isFinite, logits[Int(next)].isFinite, p[Int(next)].isFinite else {
                    throw ModelError.invalid(
                        field: other.path, reason: "computes numbers that are infinite or not a number")
                }
                divergences.append(max(0, sum))
                equalTokens += pBest == qBest ? 1 : 0
                losses.append((-Double(p[Int(next)]), -Double(logits[Int(next)])))
            }
        }
    }

    package var count: Int { losses.count }
    package var mean: Double { divergences.reduce(0, +) / Double(max(1, count)) }
    /// The share of tokens with the same most probable token.
    package var equalShare: Double { Double(equalTokens) / Double(max(1, count)) }

    /// The standard error of the mean divergence.
    package var meanError: Double { Self.standardError(divergences) }

    /// The divergence that a share of the tokens does not exceed.
    package func quantile(_ share: Double) -> Double {
        let sorted = divergences.sorted()
        guard !sorted.isEmpty else { return 0 }
        return sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))]
    }

    /// Perplexity with its standard error.
    package static func perplexity(_ losses: [Double]) -> (value: Double, error: Double) {
        let value = exp(losses.reduce(0, +) / Double(max(1, losses.count)))
        return (value, value * standardError(losses))
    }

    private static func standardError(_ values: [Double]) -> Double {
        guard values.count > 1 else { return 0 }
        let mean = values.reduce(0, +) / Double(values.count)
        let variance = values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(values.count - 1)
        return (variance / Double(values.count)).squareRoot()
    }
}
