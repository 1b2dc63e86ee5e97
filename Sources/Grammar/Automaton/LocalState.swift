/// Names a local state of an ``Automaton``.
typealias StateID = Int32
/// Names a configuration of an ``Automaton``.
typealias ConfigID = Int32

/// Where one thread of the automaton is inside the innermost thing it reads.
struct LocalState: Hashable {
    enum Kind: UInt8 {
        /// The document is complete.
        case end
        /// The end of what is being looked at; what follows depends on where it stands.
        case hole
        /// Reads the words of the regular language `a`.
        case scalar
        /// Before a value of type `a`.
        case value
        /// Before an object or an array of type `a`.
        case structure
        /// In object `a` with progress `b`, in a phase.
        case object
        /// In a listed name of object `a` with progress `b`, at node `c` of its keys.
        case key
        /// In another name: what is left of its language is `c`, its text `d`, its region the phase.
        case otherKey
        /// After a name of object `a`; `b` is the progress with it, `c` the type of its value.
        case colon
        /// In array `a` with progress `b`, in a phase.
        case array
        /// In an item of array `a` with progress `b`, which must differ from others: language `c`, text `d`.
        case uniqueItem
        /// In an item of array `a` with progress `b` that is compared with the items before: an object, an array or a long
        /// string. Inside it is at configuration `c`, which ends in a hole, after the text `d`.
        case uniqueStructure
        /// In a fixed text `a` at offset `b`, before the state `c`.
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
        /// In an item that cannot become one of those before it any more.
        static let apart: UInt8 = 4
    }

    /// The language it reads bytes of, where that is all it does.
    var language: RegexID? {
        switch kind {
        case .scalar: a
        case .otherKey, .uniqueItem: c
        default: nil
        }
    }

    var kind: Kind
    var phase: UInt8 = 0
    /// Containers around, for indentation.
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

/// One thread: a state, and what to go on with when it has read its part.
struct Thread: Hashable, Comparable {
    var state: StateID
    var parent: ConfigID

    static func < (a: Thread, b: Thread) -> Bool { (a.state, a.parent) < (b.state, b.parent) }
}

/// What a byte does to a thread.
enum Action {
    case go(StateID)
    /// Reads `child` first, then goes on with `next`.
    case push(child: StateID, next: StateID)
    case pop
}

/// How much of an object was written.
struct ObjectProgress: Hashable {
    /// Names that were written, or can no longer be.
    var gone: BitSet
    var count: Int32 = 0
    var wants: UInt64 = 0
    /// Other names that were written.
    var written: Int32 = 0
}

/// How much of an array was written.
struct ArrayProgress: Hashable {
    var index: Int32 = 0
    var counts: [Int32] = []
    /// Where items must differ, the set of those written, in ``Automaton/itemSets``.
    var written: Int32 = 0
}

/// A part of a text with fixed pieces around values.
enum SequencePart: Hashable {
    case language(RegexID)
    case value(TypeID)
}
