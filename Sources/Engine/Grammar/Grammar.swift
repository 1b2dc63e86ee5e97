internal import JSON
import Synchronization

/// A schema compiled for a vocabulary: determines the tokens that may come next at every position of a document.
///
/// A token is allowed if and only if the text so far followed by the token can be completed to a document. Data for
/// masks is computed on demand and shared by all matchers; a lock makes this safe on any thread.
package final class Grammar: @unchecked Sendable {
    package let vocabulary: TokenVocabulary
    /// The keywords of the schema that are not enforced, as sentences.
    package let notes: [String]
    private let source: GrammarSource
    private let options: GrammarOptions
    /// Held while the tables are used.
    let lock = Mutex(())
    private var compiled: Compiled
    /// What new matchers begin with. It changes under both locks, and can be read without waiting for those who use the tables.
    private let beginning: Mutex<Beginning>
    /// Maximum number of bytes of cached masks.
    private static let maximumSize = 16 << 20

    /// Maximum amount of work for compilation, half a second to a second.
    package static let fuelToCompile = 1_000_000
    /// Maximum amount of work for one call of a matcher. Continuations of a pattern that are not computed by then are
    /// not allowed.
    static let fuelToAnswer = 2_000_000

    /// Maximum amount of work for the automaton in a preparation.
    private static let fuelToPrepare = 40_000

    /// The automaton's tables for a source.
    private struct Compiled {
        var program = Program()
        var regexes: RegexArena
        var beginnings: [LocalState]
        var sequences: [[SequencePart]] = []
        var notes: [String] = []
        /// What compilation has left of its fuel.
        var fuel = 0
    }

    /// The start of documents. The table is used under the grammar's lock alone.
    private struct Beginning: @unchecked Sendable {
        var table: MaskTable
        var config: ConfigID
        /// Number of tokens of the shortest document.
        var minimumTokens: Int

        init(_ table: MaskTable, _ states: [LocalState]) {
            self.table = table
            config = table.automaton.start(states.map { table.automaton.state($0) })
            minimumTokens = table.vocabulary.fewestTokens(table.automaton.completion(config)).count
        }
    }

    /// - Parameter fuel: the maximum amount of work for compilation, in units of about half a microsecond.
    /// - Throws: ``SchemaError`` if the source is not valid, not supported or cannot be satisfied.
    package init(
        _ source: GrammarSource, vocabulary: TokenVocabulary, options: GrammarOptions = GrammarOptions(),
        fuel: Int = Grammar.fuelToCompile
    ) throws(SchemaError) {
        self.vocabulary = vocabulary
        self.source = source
        self.options = options
        compiled = try Self.compile(source, options, fuel)
        notes = compiled.notes
        let table = Self.makeTable(compiled, vocabulary, options)
        table.automaton.regexes.setFuel(max(0, compiled.fuel))
        beginning = Mutex(Beginning(table, compiled.beginnings))
        if fuel < Self.fuelToCompile, table.automaton.regexes.isOutOfFuel {
            throw SchemaError(.tooComplex, at: "", "its shortest document takes too much work")
        }
    }

    /// Compiles a source without a vocabulary, to find out whether it can be enforced.
    package static func check(_ source: GrammarSource, fuel: Int = fuelToCompile) throws(SchemaError) {
        _ = try compile(source, GrammarOptions(), fuel)
    }

    private static func makeTable(_ compiled: Compiled, _ vocabulary: TokenVocabulary, _ options: GrammarOptions) -> MaskTable {
        compiled.regexes.markCompiled()
        compiled.regexes.setFuel(fuelToAnswer)
        let automaton = Automaton(
            compiled.program, compiled.regexes, isPretty: options.isPretty, isSpaced: options.isSpaced,
            sequences: compiled.sequences)
        return MaskTable(automaton, vocabulary)
    }

    private static func compile(
        _ source: GrammarSource, _ options: GrammarOptions, _ fuel: Int
    ) throws(SchemaError) -> Compiled {
        let arena = ConstraintArena()
        arena.regexes.setFuel(fuel)
        do throws(SchemaError) {
            var compiled = try compile(source, options, arena)
            if arena.regexes.isFull { throw SchemaError(.tooComplex, at: "", "its patterns need too many states") }
            compiled.fuel = arena.regexes.fuel / RegexArena.unit
            return compiled
        } catch {
            // Whatever could not be read then: with more fuel it may be.
            throw arena.regexes.isOutOfFuel ? SchemaError(.tooComplex, at: error.pointer, error.reason) : error
        }
    }

    private static func compile(
        _ source: GrammarSource, _ options: GrammarOptions, _ arena: ConstraintArena
    ) throws(SchemaError) -> Compiled {
        let regexes = arena.regexes
        switch source {
        case .schema(let document):
            let (root, program, notes) = try program(of: document, arena, options)
            return Compiled(
                program: program, regexes: regexes, beginnings: [LocalState(kind: .value, a: root)], notes: notes)
        case .framed(let before, let document, let after):
            let (root, program, notes) = try program(of: document, arena, options)
            let parts: [SequencePart] = [
                .language(regexes.literal(Array(before.utf8))), .value(root), .language(regexes.literal(Array(after.utf8))),
            ]
            return Compiled(
                program: program, regexes: regexes, beginnings: [LocalState(kind: .sequence, a: 0)], sequences: [parts],
                notes: notes)
        case .pattern(let pattern):
            return Compiled(regexes: regexes, beginnings: [LocalState(kind: .scalar, a: try language(pattern, regexes))])
        case .texts(let texts):
            if texts.isEmpty { throw SchemaError(.unsatisfiable, at: "", "the list of texts is empty") }
            let words = regexes.words(texts.map { Array($0.utf8) })
            return Compiled(regexes: regexes, beginnings: [LocalState(kind: .scalar, a: words)])
        case .tools(let tools):
            var root = try calls(tools.tools, arena)
            if tools.maximumCount > 1 {
                root = arena.all([
                    arena.array(ArrayConstraint(rest: root, minimum: 1, maximum: tools.maximumCount)), arena.kinds(.array),
                ])
            }
            let (program, notes) = try ProgramBuilder.build(root, arena, options)
            let parts: [SequencePart] = [
                .language(regexes.literal(Array(tools.opening.utf8))),
                .value(program.root),
                .language(regexes.literal(Array(tools.closing.utf8))),
            ]
            var beginnings = [LocalState(kind: .sequence, a: 0)]
            if tools.allowsText { beginnings.append(LocalState(kind: .scalar, a: freeText(tools.opening, regexes))) }
            return Compiled(program: program, regexes: regexes, beginnings: beginnings, sequences: [parts], notes: notes)
        }
    }

    /// The program of a schema, the type of its documents, and notes.
    private static func program(
        of document: JSONValue, _ arena: ConstraintArena, _ options: GrammarOptions
    ) throws(SchemaError) -> (root: TypeID, Program, notes: [String]) {
        var parser = SchemaParser(document, arena: arena)
        let root = try parser.parse()
        let (program, notes) = try ProgramBuilder.build(root, arena, options.adapted(to: parser))
        return (program.root, program, parser.notes + notes)
    }

    /// The constraint for calls of all tools. Errors name the tool.
    private static func calls(_ tools: [ToolGrammar.Tool], _ arena: ConstraintArena) throws(SchemaError) -> ConstraintID {
        if tools.isEmpty { throw SchemaError(.unsatisfiable, at: "", "the list of tools is empty") }
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

    /// Any text that does not begin like a call.
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

    /// A matcher at the start of a document. When the tables have become too large, it waits for new ones.
    package func matcher() -> GrammarMatcher {
        lock.withLock { _ in
            if hasLargeTables {
                // Compilation succeeded before, so it succeeds again.
                if let again = try? Self.compile(source, options, Self.fuelToCompile) { compiled = again }
                // Existing matchers keep their table.
                let new = Beginning(Self.makeTable(compiled, vocabulary, options), compiled.beginnings)
                beginning.withLock { $0 = new }
            }
            return readyMatcher()
        }
    }

    /// A matcher at the start of a document, with the tables that are there.
    func readyMatcher() -> GrammarMatcher {
        beginning.withLock { GrammarMatcher(grammar: self, table: $0.table, config: $0.config) }
    }

    /// Number of tokens of the shortest document.
    package var minimumTokenCount: Int { beginning.withLock { $0.minimumTokens } }

    private var hasLargeTables: Bool {
        let table = readyMatcher().table
        table.automaton.regexes.setFuel(Self.fuelToAnswer)
        return table.automaton.isFull || table.size > Self.maximumSize
    }

    /// Approximate number of bytes of the tables; nil while somebody uses them.
    var size: Int? {
        lock.withLockIfAvailable { _ in
            let table = readyMatcher().table
            return table.size + table.automaton.size
        }
    }

    /// Whether the tables have become so large that the source should be compiled again for new documents. False while somebody uses them.
    var isWorn: Bool { lock.withLockIfAvailable { _ in hasLargeTables } ?? false }

    /// Computes the masks of the places of an ordinary document in advance, which takes a few milliseconds, and up to 0.1
    /// seconds for large patterns: decoding then finds them. Calling it is optional; masks are the same without it.
    package func prepareMasks() {
        lock.withLock { _ in
            let (table, config) = beginning.withLock { ($0.table, $0.config) }
            table.automaton.regexes.setFuel(Self.fuelToPrepare)
            // Half of the room, so that the first matcher does not find the caches too large.
            table.prepare(from: config, maximumSize: Self.maximumSize / 2)
        }
    }

    /// The type of the documents; nil if they are not JSON.
    var rootType: TypeID? {
        guard let first = compiled.beginnings.first, first.kind == .value else { return nil }
        return first.a
    }

    func startStates(_ automaton: Automaton) -> [StateID] { compiled.beginnings.map { automaton.state($0) } }

    /// Runs `body` with a separate automaton for compact text, regardless of the options for white space.
    func withCompactAutomaton<Result>(_ body: (Automaton) -> Result) -> Result {
        lock.withLock { _ in
            compiled.regexes.setFuel(Self.fuelToAnswer)
            return body(Automaton(compiled.program, compiled.regexes, isPretty: false, sequences: compiled.sequences))
        }
    }
}

extension GrammarOptions {
    /// The options for a schema of this dialect.
    fileprivate func adapted(to parser: SchemaParser) -> GrammarOptions {
        var options = self
        if parser.integersHaveNoFraction { options.allowsZeroFraction = false }
        return options
    }
}
