internal import Foundation

/// Two runs, compared sample by sample. An addition of this package.
public struct EvaluationComparison: Sendable {
    /// A sample of which more or fewer answers pass than before.
    public struct Change: Sendable, Encodable {
        /// The id of the sample.
        public let id: String
        /// Whether more answers pass.
        public let isBetter: Bool
        /// The first answer that differs, in the earlier run.
        public let before: String
        /// The same in the later run.
        public let after: String
    }

    /// A sample that another layer stops than before.
    public struct LayerChange: Sendable, Encodable {
        /// The id of the sample.
        public let id: String
        /// What stopped the request in the earlier run, or “answered”.
        public let before: String
        /// The same in the later run.
        public let after: String
    }

    let earlier: RunHeader
    /// When the earlier run ended.
    let date: String?
    /// The number of samples that both runs contain.
    public let common: Int
    /// How many of them passed in the earlier run. A sample with several seeds counts by the share that passed.
    public let passedBefore: Double
    /// How many of them passed in the later run.
    public let passedAfter: Double
    /// The samples that became better or worse.
    public let changes: [Change]
    /// The samples that another layer stops.
    public let layerChanges: [LayerChange]
    /// The difference of the shares that passed; nil without samples in common.
    public let difference: Double?
    /// The 95 % confidence interval of the difference.
    public let interval: ClosedRange<Double>?
    /// The number of results of the later run that the earlier one does not have, or has with another prompt.
    public let skipped: Int

    private struct Key: Hashable {
        var sample: String
        var seed: UInt64?
    }

    init(of later: EvaluationResult, with earlier: EvaluationResult) {
        let old = Dictionary(Self.keyed(earlier.samples), uniquingKeysWith: { $1 })
        var samples: [String] = []
        var pairs: [String: [(before: SampleResult, after: SampleResult)]] = [:]
        var skipped = 0
        for (key, result) in Self.keyed(later.samples) {
            guard let other = old[key], other.comparedPrompt == result.comparedPrompt else {
                skipped += 1
                continue
            }
            if pairs[key.sample] == nil { samples.append(key.sample) }
            pairs[key.sample, default: []].append((other, result))
        }
        var changes: [Change] = []
        var layerChanges: [LayerChange] = []
        var (sumBefore, sumAfter, differences) = (0.0, 0.0, [Double]())
        for pairs in samples.compactMap({ pairs[$0] }) {
            // Answers to one sample with several seeds are not independent.
            let before = Double(pairs.count(where: \.before.passes)) / Double(pairs.count)
            let after = Double(pairs.count(where: \.after.passes)) / Double(pairs.count)
            sumBefore += before
            sumAfter += after
            differences.append(after - before)
            if before != after, let pair = pairs.first(where: { $0.before.passes != $0.after.passes }) {
                changes.append(
                    Change(
                        id: pair.after.id, isBetter: after > before, before: pair.before.response ?? "",
                        after: pair.after.response ?? ""))
            }
            let layers = (Self.layers(pairs.map(\.before)), Self.layers(pairs.map(\.after)))
            if layers.0 != layers.1 { layerChanges.append(LayerChange(id: pairs[0].after.id, before: layers.0, after: layers.1)) }
        }
        self.earlier = earlier.header
        date = earlier.lastStart
        common = samples.count
        (passedBefore, passedAfter) = (sumBefore, sumAfter)
        (self.changes, self.layerChanges, self.skipped) = (changes, layerChanges, skipped)
        difference = common == 0 ? nil : (sumAfter - sumBefore) / Double(common)
        interval = common == 0 ? nil : EvaluationStatistics.interval(ofDifferences: differences)
    }

    /// The results by sample and seed. A sample without an id of its own is found again by its prompt, since lines move.
    private static func keyed(_ results: [SampleResult]) -> [(Key, SampleResult)] {
        var occurrences: [Key: Int] = [:]
        return results.sorted(by: SampleResult.isInOrder).map { result in
            guard result.hasNumberAsID else { return (Key(sample: "id \(result.id)", seed: result.seed), result) }
            let key = Key(sample: result.comparedPrompt, seed: result.seed)
            let number = occurrences[key, default: 0]
            occurrences[key] = number + 1
            return (Key(sample: "prompt \(number) \(result.comparedPrompt)", seed: result.seed), result)
        }
    }

    private static func layers(_ results: [SampleResult]) -> String {
        Set(results.map { $0.layer?.rawValue ?? "answered" }).sorted().joined(separator: " or ")
    }

    /// The number of samples that became better.
    public var better: Int { changes.count(where: \.isBetter) }
    /// The number of samples that became worse.
    public var worse: Int { changes.count { !$0.isBetter } }
    /// The probability of at least such a difference if both runs were equally good: below 0.05, it is a real difference.
    public var probability: Double { EvaluationStatistics.signTest(better: better, worse: worse) }

    /// The earlier run for people.
    var heading: String { "Compared with \(earlier.title)\(date.map { ", \($0)" } ?? "")" }

    /// The difference and what it means, in one sentence.
    public var conclusion: String {
        guard let difference, let interval else {
            return "The runs have no samples in common: prompts, ids and seeds must be the same."
        }
        let shares = String(
            format: "%.1f %% before, %.1f %% now, difference %+.1f points (95 %% interval %+.1f to %+.1f)",
            100 * passedBefore / Double(common), 100 * passedAfter / Double(common), 100 * difference,
            100 * interval.lowerBound, 100 * interval.upperBound)
        let meaning =
            changes.isEmpty
            ? "no sample changed"
            : "\(better) better, \(worse) worse, p = \(String(format: "%.3f", probability))"
                + (probability < 0.05 ? ": a real difference" : ": may be chance")
        let others =
            skipped > 0 ? " Not compared, because only this run has them: \(Count.text(skipped, "result"))." : ""
        return "\(Count.text(common, "sample")) in common: \(shares); \(meaning).\(others)"
    }
}

extension EvaluationResult {
    /// Compares the result with that of an earlier run of the same samples. An addition of this package.
    ///
    /// Samples without an id of their own are found again by their prompts.
    public func comparison(with earlier: EvaluationResult) -> EvaluationComparison {
        EvaluationComparison(of: self, with: earlier)
    }
}
