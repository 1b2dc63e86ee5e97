internal import Decisions
internal import Foundation
internal import Reports

extension EvaluationReport {
    /// The report for a terminal: classes, checks, and the first samples that failed.
    public var text: String {
        let shares = (classes + [total]).map { share -> [String] in
            let filled = Int(share.share * 10 + 0.5)
            let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: 10 - filled)
            let interval = String(format: "%3.0f–%3.0f %%", 100 * share.low, 100 * share.high)
            let layers = share.layers.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            return [
                TerminalText.line(share.name), "\(share.passed) of \(share.count)", "\(bar) \(interval)",
                layers.joined(separator: ", "),
            ]
        }
        let results = checks.map { check -> [String] in
            let mean = check.score.map { String(format: "mean %.3f", $0) }
            return [TerminalText.line(check.name), check.shareText, mean ?? ""]
        }
        // Both tables have the same columns.
        let names = (shares + results).map { TerminalText.width($0[0]) }.max() ?? 0
        let counts = (shares + results).map { TerminalText.width($0[1]) }.max() ?? 0
        var lines = [header.title, ""]
        lines += TextTable(
            [.left(minimum: names), .left("passed", minimum: counts), .left("95 % interval"), .left("stopped by")], rows: shares
        ).lines()
        lines += [""] + TextTable([.left(minimum: names), .left(minimum: max(counts, 6)), .left()], rows: results).lines()
        if !decisions.isEmpty { lines += ["", "Decisions:"] + decisionLines }
        if !failures.isEmpty { lines += ["", "Failed:"] + failedLines }
        if let comparison { lines += [""] + Self.lines(comparison) }
        if let risks { lines += ["", risks.text] }
        lines += ["", verdict]
        return TerminalText.safe(lines.joined(separator: "\n")) + "\n"
    }

    /// Right answers and calibration of each kind.
    private var decisionLines: [String] {
        TextTable(
            [
                .left(), .right("right"), .right("calibration error"), .right("… with fitted temperatures"), .right("log loss"),
            ], indentation: "  ",
            rows: decisions.map { summary in
                [
                    summary.kind, String(format: "%.1f %%", 100 * summary.quality.accuracy),
                    String(format: "%.3f", summary.quality.calibrationError),
                    summary.fitted.map { String(format: "%.3f", $0.calibrationError) } ?? "–",
                    String(format: "%.3f", summary.quality.logLoss),
                ]
            }
        ).lines()
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
            for sample in failed.prefix(shown) {
                lines.append("  \(Self.short(sample.title)): \(Self.short(sample.comparedPrompt))")
                lines.append("      \(Self.short(Self.reasons(sample)))")
                if sample.checks.contains(where: { $0.name == "calls" && $0.passes == false }) {
                    lines.append("      called: \(Self.short(sample.calls?.map(\.text).joined(separator: ", ") ?? "nothing"))")
                }
                if let response = sample.response, !response.isEmpty { lines.append("      answer: \(Self.short(response))") }
            }
            if failed.count > shown {
                lines.append(
                    "  … and \(failed.count - shown) more\(name.map { " in class \($0)" } ?? ""): the page and the JSON have all."
                )
            }
        }
        return lines
    }

    private static func lines(_ comparison: EvaluationComparison) -> [String] {
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
}
