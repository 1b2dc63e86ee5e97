/// Vectors that a model takes in the place of token embeddings: those of a picture, for example.
package struct EmbeddingRun: Sendable {
    /// `[count][width]`; copies share the memory.
    package let values: [Float]
    package let width: Int
    package let digest: ContentDigest
    package let places: [RowPosition]
    package let extent: Int
    package let seesItself: Bool

    package var count: Int { values.count / width }

    /// - Parameters:
    ///   - digest: identifies what the vectors were computed from, and all settings of that; nil for the digest of the vectors.
    ///   - places: the positions of the vectors from that of the first one on; empty if they are successive.
    ///   - extent: the number of positions that the run takes; nil for one more than the largest coordinate.
    ///   - seesItself: whether all vectors see each other, rather than only earlier ones.
    package init(
        _ values: [Float], width: Int, digest: ContentDigest? = nil, places: [RowPosition] = [], extent: Int? = nil,
        seesItself: Bool = false
    ) throws(ModelInputError) {
        guard width > 0, !values.isEmpty, values.count % width == 0 else {
            throw .noVectors(values: values.count, width: width)
        }
        let count = values.count / width
        guard places.isEmpty || places.count == count else { throw .wrongPlaces(places.count, rows: count) }
        self.values = values
        self.width = width
        self.digest = digest ?? values.withUnsafeBytes { ContentDigest(of: $0) }
        self.places = places
        let largest = places.map { Int(max($0.time, $0.height, $0.width)) }.max() ?? count - 1
        self.extent = max(0, extent ?? largest + 1)
        self.seesItself = seesItself
    }
}

/// What a model processes: tokens, and vectors in their place.
package struct ModelInput: Sendable {
    package private(set) var rows: InputRows
    /// The vectors of the rows' runs.
    private var runs: [EmbeddingRun] = []

    package init(_ tokens: some Sequence<TokenID> = []) { rows = InputRows(Array(tokens)) }

    package var count: Int { rows.count }
    /// The token of each row; ``InputRows/embedded`` for a vector.
    package var ids: [TokenID] { rows.ids }

    package mutating func append(_ tokens: some Sequence<TokenID>) { rows.append(tokens) }

    package mutating func append(_ run: EmbeddingRun) {
        let first = rows.count
        rows.append(
            InputRows.Run(first: first, count: run.count, digest: run.digest, places: run.places, extent: run.extent))
        runs.append(run)
        if run.seesItself { rows.makeVisible(first..<rows.count) }
    }

    /// Lets the rows of a range see each other, such as a picture together with the text before it.
    package mutating func makeVisible(_ range: Range<Int>) throws(ModelInputError) {
        guard !range.isEmpty, range.clamped(to: 0..<rows.count) == range, !rows.visible.contains(where: { $0.overlaps(range) })
        else { throw .unusableRange(range) }
        rows.makeVisible(range)
    }

    /// Checks what a model assumes of its input.
    ///
    /// - Parameters:
    ///   - width: the width of the model's embeddings.
    ///   - batchRows: the maximum number of rows of a pass.
    func check(width: Int, batchRows: Int) throws(ModelInputError) {
        if let run = runs.first(where: { $0.width != width }) { throw .wrongWidth(run.width, expected: width) }
        if let range = rows.visible.first(where: { $0.count > batchRows }) {
            throw .rangeTooLong(rows: range.count, maximum: batchRows)
        }
    }

    /// Copies the vector of a row of a run.
    func copyVector(of row: Int, to target: UnsafeMutablePointer<Float>) {
        guard let index = rows.runs.firstIndex(where: { $0.rows.contains(row) }) else {
            // No input can cause this: only runs have rows without a token.
            preconditionFailure("row \(row) has neither a token nor a vector")
        }
        let run = runs[index]
        run.values.withUnsafeBufferPointer { values in
            guard let start = values.baseAddress else { return }
            target.update(from: start + (row - rows.runs[index].first) * run.width, count: run.width)
        }
    }
}

/// Why an input cannot be processed.
package enum ModelInputError: Error, Equatable, CustomStringConvertible {
    case noVectors(values: Int, width: Int)
    case wrongPlaces(Int, rows: Int)
    case unusableRange(Range<Int>)
    case wrongWidth(Int, expected: Int)
    case rangeTooLong(rows: Int, maximum: Int)

    package var description: String {
        switch self {
        case .noVectors(let values, let width): "\(values) numbers are not one or more vectors of \(width)."
        case .wrongPlaces(let places, let rows): "There are \(places) positions for \(rows) vectors. Pass one for each, or none."
        case .unusableRange(let range):
            "Rows \(range.lowerBound) to \(range.upperBound - 1) cannot see each other: they must exist, and belong to no other such range."
        case .wrongWidth(let width, let expected):
            "The vectors have \(width) numbers, but the embeddings of the model have \(expected). Use the projector of this model."
        case .rangeTooLong(let rows, let maximum):
            "\(rows) rows that see each other are more than the \(maximum) that are processed together. Use a smaller picture."
        }
    }
}
