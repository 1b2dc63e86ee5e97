import Foundation
import JSON
import Synchronization
import TestSupport
import Testing

@testable import Grammar

/// Limits of the work that a step of a grammar may do at once.
@Suite struct WorkTests {
    /// Steps that are interrupted at any point and repeated give what they give without interruption: the same masks, forced tokens and
    /// endings, on schemas of every kind.
    @Test(arguments: ["data-records", "function-signatures", "kubernetes", "manifests", "openapi", "tricky", "workflows"])
    func interruptedStepsCanBeRepeated(file: String) throws {
        let vocabulary = Vocabularies.small
        var random = TestRandom(seed: 3)
        var (busy, steps) = (0, 0)
        let url = try #require(Bundle.module.url(forResource: "Schemas/\(file)", withExtension: "json"))
        for group in try SchemaFile(url).groups.prefix(20) {
            let whole = try Grammar(.schema(group.schema), vocabulary: vocabulary)
            let limited = try Grammar(.schema(group.schema), vocabulary: vocabulary)
            var expected = GrammarCursor(whole) { greedy($0, vocabulary) }
            var cursor = GrammarCursor(limited) { greedy($0, vocabulary) }
            /// Attempts a step with more and more work, and at last without a limit.
            func repeated<Result>(_ step: (inout GrammarCursor) throws -> Result) throws -> Result {
                var limit = random.next(0...3)
                while limit < 60 {
                    do { return try limited.attempt(cursor.work, upTo: limit) { try step(&cursor) } } catch is GrammarBusy {
                        busy += 1
                    }
                    limit += random.next(1...12)
                }
                return try step(&cursor)
            }
            var remaining = whole.minimumTokenCount + random.next(0...24)
            while remaining > 0 {
                steps += 1
                let step = try expected.next(remaining: remaining)
                #expect(try repeated { try $0.next(remaining: remaining) } == step, "\(group.name)")
                var token: Int32
                switch step {
                case .end: token = -1
                case .forced(let forced): token = forced.first ?? -1
                case .few(let few): token = random.pick(few)
                case .many:
                    let allowed = expected.matcher.allowed
                    #expect(cursor.matcher.allowed == allowed, "\(group.name)")
                    token = random.pick(allowed)
                }
                if token < 0 || vocabulary.endTokens.contains(token) { break }
                if case .forced = step {
                } else {
                    let settled = try expected.validated(token, remaining: remaining)
                    #expect(try repeated { try $0.validated(token, remaining: remaining) } == settled)
                    guard let settled = try settled ?? expected.closingToken, !vocabulary.endTokens.contains(settled) else {
                        break
                    }
                    token = settled
                }
                #expect(try expected.accept(token))
                #expect(try repeated { try $0.accept(token) }, "\(group.name)")
                remaining -= 1
            }
        }
        #expect(busy > 20 && steps > busy / 20, "\(busy) interruptions of \(steps) steps")
    }

    /// What is left of a language that runs out is not taken for more, wherever its computation is interrupted: with all other numbers
    /// written, a digit that only leads to one of them again cannot follow.
    @Test func languagesThatRunOutAreRight() throws {
        let schema = #"{"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":1,"maximum":25}}"#
        var random = TestRandom(seed: 9)
        for start in 0..<3 {
            let whole = try Grammar(schema)
            let limited = try Grammar(schema)
            var expected = whole.matcher()
            var cursor = GrammarCursor(limited) { $0.map { Int32($0) } }
            let numbers = (0..<25).map { "\((start + 7 * $0) % 25 + 1)" }.joined(separator: ",")
            for byte in "[\(numbers)]".utf8 {
                for _ in 0..<6 {
                    do {
                        _ = try limited.attempt(cursor.work, upTo: random.next(0...120)) { try cursor.next(remaining: 1_000) }
                    } catch is GrammarBusy {}
                }
                #expect(cursor.matcher.allowed == expected.allowed)
                try expected.read([byte])
                #expect(try cursor.accept(Int32(byte)))
            }
            #expect(cursor.isComplete)
        }
    }

    /// While another thread uses a grammar, steps with a limit do not wait for it.
    @Test func stepsDoNotWaitForOthers() async throws {
        let grammar = try Grammar(#"{"type":"string"}"#, vocabulary: Vocabularies.small)
        var cursor = GrammarCursor(grammar) { greedy($0, Vocabularies.small) }
        let other = GrammarCursor(grammar) { greedy($0, Vocabularies.small) }
        _ = try grammar.attempt(other.work, upTo: 100) {
            #expect(throws: GrammarBusy.self) {
                _ = try grammar.attempt(cursor.work, upTo: 100) { try cursor.next(remaining: 9) }
            }
        }
        #expect(throws: Never.self) { _ = try grammar.attempt(cursor.work, upTo: 2_000) { try cursor.next(remaining: 9) } }
    }

    /// A schema that takes much work is compiled all the same, and one that takes too much is refused with its place.
    @Test func compilationHasStages() async throws {
        let limits = Mutex<[Int]>([])
        let pattern = "^(" + (0..<40).map { "a{\($0)}[ab]*x\($0)y" }.joined(separator: "|") + ")$"
        let large = try JSONParser.parse("{\"type\":\"object\",\"properties\":{\"p\":{\"pattern\":\"\(pattern)\"}}}")
        let grammar = try await SchemaCompiler.run { (fuel) throws(SchemaError) in
            let count = limits.withLock {
                $0.append(fuel); return $0.count
            }
            // As if the schema took a thousand times the work.
            return try Grammar(.schema(large), vocabulary: Vocabularies.bytes, fuel: count < 3 ? fuel / 1_000 : fuel)
        }
        #expect(grammar.accepts("{\"p\":\"x0y\"}"))
        let stages = limits.withLock { $0 }
        #expect(stages.count == 3 && stages == stages.sorted())
        await #expect(throws: SchemaError.self) {
            try await SchemaCompiler.run { (_) throws(SchemaError) in
                try Grammar(.schema(large), vocabulary: Vocabularies.bytes, fuel: 10)
            }
        }
    }

    /// Large grammars leave the cache before there are many.
    @Test func largeGrammarsLeaveTheCache() async throws {
        func source(_ letter: String) throws -> GrammarSource {
            .schema(try JSONParser.parse(#"{"type":"string","pattern":"^(\#(letter)|[ab]{0,60}x[cd]{0,60}y)*$"}"#))
        }
        let size = try #require(Grammar(source("a"), vocabulary: Vocabularies.bytes).size)
        #expect(size > 10_000)
        let cache = GrammarCache(capacity: 10, maximumBytes: size * 5 / 2)
        for letter in ["a", "b", "c"] { _ = try await cache.unpreparedGrammar(source(letter), vocabulary: Vocabularies.bytes) }
        #expect(try cache.known(source("a")) == nil && cache.known(source("b")) != nil && cache.known(source("c")) != nil)
    }

    /// A grammar whose tables have grown is compiled again for new documents, and those that are being read keep theirs.
    @Test func wornGrammarsAreReplaced() async throws {
        let cache = GrammarCache(capacity: 2)
        let source = GrammarSource.schema(try JSONParser.parse(#"{"type":"object"}"#))
        let grammar = try await cache.unpreparedGrammar(source, vocabulary: Vocabularies.bytes)
        var matcher = grammar.matcher()
        try matcher.read("{\"a\":1".utf8)
        #expect(cache.known(source) === grammar)
        var random = TestRandom(seed: 1)
        var members = 0
        while !grammar.isWorn, members < 40_000 {
            let name = String((0..<12).map { _ in Character(Unicode.Scalar(UInt8(random.next(97...122)))) })
            try matcher.read(",\"\(name)\":1".utf8)
            members += 1
        }
        #expect(grammar.isWorn, "after \(members) members")
        #expect(cache.known(source) == nil)
        #expect(try await cache.unpreparedGrammar(source, vocabulary: Vocabularies.bytes) !== grammar)
        try matcher.read("}".utf8)
        #expect(matcher.isComplete)
    }
}
