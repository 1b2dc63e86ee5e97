/// Which tokens may come next, in a compact form.
struct TokenMask {
    /// Tokens as bits, shared with other masks; nil if there are few.
    var dense: [UInt32]?
    /// Tokens among those that are not allowed.
    var removed: [Int32] = []
    /// More tokens.
    var list: [Int32]

    /// Writes bits for all tokens: bit `i & 31` of word `i >> 5`.
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

/// Computes the tokens that may come next, and remembers them.
///
/// Most of a mask does not depend on the whole configuration: what a thread reads next decides for all tokens that end
/// before its part does, so these are computed once for each language. Only tokens that reach beyond are walked under
/// what the thread returns to.
final class MaskTable {
    let automaton: Automaton
    private let vocabulary: TokenVocabulary
    private let trie: TokenTrie
    private var masks: [ConfigID: TokenMask] = [:]
    private var languageMasks: [RegexID: LanguageMask] = [:]
    private var wantsReach = false

    /// What a language alone says of tokens.
    private struct LanguageMask {
        var dense: [UInt32]?
        var list: [Int32] = []
        /// Nodes of the trie where the language may end, with tokens below.
        var exits: [Int32] = []
        var free: Free?
        /// The longest any token may make a word of the language that goes on after it: bytes.
        var reach = 0
        var hasReach = false
    }

    /// The inside of a string of any text.
    private struct Free {
        var least: Int
        var most: Int?
        /// Tokens that close the string where it must not be closed, and tokens that go on after that.
        var removed: [Int32] = []
    }

    init(_ automaton: Automaton, _ vocabulary: TokenVocabulary) {
        self.automaton = automaton
        self.vocabulary = vocabulary
        trie = vocabulary.trie
    }

    /// Rough bytes held.
    private(set) var size = 0

    func mask(_ config: ConfigID) -> TokenMask {
        if let known = masks[config] { return known }
        let mask = compute(config)
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
            } else if local.kind != .hole {
                structural.append(thread)
            }
        }
        if !structural.isEmpty {
            // Walked without the others, which would be alive for almost any byte.
            let config = structural.count == automaton.configs[Int(config)].count ? config : automaton.config(structural)
            automaton.alive(config).forEach { byte in
                let child = trie.rootChild[Int(byte)]
                if child >= 0 { visit(Int(child), automaton.step(config, byte), &result.list) }
            }
        }
        return result
    }

    private func merge(_ dense: [UInt32], into mask: inout TokenMask) {
        guard var own = mask.dense else {
            mask.dense = dense
            return
        }
        for token in mask.removed { own[Int(token) >> 5] &= ~(1 << UInt32(token & 31)) }
        mask.removed = []
        for index in own.indices { own[index] |= dense[index] }
        size += own.count * 4
        mask.dense = own
    }

    // MARK: - Walking

    /// Adds tokens at and below a node, where `config` is the configuration after it.
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
        if let dense = language.dense { merge(dense, into: &mask) }
        mask.list += language.list
        guard !language.exits.isEmpty else { return }
        if local.kind == .scalar {
            let alive = automaton.alive(thread.parent)
            for exit in language.exits {
                let end = Int(trie.end[Int(exit)])
                var child = Int(exit) + 1
                while child < end {
                    let byte = trie.byte[child]
                    if alive.contains(byte) { visit(child, automaton.step(thread.parent, byte), &mask.list) }
                    child = Int(trie.end[child])
                }
            }
        } else {
            // What follows depends on the text typed.
            let start = automaton.config(thread.state, thread.parent)
            for exit in language.exits {
                var config = start
                let token = Int(trie.tokens[Int(trie.firstToken[Int(exit)])])
                for byte in (vocabulary.texts[token] ?? []).prefix(Int(trie.depth[Int(exit)])) where config != Automaton.dead {
                    config = automaton.step(config, byte)
                }
                if config != Automaton.dead { visitChildren(of: Int(exit), config, &mask.list) }
            }
        }
    }

    private func addFree(_ free: Free, _ thread: Thread, _ local: LocalState, to mask: inout TokenMask) {
        let table = vocabulary.freeText
        let hasNoLimits = free.least == 0 && free.most.map { $0 >= Int(table.greatestCount) } ?? true
        func allows(_ entry: FreeTextTable.Entry) -> Bool {
            Int(entry.characters) >= free.least && (free.most.map { Int(entry.characters) <= $0 } ?? true)
                && !free.removed.contains(entry.token)
        }
        if hasNoLimits {
            if mask.dense == nil { mask.removed = free.removed }
            if mask.dense == nil || free.removed.isEmpty {
                merge(table.all, into: &mask)
            } else {
                var dense = table.all
                for token in free.removed { dense[Int(token) >> 5] &= ~(1 << UInt32(token & 31)) }
                merge(dense, into: &mask)
            }
        } else {
            merge(table.inside(atMost: free.most ?? Int.max), into: &mask)
            for entry in table.closing where allows(entry) { mask.list.append(entry.token) }
        }
        // After the closing quote.
        if tooShort(free) { return }
        var after = thread.parent
        if local.kind != .scalar { after = automaton.step(automaton.config(thread.state, thread.parent), UInt8(ascii: "\"")) }
        if after != Automaton.dead {
            let allowsAll = hasNoLimits && free.removed.isEmpty
            visitRemainders(0, table.nodes.count, after, table, { allowsAll || allows($0) }, &mask.list)
            return
        }
        // The string cannot be closed at once, but by tokens that add to it first.
        guard local.kind != .scalar else { return }
        for entry in table.entries where allows(entry) {
            if advances(automaton.config(thread.state, thread.parent), entry.token) { mask.list.append(entry.token) }
        }
    }

    private func advances(_ config: ConfigID, _ token: Int32) -> Bool {
        var config = config
        for byte in vocabulary.texts[Int(token)] ?? [] where config != Automaton.dead { config = automaton.step(config, byte) }
        return config != Automaton.dead
    }

    /// Whether even the longest token leaves a string too short to close.
    private func tooShort(_ free: Free) -> Bool { free.least > Int(vocabulary.freeText.greatestCount) }

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
                    for entry in Int(node.first)..<Int(node.last) where allows(table.entries[entry]) { list.append(table.entries[entry].token) }
                    if Int(node.end) > index + 1 { visitRemainders(index + 1, Int(node.end), next, table, allows, &list) }
                }
            }
            index = Int(node.end)
        }
    }

    private func languageMask(_ language: RegexID, wantsReach: Bool = false) -> LanguageMask {
        if let known = languageMasks[language], known.hasReach || !wantsReach { return known }
        self.wantsReach = wantsReach
        var mask = computeLanguage(language)
        mask.hasReach = wantsReach
        self.wantsReach = false
        languageMasks[language] = mask
        size += 64 + mask.list.count * 4 + mask.exits.count * 4
        return mask
    }

    private func computeLanguage(_ language: RegexID) -> LanguageMask {
        let regexes = automaton.regexes
        if let (content, style) = regexes.stringContent(language) {
            if style == .any, let window = regexes.lengthWindow(content) {
                return LanguageMask(free: Free(least: window.least, most: window.most))
            }
            // A limit that no token can reach makes no difference.
            if let (rest, most) = regexes.withoutUpperLimit(content), most >= 32 {
                let unlimited = languageMask(regexes.stringBody(rest, style), wantsReach: true)
                if unlimited.free == nil, unlimited.hasReach, most >= unlimited.reach { return unlimited }
            }
        }
        if let (content, style) = regexes.stringContent(language), style == .any, let words = regexes.exceptedWords(content) {
            return LanguageMask(free: Free(least: 0, most: nil, removed: closing(at: Set(words))))
        }
        var mask = LanguageMask()
        walk(language, from: 1, to: trie.count, into: &mask)
        pack(&mask)
        return mask
    }

    /// Tokens that close a string exactly after one of `words`, whatever comes after that.
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
        // The same words may be spelled with escapes.
        for token in vocabulary.freeText.closingWithEscape {
            let body = (vocabulary.texts[Int(token)] ?? [])
            guard let end = JSONText.endOfString(body),
                case .string(let name)? = try? JSONParser.parse([UInt8(ascii: "\"")] + body[..<end] + [UInt8(ascii: "\"")])
            else { continue }
            if words.contains(Array(name.utf8)), !removed.contains(token) { removed.append(token) }
        }
        return removed
    }

    /// Long lists become bits.
    private func pack(_ mask: inout LanguageMask) {
        guard mask.list.count > 256 else { return }
        var dense = mask.dense ?? [UInt32](repeating: 0, count: vocabulary.maskWords)
        for token in mask.list { dense[Int(token) >> 5] |= 1 << UInt32(token & 31) }
        mask.dense = dense
        mask.list = []
        size += dense.count * 4
    }

    /// One state on the way down the trie: its row, and whether a word may end there.
    private struct WalkState {
        var language: RegexID
        var row: UnsafePointer<RegexID>
        var isNullable: Bool
        /// Bytes of the shortest word from here, if that is asked for.
        var shortest = 0
    }

    private func walk(_ language: RegexID, from first: Int, to end: Int, into mask: inout LanguageMask) {
        let regexes = automaton.regexes
        guard let start = walkState(language, regexes) else { return }
        var path = [WalkState](repeating: start, count: trie.greatestDepth + 1)
        // States seen lately, by their low bits: most tokens stay among a few.
        var seen = [WalkState](repeating: start, count: 64)
        var list = mask.list
        var exits = mask.exits
        trie.byte.withUnsafeBufferPointer { bytes in
            trie.depth.withUnsafeBufferPointer { depths in
                trie.end.withUnsafeBufferPointer { ends in
                    var node = first
                    while node < end {
                        let depth = Int(depths[node])
                        let next = path[depth - 1].row[Int(bytes[node])]
                        if next == RegexArena.empty {
                            node = Int(ends[node])
                            continue
                        }
                        for index in trie.tokens(at: node) { list.append(trie.tokens[index]) }
                        let after = Int(ends[node])
                        if after == node + 1, !wantsReach {
                            node = after
                            continue
                        }
                        if path[depth].language != next {
                            if path[depth - 1].language == next {
                                path[depth] = path[depth - 1]
                            } else {
                                let slot = Int(next) & 63
                                if seen[slot].language != next {
                                    guard let state = walkState(next, regexes) else {
                                        node = after
                                        continue
                                    }
                                    seen[slot] = state
                                }
                                path[depth] = seen[slot]
                            }
                        }
                        if wantsReach { mask.reach = max(mask.reach, depth + path[depth].shortest) }
                        if path[depth].isNullable, after > node + 1 { exits.append(Int32(node)) }
                        node = next == RegexArena.epsilon ? after : node + 1
                    }
                }
            }
        }
        mask.list = list
        mask.exits = exits
    }

    private func walkState(_ language: RegexID, _ regexes: RegexArena) -> WalkState? {
        guard let row = try? regexes.row(language) else { return nil }
        let shortest = wantsReach ? (try? regexes.shortestLength(language)) ?? 1 << 20 : 0
        return WalkState(language: language, row: row, isNullable: regexes.isNullable[Int(language)], shortest: shortest)
    }
}

extension RegexArena {
    /// What a string's text must be, where a language is the rest of a JSON string.
    func stringContent(_ id: RegexID) -> (content: RegexID, style: EscapeStyle)? {
        guard case .concat(let body, let quote) = nodes[Int(id)], case .escaped(let content, let style, .none) = nodes[Int(body)],
            quote == bytes(ByteSet(UInt8(ascii: "\"")))
        else {
            if id == bytes(ByteSet(UInt8(ascii: "\""))) { return (Self.epsilon, .any) }
            return nil
        }
        return (content, style)
    }

    /// What a string's text must be, where a language is a whole JSON string.
    func stringContent(afterQuote id: RegexID) -> (content: RegexID, style: EscapeStyle)? {
        guard case .concat(let quote, let rest) = nodes[Int(id)], quote == bytes(ByteSet(UInt8(ascii: "\""))) else { return nil }
        return stringContent(rest)
    }

    /// The alternatives of a language.
    func parts(_ id: RegexID) -> [RegexID] {
        if case .alternation(let parts) = nodes[Int(id)] { return parts }
        return [id]
    }

    /// A language without its limit to so many characters, if that is all that it adds to something else.
    func withoutUpperLimit(_ id: RegexID) -> (rest: RegexID, most: Int)? {
        guard case .intersection(let parts) = nodes[Int(id)] else { return nil }
        for part in parts {
            guard let window = lengthWindow(part), window.least == 0, let most = window.most else { continue }
            let rest = parts.filter { $0 != part }
            return (intersection(rest.contains { !isComplementNode($0) } ? rest : rest + [anyText]), most)
        }
        return nil
    }

    private func isComplementNode(_ id: RegexID) -> Bool {
        if case .complement = nodes[Int(id)] { return true }
        return false
    }
}
