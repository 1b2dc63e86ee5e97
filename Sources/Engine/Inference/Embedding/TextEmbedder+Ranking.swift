internal import Foundation

/// How a question is compared with texts: the values that make a similarity a logit, and an adapter of the embedding model, if one was
/// trained.
package struct RankerFile: Sendable {
    let adapter: AdapterFile?
    /// The logarithm of the weight of a token is the product with its vector; empty if all count the same.
    let weights: [Float]
    let scale: Double
    let bias: Double

    /// The model as it is.
    package init(scale: Double, bias: Double) { (adapter, weights, self.scale, self.bias) = (nil, [], scale, bias) }

    /// An adapter with more metadata, which `Training/Ranker/train` writes.
    ///
    /// - Throws: ``ModelError`` if the file is damaged or no ranker.
    package init(adapter: AdapterFile) throws(ModelError) {
        func number(_ key: String) throws(ModelError) -> Double {
            guard let number = adapter.texts[key].flatMap(Double.init), number.isFinite else {
                throw .invalid(field: key, reason: "is missing, or not a number")
            }
            return number
        }
        self.adapter = adapter
        weights = (adapter.texts["question_weights"] ?? "").split(separator: " ").compactMap { Float($0) }
        guard weights.allSatisfy(\.isFinite) else { throw .invalid(field: "question_weights", reason: "are no numbers") }
        (scale, bias) = (try number("scale"), try number("bias"))
    }
}

/// Ranking by late interaction (Khattab and Zaharia, arXiv:2004.12832): for each token of a question, the largest cosine with a token of a
/// text, and the weighted mean of these.
extension TextEmbedder {
    /// A text to rank.
    package struct Candidate: Sendable {
        /// Its tokens, from the beginning mark to the end mark, and after them those that say what it is about.
        package var tokens: [TokenID]
        /// The number of tokens before those.
        package var compared: Int

        package init(tokens: [TokenID], compared: Int) { (self.tokens, self.compared) = (tokens, compared) }
    }

    /// The tokens of a text without the marks of its beginning and end.
    package nonisolated func plainTokens(of text: String) -> [TokenID] {
        tokenizer.encode([.user(text)], addsBoundaryTokens: false)
    }

    /// The logits that texts answer a question.
    ///
    /// - Parameters:
    ///   - question: the tokens of the question, with the marks of its beginning and end.
    ///   - ranker: what was learned.
    /// - Throws: `CancellationError`, or ``ModelError`` if there is no memory, or if the ranker does not fit the model.
    package func logits(
        of candidates: [Candidate], for question: [TokenID], ranker: RankerFile
    ) async throws -> [Double] {
        let width = shape.width
        guard ranker.weights.isEmpty || ranker.weights.count == width else {
            throw ModelError.invalid(field: "question_weights", reason: "are \(ranker.weights.count), not \(width)")
        }
        let adapter = try adapter(of: ranker)
        var vectors: [Float] = []
        try embedTokens([Array(question.prefix(maximumTokens))], adapter) { rows, _ in vectors = Array(rows) }
        let interaction = Interaction(question: vectors, width: width, weights: ranker.weights)
        var logits = [Double](repeating: 0, count: candidates.count)
        // Texts of about the same length, as many as a pass takes.
        let order = candidates.indices.sorted { candidates[$0].tokens.count < candidates[$1].tokens.count }
        var next = 0
        while next < order.count {
            if Task.isCancelled { throw CancellationError() }
            var batch: [Int] = []
            var count = 0
            while next < order.count, batch.count < Self.batchTexts {
                let size = min(candidates[order[next]].tokens.count, maximumTokens)
                if !batch.isEmpty, count + size > EngineLimits.passTokens { break }
                count += size
                batch.append(order[next])
                next += 1
            }
            try embedTokens(batch.map { Array(candidates[$0].tokens.prefix(maximumTokens)) }, adapter) { rows, places in
                for (index, place) in zip(batch, places) {
                    let compared = min(candidates[index].compared, place.count)
                    let text = UnsafeBufferPointer(
                        rebasing: rows[place.lowerBound * width..<(place.lowerBound + compared) * width])
                    logits[index] = (interaction.similarity(to: text) - 0.5) * ranker.scale + ranker.bias
                }
            }
            // Other callers need not wait for all texts.
            await Task.yield()
        }
        return logits
    }
}

/// The vectors of a question's tokens, and what each counts.
private struct Interaction {
    private let question: [Float]
    private let width: Int
    private let weights: [Double]

    /// - Parameters:
    ///   - question: `[tokens][width]`, each of length 1.
    init(question: [Float], width: Int, weights: [Float]) {
        (self.question, self.width) = (question, width)
        if weights.isEmpty {
            let count = question.count / width
            self.weights = [Double](repeating: 1 / Double(max(1, count)), count: count)
            return
        }
        let logarithms = question.withUnsafeBufferPointer { question in
            weights.withUnsafeBufferPointer { weights in
                stride(from: 0, to: question.count, by: width).map { Double(Self.product(question, $0, weights, 0, width)) }
            }
        }
        let largest = logarithms.max() ?? 0
        let sum = logarithms.reduce(0) { $0 + exp($1 - largest) }
        self.weights = logarithms.map { exp($0 - largest) / sum }
    }

    /// The mean of the largest cosines with the tokens of a text, `[tokens][width]`.
    func similarity(to text: UnsafeBufferPointer<Float>) -> Double {
        question.withUnsafeBufferPointer { question in
            var sum = 0.0
            for (index, weight) in weights.enumerated() {
                var largest = -Float.infinity
                for row in stride(from: 0, to: text.count, by: width) {
                    largest = max(largest, Self.product(question, index * width, text, row, width))
                }
                if largest.isFinite { sum += weight * Double(largest) }
            }
            return sum
        }
    }

    private static func product(
        _ one: UnsafeBufferPointer<Float>, _ first: Int, _ other: UnsafeBufferPointer<Float>, _ second: Int, _ count: Int
    ) -> Float {
        let (one, other) = (UnsafeRawBufferPointer(one), UnsafeRawBufferPointer(other))
        let (first, second, size) = (first * 4, second * 4, 4)
        var sums = SIMD16<Float>()
        var column = 0
        while column + 16 <= count {
            let a = one.loadUnaligned(fromByteOffset: first + column * size, as: SIMD16<Float>.self)
            let b = other.loadUnaligned(fromByteOffset: second + column * size, as: SIMD16<Float>.self)
            // A fused product is a function call where the compiler may not assume the instruction.
            sums += a * b
            column += 16
        }
        var sum = sums.sum()
        while column < count {
            sum +=
                one.loadUnaligned(fromByteOffset: first + column * size, as: Float.self)
                * other.loadUnaligned(fromByteOffset: second + column * size, as: Float.self)
            column += 1
        }
        return sum
    }
}
