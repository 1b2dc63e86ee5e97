import ArgumentParser
import Foundation
import Grammar
import Inference
import JSON

/// An interface for fuzzers in other languages: reads requests from standard input and writes responses to standard
/// output, one JSON object per line.
///
/// Request: `{"schema": …, "documents": ["text", …], "walks": 3, "seed": 1, "pretty": false,
/// "any_order": false}`.
/// Response: `{"error": null | "…", "kind": …, "compile_ms": 0.1, "accepted": [true, …], "walks": ["text", …],
/// "mask_errors": 0, "steps": 0}`.
struct Probe: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Compiles schemas, checks documents and walks masks at random.")
    @Option(help: "A GGUF file whose vocabulary is used; without it, tokens are single bytes.") var model: String?
    @Option(help: "Number of random tokens of a walk before the shortest completion is appended.") var length = 60
    @Option(help: "Number of mask bits compared with the automaton at each step of a walk.") var checks = 20

    func run() throws {
        let vocabulary: TokenVocabulary
        if let model {
            vocabulary = TokenVocabulary(try Tokenizer(file: try GGUFFile(path: model)))
        } else {
            vocabulary = TokenVocabulary(texts: (UInt8.min...UInt8.max).map { [$0] } + [nil], endTokens: [256])
        }
        while let line = readLine() {
            // The reason why a line is not JSON is not reported, because the input comes from a script.
            guard let question = try? JSONParser.parse(line), let schema = question["schema"] else {
                FileHandle.standardOutput.write(Data("{\"error\":\"not a request\"}\n".utf8))
                continue
            }
            FileHandle.standardOutput.write(Data(answer(schema, question, vocabulary).bytes + [0x0A]))
        }
    }

    private func answer(_ schema: JSONValue, _ question: JSONValue, _ vocabulary: TokenVocabulary) -> JSONValue {
        let start = ContinuousClock.now
        let options = GrammarOptions(
            isPretty: question["pretty"] == .bool(true), membersInAnyOrder: question["any_order"] == .bool(true))
        let grammar: Grammar
        do { grammar = try Grammar(.schema(schema), vocabulary: vocabulary, options: options) } catch {
            return .object([
                .init("error", .string("\(error)")), .init("kind", .string(error.kind.rawValue)),
                .init("compile_ms", number((ContinuousClock.now - start).microseconds / 1000)),
            ])
        }
        let compile = (ContinuousClock.now - start).microseconds / 1000
        var accepted: [JSONValue] = []
        if case .array(let documents)? = question["documents"] {
            for case .string(let text) in documents {
                var matcher = grammar.matcher()
                accepted.append(.bool(matcher.advance(text.utf8) && matcher.isComplete))
            }
        }
        var walker = Walker(vocabulary: vocabulary, checks: checks, seed: integer(question["seed"]) ?? 0)
        var walks: [JSONValue] = []
        for _ in 0..<(integer(question["walks"]) ?? 0) {
            walks.append(.string(String(decoding: walker.walk(grammar, length: length), as: UTF8.self)))
        }
        return .object([
            .init("error", .null), .init("compile_ms", number(compile)), .init("accepted", .array(accepted)),
            .init("walks", .array(walks)), .init("mask_errors", .number(DecimalNumber(walker.errors))),
            .init("steps", .number(DecimalNumber(walker.steps))),
            .init("slowest", cost(walker.costs.max { $0.milliseconds < $1.milliseconds })),
            .init("most", cost(walker.costs.max { $0.work < $1.work })),
            .init("example", .string(String(decoding: grammar.example(), as: UTF8.self))),
        ])
    }

    private func integer(_ value: JSONValue?) -> Int? { if case .number(let number)? = value { number.integer } else { nil } }
    private func cost(_ cost: Cost?) -> JSONValue {
        .array([number(cost?.milliseconds ?? 0), .number(DecimalNumber(cost?.work ?? 0))])
    }
    private func number(_ value: Double) -> JSONValue {
        .number(DecimalNumber(String(format: "%.3f", value)) ?? DecimalNumber(0))
    }
}

/// What a step of a grammar takes: the time, and the counted work that limits it.
struct Cost {
    var milliseconds: Double
    var work = 0

    private static let limit = 1 << 40

    init(_ cursor: GrammarCursor, _ step: () throws -> Void) throws {
        let start = ContinuousClock.now
        var left: Int?
        try cursor.grammar.attempt(cursor.work, upTo: Self.limit) {
            try step()
            left = cursor.work.remaining
        }
        milliseconds = (ContinuousClock.now - start).microseconds / 1000
        work = Self.limit - (left ?? Self.limit)
    }
}

/// Generates documents by random walks through masks, and compares some bits of each mask with the automaton.
struct Walker {
    let vocabulary: TokenVocabulary
    let checks: Int
    var random: UInt64
    var errors = 0
    var steps = 0
    /// What the steps of a turn take along the walks.
    var costs: [Cost] = []
    private var words: [UInt32]

    init(vocabulary: TokenVocabulary, checks: Int, seed: Int) {
        self.vocabulary = vocabulary
        self.checks = checks
        random = UInt64(bitPattern: Int64(seed)) &* 0x9E37_79B9_7F4A_7C15 | 1
        words = [UInt32](repeating: 0, count: vocabulary.maskWords)
    }

    mutating func next(below bound: Int) -> Int {
        random ^= random << 13
        random ^= random >> 7
        random ^= random << 17
        return Int(random % UInt64(max(1, bound)))
    }

    private func isAllowed(_ token: Int) -> Bool { words[token >> 5] >> UInt32(token & 31) & 1 == 1 }

    mutating func walk(_ grammar: Grammar, length: Int) -> [UInt8] {
        var matcher = grammar.matcher()
        var cursor = GrammarCursor(grammar) { [vocabulary] in vocabulary.fewestTokens($0) }
        var text: [UInt8] = []
        for step in 0... {
            steps += 1
            do {
                costs.append(
                    try Cost(cursor) {
                        _ = try cursor.next(remaining: 100_000)
                        try words.withUnsafeMutableBufferPointer { try cursor.fillMask($0) }
                    })
            } catch { errors += 1 }
            for _ in 0..<checks { compare(next(below: vocabulary.count), matcher) }
            if step >= length {
                // Every token of the shortest completion must be allowed.
                let ending = matcher.completion
                if !matcher.advance(ending) || !matcher.isComplete { errors += 1 }
                return text + ending
            }
            var choices: [Int] = []
            for (index, word) in words.enumerated() where word != 0 {
                for bit in 0..<32 where word >> UInt32(bit) & 1 == 1 { choices.append(index * 32 + bit) }
            }
            if choices.isEmpty {
                errors += 1  // a dead end
                return text
            }
            // Tokens of at most one byte are chosen at least half of the time, to reach structural characters more
            // often.
            var token = choices[next(below: choices.count)]
            if next(below: 2) == 0 {
                let short = choices.filter { (vocabulary.texts[$0]?.count ?? 0) <= 1 }
                if !short.isEmpty { token = short[next(below: short.count)] }
            }
            guard let bytes = vocabulary.texts[token] else {
                if !matcher.isComplete { errors += 1 }
                return text
            }
            do {
                costs.append(try Cost(cursor) { if try !cursor.accept(Int32(token)) { errors += 1 } })
            } catch { errors += 1 }
            if !matcher.advance(token: Int32(token)) { errors += 1 }
            text += bytes
        }
        return text
    }

    private mutating func compare(_ token: Int, _ matcher: GrammarMatcher) {
        guard vocabulary.texts[token] != nil else {
            if isAllowed(token), !vocabulary.endTokens.contains(Int32(token)) { errors += 1 }
            return
        }
        var copy = matcher
        if copy.advance(token: Int32(token)) != isAllowed(token) { errors += 1 }
    }
}
