/// A walk through the trie of the vocabulary that finds the tokens that continue a language.
///
/// Unchecked pointers are used deliberately, and only here and in ``WalkStates``: a walk visits most of the vocabulary for
/// each state of a pattern. All indices come from the trie, which this module builds.
struct VocabularyWalk {
    /// What a walk does with the number of characters.
    enum Counting {
        case none
        /// Lists the tokens whose need is greater.
        case listing(above: Int32)
        /// Leaves out tokens that need more characters than a maximum, which `language` includes.
        case within(Int32, language: RegexID)

        /// The number of characters up to which nothing is to be done.
        var limit: Int32? {
            switch self {
            case .none: nil
            case .listing(let above): above
            case .within(let maximum, _): maximum
            }
        }
    }

    /// Texts that a run at the beginning of a language allows whatever follows them.
    struct Open {
        /// Maximum number of characters of such a text; 0 if there are none, or if only few tokens are that short.
        var length: Int32 = 0
        /// The byte classes that such a text has none of.
        var other: UInt64 = 0
    }

    /// A node on the current path through the trie, and the state there.
    struct PathNode {
        var state: WalkState.Pointer
        var node: Int
    }

    struct Result {
        /// Number of allowed tokens, and all of them if there are at most ``MaskTable/longestList``.
        var count = 0
        var list: [Int32] = []
        /// Trie nodes at which the language can end and that have tokens below them.
        var exits: [Int32] = []
        var needs: [MaskTable.Need] = []
        var exitNeeds: [MaskTable.Need] = []
        /// Number of visited nodes.
        var visited = 0
    }

    /// In a subtree with at most so many nodes, visiting all of them is faster than asking at each of them whether all tokens
    /// below it are allowed.
    private static let smallSubtree = 16
    /// The work of visiting so many nodes.
    private static let partsPer1024 = 128
    private static let beyondASCII = ByteClasses.mask(0x80)

    private let regexes: RegexArena
    private let states: WalkStates
    private let trie: TokenTrie.UnsafeNodes
    private let counting: Counting
    /// Whether states need bounds of the number of characters, and the number up to which nothing is to be done.
    private let counts: Bool
    private let limit: Int32
    private let open: Open
    /// The nodes of the current path, by depth.
    private let path: UnsafeMutableBufferPointer<PathNode>
    /// One bit for each token.
    private let bits: UnsafeMutableBufferPointer<UInt32>

    private var result = Result()
    /// The first of the tokens that are allowed, but not yet in `bits`: the allowed tokens are long ranges in the order of
    /// the trie.
    private var firstAllowed = 0
    /// Among the large subtrees: the depth of the first byte on the path that is not part of the run at the beginning of the
    /// language.
    private var otherDepth = Int.max
    /// With a maximum length: the exact states along the path, as far as they were needed.
    private var exactPath: ExactPath

    /// - Parameter bits: One bit for each token, all zero; set for each allowed token.
    static func run(
        _ language: RegexID, _ regexes: RegexArena, _ states: WalkStates, _ trie: TokenTrie, _ counting: Counting, _ open: Open,
        bits: inout [UInt32]
    ) -> Result {
        trie.withUnsafeNodes { nodes in
            withUnsafeTemporaryAllocation(of: PathNode.self, capacity: trie.maximumDepth + 1) { path in
                bits.withUnsafeMutableBufferPointer { bits in
                    path.initialize(repeating: PathNode(state: states.dead, node: 0))
                    var walk = VocabularyWalk(
                        regexes: regexes, states: states, trie: nodes, counting: counting, counts: counting.limit != nil,
                        limit: counting.limit ?? .max, open: open, path: path, bits: bits,
                        exactPath: ExactPath(counting, depth: trie.maximumDepth))
                    walk.run(language)
                    return walk.result
                }
            }
        }
    }

    private mutating func run(_ language: RegexID) {
        guard let start = state(language) else { return }
        path[0] = PathNode(state: start, node: 0)
        // Only the subtrees of bytes that can follow: reaching all of them from sibling to sibling would read memory all over
        // the trie.
        for byte in 0..<256 where start.next[byte] != states.dead && trie.rootChild[byte] >= 0 {
            let first = Int(trie.rootChild[byte])
            visit(first, Int(trie.nodes[first].end))
        }
    }

    /// Visits the nodes of a range. What is not skipped is allowed.
    private mutating func visit(_ first: Int, _ last: Int) {
        // Local copies stay in registers.
        let (dead, unknown, counts, limit, path) = (states.dead, states.unknown, counts, limit, path)
        let nodes = trie.nodes.baseAddress.unsafelyUnwrapped
        var visited = 0
        var node = first
        firstAllowed = Int(nodes[first].firstToken)
        while node < last {
            visited += 1
            if visited & 1023 == 0 {
                regexes.spend(parts: Self.partsPer1024)
                if regexes.isOutOfFuel {
                    // What was not visited is not allowed.
                    skip(from: node, to: last)
                    break
                }
            }
            let at = nodes + node
            let (depth, byte, after) = (Int(at.pointee.depth), at.pointee.byte, Int(at.pointee.end))
            let isLeaf = after == node + 1
            let isLarge = after - node > Self.smallSubtree
            let parent = path[depth - 1]
            var state = parent.state.next[Int(byte)]
            if isLarge, open.length > 0, isOpen(at) {
                skip(from: node, to: after)
                node = after
                continue
            }
            if state == unknown ? !isLeaf || counts : counts && !state.pointee.isCounted && state != dead {
                // Computing a state takes as long as visiting hundreds of nodes.
                if isUniformBelow(nodes + parent.node, parent.state) {
                    node = Int(nodes[parent.node].end)
                    continue
                }
                state = resolve(parent.state, byte)
            }
            if state == dead {
                skip(from: node, to: after)
                node = after
                continue
            }
            path[depth] = PathNode(state: state, node: node)
            if at.pointee.mostCharacters &+ state.pointee.most > limit {
                switch counting {
                case .none: break
                case .listing: addNeeds(node, state)
                case .within:
                    // A longer text needs at least as many characters, and has the same beginning.
                    if at.pointee.characters + state.pointee.least > limit || !exactPath.isAlive(depth, path, trie, regexes) {
                        skip(from: node, to: after)
                        node = after
                        continue
                    }
                }
            }
            if isLarge, isUniformBelow(at, state) {
                node = after
                continue
            }
            node += 1
            if state.pointee.isNullable, !isLeaf {
                result.exits.append(Int32(node - 1))
                if state.pointee.language == RegexArena.epsilon {
                    skip(from: node, to: after)
                    node = after
                }
            }
        }
        skip(from: last, to: last)
        result.visited += visited
    }

    /// Leaves out the tokens at the nodes from one up to another.
    @inline(__always)
    private mutating func skip(from first: Int, to last: Int) {
        let end = Int(trie.nodes[first].firstToken)
        for index in firstAllowed..<end {
            let token = trie.tokens[index]
            bits[Int(token) >> 5] |= 1 << UInt32(token & 31)
        }
        result.count += end - firstAllowed
        if result.count <= MaskTable.longestList {
            result.list.append(contentsOf: trie.tokens[firstAllowed..<end])
        }
        firstAllowed = Int(trie.nodes[last].firstToken)
    }

    /// Whether the texts below a node are among those that ``Open`` describes.
    private mutating func isOpen(_ node: UnsafePointer<TokenTrie.Node>) -> Bool {
        let depth = Int(node.pointee.depth)
        if depth <= otherDepth { otherDepth = ByteClasses.mask(node.pointee.byte) & open.other == 0 ? .max : depth }
        return otherDepth == .max && node.pointee.below & open.other == 0
            && Int32(node.pointee.height) <= open.length - Int32(depth)
    }

    /// Whether all tokens below a node are allowed, because none of their bytes leaves the state of the node.
    private func isUniformBelow(_ node: UnsafePointer<TokenTrie.Node>, _ state: WalkState.Pointer) -> Bool {
        if node.pointee.mostCharacters &+ state.pointee.most &+ Int32(node.pointee.height) > limit { return false }
        let (below, leads) = (node.pointee.below, node.pointee.leads)
        if below & ~(state.pointee.staying | Self.beyondASCII) == 0, staysBeyondASCII(state, leads) { return true }
        return below & ~(state.pointee.running | Self.beyondASCII) == 0
            && Int32(node.pointee.height) <= state.pointee.runLength
            && leads & ~state.pointee.runLeads == 0
    }

    /// Whether all characters with these first bytes leave the language of a state unchanged.
    private func staysBeyondASCII(_ state: WalkState.Pointer, _ leads: UInt64) -> Bool {
        var open = leads & ~state.pointee.returning
        if open & state.pointee.checkedLeads != 0 { return false }
        // One that does not is enough. Most languages change with every character, so not all of them are checked.
        while open != 0 {
            let lead = LeadBytes.all.lowerBound + UInt8(open.trailingZeroBitCount)
            open &= open - 1
            state.pointee.checkedLeads |= LeadBytes.bit(lead)
            guard regexes.returns(to: state.pointee.language, lead) else { return false }
            state.pointee.returning |= LeadBytes.bit(lead)
        }
        return true
    }

    // MARK: - Numbers of characters

    /// The tokens of the current node, and its exit, with bounds of the number of characters of the shortest string.
    private mutating func addNeeds(_ node: Int, _ state: WalkState.Pointer) {
        let at = trie.nodes[node]
        let (most, least) = (at.mostCharacters + state.pointee.most, at.characters + state.pointee.least)
        for index in Int(at.firstToken)..<Int(trie.nodes[node + 1].firstToken) {
            result.needs.append(MaskTable.Need(id: trie.tokens[index], most: most, least: least))
        }
        if state.pointee.isNullable, Int(at.end) > node + 1 {
            result.exitNeeds.append(MaskTable.Need(id: Int32(node), most: most, least: least))
        }
    }

    /// The states of a language along the current path through the trie, computed only where they are needed.
    private struct ExactPath {
        /// By depth: the node for which the state is known.
        private var nodes: [Int] = []
        private var states: [RegexID] = []

        init(_ counting: Counting, depth: Int) {
            guard case .within(_, let language) = counting else { return }
            nodes = [Int](repeating: 0, count: depth + 1)
            states = [RegexID](repeating: language, count: depth + 1)
        }

        /// Whether the language has a string that begins with the path.
        mutating func isAlive(
            _ depth: Int, _ path: UnsafeMutableBufferPointer<PathNode>, _ trie: TokenTrie.UnsafeNodes, _ regexes: RegexArena
        ) -> Bool {
            // A node has one path, so if a node is the same, those above it are too.
            var known = depth
            while nodes[known] != path[known].node { known -= 1 }
            while known < depth {
                var next = RegexArena.empty
                if states[known] != RegexArena.empty {
                    guard let row = regexes.liveRow(states[known]) else { return false }
                    next = row[Int(trie.nodes[path[known + 1].node].byte)]
                }
                known += 1
                (nodes[known], states[known]) = (path[known].node, next)
            }
            return states[depth] != RegexArena.empty
        }
    }

    // MARK: - States

    /// The state after a byte that is not dead.
    private func resolve(_ parent: WalkState.Pointer, _ byte: UInt8) -> WalkState.Pointer {
        guard let row = regexes.liveRow(parent.pointee.language), let state = state(row[Int(byte)]) else { return states.dead }
        // One that was computed after a limit was reached is valid for this walk only.
        if states.states[state.pointee.language] == state {
            for other in 0..<256 where row[other] == row[Int(byte)] { parent.next[other] = state }
        }
        return state
    }

    /// The pointer stays valid until the next walk.
    private func state(_ language: RegexID) -> WalkState.Pointer? {
        // As without the cache, nothing is allowed beyond the limits.
        if regexes.isFull { return nil }
        let language = states.languageOfMask(language)
        let known = states.states[language]
        if let known, known.pointee.isCounted || !counts { return known }
        guard let row = regexes.liveRow(language) else { return nil }
        let state = known ?? states.add(newState(language, row), row, isComplete: !regexes.isFull)
        if counts {
            // A text that continues a run needs no more than its language.
            let body = regexes.textRun(language)?.language ?? language
            state.pointee.most = Int32(min(regexes.sufficientLength(body), WalkState.unknownLength))
            state.pointee.least = Int32(min(regexes.leastCharacters(language), WalkState.unknownLength))
            // The trie counts the closing quote, which is not a character of the text.
            if language == RegexArena.epsilon { (state.pointee.most, state.pointee.least) = (-1, -1) }
            state.pointee.isCounted = !regexes.isFull
        }
        return state
    }

    private func newState(_ language: RegexID, _ row: UnsafePointer<RegexID>) -> WalkState {
        var state = WalkState(language: language, isNullable: regexes.isNullable[Int(language)])
        // A token with any byte can leave a nullable language.
        if !state.isNullable { state.staying = ByteClasses.all { row[Int($0)] == language } }
        if let run = regexes.textRun(language) {
            (state.running, state.runLength) = (run.classes, run.maximum ?? .max)
            state.runLeads = run.leads
        }
        return state
    }
}
