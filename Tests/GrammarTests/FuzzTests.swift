import JSON
import TestSupport
import Testing

@testable import Grammar

/// Compares random schemas with an independent checker. `Tests/Tools/fuzz_grammar.py` does the same with millions of
/// steps.
@Suite struct FuzzTests {
    @Test func randomSchemasAndDocuments() throws {
        var random = TestRandom(seed: 2026)
        var compiled = 0
        var judged = 0
        for number in 0..<260 {
            let schema = SchemaMaker.schema(&random, depth: 2)
            let checker = SchemaChecker(schema)
            guard let grammar = try? Grammar(.schema(schema), vocabulary: Vocabularies.small) else { continue }
            compiled += 1
            for _ in 0..<3 {
                let text = try walk(grammar, &random)
                let document = try JSONParser.parse(text)
                #expect(checker.problem(document) == nil, "\(number): \(schema.text) accepts \(document.text)")
                // Both give the same result for a slightly changed document.
                let smaller = SchemaMaker.smaller(document, &random)
                judged += 1
                #expect(
                    grammar.accepts(smaller.bytes) == checker.accepts(smaller), "\(number): \(schema.text) on \(smaller.text)")
            }
        }
        #expect(compiled > 150 && judged > 450)
    }

    private func walk(_ grammar: Grammar, _ random: inout TestRandom) throws -> [UInt8] {
        var matcher = grammar.matcher()
        var text: [UInt8] = []
        for _ in 0..<25 {
            let allowed = matcher.allowed
            if allowed.isEmpty {
                Issue.record("no token is allowed after \(String(decoding: text, as: UTF8.self))")
                return text
            }
            guard let bytes = grammar.vocabulary.texts[Int(random.pick(allowed))] else { return text }
            try matcher.read(bytes)
            text += bytes
        }
        return text + matcher.completion
    }
}

/// Creates small schemas that rarely contradict themselves.
enum SchemaMaker {
    static func schema(_ random: inout TestRandom, depth: Int) -> JSONValue {
        var members: [JSONValue.Member] = []
        func add(_ name: String, _ value: JSONValue) { members.append(.init(name, value)) }
        func number(_ value: Int) -> JSONValue { .number(DecimalNumber(value)) }
        switch random.next(0...(depth > 0 ? 9 : 5)) {
        case 0:
            add("type", .string("integer"))
            let low = random.next(-20...20)
            if random.chance(60) { add("minimum", number(low)) }
            if random.chance(60) { add("maximum", number(low + random.next(0...30))) }
            if random.chance(20) { add("multipleOf", number(random.next(1...7))) }
        case 1:
            add("type", .string("number"))
            if random.chance(50) {
                add(
                    "exclusiveMinimum", .number(DecimalNumber("\(random.next(-9...9)).\(random.next(1...9))") ?? DecimalNumber(0))
                )
            }
        case 2:
            add("type", .string("string"))
            let low = random.next(0...4)
            if random.chance(50) { add("minLength", number(low)) }
            if random.chance(50) { add("maxLength", number(low + random.next(0...5))) }
            if random.chance(30) {
                add("pattern", .string(random.pick(["^[a-c]+$", "b", "^a?b*c{1,2}$", "^[^x]*$", "^(ab|cd)+$"])))
            }
        case 3: add("enum", .array([.string("ab"), .string("abc"), number(random.next(0...9)), .null, .bool(random.chance(50))]))
        case 4: add("type", .array([.string("null"), .string(random.pick(["boolean", "integer", "string"]))]))
        case 5: add("const", random.chance(50) ? .string("é\"") : number(random.next(-99...99)))
        case 6, 7:
            add("type", .string("object"))
            let names = ["a", "ab", "name", "é"].filter { _ in random.chance(60) }
            let properties = names.map { JSONValue.Member($0, schema(&random, depth: depth - 1)) }
            add("properties", .object(properties))
            add("required", .array(names.filter { _ in random.chance(40) }.map { .string($0) }))
            if random.chance(50) { add("additionalProperties", random.chance(60) ? .bool(false) : schema(&random, depth: 0)) }
            if random.chance(15) { add("maxProperties", number(random.next(2...4))) }
        case 8:
            add("type", .string("array"))
            add("items", schema(&random, depth: depth - 1))
            if random.chance(40) { add("minItems", number(random.next(0...2))) }
            if random.chance(40) { add("maxItems", number(random.next(2...4))) }
        default:
            let keyword = random.pick(["anyOf", "oneOf", "allOf"])
            add(keyword, .array((0..<random.next(1...3)).map { _ in schema(&random, depth: depth - 1) }))
            if random.chance(20) { add("not", schema(&random, depth: 0)) }
        }
        return .object(members)
    }

    /// A document with one part removed or one scalar changed.
    static func smaller(_ value: JSONValue, _ random: inout TestRandom) -> JSONValue {
        switch value {
        case .object(var members) where !members.isEmpty:
            let index = random.next(0...members.count - 1)
            if random.chance(50) {
                members.remove(at: index)
            } else {
                members[index].value = smaller(members[index].value, &random)
            }
            return .object(members)
        case .array(var items) where !items.isEmpty:
            let index = random.next(0...items.count - 1)
            if random.chance(50) { items.remove(at: index) } else { items[index] = smaller(items[index], &random) }
            return .array(items)
        case .string(let text): return .string(String(text.dropLast()))
        case .number: return .number(DecimalNumber(random.next(-30...30)))
        case .bool(let flag): return .bool(!flag)
        default: return .string("abc")
        }
    }
}
