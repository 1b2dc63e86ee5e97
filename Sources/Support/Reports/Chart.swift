internal import Foundation

/// Pictures for a ``Page``, as SVG.
public enum Chart {
    /// Points that a line connects.
    public struct Line: Sendable {
        fileprivate var points: [(x: Double, y: Double)]
        fileprivate var colour: String
        fileprivate var hasDots: Bool

        /// Creates a line.
        ///
        /// - Parameter colour: a colour of CSS, such as `var(--ok)`.
        public init(_ points: [(x: Double, y: Double)], colour: String, hasDots: Bool) {
            (self.points, self.colour, self.hasDots) = (points.filter { $0.x.isFinite && $0.y.isFinite }, colour, hasDots)
        }
    }

    /// Lines with a scale.
    ///
    /// - Parameters:
    ///   - ends: what is written below the smallest and the largest horizontal value.
    ///   - label: what is written beside a vertical value.
    public static func lines(
        _ lines: [Line], x: ClosedRange<Double>, y: ClosedRange<Double>, ends: (String, String), label: (Double) -> String
    ) -> String {
        let (width, height, left, bottom) = (820.0, 380.0, 60.0, 30.0)
        func share(_ value: Double, _ range: ClosedRange<Double>) -> Double {
            (value - range.lowerBound) / max(1e-12, range.upperBound - range.lowerBound)
        }
        func place(_ point: (x: Double, y: Double)) -> (x: Double, y: Double) {
            (left + (width - left - 20) * share(point.x, x), 20 + (height - bottom - 20) * (1 - share(point.y, y)))
        }
        var svg = ""
        for step in 0...4 {
            let value = y.lowerBound + (y.upperBound - y.lowerBound) * Double(step) / 4
            let height = place((x.lowerBound, value)).y
            svg += "<line \(format("x1", left)) \(format("x2", width - 20)) \(format("y1", height)) \(format("y2", height)) "
            svg += "stroke=\"var(--line)\"/><text x=\"0\" \(format("y", height + 4))>\(label(value).htmlEscaped)</text>"
        }
        for line in lines {
            let points = line.points.map(place)
            let list = points.map { String(format: "%.1f,%.1f", $0.x, $0.y) }.joined(separator: " ")
            svg += "<polyline points=\"\(list)\" fill=\"none\" stroke=\"\(line.colour)\" stroke-width=\"2\"/>"
            guard line.hasDots else { continue }
            for point in points {
                svg += "<circle \(format("cx", point.x)) \(format("cy", point.y)) r=\"4\" fill=\"\(line.colour)\"/>"
            }
        }
        let texts = [("start", left, ends.0), ("end", width - 20, ends.1)].map { anchor, x, text in
            "<text \(format("x", x)) \(format("y", height)) text-anchor=\"\(anchor)\">\(text.htmlEscaped)</text>"
        }
        return "<svg viewBox=\"0 0 820 390\" role=\"img\">\(svg)\(texts.joined())</svg>"
    }

    /// Bars beside each other, as high as their values.
    ///
    /// - Parameter bars: a title, which is shown where the mouse points, and a label below the bar, which may be empty.
    public static func bars(_ bars: [(value: Double, title: String, label: String)]) -> String {
        let highest = max(bars.map(\.value).max() ?? 0, 1e-12)
        let svg = bars.enumerated().map { index, bar -> String in
            let height = 160 * max(0, bar.value) / highest
            return
                "<rect x=\"\(30 * index)\" \(format("y", 170 - height)) width=\"26\" \(format("height", height)) fill=\"var(--ok)\">"
                + "<title>\(bar.title.htmlEscaped)</title></rect><text x=\"\(30 * index)\" y=\"188\">\(bar.label.htmlEscaped)</text>"
        }
        let width = 30 * max(1, bars.count)
        return "<svg width=\"\(width)\" viewBox=\"0 0 \(width) 195\" role=\"img\">\(svg.joined())</svg>"
    }

    /// A bar for a share from 0 to 1, for a cell of a table.
    public static func share(_ share: Double) -> String {
        "<svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" style=\"width:8em;height:.8em\" role=\"img\">"
            + "<rect width=\"100\" height=\"10\" fill=\"var(--line)\"/>"
            + "<rect \(format("width", 100 * min(1, max(0, share)))) height=\"10\" fill=\"var(--ok)\"/></svg>"
    }

    private static func format(_ name: String, _ value: Double) -> String { "\(name)=\"\(String(format: "%.1f", value))\"" }
}
