import Foundation

/// Two runs, compared sample by sample.
struct EvalComparison {
    /// A sample of which more or fewer answers pass than before.
    struct Change: Encodable {
        var id: String
        var isBetter: Bool
        /// The first answer that differs.
        var before: String
        var after: String
    }

    /// A sample that another layer stops than before.
    struct LayerChange: Encodable {
        var id: String
        var before: String
        var after: String
    }

    /// The earlier run, and the day of it.
    let earlier: EvalRun.Header
    let date: String?
    /// Samples that both runs contain, and how many of them passed. A sample with several seeds counts by the share that passed.
    let common: Int
    let passedBefore: Double
    let passedAfter: Double
    let changes: [Change]
    let layerChanges: [LayerChange]
    /// The difference of the shares, and its 95 % interval; nil without samples in common.
    let difference: Double?
    let interval: ClosedRange<Double>?
    /// Results of this run that the other one does not have, or has with another prompt.
    let skipped: Int

    private struct Key: Hashable {
        var sample: String
        var seed: UInt64?
    }

    init(with earlier: EvalRun.Header, before: [EvalRun.Entry], after: [EvalRun.Entry]) {
        let old = Dictionary(Self.keyed(before), uniquingKeysWith: { $1 })
        var samples: [String] = []
        var pairs: [String: [(before: EvalRun.Entry, after: EvalRun.Entry)]] = [:]
        var skipped = 0
        for (key, entry) in Self.keyed(after) {
            guard let other = old[key], other.comparedPrompt == entry.comparedPrompt else {
                skipped += 1
                continue
            }
            if pairs[key.sample] == nil { samples.append(key.sample) }
            pairs[key.sample, default: []].append((other, entry))
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
                    Change(id: pair.after.id, isBetter: after > before, before: pair.before.response, after: pair.after.response))
            }
            let layers = (Self.layers(pairs.map(\.before)), Self.layers(pairs.map(\.after)))
            if layers.0 != layers.1 { layerChanges.append(LayerChange(id: pairs[0].after.id, before: layers.0, after: layers.1)) }
        }
        self.earlier = earlier
        date = EvalRun.date(of: before)
        common = samples.count
        (passedBefore, passedAfter) = (sumBefore, sumAfter)
        (self.changes, self.layerChanges, self.skipped) = (changes, layerChanges, skipped)
        difference = common == 0 ? nil : (sumAfter - sumBefore) / Double(common)
        interval = common == 0 ? nil : EvalStatistics.interval(ofDifferences: differences)
    }

    /// The results by sample and seed. A sample without an id of its own is found again by its prompt, since lines move.
    private static func keyed(_ entries: [EvalRun.Entry]) -> [(Key, EvalRun.Entry)] {
        var occurrences: [Key: Int] = [:]
        return entries.sorted(by: EvalRun.Entry.isInOrder).map { entry in
            guard EvalSample.isGenerated(id: entry.id) else { return (Key(sample: "id \(entry.id)", seed: entry.seed), entry) }
            let key = Key(sample: entry.comparedPrompt, seed: entry.seed)
            let number = occurrences[key, default: 0]
            occurrences[key] = number + 1
            return (Key(sample: "prompt \(number) \(entry.comparedPrompt)", seed: entry.seed), entry)
        }
    }

    private static func layers(_ entries: [EvalRun.Entry]) -> String {
        Set(entries.map { $0.layer?.rawValue ?? "answered" }).sorted().joined(separator: " or ")
    }

    var better: Int { changes.count(where: \.isBetter) }
    var worse: Int { changes.count { !$0.isBetter } }
    var probability: Double { EvalStatistics.signTest(better: better, worse: worse) }

    /// The earlier run for people.
    var heading: String { "Compared with \(earlier.dataset) with \(earlier.heading)\(date.map { ", \($0)" } ?? "")" }

    /// One sentence for people.
    var conclusion: String {
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
            skipped > 0 ? " Not compared, because only this run has them: \(EvalReport.count(skipped, "result"))." : ""
        return "\(EvalReport.count(common, "sample")) in common: \(shares); \(meaning).\(others)"
    }
}
