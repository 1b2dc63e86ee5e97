import Foundation
import Reports

/// What a run shows: by class, by check, and the samples that failed.
struct EvalReport {
    struct Line: Encodable {
        var name: String
        var passed: Int
        var count: Int
        var low: Double
        var high: Double
        var layers: [String: Int]

        init(_ name: String, _ entries: [EvalRun.Entry]) {
            self.name = name
            count = entries.count
            passed = entries.count(where: \.passes)
            // Answers to one sample with several seeds are not independent: the interval is that of as many samples as there are.
            let samples = Set(entries.map(\.id)).count
            let interval = EvalStatistics.interval(Double(samples) * Double(passed) / Double(max(1, count)), of: samples)
            (low, high) = (interval.lowerBound, interval.upperBound)
            layers = Dictionary(entries.compactMap { $0.layer.map { ($0.rawValue, 1) } }, uniquingKeysWith: +)
        }

        var share: Double { count == 0 ? 0 : Double(passed) / Double(count) }
    }

    struct CheckLine: Encodable {
        var name: String
        var passed: Int
        var count: Int
        /// The mean of the scores, for checks that have one.
        var score: Double?
    }

    let header: EvalRun.Header
    let entries: [EvalRun.Entry]
    let comparison: EvalComparison?
    let risks: EvalRisks?
    /// The share of samples that must pass.
    let minimum: Double
    let classes: [Line]
    let checks: [CheckLine]
    let total: Line

    init(
        header: EvalRun.Header, entries: [EvalRun.Entry], comparison: EvalComparison? = nil, risks: String? = nil,
        minimum: Double = 1
    ) {
        self.header = header
        // Several samples run at once: the order of the file is that of their ends.
        self.entries = entries.sorted(by: EvalRun.Entry.isInOrder)
        self.comparison = comparison
        self.minimum = minimum
        total = Line("all", entries)
        var names: [String] = []
        for entry in self.entries { if let name = entry.class, !names.contains(name) { names.append(name) } }
        let classes = names.map { name in Line(name, entries.filter { $0.class == name }) }
        self.classes = classes
        self.risks = risks.map { EvalRisks($0, classes) }
        var checkNames: [String] = []
        for check in self.entries.flatMap(\.checks) where !checkNames.contains(check.name) { checkNames.append(check.name) }
        checks = checkNames.map { name in
            let all = entries.flatMap(\.checks).filter { $0.name == name }
            let scores = all.compactMap(\.score)
            return CheckLine(
                name: name, passed: all.count(where: \.passes), count: all.count,
                score: scores.isEmpty ? nil : scores.reduce(0, +) / Double(scores.count))
        }
    }

    var failures: [EvalRun.Entry] { entries.filter { !$0.passes } }
    var seconds: Double { entries.reduce(0) { $0 + $1.seconds } }

    var isPassed: Bool { total.share >= minimum }

    /// Whether enough samples passed, in words.
    var verdict: String {
        func percent(_ share: Double) -> String {
            // 99.6 % is not 100 %.
            let text = String(format: "%.1f", 100 * share)
            return (text.hasSuffix(".0") ? String(text.dropLast(2)) : text) + " %"
        }
        return "\(total.passed) of \(total.count) passed (\(percent(total.share))); required: \(percent(minimum)): "
            + (isPassed ? "passed" : "failed")
    }

    static func reasons(_ entry: EvalRun.Entry) -> String {
        entry.checks.filter { !$0.passes }.map { "\($0.name): \($0.reason ?? "")" }.joined(separator: "; ")
    }

    /// “1 sample”, “2 samples”
    static func count(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

    // MARK: - Text

    /// The report for a terminal.
    var text: String {
        func cell(_ text: String, _ width: Int) -> String { TerminalText.padded(TerminalText.line(text), cells: width) }
        var lines = ["\(header.dataset) with \(header.heading)", ""]
        let width = (classes.map(\.name) + checks.map(\.name)).map(TerminalText.width).reduce(8, max)
        lines.append("\(cell("", width))  passed          95 % interval   stopped by")
        for line in classes + [total] {
            let bar =
                String(repeating: "█", count: Int(line.share * 10 + 0.5))
                + String(repeating: "░", count: 10 - Int(line.share * 10 + 0.5))
            let layers = line.layers.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
            lines.append(
                cell(line.name, width) + "  " + cell("\(line.passed) of \(line.count)", 11) + "\(bar) "
                    + String(format: "%3.0f–%3.0f %%   ", 100 * line.low, 100 * line.high) + layers)
        }
        lines.append("")
        for check in checks {
            lines.append(
                cell(check.name, width) + "  " + cell("\(check.passed) of \(check.count)", 11)
                    + (check.score.map { String(format: "mean %.3f", $0) } ?? ""))
        }
        if !failures.isEmpty { lines += ["", "Failed:"] + failedLines }
        if let comparison { lines += [""] + Self.lines(comparison) }
        if let risks { lines += ["", risks.text] }
        lines += ["", verdict]
        return TerminalText.safe(lines.joined(separator: "\n")) + "\n"
    }

    private static let shownFailuresOfClass = 3
    private static let shownFailuresWithoutClass = 20

    /// The first failures of each class. What should have been declined or ignored comes first.
    private var failedLines: [String] {
        let names = classes.map(\.name)
        let injections = names.filter { $0.hasPrefix("injection") }
        let dangerous = names.filter { $0 == "unsafe" } + injections
        let order: [String?] = dangerous + names.filter { !dangerous.contains($0) } + [nil]
        var lines: [String] = []
        for name in order {
            let failed = failures.filter { $0.class == name }
            let shown = name == nil ? Self.shownFailuresWithoutClass : Self.shownFailuresOfClass
            for entry in failed.prefix(shown) {
                lines.append("  \(Self.short(entry.title)): \(Self.short(entry.comparedPrompt))")
                lines.append("      \(Self.short(Self.reasons(entry)))")
                if entry.checks.contains(where: { $0.name == "calls" && !$0.passes }) {
                    lines.append("      called: \(Self.short(entry.calls?.map(\.text).joined(separator: ", ") ?? "nothing"))")
                }
                if !entry.response.isEmpty { lines.append("      answer: \(Self.short(entry.response))") }
            }
            if failed.count > shown {
                lines.append("  … and \(failed.count - shown) more\(name.map { " in class \($0)" } ?? ""): see --html or --json.")
            }
        }
        return lines
    }

    private static func lines(_ comparison: EvalComparison) -> [String] {
        let layers = Dictionary(comparison.layerChanges.map { ($0.id, "\($0.before) → \($0.after)") }, uniquingKeysWith: { $1 })
        let changed = Set(comparison.changes.map(\.id))
        return [comparison.heading, comparison.conclusion]
            + comparison.changes.map { change in
                "  \(change.isBetter ? "better" : "worse "): \(short(change.id))"
                    + (layers[change.id].map { " (\($0))" } ?? "")
            }
            + comparison.layerChanges.filter { !changed.contains($0.id) }.map {
                "  stopped by another layer: \(short($0.id)) (\($0.before) → \($0.after))"
            }
    }

    private static func short(_ text: String) -> String {
        let line = TerminalText.line(text)
        return TerminalText.width(line) > 110 ? TerminalText.prefix(line, cells: 109) + "…" : line
    }

    // MARK: - JSON and JUnit

    private struct Document: Encodable {
        struct Comparison: Encodable {
            var earlier: EvalRun.Header
            var date: String?
            var common: Int
            var passedBefore: Double
            var passedNow: Double
            /// Nil if the runs have no samples in common, like the ends of its interval.
            var difference: Double?
            var low: Double?
            var high: Double?
            var better: Int
            var worse: Int
            var probability: Double
            var changes: [EvalComparison.Change]
            var layerChanges: [EvalComparison.LayerChange]
        }

        var header: EvalRun.Header
        var minimum: Double
        var passed: Bool
        var total: Line
        var classes: [Line]
        var checks: [CheckLine]
        var comparison: Comparison?
        /// The rows of the table, by its columns.
        var risks: [[String: String]]?
        var samples: [EvalRun.Entry]
    }

    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let document = Document(
            header: header, minimum: minimum, passed: isPassed, total: total, classes: classes, checks: checks,
            comparison: comparison.map {
                .init(
                    earlier: $0.earlier, date: $0.date, common: $0.common, passedBefore: $0.passedBefore,
                    passedNow: $0.passedAfter, difference: $0.difference, low: $0.interval?.lowerBound,
                    high: $0.interval?.upperBound, better: $0.better, worse: $0.worse, probability: $0.probability,
                    changes: $0.changes, layerChanges: $0.layerChanges)
            },
            risks: risks.map { risks in
                risks.rows.map { Dictionary(zip(risks.columns, $0), uniquingKeysWith: { first, _ in first }) }
            }, samples: entries)
        return String(decoding: try encoder.encode(document), as: UTF8.self) + "\n"
    }

    /// The report as JUnit XML: a test case for each sample.
    var junit: String {
        var lines = [
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
            "<testsuite name=\"\(Self.xml(header.dataset))\" tests=\"\(entries.count)\" failures=\"\(failures.count)\" "
                + "time=\"\(String(format: "%.3f", seconds))\">",
        ]
        for entry in entries {
            let start =
                "  <testcase classname=\"\(Self.xml(entry.class ?? header.dataset))\" name=\"\(Self.xml(entry.title))\" "
                + "time=\"\(String(format: "%.3f", entry.seconds))\""
            if entry.passes {
                lines.append(start + "/>")
            } else {
                lines.append(start + ">")
                lines.append(
                    "    <failure message=\"\(Self.xml(Self.reasons(entry)))\">\(Self.xml("\(entry.prompt)\n\n\(entry.response)"))</failure>"
                )
                lines.append("  </testcase>")
            }
        }
        return (lines + ["</testsuite>", ""]).joined(separator: "\n")
    }

    /// A text for XML and HTML. Control characters do not exist in XML.
    static func xml(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\n", "\t": result.unicodeScalars.append(scalar)
            default:
                if scalar.value >= 0x20, scalar.value != 0xFFFE, scalar.value != 0xFFFF { result.unicodeScalars.append(scalar) }
            }
        }
        return result
    }
}
