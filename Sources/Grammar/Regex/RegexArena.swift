/// Names a regular language of an arena.
typealias RegexID = Int32

/// A regular expression over bytes. Children are ids, so that equal expressions are one.
enum RegexNode: Hashable {
    case empty
    case epsilon
    case bytes(ByteSet)
    case concat(RegexID, RegexID)
    /// Sorted, at least two.
    case alternation([RegexID])
    /// Sorted, at least two.
    case intersection([RegexID])
    case complement(RegexID)
    /// `most` is -1 for no limit.
    case repetition(RegexID, least: Int32, most: Int32)
    /// The words below a node of a ``WordTrie`` of the arena.
    case words(trie: Int32, node: Int32)
    case number(machine: Int32, NumberState)
    /// The words of `text`, which is any text or what is left of it within a character, but those below a trie's node.
    case textExcept(text: RegexID, trie: Int32, node: Int32)
    /// The body of a JSON string, between the quotes, whose text is in `content`.
    case escaped(content: RegexID, EscapeStyle, EscapeState)
}

extension RegexNode {
    /// A hash of its own: nodes are looked up for every derivative.
    fileprivate var hash: UInt64 {
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
        case .repetition(let a, let least, let most): return HashIndex.mix(pair(8, a, least), UInt64(UInt32(bitPattern: most)))
        case .words(let trie, let node): return pair(9, trie, node)
        case .number(let machine, let state):
            var hasher = Hasher()
            hasher.combine(state)
            return pair(10 &+ UInt64(bitPattern: Int64(hasher.finalize())), machine, 0)
        case .textExcept(let text, let trie, let node):
            return HashIndex.mix(pair(11, text, trie), UInt64(UInt32(bitPattern: node)))
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

/// Which escapes a JSON string may use.
enum EscapeStyle: UInt8 {
    /// All that JSON has.
    case any
    /// Those that are needed, `\/`, and `\uXXXX` for characters beyond ASCII.
    case usual
    /// Those that are needed, and `\uXXXX` for characters beyond ASCII.
    case needed
}

/// How much of an escape was read.
enum EscapeState: Hashable {
    case none
    case backslash
    /// Hexadecimal digits so far, after the high half of a surrogate pair if there is one.
    case hex(value: UInt32, count: UInt8, high: UInt32)
    /// A high half, and how many of `\u` were read after it.
    case low(high: UInt32, count: UInt8)
}

/// Why a pattern or a language cannot be had.
struct RegexLimit: Error {}

/// Regular languages over bytes, closed under intersection and complement, as lazily built automata.
///
/// A language is its own state: the one that remains after a byte is its Brzozowski derivative (Brzozowski, "Derivatives
/// of Regular Expressions", JACM 1964; Owens, Reppy & Turon, "Regular-expression derivatives re-examined", JFP 2009).
/// Expressions are simplified and shared, so that equal states meet; rows of the automaton are computed when a state is
/// first left, one derivative per class of bytes that it cannot tell apart. Rows lead to live states only: whatever is
/// not `empty` has a word.
final class RegexArena {
    private(set) var nodes: [RegexNode] = []
    private var index = HashIndex(capacity: 256)
    /// Whether the empty word belongs to a language.
    private(set) var isNullable: [Bool] = []
    /// Whether a language surely has words: nothing in it can cancel out.
    private var isPlain: [Bool] = []
    private enum Life: UInt8 { case unknown, alive, dead }
    private var life: [Life] = []
    private var rows: [UnsafeMutablePointer<RegexID>?] = []
    private var isPruned: [Bool] = []
    private var tries: [WordTrie] = []
    private var machines: [NumberMachine] = []
    private var machineIDs: [NumberMachine: Int32] = [:]
    private var shortestLengths: [RegexID: Int] = [:]

    static let empty: RegexID = 0
    static let epsilon: RegexID = 1
    /// One Unicode character in UTF-8.
    private(set) var anyCharacter: RegexID = 0
    /// Any text in UTF-8.
    private(set) var anyText: RegexID = 0

    /// States that one question about a language may visit, and states an arena may hold in all.
    static let searchLimit = 30_000
    static let sizeLimit = 400_000

    /// An arena that holds what every schema needs: any text, JSON strings and numbers of any kind, with their rows.
    convenience init() { self.init(copying: RegexArena.template) }

    /// States that every arena has in common, by the same ids.
    static var sharedCount: Int { template.nodes.count }
    private let sharedCount: Int

    // Never changed after it is made: all its rows are complete, and copies only add to them.
    nonisolated(unsafe) private static let template: RegexArena = {
        let arena = RegexArena(empty: ())
        var starts = [
            arena.string(arena.anyText, .any), arena.literal(Array("true".utf8)), arena.literal(Array("false".utf8)),
            arena.literal(Array("null".utf8)),
        ]
        for allowsZeroFraction in [true, false] {
            for spec in [NumberSpec.any, NumberSpec(isInteger: true)] {
                // Numbers without a divisor are never refused.
                if let number = try? arena.number(spec, allowsZeroFraction: allowsZeroFraction) { starts.append(number) }
            }
        }
        starts.append(arena.alternation([starts[1], starts[2]]))
        var seen = Set(starts)
        while let state = starts.popLast() {
            guard let row = try? arena.row(state) else { continue }
            for byte in 0..<256 where row[byte] != RegexArena.empty && seen.count < 400 && seen.insert(row[byte]).inserted {
                starts.append(row[byte])
            }
        }
        for id in arena.nodes.indices where arena.rows[id] != nil { _ = try? arena.row(RegexID(id)) }
        return arena
    }()

    private init(copying other: RegexArena) {
        sharedCount = other.nodes.count
        nodes = other.nodes
        index = other.index
        isNullable = other.isNullable
        isPlain = other.isPlain
        life = other.life
        // Rows are made again where they were not complete.
        rows = zip(other.rows, other.isPruned).map { $1 ? $0 : nil }
        isPruned = other.isPruned
        tries = other.tries
        machines = other.machines
        machineIDs = other.machineIDs
        shortestLengths = other.shortestLengths
        anyCharacter = other.anyCharacter
        anyText = other.anyText
        borrowed = other.isPruned
    }

    /// Rows that belong to the template.
    private var borrowed: [Bool] = []
    private var unfinished: [UnsafeMutablePointer<RegexID>] = []

    private init(empty: Void) {
        sharedCount = 0
        _ = add(.empty)
        _ = add(.epsilon)
        // The well-formed sequences of UTF-8 (Unicode, table 3-7).
        let tail = bytes(ByteSet(0x80...0xBF))
        let tail2 = concat(tail, tail)
        anyCharacter = alternation([
            bytes(ByteSet(0x00...0x7F)),
            concat(bytes(ByteSet(0xC2...0xDF)), tail),
            concat(bytes(ByteSet(0xE0)), concat(bytes(ByteSet(0xA0...0xBF)), tail)),
            concat(bytes(ByteSet(0xE1...0xEC).union(ByteSet(0xEE...0xEF))), tail2),
            concat(bytes(ByteSet(0xED)), concat(bytes(ByteSet(0x80...0x9F)), tail)),
            concat(bytes(ByteSet(0xF0)), concat(bytes(ByteSet(0x90...0xBF)), tail2)),
            concat(bytes(ByteSet(0xF1...0xF3)), concat(tail, tail2)),
            concat(bytes(ByteSet(0xF4)), concat(bytes(ByteSet(0x80...0x8F)), tail2)),
        ])
        anyText = repetition(anyCharacter, 0, nil)
    }

    deinit {
        for row in unfinished { row.deallocate() }
        for (id, row) in rows.enumerated() where id >= borrowed.count || !borrowed[id] { row?.deallocate() }
    }

    /// Whether the arena has grown past what a grammar may use.
    var isFull: Bool { nodes.count > Self.sizeLimit || rowCount > Self.rowLimit || isTooDeep || isLate }
    /// Whether so much has gathered that a new document should begin with a new arena, lest it run into the limits.
    var isLarge: Bool { isFull || nodes.count > Self.sizeLimit / 4 || rowCount > Self.rowLimit / 4 }
    private var rowCount = 0
    private static let rowLimit = 120_000

    /// Gives what follows so many seconds: after that, languages cannot be extended any more.
    func setDeadline(_ seconds: Double) {
        allowance = seconds
        start = nil
        isLate = false
    }
    private var allowance = 3_600.0
    /// When time was first looked at; only long work ever looks.
    private var start: ContinuousClock.Instant?
    private var isLate = false
    private var work: UInt32 = 0

    #if DEBUG
        private static let patience = 10.0
    #else
        private static let patience = 1.0
    #endif

    /// Notices now and then that time is up.
    private func checkTime() {
        work &+= 1
        guard work & 255 == 0 else { return }
        let now = ContinuousClock.now
        if let start { isLate = now - start > .seconds(allowance * Self.patience) } else { start = now }
    }

    var isOutOfTime: Bool {
        checkTime()
        return isLate
    }
    private var depth = 0
    private var isTooDeep = false
    private static let greatestDepth = 1_000

    private func add(_ node: RegexNode) -> RegexID {
        let hash = node.hash
        let known = index.find(hash) { nodes[Int($0)] == node }
        if known >= 0 { return known }
        let id = RegexID(nodes.count)
        isNullable.append(computeNullable(node))
        isPlain.append(computePlain(node))
        life.append(id == Self.empty ? .dead : isPlain[Int(id)] || isNullable[Int(id)] || isSurelyAlive(node) ? .alive : .unknown)
        nodes.append(node)
        index.insert(hash, id) { nodes[Int($0)].hash }
        rows.append(nil)
        isPruned.append(false)
        return id
    }

    private func isSurelyAlive(_ node: RegexNode) -> Bool {
        switch node {
        case .number(let machine, let state): machines[Int(machine)].isSurelyAlive(state)
        case .escaped(let content, _, .none): life[Int(content)] == .alive
        default: false
        }
    }

    private func computeNullable(_ node: RegexNode) -> Bool {
        switch node {
        case .empty, .bytes: false
        case .epsilon: true
        case .concat(let a, let b): isNullable[Int(a)] && isNullable[Int(b)]
        case .alternation(let parts): parts.contains { isNullable[Int($0)] }
        case .intersection(let parts): parts.allSatisfy { isNullable[Int($0)] }
        case .complement(let a): !isNullable[Int(a)]
        case .repetition(let a, let least, _): least == 0 || isNullable[Int(a)]
        case .words(let trie, let node): tries[Int(trie)].isWord(node)
        case .number(let machine, let state): machines[Int(machine)].accepts(state)
        case .textExcept(let text, let trie, let node): isNullable[Int(text)] && !tries[Int(trie)].isWord(node)
        case .escaped(let content, _, let state): state == .none && isNullable[Int(content)]
        }
    }

    private func computePlain(_ node: RegexNode) -> Bool {
        switch node {
        case .empty, .intersection, .complement, .number: false
        case .epsilon, .bytes, .words, .textExcept: true
        case .concat(let a, let b): isPlain[Int(a)] && isPlain[Int(b)]
        case .alternation(let parts): parts.contains { isPlain[Int($0)] }
        case .repetition(let a, _, _): isPlain[Int(a)]
        case .escaped(let content, _, let state): state == .none && isPlain[Int(content)]
        }
    }

    // MARK: - Constructors

    func bytes(_ set: ByteSet) -> RegexID { set.isEmpty ? Self.empty : add(.bytes(set)) }

    func literal(_ text: some BidirectionalCollection<UInt8>) -> RegexID {
        text.reversed().reduce(Self.epsilon) { concat(bytes(ByteSet($1)), $0) }
    }

    func concat(_ a: RegexID, _ b: RegexID) -> RegexID {
        if a == Self.empty || b == Self.empty { return Self.empty }
        if a == Self.epsilon { return b }
        if b == Self.epsilon { return a }
        if case .concat(let first, let rest) = nodes[Int(a)] { return concat(first, concat(rest, b)) }
        if case .repetition(_, 0, -1) = nodes[Int(a)] {
            // x*x* = x*
            if a == b { return a }
            if case .concat(let first, _) = nodes[Int(b)], first == a { return b }
        }
        return add(.concat(a, b))
    }

    func concat(_ parts: [RegexID]) -> RegexID { parts.reversed().reduce(Self.epsilon) { concat($1, $0) } }

    func alternation(_ parts: [RegexID]) -> RegexID {
        var members: [RegexID] = []
        var set = ByteSet()
        func collect(_ part: RegexID) {
            switch nodes[Int(part)] {
            case .empty: break
            case .alternation(let inner): for part in inner { collect(part) }
            case .bytes(let bytes): set = set.union(bytes)
            default: members.append(part)
            }
        }
        for part in parts { collect(part) }
        if members.contains(anyText), anyText != 0 { return anyText }
        if !set.isEmpty { members.append(bytes(set)) }
        members.sort()
        members = members.deduplicated()
        if members.count > 1, members[0] == Self.epsilon, members.dropFirst().contains(where: { isNullable[Int($0)] }) {
            members.removeFirst()
        }
        switch members.count {
        case 0: return Self.empty
        case 1: return members[0]
        default: return add(.alternation(members))
        }
    }

    func intersection(_ parts: [RegexID]) -> RegexID {
        var members: [RegexID] = []
        var set: ByteSet?
        func collect(_ part: RegexID) {
            switch nodes[Int(part)] {
            case .intersection(let inner): for part in inner { collect(part) }
            case .bytes(let bytes): set = set?.intersection(bytes) ?? bytes
            default: members.append(part)
            }
        }
        for part in parts { collect(part) }
        if let set { members.append(bytes(set)) }
        members.sort()
        members = members.deduplicated()
        guard members.first != Self.empty else { return Self.empty }
        if members.first == Self.epsilon { return members.allSatisfy { isNullable[Int($0)] } ? Self.epsilon : Self.empty }
        if members.contains(where: { part in
            if case .complement(let inner) = nodes[Int(part)] { return members.contains(inner) }
            return false
        }) {
            return Self.empty
        }
        mergeLengths(&members)
        mergeExceptions(&members)
        filterWords(&members)
        if members.first == Self.empty { return Self.empty }
        // All languages here are of valid text, so any text is no restriction; but a complement needs it beside it.
        if members.count > 1, members.contains(anyText), members.contains(where: { $0 != anyText && !isComplement($0) }) {
            members.removeAll { $0 == anyText }
        }
        switch members.count {
        case 0: return anyText
        case 1: return members[0]
        default: return add(.intersection(members))
        }
    }

    private func isComplement(_ id: RegexID) -> Bool {
        if case .complement = nodes[Int(id)] { return true }
        return false
    }

    /// Several lengths of any text become one.
    private func mergeLengths(_ members: inout [RegexID]) {
        var least: Int32 = 0
        var most: Int32 = -1
        let lengths = members.filter { part in
            guard case .repetition(let inner, let low, let high) = nodes[Int(part)], inner == anyCharacter else { return false }
            least = max(least, low)
            if high >= 0 { most = most < 0 ? high : min(most, high) }
            return true
        }
        guard lengths.count > 1 else { return }
        members.removeAll { lengths.contains($0) }
        members.append(most >= 0 && least > most ? Self.empty : add(.repetition(anyCharacter, least: least, most: most)))
        members.sort()
        if members.first == Self.empty { members = [Self.empty] }
    }

    /// All text that is not in `a`.
    func complement(_ a: RegexID) -> RegexID {
        if a == Self.empty { return anyText }
        if a == anyText { return Self.empty }
        switch nodes[Int(a)] {
        case .words(let trie, 0): return textExcept(trie)
        case .textExcept(anyText, let trie, 0): return wordsNode(trie, 0)
        default: break
        }
        if let word = word(a) { return textExcept(newTrie([word])) }
        return intersection([anyText, raw(complement: a)])
    }

    private func textExcept(_ trie: Int32) -> RegexID { add(.textExcept(text: anyText, trie: trie, node: 0)) }

    private func newTrie(_ words: [[UInt8]]) -> Int32 {
        tries.append(WordTrie(words))
        return Int32(tries.count - 1)
    }

    /// The one word of a language that is written out.
    private func word(_ id: RegexID) -> [UInt8]? {
        var word: [UInt8] = []
        var rest = id
        while rest != Self.epsilon {
            var first = rest
            var next = Self.epsilon
            if case .concat(let a, let b) = nodes[Int(rest)] { (first, next) = (a, b) }
            guard case .bytes(let set) = nodes[Int(first)], let byte = set.single else { return nil }
            word.append(byte)
            rest = next
        }
        return word
    }

    /// The words that a language leaves out of any text, if that is all it does.
    func exceptedWords(_ id: RegexID) -> [[UInt8]]? {
        if id == anyText { return [] }
        guard case .textExcept(anyText, let trie, let node) = nodes[Int(id)] else { return nil }
        return tries[Int(trie)].words(below: node)
    }

    /// A list of words without some of them is a shorter list.
    private func filterWords(_ members: inout [RegexID]) {
        guard members.count == 2 else { return }
        for (list, other) in [(members[0], members[1]), (members[1], members[0])] {
            guard case .words(let trie, 0) = nodes[Int(list)], let excepted = exceptedWords(other) else { continue }
            let set = Set(excepted)
            members = [words(tries[Int(trie)].words(below: 0).filter { !set.contains($0) })]
            return
        }
    }

    /// Several languages that leave out words become one.
    private func mergeExceptions(_ members: inout [RegexID]) {
        let parts = members.filter { if case .textExcept(anyText, _, 0) = nodes[Int($0)] { true } else { false } }
        guard parts.count > 1 else { return }
        members.removeAll { parts.contains($0) }
        members.append(textExcept(newTrie(parts.flatMap { exceptedWords($0) ?? [] })))
        members.sort()
    }

    private func raw(complement a: RegexID) -> RegexID {
        if case .complement(let inner) = nodes[Int(a)] { return inner }
        return add(.complement(a))
    }

    func repetition(_ a: RegexID, _ least: Int, _ most: Int?) -> RegexID {
        repetition(a, least: Int32(clamping: least), most: most.map { Int32(clamping: $0) } ?? -1)
    }

    private func repetition(_ a: RegexID, least: Int32, most: Int32) -> RegexID {
        if most == 0 || a == Self.epsilon { return Self.epsilon }
        if a == Self.empty { return least == 0 ? Self.epsilon : Self.empty }
        if least == 1, most == 1 { return a }
        if case .repetition(_, 0, -1) = nodes[Int(a)] { return a }
        return add(.repetition(a, least: isNullable[Int(a)] ? 0 : least, most: most))
    }

    /// A fixed set of words.
    func words(_ words: [[UInt8]]) -> RegexID {
        guard !words.isEmpty else { return Self.empty }
        if words.count == 1 { return literal(words[0]) }
        return wordsNode(newTrie(words), 0)
    }

    private func wordsNode(_ trie: Int32, _ node: Int32) -> RegexID {
        tries[Int(trie)].hasChildren(node) ? add(.words(trie: trie, node: node)) : Self.epsilon
    }

    /// - Throws: ``NumberMachine/UnsupportedNumber``.
    func number(_ spec: NumberSpec, allowsZeroFraction: Bool) throws(NumberMachine.UnsupportedNumber) -> RegexID {
        let machine = try NumberMachine(spec, allowsZeroFraction: allowsZeroFraction)
        let id: Int32
        if let known = machineIDs[machine] {
            id = known
        } else {
            id = Int32(machines.count)
            machines.append(machine)
            machineIDs[machine] = id
        }
        return add(.number(machine: id, machine.start))
    }

    /// A JSON string in quotes whose text is in `content`.
    func string(_ content: RegexID, _ style: EscapeStyle) -> RegexID {
        let quote = bytes(ByteSet(UInt8(ascii: "\"")))
        return concat(quote, concat(escaped(content, style, .none), quote))
    }

    /// What follows the opening quote of ``string(_:_:)``.
    func stringBody(_ content: RegexID, _ style: EscapeStyle) -> RegexID {
        concat(escaped(content, style, .none), bytes(ByteSet(UInt8(ascii: "\""))))
    }

    /// `a` without the words of `b`, which need not be well-formed text.
    func difference(_ a: RegexID, _ b: RegexID) -> RegexID {
        b == Self.empty ? a : intersection([a, raw(complement: b)])
    }

    private func escaped(_ content: RegexID, _ style: EscapeStyle, _ state: EscapeState) -> RegexID {
        if content == Self.empty { return Self.empty }
        if content == Self.epsilon { return state == .none ? Self.epsilon : Self.empty }
        return add(.escaped(content: content, style, state))
    }

    /// What remains of a string's body after `byte`.
    private func escapedDerivative(_ content: RegexID, _ style: EscapeStyle, _ state: EscapeState, _ byte: UInt8) -> RegexID {
        switch state {
        case .none:
            if byte == UInt8(ascii: "\\") { return escaped(content, style, .backslash) }
            if byte < 0x20 || byte == UInt8(ascii: "\"") { return Self.empty }
            return escaped(derivative(content, byte), style, .none)
        case .backslash:
            if byte == UInt8(ascii: "u") { return escaped(content, style, .hex(value: 0, count: 0, high: 0)) }
            guard let character = JSONText.character(ofEscape: byte) else { return Self.empty }
            if character == UInt8(ascii: "/"), style == .needed { return Self.empty }
            return escaped(derivative(content, character), style, .none)
        case .hex(let value, let count, let high):
            guard let digit = JSONText.hexDigit(byte) else { return Self.empty }
            return hexDigit(content, style, value << 4 | digit, count + 1, high: high)
        case .low(let high, let count):
            if count == 0 { return byte == UInt8(ascii: "\\") ? escaped(content, style, .low(high: high, count: 1)) : Self.empty }
            return byte == UInt8(ascii: "u") ? escaped(content, style, .hex(value: 0, count: 0, high: high)) : Self.empty
        }
    }

    /// One more hexadecimal digit, if a character that may follow begins so.
    private func hexDigit(
        _ content: RegexID, _ style: EscapeStyle, _ value: UInt32, _ count: UInt8, high: UInt32
    ) -> RegexID {
        let shift = UInt32(4 - count) * 4
        let first = value << shift
        let last = first + (UInt32(1) << shift) - 1
        if high != 0 {
            guard first <= 0xDFFF, last >= 0xDC00 else { return Self.empty }
            let low = JSONText.scalar(high: high, low: max(first, 0xDC00))...JSONText.scalar(high: high, low: min(last, 0xDFFF))
            guard (try? hasScalar(content, in: low)) ?? false else { return Self.empty }
            if count < 4 { return escaped(content, style, .hex(value: value, count: count, high: high)) }
            return afterScalar(content, style, low.lowerBound)
        }
        let isPair = last >= 0xD800 && first <= 0xDBFF && ((try? hasScalar(content, in: pairs(first, last))) ?? false)
        if count < 4 {
            guard isPair || hasEscapable(content, style, first...last) else { return Self.empty }
            return escaped(content, style, .hex(value: value, count: count, high: 0))
        }
        if JSONText.isHighSurrogate(value) {
            return isPair ? escaped(content, style, .low(high: value, count: 0)) : Self.empty
        }
        guard hasEscapable(content, style, first...last) else { return Self.empty }
        return afterScalar(content, style, value)
    }

    private func pairs(_ first: UInt32, _ last: UInt32) -> ClosedRange<UInt32> {
        JSONText.scalar(high: max(first, 0xD800), low: 0xDC00)...JSONText.scalar(high: min(last, 0xDBFF), low: 0xDFFF)
    }

    /// Whether a character of `scalars` may follow, and be written as `\uXXXX`.
    private func hasEscapable(_ content: RegexID, _ style: EscapeStyle, _ scalars: ClosedRange<UInt32>) -> Bool {
        if style == .any { return (try? hasScalar(content, in: scalars)) ?? false }
        // Control characters without a letter of their own, and all beyond ASCII.
        for allowed: ClosedRange<UInt32> in [0x00...0x07, 0x0B...0x0B, 0x0E...0x1F, 0x7F...0xFFFF] where allowed.overlaps(scalars)
        {
            if (try? hasScalar(content, in: allowed.clamped(to: scalars))) ?? false { return true }
        }
        return false
    }

    private func afterScalar(_ content: RegexID, _ style: EscapeStyle, _ scalar: UInt32) -> RegexID {
        var rest = content
        for byte in JSONText.utf8(scalar) { rest = derivative(rest, byte) }
        return escaped(rest, style, .none)
    }

    /// The length window, if this is text of any characters.
    func lengthWindow(_ id: RegexID) -> (least: Int, most: Int?)? {
        guard case .repetition(let inner, let least, let most) = nodes[Int(id)], inner == anyCharacter else { return nil }
        return (Int(least), most < 0 ? nil : Int(most))
    }

    // MARK: - Derivatives

    /// What remains of a language after `byte`, dead or alive.
    private func derivative(_ id: RegexID, _ byte: UInt8) -> RegexID { rawRow(id)[Int(byte)] }

    /// What remains after each byte, dead or alive: made of the rows of the parts.
    private func rawRow(_ id: RegexID) -> UnsafeMutablePointer<RegexID> {
        if let row = rows[Int(id)] { return row }
        let row = UnsafeMutablePointer<RegexID>.allocate(capacity: 256)
        row.initialize(repeating: Self.empty, count: 256)
        depth += 1
        checkTime()
        if depth > Self.greatestDepth { isTooDeep = true }
        if !isFull { fill(id, row) }
        depth -= 1
        if isFull {
            // Not complete, so not kept; callers ask whether there is still room.
            unfinished.append(row)
            return row
        }
        if let other = rows[Int(id)] {
            // Made meanwhile, for a part that leads back here.
            row.deallocate()
            return other
        }
        rows[Int(id)] = row
        rowCount += 1
        return row
    }

    private func fill(_ id: RegexID, _ row: UnsafeMutablePointer<RegexID>) {
        switch nodes[Int(id)] {
        case .empty, .epsilon: break
        case .bytes(let set): set.forEach { row[Int($0)] = Self.epsilon }
        case .concat(let a, let b):
            if case .escaped(let content, let style, .none) = nodes[Int(a)], b == quoteByte {
                fillString(content, style, row)
                return
            }
            let first = rawRow(a)
            if isNullable[Int(a)] {
                let second = rawRow(b)
                combine(row, [first, second]) { targets in
                    var parts: [RegexID] = []
                    if targets[0] != Self.empty { parts.append(self.concat(targets[0], b)) }
                    if targets[1] != Self.empty { parts.append(targets[1]) }
                    return self.alternation(parts)
                }
            } else {
                map(row, first) { self.concat($0, b) }
            }
        case .alternation(let parts):
            combine(row, parts.map { rawRow($0) }) { targets in
                let alive = targets.filter { $0 != Self.empty }
                return alive.count == 1 ? alive[0] : self.alternation(alive)
            }
        case .intersection(let parts):
            combine(row, parts.map { rawRow($0) }) { $0.contains(Self.empty) ? Self.empty : self.intersection($0) }
        case .complement(let a):
            let inner = rawRow(a)
            let others = raw(complement: Self.empty)
            for byte in 0..<256 { row[byte] = inner[byte] == Self.empty ? others : raw(complement: inner[byte]) }
        case .repetition(let a, let least, let most):
            let rest = repetition(a, least: max(0, least - 1), most: most < 0 ? -1 : most - 1)
            map(row, rawRow(a)) { self.concat($0, rest) }
        case .words(let trie, let node):
            tries[Int(trie)].forEachChild(of: node) { byte, child in row[Int(byte)] = wordsNode(trie, child) }
        case .number(let machine, let state):
            for byte in "0123456789.-+eE".utf8 {
                if let next = machines[Int(machine)].next(state, byte) { row[Int(byte)] = add(.number(machine: machine, next)) }
            }
        case .textExcept(let text, let trie, let node):
            row.update(from: rawRow(text), count: 256)
            tries[Int(trie)].forEachChild(of: node) { byte, child in
                let rest = row[Int(byte)]
                if rest != Self.empty { row[Int(byte)] = add(.textExcept(text: rest, trie: trie, node: child)) }
            }
        case .escaped(let content, let style, let state):
            for byte in UInt8.min...UInt8.max { row[Int(byte)] = escapedDerivative(content, style, state, byte) }
        }
    }

    /// The rest of a string, with its closing quote.
    private func fillString(_ content: RegexID, _ style: EscapeStyle, _ row: UnsafeMutablePointer<RegexID>) {
        let source = rawRow(content)
        let quote = quoteByte
        map(row, source) { self.concat(self.escaped($0, style, .none), quote) }
        for byte in 0..<0x20 { row[byte] = Self.empty }
        row[0x22] = isNullable[Int(content)] ? Self.epsilon : Self.empty
        row[0x5C] =
            style == .any || needsEscapes(source, style) ? concat(escaped(content, style, .backslash), quote) : Self.empty
    }

    /// Fills a row from another one; bytes with the same target there have the same one here.
    private func map(
        _ row: UnsafeMutablePointer<RegexID>, _ source: UnsafeMutablePointer<RegexID>, _ transform: (RegexID) -> RegexID
    ) {
        var known: [(source: RegexID, target: RegexID)] = []
        var last: RegexID = Self.empty
        var lastTarget: RegexID = Self.empty
        for byte in 0..<256 where source[byte] != Self.empty {
            if source[byte] != last {
                last = source[byte]
                if let found = known.first(where: { $0.source == last }) {
                    lastTarget = found.target
                } else {
                    lastTarget = transform(last)
                    known.append((last, lastTarget))
                }
            }
            row[byte] = lastTarget
        }
    }

    /// Fills a row from several; bytes with the same targets there have the same one here.
    private func combine(
        _ row: UnsafeMutablePointer<RegexID>, _ sources: [UnsafeMutablePointer<RegexID>], _ transform: ([RegexID]) -> RegexID
    ) {
        var known: [(targets: [RegexID], target: RegexID)] = []
        var targets = [RegexID](repeating: Self.empty, count: sources.count)
        var last: [RegexID] = []
        var lastTarget: RegexID = Self.empty
        for byte in 0..<256 {
            var isDead = true
            for index in sources.indices {
                targets[index] = sources[index][byte]
                if targets[index] != Self.empty { isDead = false }
            }
            if isDead { continue }
            if targets != last {
                last = targets
                if let found = known.first(where: { $0.targets == last }) {
                    lastTarget = found.target
                } else {
                    lastTarget = transform(last)
                    known.append((last, lastTarget))
                }
            }
            row[byte] = lastTarget
        }
    }

    /// Whether any character that may be written as an escape comes next.
    private func needsEscapes(_ row: UnsafeMutablePointer<RegexID>, _ style: EscapeStyle) -> Bool {
        if row[0x22] != Self.empty || row[0x5C] != Self.empty || style == .usual && row[0x2F] != Self.empty { return true }
        for byte in 0..<0x20 where row[byte] != Self.empty { return true }
        for byte in 0x7F..<256 where row[byte] != Self.empty { return true }
        return false
    }

    private var quoteByte: RegexID {
        if storedQuote < 0 { storedQuote = bytes(ByteSet(UInt8(ascii: "\""))) }
        return storedQuote
    }
    private var storedQuote: RegexID = -1

    /// The live language after each of the 256 bytes, `empty` where there is none.
    func row(_ id: RegexID) throws(RegexLimit) -> UnsafePointer<RegexID> {
        let row = rawRow(id)
        if isFull { throw RegexLimit() }
        if !isPruned[Int(id)] {
            var last: RegexID = Self.empty
            var lastIsAlive = false
            for byte in 0..<256 where row[byte] != Self.empty {
                if row[byte] != last {
                    last = row[byte]
                    lastIsAlive = try isAlive(last)
                }
                if !lastIsAlive { row[byte] = Self.empty }
            }
            isPruned[Int(id)] = true
        }
        return UnsafePointer(row)
    }

    /// Whether a language has any word. Structure tells, except where languages can cancel out.
    func isAlive(_ id: RegexID) throws(RegexLimit) -> Bool {
        switch life[Int(id)] {
        case .alive: return true
        case .dead: return false
        case .unknown: break
        }
        depth += 1
        defer { depth -= 1 }
        if depth > Self.greatestDepth {
            isTooDeep = true
            throw RegexLimit()
        }
        var result = false
        switch nodes[Int(id)] {
        case .concat(let a, let b): if try isAlive(a) { result = try isAlive(b) }
        case .alternation(let parts):
            for part in parts where try isAlive(part) {
                result = true
                break
            }
        case .repetition(let a, let least, _): if least == 0 { result = true } else { result = try isAlive(a) }
        case .escaped(let content, _, .none): result = try isAlive(content)
        case .escaped(_, _, .backslash):
            // Digits lead on only where a character can; letters by what they stand for.
            let row = rawRow(id)
            for byte in 0..<256 where row[byte] != Self.empty {
                if try isAlive(row[byte]) {
                    result = true
                    break
                }
            }
        case .escaped(let content, let style, .hex(0, 0, 0)):
            result = hasEscapable(content, style, 0...0xFFFF)
            if !result { result = (try? hasScalar(content, in: 0x10000...0x10FFFF)) ?? false }
        case .escaped: result = true
        case .number(let machine, let state):
            if machines[Int(machine)].shortWord(state) == nil { return try search(id) }
            result = true
        default: return try search(id)
        }
        life[Int(id)] = result ? .alive : .dead
        return result
    }

    /// A depth-first search for a word; what it finds is remembered for all states on the way.
    private func search(_ id: RegexID) throws(RegexLimit) -> Bool {
        var path: [(state: RegexID, byte: Int)] = [(id, 0)]
        var visited: Set<RegexID> = [id]
        while let (state, start) = path.last {
            let row = rawRow(state)
            var byte = start
            var next: RegexID?
            while byte < 256 {
                let target = row[byte]
                byte += 1
                if target == Self.empty || life[Int(target)] == .dead { continue }
                if try isSurelyAlive(target) {
                    for (state, _) in path { life[Int(state)] = .alive }
                    return true
                }
                if visited.insert(target).inserted {
                    next = target
                    break
                }
            }
            path[path.count - 1].byte = byte
            if let next {
                if visited.count > Self.searchLimit || isFull { throw RegexLimit() }
                path.append((next, 0))
            } else {
                path.removeLast()
            }
        }
        // Everything that can be reached was looked at, and nothing of it accepts.
        for state in visited { life[Int(state)] = .dead }
        return false
    }

    /// Whether a state on the way of a search is alive by what is known or by its structure.
    private func isSurelyAlive(_ id: RegexID) throws(RegexLimit) -> Bool {
        switch nodes[Int(id)] {
        case .intersection, .complement, .number: life[Int(id)] == .alive
        default: try isAlive(id)
        }
    }

    // MARK: - Words

    func matches(_ id: RegexID, _ text: some Sequence<UInt8>) -> Bool {
        var state = id
        for byte in text {
            state = rawRow(state)[Int(byte)]
            if state == Self.empty { return false }
        }
        return isNullable[Int(state)]
    }

    /// The length of a shortest word of a live language; of JSON strings, with the escapes they need.
    func shortestLength(_ id: RegexID) throws(RegexLimit) -> Int {
        if let known = shortestLengths[id] { return known }
        var total = 0
        var rest = id
        // Sequences lean to the right: a loop, lest a long one exhaust the stack.
        while case .concat(let a, let b) = nodes[Int(rest)], !isNullable[Int(rest)] {
            total += try shortestLength(a)
            rest = b
        }
        if rest != id {
            total += try shortestLength(rest)
        } else if !isNullable[Int(id)] {
            switch nodes[Int(id)] {
            case .bytes: total = 1
            case .repetition(let a, let least, _):
                let product = try shortestLength(a).multipliedReportingOverflow(by: Int(least))
                total = product.overflow ? Self.longest : min(product.partialValue, Self.longest)
            case .alternation(let parts):
                total = Self.longest
                for part in parts where try isAlive(part) { total = min(total, try shortestLength(part)) }
            case .escaped(let content, _, .none) where lengthWindow(content) != nil: total = try shortestLength(content)
            default: total = try shortestWord(id).count
            }
        }
        shortestLengths[id] = total
        return total
    }

    private static let longest = 1 << 30

    /// A shortest word, of friendly characters where there is a choice.
    func shortestWord(_ id: RegexID) throws(RegexLimit) -> [UInt8] {
        var word: [UInt8] = []
        var rest = id
        while case .concat(let a, let b) = nodes[Int(rest)], !isNullable[Int(rest)] {
            word += try shortestWord(a)
            rest = b
        }
        if isNullable[Int(rest)] { return word }
        if word.count > Self.searchLimit * 10 { throw RegexLimit() }
        switch nodes[Int(rest)] {
        case .bytes(let set): return word + [Self.friendlyOrder.first(where: set.contains) ?? 0]
        case .repetition(let a, let least, _):
            let one = try shortestWord(a)
            if one.count * Int(least) > Self.searchLimit * 10 { throw RegexLimit() }
            for _ in 0..<least { word += one }
            return word
        case .alternation(let parts):
            let length = try shortestLength(rest)
            for part in parts where try isAlive(part) {
                if try shortestLength(part) == length { return word + (try shortestWord(part)) }
            }
            return word
        case .escaped(let content, _, .none):
            JSONText.escape(try shortestWord(content), into: &word)
            return word
        case .number(let machine, let state):
            if let short = machines[Int(machine)].shortWord(state) { return word + short }
            return word + (try searchShortest(rest))
        default: return word + (try searchShortest(rest))
        }
    }

    private static let friendlyOrder: [UInt8] = {
        let first = Array("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ -_.,:/@+".utf8)
        return first + (UInt8.min...UInt8.max).filter { !first.contains($0) }
    }()

    /// Breadth-first search for the nearest end; a string's text is left to structure.
    private func searchShortest(_ id: RegexID) throws(RegexLimit) -> [UInt8] {
        var from: [RegexID: (state: RegexID, byte: UInt8)] = [:]
        var queue = [id]
        var head = 0
        while head < queue.count {
            let state = queue[head]
            head += 1
            var isText = false
            if state != id, case .escaped(_, _, .none) = nodes[Int(state)] { isText = true }
            if isNullable[Int(state)] || isText {
                var word: [UInt8] = []
                var current = state
                while current != id, let step = from[current] {
                    word.append(step.byte)
                    current = step.state
                }
                word.reverse()
                return isNullable[Int(state)] ? word : word + (try shortestWord(state))
            }
            if queue.count > Self.searchLimit { throw RegexLimit() }
            let row = try row(state)
            for byte in Self.friendlyOrder {
                let target = row[Int(byte)]
                guard target != Self.empty, target != id, from[target] == nil else { continue }
                from[target] = (state, byte)
                queue.append(target)
            }
        }
        return []
    }

    /// All words, if there are no more than `limit`; nil otherwise.
    func finiteWords(_ id: RegexID, limit: Int) throws(RegexLimit) -> [[UInt8]]? {
        var words: [[UInt8]] = []
        var onPath: Set<RegexID> = []
        func visit(_ state: RegexID, _ word: [UInt8]) throws(RegexLimit) -> Bool {
            guard word.count < 256, onPath.insert(state).inserted else { return false }
            defer { onPath.remove(state) }
            if isNullable[Int(state)] {
                words.append(word)
                if words.count > limit { return false }
            }
            let row = try row(state)
            for byte in 0..<256 where row[byte] != Self.empty {
                guard try visit(row[byte], word + [UInt8(byte)]) else { return false }
            }
            return true
        }
        return try visit(id, []) ? words : nil
    }

    /// Whether a language continues with a character of `scalars`.
    func hasScalar(_ id: RegexID, in scalars: ClosedRange<UInt32>) throws(RegexLimit) -> Bool {
        for sequence in UTF8Ranges.sequences(of: scalars) {
            if try hasSequence(id, sequence[...]) { return true }
        }
        return false
    }

    private func hasSequence(_ id: RegexID, _ sequence: ArraySlice<ClosedRange<UInt8>>) throws(RegexLimit) -> Bool {
        guard let range = sequence.first else { return true }
        let row = try row(id)
        var last: RegexID = Self.empty
        for byte in range where row[Int(byte)] != Self.empty && row[Int(byte)] != last {
            last = row[Int(byte)]
            if try hasSequence(last, sequence.dropFirst()) { return true }
        }
        return false
    }
}

/// Words sharing their beginnings.
struct WordTrie {
    private var children: [[(byte: UInt8, node: Int32)]] = [[]]
    private var words: [Bool] = [false]

    init(_ list: [[UInt8]]) {
        for word in list {
            var node: Int32 = 0
            for byte in word {
                if let next = child(of: node, byte) {
                    node = next
                } else {
                    let next = Int32(children.count)
                    children[Int(node)].append((byte, next))
                    children.append([])
                    words.append(false)
                    node = next
                }
            }
            words[Int(node)] = true
        }
    }

    func isWord(_ node: Int32) -> Bool { words[Int(node)] }
    func hasChildren(_ node: Int32) -> Bool { !children[Int(node)].isEmpty }
    func child(of node: Int32, _ byte: UInt8) -> Int32? { children[Int(node)].first { $0.byte == byte }?.node }

    func words(below node: Int32) -> [[UInt8]] {
        var result: [[UInt8]] = []
        var open: [(node: Int32, word: [UInt8])] = [(node, [])]
        while let (node, word) = open.popLast() {
            if isWord(node) { result.append(word) }
            for child in children[Int(node)] { open.append((child.node, word + [child.byte])) }
        }
        return result
    }

    func forEachChild(of node: Int32, _ body: (UInt8, Int32) -> Void) {
        for child in children[Int(node)] { body(child.byte, child.node) }
    }
}

extension Array where Element: Equatable {
    /// Without repetitions of neighbours.
    func deduplicated() -> [Element] {
        var result: [Element] = []
        result.reserveCapacity(count)
        for element in self where result.last != element { result.append(element) }
        return result
    }
}
