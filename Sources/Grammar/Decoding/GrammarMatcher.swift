/// Where in a document decoding is. A value: a copy is a way back.
package struct GrammarMatcher: @unchecked Sendable {
    package let grammar: Grammar
    let table: MaskTable
    private var config: ConfigID

    init(grammar: Grammar, table: MaskTable, config: ConfigID) {
        self.grammar = grammar
        self.table = table
        self.config = config
    }

    /// Whether what was read is a document.
    package var isComplete: Bool { grammar.withLock(table) { table.automaton.isComplete(config) } }

    /// Reads bytes; false, and nothing is read, if they cannot follow.
    package mutating func advance(_ bytes: some Sequence<UInt8>) -> Bool {
        let next = grammar.withLock(table) { () -> ConfigID in
            var next = config
            for byte in bytes where next != Automaton.dead { next = table.automaton.step(next, byte) }
            return next
        }
        if next == Automaton.dead { return false }
        config = next
        return true
    }

    /// Reads a token; false if it cannot follow or is not text.
    package mutating func advance(token: Int32) -> Bool {
        guard grammar.vocabulary.texts.indices.contains(Int(token)), let text = grammar.vocabulary.texts[Int(token)] else {
            return false
        }
        return advance(text)
    }

    /// Writes a bit for each token that may come next: bit `i & 31` of word `i >> 5`, for ``TokenVocabulary/maskWords`` words.
    package func fillMask(_ words: UnsafeMutableBufferPointer<UInt32>) {
        grammar.withLock(table) { table.mask(config).fill(words) }
    }

    // MARK: - Endings

    /// The shortest ending.
    package var completion: [UInt8] { grammar.withLock(table) { table.automaton.completion(config) } }

    /// Bytes of the shortest ending.
    package var completionLength: Int { grammar.withLock(table) { table.automaton.completionLength(config) } }

    /// The shortest ending in as few tokens as possible; empty if there is none to write, or no tokens to write it with.
    package var shortestTokens: [Int32] { grammar.vocabulary.fewestTokens(completion) }

    /// Whether nothing can follow.
    package var isAtEnd: Bool {
        grammar.withLock(table) { table.automaton.isComplete(config) && table.automaton.alive(config).isEmpty }
    }

    /// Bytes by which one token can lengthen the shortest ending, at most.
    var greatestGrowth: Int { table.automaton.program.greatestGrowth }

    // MARK: - Forced text

    /// The tokens that may follow, if they are few.
    var fewTokens: [Int32]? {
        grammar.withLock(table) {
            let mask = table.mask(config)
            return mask.dense == nil && mask.list.count <= TokenMask.few ? mask.list : nil
        }
    }

    private static let longestForced = 2_000

    /// The bytes that must follow, and examples of all kinds of text that may come after them.
    var forcedBytes: (bytes: [UInt8], next: [[UInt8]]) {
        grammar.withLock(table) {
            let automaton = table.automaton
            var bytes: [UInt8] = []
            var current = config
            while bytes.count < Self.longestForced, !automaton.isComplete(current), let byte = automaton.alive(current).single {
                bytes.append(byte)
                current = automaton.step(current, byte)
            }
            if bytes.isEmpty { return ([], []) }
            let alive = automaton.alive(current)
            var next: [[UInt8]] = automaton.isComplete(current) ? [[]] : []
            // Letters are alike to a tokenizer, and so are digits; marks are not.
            if let letter = Array("aeistrnobcdfghjklmpquvwxyz".utf8).first(where: alive.contains) { next.append([letter]) }
            if let letter = Array("SATECDFGHIJKLMNOPQRBUVWXYZ".utf8).first(where: alive.contains) { next.append([letter]) }
            if let digit = Array("1023456789".utf8).first(where: alive.contains) { next.append([digit]) }
            for byte in UInt8(0x20)...0x7E where alive.contains(byte) && !JSONText.isAlphanumeric(byte) { next.append([byte]) }
            if alive.contains(0x0A) { next.append([0x0A]) }
            if alive.contains(0xC3) { next.append(Array("é".utf8)) }
            if alive.contains(0xE4) { next.append(Array("中".utf8)) }
            return (bytes, next)
        }
    }
}
