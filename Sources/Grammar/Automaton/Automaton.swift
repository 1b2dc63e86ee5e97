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
        /// In an object or array that is an item of array `a` with progress `b` and must differ from others: inside it is
        /// at configuration `c`, which ends in a hole, after the text `d`.
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
    var written: Int32 = 0
}

/// The parts of a text with fixed pieces around values.
struct SequencePart: Hashable {
    enum Content: Hashable {
        case language(RegexID)
        case value(TypeID)
    }

    var content: Content
}

/// A pushdown automaton over bytes, run as all its threads at once.
///
/// A configuration is a set of threads, each with the configuration it returns to: a graph-structured stack (Tomita,
/// "An efficient augmented-context-free parsing algorithm", 1987), whose nodes are shared because equal sets are one.
/// Everything is made when first needed and kept; states that cannot be completed are never made.
final class Automaton {
    let program: Program
    let regexes: RegexArena
    let isPretty: Bool
    private let sequences: [[SequencePart]]

    private(set) var states: [LocalState] = []
    private var stateIndex = HashIndex()
    private var scalarStates: [StateID] = []
    private var edgeLists: [[Edge]?] = []

    private(set) var configs: [[Thread]] = []
    private var configIndex = HashIndex()
    private var aliveSets: [ByteSet?] = []
    private var steps = IntegerTable()
    private var languageSets: [RegexID: ByteSet] = [:]

    private(set) var objectProgress: [ObjectProgress] = []
    private var objectProgressIDs: [ObjectProgress: Int32] = [:]
    private var choices: [UInt64: ObjectChoices] = [:]
    private(set) var arrayProgress: [ArrayProgress] = []
    private var arrayProgressIDs: [ArrayProgress: Int32] = [:]

    private var texts: [[UInt8]] = []
    private var textIDs: [[UInt8]: Int32] = [:]
    /// Texts typed so far, as a tree: what came before, and the last byte.
    private var typed: [(before: Int32, byte: UInt8)] = [(0, 0)]
    private var typedIDs = IntegerTable()
    /// Sets of written names or items.
    private var writtenSets: [[[UInt8]]] = [[]]
    private var writtenIDs: [[[UInt8]]: Int32] = [[]: 0]
    private var exclusions: [UInt64: RegexID] = [:]
    private struct DifferKey: Hashable { var key: UInt64, written: Int32 }
    private var differs: [DifferKey: Bool] = [:]
    private var grafts = IntegerTable()

    var completions: [ConfigID: Int] = [:]
    var completionTexts: [StateID: [UInt8]] = [:]

    /// Deeper levels are indented no further.
    private static let deepestIndentation: UInt16 = 200

    static let end: ConfigID = 0
    static let hole: ConfigID = 1
    static let dead: ConfigID = -1

    struct Edge {
        var bytes: ByteSet
        var actions: [Action]
    }

    /// Which members an object can have next.
    struct ObjectChoices {
        var names: BitSet
        /// How many allowed names come before each rank of the key tree.
        var ranks: [Int32]
        var regions: [Bool]
        var canClose: Bool
        var hasMembers: Bool
    }

    init(_ program: Program, _ regexes: RegexArena, isPretty: Bool, sequences: [[SequencePart]] = []) {
        self.program = program
        self.regexes = regexes
        self.isPretty = isPretty
        self.sequences = sequences
        // The two sentinels are threads that return to themselves.
        let end = state(LocalState(kind: .end))
        _ = intern([Thread(state: end, parent: Self.end)])
        let hole = state(LocalState(kind: .hole))
        _ = intern([Thread(state: hole, parent: Self.hole)])
    }

    /// Whether so much was made that a new automaton should take over.
    var isFull: Bool { configs.count > 400_000 || states.count > 400_000 || regexes.isLarge }

    // MARK: - Interning

    func state(_ local: LocalState) -> StateID {
        if local.kind == .scalar { return scalarState(local.a) }
        let hash = local.hash
        let known = stateIndex.find(hash) { states[Int($0)] == local }
        if known >= 0 { return known }
        let id = StateID(states.count)
        states.append(local)
        stateIndex.insert(hash, id) { states[Int($0)].hash }
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

    private func intern(_ threads: [Thread]) -> ConfigID {
        if threads.isEmpty { return Self.dead }
        let hash = Self.hash(threads)
        let known = configIndex.find(hash) { configs[Int($0)] == threads }
        if known >= 0 { return known }
        let id = ConfigID(configs.count)
        configs.append(threads)
        aliveSets.append(nil)
        configIndex.insert(hash, id) { Self.hash(configs[Int($0)]) }
        return id
    }

    private static func hash(_ threads: [Thread]) -> UInt64 {
        var hash: UInt64 = 0
        for thread in threads {
            hash = HashIndex.mix(hash, UInt64(UInt32(bitPattern: thread.state)) << 32 | UInt64(UInt32(bitPattern: thread.parent)))
        }
        return hash
    }

    private func progress(_ value: ObjectProgress) -> Int32 {
        if let id = objectProgressIDs[value] { return id }
        objectProgress.append(value)
        objectProgressIDs[value] = Int32(objectProgress.count - 1)
        return Int32(objectProgress.count - 1)
    }

    private func progress(_ value: ArrayProgress) -> Int32 {
        if let id = arrayProgressIDs[value] { return id }
        arrayProgress.append(value)
        arrayProgressIDs[value] = Int32(arrayProgress.count - 1)
        return Int32(arrayProgress.count - 1)
    }

    private func text(_ bytes: [UInt8]) -> Int32 {
        if let id = textIDs[bytes] { return id }
        texts.append(bytes)
        textIDs[bytes] = Int32(texts.count - 1)
        return Int32(texts.count - 1)
    }

    private func typed(_ before: Int32, _ byte: UInt8) -> Int32 {
        let key = UInt64(UInt32(bitPattern: before)) << 8 | UInt64(byte)
        if let id = typedIDs[key] { return id }
        typed.append((before, byte))
        typedIDs.insert(key, Int32(typed.count - 1))
        return Int32(typed.count - 1)
    }

    func typedText(_ id: Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        var id = Int(id)
        while id != 0 {
            bytes.append(typed[id].byte)
            id = Int(typed[id].before)
        }
        return bytes.reversed()
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

    /// The configuration before a value of the program's root, or before one of several beginnings.
    func start(_ beginnings: [StateID]) -> ConfigID { close(beginnings.map { Thread(state: $0, parent: Self.end) }) }

    func config(_ state: StateID, _ parent: ConfigID) -> ConfigID { close([Thread(state: state, parent: parent)]) }

    /// The configuration of some of another's threads.
    func config(_ threads: [Thread]) -> ConfigID { intern(threads) }

    func isComplete(_ config: ConfigID) -> Bool { configs[Int(config)].contains { states[Int($0.state)].kind == .end } }
    func hasHole(_ config: ConfigID) -> Bool { configs[Int(config)].contains { states[Int($0.state)].kind == .hole } }

    /// The bytes that can follow.
    func alive(_ config: ConfigID) -> ByteSet {
        if let set = aliveSets[Int(config)] { return set }
        var set = ByteSet()
        for thread in configs[Int(config)] { set = set.union(alive(state: thread.state)) }
        aliveSets[Int(config)] = set
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
        // A pattern that outgrows its limits ends here: fewer documents, never a wrong one.
        if let row = try? regexes.row(language) {
            for byte in 0..<256 where row[byte] != RegexArena.empty { set.insert(UInt8(byte)) }
        }
        languageSets[language] = set
        return set
    }

    /// The configuration after `byte`, ``dead`` if it cannot follow.
    func step(_ config: ConfigID, _ byte: UInt8) -> ConfigID {
        let key = UInt64(UInt32(bitPattern: config)) << 8 | UInt64(byte)
        if let known = steps[key] { return known }
        let next = computeStep(config, byte)
        steps.insert(key, next)
        return next
    }

    private func computeStep(_ config: ConfigID, _ byte: UInt8) -> ConfigID {
        var threads: [Thread] = []
        var pushes: [(child: StateID, next: Thread)] = []
        for thread in configs[Int(config)] {
            let local = states[Int(thread.state)]
            if local.kind == .uniqueStructure {
                if let next = next(local, byte) { threads.append(Thread(state: next, parent: thread.parent)) }
                continue
            }
            if let language = local.language {
                guard let row = try? regexes.row(language), row[Int(byte)] != RegexArena.empty else { continue }
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

    /// The state of a language's reader after `byte`, which leaves `rest`.
    private func next(_ local: LocalState, _ byte: UInt8, _ rest: RegexID) -> StateID {
        if local.kind == .scalar { return scalarState(rest) }
        var next = local
        next.c = rest
        next.d = typed(local.d, byte)
        if local.kind == .otherKey, rest == RegexArena.epsilon { return afterOtherKey(local, next.d) }
        return state(next)
    }

    /// Adds all that follows without a byte, and interns the result.
    private func close(_ threads: [Thread], _ pushes: [(child: StateID, next: Thread)] = []) -> ConfigID {
        var queue = threads
        var pushes = pushes
        var result: [Thread] = []
        if queue.count == 1, pushes.isEmpty {
            // Most bytes only move one thread on.
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
                        for (child, next) in items(local) { addItem(child, next, thread.parent, &queue, &pushes) }
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
                        switch parts[Int(local.b)].content {
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
            // Threads that read the same thing share it, whatever they go on with.
            let returns = pushes.filter { $0.child == first.child }.map(\.next)
            pushes.removeAll { $0.child == first.child }
            queue.append(Thread(state: first.child, parent: close(returns)))
        }
        result.sort()
        return intern(result.deduplicated())
    }

    private func addItem(
        _ child: StateID, _ next: StateID?, _ parent: ConfigID, _ queue: inout [Thread],
        _ pushes: inout [(child: StateID, next: Thread)]
    ) {
        if let next {
            pushes.append((child, Thread(state: next, parent: parent)))
        } else {
            queue.append(Thread(state: child, parent: parent))
        }
    }

    // MARK: - Edges

    func edges(_ id: StateID) -> [Edge] {
        if let known = edgeLists[Int(id)] { return known }
        let result = makeEdges(states[Int(id)])
        edgeLists[Int(id)] = result
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
        let depth = isPretty ? min(local.depth, Self.deepestIndentation) + 1 : 0
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

    /// A line break and the indentation of `depth`, less the break itself, before `next`.
    private func indented(_ depth: UInt16, _ next: StateID) -> StateID {
        let spaces = text([UInt8](repeating: UInt8(ascii: " "), count: Int(depth) * 2))
        return state(LocalState(kind: .text, a: spaces, c: next))
    }

    // MARK: - Objects

    func startProgress(_ object: Int32) -> Int32 {
        progress(ObjectProgress(gone: BitSet(count: program.objects[Int(object)].names.count)))
    }

    func choices(_ object: Int32, _ progressID: Int32) -> ObjectChoices {
        let key = UInt64(UInt32(bitPattern: object)) << 32 | UInt64(UInt32(bitPattern: progressID))
        if let known = choices[key] { return known }
        let made = makeChoices(object, program.objects[Int(object)], objectProgress[Int(progressID)])
        choices[key] = made
        return made
    }

    private func makeChoices(_ id: Int32, _ object: Program.Object, _ progress: ObjectProgress) -> ObjectChoices {
        let missing = object.required.count - object.required.intersectionCount(progress.gone)
        let wanted = object.allWants & ~progress.wants
        let count = Int(progress.count)
        // Members that must still come; another name may satisfy several wants at once.
        let leastOthers = wanted == 0 ? 0 : object.regions.contains { wanted & ~$0.wants == 0 } ? 1 : wanted.nonzeroBitCount
        func fits(_ additional: Int) -> Bool { object.most.map { count + additional <= $0 } ?? true }
        var names = BitSet(count: object.names.count)
        var available = 0
        for (index, name) in object.names.enumerated() where name.isAllowed && !progress.gone.contains(index) {
            available += 1
            // A required name before this one would be lost.
            if !object.before[index].withoutMembers(of: progress.gone).isDisjoint(with: object.required) { continue }
            guard fits(name.isRequired ? missing + leastOthers : missing + leastOthers + 1) else { continue }
            if object.least > 0, object.regions.isEmpty {
                let lost = object.before[index].withoutMembers(of: progress.gone).count { object.names[$0].isAllowed }
                let left = remainingCount(object, progress) - lost
                if count + left < object.least { continue }
            }
            names.insert(index)
        }
        let orderedMissing = object.required.withoutMembers(of: progress.gone).withoutMembers(of: object.loose)
        let canHaveOthers = orderedMissing.isEmpty
        let regions = object.regions.enumerated().map { index, region in
            guard canHaveOthers, otherNames(id, index, progress.written) != RegexArena.empty else { return false }
            let rest = wanted & ~region.wants
            if rest != 0, !leavesNames(id, index, for: rest, progress.written) { return false }
            let others = rest == 0 ? 0 : object.regions.contains { rest & ~$0.wants == 0 } ? 1 : rest.nonzeroBitCount
            return fits(missing + others + 1)
        }
        var ranks: [Int32] = [0]
        ranks.reserveCapacity(object.keys.order.count + 1)
        for name in object.keys.order { ranks.append((ranks.last ?? 0) + (names.contains(Int(name)) ? 1 : 0)) }
        let canClose = missing == 0 && wanted == 0 && count >= object.least
        return ObjectChoices(
            names: names, ranks: ranks, regions: regions, canClose: canClose,
            hasMembers: (ranks.last ?? 0) > 0 || regions.contains(true))
    }

    /// How many listed names can still be written, if all are.
    private func remainingCount(_ object: Program.Object, _ progress: ObjectProgress) -> Int {
        var count = 0
        for (index, name) in object.names.enumerated() where name.isAllowed && !progress.gone.contains(index) { count += 1 }
        return count
    }

    /// The progress after a listed name.
    func progress(_ id: Int32, of object: Int32, writing name: Int) -> Int32 {
        var value = objectProgress[Int(id)]
        let shape = program.objects[Int(object)]
        value.gone.insert(name)
        value.gone.formUnion(shape.before[name])
        return progress(counted(value, shape))
    }

    /// The progress after another name.
    func progress(_ id: Int32, of object: Int32, writingOther name: [UInt8], in region: Int) -> Int32 {
        var value = objectProgress[Int(id)]
        let shape = program.objects[Int(object)]
        for index in shape.names.indices where !shape.loose.contains(index) { value.gone.insert(index) }
        value.wants |= shape.regions[region].wants
        value.written = written(value.written, adding: name)
        return progress(counted(value, shape))
    }

    private func counted(_ value: ObjectProgress, _ shape: Program.Object) -> ObjectProgress {
        guard shape.counts else { return value }
        var value = value
        // Above the bounds all counts are alike.
        value.count = min(value.count + 1, Int32(clamping: max(shape.most ?? 0, shape.least)))
        return value
    }

    /// The language of other names of a region after the opening quote, without those that were written.
    func otherNames(_ object: Int32, _ region: Int, _ written: Int32) -> RegexID {
        let key = UInt64(UInt32(bitPattern: object)) << 40 | UInt64(region) << 32 | UInt64(UInt32(bitPattern: written))
        if let known = exclusions[key] { return known }
        var names = program.objects[Int(object)].regions[region].names
        let style: EscapeStyle = regexes.isOpenByForm(names) ? .any : .usual
        let words = writtenSets[Int(written)]
        if !words.isEmpty { names = regexes.intersection([names, regexes.complement(regexes.words(words))]) }
        let isAlive = (try? regexes.isAlive(names)) ?? false
        let result = isAlive ? regexes.stringBody(names, style) : RegexArena.empty
        exclusions[key] = result
        return result
    }

    /// Whether after a name of a region there are names left for what is wanted then.
    private func leavesNames(_ object: Int32, _ region: Int, for wants: UInt64, _ written: Int32) -> Bool {
        let shape = program.objects[Int(object)]
        func words(_ region: Int) -> [[UInt8]]? {
            var names = shape.regions[region].names
            let taken = writtenSets[Int(written)]
            if !taken.isEmpty { names = regexes.intersection([names, regexes.complement(regexes.words(taken))]) }
            return (try? regexes.finiteWords(names, limit: 8)) ?? nil
        }
        for bit in 0..<shape.wantCount where wants >> UInt64(bit) & 1 == 1 {
            let givers = shape.regions.indices.filter { shape.regions[$0].wants >> UInt64(bit) & 1 == 1 }
            let isLeft = givers.contains { giver in
                guard let left = words(giver) else { return true }
                guard left.count < 2 else { return true }
                // The one name left must not be the one that is written now.
                guard let own = words(region) else { return !left.isEmpty }
                return left.contains { name in own != [name] }
            }
            if !isLeft { return false }
        }
        return true
    }

    private func objectEdges(_ local: LocalState) -> [Edge] {
        let choices = choices(local.a, local.b)
        var edges: [Edge] = []
        func close() { edges.append(Edge(bytes: ByteSet(UInt8(ascii: "}")), actions: [.pop])) }
        var inner = local
        switch local.phase {
        case LocalState.Phase.open:
            if choices.canClose { close() }
            if isPretty {
                inner.phase = LocalState.Phase.next
                if choices.hasMembers {
                    edges.append(Edge(bytes: ByteSet(0x0A), actions: [.go(indented(local.depth, state(inner)))]))
                }
            } else {
                edges += nameEdges(local, choices)
            }
        case LocalState.Phase.next: edges += nameEdges(local, choices)
        case LocalState.Phase.after:
            if choices.hasMembers {
                inner.phase = LocalState.Phase.next
                var target = state(inner)
                if isPretty { target = self.state(LocalState(kind: .text, a: text([0x0A]), c: indented(local.depth, target))) }
                edges.append(Edge(bytes: ByteSet(UInt8(ascii: ",")), actions: [.go(target)]))
            }
            if choices.canClose {
                if isPretty {
                    inner.phase = LocalState.Phase.close
                    edges.append(Edge(bytes: ByteSet(0x0A), actions: [.go(indented(local.depth - 1, state(inner)))]))
                } else {
                    close()
                }
            }
        default: close()
        }
        return edges
    }

    private func nameEdges(_ local: LocalState, _ choices: ObjectChoices) -> [Edge] {
        var actions: [Action] = []
        if (choices.ranks.last ?? 0) > 0 {
            actions.append(.go(state(LocalState(kind: .key, depth: local.depth, a: local.a, b: local.b))))
        }
        for (index, isAllowed) in choices.regions.enumerated() where isAllowed {
            let language = otherNames(local.a, index, objectProgress[Int(local.b)].written)
            if language == RegexArena.empty { continue }
            let next = LocalState(kind: .otherKey, phase: UInt8(index), depth: local.depth, a: local.a, b: local.b, c: language)
            actions.append(.go(state(next)))
        }
        return actions.isEmpty ? [] : [Edge(bytes: ByteSet(UInt8(ascii: "\"")), actions: actions)]
    }

    private func keyEdges(_ local: LocalState) -> [Edge] {
        let object = program.objects[Int(local.a)]
        let choices = choices(local.a, local.b)
        return object.keys.nodes[Int(local.c)].children.compactMap { byte, child in
            let node = object.keys.nodes[Int(child)]
            guard choices.ranks[Int(node.last)] > choices.ranks[Int(node.first)] else { return nil }
            if node.name >= 0 {
                let name = Int(node.name)
                let next = progress(local.b, of: local.a, writing: name)
                let colon = LocalState(kind: .colon, depth: local.depth, a: local.a, b: next, c: object.names[name].type)
                return Edge(bytes: ByteSet(byte), actions: [.go(state(colon))])
            }
            var next = local
            next.c = child
            return Edge(bytes: ByteSet(byte), actions: [.go(state(next))])
        }
    }

    private func afterOtherKey(_ local: LocalState, _ text: Int32) -> StateID {
        // The text is valid JSON: the automaton let nothing else through.
        var name: [UInt8] = []
        if case .string(let decoded) = try? JSONParser.parse([UInt8(ascii: "\"")] + typedText(text)) {
            name = Array(decoded.utf8)
        }
        let next = progress(local.b, of: local.a, writingOther: name, in: Int(local.phase))
        let type = program.objects[Int(local.a)].regions[Int(local.phase)].type
        return state(LocalState(kind: .colon, depth: local.depth, a: local.a, b: next, c: type))
    }

    private func colonEdges(_ local: LocalState) -> [Edge] {
        if isPretty, local.phase == 0 {
            var next = local
            next.phase = 1
            return [Edge(bytes: ByteSet(UInt8(ascii: ":")), actions: [.go(state(next))])]
        }
        let value = state(LocalState(kind: .value, depth: local.depth, a: local.c))
        let after = state(LocalState(kind: .object, phase: LocalState.Phase.after, depth: local.depth, a: local.a, b: local.b))
        return [Edge(bytes: ByteSet(UInt8(ascii: isPretty ? " " : ":")), actions: [.push(child: value, next: after)])]
    }

    // MARK: - Arrays

    /// The items that may come next, with the state after each; nil for states that go on by themselves.
    func items(_ local: LocalState) -> [(child: StateID, next: StateID?)] {
        let array = program.arrays[Int(local.a)]
        let progress = arrayProgress[Int(local.b)]
        if let most = array.most, Int(progress.index) >= most { return [] }
        let types = itemTypes(array, Int(progress.index))
        var result: [(StateID, StateID?)] = []
        for (mask, type) in types.enumerated() {
            guard let type, let after = self.progress(progress, of: array, mask) else { continue }
            if array.isUnique {
                let language = uniqueItem(program.types[Int(type)].scalar, progress.written)
                if language != RegexArena.empty {
                    result.append(
                        (state(LocalState(kind: .uniqueItem, depth: local.depth, a: local.a, b: after, c: language)), nil))
                }
                let entry = program.types[Int(type)]
                if !entry.objects.isEmpty || !entry.arrays.isEmpty {
                    let inner = config(state(LocalState(kind: .structure, depth: local.depth, a: type)), Self.hole)
                    let item = LocalState(kind: .uniqueStructure, depth: local.depth, a: local.a, b: after, c: inner)
                    if canDiffer(inner, 0, progress.written) { result.append((state(item), nil)) }
                }
            } else {
                let next = LocalState(kind: .array, phase: LocalState.Phase.after, depth: local.depth, a: local.a, b: after)
                result.append((state(LocalState(kind: .value, depth: local.depth, a: type)), state(next)))
            }
        }
        return result
    }

    func itemTypes(_ array: Program.Array, _ index: Int) -> [TypeID?] {
        index < array.prefix.count ? array.prefix[index] : array.rest
    }

    /// The progress after an item that counts for the conditions of `mask`, nil if the array could not be completed.
    private func progress(_ progress: ArrayProgress, of array: Program.Array, _ mask: Int) -> Int32? {
        var value = progress
        for (number, part) in array.contains.enumerated() where mask >> number & 1 == 1 {
            if let most = part.most, Int(value.counts[number]) >= most { return nil }
            value.counts[number] = min(value.counts[number] + 1, Int32(clamping: max(part.least, part.most ?? 0)))
        }
        // Beyond all bounds and listed items every index is alike.
        let limit = max(array.prefix.count, array.least, array.most ?? 0)
        value.index = min(value.index + 1, Int32(clamping: limit))
        if !array.contains.isEmpty || array.isUnique, !canComplete(array, value) { return nil }
        return self.progress(value)
    }

    private func canComplete(_ array: Program.Array, _ progress: ArrayProgress) -> Bool {
        program.arrayCost(array, from: Int(progress.index), counts: progress.counts.map(Int.init)) != nil
    }

    func canClose(_ array: Program.Array, _ progress: ArrayProgress) -> Bool {
        Int(progress.index) >= array.least && zip(progress.counts, array.contains).allSatisfy { Int($0) >= $1.least }
    }

    /// A scalar's language without the values that were written.
    func uniqueItem(_ language: RegexID, _ written: Int32) -> RegexID {
        let key = 1 << 63 | UInt64(UInt32(bitPattern: language)) << 31 | UInt64(UInt32(bitPattern: written))
        if let known = exclusions[key] { return known }
        var contents: [[UInt8]] = []
        var others: [RegexID] = []
        for text in writtenSets[Int(written)] {
            switch try? JSONParser.parse(text) {
            case .string(let content): contents.append(Array(content.utf8))
            case .number(let number):
                others.append((try? regexes.number(.exactly(number), allowsZeroFraction: true)) ?? regexes.literal(text))
                if number.isZero {
                    let zeros = regexes.repetition(regexes.bytes(ByteSet(UInt8(ascii: "0"))), 1, nil)
                    let fraction = regexes.concat(regexes.literal([UInt8(ascii: ".")]), zeros)
                    others.append(
                        regexes.concat(regexes.literal(Array("-0".utf8)), regexes.alternation([RegexArena.epsilon, fraction])))
                }
            default: others.append(regexes.literal(text))
            }
        }
        // Strings differ by their content, everything else by its text.
        let parts = regexes.parts(language).map { part -> RegexID in
            guard let (content, style) = regexes.stringContent(afterQuote: part) else {
                // The same number could be written with an exponent.
                let plain = regexes.isNumber(part) ? regexes.withoutExponent(part) : part
                return regexes.difference(plain, regexes.alternation(others))
            }
            return regexes.string(regexes.intersection([content, regexes.complement(regexes.words(contents))]), style)
        }
        let rest = regexes.alternation(parts)
        let result = ((try? regexes.isAlive(rest)) ?? false) ? rest : RegexArena.empty
        exclusions[key] = result
        return result
    }

    private func afterUnique(_ local: LocalState) -> StateID {
        var value = arrayProgress[Int(local.b)]
        value.written = written(value.written, adding: typedText(local.d))
        let next = LocalState(kind: .array, phase: LocalState.Phase.after, depth: local.depth, a: local.a, b: progress(value))
        return state(next)
    }

    // MARK: - Structures that must differ

    private func written(_ local: LocalState) -> Int32 { arrayProgress[Int(local.b)].written }

    /// The items that begin with a text.
    private func rivals(_ typed: Int32, _ written: Int32) -> [[UInt8]] {
        let text = typedText(typed)
        return writtenSets[Int(written)].filter { $0.starts(with: text) }
    }

    /// Whether the value read is none of the items before, whatever they look like.
    private func isNew(_ local: LocalState) -> Bool { isNew(typedText(local.d), local) }

    func isNew(_ text: [UInt8], _ local: LocalState) -> Bool {
        guard let value = try? JSONParser.parse(text) else { return false }
        return !writtenSets[Int(written(local))].contains { text in (try? JSONParser.parse(text))?.isEqual(to: value) ?? false }
    }

    /// Whether what goes on like this can become different from all items before: wherever the automaton has a choice
    /// that they do not take, or ends where they do not.
    private func canDiffer(_ inner: ConfigID, _ typed: Int32, _ written: Int32) -> Bool {
        let key = UInt64(UInt32(bitPattern: inner)) << 32 | UInt64(UInt32(bitPattern: typed))
        let text = typedText(typed)
        let rivals = rivals(typed, written)
        if rivals.isEmpty { return true }
        let memo = DifferKey(key: key, written: written)
        if let known = differs[memo] { return known }
        var result = hasHole(inner) && !rivals.contains(text)
        if !result {
            var taken = ByteSet()
            for rival in rivals where rival.count > text.count { taken.insert(rival[text.count]) }
            alive(inner).forEach { byte in
                if result { return }
                let next = step(inner, byte)
                if next == Self.dead { return }
                result = !taken.contains(byte) || canDiffer(next, self.typed(typed, byte), written)
            }
        }
        differs[memo] = result
        return result
    }

    private func next(_ local: LocalState, _ byte: UInt8) -> StateID? {
        let inner = step(local.c, byte)
        guard inner != Self.dead else { return nil }
        var next = local
        next.c = inner
        next.d = typed(local.d, byte)
        return canDiffer(inner, next.d, written(local)) ? state(next) : nil
    }

    private func aliveInStructure(_ local: LocalState) -> ByteSet {
        let all = alive(local.c)
        if rivals(local.d, written(local)).isEmpty { return all }
        var set = ByteSet()
        all.forEach { byte in if next(local, byte) != nil { set.insert(byte) } }
        return set
    }

    /// A configuration that ends in a hole, with what follows put in its place: what masks are computed of.
    func graft(_ inner: ConfigID, onto config: ConfigID) -> ConfigID {
        if inner == Self.hole { return config }
        if inner <= Self.hole { return inner }
        let key = UInt64(UInt32(bitPattern: inner)) << 32 | UInt64(UInt32(bitPattern: config))
        if let known = grafts[key] { return known }
        var threads: [Thread] = []
        for thread in configs[Int(inner)] {
            if states[Int(thread.state)].kind == .hole {
                threads += configs[Int(config)]
            } else {
                threads.append(Thread(state: thread.state, parent: graft(thread.parent, onto: config)))
            }
        }
        threads.sort()
        let result = intern(threads.deduplicated())
        grafts.insert(key, result)
        return result
    }

    /// What a mask of a structure that must differ is computed of, and the items it could still become, without what of
    /// them was read already.
    func grafted(_ thread: Thread) -> (config: ConfigID, rivals: [[UInt8]]) {
        let local = states[Int(thread.state)]
        let after = LocalState(kind: .array, phase: LocalState.Phase.after, depth: local.depth, a: local.a, b: local.b)
        let count = typedText(local.d).count
        return (
            graft(local.c, onto: config(state(after), thread.parent)),
            rivals(local.d, written(local)).map { Array($0.dropFirst(count)) }
        )
    }

    private func arrayEdges(_ local: LocalState) -> [Edge] {
        let array = program.arrays[Int(local.a)]
        let progress = arrayProgress[Int(local.b)]
        let canClose = canClose(array, progress)
        let hasItems = local.phase != LocalState.Phase.close && !items(local).isEmpty
        var edges: [Edge] = []
        var inner = local
        func close() { edges.append(Edge(bytes: ByteSet(UInt8(ascii: "]")), actions: [.pop])) }
        switch local.phase {
        case LocalState.Phase.open:
            if canClose { close() }
            inner.phase = LocalState.Phase.next
            if isPretty, hasItems {
                edges.append(Edge(bytes: ByteSet(0x0A), actions: [.go(indented(local.depth, state(inner)))]))
            }
        case LocalState.Phase.after:
            if hasItems {
                inner.phase = LocalState.Phase.next
                var target = state(inner)
                if isPretty { target = self.state(LocalState(kind: .text, a: text([0x0A]), c: indented(local.depth, target))) }
                edges.append(Edge(bytes: ByteSet(UInt8(ascii: ",")), actions: [.go(target)]))
            }
            guard canClose else { break }
            if isPretty {
                inner.phase = LocalState.Phase.close
                edges.append(Edge(bytes: ByteSet(0x0A), actions: [.go(indented(local.depth - 1, state(inner)))]))
            } else {
                close()
            }
        case LocalState.Phase.close: close()
        default: break
        }
        return edges
    }
}

extension BitSet {
    func withoutMembers(of other: BitSet) -> BitSet {
        var result = self
        for index in words.indices { result.remove(word: index, other.words[index]) }
        return result
    }

    func isDisjoint(with other: BitSet) -> Bool { words.indices.allSatisfy { words[$0] & other.words[$0] == 0 } }
    var isEmpty: Bool { words.allSatisfy { $0 == 0 } }
    func intersectionCount(_ other: BitSet) -> Int {
        words.indices.reduce(0) { $0 + (words[$1] & other.words[$1]).nonzeroBitCount }
    }

    func count(where predicate: (Int) -> Bool) -> Int {
        var count = 0
        for (index, word) in words.enumerated() {
            var rest = word
            while rest != 0 {
                if predicate(index * 64 + rest.trailingZeroBitCount) { count += 1 }
                rest &= rest - 1
            }
        }
        return count
    }
}

extension RegexArena {
    /// Whether a language is any text but a list of words, perhaps of a limited length.
    func isOpenByForm(_ id: RegexID) -> Bool { lengthWindow(id) != nil || openText(id) != nil }
}
