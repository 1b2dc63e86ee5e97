/// Which tokens may come next, in a compact form.
struct TokenMask {
    /// Tokens as bits, shared with other masks; nil if there are few.
    var dense: [UInt32]?
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
    private let freeBody: RegexID

    /// What a language alone says of tokens.
    private struct LanguageMask {
        var dense: [UInt32]?
        var list: [Int32] = []
        /// Nodes of the trie where the language may end, with tokens below.
        var exits: [Int32] = []
        var free: Free?
        /// The longest any token may make a word of the language that goes on after it: bytes.
        var reach = 0
    }

    /// The inside of a string of any text.
    private struct Free {
        var least: Int
        var most: Int?
        /// Tokens that begin with these bytes are decided otherwise.
        var excluded: ByteSet?
    }

    init(_ automaton: Automaton, _ vocabulary: TokenVocabulary) {
        self.automaton = automaton
        self.vocabulary = vocabulary
        trie = vocabulary.trie
        freeBody = automaton.regexes.stringBody(automaton.regexes.anyText, .any)
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
        var structural = ByteSet()
        for thread in automaton.configs[Int(config)] {
            let local = automaton.states[Int(thread.state)]
            if local.kind == .end {
                result.list += vocabulary.endTokens
            } else if let language = local.language {
                add(languageMask(language), thread, local, to: &result)
            } else {
                for edge in automaton.edges(thread.state) { structural = structural.union(edge.bytes) }
            }
        }
        structural.forEach { byte in
            let child = trie.rootChild[Int(byte)]
            guard child >= 0 else { return }
            visit(Int(child), automaton.step(config, byte), &result.list)
        }
        return result
    }

    private func merge(_ dense: [UInt32], into mask: inout TokenMask) {
        guard var own = mask.dense else {
            mask.dense = dense
            return
        }
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
        let excluded = free.excluded
        func allows(_ entry: FreeTextTable.Entry) -> Bool {
            if let excluded, excluded.contains(table.firstByte[Int(entry.token)]) { return false }
            return Int(entry.characters) >= free.least && (free.most.map { Int(entry.characters) <= $0 } ?? true)
        }
        if excluded == nil {
            if hasNoLimits {
                merge(table.all, into: &mask)
            } else {
                merge(table.inside(atMost: free.most ?? Int.max), into: &mask)
                for entry in table.closing where allows(entry) { mask.list.append(entry.token) }
            }
        }
        // After the closing quote.
        let start = local.kind == .scalar ? Automaton.dead : automaton.config(thread.state, thread.parent)
        let after = local.kind == .scalar ? thread.parent : automaton.step(start, UInt8(ascii: "\""))
        if local.kind == .scalar || after != Automaton.dead, !tooShort(free) {
            visitRemainders(0, table.nodes.count, after, table, { hasNoLimits && excluded == nil ? true : allows($0) }, &mask.list)
        }
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

    private func languageMask(_ language: RegexID) -> LanguageMask {
        if let known = languageMasks[language] { return known }
        let mask = computeLanguage(language)
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
                let unlimited = languageMask(regexes.stringBody(rest, style))
                if unlimited.free == nil, most >= unlimited.reach { return unlimited }
            }
        }
        var mask = LanguageMask()
        guard let row = try? regexes.row(language), let freeRow = try? regexes.row(freeBody) else { return mask }
        // Where most first bytes lead into a string of any text, only the others are looked at.
        var likeFree = ByteSet()
        var count = 0
        for byte in 0..<256 where row[byte] != RegexArena.empty && row[byte] == freeRow[byte] {
            likeFree.insert(UInt8(byte))
            count += 1
        }
        if count > 64 {
            var others = ByteSet()
            for byte in UInt8.min...UInt8.max where !likeFree.contains(byte) { others.insert(byte) }
            // The closing quote may come at once in both.
            mask.free = Free(least: 0, most: nil, excluded: others)
            mask.dense = freeTokens(likeFree)
            others.forEach { byte in
                let child = Int(trie.rootChild[Int(byte)])
                if child >= 0 { walk(language, from: child, to: Int(trie.end[child]), into: &mask) }
            }
        } else {
            walk(language, from: 1, to: trie.count, into: &mask)
        }
        pack(&mask)
        return mask
    }

    /// Tokens inside any text that begin with certain bytes.
    private func freeTokens(_ bytes: ByteSet) -> [UInt32] {
        var dense = vocabulary.freeText.all
        for byte in UInt8.min...UInt8.max where !bytes.contains(byte) {
            let child = Int(trie.rootChild[Int(byte)])
            guard child >= 0 else { continue }
            for index in Int(trie.firstToken[child])..<trie.lastToken(below: child) {
                dense[Int(trie.tokens[index]) >> 5] &= ~(1 << UInt32(trie.tokens[index] & 31))
            }
        }
        size += dense.count * 4
        return dense
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

    private func walk(_ language: RegexID, from first: Int, to end: Int, into mask: inout LanguageMask) {
        let regexes = automaton.regexes
        var states = [RegexID](repeating: language, count: trie.greatestDepth + 1)
        var node = first
        while node < end {
            let depth = Int(trie.depth[node])
            guard let row = try? regexes.row(states[depth - 1]) else { return }
            let next = row[Int(trie.byte[node])]
            if next == RegexArena.empty {
                node = Int(trie.end[node])
                continue
            }
            for index in trie.tokens(at: node) { mask.list.append(trie.tokens[index]) }
            if regexes.isNullable[Int(next)], trie.hasChildren(node) { mask.exits.append(Int32(node)) }
            if states[depth] != next {
                states[depth] = next
                mask.reach = max(mask.reach, depth + ((try? regexes.shortestLength(next)) ?? 1 << 20))
            }
            node = next == RegexArena.epsilon ? Int(trie.end[node]) : node + 1
        }
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
