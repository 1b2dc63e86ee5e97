internal import Synchronization

/// The token texts of a model, indexed for computing masks. Created once per model and shared by its grammars.
package final class TokenVocabulary: Sendable {
    /// The bytes of each token; nil for tokens that are not text.
    package let texts: [[UInt8]?]
    /// Tokens that end a response.
    package let endTokens: [Int32]
    let trie: TokenTrie
    /// The classes of the bytes of each token, as bits; see ``ByteClasses``.
    private let tokenClasses: [UInt64]
    let freeText: FreeTextTable

    /// - Parameters:
    ///   - texts: The bytes of each token; nil for special tokens, which are never part of a document.
    ///   - endTokens: The tokens that end a response; ids outside the vocabulary are ignored.
    package init(texts: [[UInt8]?], endTokens: [Int32]) {
        self.texts = texts
        self.endTokens = endTokens.filter { texts.indices.contains(Int($0)) }
        trie = TokenTrie(texts)
        tokenClasses = texts.map { text in text?.reduce(0) { $0 | ByteClasses.mask($1) } ?? 0 }
        freeText = FreeTextTable(trie, count: texts.count)
    }

    private let sharedMasks = Mutex<[RegexID: MaskTable.LanguageMask]>([:])

    /// The mask of a language that has the same id in all arenas; nil if it has not been computed.
    func sharedMask(_ language: RegexID) -> MaskTable.LanguageMask? { sharedMasks.withLock { $0[language] } }
    func share(_ mask: MaskTable.LanguageMask, _ language: RegexID) { sharedMasks.withLock { $0[language] = mask } }

    /// Computes the masks that all schemas have in common: strings and numbers of any kind. Without this call each of them
    /// is computed when it is first needed. May be called on any thread, also while grammars use the vocabulary.
    package func prepareSharedMasks() {
        let table = MaskTable(Automaton(Program(), RegexArena(), isPretty: false), self)
        for state in RegexArena.sharedStates where sharedMask(state) == nil { _ = table.languageMask(state) }
    }

    private let plainTexts = Mutex<[UInt64: [UInt32]]>([:])

    /// The tokens inside a string of any text that have no escape and no byte of some classes; see ``ByteClasses``.
    func plainText(without classes: UInt64) -> [UInt32] {
        if let known = plainTexts.withLock({ $0[classes] }) { return known }
        var mask = freeText.plain
        for (token, own) in tokenClasses.enumerated() where own & classes != 0 { mask[token >> 5] &= ~(1 << UInt32(token & 31)) }
        return plainTexts.withLock { known in
            if known.count >= Self.maximumPlainTexts { known.removeAll() }
            known[classes] = mask
            return mask
        }
    }

    private static let maximumPlainTexts = 64

    package var count: Int { texts.count }
    /// Number of 32-bit words in a mask.
    package var maskWords: Int { (texts.count + 31) / 32 }

    /// The shortest sequence of tokens whose texts together are `bytes`; empty if there is none.
    package func fewestTokens(_ bytes: [UInt8]) -> [Int32] {
        // Dynamic programming from the end: the minimum number of tokens for each suffix, and its first token.
        var best = [(count: Int, token: Int32, length: Int)](repeating: (Int.max, -1, 0), count: bytes.count + 1)
        best[bytes.count].count = 0
        for start in stride(from: bytes.count - 1, through: 0, by: -1) {
            var node = Int(trie.rootChild[Int(bytes[start])])
            var end = start
            while node >= 0 {
                end += 1
                let rest = best[end].count
                if rest < Int.max, rest + 1 < best[start].count, let index = trie.tokens(at: node).first {
                    best[start] = (rest + 1, trie.tokens[index], end - start)
                }
                guard end < bytes.count else { break }
                node = trie.child(of: node, bytes[end])
            }
        }
        var tokens: [Int32] = []
        if best[0].count < Int.max { tokens.reserveCapacity(best[0].count) }
        var index = 0
        while index < bytes.count, best[index].token >= 0 {
            tokens.append(best[index].token)
            index += best[index].length
        }
        return index == bytes.count ? tokens : []
    }
}

/// The effect of each token inside a JSON string in which any text is allowed: constrained decoding needs this mask
/// most often.
///
/// A token stays inside the string, or closes it and possibly continues after it. A character is counted at its first
/// byte, so that limits on the length of a string can use the same table.
struct FreeTextTable: Sendable {
    /// A token, and the number of characters it begins before its end or the closing quote.
    struct Entry {
        var token: Int32
        var characters: Int32
    }

    /// The texts after the closing quote, as a trie in preorder. The tokens of a node are `entries[first..<last]`.
    struct Node {
        var byte: UInt8
        var end: Int32
        var first: Int32
        var last: Int32
    }

    /// Tokens that stay inside the string or close it with their last byte.
    private(set) var all: [UInt32]
    /// Tokens that stay inside the string, without an escape.
    private(set) var plain: [UInt32] = []
    /// Tokens that stay inside the string and begin at most `insideLimits[i]` characters, for each index `i`.
    private(set) var inside: [[UInt32]] = []
    private var insideLimits: [Int32] = []
    /// Tokens that end with the closing quote.
    private(set) var closing: [Entry] = []
    /// The texts after the closing quote, and the tokens that contain them.
    private(set) var nodes: [Node] = []
    private(set) var entries: [Entry] = []
    private(set) var maximumCount: Int32 = 0
    /// The trie nodes at which the closing quote is, in ascending order, and the number of characters before it.
    private var closingNodes: [(node: Int32, characters: Int32)] = []
    /// Tokens that contain an escape before the closing quote.
    private(set) var closingWithEscape: [Int32] = []

    init(_ trie: TokenTrie, count: Int) {
        all = [UInt32](repeating: 0, count: (count + 31) / 32)
        plain = all
        let arena = RegexArena()
        let body = arena.stringBody(arena.anyText, .any)
        var insideEntries: [Entry] = []
        var states = [RegexID](repeating: body, count: trie.maximumDepth + 1)
        var counts = [Int32](repeating: 0, count: trie.maximumDepth + 1)
        var escapes = [Bool](repeating: false, count: trie.maximumDepth + 1)
        var node = 1
        while node < trie.count {
            let depth = Int(trie.nodes[node].depth)
            let state = states[depth - 1]
            // Only valid UTF-8 and complete escapes have a next state; a language this small cannot reach the limits of
            // the arena.
            guard let row = arena.liveRow(state), row[Int(trie.nodes[node].byte)] != RegexArena.empty else {
                node = Int(trie.nodes[node].end)
                continue
            }
            let next = row[Int(trie.nodes[node].byte)]
            if next == RegexArena.epsilon {
                closingNodes.append((Int32(node), counts[depth - 1]))
                for index in trie.tokens(at: node) {
                    closing.append(Entry(token: trie.tokens[index], characters: counts[depth - 1]))
                }
                if escapes[depth - 1] {
                    closingWithEscape += trie.tokens[Int(trie.nodes[node].firstToken)..<trie.lastToken(below: node)]
                }
                node = Int(trie.nodes[node].end)
                continue
            }
            states[depth] = next
            escapes[depth] = escapes[depth - 1] || trie.nodes[node].byte == UInt8(ascii: "\\")
            counts[depth] = counts[depth - 1] + (state == body ? 1 : 0)
            for index in trie.tokens(at: node) {
                let token = trie.tokens[index]
                insideEntries.append(Entry(token: token, characters: counts[depth]))
                if !escapes[depth] { plain[Int(token) >> 5] |= 1 << UInt32(token & 31) }
            }
            node += 1
        }
        for entry in insideEntries + closing { all[Int(entry.token) >> 5] |= 1 << UInt32(entry.token & 31) }
        collectLimits(insideEntries)
        collectRemainders(trie)
        maximumCount = max(1, (insideEntries + closing + entries).map(\.characters).max() ?? 0)
    }

    private mutating func collectLimits(_ entries: [Entry]) {
        var mask = [UInt32](repeating: 0, count: all.count)
        let sorted = entries.sorted { $0.characters < $1.characters }
        var index = 0
        insideLimits = [0]
        inside = [mask]
        while index < sorted.count {
            let characters = sorted[index].characters
            while index < sorted.count, sorted[index].characters == characters {
                mask[Int(sorted[index].token) >> 5] |= 1 << UInt32(sorted[index].token & 31)
                index += 1
            }
            if characters == insideLimits.last {
                inside[inside.count - 1] = mask
            } else {
                insideLimits.append(characters)
                inside.append(mask)
            }
        }
    }

    private mutating func collectRemainders(_ trie: TokenTrie) {
        final class Builder {
            var children: [UInt8: Builder] = [:]
            var entries: [Entry] = []
        }
        let root = Builder()
        for exit in closingNodes {
            var path = [root]
            let base = Int(trie.nodes[Int(exit.node)].depth)
            var node = Int(exit.node) + 1
            while node < Int(trie.nodes[Int(exit.node)].end) {
                let depth = Int(trie.nodes[node].depth) - base
                path.removeLast(path.count - depth)
                let parent = path[depth - 1]
                let child = parent.children[trie.nodes[node].byte] ?? Builder()
                parent.children[trie.nodes[node].byte] = child
                for index in trie.tokens(at: node) {
                    child.entries.append(Entry(token: trie.tokens[index], characters: exit.characters))
                }
                path.append(child)
                node += 1
            }
        }
        func add(_ builder: Builder) {
            for (byte, child) in builder.children.sorted(by: { $0.key < $1.key }) {
                let index = nodes.count
                nodes.append(
                    Node(byte: byte, end: 0, first: Int32(entries.count), last: Int32(entries.count + child.entries.count)))
                entries += child.entries
                add(child)
                nodes[index].end = Int32(nodes.count)
            }
        }
        add(root)
    }

    /// The number of characters before the closing quote at a trie node.
    func characters(beforeClosing node: Int32) -> Int {
        var range = 0..<closingNodes.count
        while range.count > 1 {
            let middle = range.lowerBound + range.count / 2
            range = closingNodes[middle].node <= node ? middle..<range.upperBound : range.lowerBound..<middle
        }
        return range.isEmpty ? 0 : Int(closingNodes[range.lowerBound].characters)
    }

    /// Tokens that stay inside the string and begin at most `maximum` characters.
    func inside(atMost maximum: Int) -> [UInt32] {
        var index = insideLimits.count - 1
        while index > 0, Int(insideLimits[index]) > maximum { index -= 1 }
        return inside[index]
    }
}
