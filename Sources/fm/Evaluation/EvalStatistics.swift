import Foundation

/// Shares with their uncertainty.
enum EvalStatistics {
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
        for k in 0...min(better, worse) {
            sum += exp(lgamma(Double(count + 1)) - lgamma(Double(k + 1)) - lgamma(Double(count - k + 1)) - Double(count) * log(2))
        }
        return min(1, 2 * sum)
    }
}

/// Two runs, compared sample by sample.
struct EvalComparison {
    struct Change {
        var id: String
        var isBetter: Bool
        var before: String
        var after: String
    }

    /// Samples that both runs contain, and those of them that passed.
    let common: Int
    let passedBefore: Int
    let passedAfter: Int
    let changes: [Change]
    /// Samples of this run that the other one does not have, or has with another prompt.
    let skipped: Int

    init(before: [EvalRun.Entry], after: [EvalRun.Entry]) {
        let earlier = Dictionary(before.map { ($0.key, $0) }, uniquingKeysWith: { $1 })
        var changes: [Change] = []
        var counts = (common: 0, before: 0, after: 0)
        for entry in after {
            // Without ids of their own, samples are named by their lines.
            guard let old = earlier[entry.key], (old.request ?? old.prompt) == (entry.request ?? entry.prompt) else { continue }
            counts.common += 1
            counts.before += old.passes ? 1 : 0
            counts.after += entry.passes ? 1 : 0
            if old.passes != entry.passes {
                changes.append(Change(id: entry.id, isBetter: entry.passes, before: old.response, after: entry.response))
            }
        }
        (common, passedBefore, passedAfter) = counts
        self.changes = changes
        skipped = after.count - counts.common
    }

    var better: Int { changes.count(where: \.isBetter) }
    var worse: Int { changes.count { !$0.isBetter } }
    var probability: Double { EvalStatistics.signTest(better: better, worse: worse) }

    /// One sentence for people.
    var conclusion: String {
        guard common > 0 else {
            return "The runs have no samples in common: ids, prompts and seeds must be the same."
        }
        let shares = String(
            format: "%.1f %% before, %.1f %% now", 100 * Double(passedBefore) / Double(common),
            100 * Double(passedAfter) / Double(common))
        let meaning =
            changes.isEmpty
            ? "no sample changed"
            : "\(better) better, \(worse) worse, p = \(String(format: "%.3f", probability))"
                + (probability < 0.05 ? ": a real difference" : ": may be chance")
        let others = skipped > 0 ? " \(skipped) others are only in this run or have another prompt." : ""
        return "\(common) samples in common: \(shares); \(meaning).\(others)"
    }
}
