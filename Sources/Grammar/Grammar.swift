import Synchronization

/// What a response must look like.
package enum GrammarSource: Sendable, Hashable {
    /// A JSON document that a JSON Schema accepts.
    case schema(JSONValue)
    /// A text in which a pattern of ECMA-262 is found; anchor it to have all of the text match.
    case pattern(String)
    /// One of these texts.
    case texts([String])
}

/// How documents are written.
package struct GrammarOptions: Sendable, Hashable {
    /// Line breaks and two spaces a level, instead of no space at all.
    package var isPretty: Bool
    /// Whether integers may also be written as 1.0, which JSON Schema counts as one.
    package var allowsZeroFraction: Bool

    package init(isPretty: Bool = false, allowsZeroFraction: Bool = true) {
        self.isPretty = isPretty
        self.allowsZeroFraction = allowsZeroFraction
    }
}

/// A compiled schema for a vocabulary: says at every point of a document which tokens may come next.
///
/// A token is allowed if and only if the bytes so far and its own can be completed to a document. What masks need is
/// computed when first asked for and shared by all matchers; a lock makes that safe from any thread.
package final class Grammar: @unchecked Sendable {
    package let vocabulary: TokenVocabulary
    /// What the schema says that is not enforced, as sentences.
    package let notes: [String]
    private let program: Program
    private let regexes: RegexArena
    private let options: GrammarOptions
    private let beginnings: [LocalState]
    private let lock = Mutex(())
    private var table: MaskTable

    /// - Throws: ``SchemaError`` if the source is not valid, not supported or cannot be satisfied.
    package init(
        _ source: GrammarSource, vocabulary: TokenVocabulary, options: GrammarOptions = GrammarOptions()
    ) throws(SchemaError) {
        self.vocabulary = vocabulary
        self.options = options
        switch source {
        case .schema(let document):
            let arena = ConstraintArena()
            var parser = SchemaParser(document, arena: arena)
            let root = try parser.parse()
            notes = parser.notes
            program = try ProgramBuilder.build(root, arena, allowsZeroFraction: options.allowsZeroFraction)
            regexes = arena.regexes
            beginnings = [LocalState(kind: .value, a: program.root)]
        case .pattern(let pattern):
            regexes = RegexArena()
            program = Program()
            notes = []
            beginnings = [LocalState(kind: .scalar, a: try Self.language(pattern, regexes))]
        case .texts(let texts):
            regexes = RegexArena()
            program = Program()
            notes = []
            if texts.isEmpty { throw SchemaError(.unsatisfiable, at: "", "there is no text to choose") }
            beginnings = [LocalState(kind: .scalar, a: regexes.words(texts.map { Array($0.utf8) }))]
        }
        table = MaskTable(Automaton(program, regexes, isPretty: options.isPretty), vocabulary)
    }

    private static func language(_ pattern: String, _ regexes: RegexArena) throws(SchemaError) -> RegexID {
        let language: RegexID
        do {
            language = try RegexParser.language(of: pattern, in: regexes)
        } catch { throw SchemaError(error.isUnsupported ? .unsupported : .invalid, at: "", error.reason) }
        let isAlive: Bool
        do { isAlive = try regexes.isAlive(language) } catch {
            throw SchemaError(.tooComplex, at: "", "the pattern needs too many states")
        }
        if !isAlive { throw SchemaError(.unsatisfiable, at: "", "no text matches the pattern") }
        return language
    }

    /// A matcher before the first byte.
    package func matcher() -> GrammarMatcher {
        lock.withLock { _ in
            let states = beginnings.map { table.automaton.state($0) }
            return GrammarMatcher(grammar: self, table: table, config: table.automaton.start(states))
        }
    }

    func withLock<Result>(_ body: () -> Result) -> Result { lock.withLock { _ in body() } }
}

/// Where in a document decoding is. A value: a copy is a way back.
package struct GrammarMatcher: @unchecked Sendable {
    package let grammar: Grammar
    private let table: MaskTable
    private var config: ConfigID

    init(grammar: Grammar, table: MaskTable, config: ConfigID) {
        self.grammar = grammar
        self.table = table
        self.config = config
    }

    /// Whether what was read is a document.
    package var isComplete: Bool { grammar.withLock { table.automaton.isComplete(config) } }

    /// Reads bytes; false, and nothing is read, if they cannot follow.
    package mutating func advance(_ bytes: some Sequence<UInt8>) -> Bool {
        let next = grammar.withLock { () -> ConfigID in
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
        guard grammar.vocabulary.texts.indices.contains(Int(token)), let text = grammar.vocabulary.texts[Int(token)] else { return false }
        return advance(text)
    }

    /// Writes a bit for each token that may come next: bit `i & 31` of word `i >> 5`, for ``TokenVocabulary/maskWords`` words.
    package func fillMask(_ words: UnsafeMutableBufferPointer<UInt32>) {
        grammar.withLock { table.mask(config).fill(words) }
    }

    /// Bytes of the shortest ending.
    package var completion: [UInt8] { grammar.withLock { table.automaton.completion(config) } }
}
