import Foundation
import TextClassification
import Reports

/// A classifier's report for people: as text, and as an HTML page that works offline.
struct ClassifierPage {
    private let report: ClassifierReport

    init(_ report: ClassifierReport) { self.report = report }

    private static func percent(_ share: Double?) -> String { share.map { String(format: "%.1f %%", 100 * $0) } ?? "–" }

    private var how: String {
        report.isSeparate
            ? "Judged with \(report.count) texts of the test file."
            : "Judged by cross-validation: each of the \(report.count) texts by a classifier that had not learned it."
    }

    private var figures: [(name: String, value: String)] {
        [
            ("accuracy", Self.percent(report.accuracy)), ("always the most frequent class", Self.percent(report.baseline)),
            ("F1, mean of classes", Self.percent(report.macroF1)), ("log-loss", String(format: "%.3f nats", report.logLoss)),
            ("calibration error", Self.percent(report.calibrationError)), ("features", report.features.rawValue),
            ("time", String(format: "%.1f s", report.seconds)),
        ]
    }

    private static let columns = ["class", "texts", "precision", "recall", "F1"]

    private var classes: [[String]] {
        report.classes.map {
            [$0.label, "\($0.support)", Self.percent($0.precision), Self.percent($0.recall), Self.percent($0.f1)]
        }
    }

    var text: String {
        var lines = [how, ""] + TextTable(facts: figures).lines() + [""]
        lines += TextTable(Self.columns.map { $0 == "class" ? .left($0) : .right($0) }, rows: classes).lines()
        if !report.confusion.isEmpty {
            let pairs = report.confusion.indices.flatMap { row in
                report.confusion[row].indices.filter { $0 != row && report.confusion[row][$0] > 0 }.map {
                    (count: report.confusion[row][$0], text: "\(report.classes[row].label) as \(report.classes[$0].label)")
                }
            }.sorted { $0.count > $1.count }.prefix(5)
            if !pairs.isEmpty { lines += ["", "most frequent confusions"] + pairs.map { "  \($0.count) × \($0.text)" } }
        }
        if !report.mistakes.isEmpty {
            lines += ["", "mistakes with the largest probabilities"]
            lines += report.mistakes.prefix(5).map {
                "  \(names($0.labels)) taken for \(names($0.predicted)) (\(Self.percent($0.probability))): \(Self.short($0.text))"
            }
        }
        lines += ["", "accuracy by number of examples learned"]
        lines += TextTable(
            [.left(), .left()], indentation: "  ",
            rows: report.learningCurve.map {
                let bar = String(repeating: "█", count: Int((40 * $0.accuracy).rounded()))
                return ["\($0.examples)", "\(bar) \(Self.percent($0.accuracy))"]
            }
        ).lines()
        return lines.joined(separator: "\n")
    }

    private func names(_ labels: [String]) -> String { labels.isEmpty ? "none" : labels.joined(separator: ", ") }

    private static func short(_ text: String) -> String {
        let line = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return line.count > 90 ? line.prefix(90) + "…" : line
    }

    // MARK: - HTML

    var html: String {
        var page = Page("Classifier", style: Self.style)
        page.add(Page.paragraph(how))
        page.add(Page.table(facts: figures))
        page.add(
            "Classes",
            Page.table(
                titles: Self.columns,
                zip(classes, report.classes).map { row, item in
                    [.text(row[0])] + row[1...3].map { .number($0) } + [.html("\(Chart.share(item.f1)) \(row[4])")]
                }))
        page.add("Labels (rows) and what they were taken for (columns)", confusion)
        page.add(
            "Probability and share of right ones",
            chart(report.bins.map { ($0.probability, $0.accuracy) }, diagonal: true, most: 1))
        let most = Double(max(1, report.learningCurve.map(\.examples).max() ?? 1))
        page.add(
            "Accuracy by number of examples learned",
            chart(report.learningCurve.map { (Double($0.examples), $0.accuracy) }, diagonal: false, most: most))
        page.add(
            "What was tried",
            Page.table(
                titles: ["features", "penalty", "accuracy", "log-loss"],
                report.candidates.map {
                    [
                        .text($0.features.rawValue), .number("\($0.penalty)"), .number(Self.percent($0.accuracy)),
                        .number(String(format: "%.4f", $0.logLoss)),
                    ]
                }))
        page.add(
            "Mistakes with the largest probabilities",
            Page.table(
                titles: ["label", "taken for", "probability", "text"],
                report.mistakes.map {
                    [
                        .text(names($0.labels)), .text(names($0.predicted)), .number(Self.percent($0.probability)),
                        .html("<pre>\($0.text.prefix(600).htmlEscaped)</pre>"),
                    ]
                }))
        return page.html
    }

    private static let style = """
        #confusion{font-size:13px}#confusion td{text-align:center;padding:.35em;min-width:2em;border:1px solid var(--line)}
        #confusion th{padding:.3em}#confusion thead th{writing-mode:vertical-rl;transform:rotate(180deg)}

        """

    /// Rows are the labels, columns what they were taken for; the darker, the larger the share of the row.
    private var confusion: String {
        guard !report.confusion.isEmpty, report.confusion.count <= 60 else { return "" }
        let names = report.classes.map { "<th>\($0.label.htmlEscaped)</th>" }
        let rows = report.confusion.enumerated().map { row, counts -> String in
            let total = Double(max(1, counts.reduce(0, +)))
            let cells = counts.enumerated().map { column, count in
                let share = Int((100 * Double(count) / total).rounded())
                let colour = row == column ? "var(--ok)" : "var(--bad)"
                return
                    "<td style=\"background:color-mix(in srgb,\(colour) \(share)%,transparent)\">\(count == 0 ? "" : "\(count)")</td>"
            }.joined()
            return "<tr>\(names[row])\(cells)</tr>"
        }.joined()
        return
            "<div class=\"wide\"><table id=\"confusion\"><thead><tr><th></th>\(names.joined())</tr></thead>\(rows)</table></div>"
    }

    private func chart(_ points: [(x: Double, y: Double)], diagonal: Bool, most: Double) -> String {
        let lines = [Chart.Line(points, colour: "var(--ok)", hasDots: true)]
        return Chart.lines(
            diagonal ? [.init([(0, 0), (1, 1)], colour: "var(--line)", hasDots: false)] + lines : lines, x: 0...most, y: 0...1,
            ends: ("0", "\(Int(most))"), label: { "\(Int(100 * $0)) %" })
    }
}
