import Foundation

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
                (cells.count > 1 ? ["── \(cell.title)"] : []) + wrapped(cell.text, width) + ["   \(cell.facts)"]
            }
        }
        let columns = cells.map { cell in
            wrapped(cell.title, columnWidth) + [String(repeating: "─", count: columnWidth)] + wrapped(cell.text, columnWidth)
                + wrapped("(\(cell.facts))", columnWidth)
        }
        let height = columns.map(\.count).max() ?? 0
        return (0..<height).map { line in
            columns.map { column in
                let text = line < column.count ? column[line] : ""
                return text + String(repeating: " ", count: max(0, columnWidth - text.count))
            }.joined(separator: " │ ")
        }
    }

    /// Lines of at most `width` characters, broken between words where possible.
    static func wrapped(_ text: String, _ width: Int) -> [String] {
        text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).flatMap { line -> [String] in
            var lines: [String] = []
            var current = ""
            for (index, word) in line.split(separator: " ", omittingEmptySubsequences: false).enumerated() {
                var word = word
                if index > 0, current.allSatisfy({ $0 == " " }), lines.isEmpty {
                    current += " "  // indentation
                } else if !current.isEmpty, current.count + 1 + word.count > width {
                    lines.append(current)
                    current = ""
                } else if !current.isEmpty {
                    current += " "
                }
                while word.count > width {
                    lines.append(String(word.prefix(width)))
                    word = word.dropFirst(width)
                }
                current += word
            }
            return lines + [current]
        }
    }
}
