/// A table for terminals. Columns are as wide as their widest cell, counted in cells of the terminal; see ``TerminalText``.
public struct TextTable: Sendable {
    /// A column of a table.
    public struct Column: Sendable {
        fileprivate var title: String
        fileprivate var isRight = false
        fileprivate var minimum: Int

        /// A column of texts.
        ///
        /// - Parameter minimum: the smallest number of cells, for tables whose rows are written one by one.
        public static func left(_ title: String = "", minimum: Int = 0) -> Column { Column(title: title, minimum: minimum) }

        /// A column of numbers.
        ///
        /// - Parameter minimum: the smallest number of cells, for tables whose rows are written one by one.
        public static func right(_ title: String = "", minimum: Int = 0) -> Column {
            Column(title: title, isRight: true, minimum: minimum)
        }
    }

    private let columns: [Column]
    private let indentation: String
    private var rows: [[String]]

    /// Creates a table.
    ///
    /// - Parameter indentation: what each line begins with.
    public init(_ columns: [Column], indentation: String = "", rows: [[String]] = []) {
        (self.columns, self.indentation, self.rows) = (columns, indentation, [])
        for row in rows { add(row) }
    }

    /// Creates a table of names and their values, without titles.
    public init(facts: [(name: String, value: String)], indentation: String = "") {
        self.init([.left(), .left()], indentation: indentation, rows: facts.map { [$0.name, $0.value] })
    }

    /// Adds a row. Line ends in a cell become spaces.
    public mutating func add(_ cells: [String]) { rows.append(Self.cells(cells)) }

    private static func cells(_ cells: [String]) -> [String] {
        cells.map { $0.contains(where: \.isNewline) ? $0.split(whereSeparator: \.isNewline).joined(separator: " ") : $0 }
    }

    /// The titles, if there are any, and the rows.
    ///
    /// - Parameter width: longer lines are cut off, with “…” as their last character.
    public func lines(width: Int = .max) -> [String] {
        let widths = columns.indices.map { index in
            rows.reduce(smallestWidth(index)) { max($0, index < $1.count ? TerminalText.width($1[index]) : 0) }
        }
        let titles = columns.contains { !$0.title.isEmpty } ? [columns.map(\.title)] : []
        return (titles + rows).map { line($0, widths, width) }
    }

    /// The lines of ``lines(width:)``, each with a line end.
    public func text(width: Int = .max) -> String { lines(width: width).map { $0 + "\n" }.joined() }

    /// The line of the titles, if the columns have their smallest widths.
    public var titles: String { row(columns.map(\.title)) }

    /// A line of cells, if the columns have their smallest widths.
    public func row(_ cells: [String]) -> String { line(Self.cells(cells), columns.indices.map(smallestWidth), .max) }

    private func smallestWidth(_ index: Int) -> Int { max(columns[index].minimum, TerminalText.width(columns[index].title)) }

    private func line(_ cells: [String], _ widths: [Int], _ width: Int) -> String {
        var line = indentation
        for (index, column) in columns.enumerated() {
            let cell = index < cells.count ? cells[index] : ""
            let space = String(repeating: " ", count: max(0, widths[index] - TerminalText.width(cell)))
            line += (index > 0 ? "  " : "") + (column.isRight ? space + cell : cell + space)
        }
        while line.last == " " { line.removeLast() }
        return TerminalText.width(line) > width ? TerminalText.prefix(line, cells: max(0, width - 1)) + "…" : line
    }
}
