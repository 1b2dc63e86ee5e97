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

    // MARK: - Files

    /// The runs and ranges as numbers, for files.
    var words: [Int] {
        if isPlain { return [] }
        var words = [runs.count]
        for run in runs {
            let (high, low) = (Int(truncatingIfNeeded: run.digest.high), Int(truncatingIfNeeded: run.digest.low))
            words += [run.first, run.count, high, low, run.extent, run.places.count]
            words += run.places.flatMap { [Int($0.time), Int($0.height), Int($0.width)] }
        }
        return words + visible.flatMap { [$0.lowerBound, $0.upperBound] }
    }

    /// The maximum number of words for `rows` rows. The last run may go on after them.
    static func maximumWords(_ rows: Int) -> Int { 1 + 11 * rows + 3 * maximumRunRows }

    private static let maximumRunRows = 1 << 20

    /// Rows from a file; nil if the words cannot be those of these ids.
    init?(ids: [TokenID], words: [Int]) {
        self.ids = ids
        var rest = words[...]
        func numbers(_ count: Int) -> [Int]? {
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }
        // The first row of which it is not known yet whether it is in a run.
        var next = 0
        for _ in 0..<max(0, numbers(1)?[0] ?? 0) {
            guard let run = numbers(6), (next..<ids.count).contains(run[0]), (1...Self.maximumRunRows).contains(run[1]),
                (0...Self.maximumRunRows).contains(run[4]), [0, run[1]].contains(run[5]), let places = numbers(3 * run[5]),
                ids[next..<run[0]].allSatisfy({ $0 != Self.embedded })
            else { return nil }
            next = min(run[0] + run[1], ids.count)
            guard ids[run[0]..<next].allSatisfy({ $0 == Self.embedded }) else { return nil }
            runs.append(
                Run(
                    first: run[0], count: run[1],
                    digest: ContentDigest(high: UInt64(truncatingIfNeeded: run[2]), low: UInt64(truncatingIfNeeded: run[3])),
                    places: stride(from: 0, to: places.count, by: 3).map {
                        RowPosition(time: places[$0], height: places[$0 + 1], width: places[$0 + 2])
                    }, extent: run[4]))
        }
        guard ids[next...].allSatisfy({ $0 != Self.embedded }) else { return nil }
        while let range = numbers(2) {
            guard range[0] >= visible.last?.upperBound ?? 0, range[0] < range[1], range[1] <= ids.count else { return nil }
            visible.append(range[0]..<range[1])
        }
        if !rest.isEmpty { return nil }
    }
}
