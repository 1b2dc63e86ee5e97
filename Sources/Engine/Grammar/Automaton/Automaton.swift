internal import JSON

/// A pushdown automaton over bytes that runs all its threads in parallel.
///
/// A configuration is a set of threads, each with the configuration it returns to: a graph-structured stack (Tomita,
/// "An efficient augmented-context-free parsing algorithm", 1987), whose nodes are shared because equal sets have the
/// same id. States and configurations are created when they are first needed, and cached. States that cannot be
/// completed are never created.
final class Automaton {
    let program: Program
    let regexes: RegexArena
    let isPretty: Bool
    /// Whether a space follows each comma and colon, as in the output of Python's `json.dumps`.
    let isSpaced: Bool
    private let sequences: [[SequencePart]]

    @exclusivity(unchecked) private(set) var states: [LocalState] = []
    @exclusivity(unchecked) private var stateIndex = HashIndex()
    @exclusivity(unchecked) private var scalarStates: [StateID] = []
    @exclusivity(unchecked) private var edgeLists: [[Edge]?] = []

    @exclusivity(unchecked) private(set) var configs: [[Thread]] = []
    @exclusivity(unchecked) private var configIndex = HashIndex()
    @exclusivity(unchecked) private var aliveSets: [ByteSet?] = []
    @exclusivity(unchecked) private var steps = IntegerTable()
    private var languageSets: [RegexID: ByteSet] = [:]

    private(set) var objectProgress: [ObjectProgress] = []
    private var objectProgressIDs: [ObjectProgress: Int32] = [:]
    var choices: [UInt64: ObjectChoices] = [:]
    private(set) var arrayProgress: [ArrayProgress] = []
    private var arrayProgressIDs: [ArrayProgress: Int32] = [:]

    private var texts: [[UInt8]] = []
    private var textIDs: [[UInt8]: Int32] = [:]
    /// Texts of names and items read so far.
    @exclusivity(unchecked) var itemTexts = ItemTexts()
    /// Sets of written names or scalars.
    var writtenSets: [[[UInt8]]] = [[]]
    private var writtenIDs: [[[UInt8]]: Int32] = [[]: 0]
    var exclusions: [UInt64: RegexID] = [:]
    var itemSets = [ItemSet()]
    var itemSetIDs: [[Int32]: Int32] = [[]: 0]
    struct DifferKey: Hashable { var inner: ConfigID, text: Int32, written: Int32 }
    var differs: [DifferKey: Bool] = [:]
    var grafts = IntegerTable()
    var itemValues: [Int32: JSONValue] = [:]

    var completions: [ConfigID: Int] = [:]
    var completionTexts: [StateID: [UInt8]] = [:]
    /// The entries of `completions` that the outermost call added, and the number of calls within each other.
    var addedCompletions: [ConfigID] = []
    var completionDepth = 0

    /// Deeper levels are not indented any further.
    private static let deepestIndentation: UInt16 = 200

    static let end: ConfigID = 0
    static let hole: ConfigID = 1
    static let dead: ConfigID = -1

    struct Edge {
        var bytes: ByteSet
        var actions: [Action]
    }

    /// The members that can come next in an object.
    struct ObjectChoices {
        var names: BitSet
        /// For each rank of the key trie: the number of allowed names before it.
        var ranks: [Int32]
        /// Whether a name of each region is allowed.
        var regions: [Bool]
        var canClose: Bool
        var hasMembers: Bool
    }

    init(
        _ program: Program, _ regexes: RegexArena, isPretty: Bool, isSpaced: Bool = false, sequences: [[SequencePart]] = []
    ) {
        self.program = program
        self.regexes = regexes
        self.isPretty = isPretty
        self.isSpaced = isSpaced && !isPretty
        self.sequences = sequences
        // The two sentinels are threads that return to themselves.
        let end = state(LocalState(kind: .end))
        _ = intern([Thread(state: end, parent: Self.end)])
        let hole = state(LocalState(kind: .hole))
        _ = intern([Thread(state: hole, parent: Self.hole)])
    }

    /// Whether the caches are so large that a new automaton should replace this one.
    var isFull: Bool { configs.count > 400_000 || states.count > 400_000 || regexes.isLarge }

    /// Approximate number of bytes, most of them the rows of languages.
    var size: Int { regexes.rowCount * 1_024 + regexes.nodes.count * 64 + (configs.count + states.count) * 96 }

    // MARK: - Interning

    func state(_ local: LocalState) -> StateID {
        if local.kind == .scalar { return scalarState(local.a) }
        let hash = local.hash
        let known = stateIndex.find(hash) { states[Int($0)] == local }
        if known >= 0 { return known }
        let id = StateID(states.count)
        states.append(local)
        stateIndex.insert(hash, id)
        edgeLists.append(nil)
        return id
    }

    private func scalarState(_ language: RegexID) -> StateID {
        let index = Int(language)
        if index >= scalarStates.count {
            scalarStates += [StateID](repeating: -1, count: max(regexes.nodes.count, index + 1) - scalarStates.count)
        }
        if scalarStates[index] < 0 {
            scalarStates[index] = StateID(states.count)
            states.append(LocalState(kind: .scalar, a: language))
            edgeLists.append(nil)
        }
        return scalarStates[index]
    }

    func intern(_ threads: [Thread]) -> ConfigID {
        if threads.isEmpty { return Self.dead }
        let hash = Self.hash(threads)
        let known = configIndex.find(hash) { configs[Int($0)] == threads }
        if known >= 0 { return known }
        let id = ConfigID(configs.count)
        configs.append(threads)
        aliveSets.append(nil)
        configIndex.insert(hash, id)
        return id
    }

    private static func hash(_ threads: [Thread]) -> UInt64 {
        var hash: UInt64 = 0
        for thread in threads {
            hash = HashIndex.mix(hash, UInt64(UInt32(bitPattern: thread.state)) << 32 | UInt64(UInt32(bitPattern: thread.parent)))
        }
        return hash
    }

    func progress(_ value: ObjectProgress) -> Int32 {
        if let id = objectProgressIDs[value] { return id }
        objectProgress.append(value)
        objectProgressIDs[value] = Int32(objectProgress.count - 1)
        return Int32(objectProgress.count - 1)
    }

    func progress(_ value: ArrayProgress) -> Int32 {
        if let id = arrayProgressIDs[value] { return id }
        arrayProgress.append(value)
        arrayProgressIDs[value] = Int32(arrayProgress.count - 1)
        return Int32(arrayProgress.count - 1)
    }

    func text(_ bytes: [UInt8]) -> Int32 {
        if let id = textIDs[bytes] { return id }
        texts.append(bytes)
        textIDs[bytes] = Int32(texts.count - 1)
        return Int32(texts.count - 1)
    }

    func written(_ set: Int32, adding text: [UInt8]) -> Int32 {
        var words = writtenSets[Int(set)]
        words.append(text)
        words.sort { $0.lexicographicallyPrecedes($1) }
        if let id = writtenIDs[words] { return id }
        writtenSets.append(words)
        writtenIDs[words] = Int32(writtenSets.count - 1)
        return Int32(writtenSets.count - 1)
    }

    func fixedText(_ id: Int32) -> [UInt8] { texts[Int(id)] }
    func parts(ofSequence id: Int32) -> [SequencePart] { sequences[Int(id)] }

    // MARK: - Configurations

    /// The start configuration, with one thread for each start state.
    func start(_ beginnings: [StateID]) -> ConfigID { close(beginnings.map { Thread(state: $0, parent: Self.end) }) }

    func config(_ state: StateID, _ parent: ConfigID) -> ConfigID { close([Thread(state: state, parent: parent)]) }

    /// The configuration that consists of these threads.
    func config(_ threads: [Thread]) -> ConfigID { intern(threads) }

    func isComplete(_ config: ConfigID) -> Bool { contains(config, .end) }
    func hasHole(_ config: ConfigID) -> Bool { contains(config, .hole) }

    private func contains(_ config: ConfigID, _ kind: LocalState.Kind) -> Bool {
        config != Self.dead && configs[Int(config)].contains { states[Int($0.state)].kind == kind }
    }

    /// The bytes that may come next.
    func alive(_ config: ConfigID) -> ByteSet {
        // At a limit, a byte that should be possible may lead here.
        if config == Self.dead { return ByteSet() }
        if let set = aliveSets[Int(config)] { return set }
        var set = ByteSet()
        for thread in configs[Int(config)] { set = set.union(alive(state: thread.state)) }
        if !regexes.isFull { aliveSets[Int(config)] = set }
        return set
    }

    /// The bytes that may come next because of the structure and the declared names, rather than a text or a number.
    func aliveOutsideTexts(_ config: ConfigID) -> ByteSet {
        var set = ByteSet()
        for thread in configs[Int(config)] where states[Int(thread.state)].language == nil {
            set = set.union(alive(state: thread.state))
        }
        return set
    }

    private func alive(state id: StateID) -> ByteSet {
        let local = states[Int(id)]
        if let language = local.language { return alive(language: language) }
        if local.kind == .uniqueStructure { return aliveInStructure(local) }
        var set = ByteSet()
        for edge in edges(id) { set = set.union(edge.bytes) }
        return set
    }

    private func alive(language: RegexID) -> ByteSet {
        if let known = languageSets[language] { return known }
        var set = ByteSet()
        guard let row = regexes.liveRow(language) else { return set }
        for byte in 0..<256 where row[byte] != RegexArena.empty { set.insert(UInt8(byte)) }
        languageSets[language] = set
        return set
    }

    /// The configuration after `byte`; ``dead`` if `byte` cannot follow.
    func step(_ config: ConfigID, _ byte: UInt8) -> ConfigID {
        if config == Self.dead { return config }
        let key = UInt64(UInt32(bitPattern: config)) << 8 | UInt64(byte)
        if let known = steps[key] { return known }
        let next = computeStep(config, byte)
        // Do not cache a result that was computed after a limit was reached: it may only be due to the fuel of this
        // call.
        if !regexes.isFull { steps.insert(key, next) }
        return next
    }

    private func computeStep(_ config: ConfigID, _ byte: UInt8) -> ConfigID {
        var threads: [Thread] = []
        var pushes: [(child: StateID, next: Thread)] = []
        regexes.spend(parts: 8 + 4 * configs[Int(config)].count)
        for thread in configs[Int(config)] {
            let local = states[Int(thread.state)]
            if local.kind == .uniqueStructure {
                if let next = next(local, byte) { threads.append(Thread(state: next, parent: thread.parent)) }
                continue
            }
            if let language = local.language {
                guard let row = regexes.liveRow(language), row[Int(byte)] != RegexArena.empty else { continue }
                threads.append(Thread(state: next(local, byte, row[Int(byte)]), parent: thread.parent))
                continue
            }
            for edge in edges(thread.state) where edge.bytes.contains(byte) {
                for action in edge.actions {
                    switch action {
                    case .go(let state): threads.append(Thread(state: state, parent: thread.parent))
                    case .push(let child, let next): pushes.append((child, Thread(state: next, parent: thread.parent)))
                    case .pop: threads += configs[Int(thread.parent)]
                    }
                }
            }
        }
        return close(threads, pushes)
    }

    /// The state after a state that reads a language has read `byte`; `rest` is the remaining language.
    private func next(_ local: LocalState, _ byte: UInt8, _ rest: RegexID) -> StateID {
        if local.kind == .scalar { return scalarState(rest) }
        var next = local
        next.c = rest
        next.d = itemTexts.appending(byte, to: local.d)
        if local.kind == .otherKey, rest == RegexArena.epsilon { return afterOtherKey(local, next.d) }
        return state(next)
    }

    /// Adds all threads that are reached without reading a byte, and interns the result.
    private func close(_ threads: [Thread], _ pushes: [(child: StateID, next: Thread)] = []) -> ConfigID {
        var queue = threads
        var pushes = pushes
        var result: [Thread] = []
        if queue.count == 1, pushes.isEmpty {
            // For most bytes there is only one thread, and nothing to add.
            let local = states[Int(queue[0].state)]
            switch local.kind {
            case .scalar where !regexes.isNullable[Int(local.a)], .object, .key, .otherKey, .colon: return intern(queue)
            case .text where local.b < Int32(texts[Int(local.a)].count): return intern(queue)
            default: break
            }
        }
        while true {
            while let thread = queue.popLast() {
                let local = states[Int(thread.state)]
                switch local.kind {
                case .value:
                    let type = program.types[Int(local.a)]
                    if type.scalar != RegexArena.empty {
                        queue.append(Thread(state: scalarState(type.scalar), parent: thread.parent))
                    }
                    if !type.objects.isEmpty || !type.arrays.isEmpty {
                        result.append(
                            Thread(
                                state: state(LocalState(kind: .structure, depth: local.depth, a: local.a)), parent: thread.parent)
                        )
                    }
                case .scalar:
                    if local.a != RegexArena.epsilon { result.append(thread) }
                    if regexes.isNullable[Int(local.a)] { result += configs[Int(thread.parent)] }
                case .array:
                    if local.phase == LocalState.Phase.next || (local.phase == LocalState.Phase.open && !isPretty) {
                        for (child, next) in items(local) {
                            if let next {
                                pushes.append((child, Thread(state: next, parent: thread.parent)))
                            } else {
                                queue.append(Thread(state: child, parent: thread.parent))
                            }
                        }
                    }
                    if local.phase != LocalState.Phase.next { result.append(thread) }
                case .uniqueItem:
                    if local.c != RegexArena.epsilon { result.append(thread) }
                    if regexes.isNullable[Int(local.c)] { queue.append(Thread(state: afterUnique(local), parent: thread.parent)) }
                case .uniqueStructure:
                    if !alive(local.c).isEmpty { result.append(thread) }
                    if hasHole(local.c), isNew(local) { queue.append(Thread(state: afterUnique(local), parent: thread.parent)) }
                case .sequence:
                    let parts = sequences[Int(local.a)]
                    guard Int(local.b) < parts.count else {
                        result += configs[Int(thread.parent)]
                        break
                    }
                    var next = local
                    next.b += 1
                    let child =
                        switch parts[Int(local.b)] {
                        case .language(let language): scalarState(language)
                        case .value(let type): state(LocalState(kind: .value, a: type))
                        }
                    pushes.append((child, Thread(state: state(next), parent: thread.parent)))
                case .text where local.b >= Int32(texts[Int(local.a)].count):
                    queue.append(Thread(state: local.c, parent: thread.parent))
                default: result.append(thread)
                }
            }
            guard let first = pushes.first else { break }
            // Threads that read the same child share it, even if they continue differently.
            regexes.spend(parts: 4 + pushes.count)
            let returns = pushes.filter { $0.child == first.child }.map(\.next)
            pushes.removeAll { $0.child == first.child }
            queue.append(Thread(state: first.child, parent: close(returns)))
        }
        result.sort()
        return intern(result.deduplicated())
    }

    // MARK: - Edges

    func edges(_ id: StateID) -> [Edge] {
        if let known = edgeLists[Int(id)] { return known }
        regexes.spend(parts: 8)
        let result = makeEdges(states[Int(id)])
        // As for steps: a limit may be the reason that something is missing.
        if !regexes.isFull { edgeLists[Int(id)] = result }
        return result
    }

    private func makeEdges(_ local: LocalState) -> [Edge] {
        switch local.kind {
        case .end, .hole, .value, .sequence, .scalar, .otherKey, .uniqueItem, .uniqueStructure: return []
        case .structure: return structureEdges(local)
        case .object: return objectEdges(local)
        case .key: return keyEdges(local)
        case .colon: return colonEdges(local)
        case .array: return arrayEdges(local)
        case .text:
            let bytes = texts[Int(local.a)]
            var next = local
            next.b += 1
            let target = Int(next.b) < bytes.count ? state(next) : local.c
            return [Edge(bytes: ByteSet(bytes[Int(local.b)]), actions: [.go(target)])]
        }
    }

    private func structureEdges(_ local: LocalState) -> [Edge] {
        let type = program.types[Int(local.a)]
        let depth = innerDepth(local.depth)
        var edges: [Edge] = []
        if !type.objects.isEmpty {
            let actions = type.objects.map { object -> Action in
                .go(
                    state(
                        LocalState(kind: .object, phase: LocalState.Phase.open, depth: depth, a: object, b: startProgress(object))
                    ))
            }
            edges.append(Edge(bytes: ByteSet(UInt8(ascii: "{")), actions: actions))
        }
        if !type.arrays.isEmpty {
            let actions = type.arrays.map { array -> Action in
                let counts = program.arrays[Int(array)].contains.map { _ in Int32(0) }
                return .go(
                    state(
                        LocalState(
                            kind: .array, phase: LocalState.Phase.open, depth: depth, a: array,
                            b: progress(ArrayProgress(counts: counts)))))
            }
            edges.append(Edge(bytes: ByteSet(UInt8(ascii: "[")), actions: actions))
        }
        return edges
    }

    /// The indentation depth of the contents of a container at `depth`.
    func innerDepth(_ depth: UInt16) -> UInt16 { isPretty ? min(depth, Self.deepestIndentation) + 1 : 0 }

    /// The edges between the members or items of a container, and to its end. In compact text, the edges to the first
    /// member or item are added by the caller.
    func separatorEdges(_ local: LocalState, canClose: Bool, hasMore: Bool, end: Unicode.Scalar) -> [Edge] {
        var edges: [Edge] = []
        var next = local
        next.phase = LocalState.Phase.next
        let close = Edge(bytes: ByteSet(UInt8(ascii: end)), actions: [.pop])
        switch local.phase {
        case LocalState.Phase.open:
            if canClose { edges.append(close) }
            if isPretty, hasMore {
                edges.append(Edge(bytes: ByteSet(0x0A), actions: [.go(indented(local.depth, state(next)))]))
            }
        case LocalState.Phase.after:
            if hasMore {
                var target = state(next)
                if isPretty { target = state(LocalState(kind: .text, a: text([0x0A]), c: indented(local.depth, target))) }
                if isSpaced { target = state(LocalState(kind: .text, a: text([0x20]), c: target)) }
                edges.append(Edge(bytes: ByteSet(UInt8(ascii: ",")), actions: [.go(target)]))
            }
            guard canClose else { break }
            if isPretty {
                var last = local
                last.phase = LocalState.Phase.close
                edges.append(Edge(bytes: ByteSet(0x0A), actions: [.go(indented(local.depth - 1, state(last)))]))
            } else {
                edges.append(close)
            }
        case LocalState.Phase.close: edges.append(close)
        default: break
        }
        return edges
    }

    /// The state that reads the indentation of `depth` after a line break, before `next`.
    func indented(_ depth: UInt16, _ next: StateID) -> StateID {
        let spaces = text([UInt8](repeating: UInt8(ascii: " "), count: Int(depth) * 2))
        return state(LocalState(kind: .text, a: spaces, c: next))
    }
}
