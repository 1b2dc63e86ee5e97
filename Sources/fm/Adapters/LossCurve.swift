import Foundation
import FoundationModelsTraining
import Synchronization
import Reports

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
        let losses = (points.map(\.loss) + points.compactMap(\.validationLoss)).filter(\.isFinite)
        let training = points.enumerated().map { (Double($0.offset + 1), $0.element.loss) }
        let validation = points.enumerated().compactMap { item in
            item.element.validationLoss.map { (Double(item.offset + 1), $0) }
        }
        var page = Page("Training of \(plan.modelName)")
        page.add(
            Chart.lines(
                [
                    .init(training, colour: "var(--accent)", hasDots: false),
                    .init(validation, colour: "var(--bad)", hasDots: true),
                ], x: 1...Double(max(2, points.count)), y: (losses.min() ?? 0)...(losses.max() ?? 1),
                ends: ("step 1", "step \(points.count)"), label: { String(format: "%.3f", $0) }))
        page.add(
            "<p><span style=\"color:var(--accent)\">loss of each step</span> · <span class=\"bad\">validation loss</span></p>")
        func loss(_ value: Double?) -> String { value.map { String(format: "%.4f", $0) } ?? "–" }
        page.add(
            Page.table(facts: [
                ("rows", "\(plan.rows) learned, \(plan.validationRows) to validate"),
                ("tokens of an epoch", "\(plan.tokens), \(plan.learnedTokens) learned"),
                ("steps", "\(summary.steps)\(summary.stoppedEarly ? ", ended early" : "")"),
                ("validation loss before", loss(summary.validationLossBefore)),
                ("validation loss after", loss(summary.validationLoss)),
                ("right tokens", summary.validationAccuracy.map { String(format: "%.1f %%", 100 * $0) } ?? "–"),
                ("seconds", String(format: "%.0f", summary.seconds)),
            ]))
        return page.html
    }
}
