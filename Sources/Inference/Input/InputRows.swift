/// Where a row is: the index of a token in its text; of a part of a picture, also its line and column (multimodal rotary embedding,
/// arXiv:2409.12191).
package struct RowPosition: Hashable, Sendable {
    package var time: Int32
    package var height: Int32
    package var width: Int32

    package enum Axis: Sendable { case time, height, width }

    package init(time: Int, height: Int, width: Int) {
        (self.time, self.height, self.width) = (Int32(clamping: time), Int32(clamping: height), Int32(clamping: width))
    }

    /// The position of a token: all coordinates are equal.
    package init(_ index: Int) { self.init(time: index, height: index, width: index) }

    func advanced(by start: Int) -> RowPosition {
        RowPosition(time: Int(time) + start, height: Int(height) + start, width: Int(width) + start)
    }
}

/// What the rows of a sequence are: everything that decides their keys and values, with a digest in place of the vectors of runs. Two
/// sequences have equal keys and values as far as their rows are equal.
package struct InputRows: Equatable, Sendable {
    /// Vectors in the place of token embeddings.
    package struct Run: Equatable, Sendable {
        package var first: Int
        package var count: Int
        /// Of the vectors, or of what they were computed from and how.
        package var digest: ContentDigest
        /// The positions of the rows from that of the first one on; empty if they are successive.
        package var places: [RowPosition] = []
        /// The number of positions that the run takes: the row after it is that much further than its first row.
        package var extent: Int

        var rows: Range<Int> { first..<first + count }
    }

    /// The token of each row; ``embedded`` in a run.
    package private(set) var ids: [TokenID]
    /// In ascending order.
    package private(set) var runs: [Run] = []
    /// Ranges of rows that see each other, in ascending order; all other rows see only earlier ones.
    package private(set) var visible: [Range<Int>] = []

    package static let embedded: TokenID = -1

    package init(_ ids: [TokenID] = []) { self.ids = ids }

    /// - Precondition: runs and ranges are in ascending order and do not overlap, and ids are ``embedded`` in runs only; see
    ///   ``isConsistent``.
    init(ids: [TokenID], runs: [Run], visible: [Range<Int>]) { (self.ids, self.runs, self.visible) = (ids, runs, visible) }

    package var count: Int { ids.count }
    /// Whether all rows are tokens that see only earlier ones.
    package var isPlain: Bool { runs.isEmpty && visible.isEmpty }

    // MARK: - Changes

    package mutating func append(_ tokens: some Sequence<TokenID>) { ids.append(contentsOf: tokens) }

    package mutating func append(_ run: Run) {
        runs.append(run)
        ids.append(contentsOf: repeatElement(Self.embedded, count: run.count))
    }

    /// Appends the next rows of `other`, which begins with these rows, or tokens that follow it.
    mutating func append(_ tokens: UnsafeBufferPointer<TokenID>, of other: InputRows?) {
        let start = ids.count
        ids.append(contentsOf: tokens)
        guard let other, !other.isPlain else { return }
        for run in other.runs where run.first >= start && run.first < ids.count { runs.append(run) }
        for range in other.visible where range.lowerBound >= start && range.lowerBound < ids.count { visible.append(range) }
    }

    mutating func makeVisible(_ range: Range<Int>) {
        visible.append(range)
        visible.sort { $0.lowerBound < $1.lowerBound }
    }

    /// Keeps the first `count` rows, or fewer if they would divide a range whose rows see each other.
    mutating func truncate(to count: Int) {
        let count = undivided(count)
        guard count < ids.count else { return }
        ids.removeLast(ids.count - max(0, count))
        if isPlain { return }
        runs.removeAll { $0.first >= count }
        visible.removeAll { $0.lowerBound >= count }
    }

    func prefix(_ count: Int) -> InputRows {
        var rows = self
        rows.truncate(to: count)
        return rows
    }

    // MARK: - Properties of rows

    /// `row`, or the start of the range that it would divide: rows before the end of such a range have seen those after them.
    func undivided(_ row: Int) -> Int {
        visible.first { $0.lowerBound < row && row < $0.upperBound }?.lowerBound ?? row
    }

    /// The number of leading rows that are equal, at most `limit`, without those that have seen others.
    func commonPrefix(with other: InputRows, limit: Int = .max) -> Int {
        let most = min(ids.count, other.ids.count, limit)
        var count = 0
        while count < most, ids[count] == other.ids[count] { count += 1 }
        if isPlain, other.isPlain { return count }
        count = min(count, Self.difference(runs, other.runs, \.first), Self.difference(visible, other.visible, \.lowerBound))
        return undivided(count)
    }

    /// The row of the first element that only one of two lists has; `Int.max` if they are equal.
    private static func difference<Element: Equatable>(
        _ one: [Element], _ other: [Element], _ row: (Element) -> Int
    ) -> Int {
        let equal = zip(one, other).prefix { $0 == $1 }.count
        return [one, other].compactMap { $0.indices.contains(equal) ? row($0[equal]) : nil }.min() ?? .max
    }

    /// The position of a row, which may be after the last one: such rows are tokens.
    func position(of row: Int) -> RowPosition {
        var shift = 0
        for run in runs where run.first <= row {
            guard run.rows.contains(row) else {
                shift += run.extent - run.count
                continue
            }
            return run.places.isEmpty ? RowPosition(row + shift) : run.places[row - run.first].advanced(by: run.first + shift)
        }
        return RowPosition(row + shift)
    }

    /// The first range of rows that see each other and that ends after `row`.
    func visibleRange(after row: Int) -> Range<Int>? { visible.first { $0.upperBound > row } }

    /// Whether the parts fit together; for rows from a file.
    var isConsistent: Bool {
        func areApart(_ ranges: [Range<Int>]) -> Bool {
            ranges.allSatisfy { !$0.isEmpty && $0.lowerBound >= 0 }
                && zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound }
        }
        guard areApart(runs.map(\.rows)), areApart(visible), (runs.last?.first ?? -1) < count,
            visible.last?.upperBound ?? 0 <= count,
            runs.allSatisfy({ $0.extent >= 0 && [0, $0.count].contains($0.places.count) })
        else { return false }
        var embedded = 0
        for run in runs {
            let rows = run.rows.clamped(to: 0..<count)
            guard ids[rows].allSatisfy({ $0 == Self.embedded }) else { return false }
            embedded += rows.count
        }
        return ids.count { $0 < 0 } == embedded
    }
}
