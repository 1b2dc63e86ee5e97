internal import Foundation

/// Logistic regression for several classes, with a penalty on the squares of the weights.
///
/// Minimises ½·penalty·|W|² + Σ cᵢ·lossᵢ with L-BFGS, where the loss of a sample is the negative logarithm of the probability of its
/// label. The constants have no penalty. With the same features, the result is that of scikit-learn's `LogisticRegression` with
/// C = 1 / penalty; with ``Kind/binary``, of its `OneVsRestClassifier`.
package struct LinearClassifier: Sendable {
    package enum Kind: Sendable {
        /// A sample has exactly one label: softmax.
        case softmax
        /// Each output is a question of its own: sigmoid.
        case binary
    }

    package let kind: Kind
    package let outputs: Int
    /// `[features][outputs]`.
    package var weights: [Float]
    /// `[outputs]`.
    package var bias: [Float]

    package init(kind: Kind, outputs: Int, weights: [Float], bias: [Float]) {
        (self.kind, self.outputs, self.weights, self.bias) = (kind, outputs, weights, bias)
    }

    /// - Parameters:
    ///   - targets: For each row the outputs that are right: exactly one with softmax, any number with binary outputs.
    ///   - counts: What each row counts.
    ///   - start: The weights and constants to begin with, those of a similar problem.
    ///   - check: Called before each pass over the rows; throws to end the training.
    package init(
        _ kind: Kind, rows: SparseRows, targets: [[Int]], outputs: Int, penalty: Double, counts: [Double]? = nil,
        maximumSteps: Int = 500, tolerance: Double = 1e-7, start: LinearClassifier? = nil, check: () throws -> Void = {}
    ) throws {
        var point = [Double](repeating: 0, count: (rows.width + 1) * outputs)
        if let start, start.weights.count == rows.width * outputs { point = (start.weights + start.bias).map(Double.init) }
        let result = try Self.minimum(
            kind, rows: rows, targets: targets, outputs: outputs, penalty: penalty, counts: counts, maximumSteps: maximumSteps,
            tolerance: tolerance, from: point, check: check)
        self.init(
            kind: kind, outputs: outputs, weights: result.dropLast(outputs).map(Float.init),
            bias: result.suffix(outputs).map(Float.init))
    }

    /// The weights `[features][outputs]`, then the constants, with 64 bits.
    static func minimum(
        _ kind: Kind, rows: SparseRows, targets: [[Int]], outputs: Int, penalty: Double, counts: [Double]?, maximumSteps: Int,
        tolerance: Double, from start: [Double], check: () throws -> Void
    ) throws -> [Double] {
        precondition(targets.count == rows.count, "a target for each row")
        let loss = Loss(kind: kind, rows: rows, targets: targets, outputs: outputs, penalty: penalty, counts: counts)
        return try Minimizer.minimum(from: start, maximumSteps: maximumSteps, tolerance: tolerance) { point, gradient in
            try check()
            return loss.value(at: point, gradient: &gradient)
        }
    }

    /// The log-odds of the outputs, for softmax up to a constant.
    package func scores(_ row: some Sequence<(column: Int, value: Float)>) -> [Float] {
        var sums = bias
        for (column, value) in row {
            for output in 0..<outputs { sums[output] += value * weights[column * outputs + output] }
        }
        return sums
    }

    package func scores(_ rows: SparseRows, _ index: Int) -> [Float] {
        scores((rows.starts[index]..<rows.starts[index + 1]).lazy.map { (Int(rows.columns[$0]), rows.values[$0]) })
    }

    /// The probabilities of scores that are divided by a temperature.
    package static func probabilities(_ scores: [Float], _ kind: Kind, temperature: Double = 1) -> [Double] {
        let scores = scores.map { Double($0) / temperature }
        switch kind {
        case .binary: return scores.map { 1 / (1 + exp(-$0)) }
        case .softmax:
            let largest = scores.max() ?? 0
            let exponentials = scores.map { exp($0 - largest) }
            let sum = exponentials.reduce(0, +)
            return exponentials.map { $0 / sum }
        }
    }

    private struct Loss {
        let kind: Kind
        let rows: SparseRows
        let targets: [[Int]]
        let outputs: Int
        let penalty: Double
        let counts: [Double]?

        func value(at point: [Double], gradient: inout [Double]) -> Double {
            let weightCount = rows.width * outputs
            var loss = 0.0
            for index in 0..<weightCount {
                loss += 0.5 * penalty * point[index] * point[index]
                gradient[index] = penalty * point[index]
            }
            for index in weightCount..<gradient.count { gradient[index] = 0 }
            var scores = [Double](repeating: 0, count: outputs)
            point.withUnsafeBufferPointer { point in
                gradient.withUnsafeMutableBufferPointer { gradient in
                    rows.columns.withUnsafeBufferPointer { columns in
                        rows.values.withUnsafeBufferPointer { values in
                            scores.withUnsafeMutableBufferPointer { scores in
                                for row in 0..<rows.count {
                                    loss += add(row, point, columns, values, scores, gradient)
                                }
                            }
                        }
                    }
                }
            }
            return loss
        }

        /// Adds the gradient of a row and returns its loss. `scores` is memory for the outputs.
        private func add(
            _ row: Int, _ point: UnsafeBufferPointer<Double>, _ columns: UnsafeBufferPointer<Int32>,
            _ values: UnsafeBufferPointer<Float>, _ scores: UnsafeMutableBufferPointer<Double>,
            _ gradient: UnsafeMutableBufferPointer<Double>
        ) -> Double {
            let outputs = outputs
            let range = rows.starts[row]..<rows.starts[row + 1]
            let constants = rows.width * outputs
            for output in 0..<outputs { scores[output] = point[constants + output] }
            for place in range {
                let (value, first) = (Double(values[place]), Int(columns[place]) * outputs)
                for output in 0..<outputs { scores[output] += value * point[first + output] }
            }
            let count = counts?[row] ?? 1
            var loss = 0.0
            switch kind {
            case .softmax:
                let right = targets[row].first ?? 0
                let largest = scores.max() ?? 0
                var sum = 0.0
                for output in 0..<outputs { sum += exp(scores[output] - largest) }
                loss = count * (log(sum) + largest - scores[right])
                for output in 0..<outputs { scores[output] = count * exp(scores[output] - largest) / sum }
                scores[right] -= count
            case .binary:
                for output in 0..<outputs {
                    let sign = targets[row].contains(output) ? 1.0 : -1
                    let margin = sign * scores[output]
                    // log(1 + exp(-x)) without overflow.
                    loss += count * (margin > 0 ? log1p(exp(-margin)) : log1p(exp(margin)) - margin)
                    scores[output] = -sign * count / (1 + exp(margin))
                }
            }
            for place in range {
                let (value, first) = (Double(values[place]), Int(columns[place]) * outputs)
                for output in 0..<outputs { gradient[first + output] += value * scores[output] }
            }
            for output in 0..<outputs { gradient[constants + output] += scores[output] }
            return loss
        }
    }
}
