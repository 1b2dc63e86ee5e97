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

    /// A row without targets, in place of those that are not computed beyond the limits.
    let blank: UnsafeMutablePointer<RegexID> = {
        let row = UnsafeMutablePointer<RegexID>.allocate(capacity: 256)
        row.initialize(repeating: empty, count: 256)
        return row
    }()
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
        blank.deallocate()
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
    func setFuel(_ amount: Int) { fuel = amount * Self.unit }
    /// What is left of the fuel, in parts of a unit.
    @exclusivity(unchecked) var fuel = Int.max
    var isOutOfFuel: Bool { fuel < 0 }
    /// The number of parts of a unit of work.
    static let unit = 16

    func spend(_ work: Int) { fuel -= work * Self.unit }
    func spend(parts: Int) { fuel -= parts }

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

    /// The trie of a set of strings. Equal sets have one, so that their languages are the same: alternatives often have the
    /// same names.
    func trie(of words: [[UInt8]]) -> Int32 {
        let words = words.sorted { $0.lexicographicallyPrecedes($1) }.deduplicated()
        if let known = trieIDs[words] { return known }
        tries.append(WordTrie(words))
        trieIDs[words] = Int32(tries.count - 1)
        return Int32(tries.count - 1)
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
}
