import Foundation
import Reports

/// Answers of several models or settings, side by side.
enum AnswerTable {
    struct Cell {
        var title: String
        var text: String
        /// Tokens and time, or the error.
        var facts: String
    }

    private static let minimumWidth = 30

    /// The lines of a table with a column for each cell; in a narrow terminal, the cells one below the other.
    static func lines(_ cells: [Cell], width: Int) -> [String] {
        let columnWidth = (width - 3 * (cells.count - 1)) / max(1, cells.count)
        guard cells.count > 1, columnWidth >= minimumWidth else {
            return cells.flatMap { cell in
                (cells.count > 1 ? wrapped("── \(cell.title)", width) : []) + wrapped(cell.text, width)
                    + ["   \(TerminalText.line(cell.facts))"]
            }
        }
        let columns = cells.map { cell in
            wrapped(cell.title, columnWidth) + [String(repeating: "─", count: columnWidth)] + wrapped(cell.text, columnWidth)
                + wrapped("(\(cell.facts))", columnWidth)
        }
        let height = columns.map(\.count).max() ?? 0
        return (0..<height).map { line in
            columns.map { TerminalText.padded(line < $0.count ? $0[line] : "", cells: columnWidth) }.joined(separator: " │ ")
        }
    }

    /// Lines of at most `width` cells, broken between words where possible. Text of models and files does not control the terminal.
    static func wrapped(_ text: String, _ width: Int) -> [String] {
        let lines = TerminalText.safe(text).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        return lines.flatMap { line -> [String] in
            var lines: [String] = []
            var current = ""
            for (index, word) in TerminalText.expandingTabs(line).split(separator: " ", omittingEmptySubsequences: false)
                .enumerated()
            {
                var word = word
                if index > 0, current.allSatisfy({ $0 == " " }), lines.isEmpty {
                    current += " "  // indentation
                } else if !current.isEmpty, TerminalText.width(current) + 1 + TerminalText.width(word) > width {
                    lines.append(current)
                    current = ""
                } else if !current.isEmpty {
                    current += " "
                }
                while TerminalText.width(word) > width {
                    // A wide character does not fit into a terminal with one column.
                    let count = max(1, TerminalText.prefix(word, cells: width).count)
                    lines.append(String(word.prefix(count)))
                    word = word.dropFirst(count)
                }
                current += word
            }
            return lines + [current]
        }
    }
}
