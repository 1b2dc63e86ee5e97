internal import Foundation

/// Shares with their uncertainty.
enum EvaluationStatistics {
    /// The 95 % confidence interval of a share (Wilson 1927).
    static func interval(_ passed: Double, of count: Int) -> ClosedRange<Double> {
        guard count > 0 else { return 0...1 }
        let z = 1.959964
        let n = Double(count)
        let share = passed / n
        let middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        let half = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)).squareRoot()
        return max(0, middle - half)...min(1, middle + half)
    }

    /// The probability of a difference at least as large as this one if both runs were equally good: the exact sign test over the
    /// samples on which they differ (McNemar's test).
    static func signTest(better: Int, worse: Int) -> Double {
        let count = better + worse
        guard count > 0 else { return 1 }
        var sum = 0.0
        let all: Double = lgamma(Double(count + 1)) - Double(count) * log(2.0)
        for k in 0...min(better, worse) {
            let ways: Double = all - lgamma(Double(k + 1)) - lgamma(Double(count - k + 1))
            sum += exp(ways)
        }
        return min(1, 2 * sum)
    }

    /// The 95 % confidence interval of the mean of differences between -1 and 1, such as those of two shares on the same samples
    /// (Agresti and Min 2005: two more samples, on one of which each run is better by a half).
    static func interval(ofDifferences differences: [Double]) -> ClosedRange<Double> {
        let n = Double(differences.count + 2)
        let sum = differences.reduce(0, +)
        let squares = differences.reduce(1) { $0 + $1 * $1 }
        let half = 1.959964 * (squares - sum * sum / n).squareRoot() / n
        return max(-1, sum / n - half)...min(1, sum / n + half)
    }
}
