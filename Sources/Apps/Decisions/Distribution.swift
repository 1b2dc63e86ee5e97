internal import Foundation

/// The probabilities of all values that something can have, in the order in which they were declared.
///
/// ```swift
/// let team = try await session.choice("Which team should answer?", about: mail, from: Team.self).distribution
/// for (value, probability) in team { print(value, probability) }
/// ```
public struct Distribution<Value: Sendable>: Sendable, RandomAccessCollection {
    /// A value and its probability, from 0 to 1.
    public typealias Element = (value: Value, probability: Double)

    private let values: [Value]
    /// The probabilities of the values, in their order; their sum is 1.
    public let probabilities: [Double]
    /// The index of the most probable value, the first one of equals.
    public let indexOfMostLikely: Int

    /// Creates a distribution from weights, which are divided by their sum. Weights that are no positive numbers count as 0; if none is left,
    /// all values are equally probable.
    ///
    /// - Returns: nil without values, or if there are more or fewer weights than values.
    public init?(_ values: [Value], weights: [Double]) {
        guard !values.isEmpty, values.count == weights.count else { return nil }
        let usable = weights.map { $0 > 0 && $0.isFinite ? $0 : 0 }
        let total = usable.reduce(0, +)
        let isUsable = total > 0 && total.isFinite
        let probabilities = usable.map { isUsable ? $0 / total : 1 / Double(usable.count) }
        let index = probabilities.indices.reduce(0) { probabilities[$1] > probabilities[$0] ? $1 : $0 }
        self.init(values, probabilities, index)
    }

    public var startIndex: Int { 0 }
    public var endIndex: Int { values.count }
    public subscript(position: Int) -> Element { (values[position], probabilities[position]) }

    /// The most probable value.
    public var mostLikely: Value { values[indexOfMostLikely] }

    /// The probability of the most probable value.
    public var probabilityOfMostLikely: Double { probabilities[indexOfMostLikely] }

    /// How far the largest probability is above chance: 0 if all values are equally probable, 1 if one is certain. With n values and the
    /// largest probability p, (n·p − 1) / (n − 1).
    public var confidence: Double {
        guard count > 1 else { return 1 }
        let n = Double(count)
        return Swift.min(1, Swift.max(0, (n * probabilityOfMostLikely - 1) / (n - 1)))
    }

    /// How undecided the model is, in nats: 0 if one value is certain, the logarithm of the number of values if all are equally probable.
    public var entropy: Double { -probabilities.reduce(0) { $0 + ($1 > 0 ? $1 * log($1) : 0) } }

    /// The confidence of a scale, whose neighbouring values are nearly the same: 1 less the mean distance from the most probable level, as a
    /// share of what it would be if all levels were equally probable.
    public var confidenceOfScale: Double {
        guard count > 1 else { return 1 }
        func spread(_ center: Double) -> Double {
            probabilities.enumerated().reduce(0) { $0 + $1.element * abs(Double($1.offset) - center) }
        }
        let middle = Double(count - 1) / 2
        let uniform = (0..<count).reduce(0.0) { $0 + abs(Double($1) - middle) } / Double(count)
        return Swift.min(1, Swift.max(0, 1 - spread(Double(indexOfMostLikely)) / uniform))
    }

    private init(_ values: [Value], _ probabilities: [Double], _ index: Int) {
        (self.values, self.probabilities, indexOfMostLikely) = (values, probabilities, index)
    }

    /// The same probabilities of other values.
    func mapped<Other: Sendable>(_ transform: (Value) throws -> Other) rethrows -> Distribution<Other> {
        Distribution<Other>(try values.map(transform), probabilities, indexOfMostLikely)
    }

    /// The distribution of the only possible value.
    static func certain(_ value: Value) -> Self { Self([value], [1], 0) }
}

extension Distribution where Value: Equatable {
    /// The probability of a value; 0 if it is not one of those that were asked about.
    public func probability(of value: Value) -> Double {
        values.firstIndex(of: value).map { probabilities[$0] } ?? 0
    }
}

extension Distribution where Value: BinaryInteger {
    /// The mean of the values, weighted by their probabilities.
    public var expectedValue: Double { zip(values, probabilities).reduce(0) { $0 + Double($1.0) * $1.1 } }
}
