import Foundation

extension ContextReport {
    /// The report as a bar and a table, for a terminal.
    ///
    /// - Parameters:
    ///   - width: Maximum width of the bar in columns.
    ///   - isColored: Whether to color parts with ANSI escapes.
    public func table(width: Int = 64, isColored: Bool = false) -> String {
        var text = bar(width: width, isColored: isColored) + "\n"
        for part in parts {
            text += line(part.kind.rawValue, part.tokens, part.name, color: isColored ? part.kind.color : nil)
        }
        text += line("used", usedTokens, "of \(contextSize)", color: nil)
        text += line("free", freeTokens, "for the response", color: nil)
        for suggestion in suggestions { text += "• \(suggestion)\n" }
        return text
    }

    private func line(_ label: String, _ tokens: Int, _ name: String, color: String?) -> String {
        let mark = color.map { "\u{1B}[\($0)m■\u{1B}[0m " } ?? ""
        let share = 100 * Double(tokens) / Double(max(1, contextSize))
        return mark + label.padding(toLength: 13, withPad: " ", startingAt: 0)
            + String(format: "%7d  %5.1f %%  ", tokens, share) + name + "\n"
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
