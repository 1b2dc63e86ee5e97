internal import Foundation

/// Binary logistic regression with a penalty on the squares of the weights.
///
/// Minimises ½·penalty·|w|² + Σ cᵢ·log(1 + exp(-yᵢ(w·xᵢ + b))) with L-BFGS (Nocedal and Wright, "Numerical Optimization", algorithm 7.4).
/// The constant b has no penalty. With the same features, the result is that of scikit-learn with C = 1 / penalty.
package struct LogisticRegression: Sendable {
    /// `[features]`.
    package private(set) var weights: [Double]
    package private(set) var bias: Double

    /// - Parameters:
    ///   - features: `[samples][features]`.
    ///   - labels: A label for each sample.
    ///   - penalty: Larger for smaller weights; at least a small positive number, so that there is a minimum.
    ///   - counts: What each sample counts; nil for classes that count equally, whatever their sizes.
    ///   - maximumSteps: The maximum number of steps of the minimisation.
    ///   - check: Called before each pass over the samples; throws to end the training.
    /// - Precondition: There are as many labels as samples, and all samples have as many features.
    package init(
        features: [[Float]], labels: [Bool], penalty: Double, counts: [Double]? = nil, maximumSteps: Int = 500,
        check: () throws -> Void = {}
    ) throws {
        let positive = Double(labels.count { $0 })
        let total = Double(labels.count)
        let balanced = labels.map { 0.5 * total / max(1, $0 ? positive : total - positive) }
        let loss = Loss(features: features, labels: labels, counts: counts ?? balanced, penalty: penalty)
        let width = features.first?.count ?? 0
        let result = try Minimizer.minimum(from: [Double](repeating: 0, count: width + 1), maximumSteps: maximumSteps) {
            point, gradient in
            try check()
            return loss.value(at: point, gradient: &gradient)
        }
        weights = Array(result.dropLast())
        bias = result.last ?? 0
    }

    /// The log odds that a sample is positive.
    package func logOdds(_ sample: [Float]) -> Double { zip(sample, weights).reduce(bias) { $0 + Double($1.0) * $1.1 } }

    private struct Loss {
        let features: [[Float]]
        let labels: [Bool]
        let counts: [Double]
        let penalty: Double

        /// The loss at a point, and its gradient.
        func value(at point: [Double], gradient: inout [Double]) -> Double {
            let width = point.count - 1
            var loss = 0.0
            for index in 0..<width {
                loss += 0.5 * penalty * point[index] * point[index]
                gradient[index] = penalty * point[index]
            }
            gradient[width] = 0
            point.withUnsafeBufferPointer { point in
                gradient.withUnsafeMutableBufferPointer { gradient in
                    for (sample, row) in features.enumerated() {
                        row.withUnsafeBufferPointer { row in
                            var sum = point[width]
                            for index in 0..<width { sum += Double(row[index]) * point[index] }
                            let sign = labels[sample] ? 1.0 : -1
                            // log(1 + exp(-x)) without overflow.
                            let margin = sign * sum
                            let count = counts[sample]
                            loss += count * (margin > 0 ? log1p(exp(-margin)) : log1p(exp(margin)) - margin)
                            let slope = -sign * count / (1 + exp(margin))
                            for index in 0..<width { gradient[index] += slope * Double(row[index]) }
                            gradient[width] += slope
                        }
                    }
                }
            }
            return loss
        }
    }
}
