/// The entries of a session, in order. A transcript can be saved as JSON through `Codable` and continued by a new
/// session.
public struct Transcript: Sendable, Equatable {
    public typealias Index = Int
    public typealias Indices = Range<Int>
    public typealias Iterator = IndexingIterator<Transcript>
    public typealias Element = Entry
    public typealias SubSequence = Slice<Transcript>

    private var entries: [Entry]

    /// An empty transcript.
    public init() { entries = [] }

    /// Creates a transcript from entries; instructions must be the first entry.
    public init(entries: some Sequence<Entry> = []) { self.entries = Array(entries) }
}

extension Transcript: RandomAccessCollection, MutableCollection, RangeReplaceableCollection {
    public var startIndex: Int { entries.startIndex }
    public var endIndex: Int { entries.endIndex }
    public subscript(index: Index) -> Entry {
        get { entries[index] }
        set { entries[index] = newValue }
    }

    public mutating func replaceSubrange<C>(_ subrange: Range<Int>, with newElements: consuming C)
    where C: Collection, C.Element == Entry {
        entries.replaceSubrange(subrange, with: newElements)
    }
}

extension Transcript {
    /// All entries after the instructions. Assigning replaces these entries and keeps the instructions.
    public var history: HistoryView {
        get { HistoryView(entries[instructionsEnd...]) }
        set { entries.replaceSubrange(instructionsEnd..., with: newValue) }
    }

    private var instructionsEnd: Int {
        if case .instructions? = entries.first { 1 } else { 0 }
    }

    /// The instructions, if they are the first entry.
    var instructions: Instructions? {
        if case .instructions(let instructions)? = entries.first { instructions } else { nil }
    }

    /// Sets, replaces, or (with nil) removes the instructions.
    mutating func setInstructions(_ instructions: Instructions?) {
        entries.replaceSubrange(..<instructionsEnd, with: instructions.map { [.instructions($0)] } ?? [])
    }

    /// A transcript's entries without its instructions.
    public struct HistoryView: MutableCollection, RandomAccessCollection, RangeReplaceableCollection, Sendable,
        ExpressibleByArrayLiteral
    {
        public typealias Element = Transcript.Entry
        public typealias SubSequence = Transcript.HistoryView
        public typealias Indices = Range<Transcript.HistoryView.Index>
        public typealias Iterator = IndexingIterator<Transcript.HistoryView>
        public typealias ArrayLiteralElement = Transcript.Entry

        /// A position in a history.
        public struct Index: Comparable, Hashable, Sendable, Strideable {
            public typealias Stride = Int
            let offset: Int

            public func distance(to other: Transcript.HistoryView.Index) -> Int { other.offset - offset }
            public func advanced(by n: Int) -> Transcript.HistoryView.Index { Index(offset: offset + n) }
        }

        private var entries: ArraySlice<Transcript.Entry>

        init(_ entries: ArraySlice<Transcript.Entry>) { self.entries = entries }

        /// An empty history.
        public init() { entries = [] }
        public init(arrayLiteral elements: Transcript.Entry...) { entries = elements[...] }

        public var startIndex: Transcript.HistoryView.Index { Index(offset: entries.startIndex) }
        public var endIndex: Transcript.HistoryView.Index { Index(offset: entries.endIndex) }

        public subscript(position: Transcript.HistoryView.Index) -> Transcript.Entry {
            get { entries[position.offset] }
            set { entries[position.offset] = newValue }
        }

        public subscript(bounds: Range<Transcript.HistoryView.Index>) -> Transcript.HistoryView {
            get { HistoryView(entries[bounds.lowerBound.offset..<bounds.upperBound.offset]) }
            set { entries[bounds.lowerBound.offset..<bounds.upperBound.offset] = newValue.entries }
        }

        public mutating func replaceSubrange<C>(
            _ subrange: Range<Transcript.HistoryView.Index>, with newElements: C
        ) where C: Collection, C.Element == Transcript.Entry {
            entries.replaceSubrange(subrange.lowerBound.offset..<subrange.upperBound.offset, with: newElements)
        }

        public mutating func append(_ newElement: Transcript.Entry) { entries.append(newElement) }

        public mutating func append(contentsOf newElements: some Sequence<Transcript.Entry>) {
            entries.append(contentsOf: newElements)
        }
    }
}

extension Transcript {
    /// The ids of all entries and calls.
    var usedIDs: Set<String> {
        var ids: Set<String> = []
        for entry in self {
            ids.insert(entry.id)
            if case .toolCalls(let calls) = entry { ids.formUnion(calls.map(\.id)) }
        }
        return ids
    }
}

extension Transcript {
    /// The ids of entries that a model may change in a later response.
    var replaceableIDs: Set<String> {
        Set(
            compactMap { entry in
                switch entry {
                case .reasoning, .data: entry.id
                default: nil
                }
            })
    }

    /// Appends an entry that a model has generated. An entry of reasoning or data with the id of another one replaces it; what new
    /// reasoning lacks stays.
    mutating func append(orReplace entry: Entry) {
        guard let index = lastIndex(where: { $0.id == entry.id }) else { return append(entry) }
        switch (self[index], entry) {
        case (.reasoning(var old), .reasoning(let new)):
            if !new.segments.isEmpty { old.segments = new.segments }
            old.signature = new.signature ?? old.signature
            old.metadata.merge(new.metadata) { $1 }
            self[index] = .reasoning(old)
        case (.data, .data): self[index] = entry
        default: append(entry)
        }
    }
}

extension Transcript.Entry {
    /// The parts of the entry; none of calls and data.
    var segments: [Transcript.Segment] {
        switch self {
        case .instructions(let entry): entry.segments
        case .prompt(let entry): entry.segments
        case .toolOutput(let entry): entry.segments
        case .response(let entry): entry.segments
        case .reasoning(let entry): entry.segments
        case .toolCalls, .data: []
        }
    }
}
