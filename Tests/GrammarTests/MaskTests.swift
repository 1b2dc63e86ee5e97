import JSON
import TestSupport
import Testing

@testable import Grammar

/// Compares masks with the automaton, token by token, and validates the documents of random walks.
@Suite struct MaskTests {
    static let schemas =
        KeywordTests.values + KeywordTests.numbers + KeywordTests.strings + KeywordTests.objects
        + KeywordTests.arrays + KeywordTests.differing + KeywordTests.combinations + KeywordTests.references + KeywordTests.found
        + KeywordTests.patterns + KeywordTests.formats + KeywordTests.published

    /// Texts with a pattern near their maximum length, where most tokens do not fit.
    static let limits = [
        "[a-c]{8}-[0-9é]{4}x", "^[^,]*$", "^(é|日本|ab)+$", "\\\\n+x", "^\\\\S+ \\\\S+$", "a(?!b).{3}z", "^([a-z]+ ){3}[a-z]+$",
        "^(?!aw:)[\\\\p{L}\\\\p{N}_.]*$", "((2[0-4]|1?\\\\d)\\\\.?\\\\b){4}", "^(?=.*[a-z])(?=.*\\\\d)[^\\\\x00-\\\\x20]+$",
        "^\\\\S([\\\\s\\\\S]*\\\\S)?(?![\\\\s\\\\S])", "[éü日]x|^[^a]*$",
    ].flatMap { pattern in
        [14, 16, 31, 80, 200].map {
            AcceptanceCase("{\"type\":\"string\",\"pattern\":\"\(pattern)\",\"maxLength\":\($0)}", [], not: [])
        }
    }

    /// Texts that begin with a run of many characters, with and without limits on their length; and numbers between bounds
    /// that only some first digits can reach.
    static let runs =
        [
            "x[0-9]{3}y", "^.+$", "^[^,]+$", "^[a-z]{1,40}é$", "^([a-e]{0,30}/)+$", "^(é|[ -~])*$", "\\\\.[^/]+/.*", "a|^b+",
            "^.{2,30}$", "^[\\u0020-\\u00FF]{1,60}/$", "^(?!a).*b",
            // Maxima that are longer than all tokens.
            "^([a-c]{0,35}/){1,28}$", "^[^,]{1,200}é?$", "^(?!ab)[a-c ]{0,60}1$", "^(a{26,30}b|(a?b?){0,50}-)$", "^.{3,60}$",
        ].flatMap { pattern in
            ["", ",\"minLength\":7", ",\"minLength\":9,\"maxLength\":12", ",\"minLength\":3,\"maxLength\":90"].map {
                AcceptanceCase("{\"type\":\"string\",\"pattern\":\"\(pattern)\"\($0)}", [], not: [])
            }
        }
        + [
            "\"const\":2", "\"const\":[0.5,120]", "\"enum\":[10,2.50,-3]", "\"minimum\":25,\"maximum\":27",
            "\"exclusiveMinimum\":19.5,\"exclusiveMaximum\":101", "\"type\":\"integer\",\"minimum\":-2,\"maximum\":1999",
            "\"type\":\"number\",\"maximum\":0.05,\"minimum\":0.01",
        ].map { AcceptanceCase("{\($0)}", [], not: []) }

    /// At every step of random walks, each bit of the mask equals the result of advancing a matcher with the token.
    @Test(arguments: [GrammarOptions(), GrammarOptions(isPretty: true), GrammarOptions(membersInAnyOrder: true)])
    func masksEqualBruteForce(_ options: GrammarOptions) throws {
        let schemas = Self.schemas + Self.limits + Self.runs + PublishedSchemas.cases
        for (index, table) in schemas.enumerated() where !table.schema.contains("3000") {
            let grammar = try Grammar(table.schema, vocabulary: Vocabularies.small, options: options)
            try compareMasks(of: grammar, steps: 12, seed: index + 1, table.schema)
        }
    }

    /// The same for texts, with a vocabulary whose trie has large subtrees at all depths.
    @Test func masksOfTextsEqualBruteForce() throws {
        for (index, table) in (Self.limits + Self.runs).enumerated() {
            let grammar = try Grammar(table.schema, vocabulary: Vocabularies.dense)
            try compareMasks(of: grammar, steps: 5, seed: index + 1, table.schema)
        }
    }

    /// What follows a name depends on the alternatives whose names it is in.
    @Test func namesOfAlternatives() throws {
        for (first, second, text, allowed, refused) in [
            (
                #""propertyNames":{"maxLength":2},"additionalProperties":{"type":"object"}"#,
                #""propertyNames":{"maxLength":4},"#, #"{"ñ"#,
                #"caa":""#, #"caa":{"a"#
            ),
            (
                #""propertyNames":{"maxLength":2},"additionalProperties":{"type":"object"}"#, #""minProperties":1,"#, "{\"",
                #"bcba":""#, #"bcba":{"a"#
            ),
            (#""properties":{"ab":false},"additionalProperties":{"type":"object"}"#, "", "{\"", #"ab":""#, #"ab":{"a"#),
        ] {
            let vocabulary = TokenVocabulary(
                texts: (UInt8.min...UInt8.max).map { [$0] } + [allowed, refused].map { Array($0.utf8) } + [nil], endTokens: [258])
            let grammar = try Grammar(
                #"{"anyOf":[{"type":"object",\#(first)},{"type":"object",\#(second)"additionalProperties":{"type":"string"}}]}"#,
                vocabulary: vocabulary)
            var matcher = grammar.matcher()
            try matcher.read(text.utf8)
            let tokens = Set(matcher.allowed)
            #expect(tokens.contains(256) && !tokens.contains(257), "\(first) \(second)")
            #expect(matcher.canFollow(256) && !matcher.canFollow(257))
        }
    }

    private func compareMasks(of grammar: Grammar, steps: Int, seed: Int, _ schema: String) throws {
        var random = TestRandom(seed: seed)
        try walk(grammar, steps: steps, &random) { matcher, allowed in
            let expected = (0..<Int32(grammar.vocabulary.count)).filter {
                grammar.vocabulary.endTokens.contains($0) ? matcher.isComplete : matcher.canFollow($0)
            }
            let different = Set(allowed).symmetricDifference(expected).prefix(5).map {
                String(decoding: grammar.vocabulary.texts[Int($0)] ?? [], as: UTF8.self).debugDescription
            }
            #expect(different.isEmpty, "\(schema)")
        }
    }

    /// The characters of a repetition whose content can be empty lead to the same state, not each to one more.
    @Test func repetitionsDoNotGrow() throws {
        let grammar = try Grammar(#"{"type":"string","pattern":"^/+([^~]*(~[01])*){1,512}$"}"#)
        var matcher = grammar.matcher()
        try matcher.read(#""/abcéa"#.utf8)
        _ = matcher.allowed
        let count = matcher.table.automaton.regexes.nodes.count
        for _ in 0..<50 { try matcher.read("abcé".utf8) }
        _ = matcher.allowed
        #expect(matcher.table.automaton.regexes.nodes.count == count)
    }

    @Test func equalSetsOfStringsAreOneLanguage() throws {
        let arena = RegexArena()
        let words = [["b"], ["a", "c"], ["a"]].map { $0.joined().utf8.map { $0 } }
        let language = arena.words(words)
        #expect(arena.words(words.reversed() + words) == language)
        #expect(arena.complement(language) == arena.complement(arena.words(words.reversed())))
        #expect(arena.words(Array(words.dropFirst())) != language)
    }

    /// Masks that were computed in advance are the same, and so is the work for them.
    @Test(arguments: [GrammarOptions(), GrammarOptions(isPretty: true), GrammarOptions(membersInAnyOrder: true)])
    func preparedMasksAreTheSame(_ options: GrammarOptions) throws {
        for (index, table) in (Self.schemas + Self.limits + PublishedSchemas.cases).enumerated() {
            let plain = try Grammar(table.schema, vocabulary: Vocabularies.small, options: options)
            let prepared = try Grammar(table.schema, vocabulary: Vocabularies.small, options: options)
            let again = try Grammar(table.schema, vocabulary: Vocabularies.small, options: options)
            prepared.prepareMasks()
            again.prepareMasks()
            #expect(prepared.matcher().table.work == again.matcher().table.work, "\(table.schema)")
            var masks: [[Int32]] = []
            var random = TestRandom(seed: index + 1)
            try walk(plain, steps: 8, &random) { _, allowed in masks.append(allowed) }
            var step = 0
            random = TestRandom(seed: index + 1)
            try walk(prepared, steps: 8, &random) { _, allowed in
                #expect(step < masks.count && allowed == masks[step], "\(table.schema), step \(step)")
                step += 1
            }
        }
    }

    /// After the preparation of an ordinary schema, next to nothing is left to compute for a document.
    @Test func ordinaryDocumentsNeedNoMoreWork() throws {
        let schema = """
            {"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["celsius","fahrenheit"]},
            "days":{"type":"integer","minimum":1,"maximum":14},"tags":{"type":"array","items":{"type":"string"}},
            "home":{"type":"object","properties":{"lat":{"type":"number"},"isOpen":{"type":"boolean"}},"required":["lat"]}},
            "required":["city","days"],"additionalProperties":false}
            """
        let document = #"{"city":"Oslo, Norway","unit":"celsius","days":7,"tags":["a","bc"],"home":{"lat":5,"isOpen":true}}"#
        func work(isPrepared: Bool) throws -> Int {
            let grammar = try Grammar(schema, vocabulary: Vocabularies.small)
            if isPrepared { grammar.prepareMasks() }
            var matcher = grammar.matcher()
            let before = matcher.table.work
            var words = [UInt32](repeating: 0, count: grammar.vocabulary.maskWords)
            for byte in document.utf8 {
                words.withUnsafeMutableBufferPointer { matcher.fillMask($0) }
                let isAllowed = matcher.advance([byte])
                #expect(isAllowed)
            }
            return matcher.table.work - before
        }
        let (prepared, plain) = (try work(isPrepared: true), try work(isPrepared: false))
        #expect(plain > 300)
        #expect(prepared * 20 < plain)
    }

    @Test func documentsOfWalksAreValid() throws {
        for (index, table) in Self.schemas.enumerated() where !table.schema.contains("3000") {
            let schema = try JSONParser.parse(table.schema)
            let checker = SchemaChecker(schema)
            for options in [GrammarOptions(), GrammarOptions(isPretty: true), GrammarOptions(membersInAnyOrder: true)] {
                let grammar = try Grammar(.schema(schema), vocabulary: Vocabularies.small, options: options)
                var random = TestRandom(seed: index + 100)
                for _ in 0..<3 {
                    let text = try walk(grammar, steps: 40, &random) { _, _ in }
                    let document = try JSONParser.parse(text)
                    #expect(checker.problem(document) == nil, "\(table.schema): \(document.text)")
                    // Escapes can be written in several ways; white space in only one.
                    if options.isPretty, !text.contains(UInt8(ascii: "\\")) {
                        #expect(String(decoding: text, as: UTF8.self) == document.prettyText)
                    }
                }
            }
        }
    }

    /// Chooses random tokens of the masks, then appends the shortest ending. Fails if no token is allowed.
    @discardableResult
    private func walk(
        _ grammar: Grammar, steps: Int, _ random: inout TestRandom, _ check: (GrammarMatcher, [Int32]) -> Void
    ) throws -> [UInt8] {
        var matcher = grammar.matcher()
        var text: [UInt8] = []
        for _ in 0..<steps {
            let allowed = matcher.allowed
            check(matcher, allowed)
            try #require(!allowed.isEmpty, "no token is allowed after \(String(decoding: text, as: UTF8.self))")
            let short = allowed.filter { (grammar.vocabulary.texts[Int($0)]?.count ?? 0) <= 1 }
            let token = random.chance(50) && !short.isEmpty ? random.pick(short) : random.pick(allowed)
            guard let bytes = grammar.vocabulary.texts[Int(token)] else {
                #expect(matcher.isComplete)
                return text
            }
            try matcher.read(bytes)
            text += bytes
        }
        let ending = matcher.completion
        try matcher.read(ending)
        #expect(matcher.isComplete)
        return text + ending
    }

    /// Items of an array that must differ, with texts of several thousand bytes: mask and `advance` agree at every byte, and
    /// what the automaton keeps grows with the text, not with its square.
    @Test func longItemsThatMustDiffer() throws {
        let schema = """
            {"type":"array","uniqueItems":true,"items":{"anyOf":[{"type":"string"},{"type":"object","properties":
            {"title":{"type":"string"},"summary":{"type":"string"}},"required":["title","summary"],
            "additionalProperties":false}]}}
            """
        func document(_ size: Int) -> String {
            let text = String(repeating: "words of a summary, ", count: size / 20)
            let object = "{\"title\":\"A title\",\"summary\":\"\(text)"
            return "[\(object)\"},\(object)x\"},\"\(text)\",\"\(text)x\",\(object)xy\"}]"
        }
        func states(_ size: Int) throws -> Int {
            let grammar = try Grammar(schema, vocabulary: Vocabularies.small)
            var matcher = grammar.matcher()
            for (index, byte) in document(size).utf8.enumerated() {
                // Every place near the ends of items, and some of the others.
                if index % 16 == 0 || byte == UInt8(ascii: "x") || byte == UInt8(ascii: "}") {
                    let allowed = Set(matcher.allowed)
                    for token in 0..<Int32(grammar.vocabulary.count) where grammar.vocabulary.texts[Int(token)] != nil {
                        #expect(allowed.contains(token) == matcher.canFollow(token), "token \(token) at byte \(index)")
                    }
                }
                try matcher.read([byte])
            }
            #expect(matcher.isComplete)
            return matcher.table.automaton.configs.count
        }
        let small = try states(1_000)
        let large = try states(4_000)
        #expect(large < 5 * small)
        // The same item again is refused where it can no longer differ: before the quote that ends its text.
        var again = try Grammar(schema, vocabulary: Vocabularies.small).matcher()
        try again.read("[{\"title\":\"\",\"summary\":\"b\"},{\"title\":\"\",\"summary\":\"b".utf8)
        #expect(!again.canFollow("\"") && again.canFollow("b"))
    }

    /// Items that differ as texts but are equal as values: the mask agrees with the automaton, and nothing traps.
    @Test func equalItemsInOtherSpellings() throws {
        for (schema, start) in [
            (
                "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"boolean\"},\"maxProperties\":2}}",
                "[{\"a\":true,\"b\":true},{\"b\":true,\"a\":t"
            ),
            (
                "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}}",
                "[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1"
            ),
        ] {
            let grammar = try Grammar(schema, vocabulary: Vocabularies.small)
            var matcher = grammar.matcher()
            try matcher.read(start.utf8)
            _ = matcher.forcedBytes
            let allowed = Set(matcher.allowed)
            for token in 0..<Int32(grammar.vocabulary.count) where grammar.vocabulary.texts[Int(token)] != nil {
                #expect(allowed.contains(token) == matcher.canFollow(token), "token \(token) after \(start)")
            }
        }
        // Long runs that earlier items have too are no recursion, and the shortest ending has no item twice.
        let strings = try Grammar(
            "{\"type\":\"array\",\"uniqueItems\":true,\"minItems\":12,\"items\":{\"type\":\"string\"}}",
            vocabulary: Vocabularies.small)
        var matcher = strings.matcher()
        try matcher.read("[\"\(String(repeating: " ", count: 20_000))x\",\"\"".utf8)
        _ = matcher.allowed
        try matcher.read(matcher.completion)
        #expect(matcher.isComplete)
    }

    @Test func largeVocabularies() throws {
        let vocabulary = Vocabularies.synthetic(150_000)
        let grammar = try Grammar(
            "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":9},\"b\":{\"pattern\":\"^[a-c]+$\",\"type\":\"string\"}},\"required\":[\"a\",\"b\"]}",
            vocabulary: vocabulary)
        for prefix in [
            "{\"a\":\"", "{\"a\":\"123456", "{\"a\":\"x\",\"b\":\"", "{\"a\":\"x\",\"b\":\"ab", "{\"a\":\"x\",\"b\":\"ab\",\"",
        ] {
            var matcher = grammar.matcher()
            try matcher.read(prefix.utf8)
            let set = Set(matcher.allowed)
            for token in stride(from: Int32(0), to: Int32(vocabulary.count), by: 29) {
                #expect(set.contains(token) == matcher.canFollow(token), "\(prefix) and token \(token)")
            }
        }
    }

    @Test func specialTokensAreNeverInside() throws {
        let grammar = try Grammar("true", vocabulary: Vocabularies.small)
        var matcher = grammar.matcher()
        try matcher.read("\"a".utf8)
        #expect(!matcher.allowed.contains(Vocabularies.small.endTokens[0]))
        try matcher.read("\"".utf8)
        #expect(matcher.allowed == Vocabularies.small.endTokens)
        #expect(!matcher.canFollow(Vocabularies.small.endTokens[0]), "the end token is not text")
        #expect(!matcher.canFollow(1 << 20))
    }

    @Test func copiesAreWaysBack() throws {
        let grammar = try Grammar("{\"enum\":[\"ab\",\"ac\"]}")
        var one = grammar.matcher()
        try one.read("\"a".utf8)
        var other = one
        try one.read("b\"".utf8)
        #expect(one.isComplete)
        let isRead = other.advance("d".utf8)
        #expect(!isRead, "a rejected byte does not change the matcher")
        try other.read("c\"".utf8)
        #expect(other.isComplete)
    }

    @Test func threadsShareAGrammar() async throws {
        let grammar = try Grammar(
            "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}", vocabulary: Vocabularies.small)
        let expected = grammar.matcher().allowed
        await withTaskGroup(of: Void.self) { group in
            for seed in 0..<4 {
                group.addTask {
                    for round in 0..<20 {
                        #expect(grammar.matcher().allowed == expected)
                        #expect(grammar.accepts("{\"k\(seed)\(round)\":\(round)}"))
                    }
                }
            }
        }
    }

    @Test func sourcesThatAreNotSchemas() throws {
        let pattern = try Grammar(.pattern("^[0-9]{2}:[0-9]{2}$"), vocabulary: Vocabularies.small)
        #expect(pattern.accepts("12:30") && !pattern.accepts("1:30"))
        let texts = try Grammar(.texts(["yes", "no", "not sure"]), vocabulary: Vocabularies.small)
        #expect(texts.accepts("no") && texts.accepts("not sure") && !texts.accepts("not") && !texts.accepts("maybe"))
        var matcher = texts.matcher()
        try matcher.read("no".utf8)
        #expect(matcher.allowed.contains(Vocabularies.small.endTokens[0]), "“no” can end here or continue")
        #expect(throws: SchemaError.self) { try Grammar(.pattern("(a"), vocabulary: Vocabularies.small) }
        #expect(throws: SchemaError.self) { try Grammar(.texts([]), vocabulary: Vocabularies.small) }
    }

    @Test func toolCalls() throws {
        let weather = try JSONParser.parse(
            "{\"properties\":{\"city\":{\"type\":\"string\"}},\"required\":[\"city\"],\"additionalProperties\":false}")
        let time = try JSONParser.parse(
            "{\"properties\":{\"zone\":{\"$ref\":\"#/$defs/z\"}},\"$defs\":{\"z\":{\"enum\":[\"UTC\"]}},\"additionalProperties\":false}"
        )
        let tools = [ToolGrammar.Tool(name: "weather", parameters: weather), .init(name: "time", parameters: time)]
        let plain = try Grammar(.tools(ToolGrammar(tools: tools)), vocabulary: Vocabularies.small)
        #expect(plain.accepts("{\"name\":\"weather\",\"arguments\":{\"city\":\"Rome\"}}"))
        #expect(plain.accepts("{\"name\":\"time\",\"arguments\":{\"zone\":\"UTC\"}}"))
        #expect(plain.accepts("Just text, with {braces}."))
        #expect(!plain.accepts("{\"name\":\"weather\",\"arguments\":{\"zone\":\"UTC\"}}"))
        #expect(!plain.accepts("{\"name\":\"other\",\"arguments\":{}}"))
        let marked = try Grammar(
            .tools(ToolGrammar(tools: tools, opening: "<tool_call>\n", closing: "\n</tool_call>", allowsText: true)),
            vocabulary: Vocabularies.small)
        #expect(marked.accepts("<tool_call>\n{\"name\":\"time\",\"arguments\":{}}\n</tool_call>"))
        #expect(marked.accepts("<tool> is not a mark") && !marked.accepts("<tool_call>\n{}"))
        let forced = try Grammar(.tools(ToolGrammar(tools: tools, allowsText: false)), vocabulary: Vocabularies.small)
        #expect(!forced.accepts("text"))
    }
}
