import Foundation

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
    let risks: String?
    let classes: [Line]
    let checks: [CheckLine]
    let total: Line

    init(header: EvalRun.Header, entries: [EvalRun.Entry], comparison: EvalComparison?, risks: String?) {
        self.header = header
        // Several samples run at once: the order of the file is that of their ends.
        self.entries = entries.sorted { ($0.id, $0.seed ?? 0) < ($1.id, $1.seed ?? 0) }
        self.comparison = comparison
        self.risks = risks
        total = Line("all", entries)
        var names: [String] = []
        for entry in self.entries { if let name = entry.class, !names.contains(name) { names.append(name) } }
        classes = names.map { name in Line(name, entries.filter { $0.class == name }) }
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

    static func reasons(_ entry: EvalRun.Entry) -> String {
        entry.checks.filter { !$0.passes }.map { "\($0.name): \($0.reason ?? "")" }.joined(separator: "; ")
    }

    // MARK: - Text

    /// The report for a terminal.
    var text: String {
        func cell(_ text: String, _ width: Int) -> String {
            text + String(repeating: " ", count: max(0, width - text.count))
        }
        var lines = ["\(header.dataset) with \(header.model) (\(header.settings))", ""]
        let width = (classes.map(\.name.count) + checks.map(\.name.count) + [8]).max() ?? 8
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
        if !failures.isEmpty {
            lines += ["", "Failed:"]
            for entry in failures.prefix(Self.shownFailures) {
                lines.append("  \(Self.short(entry.id))\(entry.seed.map { " (seed \($0))" } ?? ""): \(Self.short(entry.prompt))")
                lines.append("      \(Self.short(Self.reasons(entry)))")
                if !entry.response.isEmpty { lines.append("      answer: \(Self.short(entry.response))") }
            }
            if failures.count > Self.shownFailures {
                lines.append("  … and \(failures.count - Self.shownFailures) more: see --html or --json.")
            }
        }
        if let comparison {
            lines += ["", comparison.conclusion]
            for change in comparison.changes { lines.append("  \(change.isBetter ? "better" : "worse "): \(change.id)") }
        }
        if let risks { lines += ["", risks.trimmingCharacters(in: .whitespacesAndNewlines)] }
        return lines.joined(separator: "\n") + "\n"
    }

    private static let shownFailures = 20

    private static func short(_ text: String) -> String {
        // Texts of models and data sets may contain sequences that control terminals.
        let line = text.split(whereSeparator: \.isNewline).joined(separator: " ").filter {
            $0.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        }
        return line.count > 110 ? line.prefix(109) + "…" : line
    }

    // MARK: - JSON and JUnit

    private struct Document: Encodable {
        struct Comparison: Encodable {
            var common: Int
            var passedBefore: Int
            var passedNow: Int
            var better: Int
            var worse: Int
            var probability: Double
        }

        var header: EvalRun.Header
        var total: Line
        var classes: [Line]
        var checks: [CheckLine]
        var comparison: Comparison?
        var samples: [EvalRun.Entry]
    }

    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let document = Document(
            header: header, total: total, classes: classes, checks: checks,
            comparison: comparison.map {
                .init(
                    common: $0.common, passedBefore: $0.passedBefore, passedNow: $0.passedAfter, better: $0.better,
                    worse: $0.worse,
                    probability: $0.probability)
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
            let name = entry.id + (entry.seed.map { " (seed \($0))" } ?? "")
            let start =
                "  <testcase classname=\"\(Self.xml(entry.class ?? header.dataset))\" name=\"\(Self.xml(name))\" "
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
