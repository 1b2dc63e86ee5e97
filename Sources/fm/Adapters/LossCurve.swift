import Foundation
import FoundationModelsTraining
import Synchronization

/// The losses of a run, as a picture in the terminal and as a page that works offline.
final class LossCurve: Sendable {
    private let points = Mutex<[AdapterTrainer.Progress]>([])

    func add(_ progress: AdapterTrainer.Progress) {
        guard progress.loss.isFinite else { return }
        points.withLock { $0.append(progress) }
    }

    private static let (columns, rows) = (60, 10)

    /// A curve of the losses with its scale; nil for fewer than two steps.
    var text: String? {
        let points = points.withLock { $0 }
        guard points.count > 1, let largest = points.map(\.loss).max(), let smallest = points.map(\.loss).min() else {
            return nil
        }
        let span = max(1e-9, largest - smallest)
        var cells = [[Character]](repeating: [Character](repeating: " ", count: Self.columns), count: Self.rows)
        func place(_ step: Int, _ loss: Double, _ mark: Character) {
            let column = min(Self.columns - 1, (step - 1) * Self.columns / max(1, points.count))
            let row = min(Self.rows - 1, max(0, Int((largest - loss) / span * Double(Self.rows - 1) + 0.5)))
            cells[row][column] = mark
        }
        for (index, point) in points.enumerated() { place(index + 1, point.loss, "·") }
        for (index, point) in points.enumerated() { if let loss = point.validationLoss { place(index + 1, loss, "○") } }
        var text = ""
        for (index, row) in cells.enumerated() {
            let value = largest - span * Double(index) / Double(Self.rows - 1)
            text += String(format: "%7.3f │", value) + String(row) + "\n"
        }
        return text + "        └" + String(repeating: "─", count: Self.columns) + "\n"
            + "         · loss of each step   ○ validation loss\n"
    }

    func page(_ plan: AdapterTrainer.Plan, _ summary: AdapterTrainer.Summary) -> String {
        let points = points.withLock { $0 }
        let (width, height, margin) = (820.0, 380.0, 50.0)
        let losses = points.map(\.loss) + points.compactMap(\.validationLoss)
        let (low, high) = (losses.min() ?? 0, losses.max() ?? 1)
        func x(_ step: Int) -> Double { margin + (width - 2 * margin) * Double(step - 1) / Double(max(1, points.count - 1)) }
        func y(_ loss: Double) -> Double { margin + (height - 2 * margin) * (high - loss) / max(1e-9, high - low) }
        func coordinates(_ values: [(Int, Double)]) -> String {
            values.map { String(format: "%.1f,%.1f", x($0.0), y($0.1)) }.joined(separator: " ")
        }
        let training = points.enumerated().map { ($0.offset + 1, $0.element.loss) }
        let validation = points.enumerated().compactMap { item in item.element.validationLoss.map { (item.offset + 1, $0) } }
        let grid = (0...4).map { index -> String in
            let loss = low + (high - low) * Double(index) / 4
            return String(
                format:
                    "<line x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/><text x=\"%.0f\" y=\"%.1f\">%.3f</text>",
                margin, width - margin, y(loss), y(loss), 4.0, y(loss) + 4, loss)
        }.joined()
        let dots = validation.map { String(format: "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>", x($0.0), y($0.1)) }.joined()
        func row(_ name: String, _ value: String) -> String { "<tr><th>\(name)</th><td>\(value)</td></tr>" }
        func loss(_ value: Double?) -> String { value.map { String(format: "%.4f", $0) } ?? "–" }
        let name = plan.modelName.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
        return """
            <!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Training</title>
            <meta name="viewport" content="width=device-width"><style>
            body{font:15px system-ui,sans-serif;max-width:860px;margin:2em auto;padding:0 1em;color:#222;background:#fff}
            svg{width:100%;height:auto}text{font-size:12px;fill:#666}.grid{stroke:#ddd}
            .loss{fill:none;stroke:#2563eb;stroke-width:1.5}.validation{fill:none;stroke:#dc2626;stroke-width:2}circle{fill:#dc2626}
            th{text-align:left;padding-right:2em;font-weight:500}
            @media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}.grid{stroke:#444}text{fill:#aaa}}
            </style><h1>Training of \(name)</h1>
            <svg viewBox="0 0 \(Int(width)) \(Int(height))" role="img" aria-label="Loss by step">\(grid)
            <polyline class="loss" points="\(coordinates(training))"/>
            <polyline class="validation" points="\(coordinates(validation))"/>\(dots)
            <text x="\(Int(margin))" y="\(Int(height - 10))">step 1</text>
            <text x="\(Int(width - margin - 50))" y="\(Int(height - 10))">step \(points.count)</text></svg>
            <p><span style="color:#2563eb">loss of each step</span> · <span style="color:#dc2626">validation loss</span></p>
            <table>\(row("rows", "\(plan.rows) learned, \(plan.validationRows) to validate"))\
            \(row("tokens of an epoch", "\(plan.tokens), \(plan.learnedTokens) learned"))\
            \(row("steps", "\(summary.steps)\(summary.stoppedEarly ? ", ended early" : "")"))\
            \(row("validation loss before", loss(summary.validationLossBefore)))\
            \(row("validation loss after", loss(summary.validationLoss)))\
            \(row("right tokens", summary.validationAccuracy.map { String(format: "%.1f %%", 100 * $0) } ?? "–"))\
            \(row("seconds", String(format: "%.0f", summary.seconds)))</table></html>
            """
    }
}
