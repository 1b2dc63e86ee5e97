internal import JSON

/// The part of masks that depends on a language only: a walk through the vocabulary.
extension MaskTable {
    /// What a walk does with the number of characters.
    private enum Counting {
        case none
        /// Lists the tokens whose need is greater.
        case listing(above: Int32)
        /// Leaves out tokens that need more characters than a maximum, which `language` includes.
        case within(Int32, language: RegexID)
    }

    /// The minimum of ``LanguageMask/listedNeed``: masks are computed once for all limits from this one on.
    private static let leastListedNeed: Int32 = 12
    /// A list of needs serves for this many limits: with each character of a text the limit decreases.
    private static let limitsPerList: Int32 = 64
    /// Where so few characters are left beyond those that the shortest string needs, most tokens do not fit, and only
    /// the others are visited.
    private static let nearlyFull = 16

    /// - Parameter listedNeed: Lists the needs of tokens that are greater than this; `.max` for none.
    func languageMask(_ language: RegexID, listedNeed: Int32 = .max) -> LanguageMask {
        if let known = languageMasks[language], known.listedNeed <= listedNeed { return known }
        // Languages of the arena template have the same id in all arenas: compute their masks once per vocabulary.
        let isShared = listedNeed == .max && Int(language) < RegexArena.sharedCount
        if isShared, let known = vocabulary.sharedMask(language) {
            languageMasks[language] = known
            return known
        }
        let workBefore = work
        var mask = computeLanguage(language, listedNeed)
        // Not counted, so that a preparation does the same whichever grammar needs the mask first.
        if isShared { work = workBefore }
        mask.listedNeed = listedNeed
        mask.needs.sortByMost()
        mask.exitNeeds.sortByMost()
        if automaton.regexes.isFull { return mask }
        if isShared { vocabulary.share(mask, language) }
        languageMasks[language] = mask
        size += 64 + mask.list.count * 4 + mask.exits.count * 4 + (mask.needs.count + mask.exitNeeds.count) * 12
        return mask
    }

    private func computeLanguage(_ language: RegexID, _ listedNeed: Int32) -> LanguageMask {
        var mask = LanguageMask()
        let regexes = automaton.regexes
        if let (content, style) = regexes.stringContent(language) {
            if style == .any, let window = regexes.lengthWindow(content) {
                return LanguageMask(free: Free(minimum: window.minimum, maximum: window.maximum))
            }
            // A minimum length matters only for tokens that close the string.
            if listedNeed == .max, let (rest, minimum) = regexes.withoutLowerLimit(content) {
                let open = languageMask(regexes.stringBody(rest, style))
                if open.free == nil { return closed(open, from: minimum) }
            }
            // A maximum length matters only for tokens that come near it, so start from the mask without this limit.
            if let (rest, limit) = regexes.withoutUpperLimit(content), limit >= Self.leastListedNeed {
                let maximum = Int32(clamping: limit)
                let body = regexes.stringBody(rest, style)
                // A list serves for other limits too, but it contains all tokens that lead away from the shortest string,
                // while a walk for one limit skips them. So it pays only for a language that is visited again, such as
                // any text.
                let isFirst = boundedLanguages.insert(body).inserted && languageMasks[body]?.listedNeed ?? .max == .max
                if listedNeed == .max, isFirst || regexes.sufficientLength(body) + Self.nearlyFull > limit {
                    walk(body, .within(maximum, language: language), into: &mask)
                    return mask
                }
                // The next smaller multiple, so that the following limits find the same list.
                let above = max(Self.leastListedNeed, (maximum - 1) / Self.limitsPerList * Self.limitsPerList)
                let unlimited = languageMask(body, listedNeed: above)
                if unlimited.free == nil { return limited(unlimited, maximum, language) }
            }
        }
        if let (content, style) = regexes.stringContent(language), style == .any,
            let (words, minimum, maximum) = regexes.openText(content), words.allSatisfy({ $0.count < maximum ?? .max })
        {
            return LanguageMask(free: Free(minimum: minimum, maximum: maximum, removed: Set(closing(at: Set(words)))))
        }
        walk(language, listedNeed == .max ? .none : .listing(above: listedNeed), into: &mask)
        return mask
    }

    /// Removes the tokens that close a string after less than a minimum number of characters.
    private func closed(_ mask: LanguageMask, from minimum: Int) -> LanguageMask {
        let table = vocabulary.freeText
        var result = mask
        let early = table.closing.lazy.filter { $0.characters < minimum }.map(\.token)
        if let dense = mask.dense {
            result.removed += early.filter { dense[Int($0) >> 5] >> UInt32($0 & 31) & 1 == 1 }
        } else if !mask.list.isEmpty {
            let set = Set(early)
            result.list.removeAll { set.contains($0) }
        }
        result.exits.removeAll { table.characters(beforeClosing: $0) < minimum }
        return result
    }

    /// Removes the tokens that exceed a maximum number of characters.
    private func limited(_ mask: LanguageMask, _ maximum: Int32, _ language: RegexID) -> LanguageMask {
        var result = mask
        (result.needs, result.exitNeeds) = ([], [])
        let removed = mask.needs.prefix { $0.most > maximum }.filter {
            $0.least > maximum || !reaches(language, vocabulary.texts[Int($0.id)] ?? [])
        }.map(\.id)
        if removed.count > Self.longestList, var dense = mask.dense {
            for token in removed { dense[Int(token) >> 5] &= ~(1 << UInt32(token & 31)) }
            result.dense = dense
            size += dense.count * 4
        } else if !removed.isEmpty {
            result.removed = mask.dense == nil ? [] : removed
            let set = Set(removed)
            result.list.removeAll { set.contains($0) }
        }
        let closed = Set(
            mask.exitNeeds.prefix { $0.most > maximum }.filter {
                $0.least > maximum || !reaches(language, path(to: Int($0.id)))
            }.map(\.id))
        if !closed.isEmpty { result.exits.removeAll { closed.contains($0) } }
        return result
    }

    /// The bytes on the path from the root to a node.
    func path(to node: Int) -> [UInt8] {
        let token = Int(trie.tokens[Int(trie.nodes[node].firstToken)])
        return Array((vocabulary.texts[token] ?? []).prefix(Int(trie.nodes[node].depth)))
    }

    private func reaches(_ language: RegexID, _ bytes: [UInt8]) -> Bool {
        var state = language
        for byte in bytes {
            guard let row = automaton.regexes.liveRow(state) else { return false }
            state = row[Int(byte)]
            if state == RegexArena.empty { return false }
        }
        return true
    }

    /// Tokens that close a string directly after one of `words`, whatever follows the closing quote.
    func closing(at words: Set<[UInt8]>) -> [Int32] {
        var removed: [Int32] = []
        for word in words {
            var text: [UInt8] = []
            JSONText.escape(word, into: &text)
            text.append(UInt8(ascii: "\""))
            var node = 0
            for byte in text {
                guard node >= 0 else { break }
                node = trie.child(of: node, byte)
            }
            guard node > 0 else { continue }
            removed += trie.tokens[Int(trie.nodes[node].firstToken)..<trie.lastToken(below: node)]
        }
        // The same texts can also be written with escapes.
        for token in vocabulary.freeText.closingWithEscape {
            let body = (vocabulary.texts[Int(token)] ?? [])
            guard let end = JSONText.endOfString(body),
                let name = JSONText.decoded(body[..<end])
            else { continue }
            if words.contains(name), !removed.contains(token) { removed.append(token) }
        }
        return removed
    }

    /// The byte classes that leave a language unchanged: its derivative is the language itself. Empty for nullable
    /// languages, which a token with any byte can leave.
    private func stayingClasses(_ language: RegexID, _ row: UnsafePointer<RegexID>) -> UInt64 {
        if automaton.regexes.isNullable[Int(language)] { return 0 }
        var staying: UInt64 = 0
        var leaving: UInt64 = 0
        ByteClasses.ofByte.withUnsafeBufferPointer { classes in
            for byte in 0..<256 {
                let bit = UInt64(1) << UInt64(classes[byte])
                if row[byte] == language { staying |= bit } else { leaving |= bit }
            }
        }
        return staying & ~leaving
    }

    /// The byte classes of a run in which no byte ends the string or begins an escape.
    private func classes(_ run: RegexArena.Run) -> UInt64 {
        var inside: UInt64 = 0
        var outside: UInt64 = 0
        ByteClasses.ofByte.withUnsafeBufferPointer { classes in
            for byte in UInt8.min...UInt8.max {
                let bit = UInt64(1) << UInt64(classes[Int(byte)])
                let isPlain = byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
                if isPlain, run.bytes.contains(byte) { inside |= bit } else { outside |= bit }
            }
        }
        return inside & ~outside
    }

    /// Texts that a run at the beginning of a language allows whatever follows them.
    private struct Open {
        /// Maximum number of characters of such a text; 0 if there are none, or if only few tokens are that short.
        var length: Int32 = 0
        /// The byte classes that such a text has none of.
        var other: UInt64 = 0
    }

    private func open(_ language: RegexID, _ counting: Counting) -> Open {
        let regexes = automaton.regexes
        guard let (content, style) = regexes.stringContent(language), let run = regexes.run(content), run.allowsOthers else {
            return Open()
        }
        var length = run.maximum ?? .max
        let need = Int32(clamping: regexes.sufficientLength(regexes.stringBody(run.language, style)))
        switch counting {
        case .none: break
        case .listing(let above): length = min(length, above - need)
        case .within(let maximum, _): length = min(length, maximum - need)
        }
        if length < Self.leastOpenLength { return Open() }
        return Open(length: length, other: ~(classes(run) | ByteClasses.mask(0x80)))
    }

    private static let leastOpenLength: Int32 = 6

    /// What a walk needs to know of a language: its row, and whether it can end there.
    struct WalkState {
        var language: RegexID
        var row: UnsafePointer<RegexID>
        var isNullable: Bool
        /// The byte classes that leave the language unchanged.
        var staying: UInt64
        /// The byte classes of a run in the language, and its maximum number of characters.
        var running: UInt64 = 0
        var runLength: Int32 = 0
        /// Whether the run has all characters beyond ASCII.
        var runsBeyondASCII = false
        /// The first bytes of characters that all leave the language unchanged, among those that have been checked.
        var returning: UInt64 = 0
        var checkedLeads: UInt64 = LeadBytes.malformed
        /// Bounds of the number of characters of the shortest string from here; computed only if they are counted.
        var most: Int32 = 0
        var least: Int32 = 0
        var isCounted = false
    }

    /// A node on the current path through the trie.
    private struct PathNode {
        var state: UnsafeMutablePointer<WalkState>
        /// The number of characters up to it, and whether an escape is among them, which has more bytes than characters.
        var characters: Int32 = 0
        var hasEscape = false
    }

    /// The states of a language along the current path through the trie, computed only where they are needed.
    private struct ExactPath {
        private var bytes: [UInt8] = []
        private var states: [RegexID] = []
        /// Number of bytes after which `states` is known.
        private var known = 0

        init(_ counting: Counting, depth: Int) {
            guard case .within(_, let language) = counting else { return }
            bytes = [UInt8](repeating: 0, count: depth + 1)
            states = [RegexID](repeating: language, count: depth + 1)
        }

        /// Moves to a node with this byte.
        mutating func enter(_ depth: Int, _ byte: UInt8) {
            if bytes.isEmpty { return }
            bytes[depth] = byte
            known = min(known, depth - 1)
        }

        /// Whether the language has a string that begins with the path.
        mutating func isAlive(_ depth: Int, _ regexes: RegexArena) -> Bool {
            while known < depth {
                var next = RegexArena.empty
                if states[known] != RegexArena.empty {
                    guard let row = regexes.liveRow(states[known]) else { return false }
                    next = row[Int(bytes[known + 1])]
                }
                known += 1
                states[known] = next
            }
            return states[depth] != RegexArena.empty
        }
    }

    /// Adds the tokens of the whole vocabulary that continue a language.
    private func walk(_ language: RegexID, _ counting: Counting, into mask: inout LanguageMask) {
        let regexes = automaton.regexes
        let counts = if case .none = counting { false } else { true }
        walkStates.removeUnneeded()
        // Where the exact language reaches a limit, the automaton allows nothing.
        if case .within(_, let exact) = counting, regexes.liveRow(exact) == nil { return }
        guard let start = walkState(language, regexes, counts) else { return }
        let open = open(language, counting)
        // The depth of the first byte on the path that is not part of the run.
        var otherDepth = Int.max
        var count = 0
        var visited = 0
        // With a maximum length: the bytes on the path, and the exact states after as many of them as were needed.
        var exactPath = ExactPath(counting, depth: trie.maximumDepth)
        // Unchecked pointers are used deliberately, and only here in this file: this loop visits most of the vocabulary
        // for each state of a pattern. All indices come from the trie, which this module builds.
        trie.withUnsafeNodes { nodes in
            withUnsafeTemporaryAllocation(of: PathNode.self, capacity: trie.maximumDepth + 1) { path in
                withUnsafeTemporaryAllocation(of: UnsafeMutablePointer<WalkState>.self, capacity: 64) { seen in
                    scratch.withUnsafeMutableBufferPointer { bits in
                        path.initialize(repeating: PathNode(state: start))
                        // Recently visited states, indexed by their low bits: most tokens visit only a few states.
                        seen.initialize(repeating: start)
                        // Only the subtrees of bytes that can follow: reaching all of them from sibling to sibling would read
                        // memory all over the trie.
                        for byte in 0..<256 where start.pointee.row[byte] != RegexArena.empty && nodes.rootChild[byte] >= 0 {
                            var node = Int(nodes.rootChild[byte])
                            let end = Int(nodes[node].end)
                            while node < end {
                                visited += 1
                                let depth = Int(nodes[node].depth)
                                let byte = nodes[node].byte
                                let next = path[depth - 1].state.pointee.row[Int(byte)]
                                let after = Int(nodes[node].end)
                                exactPath.enter(depth, byte)
                                if next == RegexArena.empty {
                                    node = after
                                    continue
                                }
                                if open.length > 0 {
                                    if depth <= otherDepth {
                                        otherDepth = ByteClasses.mask(byte) & open.other == 0 ? .max : depth
                                    }
                                    if otherDepth == .max, nodes[node].below & open.other == 0,
                                        Int32(nodes[node].height) <= open.length - Int32(depth)
                                    {
                                        node = after
                                        continue
                                    }
                                }
                                let isLeaf = after == node + 1
                                if isLeaf, !counts {
                                    // The state after a leaf is not needed.
                                } else if path[depth].state.pointee.language != next {
                                    if path[depth - 1].state.pointee.language == next {
                                        path[depth].state = path[depth - 1].state
                                    } else {
                                        let slot = Int(next) & 63
                                        if seen[slot].pointee.language != next {
                                            guard let state = walkState(next, regexes, counts) else {
                                                node = after
                                                continue
                                            }
                                            seen[slot] = state
                                        }
                                        path[depth].state = seen[slot]
                                    }
                                }
                                let state = path[depth].state
                                var most: Int32 = 0
                                var least: Int32 = 0
                                if counts {
                                    path[depth].hasEscape = path[depth - 1].hasEscape || byte == UInt8(ascii: "\\")
                                    // The closing quote is not a character of the text.
                                    let isTail = byte & 0xC0 == 0x80 || next == RegexArena.epsilon
                                    let isCounted = !isTail && !path[depth].hasEscape
                                    path[depth].characters = path[depth - 1].characters + (isCounted ? 1 : 0)
                                    most = (path[depth].hasEscape ? Int32(depth) : path[depth].characters) + state.pointee.most
                                    least = path[depth].characters + state.pointee.least
                                }
                                // If no byte below the node leaves the state, all tokens below are allowed.
                                let below = nodes[node].below
                                var isUniform =
                                    !isLeaf
                                    && (below & ~(state.pointee.staying | Self.beyondASCII) == 0
                                        && staysBeyondASCII(state, nodes[node].leads)
                                        || below & ~(state.pointee.running | Self.beyondASCII) == 0
                                            && Int32(nodes[node].height) <= state.pointee.runLength
                                            && (nodes[node].leads == 0
                                                || state.pointee.runsBeyondASCII && nodes[node].leads & LeadBytes.malformed == 0))
                                switch counting {
                                case .none: break
                                case .listing(let above):
                                    // The needs of longer tokens differ.
                                    isUniform = isUniform && most + Int32(nodes[node].height) <= above
                                    if most > above {
                                        for index in Int(nodes[node].firstToken)..<Int(nodes[node + 1].firstToken) {
                                            mask.needs.append(Need(id: nodes.tokens[index], most: most, least: least))
                                        }
                                        if state.pointee.isNullable, !isLeaf {
                                            mask.exitNeeds.append(Need(id: Int32(node), most: most, least: least))
                                        }
                                    }
                                case .within(let maximum, _):
                                    // A longer text needs at least as many characters, and has the same beginning.
                                    if least > maximum || most > maximum && !exactPath.isAlive(depth, regexes) {
                                        node = after
                                        continue
                                    }
                                    isUniform = isUniform && most + Int32(nodes[node].height) <= maximum
                                }
                                let first = Int(nodes[node].firstToken)
                                let last = Int(nodes[isUniform ? after : node + 1].firstToken)
                                for index in first..<last {
                                    let token = nodes.tokens[index]
                                    bits[Int(token) >> 5] |= 1 << UInt32(token & 31)
                                }
                                count += last - first
                                if count <= Self.longestList {
                                    mask.list.append(
                                        contentsOf: UnsafeBufferPointer(start: nodes.tokens + first, count: last - first))
                                }
                                if isUniform || isLeaf {
                                    node = after
                                    continue
                                }
                                if state.pointee.isNullable { mask.exits.append(Int32(node)) }
                                node = next == RegexArena.epsilon ? after : node + 1
                            }
                        }
                    }
                }
            }
        }
        work += visited
        if open.length > 0 || count > Self.longestList {
            if open.length > 0 {
                let plain = vocabulary.plainText(without: open.other)
                for (index, word) in vocabulary.freeText.inside(atMost: Int(open.length)).enumerated() {
                    scratch[index] |= word & plain[index]
                }
            }
            mask.list = []
            mask.dense = scratch
            size += scratch.count * 4
            for index in scratch.indices { scratch[index] = 0 }
        } else {
            for token in mask.list { scratch[Int(token) >> 5] = 0 }
        }
    }

    private static let beyondASCII = ByteClasses.mask(0x80)

    /// Whether all characters with these first bytes leave the language of a state unchanged.
    private func staysBeyondASCII(_ state: UnsafeMutablePointer<WalkState>, _ leads: UInt64) -> Bool {
        var open = leads & ~state.pointee.returning
        if open & state.pointee.checkedLeads != 0 { return false }
        // One that does not is enough. Most languages change with every character, so not all of them are checked.
        while open != 0 {
            let lead = LeadBytes.all.lowerBound + UInt8(open.trailingZeroBitCount)
            open &= open - 1
            state.pointee.checkedLeads |= LeadBytes.bit(lead)
            guard automaton.regexes.returns(to: state.pointee.language, lead) else { return false }
            state.pointee.returning |= LeadBytes.bit(lead)
        }
        return true
    }

    /// The pointer stays valid until the next walk.
    private func walkState(_ language: RegexID, _ regexes: RegexArena, _ counts: Bool) -> UnsafeMutablePointer<WalkState>? {
        // As without the cache, nothing is allowed beyond the limits.
        if regexes.isFull { return nil }
        let known = walkStates.states[language]
        if let known, known.pointee.isCounted || !counts { return known }
        guard let row = regexes.liveRow(language) else { return nil }
        var state = WalkState(
            language: language, row: row, isNullable: regexes.isNullable[Int(language)], staying: stayingClasses(language, row))
        var run: RegexArena.Run?
        if let (content, style) = regexes.stringContent(language), let found = regexes.run(content) {
            run = found
            run?.language = regexes.stringBody(found.language, style)
            (state.running, state.runLength) = (classes(found), found.maximum ?? .max)
            state.runsBeyondASCII = found.allowsOthers
        }
        if counts {
            // A text that continues the run needs no more than its language.
            let language = run?.language ?? language
            state.most = Int32(clamping: regexes.sufficientLength(language))
            state.least = Int32(clamping: regexes.leastCharacters(state.language))
            state.isCounted = true
        }
        if let known, !regexes.isFull {
            known.pointee = state
            return known
        }
        return walkStates.add(state, isComplete: !regexes.isFull)
    }

    /// The states of walks, at addresses that do not change: a walk visits them too often to copy them.
    final class WalkStates {
        private(set) var states: [RegexID: UnsafeMutablePointer<WalkState>] = [:]
        /// States that were computed after a limit was reached, which is valid for one walk only.
        private var incomplete: [UnsafeMutablePointer<WalkState>] = []

        private static let maximumCount = 16_384

        func add(_ state: WalkState, isComplete: Bool) -> UnsafeMutablePointer<WalkState> {
            let pointer = UnsafeMutablePointer<WalkState>.allocate(capacity: 1)
            pointer.initialize(to: state)
            if isComplete { states[state.language] = pointer } else { incomplete.append(pointer) }
            return pointer
        }

        /// Called between walks.
        func removeUnneeded() {
            for pointer in incomplete { pointer.deallocate() }
            incomplete.removeAll()
            if states.count < Self.maximumCount { return }
            for pointer in states.values { pointer.deallocate() }
            states.removeAll(keepingCapacity: true)
        }

        deinit {
            for pointer in states.values { pointer.deallocate() }
            for pointer in incomplete { pointer.deallocate() }
        }
    }
}

extension [MaskTable.Need] {
    /// Sorts by ``MaskTable/Need/most``, in descending order. Most of the vocabulary can be in the list, with few
    /// different needs: counting is faster than comparing.
    fileprivate mutating func sortByMost() {
        guard count > 64 else {
            sort { $0.most > $1.most }
            return
        }
        let groups = Dictionary(grouping: self, by: \.most)
        self = groups.keys.sorted(by: >).flatMap { groups[$0] ?? [] }
    }
}
