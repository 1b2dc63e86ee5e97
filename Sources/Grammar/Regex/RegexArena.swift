/// Regular languages over bytes, closed under intersection and complement, as lazily built automata.
///
/// A language is an automaton state: the state after a byte is its Brzozowski derivative (Brzozowski, "Derivatives of
/// Regular Expressions", JACM 1964; Owens, Reppy & Turon, "Regular-expression derivatives re-examined", JFP 2009).
/// Expressions are simplified and interned, so that equal states have the same id. The row of a state, its derivatives
/// for all 256 bytes, is computed from the rows of its parts when the state is first left. Completed rows lead to live
/// states only: every language in them other than `empty` contains a string.
final class RegexArena {
    // Used under the lock of a grammar, and never changed while they are read. The checks of that took a tenth of the time of
    // masks, here and in ``Automaton`` and ``MaskTable``.
    @exclusivity(unchecked) private(set) var nodes: [RegexNode] = []
    @exclusivity(unchecked) private var index = HashIndex(capacity: 256)
    /// Whether each language contains the empty string.
    @exclusivity(unchecked) private(set) var isNullable: [Bool] = []
    /// Whether each language is certainly not empty, because nothing in it can cancel out.
    @exclusivity(unchecked) private var isPlain: [Bool] = []
    enum Life: UInt8 { case unknown, alive, dead }
    @exclusivity(unchecked) var life: [Life] = []
    @exclusivity(unchecked) var rows: [UnsafeMutablePointer<RegexID>?] = []
    @exclusivity(unchecked) var isPruned: [Bool] = []
    var tries: [WordTrie] = []
    private var trieIDs: [[[UInt8]]: Int32] = [:]
    @exclusivity(unchecked) var machines: [NumberMachine] = []
    private struct MachineKey: Hashable { var spec: NumberSpec, spelling: NumberSpelling }
    private var machineIDs: [MachineKey: Int32] = [:]
    /// The languages of recursive definitions, and whether they contain the empty string.
    private(set) var definitions: [(language: RegexID, isNullable: Bool)] = []
    var shortestLengths: [RegexID: Int] = [:]
    var characterCounts: [RegexID: CharacterCount] = [:]

    static let empty: RegexID = 0
    static let epsilon: RegexID = 1
    /// One Unicode character in UTF-8.
    private(set) var anyCharacter: RegexID = 0
    /// Any text in UTF-8.
    private(set) var anyText: RegexID = 0
    /// The quote character around JSON strings.
    private(set) var quoteByte: RegexID = 0

    /// Maximum number of states that a single search may visit, and that an arena may contain in total.
    static let searchLimit = 30_000
    static let sizeLimit = 400_000

    /// Creates an arena that already contains what every schema needs, with its rows: any text, JSON strings, and
    /// numbers of any kind.
    convenience init() { self.init(copying: RegexArena.template) }

    /// Number of states that every arena contains with the same ids.
    static var sharedCount: Int { template.nodes.count }

    /// The states of the template that documents are in, rather than parts of them.
    static var sharedStates: [RegexID] { created.states }

    private static var template: RegexArena { created.arena }

    // Never changed after its creation: all its rows are complete, and copies only add rows of their own.
    nonisolated(unsafe) private static let created: (arena: RegexArena, states: [RegexID]) = {
        let arena = RegexArena(empty: ())
        let text = arena.string(arena.anyText, .any)
        let words = ["true", "false", "null"].map { arena.literal(Array($0.utf8)) }
        var numbers: [RegexID] = []
        for spelling in [NumberSpelling.any, .integersWithoutFraction] {
            for spec in [NumberSpec.any, NumberSpec(isInteger: true)] {
                // Creating a number fails only for unsupported divisors, and these specifications have none.
                if let number = try? arena.number(spec, spelling) { numbers.append(number) }
            }
        }
        // Breadth first: the first characters of a text are the most frequent ones. Most states are in the middle of an
        // escape of four digits, and those are not worth their memory.
        var seen: Set<RegexID> = []
        for (starts, limit) in [(numbers + words + [arena.alternation([words[0], words[1]])], 2_000), ([text], 800)] {
            var states = starts.filter { seen.insert($0).inserted }
            var next = 0
            while next < states.count {
                // An arena this small cannot reach its limits.
                let row = arena.liveRow(states[next])
                next += 1
                for byte in 0..<256 where seen.count < limit {
                    if let target = row?[byte], target != RegexArena.empty, seen.insert(target).inserted { states.append(target) }
                }
            }
        }
        for id in arena.nodes.indices where arena.rows[id] != nil { _ = arena.liveRow(RegexID(id)) }
        return (arena, seen.sorted())
    }()

    private init(copying other: RegexArena) {
        nodes = other.nodes
        index = other.index
        isNullable = other.isNullable
        isPlain = other.isPlain
        life = other.life
        // Rows that are not complete are computed again.
        rows = zip(other.rows, other.isPruned).map { $1 ? $0 : nil }
        isPruned = other.isPruned
        tries = other.tries
        trieIDs = other.trieIDs
        machines = other.machines
        machineIDs = other.machineIDs
        definitions = other.definitions
        shortestLengths = other.shortestLengths
        characterCounts = other.characterCounts
        anyCharacter = other.anyCharacter
        anyText = other.anyText
        quoteByte = other.quoteByte
        borrowed = other.isPruned
    }

    /// Whether each row is owned by the template.
    private var borrowed: [Bool] = []
    var unfinished: [UnsafeMutablePointer<RegexID>] = []

    private init(empty: Void) {
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
        quoteByte = bytes(ByteSet(UInt8(ascii: "\"")))
    }

    deinit {
        for row in unfinished { row.deallocate() }
        for (id, row) in rows.enumerated() where id >= borrowed.count || !borrowed[id] { row?.deallocate() }
    }

    /// Whether the arena has reached a limit: the number of states or rows, the nesting depth, or the fuel.
    var isFull: Bool { nodes.count > Self.sizeLimit || rowCount > Self.rowLimit || isTooDeep || isOutOfFuel }
    /// Whether the arena has grown so much since compilation that a new document should begin with a new arena, before
    /// it reaches the limits.
    var isLarge: Bool {
        isFull || nodes.count - compiled.nodes > Self.sizeLimit / 4 || rowCount - compiled.rows > Self.rowLimit / 4
    }
    /// Whether the document that is being read should end, while there is still room for its ending.
    var isNearlyFull: Bool { nodes.count > Self.sizeLimit / 4 * 3 || rowCount > Self.rowLimit / 4 * 3 }
    /// Number of states and rows after compilation.
    @exclusivity(unchecked) private var compiled = (nodes: 0, rows: 0)
    func markCompiled() { compiled = (nodes.count, rowCount) }
    @exclusivity(unchecked) var rowCount = 0
    private static let rowLimit = 120_000

    /// Sets the amount of work that the following operations may use; after that, languages cannot be extended any
    /// more. One unit is about the cost of the smallest row. Counting work instead of time gives the same result on
    /// every machine.
    func setFuel(_ amount: Int) { fuel = amount }
    @exclusivity(unchecked) private(set) var fuel = Int.max
    var isOutOfFuel: Bool { fuel < 0 }

    func spend(_ work: Int) { fuel -= work }

    /// The current recursion depth, and whether it exceeded the maximum: a language that is nested too deeply would
    /// overflow the stack.
    @exclusivity(unchecked) var depth = 0
    @exclusivity(unchecked) var isTooDeep = false
    static let maximumDepth = 1_000
    /// Beyond this depth, parts are processed from the innermost one outward.
    static let recursionDepth = 48

    func add(_ node: RegexNode) -> RegexID {
        let hash = node.hash
        let known = index.find(hash) { nodes[Int($0)] == node }
        if known >= 0 { return known }
        let id = RegexID(nodes.count)
        isNullable.append(computeNullable(node))
        isPlain.append(computePlain(node))
        life.append(id == Self.empty ? .dead : isPlain[Int(id)] || isNullable[Int(id)] || isSurelyAlive(node) ? .alive : .unknown)
        nodes.append(node)
        index.insert(hash, id)
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
        case .repetition(let a, let minimum, _): minimum == 0 || isNullable[Int(a)]
        case .words(let trie, let node): tries[Int(trie)].isWord(node)
        case .number(let machine, let state): machines[Int(machine)].accepts(state)
        case .textExcept(let text, let trie, let node): isNullable[Int(text)] && !tries[Int(trie)].isWord(node)
        case .recursive(let definition): definitions[Int(definition)].isNullable
        case .escaped(let content, _, let state): state == .none && isNullable[Int(content)]
        }
    }

    private func computePlain(_ node: RegexNode) -> Bool {
        switch node {
        case .empty, .intersection, .complement, .number, .recursive: false
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
        // All languages contain only valid text.
        if b == anyText, b != 0, isNullable[Int(a)] { return b }
        if case .concat = nodes[Int(a)] {
            // Nested to the right. A loop, because a literal may be long.
            var parts: [RegexID] = []
            var rest = a
            while case .concat(let first, let next) = nodes[Int(rest)] {
                parts.append(first)
                rest = next
            }
            return parts.reversed().reduce(concat(rest, b)) { concat($1, $0) }
        }
        if case .repetition(_, 0, -1) = nodes[Int(a)] {
            // x*x* = x*
            if a == b { return a }
            if case .concat(let first, _) = nodes[Int(b)], first == a { return b }
        }
        return add(.concat(a, b))
    }

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
        absorb(&members)
        absorbRepetitions(&members)
        if members.count > 1, members[0] == Self.epsilon, members.dropFirst().contains(where: { isNullable[Int($0)] }) {
            members.removeFirst()
        }
        switch members.count {
        case 0: return Self.empty
        case 1: return members[0]
        default: return add(.alternation(members))
        }
    }

    /// Removes intersections that another member contains: `x | x & y` is `x`. Otherwise the states of a repetition
    /// with lookaheads would grow with every character.
    private func absorb(_ members: inout [RegexID]) {
        func parts(_ id: RegexID) -> [RegexID]? { if case .intersection(let parts) = nodes[Int(id)] { parts } else { nil } }
        guard members.count > 1, members.count <= 64, members.contains(where: { parts($0) != nil }) else { return }
        let all = members
        members.removeAll { id in
            guard let own = parts(id) else { return false }
            return all.contains { other in
                if other == id { return false }
                guard let otherPart = parts(other) else { return own.contains(other) }
                return otherPart.count < own.count && otherPart.allSatisfy(own.contains)
            }
        }
    }

    /// Removes members that another one contains because it repeats something more often: `x y{0,5} | x y{0,4}` is
    /// `x y{0,5}`. Otherwise the states of a repetition whose content can be empty would grow with every character.
    private func absorbRepetitions(_ members: inout [RegexID]) {
        guard members.count > 1, members.count <= 16 else { return }
        let all = members
        members.removeAll { id in all.contains { $0 != id && repeats($0, atLeast: id) } }
    }

    /// Whether the form of two languages shows that the first contains the second.
    private func repeats(_ a: RegexID, atLeast b: RegexID) -> Bool {
        var (a, b) = (a, b)
        // The same beginning, a repetition, and the same end.
        while a != b {
            if b == Self.epsilon { return isNullable[Int(a)] }
            guard case .concat(let first, let rest) = nodes[Int(a)] else {
                guard case .repetition(let a, let minimum, let maximum) = nodes[Int(a)],
                    case .repetition(a, let least, let most) = nodes[Int(b)]
                else { return false }
                return minimum <= least && (maximum < 0 || maximum >= most && most >= 0)
            }
            if case .concat(first, let other) = nodes[Int(b)] {
                (a, b) = (rest, other)
            } else if case .concat(let other, rest) = nodes[Int(b)] {
                (a, b) = (first, other)
            } else if isNullable[Int(first)] {
                a = rest
            } else {
                return false
            }
        }
        return true
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
        dropLengths(&members)
        mergeExceptions(&members)
        filterWords(&members)
        if members.first == Self.empty { return Self.empty }
        if members.count > 1 { members.removeAll { if case .complement(Self.empty) = nodes[Int($0)] { true } else { false } } }
        // All languages here contain only valid text, so any text is no restriction. But a complement needs it as a
        // second member.
        if members.count > 1, members.contains(anyText), members.contains(where: { $0 != anyText && !isComplement($0) }) {
            members.removeAll { $0 == anyText }
        }
        switch members.count {
        case 0: return anyText
        case 1: return members[0]
        default: return add(.intersection(members))
        }
    }

    func isComplement(_ id: RegexID) -> Bool {
        if case .complement = nodes[Int(id)] { return true }
        return false
    }

    /// Merges several limits on the length of any text into one.
    private func mergeLengths(_ members: inout [RegexID]) {
        var minimum: Int32 = 0
        var maximum: Int32 = -1
        let lengths = members.filter { part in
            guard case .repetition(let inner, let low, let high) = nodes[Int(part)], inner == anyCharacter else { return false }
            minimum = max(minimum, low)
            if high >= 0 { maximum = maximum < 0 ? high : min(maximum, high) }
            return true
        }
        guard lengths.count > 1 else { return }
        members.removeAll { lengths.contains($0) }
        members.append(
            maximum >= 0 && minimum > maximum ? Self.empty : add(.repetition(anyCharacter, minimum: minimum, maximum: maximum)))
        members.sort()
        if members.first == Self.empty { members = [Self.empty] }
    }

    /// Removes a limit on the length that the other members imply.
    private func dropLengths(_ members: inout [RegexID]) {
        guard members.count > 1,
            let place = members.firstIndex(where: {
                if case .repetition(anyCharacter, _, _) = nodes[Int($0)] { true } else { false }
            }), case .repetition(_, let minimum, let maximum) = nodes[Int(members[place])]
        else { return }
        let others = members.indices.filter { $0 != place }.map { characterCount(members[$0]) }
        let shortest = others.reduce(0) { max($0, $1.minimum) }
        let longest = others.compactMap(\.maximum).min()
        if maximum >= 0 && shortest > Int(maximum) || longest.map({ $0 < Int(minimum) }) ?? false {
            members = [Self.empty]
            return
        }
        let hasLeast = Int(minimum) > shortest
        let hasMost = maximum >= 0 && longest.map { $0 > Int(maximum) } ?? true
        if hasLeast == (minimum > 0), hasMost == (maximum >= 0) { return }
        members.remove(at: place)
        if hasLeast || hasMost {
            members.append(add(.repetition(anyCharacter, minimum: hasLeast ? minimum : 0, maximum: hasMost ? maximum : -1)))
            members.sort()
        }
    }

    /// All text that is not in `a`.
    func complement(_ a: RegexID) -> RegexID {
        if a == Self.empty { return anyText }
        if a == anyText { return Self.empty }
        switch nodes[Int(a)] {
        case .words(let trie, 0): return textExcept(trie)
        case .textExcept(anyText, let trie, 0): return wordsNode(trie, 0)
        case .repetition(anyCharacter, let minimum, let maximum):
            // Limits on the length stay limits: as an automaton they would have one state per character.
            let shorter = minimum > 0 ? repetition(anyCharacter, minimum: 0, maximum: minimum - 1) : Self.empty
            let longer = maximum >= 0 && maximum < .max ? repetition(anyCharacter, minimum: maximum + 1, maximum: -1) : Self.empty
            return alternation([shorter, longer])
        default: break
        }
        if let word = word(a) { return textExcept(trie(of: [word])) }
        return intersection([anyText, raw(complement: a)])
    }

    private func textExcept(_ trie: Int32) -> RegexID { add(.textExcept(text: anyText, trie: trie, node: 0)) }

    /// The trie of a set of strings. Equal sets have one, so that their languages are the same: alternatives often have the
    /// same names.
    private func trie(of words: [[UInt8]]) -> Int32 {
        let words = words.sorted { $0.lexicographicallyPrecedes($1) }.deduplicated()
        if let known = trieIDs[words] { return known }
        tries.append(WordTrie(words))
        trieIDs[words] = Int32(tries.count - 1)
        return Int32(tries.count - 1)
    }

    /// The only string of a language, if the expression is a concatenation of single bytes; nil otherwise.
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

    /// Intersects a list of strings with the exclusion of some strings: a shorter list.
    private func filterWords(_ members: inout [RegexID]) {
        guard members.count == 2 else { return }
        for (list, other) in [(members[0], members[1]), (members[1], members[0])] {
            guard case .words(let trie, 0) = nodes[Int(list)], let excepted = exceptedWords(other) else { continue }
            let set = Set(excepted)
            members = [words(tries[Int(trie)].words(below: 0).filter { !set.contains($0) })]
            return
        }
    }

    /// Merges several exclusions of strings into one.
    private func mergeExceptions(_ members: inout [RegexID]) {
        let parts = members.filter { if case .textExcept(anyText, _, 0) = nodes[Int($0)] { true } else { false } }
        guard parts.count > 1 else { return }
        members.removeAll { parts.contains($0) }
        members.append(textExcept(trie(of: parts.flatMap { exceptedWords($0) ?? [] })))
        members.sort()
    }

    func raw(complement a: RegexID) -> RegexID {
        if case .complement(let inner) = nodes[Int(a)] { return inner }
        return add(.complement(a))
    }

    func repetition(_ a: RegexID, _ minimum: Int, _ maximum: Int?) -> RegexID {
        repetition(a, minimum: Int32(clamping: minimum), maximum: maximum.map { Int32(clamping: $0) } ?? -1)
    }

    func repetition(_ a: RegexID, minimum: Int32, maximum: Int32) -> RegexID {
        if maximum == 0 || a == Self.epsilon { return Self.epsilon }
        if a == Self.empty { return minimum == 0 ? Self.epsilon : Self.empty }
        if minimum == 1, maximum == 1 { return a }
        if case .repetition(_, 0, -1) = nodes[Int(a)] { return a }
        return add(.repetition(a, minimum: isNullable[Int(a)] ? 0 : minimum, maximum: maximum))
    }

    /// A language that `define` builds from its own id. At least one byte must precede each reference to itself.
    func recursive<Failure: Error>(
        isNullable: Bool, _ define: (RegexID) throws(Failure) -> RegexID
    ) throws(Failure) -> RegexID {
        let index = definitions.count
        definitions.append((Self.empty, isNullable))
        let language = add(.recursive(definition: Int32(index)))
        definitions[index].language = try define(language)
        return language
    }

    /// A finite set of strings.
    func words(_ words: [[UInt8]]) -> RegexID {
        guard !words.isEmpty else { return Self.empty }
        if words.count == 1 { return literal(words[0]) }
        return wordsNode(trie(of: words), 0)
    }

    func wordsNode(_ trie: Int32, _ node: Int32) -> RegexID {
        tries[Int(trie)].hasChildren(node) ? add(.words(trie: trie, node: node)) : Self.epsilon
    }

    /// - Throws: ``NumberMachine/UnsupportedNumber`` if a divisor is too long.
    func number(_ spec: NumberSpec, _ spelling: NumberSpelling) throws(NumberMachine.UnsupportedNumber) -> RegexID {
        let key = MachineKey(spec: spec, spelling: spelling)
        let id = machineIDs[key] ?? Int32(machines.count)
        if Int(id) == machines.count {
            machines.append(try NumberMachine(spec, spelling))
            machineIDs[key] = id
        }
        return add(.number(machine: id, machines[Int(id)].start))
    }

    /// The strings of `a` that are not in `b`. `b` may contain strings that are not well-formed text.
    func difference(_ a: RegexID, _ b: RegexID) -> RegexID {
        b == Self.empty ? a : intersection([a, raw(complement: b)])
    }
}
