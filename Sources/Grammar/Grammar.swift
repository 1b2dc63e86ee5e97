import Synchronization

/// What a response must look like.
package enum GrammarSource: Sendable, Hashable {
    /// A JSON document that a JSON Schema accepts.
    case schema(JSONValue)
    /// A text in which a pattern of ECMA-262 is found; anchor it to have all of the text match.
    case pattern(String)
    /// One of these texts.
    case texts([String])
    /// Text, or calls of tools.
    case tools(ToolGrammar)
}

/// Free text, or one call of a tool: `{"name": …, "arguments": …}`, between a model's own marks if it has any.
package struct ToolGrammar: Sendable, Hashable {
    package struct Tool: Sendable, Hashable {
        package var name: String
        /// JSON Schema of the arguments.
        package var parameters: JSONValue

        package init(name: String, parameters: JSONValue) {
            self.name = name
            self.parameters = parameters
        }
    }

    package var tools: [Tool]
    /// What stands before and after a call, such as `<tool_call>` and its end.
    package var opening: String
    package var closing: String
    /// Whether the response may be text instead of a call.
    package var allowsText: Bool

    package init(tools: [Tool], opening: String = "", closing: String = "", allowsText: Bool = true) {
        self.tools = tools
        self.opening = opening
        self.closing = closing
        self.allowsText = allowsText
    }
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
    private let source: GrammarSource
    private let options: GrammarOptions
    private let lock = Mutex(())
    private var compiled: Compiled
    private var table: MaskTable
    /// Bytes of masks to keep.
    private static let greatestSize = 16 << 20

    private static let secondsToCompile = 0.9
    /// Seconds that one question of a matcher may take; what a pattern has not become by then is not allowed.
    private static let secondsToAnswer = 2.0

    /// A source as an automaton's tables.
    private struct Compiled {
        var program = Program()
        var regexes: RegexArena
        var beginnings: [LocalState]
        var sequences: [[SequencePart]] = []
        var notes: [String] = []
    }

    /// - Throws: ``SchemaError`` if the source is not valid, not supported or cannot be satisfied.
    package init(
        _ source: GrammarSource, vocabulary: TokenVocabulary, options: GrammarOptions = GrammarOptions()
    ) throws(SchemaError) {
        self.vocabulary = vocabulary
        self.source = source
        self.options = options
        compiled = try Self.compile(source, options)
        notes = compiled.notes
        table = Self.makeTable(compiled, vocabulary, options)
    }

    private static func makeTable(_ compiled: Compiled, _ vocabulary: TokenVocabulary, _ options: GrammarOptions) -> MaskTable {
        let automaton = Automaton(
            compiled.program, compiled.regexes, isPretty: options.isPretty, sequences: compiled.sequences)
        return MaskTable(automaton, vocabulary)
    }

    private static func compile(_ source: GrammarSource, _ options: GrammarOptions) throws(SchemaError) -> Compiled {
        switch source {
        case .schema(let document):
            let arena = ConstraintArena()
            arena.regexes.setDeadline(secondsToCompile)
            var parser = SchemaParser(document, arena: arena)
            let root = try parser.parse()
            let program = try ProgramBuilder.build(root, arena, allowsZeroFraction: options.allowsZeroFraction)
            return Compiled(
                program: program, regexes: arena.regexes, beginnings: [LocalState(kind: .value, a: program.root)],
                notes: parser.notes)
        case .pattern(let pattern):
            let regexes = RegexArena()
            regexes.setDeadline(secondsToCompile)
            return Compiled(regexes: regexes, beginnings: [LocalState(kind: .scalar, a: try language(pattern, regexes))])
        case .texts(let texts):
            if texts.isEmpty { throw SchemaError(.unsatisfiable, at: "", "there is no text to choose") }
            let regexes = RegexArena()
            let words = regexes.words(texts.map { Array($0.utf8) })
            return Compiled(regexes: regexes, beginnings: [LocalState(kind: .scalar, a: words)])
        case .tools(let tools):
            let arena = ConstraintArena()
            let regexes = arena.regexes
            regexes.setDeadline(secondsToCompile)
            let root = try calls(tools.tools, arena)
            let program = try ProgramBuilder.build(root, arena, allowsZeroFraction: options.allowsZeroFraction)
            let parts = [
                SequencePart(content: .language(regexes.literal(Array(tools.opening.utf8)))),
                SequencePart(content: .value(program.root)),
                SequencePart(content: .language(regexes.literal(Array(tools.closing.utf8)))),
            ]
            var beginnings = [LocalState(kind: .sequence, a: 0)]
            if tools.allowsText { beginnings.append(LocalState(kind: .scalar, a: freeText(tools.opening, regexes))) }
            return Compiled(program: program, regexes: regexes, beginnings: beginnings, sequences: [parts])
        }
    }

    /// The constraint of all calls, with the name of the tool at the place of an error.
    private static func calls(_ tools: [ToolGrammar.Tool], _ arena: ConstraintArena) throws(SchemaError) -> ConstraintID {
        if tools.isEmpty { throw SchemaError(.unsatisfiable, at: "", "there is no tool to call") }
        var calls: [ConstraintID] = []
        for tool in tools {
            var parser = SchemaParser(tool.parameters, arena: arena)
            let parameters: ConstraintID
            do { parameters = try parser.parse() } catch {
                throw SchemaError(error.kind, at: error.pointer, "in the parameters of '\(tool.name)': \(error.reason)")
            }
            var call = ObjectConstraint(additional: ConstraintArena.nothing)
            let name = arena.name(Array("name".utf8))
            let arguments = arena.name(Array("arguments".utf8))
            call.properties = [
                .init(name: name, value: arena.value(.string(tool.name))),
                .init(name: arguments, value: arena.all([parameters, arena.kinds(.object)])),
            ]
            call.required = [name, arguments]
            calls.append(arena.all([arena.object(call), arena.kinds(.object)]))
        }
        return arena.any(calls)
    }

    /// Any text that does not begin as a call does.
    private static func freeText(_ opening: String, _ regexes: RegexArena) -> RegexID {
        let mark = opening.isEmpty ? "{" : opening
        let marked = regexes.concat(regexes.literal(Array(mark.utf8)), regexes.anyText)
        return regexes.intersection([regexes.repetition(regexes.anyCharacter, 1, nil), regexes.complement(marked)])
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
            // Matchers keep what they began with; a new one begins anew when too much has gathered.
            if table.automaton.isFull || table.size > Self.greatestSize {
                if let again = try? Self.compile(source, options) { compiled = again }
                table = Self.makeTable(compiled, vocabulary, options)
            }
            return GrammarMatcher(grammar: self, table: table, config: table.automaton.start(startStates(table.automaton)))
        }
    }

    /// The type of the documents; nil if they are not JSON.
    var beginning: TypeID? {
        guard let first = compiled.beginnings.first, first.kind == .value else { return nil }
        return first.a
    }

    func startStates(_ automaton: Automaton) -> [StateID] { compiled.beginnings.map { automaton.state($0) } }

    /// Runs with an automaton of its own, whatever the options say of white space.
    func withCompactAutomaton<Result>(_ body: (Automaton) -> Result) -> Result {
        lock.withLock { _ in
            body(Automaton(compiled.program, compiled.regexes, isPretty: false, sequences: compiled.sequences))
        }
    }

    func withLock<Result>(_ table: MaskTable, _ body: () -> Result) -> Result {
        lock.withLock { _ in
            table.automaton.regexes.setDeadline(Self.secondsToAnswer)
            return body()
        }
    }
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
            return mask.dense == nil && mask.list.count <= Self.few ? Array(Set(mask.list)).sorted() : nil
        }
    }

    private static let few = 64
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

extension Program {
    /// A token opens few values at once; each may need all of a shortest document, and a name before it.
    fileprivate var greatestGrowth: Int {
        let value = types.map(\.shortest).filter { $0 < Self.endless }.max() ?? 0
        let name = objects.flatMap { $0.names.map(\.text.count) }.max() ?? 0
        return (value + name + 8) * 4
    }
}

extension TokenVocabulary {
    /// The fewest tokens that spell `bytes`; empty if there are none that do.
    func fewestTokens(_ bytes: [UInt8]) -> [Int32] {
        // From the end: the fewest tokens for each tail, and the first of them.
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
        var index = 0
        while index < bytes.count, best[index].token >= 0 {
            tokens.append(best[index].token)
            index += best[index].length
        }
        return index == bytes.count ? tokens : []
    }
}
