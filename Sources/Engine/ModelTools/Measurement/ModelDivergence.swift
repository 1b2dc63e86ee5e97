internal import Foundation
package import Inference

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
