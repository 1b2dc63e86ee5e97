/// Binary logistic regression with a penalty on the squares of the weights: ``LinearClassifier`` with one output, dense features, and
/// weights of 64 bits.
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
        let width = features.first?.count ?? 0
        var rows = SparseRows(width: width)
        for row in features { rows.append(row.enumerated().map { (column: $0, value: $1) }) }
        let result = try LinearClassifier.minimum(
            .binary, rows: rows, targets: labels.map { $0 ? [0] : [] }, outputs: 1, penalty: penalty, counts: counts ?? balanced,
            maximumSteps: maximumSteps, tolerance: 1e-7, from: [Double](repeating: 0, count: width + 1), check: check)
        weights = Array(result.dropLast())
        bias = result.last ?? 0
    }

    /// The log odds that a sample is positive.
    package func logOdds(_ sample: [Float]) -> Double { zip(sample, weights).reduce(bias) { $0 + Double($1.0) * $1.1 } }
}
