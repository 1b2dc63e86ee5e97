import Foundation
import TextClassification

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

    var text: String {
        var lines = [how, ""]
        lines += figures.map { "\($0.name.padding(toLength: 32, withPad: " ", startingAt: 0))\($0.value)" }
        let width = min(40, max(5, report.classes.map(\.label.count).max() ?? 0)) + 2
        func row(_ cells: [String]) -> String {
            cells[0].padding(toLength: width, withPad: " ", startingAt: 0)
                + cells.dropFirst().map { String(repeating: " ", count: max(1, 11 - $0.count)) + $0 }.joined()
        }
        lines += ["", row(["class", "texts", "precision", "recall", "F1"])]
        for item in report.classes {
            lines.append(
                row([
                    item.label, "\(item.support)", Self.percent(item.precision), Self.percent(item.recall), Self.percent(item.f1),
                ]))
        }
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
        lines += report.learningCurve.map {
            let bar = String(repeating: "█", count: Int((40 * $0.accuracy).rounded()))
            return "  " + "\($0.examples)".padding(toLength: 8, withPad: " ", startingAt: 0) + bar + " "
                + Self.percent($0.accuracy)
        }
        return lines.joined(separator: "\n")
    }

    private func names(_ labels: [String]) -> String { labels.isEmpty ? "none" : labels.joined(separator: ", ") }

    private static func short(_ text: String) -> String {
        let line = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return line.count > 90 ? line.prefix(90) + "…" : line
    }

    // MARK: - HTML

    private static func xml(_ text: String) -> String { EvalReport.xml(text) }

    var html: String {
        let rows = figures.map { "<tr><th>\(Self.xml($0.name))</th><td>\(Self.xml($0.value))</td></tr>" }.joined()
        let classes = report.classes.map { item in
            "<tr><td>\(Self.xml(item.label))<td>\(item.support)<td>\(Self.percent(item.precision))<td>\(Self.percent(item.recall))"
                + "<td>\(bar(item.f1))</tr>"
        }.joined()
        let candidates = report.candidates.map { item in
            "<tr><td>\(item.features.rawValue)<td>\(item.penalty)<td>\(Self.percent(item.accuracy))"
                + "<td>\(String(format: "%.4f", item.logLoss))</tr>"
        }.joined()
        let mistakes = report.mistakes.map { item in
            "<tr><td>\(Self.xml(names(item.labels)))<td>\(Self.xml(names(item.predicted)))<td>\(Self.percent(item.probability))"
                + "<td><pre>\(Self.xml(String(item.text.prefix(600))))</pre></tr>"
        }.joined()
        return """
            <!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Classifier</title>
            <meta name="viewport" content="width=device-width"><style>
            :root{color-scheme:light dark;--ok:#2a9d5c;--bad:#d1495b;--line:#8884}
            body{font:15px/1.45 system-ui,sans-serif;max-width:64rem;margin:2em auto;padding:0 1em}
            h2{font-size:1.1rem;margin-top:2em}table{border-collapse:collapse}td,th{text-align:left;padding:.25em .8em .25em 0;\
            vertical-align:top}tr{border-bottom:1px solid var(--line)}th{font-weight:500}
            pre{white-space:pre-wrap;font:inherit;margin:0;overflow-wrap:anywhere}.wide{overflow-x:auto}
            #confusion{font-size:13px}#confusion td{text-align:center;padding:.35em;min-width:2em;border:1px solid var(--line)}
            #confusion th{padding:.3em}#confusion thead th{writing-mode:vertical-rl;transform:rotate(180deg)}
            svg{max-width:34rem;width:100%;height:auto}text{font-size:12px;fill:currentColor}
            </style><h1>Classifier</h1><p>\(Self.xml(how))</p><table>\(rows)</table>
            <h2>Classes</h2><div class="wide"><table><tr><th>class<th>texts<th>precision<th>recall<th>F1</tr>\(classes)</table></div>
            \(confusion)
            <h2>Probability and share of right ones</h2>\(calibration)
            <h2>Accuracy by number of examples learned</h2>\(curve)
            <h2>What was tried</h2><table><tr><th>features<th>penalty<th>accuracy<th>log-loss</tr>\(candidates)</table>
            <h2>Mistakes with the largest probabilities</h2>
            <div class="wide"><table><tr><th>label<th>taken for<th>probability<th>text</tr>\(mistakes)</table></div></html>
            """
    }

    private func bar(_ share: Double) -> String {
        "<svg viewBox=\"0 0 100 10\" style=\"width:8em;height:.8em\"><rect width=\"100\" height=\"10\" fill=\"var(--line)\"/>"
            + "<rect width=\"\(String(format: "%.1f", 100 * share))\" height=\"10\" fill=\"var(--ok)\"/></svg> \(Self.percent(share))"
    }

    /// Rows are the labels, columns what they were taken for; the darker, the larger the share of the row.
    private var confusion: String {
        guard !report.confusion.isEmpty, report.confusion.count <= 60 else { return "" }
        let names = report.classes.map { Self.xml($0.label) }
        let rows = report.confusion.enumerated().map { row, counts -> String in
            let total = Double(max(1, counts.reduce(0, +)))
            let cells = counts.enumerated().map { column, count in
                let share = Int((100 * Double(count) / total).rounded())
                let colour = row == column ? "var(--ok)" : "var(--bad)"
                return
                    "<td style=\"background:color-mix(in srgb,\(colour) \(share)%,transparent)\">\(count == 0 ? "" : "\(count)")"
            }.joined()
            return "<tr><th>\(names[row])</th>\(cells)</tr>"
        }.joined()
        return "<h2>Labels (rows) and what they were taken for (columns)</h2><div class=\"wide\"><table id=\"confusion\">"
            + "<thead><tr><th></th>\(names.map { "<th>\($0)</th>" }.joined())</tr></thead>\(rows)</table></div>"
    }

    private func chart(_ points: [(x: Double, y: Double)], _ low: String, _ high: String, diagonal: Bool) -> String {
        func place(_ point: (x: Double, y: Double)) -> String {
            String(format: "%.1f,%.1f", 50 + 420 * point.x, 230 - 210 * point.y)
        }
        let dots = points.map { point in
            let place = place(point).split(separator: ",")
            return "<circle cx=\"\(place[0])\" cy=\"\(place[1])\" r=\"4\" fill=\"var(--ok)\"/>"
        }.joined()
        let grid = (0...4).map { index in
            let y = 230 - 210 * Double(index) / 4
            return "<line x1=\"50\" x2=\"470\" y1=\"\(y)\" y2=\"\(y)\" stroke=\"var(--line)\"/>"
                + "<text x=\"4\" y=\"\(y + 4)\">\(index * 25) %</text>"
        }.joined()
        return "<svg viewBox=\"0 0 500 260\" role=\"img\">\(grid)"
            + (diagonal ? "<line x1=\"50\" x2=\"470\" y1=\"230\" y2=\"20\" stroke=\"var(--line)\" stroke-width=\"2\"/>" : "")
            + "<polyline points=\"\(points.map(place).joined(separator: " "))\" fill=\"none\" stroke=\"var(--ok)\" stroke-width=\"2\"/>\(dots)"
            + "<text x=\"50\" y=\"252\">\(low)</text><text x=\"440\" y=\"252\">\(high)</text></svg>"
    }

    private var calibration: String {
        chart(report.bins.map { ($0.probability, $0.accuracy) }, "0", "1", diagonal: true)
    }

    private var curve: String {
        let most = Double(max(1, report.learningCurve.map(\.examples).max() ?? 1))
        return chart(
            report.learningCurve.map { (Double($0.examples) / most, $0.accuracy) }, "0", "\(Int(most))", diagonal: false)
    }
}
