/// The id of a regular language in an arena.
typealias RegexID = Int32

/// A regular expression over bytes. Children are ids, so that equal expressions have the same id.
enum RegexNode: Hashable {
    case empty
    case epsilon
    case bytes(ByteSet)
    case concat(RegexID, RegexID)
    /// Sorted; at least two.
    case alternation([RegexID])
    /// Sorted; at least two.
    case intersection([RegexID])
    case complement(RegexID)
    /// `maximum` is -1 if there is no maximum.
    case repetition(RegexID, minimum: Int32, maximum: Int32)
    /// The strings below a node of a ``WordTrie`` of the arena.
    case words(trie: Int32, node: Int32)
    /// The numbers that a ``NumberMachine`` of the arena accepts from a state.
    case number(machine: Int32, NumberState)
    /// The strings of `text`, except those below a trie node. `text` is any text, or the rest of it inside a character.
    case textExcept(text: RegexID, trie: Int32, node: Int32)
    /// A language whose definition, stored in the arena, refers to the language itself: the result of repeating a
    /// pattern that contains a lookahead.
    case recursive(definition: Int32)
    /// The body of a JSON string, without the quotes, whose text is in `content`.
    case escaped(content: RegexID, EscapeStyle, EscapeState)
}

extension RegexNode {
    /// A custom hash, because nodes are looked up for every derivative.
    var hash: UInt64 {
        func pair(_ kind: UInt64, _ a: RegexID, _ b: RegexID) -> UInt64 {
            HashIndex.mix(kind, UInt64(UInt32(bitPattern: a)) << 32 | UInt64(UInt32(bitPattern: b)))
        }
        switch self {
        case .empty: return 1
        case .epsilon: return 2
        case .bytes(let set): return set.mixed
        case .concat(let a, let b): return pair(4, a, b)
        case .alternation(let parts): return parts.reduce(5) { pair($0, $1, 0) }
        case .intersection(let parts): return parts.reduce(6) { pair($0, $1, 0) }
        case .complement(let a): return pair(7, a, 0)
        case .repetition(let a, let minimum, let maximum):
            return HashIndex.mix(pair(8, a, minimum), UInt64(UInt32(bitPattern: maximum)))
        case .words(let trie, let node): return pair(9, trie, node)
        case .number(let machine, let state):
            var hasher = Hasher()
            hasher.combine(state)
            return pair(10 &+ UInt64(bitPattern: Int64(hasher.finalize())), machine, 0)
        case .textExcept(let text, let trie, let node):
            return HashIndex.mix(pair(11, text, trie), UInt64(UInt32(bitPattern: node)))
        case .recursive(let definition): return pair(13, definition, 0)
        case .escaped(let content, let style, let state):
            let hash = pair(12, content, RegexID(style.rawValue))
            switch state {
            case .none: return hash
            case .backslash: return HashIndex.mix(hash, 1)
            case .hex(let value, let count, let high):
                return HashIndex.mix(HashIndex.mix(hash, 2 | UInt64(count) << 8), UInt64(value) << 32 | UInt64(high))
            case .low(let high, let count): return HashIndex.mix(HashIndex.mix(hash, 3 | UInt64(count) << 8), UInt64(high))
            }
        }
    }
}

/// The escapes that a JSON string may use.
enum EscapeStyle: UInt8 {
    /// All escapes of JSON.
    case any
    /// The required escapes, `\/`, and `\uXXXX` for characters beyond ASCII.
    case usual
    /// The required escapes, and `\uXXXX` for characters beyond ASCII.
    case needed
    /// The required escapes, each in one way, so that different texts are different strings.
    case single
}

/// The part of an escape that has been read.
enum EscapeState: Hashable {
    case none
    case backslash
    /// The hexadecimal digits so far. `high` is the preceding high surrogate, or 0.
    case hex(value: UInt32, count: UInt8, high: UInt32)
    /// After a high surrogate; `count` characters of the `\u` that must follow it have been read.
    case low(high: UInt32, count: UInt8)
}

/// A limit of the arena was reached, so that the result cannot be computed.
struct RegexLimit: Error {}
