internal import JSON

/// The tokens that may come next, in a compact form: `dense` without `removed`, plus `list`.
struct TokenMask {
    /// One bit per token, shared with other masks; nil if only few tokens are allowed.
    var dense: [UInt32]?
    /// Tokens to remove from `dense`.
    var removed: [Int32] = []
    /// Additional allowed tokens. Sorted and without duplicates if `dense` is nil and there are at most 64.
    var list: [Int32]

    /// Maximum number of tokens that counts as few.
    private static let maximumFew = 64

    /// All tokens, if there are only few; nil otherwise.
    var few: [Int32]? { dense == nil && list.count <= Self.maximumFew ? list : nil }

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
    let vocabulary: TokenVocabulary
    let trie: TokenTrie
    @exclusivity(unchecked) private var masks: [ConfigID: TokenMask] = [:]
    @exclusivity(unchecked) var languageMasks: [RegexID: LanguageMask] = [:]
    let walkStates: WalkStates
    /// Languages that were visited with a maximum number of characters.
    var boundedLanguages: Set<RegexID> = []
    private var leaving: [UInt64: [Int32]] = [:]
    private var ending: [ConfigID: [Int32]] = [:]
    /// The tokens that must follow, where there is only one possible next byte; empty if it is only a part of a token.
    @exclusivity(unchecked) private(set) var forced: [ConfigID: [Int32]] = [:]
    private var tokensByLastByte: [UInt8: (tokens: [Int32], longest: Int)] = [:]
    /// One bit per token, all zero between uses.
    @exclusivity(unchecked) var scratch: [UInt32]
    /// Longer lists are stored as bits.
    static let longestList = 256

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
        walkStates = WalkStates(automaton.regexes, longestToken: trie.maximumDepth)
        scratch = [UInt32](repeating: 0, count: vocabulary.maskWords)
    }

    /// Approximate number of bytes in the cached masks and forced tokens.
    @exclusivity(unchecked) var size = 0
    /// Number of vocabulary nodes visited so far, and the like; without masks that all schemas have in common.
    @exclusivity(unchecked) var work = 0

    func setForced(_ tokens: [Int32], _ config: ConfigID) {
        forced[config] = tokens
        size += 64 + tokens.count * 4
    }

    func mask(_ config: ConfigID) -> TokenMask {
        if let known = masks[config] { return known }
        let before = size
        var mask = compute(config)
        if mask.few != nil { mask.list = Array(Set(mask.list)).sorted() }
        // Do not cache a result that was computed after a limit was reached: it may only be due to the fuel of this
        // call.
        if automaton.regexes.isFull {
            size = before
            return mask
        }
        masks[config] = mask
        size += 64 + mask.list.count * 4
        return mask
    }

    private func compute(_ config: ConfigID) -> TokenMask {
        var result = TokenMask(dense: nil, list: [])
        var structural: [Thread] = []
        var names: [Thread] = []
        for thread in automaton.configs[Int(config)] {
            let local = automaton.states[Int(thread.state)]
            if local.kind == .end {
                result.list += vocabulary.endTokens
            } else if local.kind == .otherKey {
                names.append(thread)
            } else if let language = local.language {
                add(languageMask(language), local.kind == .scalar ? .parent(thread.parent) : .text([thread]), to: &result)
            } else if local.kind == .uniqueStructure {
                addStructure(thread, to: &result)
            } else if local.kind != .hole {
                structural.append(thread)
            }
        }
        addNames(names, to: &result)
        if structural.count == automaton.configs[Int(config)].count {
            automaton.alive(config).forEach { byte in
                let child = trie.rootChild[Int(byte)]
                if child >= 0 { visit(Int(child), automaton.step(config, byte), &result.list) }
            }
        } else if !structural.isEmpty {
            // Walk only these threads: the others accept almost any byte, so the walk would visit most of the trie. After
            // each digit of a number, for example, these threads are the same.
            result.list += mask(automaton.config(structural)).list
        }
        return result
    }

    /// Adds the tokens of a dense mask, except those in `removed`.
    private func merge(_ dense: [UInt32], without removed: some Collection<Int32> = [], into mask: inout TokenMask) {
        work += dense.count / 16
        automaton.regexes.spend(parts: dense.count / 256)
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
                let last = index + 1 == text.count ? trie.lastToken(below: node) : Int(trie.nodes[node + 1].firstToken)
                for position in Int(trie.nodes[node].firstToken)..<last where !advances(start, trie.tokens[position]) {
                    refused.append(trie.tokens[position])
                }
            }
        }
        // At a limit, not all tokens that can be refused were found.
        if automaton.regexes.isFull { return }
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
        automaton.regexes.spend(parts: vocabulary.texts.count / 16)
        let result = (tokens.map { Int32($0) }, longest)
        tokensByLastByte[byte] = result
        return result
    }

    /// The tokens that end exactly where `inner`, which ends in a hole, may end.
    private func endingTokens(_ inner: ConfigID, _ closing: [Int32]) -> [Int32] {
        if let known = ending[inner] { return known }
        let tokens = closing.filter { token in
            if automaton.regexes.isOutOfFuel { return false }
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
        automaton.regexes.spend(parts: vocabulary.maskWords / 64)
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
        guard config != Automaton.dead, !automaton.regexes.isOutOfFuel else { return }
        work += 1
        automaton.regexes.spend(parts: 1)
        for index in trie.tokens(at: node) { list.append(trie.tokens[index]) }
        if trie.hasChildren(node) { visitChildren(of: node, config, &list) }
    }

    private func visitChildren(of node: Int, _ config: ConfigID, _ list: inout [Int32]) {
        let alive = automaton.alive(config)
        let end = Int(trie.nodes[node].end)
        var child = node + 1
        while child < end {
            let byte = trie.nodes[child].byte
            if alive.contains(byte) { visit(child, automaton.step(config, byte), &list) }
            child = Int(trie.nodes[child].end)
        }
    }

    // MARK: - Languages

    /// What follows the end of a language.
    private enum Continuation {
        case parent(ConfigID)
        /// It depends on the text that these threads have read.
        case text([Thread])
    }

    /// Adds the tokens of the names of several regions. Their union is walked once: most tokens continue names of all
    /// regions.
    private func addNames(_ threads: [Thread], to mask: inout TokenMask) {
        var contents: [EscapeStyle: (languages: [RegexID], threads: [Thread])] = [:]
        for thread in threads {
            guard let language = automaton.states[Int(thread.state)].language else { continue }
            if threads.count > 1, let (content, style) = automaton.regexes.stringContent(language) {
                contents[style, default: ([], [])].languages.append(content)
                contents[style, default: ([], [])].threads.append(thread)
            } else {
                add(languageMask(language), .text([thread]), to: &mask)
            }
        }
        for (style, group) in contents {
            var others = group
            // Nothing is walked for names that can be any text. But what follows a name depends on which of them it is in,
            // such as those up to some length, so that only equal ones are joined.
            for language in group.languages.sorted().deduplicated() {
                guard style == .any, automaton.regexes.isOpenByForm(language) else { continue }
                let threads = zip(group.languages, group.threads).filter { $0.0 == language }.map(\.1)
                add(languageMask(automaton.regexes.stringBody(language, style)), .text(threads), to: &mask)
                others.languages.removeAll { $0 == language }
                others.threads.removeAll { threads.contains($0) }
            }
            if others.threads.isEmpty { continue }
            let union = automaton.regexes.stringBody(automaton.regexes.alternation(others.languages), style)
            add(languageMask(union), .text(others.threads), to: &mask)
        }
    }

    private func add(_ language: LanguageMask, _ continuation: Continuation, to mask: inout TokenMask) {
        if let free = language.free { addFree(free, continuation, to: &mask) }
        if let dense = language.dense { merge(dense, without: language.removed, into: &mask) }
        mask.list += language.list
        guard !language.exits.isEmpty else { return }
        switch continuation {
        case .parent(let parent):
            for exit in language.exits { visitChildren(of: Int(exit), parent, &mask.list) }
        case .text(let threads):
            let start = automaton.config(threads)
            for exit in language.exits {
                let config = configuration(after: path(to: Int(exit)), from: start)
                if config != Automaton.dead { visitChildren(of: Int(exit), config, &mask.list) }
            }
        }
    }

    private func addFree(_ free: Free, _ continuation: Continuation, to mask: inout TokenMask) {
        let table = vocabulary.freeText
        automaton.regexes.spend(parts: table.closing.count / 64)
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
        var after = Automaton.dead
        var start = Automaton.dead
        switch continuation {
        case .parent(let parent): after = parent
        case .text(let threads):
            start = automaton.config(threads)
            after = automaton.step(start, UInt8(ascii: "\""))
        }
        if after != Automaton.dead {
            let allowsAll = hasNoLimits && free.removed.isEmpty
            visitRemainders(0, table.nodes.count, after, table, { allowsAll || allows($0) }, &mask.list)
            return
        }
        // The string cannot be closed here because its text is excluded. Tokens that add characters before the quote
        // can close it.
        for byte in "~^`|".utf8 where start != Automaton.dead {
            let next = automaton.step(start, byte)
            guard next != Automaton.dead else { continue }
            after = automaton.step(next, UInt8(ascii: "\""))
            guard after != Automaton.dead else { continue }
            visitRemainders(0, table.nodes.count, after, table, { $0.characters > 0 && allows($0) }, &mask.list)
            return
        }
        for entry in table.entries where start != Automaton.dead && allows(entry) && advances(start, entry.token) {
            mask.list.append(entry.token)
        }
    }

    private func advances(_ config: ConfigID, _ token: Int32) -> Bool {
        configuration(after: vocabulary.texts[Int(token)] ?? [], from: config) != Automaton.dead
    }

    private func configuration(after bytes: [UInt8], from config: ConfigID) -> ConfigID {
        if automaton.regexes.isOutOfFuel { return Automaton.dead }
        automaton.regexes.spend(parts: 1 + bytes.count / 4)
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
        if automaton.regexes.isOutOfFuel { return }
        automaton.regexes.spend(parts: 1)
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
}
