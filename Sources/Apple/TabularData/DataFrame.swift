/// A table with named columns, as far as evaluation results need it: a part of Apple's module of this name, which does not exist on
/// other platforms.
///
/// Columns may have any type; a missing element is nil.
public struct DataFrame: @unchecked Sendable, CustomStringConvertible {
    // Unchecked: elements are values of Sendable types, which the types of columns do not express.
    public private(set) var columns: [AnyColumn]

    /// Creates an empty table.
    public init() { columns = [] }

    /// Creates a table of columns, which should have the same length.
    public init(columns: some Sequence<AnyColumn>) { self.columns = Array(columns) }

    /// The number of rows and columns.
    public var shape: (rows: Int, columns: Int) { (columns.map(\.count).max() ?? 0, columns.count) }

    /// Adds a column.
    public mutating func append<T>(column: Column<T>) { columns.append(column.eraseToAnyColumn()) }

    /// Whether there is a column with a name.
    public func containsColumn(_ name: String) -> Bool { columns.contains { $0.name == name } }

    /// The column with a name. There must be one.
    public subscript(columnName: String) -> AnyColumn {
        guard let column = columns.first(where: { $0.name == columnName }) else {
            // As in Apple's module: a wrong name is a mistake in the program. ``containsColumn(_:)`` asks first.
            preconditionFailure("There is no column named \(columnName).")
        }
        return column
    }

    /// The column with a name, whose elements have a type. There must be one.
    public subscript<T>(columnName: String, type: T.Type) -> Column<T> { self[columnName].assumingType(type) }

    /// The rows, in order.
    public var rows: Rows { Rows(frame: self) }

    /// The rows of a table.
    public struct Rows: RandomAccessCollection {
        let frame: DataFrame
        public var startIndex: Int { 0 }
        public var endIndex: Int { frame.shape.rows }
        public subscript(position: Int) -> Row { Row(frame: frame, index: position) }
    }

    /// A row of a table.
    public struct Row {
        let frame: DataFrame
        public let index: Int
        /// The element in a column.
        public subscript(columnName: String) -> Any? { frame[columnName][index] }
        /// The element in a column, if it has a type.
        public subscript<T>(columnName: String, type: T.Type) -> T? { frame[columnName][index] as? T }
    }

    /// The table as text, with a line for each row.
    public var description: String {
        let cells = columns.map { column in
            [column.name]
                + (0..<shape.rows).map { row in
                    let text = column[row].map { "\($0)" } ?? "nil"
                    let line = text.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: " ")
                    return line.count > 40 ? line.prefix(39) + "…" : line
                }
        }
        let widths = cells.map { $0.map(\.count).max() ?? 0 }
        return (0...shape.rows).map { row in
            zip(cells, widths).map { $0[row] + String(repeating: " ", count: $1 - $0[row].count) }.joined(separator: "  ")
        }.joined(separator: "\n")
    }
}

/// A column of a table with elements of one type.
public struct Column<WrappedElement>: RandomAccessCollection {
    public var name: String
    private let contents: [WrappedElement?]

    /// Creates a column.
    public init(name: String, contents: some Sequence<WrappedElement?>) {
        self.name = name
        self.contents = Array(contents)
    }

    public var startIndex: Int { 0 }
    public var endIndex: Int { contents.count }
    public subscript(position: Int) -> WrappedElement? { contents[position] }

    /// The column without the type of its elements.
    public func eraseToAnyColumn() -> AnyColumn { AnyColumn(name: name, contents: contents.map { $0 as Any? }) }
}

/// A column whose elements may have any type.
public struct AnyColumn: RandomAccessCollection, @unchecked Sendable {
    // Unchecked for the same reason as tables.
    public var name: String
    fileprivate let contents: [Any?]

    public var startIndex: Int { 0 }
    public var endIndex: Int { contents.count }
    /// An element; nil if it is missing.
    public subscript(position: Int) -> Any? { position < contents.count ? contents[position] : nil }

    /// The column with the type of its elements; elements of other types become nil.
    public func assumingType<T>(_ type: T.Type) -> Column<T> { Column(name: name, contents: contents.map { $0 as? T }) }
}
