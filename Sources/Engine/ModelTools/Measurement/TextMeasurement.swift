internal import Foundation
package import Inference

/// Runs a model over texts to measure it: the importance of its columns, its perplexity, its divergence from another model.
///
/// Texts are divided into windows of the same length. Of each, the second half is scored, so that every token has some context. Used by
/// one thread at a time; the calls compute and must not be made on the threads of tasks.
package final class TextMeasurement: @unchecked Sendable {
    package let path: String
    package let file: GGUFFile
    let model: NeuralModel
    private let tokenizer: Tokenizer
    let cache: KVCache

    package static let usualWindow = 512

    /// - Parameters:
    ///   - window: the length of windows in tokens.
    ///   - isKept: whether the packed weights are written to the cache, for later uses of the file.
    /// - Throws: ``ModelError`` if the model cannot be used.
    package init(path: String, window: Int = TextMeasurement.usualWindow, isKept: Bool = false) throws(ModelError) {
        self.path = path
        file = try GGUFFile(path: path)
        try ModelShape(file: file).checkGeneratesText()
        model = try NeuralModel(file: file, pool: .shared(), cache: isKept ? PackedCache.standard : nil)
        tokenizer = try Tokenizer(file: file)
        cache = try KVCache(shape: model.shape, capacity: window)
    }

    package var vocabularySize: Int { model.shape.vocabularySize }
    /// The memory of the weights in bytes.
    package var weightBytes: Int { model.packedBytes }

    /// Whether another model has the same tokens with the same numbers.
    package func hasSameVocabulary(as other: TextMeasurement) -> Bool {
        func tokens(_ file: GGUFFile) -> UnsafeRawBufferPointer.SubSequence? {
            guard case .array(let array)? = file.metadata["tokenizer.ggml.tokens"] else { return nil }
            return file.bytes(of: array)
        }
        guard vocabularySize == other.vocabularySize, let own = tokens(file), let others = tokens(other.file) else {
            return false
        }
        return own.elementsEqual(others)
    }

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
        try model.observe { name, expert, rows in
            box.matrix.add(name, expert: expert, rows.values, count: rows.count, width: rows.width)
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
        try model.forEachRow(of: window, from: first, cache: cache, isCancelled: isCancelled) { row, logits, next in
            try body(row - first, logits, next)
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
