/// Rows of a matrix of which most elements are zero, in the compressed sparse row form.
package struct SparseRows: Sendable {
    /// Where each row begins in `columns` and `values`, and the end of the last.
    package private(set) var starts = [0]
    package private(set) var columns: [Int32] = []
    package private(set) var values: [Float] = []
    package let width: Int

    package var count: Int { starts.count - 1 }

    /// - Parameter width: the number of columns.
    package init(width: Int) { self.width = width }

    /// - Precondition: The columns are from 0 to less than the width.
    package mutating func append(_ row: some Sequence<(column: Int, value: Float)>) {
        for (column, value) in row {
            precondition((0..<width).contains(column), "no such column")
            columns.append(Int32(column))
            values.append(value)
        }
        starts.append(columns.count)
    }
}
