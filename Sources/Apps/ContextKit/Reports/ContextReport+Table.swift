import Foundation
internal import Reports

extension ContextReport {
    /// The report as a bar and a table, for a terminal.
    ///
    /// - Parameters:
    ///   - width: Maximum width of the bar in columns.
    ///   - isColored: Whether to color parts with ANSI escapes.
    public func table(width: Int = 64, isColored: Bool = false) -> String {
        let rows =
            parts.map { row($0.kind.rawValue, $0.tokens, $0.name) }
            + [row("used", usedTokens, "of \(contextSize)"), row("free", freeTokens, "for the response")]
        let lines = TextTable([.left(), .right(minimum: 7), .right(), .left()], rows: rows).lines()
        let marks = parts.map { "\u{1B}[\($0.kind.color)m■\u{1B}[0m " } + ["  ", "  "]
        return bar(width: width, isColored: isColored) + "\n"
            + zip(marks, lines).map { (isColored ? $0 : "") + $1 + "\n" }.joined()
            + suggestions.map { "• \($0)\n" }.joined()
    }

    private func row(_ label: String, _ tokens: Int, _ name: String) -> [String] {
        [label, "\(tokens)", String(format: "%.1f %%", 100 * Double(tokens) / Double(max(1, contextSize))), name]
    }

    /// The usage of the window as a bar, by kind of part.
    public func bar(width: Int = 64, isColored: Bool = false) -> String {
        var bar = ""
        var cells = 0
        var tokens = 0
        for kind in Part.Kind.allCases {
            tokens += self.tokens(of: kind)
            // The cumulative sum is rounded, so that the lengths of the parts add up to the whole.
            let end = min(width, (tokens * width + contextSize / 2) / max(1, contextSize))
            guard end > cells else { continue }
            let part = String(repeating: isColored ? "█" : kind.letter, count: end - cells)
            bar += isColored ? "\u{1B}[\(kind.color)m\(part)\u{1B}[0m" : part
            cells = end
        }
        let percent = Int((100 * Double(usedTokens) / Double(max(1, contextSize))).rounded())
        return "[" + bar + String(repeating: "·", count: max(0, width - cells)) + "] \(percent) %"
    }
}

extension ContextReport.Part.Kind {
    fileprivate var color: String {
        switch self {
        case .template: "90"
        case .instructions: "34"
        case .pinned: "36"
        case .carried: "35"
        case .tool: "33"
        case .history: "32"
        case .recalled: "95"
        case .prompt: "37"
        case .schema: "31"
        }
    }

    /// Represents the kind in a bar without colors.
    fileprivate var letter: String {
        switch self {
        case .template: "."
        case .instructions: "i"
        case .pinned: "p"
        case .carried: "c"
        case .tool: "t"
        case .history: "h"
        case .recalled: "r"
        case .prompt: "P"
        case .schema: "S"
        }
    }
}
