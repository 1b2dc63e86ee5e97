internal import JSON

/// The tokens that may come next, in a compact form: `dense` without `removed`, plus `list`.
struct TokenMask {
    /// One bit per token, shared with other masks; nil if only few tokens are allowed.
    var dense: [UInt32]?
    /// Tokens to remove from `dense`.
    var removed: [Int32] = []
    /// Additional allowed tokens. Sorted and without duplicates if `dense` is nil and there are at most ``few``.
    var list: [Int32]

    /// Maximum number of tokens that counts as few.
    static let few = 64

    /// Writes the bits of all tokens: token `i` is bit `i & 31` of word `i >> 5`.
    func fill(_ words: UnsafeMutableBufferPointer<UInt32>) {
        if let dense {
            dense.withUnsafeBufferPointer { source in
                if let base = source.baseAddress { words.baseAddress?.update(from: base, count: min(words.count, source.count)) }
            }
        } else {
            words.update(repeating: 0)
        }
        for token in removed { words[Int(token) >> 5] &= ~(1 << UInt32(token & 31)) }
        for token in list { words[Int(token) >> 5] |= 1 << UInt32(token & 31) }
    }
}

/// Computes and caches the masks of the tokens that may come next.
///
/// Most of a mask does not depend on the whole configuration. The language that a thread reads next determines the
/// result for all tokens that end inside that language, so this part is computed once for each language. Only tokens
/// that extend past the end of the language are walked in the configuration that the thread returns to.
final class MaskTable {
    let automaton: Automaton
    private let vocabulary: TokenVocabulary
    private let trie: TokenTrie
    private var masks: [ConfigID: TokenMask] = [:]
    private var languageMasks: [RegexID: LanguageMask] = [:]
    private var leaving: [UInt64: [Int32]] = [:]
    private var ending: [ConfigID: [Int32]] = [:]
    private var tokensByLastByte: [UInt8: (tokens: [Int32], longest: Int)] = [:]
    /// One bit per token, all zero between uses.
    private var scratch: [UInt32]
    /// Longer lists are stored as bits.
    private static let longestList = 256

    /// The part of a mask that depends on a language only.
    struct LanguageMask: Sendable {
        var dense: [UInt32]?
        var list: [Int32] = []
        /// Trie nodes at which the language can end and that have tokens below them.
        var exits: [Int32] = []
        var free: Free?
        /// Tokens and exits whose ``Need/most`` exceeds `listedNeed`, in descending order.
        var needs: [Need] = []
        var exitNeeds: [Need] = []
        /// Needs up to this many characters are not listed; `.max` if none are.
        var listedNeed = Int32.max
        /// Tokens to remove from `dense`.
        var removed: [Int32] = []
    }

    struct Need: Sendable {
        /// A token, or the trie node of an exit.
        var id: Int32
        /// Bounds of the number of characters of the shortest string with this token, from its beginning: it has at least
        /// `least`, and there is one with `most`.
        var most: Int32
        var least: Int32
    }

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

    /// The body of a JSON string in which any text is allowed, except for limits on its length and a list of excluded
    /// texts.
    struct Free: Sendable {
        /// Minimum and maximum number of characters.
        var minimum: Int
        var maximum: Int?
        /// Tokens that close the string directly after an excluded text, whatever follows the closing quote.
        var removed: Set<Int32> = []
    }

    init(_ automaton: Automaton, _ vocabulary: TokenVocabulary) {
        self.automaton = automaton
        self.vocabulary = vocabulary
        trie = vocabulary.trie
        scratch = [UInt32](repeating: 0, count: vocabulary.maskWords)
    }

    /// Approximate number of bytes in the cached masks.
    private(set) var size = 0

    func mask(_ config: ConfigID) -> TokenMask {
        if let known = masks[config] { return known }
        var mask = compute(config)
        if mask.dense == nil, mask.list.count <= TokenMask.few { mask.list = Array(Set(mask.list)).sorted() }
        // Do not cache a result that was computed after a limit was reached: it may only be due to the fuel of this
        // call.
        if automaton.regexes.isFull { return mask }
        masks[config] = mask
        size += 64 + mask.list.count * 4
        return mask
    }

    private func compute(_ config: ConfigID) -> TokenMask {
        var result = TokenMask(dense: nil, list: [])
        var structural: [Thread] = []
        for thread in automaton.configs[Int(config)] {
            let local = automaton.states[Int(thread.state)]
            if local.kind == .end {
                result.list += vocabulary.endTokens
            } else if let language = local.language {
                add(languageMask(language), thread, local, to: &result)
            } else if local.kind == .uniqueStructure {
                addStructure(thread, to: &result)
            } else if local.kind != .hole {
                structural.append(thread)
            }
        }
        if !structural.isEmpty {
            // Walk only these threads: the others accept almost any byte, so the walk would visit most of the trie.
            let config = structural.count == automaton.configs[Int(config)].count ? config : automaton.config(structural)
            automaton.alive(config).forEach { byte in
                let child = trie.rootChild[Int(byte)]
                if child >= 0 { visit(Int(child), automaton.step(config, byte), &result.list) }
            }
        }
        return result
    }

    /// Adds the tokens of a dense mask, except those in `removed`.
    private func merge(_ dense: [UInt32], without removed: some Collection<Int32> = [], into mask: inout TokenMask) {
        guard var own = mask.dense else {
            mask.dense = dense
            mask.removed = Array(removed)
            return
        }
        var other = dense
        for token in removed { other[Int(token) >> 5] &= ~(1 << UInt32(token & 31)) }
        for token in mask.removed { own[Int(token) >> 5] &= ~(1 << UInt32(token & 31)) }
        mask.removed = []
        for index in own.indices { own[index] |= other[index] }
        size += own.count * 4
        mask.dense = own
    }

    /// Adds the tokens of an item that must differ from others: those of any item, except for tokens that leave it no
    /// way to differ.
    private func addStructure(_ thread: Thread, to mask: inout TokenMask) {
        let config = automaton.withoutComparison(thread)
        let own = self.mask(config)
        let start = automaton.config([thread])
        // Tokens that extend past the end of the item depend on the final text of the item, so check each.
        var refused = leavingTokens(config, automaton.states[Int(thread.state)].c).filter { !advances(start, $0) }
        let local = automaton.states[Int(thread.state)]
        if local.phase == LocalState.Phase.distinct, let byte = automaton.closing(local).first {
            let closing = tokens(endingWith: byte)
            if automaton.mayEqualEarlier(local, within: closing.longest) {
                refused += endingTokens(local.c, closing.tokens).filter { !advances(start, $0) }
            }
        }
        for text in automaton.continuations(thread, maximum: TokenTrie.longestToken) {
            // Only tokens that follow the text of an earlier item, or extend past its end, can be rejected.
            var node = 0
            for (index, byte) in text.enumerated() {
                node = trie.child(of: node, byte)
                if node < 0 { break }
                let last = index + 1 == text.count ? trie.lastToken(below: node) : Int(trie.firstToken[node + 1])
                for position in Int(trie.firstToken[node])..<last where !advances(start, trie.tokens[position]) {
                    refused.append(trie.tokens[position])
                }
            }
        }
        if let dense = own.dense { merge(dense, without: own.removed + refused, into: &mask) }
        if refused.isEmpty {
            mask.list += own.list
        } else {
            let refused = Set(refused)
            mask.list += own.list.filter { !refused.contains($0) }
        }
    }

    /// The tokens that end with a byte, and the number of bytes of the longest of them.
    private func tokens(endingWith byte: UInt8) -> (tokens: [Int32], longest: Int) {
        if let known = tokensByLastByte[byte] { return known }
        let tokens = vocabulary.texts.indices.filter { vocabulary.texts[$0]?.last == byte }
        let longest = tokens.map { vocabulary.texts[$0]?.count ?? 0 }.max() ?? 0
        let result = (tokens.map { Int32($0) }, longest)
        tokensByLastByte[byte] = result
        return result
    }

    /// The tokens that end exactly where `inner`, which ends in a hole, may end.
    private func endingTokens(_ inner: ConfigID, _ closing: [Int32]) -> [Int32] {
        if let known = ending[inner] { return known }
        let tokens = closing.filter { token in
            let config = configuration(after: vocabulary.texts[Int(token)] ?? [], from: inner)
            return config != Automaton.dead && automaton.hasHole(config)
        }
        if !automaton.regexes.isFull { ending[inner] = tokens }
        return tokens
    }

    /// The tokens of a configuration that its part `inner`, which ends in a hole, does not have: those that go beyond it.
    private func leavingTokens(_ config: ConfigID, _ inner: ConfigID) -> [Int32] {
        let key = UInt64(UInt32(bitPattern: config)) << 32 | UInt64(UInt32(bitPattern: inner))
        if let known = leaving[key] { return known }
        var own = [UInt32](repeating: 0, count: vocabulary.maskWords)
        own.withUnsafeMutableBufferPointer { self.mask(config).fill($0) }
        var inside = [UInt32](repeating: 0, count: vocabulary.maskWords)
        inside.withUnsafeMutableBufferPointer { self.mask(inner).fill($0) }
        var tokens: [Int32] = []
        for index in own.indices where own[index] & ~inside[index] != 0 {
            for bit in 0..<32 where (own[index] & ~inside[index]) >> UInt32(bit) & 1 == 1 {
                tokens.append(Int32(index * 32 + bit))
            }
        }
        if !automaton.regexes.isFull { leaving[key] = tokens }
        return tokens
    }

    // MARK: - Walking

    /// Adds the tokens at and below a node. `config` is the configuration after the node's bytes.
    private func visit(_ node: Int, _ config: ConfigID, _ list: inout [Int32]) {
        guard config != Automaton.dead else { return }
        for index in trie.tokens(at: node) { list.append(trie.tokens[index]) }
        if trie.hasChildren(node) { visitChildren(of: node, config, &list) }
    }

    private func visitChildren(of node: Int, _ config: ConfigID, _ list: inout [Int32]) {
        let alive = automaton.alive(config)
        let end = Int(trie.end[node])
        var child = node + 1
        while child < end {
            let byte = trie.byte[child]
            if alive.contains(byte) { visit(child, automaton.step(config, byte), &list) }
            child = Int(trie.end[child])
        }
    }

    // MARK: - Languages

    private func add(_ language: LanguageMask, _ thread: Thread, _ local: LocalState, to mask: inout TokenMask) {
        if let free = language.free { addFree(free, thread, local, to: &mask) }
        if let dense = language.dense { merge(dense, without: language.removed, into: &mask) }
        mask.list += language.list
        guard !language.exits.isEmpty else { return }
        if local.kind == .scalar {
            for exit in language.exits { visitChildren(of: Int(exit), thread.parent, &mask.list) }
        } else {
            // The configuration after the language depends on the text that was read.
            let start = automaton.config(thread.state, thread.parent)
            for exit in language.exits {
                let config = configuration(after: path(to: Int(exit)), from: start)
                if config != Automaton.dead { visitChildren(of: Int(exit), config, &mask.list) }
            }
        }
    }

    private func addFree(_ free: Free, _ thread: Thread, _ local: LocalState, to mask: inout TokenMask) {
        let table = vocabulary.freeText
        let hasNoLimits = free.minimum == 0 && free.maximum.map { $0 >= Int(table.maximumCount) } ?? true
        func allows(_ entry: FreeTextTable.Entry) -> Bool {
            Int(entry.characters) >= free.minimum && (free.maximum.map { Int(entry.characters) <= $0 } ?? true)
                && !free.removed.contains(entry.token)
        }
        if hasNoLimits {
            merge(table.all, without: free.removed, into: &mask)
        } else {
            merge(table.inside(atMost: free.maximum ?? Int.max), into: &mask)
            for entry in table.closing where allows(entry) { mask.list.append(entry.token) }
        }
        // Tokens with text after the closing quote.
        if tooShort(free) { return }
        var after = thread.parent
        if local.kind != .scalar { after = automaton.step(automaton.config(thread.state, thread.parent), UInt8(ascii: "\"")) }
        if after != Automaton.dead {
            let allowsAll = hasNoLimits && free.removed.isEmpty
            visitRemainders(0, table.nodes.count, after, table, { allowsAll || allows($0) }, &mask.list)
            return
        }
        // The string cannot be closed here because its text is excluded. Tokens that add characters before the quote
        // can close it.
        let start = automaton.config(thread.state, thread.parent)
        for byte in "~^`|".utf8 {
            let next = automaton.step(start, byte)
            guard next != Automaton.dead else { continue }
            after = automaton.step(next, UInt8(ascii: "\""))
            guard after != Automaton.dead else { continue }
            visitRemainders(0, table.nodes.count, after, table, { $0.characters > 0 && allows($0) }, &mask.list)
            return
        }
        for entry in table.entries where allows(entry) && advances(start, entry.token) { mask.list.append(entry.token) }
    }

    private func advances(_ config: ConfigID, _ token: Int32) -> Bool {
        configuration(after: vocabulary.texts[Int(token)] ?? [], from: config) != Automaton.dead
    }

    private func configuration(after bytes: [UInt8], from config: ConfigID) -> ConfigID {
        var config = config
        for byte in bytes where config != Automaton.dead { config = automaton.step(config, byte) }
        return config
    }

    /// Whether the string is too short to be closed even after the longest token.
    private func tooShort(_ free: Free) -> Bool { free.minimum > Int(vocabulary.freeText.maximumCount) }

    private func visitRemainders(
        _ first: Int, _ end: Int, _ config: ConfigID, _ table: FreeTextTable, _ allows: (FreeTextTable.Entry) -> Bool,
        _ list: inout [Int32]
    ) {
        let alive = automaton.alive(config)
        var index = first
        while index < end {
            let node = table.nodes[index]
            if alive.contains(node.byte) {
                let next = automaton.step(config, node.byte)
                if next != Automaton.dead {
                    for entry in Int(node.first)..<Int(node.last) where allows(table.entries[entry]) {
                        list.append(table.entries[entry].token)
                    }
                    if Int(node.end) > index + 1 { visitRemainders(index + 1, Int(node.end), next, table, allows, &list) }
                }
            }
            index = Int(node.end)
        }
    }

    /// - Parameter listedNeed: Lists the needs of tokens that are greater than this; `.max` for none.
    private func languageMask(_ language: RegexID, listedNeed: Int32 = .max) -> LanguageMask {
        if let known = languageMasks[language], known.listedNeed <= listedNeed { return known }
        // Languages of the arena template have the same id in all arenas: compute their masks once per vocabulary.
        let isShared = listedNeed == .max && Int(language) < RegexArena.sharedCount
        if isShared, let known = vocabulary.sharedMask(language) {
            languageMasks[language] = known
            return known
        }
        var mask = computeLanguage(language, listedNeed)
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
            // A maximum length matters only for tokens that come near it, so start from the mask without this limit.
            if let (rest, limit) = regexes.withoutUpperLimit(content), limit >= Self.leastListedNeed {
                let maximum = Int32(clamping: limit)
                let body = regexes.stringBody(rest, style)
                if listedNeed == .max, regexes.sufficientLength(body) + Self.nearlyFull > limit {
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
    private func path(to node: Int) -> [UInt8] {
        let token = Int(trie.tokens[Int(trie.firstToken[node])])
        return Array((vocabulary.texts[token] ?? []).prefix(Int(trie.depth[node])))
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
    private func closing(at words: Set<[UInt8]>) -> [Int32] {
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
            removed += trie.tokens[Int(trie.firstToken[node])..<trie.lastToken(below: node)]
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

    /// One state on the current path through the trie: its row, and whether the language can end there.
    private struct WalkState {
        var language: RegexID
        var row: UnsafePointer<RegexID>
        var isNullable: Bool
        /// The byte classes that leave the language unchanged.
        var staying: UInt64
        /// Bounds of the number of characters of the shortest string from here; computed only if they are counted.
        var most: Int32 = 0
        var least: Int32 = 0
        /// For the state of a node: the number of characters before it, and whether an escape is among them, which has
        /// more bytes than characters.
        var characters: Int32 = 0
        var hasEscape = false
    }

    /// Adds the tokens of the whole vocabulary that continue a language.
    private func walk(_ language: RegexID, _ counting: Counting, into mask: inout LanguageMask) {
        let regexes = automaton.regexes
        let counts = if case .none = counting { false } else { true }
        guard let start = walkState(language, regexes, counts) else { return }
        var count = 0
        // Unchecked pointers are used deliberately, and only here in this file: this loop visits most of the vocabulary
        // for each state of a pattern. All indices come from the trie, which this module builds.
        trie.withUnsafeNodes { nodes in
            withUnsafeTemporaryAllocation(of: WalkState.self, capacity: trie.maximumDepth + 1) { path in
                withUnsafeTemporaryAllocation(of: WalkState.self, capacity: 64) { seen in
                    scratch.withUnsafeMutableBufferPointer { bits in
                        path.initialize(repeating: start)
                        // Recently visited states, indexed by their low bits: most tokens visit only a few states.
                        seen.initialize(repeating: start)
                        var node = 1
                        while node < nodes.count {
                            let depth = Int(nodes.depth[node])
                            let above = path[depth - 1]
                            let byte = nodes.byte[node]
                            let next = above.row[Int(byte)]
                            let after = Int(nodes.end[node])
                            if next == RegexArena.empty {
                                node = after
                                continue
                            }
                            let isLeaf = after == node + 1
                            if isLeaf, !counts {
                                // The state after a leaf is not needed.
                            } else if next == above.language {
                                path[depth] = above
                            } else if path[depth].language != next {
                                let slot = Int(next) & 63
                                if seen[slot].language != next {
                                    guard let state = walkState(next, regexes, counts) else {
                                        node = after
                                        continue
                                    }
                                    seen[slot] = state
                                }
                                path[depth] = seen[slot]
                            }
                            var most: Int32 = 0
                            var least: Int32 = 0
                            if counts {
                                path[depth].hasEscape = above.hasEscape || byte == UInt8(ascii: "\\")
                                // The closing quote is not a character of the text.
                                let isTail = byte & 0xC0 == 0x80 || next == RegexArena.epsilon
                                path[depth].characters = above.characters + (isTail || path[depth].hasEscape ? 0 : 1)
                                most = (path[depth].hasEscape ? Int32(depth) : path[depth].characters) + path[depth].most
                                least = path[depth].characters + path[depth].least
                            }
                            // If no byte below the node leaves the state, all tokens below are allowed.
                            var isUniform = !isLeaf && nodes.below[node] & ~path[depth].staying == 0
                            var isAllowed = true
                            switch counting {
                            case .none: break
                            case .listing(let above):
                                // The needs of longer tokens differ.
                                isUniform = isUniform && most + nodes.height[node] <= above
                                if most > above {
                                    for index in Int(nodes.firstToken[node])..<Int(nodes.firstToken[node + 1]) {
                                        mask.needs.append(Need(id: nodes.tokens[index], most: most, least: least))
                                    }
                                    if path[depth].isNullable, !isLeaf {
                                        mask.exitNeeds.append(Need(id: Int32(node), most: most, least: least))
                                    }
                                }
                            case .within(let maximum, let language):
                                // A longer text needs at least as many characters.
                                if least > maximum {
                                    node = after
                                    continue
                                }
                                isUniform = isUniform && most + nodes.height[node] <= maximum
                                isAllowed = most <= maximum || reaches(language, self.path(to: node))
                            }
                            let first = Int(nodes.firstToken[node])
                            let last = Int(nodes.firstToken[isUniform ? after : node + 1])
                            if isAllowed {
                                for index in first..<last {
                                    let token = nodes.tokens[index]
                                    bits[Int(token) >> 5] |= 1 << UInt32(token & 31)
                                }
                                count += last - first
                            }
                            if isUniform || isLeaf {
                                node = after
                                continue
                            }
                            if path[depth].isNullable, isAllowed { mask.exits.append(Int32(node)) }
                            node = next == RegexArena.epsilon ? after : node + 1
                        }
                    }
                }
            }
        }
        if count > Self.longestList {
            mask.dense = scratch
            size += scratch.count * 4
        } else if count > 0 {
            for (index, word) in scratch.enumerated() where word != 0 {
                for bit in 0..<32 where word >> UInt32(bit) & 1 == 1 { mask.list.append(Int32(index * 32 + bit)) }
            }
        }
        if count > 0 { for index in scratch.indices { scratch[index] = 0 } }
    }

    private func walkState(_ language: RegexID, _ regexes: RegexArena, _ counts: Bool) -> WalkState? {
        guard let row = regexes.liveRow(language) else { return nil }
        var state = WalkState(
            language: language, row: row, isNullable: regexes.isNullable[Int(language)], staying: stayingClasses(language, row))
        if counts {
            state.most = Int32(clamping: regexes.sufficientLength(language))
            state.least = Int32(clamping: regexes.leastCharacters(language))
        }
        return state
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
