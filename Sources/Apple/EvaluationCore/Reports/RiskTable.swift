internal import Foundation

/// The risks of a feature: a table in Markdown, with the results of the classes that test them.
struct RiskTable {
    /// The text around the table.
    let before: String
    let after: String
    /// The cells of the table, with a last column for the results; empty without a table.
    let columns: [String]
    let rows: [[String]]

    init(_ text: String, _ classes: [EvaluationReport.Share]) {
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        // The second line of a table consists of dashes.
        let start = lines.indices.dropLast().first { index in
            Self.isRow(lines[index]) && Self.isRow(lines[index + 1]) && lines[index + 1].allSatisfy { "|-: ".contains($0) }
        }
        guard let start else {
            (before, after) = (text.trimmingCharacters(in: .whitespacesAndNewlines), "")
            (columns, rows) = ([], [])
            return
        }
        let end = lines[start...].firstIndex { !Self.isRow($0) } ?? lines.endIndex
        let columns = Self.cells(lines[start])
        let tested = columns.firstIndex { $0.lowercased() == "tested by" }
        self.columns = columns + ["result"]
        rows = lines[(start + 2)..<end].map { line in
            var cells = Self.cells(line)
            cells += Array(repeating: "", count: max(0, columns.count - cells.count))
            return cells.prefix(columns.count) + [tested.map { Self.result(cells[$0], classes) } ?? ""]
        }
        func joined(_ lines: ArraySlice<Substring>) -> String {
            lines.joined(separator: "\n").trimmingCharacters(in: .whitespacesAndNewlines)
        }
        (before, after) = (joined(lines[..<start]), joined(lines[end...]))
    }

    private static func isRow(_ line: Substring) -> Bool { line.drop { $0 == " " }.hasPrefix("|") }

    private static func cells(_ line: Substring) -> [String] {
        var cells = [""]
        var isEscaped = false
        for character in line.trimmingCharacters(in: .whitespaces).dropFirst() {
            if character == "|", !isEscaped { cells.append("") } else { cells[cells.count - 1].append(character) }
            isEscaped = character == "\\" && !isEscaped
        }
        if cells.last?.allSatisfy({ $0 == " " }) == true { cells.removeLast() }
        return cells.map { $0.replacing("\\|", with: "|").trimmingCharacters(in: .whitespaces) }
    }

    /// The results of the classes that a cell names, such as: class "unsafe".
    private static func result(_ cell: String, _ classes: [EvaluationReport.Share]) -> String {
        cell.matches(of: /class ["“'`]([^"”'`]+)["”'`]/).map { match in
            let name = match.1
            guard let line = classes.first(where: { $0.name == name }) else { return "there is no class “\(name)” in this run" }
            return "\(line.passed) of \(line.count) passed"
        }.joined(separator: "; ")
    }

    /// The table in Markdown.
    var text: String {
        func line(_ cells: [String]) -> String {
            "| " + cells.map { $0.replacing("|", with: "\\|") }.joined(separator: " | ") + " |"
        }
        var lines = before.isEmpty ? [] : [before, ""]
        if !columns.isEmpty {
            lines += [line(columns), String(repeating: "|---", count: columns.count) + "|"] + rows.map(line)
        }
        return (lines + (after.isEmpty ? [] : ["", after])).joined(separator: "\n")
    }
}
