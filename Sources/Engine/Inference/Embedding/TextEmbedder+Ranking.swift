internal import CKernels
internal import Foundation

/// How a question is compared with texts: the values that make a similarity a logit, and an adapter of the embedding model, if one was
/// trained.
package struct RankerFile: Sendable {
    let adapter: AdapterFile?
    /// The logarithm of the weight of a token is the product with its vector; empty if all count the same.
    let weights: [Float]
    /// What makes a token's vector shorter, `[dimension][width]`; empty if the vectors are compared as they are.
    let projection: [Float]
    let scale: Double
    let bias: Double
    /// The weights of the mean vector of a prompt, and a constant, for the logit that it asks for something that was said earlier; empty if
    /// that was not learned.
    let recallWeights: [Float]

    /// The model as it is.
    package init(scale: Double, bias: Double) {
        (adapter, weights, projection, self.scale, self.bias, recallWeights) = (nil, [], [], scale, bias, [])
    }

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
        func numbers(_ key: String) throws(ModelError) -> [Float] {
            let numbers = (adapter.texts[key] ?? "").split(separator: " ").compactMap { Float($0) }
            guard numbers.allSatisfy(\.isFinite) else { throw .invalid(field: key, reason: "are no numbers") }
            return numbers
        }
        self.adapter = adapter
        weights = try numbers("question_weights")
        recallWeights = try numbers("recall_weights")
        guard let halves = Data(base64Encoded: adapter.texts["projection"] ?? "") else {
            throw .invalid(field: "projection", reason: "is not base64")
        }
        projection = stride(from: 0, to: halves.count - 1, by: 2).map { offset in
            ck_half_to_float(UInt16(halves[offset]) | UInt16(halves[offset + 1]) << 8)
        }
        guard projection.allSatisfy(\.isFinite) else {
            throw .invalid(field: "projection", reason: "has values that are no numbers")
        }
        (scale, bias) = (try number("scale"), try number("bias"))
    }

    /// Identifies what was learned; nil if that cannot be read, or if nothing was.
    package var identity: UInt64? { adapter?.identity }

    /// The number of elements of the vectors that are compared.
    fileprivate func dimension(_ width: Int) throws(ModelError) -> Int {
        guard weights.isEmpty || weights.count == width else {
            throw .invalid(field: "question_weights", reason: "are \(weights.count), not \(width)")
        }
        guard recallWeights.isEmpty || recallWeights.count == width + 1 else {
            throw .invalid(field: "recall_weights", reason: "are \(recallWeights.count), not \(width + 1)")
        }
        guard projection.count % width == 0, projection.count <= width * width else {
            throw .invalid(field: "projection", reason: "has \(projection.count) values, which are no rows of \(width)")
        }
        return projection.isEmpty ? width : projection.count / width
    }
}

/// The tokens of a text as a ranker compares them: `[tokens][dimension]`, each a vector of length 127, in bytes. The cosine of two has an
/// error of some 0.002.
package typealias TokenCodes = [Int8]

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

    /// Reads texts for comparisons.
    ///
    /// - Throws: `CancellationError`, or ``ModelError`` if there is no memory, or if the ranker does not fit the model.
    package func codes(of candidates: [Candidate], ranker: RankerFile) async throws -> [TokenCodes] {
        let width = shape.width
        let dimension = try ranker.dimension(width)
        let adapter = try adapter(of: ranker)
        var codes = [TokenCodes](repeating: [], count: candidates.count)
        // Texts of about the same length, as many as a pass takes.
        let order = candidates.indices.filter { !candidates[$0].tokens.isEmpty }.sorted {
            candidates[$0].tokens.count < candidates[$1].tokens.count
        }
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
                    let end = place.lowerBound + min(candidates[index].compared, place.count)
                    codes[index] = Self.codes(
                        UnsafeBufferPointer(rebasing: rows[place.lowerBound * width..<end * width]), width, dimension,
                        ranker.projection)
                }
            }
            // Other callers need not wait for all texts.
            await Task.yield()
        }
        return codes
    }

    /// Reads a question for comparisons.
    ///
    /// - Parameter tokens: with the marks of its beginning and end.
    /// - Throws: as ``codes(of:ranker:)``.
    package func question(_ tokens: [TokenID], ranker: RankerFile) throws -> RankedQuestion {
        let width = shape.width
        let dimension = try ranker.dimension(width)
        let adapter = try adapter(of: ranker)
        var question = RankedQuestion(dimension: dimension, scale: ranker.scale, bias: ranker.bias)
        try embedTokens([Array(tokens.prefix(maximumTokens))], adapter) { rows, places in
            question.codes = Self.codes(rows, width, dimension, ranker.projection)
            let count = places.first?.count ?? 0
            question.recall = Self.recall(rows, width, ranker.recallWeights)
            guard !ranker.weights.isEmpty else {
                question.weights = [Double](repeating: 1 / Double(max(1, count)), count: count)
                return
            }
            let logarithms = ranker.weights.withUnsafeBufferPointer { weights in
                (0..<count).map { Double(Self.product(rows, $0 * width, weights, 0, width)) }
            }
            let largest = logarithms.max() ?? 0
            let sum = logarithms.reduce(0) { $0 + exp($1 - largest) }
            question.weights = logarithms.map { exp($0 - largest) / sum }
        }
        return question
    }

    /// The weighted sum of the mean of vectors, of length 1, and the constant.
    private static func recall(_ rows: UnsafeBufferPointer<Float>, _ width: Int, _ weights: [Float]) -> Double? {
        guard weights.count == width + 1, let constant = weights.last else { return nil }
        var (sum, squares) = (0.0, 0.0)
        for column in 0..<width {
            let mean = stride(from: column, to: rows.count, by: width).reduce(0.0) { $0 + Double(rows[$1]) }
            sum += mean * Double(weights[column])
            squares += mean * mean
        }
        return squares > 0 ? sum / squares.squareRoot() + Double(constant) : nil
    }

    /// Shortens vectors, and makes bytes of them.
    private static func codes(
        _ rows: UnsafeBufferPointer<Float>, _ width: Int, _ dimension: Int, _ projection: [Float]
    ) -> TokenCodes {
        let count = rows.count / width
        return TokenCodes(unsafeUninitializedCapacity: count * dimension) { codes, initialized in
            withUnsafeTemporaryAllocation(of: Float.self, capacity: dimension) { vector in
                projection.withUnsafeBufferPointer { projection in
                    for row in 0..<count {
                        for column in 0..<dimension {
                            vector[column] =
                                projection.isEmpty
                                ? rows[row * width + column] : product(projection, column * width, rows, row * width, width)
                        }
                        let squares = vector.reduce(0) { $0 + $1 * $1 }
                        let factor = squares > 0 ? RankedQuestion.length / squares.squareRoot() : 0
                        for column in 0..<dimension {
                            codes[row * dimension + column] = Int8((vector[column] * factor).rounded())
                        }
                    }
                }
            }
            initialized = count * dimension
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

/// The tokens of a question, and what each counts.
package struct RankedQuestion: Sendable {
    fileprivate static let length: Float = 127

    package let dimension: Int
    /// The logit that it asks for something that was said earlier; nil if the ranker does not know.
    package fileprivate(set) var recall: Double?
    fileprivate let scale: Double
    fileprivate let bias: Double
    fileprivate var codes: TokenCodes = []
    fileprivate var weights: [Double] = []

    fileprivate init(dimension: Int, scale: Double, bias: Double) {
        (self.dimension, self.scale, self.bias) = (dimension, scale, bias)
    }

    /// The logit that a text answers it.
    ///
    /// - Parameter text: ``TokenCodes`` of the same ranker. What is left over after whole vectors is ignored.
    package func logit(of text: UnsafeBufferPointer<Int8>) -> Double {
        let rows = text.count / dimension
        var sum = 0.0
        if rows > 0, let start = text.baseAddress {
            withUnsafeTemporaryAllocation(of: Int32.self, capacity: rows) { products in
                codes.withUnsafeBufferPointer { codes in
                    guard let question = codes.baseAddress, let out = products.baseAddress else { return }
                    for (index, weight) in weights.enumerated() {
                        ck_kernels_best().pointee.dot_rows(start, rows, question + index * dimension, Int32(dimension), out)
                        sum += weight * Double(products.max() ?? 0)
                    }
                }
            }
        }
        return (sum / Double(Self.length * Self.length) - 0.5) * scale + bias
    }
}
