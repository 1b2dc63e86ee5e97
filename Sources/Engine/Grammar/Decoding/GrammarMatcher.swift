internal import JSON

/// The position of decoding in a document. A value type: to backtrack, keep a copy.
package struct GrammarMatcher: @unchecked Sendable {
    package let grammar: Grammar
    let table: MaskTable
    private var config: ConfigID
    /// Limits the work of the next calls; nil if nothing does.
    var work: GrammarWork?

    init(grammar: Grammar, table: MaskTable, config: ConfigID) {
        self.grammar = grammar
        self.table = table
        self.config = config
    }

    private func withTable<Result>(_ body: () -> Result) -> Result { grammar.withLock(table, work, body) }

    /// Whether the text read so far is a complete document.
    package var isComplete: Bool { withTable { table.automaton.isComplete(config) } }

    /// Reads bytes. Returns false and leaves the position unchanged if they cannot follow.
    package mutating func advance(_ bytes: some Sequence<UInt8>) -> Bool {
        let next = withTable { () -> ConfigID in
            var next = config
            for byte in bytes where next != Automaton.dead { next = table.automaton.step(next, byte) }
            return next
        }
        if next == Automaton.dead { return false }
        config = next
        return true
    }

    /// Reads a token. Returns false and leaves the position unchanged if it cannot follow or is not text.
    package mutating func advance(token: Int32) -> Bool {
        guard grammar.vocabulary.texts.indices.contains(Int(token)), let text = grammar.vocabulary.texts[Int(token)] else {
            return false
        }
        return advance(text)
    }

    /// Writes one bit for each token that may come next: token `i` is bit `i & 31` of word `i >> 5`. `words` must have
    /// ``TokenVocabulary/maskWords`` elements.
    package func fillMask(_ words: UnsafeMutableBufferPointer<UInt32>) {
        tokens.fill(words)
    }

    // MARK: - Endings

    /// The shortest text that completes the document.
    package var completion: [UInt8] { withTable { table.automaton.completion(config) } }

    /// Number of bytes of the shortest ending.
    package var completionLength: Int { withTable { table.automaton.completionLength(config) } }

    /// The shortest ending in the minimum number of tokens; empty if the document is complete, or if no tokens can
    /// express the ending.
    package var shortestTokens: [Int32] { shortestEnding.tokens }

    /// ``shortestTokens``, and whether they are final: at a limit of this call, a part of the ending may be missing.
    var shortestEnding: (tokens: [Int32], isFinal: Bool) {
        let (bytes, isFinal) = withTable {
            (table.automaton.completion(config), !table.automaton.regexes.isFull)
        }
        return (grammar.vocabulary.fewestTokens(bytes), isFinal)
    }

    /// Whether the document is complete and nothing can follow.
    package var isAtEnd: Bool {
        withTable { table.automaton.isComplete(config) && table.automaton.alive(config).isEmpty }
    }

    /// Whether the grammar's tables are so large that the document should end.
    var isNearlyFull: Bool { withTable { table.automaton.regexes.isNearlyFull } }

    /// Maximum number of bytes by which one token can lengthen the shortest ending.
    var maximumGrowth: Int { table.automaton.program.maximumGrowth }

    // MARK: - Forced text

    /// The tokens that may come next.
    var tokens: TokenMask { withTable { table.mask(config) } }

    /// The tokens of the text that must follow, as the tokenizer encodes it, up to the first token that depends on the text
    /// after it.
    func forcedTokens(_ encode: ([UInt8]) -> [Int32]) -> [Int32] {
        let known: [Int32]? = withTable {
            if table.automaton.isComplete(config) || table.automaton.alive(config).single == nil { return [] }
            return table.forced[config]
        }
        if let known { return known }
        let (bytes, next, isFinal) = forcedBytes
        var common: [Int32]?
        for ending in next {
            let tokens = encode(bytes + ending)
            guard let known = common else {
                common = tokens
                continue
            }
            common = Array(zip(known, tokens).prefix { $0 == $1 }.map(\.0))
        }
        // Keep only tokens that lie completely inside the forced text.
        var result: [Int32] = []
        var rest = bytes[...]
        for token in common ?? [] {
            guard let text = grammar.vocabulary.texts[Int(token)], rest.starts(with: text) else { break }
            result.append(token)
            rest = rest.dropFirst(text.count)
        }
        if isFinal { withTable { table.setForced(result, config) } }
        return result
    }

    private static let longestForced = 2_000

    /// The bytes that must follow, one example of each kind of text that may come after them, and whether this is final: at a
    /// limit of this call, the bytes end early.
    var forcedBytes: (bytes: [UInt8], next: [[UInt8]], isFinal: Bool) {
        withTable {
            let automaton = table.automaton
            var bytes: [UInt8] = []
            var current = config
            while bytes.count < Self.longestForced, !automaton.isComplete(current), let byte = automaton.alive(current).single {
                let next = automaton.step(current, byte)
                // At a limit, a byte that seemed possible may not be.
                if next == Automaton.dead { break }
                bytes.append(byte)
                current = next
            }
            if bytes.isEmpty { return ([], [], !automaton.regexes.isFull) }
            let alive = automaton.alive(current)
            var next: [[UInt8]] = automaton.isComplete(current) ? [[]] : []
            // Tokenizers treat all letters alike, and all digits; each punctuation character is different.
            if let letter = Array("aeistrnobcdfghjklmpquvwxyz".utf8).first(where: alive.contains) { next.append([letter]) }
            if let letter = Array("SATECDFGHIJKLMNOPQRBUVWXYZ".utf8).first(where: alive.contains) { next.append([letter]) }
            if let digit = Array("1023456789".utf8).first(where: alive.contains) { next.append([digit]) }
            for byte in UInt8(0x20)...0x7E where alive.contains(byte) && !JSONText.isAlphanumeric(byte) { next.append([byte]) }
            if alive.contains(0x0A) { next.append([0x0A]) }
            if alive.contains(0xC3) { next.append(Array("é".utf8)) }
            if alive.contains(0xE4) { next.append(Array("中".utf8)) }
            return (bytes, next, !automaton.regexes.isFull)
        }
    }
}
