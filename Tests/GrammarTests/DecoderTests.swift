import JSON
import TestSupport
import Testing

@testable import Grammar

@Suite struct DecoderTests {
    static let person = """
        {"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0},"tags":{"type":"array",\
        "items":{"type":"string"}},"home":{"type":"object","properties":{"city":{"type":"string"},"zip":{"type":"string",\
        "pattern":"^[0-9]{5}$"}},"required":["city","zip"],"additionalProperties":false}},"required":["name","home"],\
        "additionalProperties":false}
        """

    /// A document whose names fill the tables ends properly, instead of being refused in the middle.
    @Test func largeDocumentsEnd() throws {
        let grammar = try Grammar("{\"type\":\"object\"}", vocabulary: Vocabularies.bytes)
        var decoder = GrammarCursor(grammar) { $0.map { Int32($0) } }
        var random = TestRandom(seed: 5)
        func accept(_ tokens: [Int32]) throws {
            for token in tokens {
                let isAccepted = try decoder.accept(token)
                #expect(isAccepted)
            }
        }
        try accept([Int32(UInt8(ascii: "{"))])
        var members = 0
        members: while members < 50_000 {
            if case .forced(let ending) = try decoder.next(remaining: 1_000_000), ending.last == Int32(UInt8(ascii: "}")) {
                try accept(Array(ending))
                break members
            }
            let name = String((0..<12).map { _ in Character(Unicode.Scalar(UInt8(random.next(97...122)))) })
            try accept(((members == 0 ? "" : ",") + "\"\(name)\":1").utf8.map { Int32($0) })
            members += 1
        }
        #expect(decoder.isComplete && members > 100 && members < 50_000, "\(members) members")
    }

    /// Regardless of the model's choices, the document is complete and valid within any budget that is sufficient for
    /// the shortest document.
    @Test func documentsFitTheirBudget() throws {
        let schema = try JSONParser.parse(Self.person)
        let checker = SchemaChecker(schema)
        let vocabulary = Vocabularies.small
        let grammar = try Grammar(.schema(schema), vocabulary: vocabulary)
        let minimum = try GrammarCursor(grammar) { greedy($0, vocabulary) }.minimumTokenCount
        #expect(minimum == grammar.minimumTokenCount)
        for extra in 0..<60 {
            var random = TestRandom(seed: extra + 1)
            var decoder = GrammarCursor(grammar) { greedy($0, vocabulary) }
            let (text, remaining) = try write(&decoder, within: minimum + extra) { allowed, decoder, remaining in
                try choose(allowed, &decoder, remaining, &random)
            }
            #expect(
                decoder.isComplete && remaining == 0, "\(extra) more than \(minimum): \(String(decoding: text, as: UTF8.self))")
            #expect(try checker.problem(JSONParser.parse(text)) == nil)
        }
    }

    /// Generates a document by calling `choose` with the allowed tokens. Returns the text and the number of remaining
    /// tokens.
    private func write(
        _ decoder: inout GrammarCursor, within budget: Int,
        choose: ([Int32], inout GrammarCursor, _ remaining: Int) throws -> Int32
    ) throws -> (text: [UInt8], remaining: Int) {
        var (text, remaining): ([UInt8], Int) = ([], budget)
        while remaining > 0 {
            let tokens: [Int32]
            switch try decoder.next(remaining: remaining) {
            case .end: remaining = 0; tokens = []
            case .forced(let forced): tokens = Array(forced)
            case .few(let few): tokens = [try choose(few, &decoder, remaining)]
            case .many: tokens = [try choose(decoder.matcher.allowed, &decoder, remaining)]
            }
            for token in tokens {
                let isRead = try decoder.accept(token)
                #expect(isRead)
                text += decoder.matcher.grammar.vocabulary.texts[Int(token)] ?? []
                remaining -= 1
            }
        }
        return (text, remaining)
    }

    /// A model that always opens another nesting level still generates a document that can be parsed.
    @Test(arguments: [
        "{\"$ref\":\"#/$defs/p\",\"$defs\":{\"p\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/p\"}}}}",
        "{\"$ref\":\"#/$defs/p\",\"$defs\":{\"p\":{\"type\":\"object\",\"properties\":{\"c\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/p\"}}},\"required\":[\"c\"],\"additionalProperties\":false}}}",
        "true",
    ])
    func nestingIsLimited(schema: String) throws {
        let vocabulary = Vocabularies.small
        let grammar = try Grammar(schema, vocabulary: vocabulary)
        var decoder = GrammarCursor(grammar) { greedy($0, vocabulary) }
        let (text, _) = try write(&decoder, within: 20_000) { allowed, _, _ in deepest(allowed, vocabulary) }
        #expect(text.count > 300 && text.count < 10_000)
        _ = try JSONParser.parse(text)
    }

    private func deepest(_ allowed: [Int32], _ vocabulary: TokenVocabulary) -> Int32 {
        func levels(_ token: Int32) -> Int { (vocabulary.texts[Int(token)] ?? []).count { $0 == 0x5B || $0 == 0x7B } }
        return allowed.max { levels($0) < levels($1) } ?? 0
    }

    /// Simulates the worst model: it chooses at random and does not prefer to end.
    private func choose(_ allowed: [Int32], _ decoder: inout GrammarCursor, _ remaining: Int, _ random: inout TestRandom)
        throws -> Int32
    {
        for _ in 0..<24 { if let token = try decoder.validated(random.pick(allowed), remaining: remaining) { return token } }
        return try decoder.closingToken ?? allowed[0]
    }

    /// Text that the grammar leaves no choice about is forced, in complete tokens.
    @Test func forcedTextIsNamed() throws {
        let grammar = try Grammar(Self.person, vocabulary: Vocabularies.small)
        var decoder = GrammarCursor(grammar) { greedy($0, Vocabularies.small) }
        guard case .forced(let first) = try decoder.next(remaining: 100) else {
            Issue.record("the beginning of the document is not forced")
            return
        }
        let text = first.flatMap { Vocabularies.small.texts[Int($0)] ?? [] }
        #expect(String(decoding: text, as: UTF8.self).hasPrefix("{\"name\":"))
    }

    /// Forced text that ended at the work limit of one call is not kept: the next call continues.
    @Test func forcedTextAtTheLimitIsNotKept() throws {
        func hard(_ last: String, _ mark: String) -> String {
            "[ab]*\(last)[ab]{12}c|" + (10..<160).map { "[ab]*c\($0)\(mark)" }.joined(separator: "|")
        }
        let pattern = "^(?=x(y|z(\(hard("a", "e"))))$)x(y|z(\(hard("b", "f"))))$"
        let matcher = try Grammar(.pattern(pattern), vocabulary: Vocabularies.bytes).matcher()
        func forced() -> String {
            String(decoding: matcher.forcedTokens { $0.map { Int32($0) } }.map { UInt8($0) }, as: UTF8.self)
        }
        var texts = [forced()]
        while texts.count < 5, texts.last != "xy" { texts.append(forced()) }
        #expect(texts.count > 1, "the first call should reach the limit")
        #expect(texts.last == "xy")
    }

    @Test func sentencesEndBeforeTheBudget() throws {
        let grammar = try Grammar("{\"type\":\"string\"}", vocabulary: Vocabularies.small)
        var decoder = GrammarCursor(grammar) { greedy($0, Vocabularies.small) }
        for byte in "\"It is so.".utf8 { _ = try decoder.accept(Int32(byte)) }
        let more = Int32(Vocabularies.small.texts.firstIndex { $0 == Array(" the".utf8) } ?? 0)
        let early = try decoder.validated(more, remaining: 200)
        #expect(early == more)
        let late = try decoder.validated(more, remaining: 8)
        #expect(late == Int32(UInt8(ascii: "\"")))
    }

    @Test func placesInDocuments() {
        var cursor = DocumentCursor()
        var seen: [String: [DocumentCursor.Step]] = [:]
        for byte in "{\"a\":{\"b\\\"\":[1,{\"c\":\"x\"},[]]},\"d\":{},\"e\":7}".utf8 {
            cursor.advance(byte)
            switch byte {
            case UInt8(ascii: "1"): seen["1"] = cursor.path
            case UInt8(ascii: "x"):
                seen["x"] = cursor.path
                #expect(cursor.isInStringValue)
            case UInt8(ascii: "7"): seen["7"] = cursor.path
            default: break
            }
        }
        let member = { (name: String) in DocumentCursor.Step.member(Array(name.utf8)) }
        #expect(seen["1"] == [member("a"), member("b\\\""), .item(0)])
        #expect(seen["x"] == [member("a"), member("b\\\""), .item(1), member("c")])
        #expect(seen["7"] == [member("e")])
        #expect(cursor.path.isEmpty && !cursor.isInString)
    }

    @Test func cacheCompilesOnce() async throws {
        let cache = GrammarCache(capacity: 2)
        let source = GrammarSource.texts(["a", "b"])
        let one = try await cache.grammar(source, vocabulary: Vocabularies.small)
        let two = try await cache.grammar(source, vocabulary: Vocabularies.small)
        #expect(one === two)
        // The same grammar for texts of a few tokens.
        #expect(try await cache.unpreparedGrammar(source, vocabulary: Vocabularies.small) === one)
        let other = try await cache.unpreparedGrammar(.texts(["c"]), vocabulary: Vocabularies.small)
        #expect(try await cache.grammar(.texts(["c"]), vocabulary: Vocabularies.small) === other)
        // The least recently used one is removed.
        _ = try await cache.unpreparedGrammar(.texts(["d"]), vocabulary: Vocabularies.small)
        #expect(try await cache.unpreparedGrammar(source, vocabulary: Vocabularies.small) !== one)
        await #expect(throws: SchemaError.self) { try await cache.grammar(.texts([]), vocabulary: Vocabularies.small) }
    }
}

/// Splits `bytes` into the longest matching tokens, from left to right.
func greedy(_ bytes: [UInt8], _ vocabulary: TokenVocabulary) -> [Int32] {
    var tokens: [Int32] = []
    var start = 0
    while start < bytes.count {
        var best = Int32(bytes[start])
        for (index, text) in vocabulary.texts.enumerated() {
            guard let text, text.count > vocabulary.texts[Int(best)]?.count ?? 0, bytes[start...].starts(with: text) else {
                continue
            }
            best = Int32(index)
        }
        tokens.append(best)
        start += vocabulary.texts[Int(best)]?.count ?? 1
    }
    return tokens
}
