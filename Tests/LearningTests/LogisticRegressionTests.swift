import Foundation
import Learning
import TestSupport
import Testing

@Suite struct LogisticRegressionTests {
    /// The coefficients that scikit-learn 1.9 finds for these samples with C = 1 / penalty and a tolerance of 1e-12, without class weights
    /// and with `class_weight="balanced"`.
    @Test func coefficientsAreThoseOfScikitLearn() throws {
        var rows: [[Float]] = []
        var labels: [Bool] = []
        for i in 0..<40 {
            let row: [Float] = (0..<3).map { j in Float((i * 7 + j * 13) % 17 - 8) / 8 }
            let noise = Float((i * 5) % 11 - 5) / 4
            labels.append(row[0] * 2 - row[1] + noise > 0.25)
            rows.append(row)
        }
        #expect(labels.count { $0 } == 21)
        let equal = try LogisticRegression(
            features: rows, labels: labels, penalty: 1, counts: [Double](repeating: 1, count: rows.count))
        let balanced = try LogisticRegression(features: rows, labels: labels, penalty: 1)
        for (model, expected) in [
            (equal, [1.784524979749144, -0.7754161133456441, 0.10685728196954064, 0.07746781782208015]),
            (balanced, [1.7814724835726397, -0.757302765877196, 0.11416089621179071, -0.009481743185215288]),
        ] {
            for (value, wanted) in zip(model.weights + [model.bias], expected) { #expect(abs(value - wanted) < 1e-5) }
        }
    }

    /// At the minimum, the gradient is zero: measured with differences of the loss, which this test computes itself.
    @Test func gradientIsZero() throws {
        var random = SeededGenerator(3)
        var rows: [[Float]] = []
        var labels: [Bool] = []
        for _ in 0..<60 {
            let row = (0..<5).map { _ in random.uniform(-1...1) }
            labels.append(row[0] - row[1] + random.uniform(-0.5...0.5) > 0.2)
            rows.append(row)
        }
        let model = try LogisticRegression(
            features: rows, labels: labels, penalty: 0.3, counts: [Double](repeating: 1, count: 60))
        func loss(_ weights: [Double], _ bias: Double) -> Double {
            var sum = 0.15 * weights.reduce(0) { $0 + $1 * $1 }
            for (row, label) in zip(rows, labels) {
                let odds = zip(row, weights).reduce(bias) { $0 + Double($1.0) * $1.1 }
                sum += log1p(exp(label ? -odds : odds))
            }
            return sum
        }
        for index in 0...5 {
            func moved(_ step: Double) -> Double {
                var weights = model.weights
                if index < 5 { weights[index] += step }
                return loss(weights, model.bias + (index == 5 ? step : 0))
            }
            #expect(abs(moved(1e-4) - moved(-1e-4)) / 2e-4 < 1e-4)
        }
    }

    @Test func endsWhenItIsToldTo() {
        struct Stop: Error {}
        #expect(throws: Stop.self) {
            _ = try LogisticRegression(features: [[1], [2]], labels: [true, false], penalty: 1) { throw Stop() }
        }
    }
}
