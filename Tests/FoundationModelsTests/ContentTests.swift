import Foundation
import FoundationModels
import Grammar
import JSON
import TestSupport
import Testing

/// Content and schemas from untrusted sources.
struct ContentTests {
    private static func document(_ random: inout SeededGenerator, depth: Int = 0) -> String {
        switch Int.random(in: 0...(depth > 3 ? 5 : 7), using: &random) {
        case 0: return "null"
        case 1: return Bool.random(using: &random) ? "true" : "false"
        case 2: return ["0", "-1", "12.50", "1e3", "-0.0", "9223372036854775807", "1E-7"].randomElement(using: &random) ?? "0"
        case 3, 4, 5:
            let parts = ["a", "é", "日本", "\\n", "\\u00e9", "\\ud83e\\udd8a", "\\\"", "\\\\", "{", " ", "🦊"]
            let count = Int.random(in: 0...6, using: &random)
            return "\"" + (0..<count).map { _ in parts.randomElement(using: &random) ?? "" }.joined() + "\""
        case 6:
            let count = Int.random(in: 0...4, using: &random)
            return "[" + (0..<count).map { _ in document(&random, depth: depth + 1) }.joined(separator: ", ") + "]"
        default:
            let count = Int.random(in: 0...4, using: &random)
            return "{" + (0..<count).map { "\"k\($0)\": " + document(&random, depth: depth + 1) }.joined(separator: ",") + "}"
        }
    }

    @Test("[B6] complete, truncated and damaged JSON: isComplete is right, and nothing crashes") func mutations() throws {
        var random = SeededGenerator(3)
        for _ in 0..<3_000 {
            let text = Self.document(&random)
            let whole = try GeneratedContent(json: text)
            #expect(whole.isComplete)
            #expect(try GeneratedContent(json: whole.jsonString).jsonString == whole.jsonString)
            // Every prefix of a document is accepted as incomplete content.
            let cut = String(
                decoding: Array(text.utf8).prefix(Int.random(in: 0...text.utf8.count, using: &random)), as: UTF8.self)
            if !cut.unicodeScalars.contains("\u{FFFD}") { _ = try GeneratedContent(json: cut).jsonString }
            var bytes = Array(text.utf8)
            for _ in 0..<Int.random(in: 1...2, using: &random) where !bytes.isEmpty {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                bytes[place] = "\"\\{}[],:0e-tx \u{1}".utf8.randomElement(using: &random) ?? 0
            }
            let damaged = String(decoding: bytes, as: UTF8.self)
            let isDocument = (try? JSONParser.parse(damaged)) != nil
            let content = try? GeneratedContent(json: damaged)
            #expect((content?.isComplete ?? false) == isDocument, "\(damaged)")
        }
    }

    @Test("[B6] deep nesting and long numbers are errors, long texts are parsed in linear time") func hostile()
        throws
    {
        #expect(throws: GeneratedContent.ParsingError.self) { try GeneratedContent(json: String(repeating: "[", count: 100_000)) }
        #expect(throws: GeneratedContent.ParsingError.self) { try GeneratedContent(json: String(repeating: "9", count: 100_000)) }
        #expect(throws: GeneratedContent.ParsingError.self) { try GeneratedContent(json: "{\"a\": 1} x") }
        #expect(throws: GeneratedContent.ParsingError.self) { try GeneratedContent(json: "\"\\ud800x\"") }
        let long = "[" + String(repeating: "\"text\", 12, ", count: 50_000) + "null]"
        #expect(try GeneratedContent(json: long).isComplete)
    }

    @Test("[B6] Int and Decimal keep all digits; numbers that an Int cannot represent are errors") func numbers() throws {
        #expect(try GeneratedContent(json: "9223372036854775807").value(Int.self) == .max)
        #expect(try GeneratedContent(json: "-9223372036854775808").value(Int.self) == .min)
        #expect(throws: GeneratedContent.ParsingError.self) { try GeneratedContent(json: "9223372036854775808").value(Int.self) }
        #expect(throws: GeneratedContent.ParsingError.self) { try GeneratedContent(json: "1.5").value(Int.self) }
        for text in ["9007199254740992.5", "-9223372036854775809", "1.0000000000000000000001", "1e19"] {
            #expect(throws: GeneratedContent.ParsingError.self) { try GeneratedContent(json: text).value(Int.self) }
        }
        #expect(try GeneratedContent(json: "5.0").value(Int.self) == 5)
        #expect(try GeneratedContent(json: "9223372036854775807e0").value(Int.self) == .max)
        #expect(try GeneratedContent(json: "0.1").value(Decimal.self) == Decimal(1) / 10)
        #expect(try GeneratedContent(json: "1e-400").value(Decimal.self) == 0)
        #expect(GeneratedContent(5.0).jsonString == "5")
        #expect(GeneratedContent(Double.nan).jsonString == "null")
        #expect(GeneratedContent(Int.max).jsonString == "9223372036854775807")
    }

    @Test(
        "[B6] prefixes of invalid numbers and literals are errors",
        arguments: [
            "-true", "--", "01", "1.2.3", "1..", "1e5e5", "1-2", "{\"a\":1.e", "+1", ".5", "truee", "nul1", "1e5000", "-a",
        ])
    func words(text: String) {
        #expect(throws: GeneratedContent.ParsingError.self) { try GeneratedContent(json: text) }
    }

    private static func transcript(_ content: GeneratedContent) -> Transcript {
        Transcript(entries: [
            .response(.init(id: "r", assetIDs: [], segments: [.structure(.init(id: "s", schemaName: "X", content: content))]))
        ])
    }

    private static func content(_ transcript: Transcript) -> GeneratedContent? {
        guard case .response(let response)? = transcript.first, case .structure(let segment)? = response.segments.first else {
            return nil
        }
        return segment.content
    }

    @Test(
        "[A2] an encoded transcript preserves numbers of any size and the order of members",
        arguments: [
            "1e300", "-1e300", "1e-300", "5e-324", "1.7976931348623157e308", "1e127", "1e128", "1e165", "0.1", "-0.5",
            "0.30000000000000004", "12345678901234567890.5", "9223372036854775808",
            "{\"z\": 1, \"a\": [2.5, {\"y\": null, \"b\": \"x\"}]}",
        ])
    func saved(json: String) throws {
        let original = try GeneratedContent(json: json)
        let transcript = Self.transcript(original)
        let fromJSON = try JSONDecoder().decode(Transcript.self, from: JSONEncoder().encode(transcript))
        let fromList = try PropertyListDecoder().decode(Transcript.self, from: PropertyListEncoder().encode(transcript))
        for read in [fromJSON, fromList] {
            let content = try #require(Self.content(read))
            #expect(content == original)
            #expect(content.jsonString.contains("z") == json.contains("z"))
            if json.hasPrefix("{") { #expect(content.jsonString == json) }
        }
    }

    @Test("[B6] a number beyond the range of Double keeps its digits, and is the greatest finite Double as a Double")
    func beyond() throws {
        let content = try GeneratedContent(json: "1e400")
        #expect(content.isComplete && content.jsonString == "1e400")
        #expect(try content.value(Double.self) == .greatestFiniteMagnitude)
        #expect(throws: Never.self) { try JSONEncoder().encode(Self.transcript(content)) }
    }

    @Generable enum Shade { case red, redder }
    @Generable enum Shape: Equatable {
        case circle(radius: Int)
        case circleFilled(color: String)
    }
    @Generable struct Picture {
        var shade: Shade
        var shape: Shape
    }
    @Generable enum Keyword { case of(`inout`: Int, `let`: Int, `var`: Int, in: Int) }

    @Test("[B4] an enum case appears in snapshots when its name is complete, and does not change to another case")
    func growingCase() throws {
        let json = #"{"shade": "redder", "shape": {"type": "circleFilled", "color": "blue"}}"#
        for length in 1...json.utf8.count {
            let picture = try Picture.PartiallyGenerated(GeneratedContent(json: String(json.prefix(length))))
            #expect(picture.shade == nil || picture.shade == .redder)
            if case .circle? = picture.shape { Issue.record("a circle after \(json.prefix(length))") }
        }
        #expect(try Picture(GeneratedContent(json: json)).shade == .redder)
        guard case .of(1, 2, 3, 4) = try Keyword(Keyword.of(`inout`: 1, let: 2, var: 3, in: 4).generatedContent) else {
            Issue.record("keywords as labels are not supported")
            return
        }
    }

    @Generable struct Left { var right: Right? }
    @Generable struct Right { @Guide(.maximumCount(1)) var left: [Left] }
    enum A { @Generable struct Item { var a: Int } }
    enum B { @Generable struct Item { var b: Int } }
    @Generable struct Both {
        var first: A.Item
        var second: B.Item
    }
    @Generable enum One { case circle(radius: Int) }
    @Generable enum Two { case circle(diameter: Int) }
    @Generable struct Shapes {
        var one: One
        var two: Two
    }

    @Test("[B1] mutually recursive types and types of the same name have correct schemas") func names() throws {
        #expect(Left.generationSchema.debugDescription.utf8.count < 2_000)
        let both = Both.generationSchema.debugDescription
        #expect(both.contains("\"a\"") && both.contains("\"b\""))
        let shapes = Shapes.generationSchema.debugDescription
        #expect(shapes.contains("radius") && shapes.contains("diameter"))
        for schema in [Left.generationSchema, Both.generationSchema, Shapes.generationSchema] {
            let data = try JSONEncoder().encode(schema)
            let again = try JSONDecoder().decode(GenerationSchema.self, from: data)
            #expect(try JSONParser.parse(again.debugDescription).isEqual(to: JSONParser.parse(schema.debugDescription)))
        }
    }

    @Test(
        "[B5] decoding an invalid schema throws a decoding error",
        arguments: [
            "{}x", "[]", "{\"type\":5}", "{\"type\":[\"text\"]}", "{\"$ref\":\"#\"}", "{\"type\":\"object\",\"properties\":[]}",
            "{\"title\":\"T\",\"type\":\"object\",\"properties\":{},\"required\":[\"a\"],\"x-order\":[],\"additionalProperties\":false}",
            "{\"title\":\"T\",\"anyOf\":[]}", "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/Nobody\"}}",
            "{\"type\":\"string\",\"pattern\":\"(\"}", "{\"type\":\"integer\",\"minimum\":\"1\"}", "{\"allOf\":[]}",
        ])
    func hostileSchemas(text: String) {
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(GenerationSchema.self, from: Data(text.utf8)) }
    }

    @Test("[B5] dynamic schemas with circular references have a finite representation") func circles() throws {
        let a = DynamicGenerationSchema(
            name: "A", properties: [.init(name: "b", schema: .init(referenceTo: "B"), isOptional: true)])
        let b = DynamicGenerationSchema(
            name: "B", properties: [.init(name: "a", schema: .init(arrayOf: .init(referenceTo: "A"), maximumElements: 1))])
        let schema = try GenerationSchema(root: a, dependencies: [b])
        #expect(schema.debugDescription.utf8.count < 2_000)
        #expect(throws: GenerationSchema.SchemaError.self) { try GenerationSchema(root: a, dependencies: []) }
        #expect(throws: GenerationSchema.SchemaError.self) { try GenerationSchema(root: a, dependencies: [b, b]) }
    }
}
