/// The id of a local state of an ``Automaton``.
typealias StateID = Int32
/// The id of a configuration of an ``Automaton``.
typealias ConfigID = Int32

/// The position of one thread in the innermost element that it reads.
struct LocalState: Hashable {
    enum Kind: UInt8 {
        /// The document is complete.
        case end
        /// The end of a nested configuration that is stored in a state. The containing state determines what follows.
        case hole
        /// Reads the regular language `a`.
        case scalar
        /// Before a value of type `a`.
        case value
        /// Before an object or an array of type `a`.
        case structure
        /// In object `a` with progress `b`; the phase is one of ``Phase``.
        case object
        /// In a listed name of object `a` with progress `b`, at node `c` of its key trie.
        case key
        /// In a name of object `a` that is not listed: `b` is the progress, `c` the remaining language, `d` the text so
        /// far, the phase is the index of the region.
        case otherKey
        /// After a name of object `a`: `b` is the progress including this name, `c` the type of its value.
        case colon
        /// In array `a` with progress `b`; the phase is one of ``Phase``.
        case array
        /// In an item of array `a` with progress `b` that must differ from earlier items: `c` is the remaining
        /// language, `d` the text so far.
        case uniqueItem
        /// In an item of array `a` with progress `b` that is compared with the items before: an object, an array or a long
        /// string. Inside it is at configuration `c`, which ends in a hole, after the text `d`.
        case uniqueStructure
        /// In the fixed text `a` at offset `b`; the state after the text is `c`.
        case text
        /// Before part `b` of sequence `a`.
        case sequence
    }

    enum Phase {
        static let open: UInt8 = 0
        /// After a comma.
        static let next: UInt8 = 1
        static let after: UInt8 = 2
        static let close: UInt8 = 3
        /// In an item that already differs from all earlier items.
        static let distinct: UInt8 = 4
    }

    /// The language that the state reads; nil for states that do not read a single language.
    var language: RegexID? {
        switch kind {
        case .scalar: a
        case .otherKey, .uniqueItem: c
        default: nil
        }
    }

    var kind: Kind
    var phase: UInt8 = 0
    /// Number of enclosing containers, for the indentation.
    var depth: UInt16 = 0
    var a: Int32 = 0
    var b: Int32 = 0
    var c: Int32 = 0
    var d: Int32 = 0

    var hash: UInt64 {
        let first = UInt64(kind.rawValue) | UInt64(phase) << 8 | UInt64(depth) << 16 | UInt64(UInt32(bitPattern: a)) << 32
        let second = UInt64(UInt32(bitPattern: b)) | UInt64(UInt32(bitPattern: c)) << 32
        return HashIndex.mix(HashIndex.mix(HashIndex.mix(0, first), second), UInt64(UInt32(bitPattern: d)))
    }
}

/// A thread: its state, and the configuration to continue with after this state has finished.
struct Thread: Hashable, Comparable {
    var state: StateID
    var parent: ConfigID

    static func < (a: Thread, b: Thread) -> Bool { (a.state, a.parent) < (b.state, b.parent) }
}

/// The effect of a byte on a thread.
enum Action {
    case go(StateID)
    /// Reads `child` first, then continues with `next`.
    case push(child: StateID, next: StateID)
    case pop
}

/// The part of an object that has been written.
struct ObjectProgress: Hashable {
    /// Listed names that have been written, or can no longer be written.
    var gone: BitSet
    /// Number of members, up to the largest bound.
    var count: Int32 = 0
    /// The required witnesses that have been satisfied, as bits.
    var wants: UInt64 = 0
    /// Names written so far that are not listed: an index in ``Automaton/writtenSets``.
    var written: Int32 = 0
}

/// The part of an array that has been written.
struct ArrayProgress: Hashable {
    /// Number of items, up to the largest bound.
    var index: Int32 = 0
    /// For each of `contains`, the number of items that count for it.
    var counts: [Int32] = []
    /// Where items must differ, the set of those written, in ``Automaton/itemSets``.
    var written: Int32 = 0
}

/// A part of a response in which fixed text surrounds values.
enum SequencePart: Hashable {
    case language(RegexID)
    case value(TypeID)
}
