import Foundation
import Grammar
import Testing

@testable import FoundationModels

/// What schemas are written as: names, references and circles, in code and from outside.
struct SchemaTests {
    private typealias Dynamic = DynamicGenerationSchema

    private static func read(_ json: String) throws -> GenerationSchema {
        try JSONDecoder().decode(GenerationSchema.self, from: Data(json.utf8))
    }

    /// Encodes the schema and reads it again, and makes a grammar of it.
    @discardableResult
    private static func roundTrip(_ schema: GenerationSchema) throws -> String {
        let again = try JSONDecoder().decode(GenerationSchema.self, from: JSONEncoder().encode(schema))
        #expect(again.json.isEqual(to: schema.json), "\(schema.debugDescription)\n\(again.debugDescription)")
        #expect(throws: Never.self) { try grammar(of: schema) }
        _ = SchemaSketch.text(of: schema)
        return schema.debugDescription
    }

    @discardableResult
    private static func grammar(of schema: GenerationSchema) throws -> Grammar {
        let bytes = TokenVocabulary(texts: (UInt8.min...UInt8.max).map { [$0] } + [nil], endTokens: [256])
        return try Grammar(try schema.grammarSource(), vocabulary: bytes, options: GrammarOptions(allowsZeroFraction: false))
    }

    // MARK: - From outside

    @Test(
        "[B5] definitions without a name that contain themselves are written in finite room",
        arguments: [
            ##"{"type":"array","items":{"$ref":"#/$defs/A"},"$defs":{"A":{"type":"array","items":{"$ref":"#/$defs/A"}}}}"##,
            ##"{"type":"array","items":{"$ref":"#/$defs/A"},"$defs":{"A":{"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#/$defs/A"}}]}}}"##,
            ##"{"type":"array","items":{"$ref":"#/$defs/A"},"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"type":"array","items":{"$ref":"#/$defs/A"}}}}"##,
            ##"{"type":"array","items":{"$ref":"#"}}"##,
        ])
    func circles(json: String) throws {
        let text = try Self.roundTrip(try Self.read(json))
        #expect(text.utf8.count < 2 * json.utf8.count + 100)
    }

    @Generable(representNilExplicitlyInGeneratedContent: true) struct Explicit { var name: String; var nick: String? }
    @Generable struct Implicit { var name: String; var nick: String? }

    @Test("[B1] writing null for nil changes values, not the schema") func explicitNil() throws {
        func text(_ schema: GenerationSchema, _ name: String) throws -> String {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            return try String(decoding: encoder.encode(schema), as: UTF8.self).replacing(name, with: "T")
        }
        let schema = try text(Explicit.generationSchema, "Explicit")
        #expect(try schema == text(Implicit.generationSchema, "Implicit"))
        #expect(!schema.contains("null"))
        #expect(Explicit(name: "a", nick: nil).generatedContent.jsonString.contains("null"))
        #expect(!Implicit(name: "a", nick: nil).generatedContent.jsonString.contains("null"))
        // Values that were written can be read.
        #expect(try Explicit(Explicit(name: "a", nick: nil).generatedContent).nick == nil)
    }

    @Test("filtering a transcript gives entries where a list of them is wanted, and a transcript where that is") func filtered() {
        let transcript = Transcript(entries: [.prompt(.init(segments: [])), .response(.init(assetIDs: [], segments: []))])
        let entries: [Transcript.Entry] = transcript.filter { if case .prompt = $0 { true } else { false } }
        let shorter: Transcript = transcript.filter { if case .prompt = $0 { true } else { false } }
        func returned() -> [Transcript.Entry] { transcript.filter { _ in true } }
        #expect(entries.count == 1 && shorter.count == 1 && returned().count == 2)
    }

    @Test("[B5] references that lead only to each other are refused")
    func endless() {
        for json in [
            ##"{"type":"array","items":{"$ref":"#/$defs/A"},"$defs":{"A":{"$ref":"#/$defs/A"}}}"##,
            ##"{"type":"null","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"}}}"##,
        ] {
            #expect(throws: DecodingError.self) { try Self.read(json) }
        }
    }

    @Test("[B5] definitions that double at each level stay small")
    func doubling() throws {
        let levels = (0..<40).map { level in
            let next = ##"{"$ref":"#/$defs/p\##(level + 1)"}"##
            return ##""p\##(level)":{"anyOf":[\##(next),\##(next)]}"##
        }
        let json =
            ##"{"type":"array","items":{"$ref":"#/$defs/p0"},"$defs":{"##
            + levels.joined(separator: ",") + ##","p40":{"type":"null"}}}"##
        let text = try Self.read(json).debugDescription
        #expect(text.utf8.count < 10_000)
    }

    @Test("[B5] a chain of 3,000 definitions and an object of 3,000 properties are read and written")
    func large() throws {
        let count = 3_000
        let links = (0..<count).map { ##""p\##($0)":{"type":"array","items":{"$ref":"#/$defs/p\##($0 + 1)"}}"## }
        let chain = try Self.read(
            ##"{"type":"array","items":{"$ref":"#/$defs/p0"},"$defs":{"## + links.joined(separator: ",")
                + ##","p\##(count)":{"type":"null"}}}"##)
        #expect(chain.debugDescription.utf8.count > count * 20)
        _ = SchemaSketch.text(of: chain)
        let names = (0..<count).map { "\"p\($0)\"" }
        let members = names.map { "\($0):{\"type\":\"null\"}" }.joined(separator: ",")
        let list = names.joined(separator: ",")
        let wide = try Self.read(
            "{\"title\":\"R\",\"type\":\"object\",\"properties\":{\(members)},\"required\":[\(list)],\"x-order\":[\(list)],\"additionalProperties\":false}"
        )
        #expect(wide.debugDescription.utf8.count > count * 20)
        _ = SchemaSketch.text(of: wide)
    }

    @Test("[B5] patterns from outside are checked, and ones nested without end do not end the program")
    func patterns() throws {
        let nested = String(repeating: "[", count: 50_000) + "a" + String(repeating: "]", count: 50_000)
        for pattern in [nested, String(repeating: "(", count: 50_000) + String(repeating: ")", count: 50_000)] {
            let schema = try Self.read("{\"type\":\"string\",\"pattern\":\"\(pattern)\"}")
            #expect(throws: (any Error).self) { try Self.grammar(of: schema) }
        }
        for json in [
            ##"{"type":"string","pattern":"a","allOf":[{"pattern":"["}]}"##,
            ##"{"type":"string","pattern":"a","allOf":[{"type":"string"}]}"##,
            ##"{"type":"string","enum":["a",1]}"##, ##"{"type":"array","items":{"$ref":"http://somewhere"}}"##,
        ] {
            #expect(throws: DecodingError.self) { try Self.read(json) }
        }
        let constant = try Self.read(##"{"const":"a","pattern":"b"}"##)
        #expect(constant.debugDescription.contains("pattern"))
    }

    @Test(
        "[B5] numbers that only a Double holds are bounds like others", arguments: ["1e300", "-1e300", "5e-324", "1e128", "0.1"])
    func bounds(bound: String) throws {
        let schema = try Self.read("{\"type\":\"number\",\"minimum\":\(bound)}")
        let data = try JSONEncoder().encode(schema)
        let again = try JSONDecoder().decode(GenerationSchema.self, from: data)
        guard case .number(let minimum)? = again.json["minimum"] else {
            Issue.record("no minimum: \(again.debugDescription)")
            return
        }
        #expect(minimum == DecimalNumber(bound))
    }

    // MARK: - Names

    enum A { @Generable struct Item { var a: Int } }
    enum B { @Generable struct Item { var b: Int } }
    @Generable struct HasA { var item: A.Item }
    @Generable struct HasB { var item: B.Item }
    @Generable struct Left {
        var kind: Kind
        @Generable enum Kind { case text(String), number(Int) }
    }
    @Generable struct Right {
        var kind: Kind
        @Generable enum Kind { case text(String), flag(Bool) }
    }
    @Generable struct Pair {
        var left: Left
        var right: Right
    }

    @Test("[B1] unions of one name in different types stay apart, also when a transcript is saved")
    func unions() throws {
        let text = try Self.roundTrip(Pair.generationSchema)
        #expect(text.contains("Kind2"))
        let format = Transcript.ResponseFormat(schema: Pair.generationSchema)
        let transcript = Transcript(entries: [.prompt(.init(segments: [], responseFormat: format))])
        let saved = try JSONEncoder().encode(transcript)
        #expect(try JSONDecoder().decode(Transcript.self, from: saved).count == 1)
    }

    /// Types whose schemas are put together by hand.
    private struct First: Generable {
        static var generationSchema: GenerationSchema { SchemaTests.withItem("First", Dynamic(type: Int.self)) }
        let generatedContent: GeneratedContent
        init(_ content: GeneratedContent) { generatedContent = content }
    }
    private struct Second: Generable {
        static var generationSchema: GenerationSchema { SchemaTests.withItem("Second", Dynamic(type: String.self)) }
        let generatedContent: GeneratedContent
        init(_ content: GeneratedContent) { generatedContent = content }
    }

    private static func withItem(_ name: String, _ value: Dynamic) -> GenerationSchema {
        let root = Dynamic(name: name, properties: [.init(name: "item", schema: .init(referenceTo: "Item"))])
        let item = Dynamic(name: "Item", properties: [.init(name: "value", schema: value)])
        // Both names are there.
        return (try? GenerationSchema(root: root, dependencies: [item])) ?? Int.generationSchema
    }

    @Test("[B5] a name means what it means in its own schema, whatever is called the same in others")
    func scopes() throws {
        let both = try GenerationSchema(
            root: Dynamic(
                name: "Both",
                properties: [
                    .init(name: "first", schema: .init(type: First.self)),
                    .init(name: "second", schema: .init(type: Second.self)),
                    .init(name: "hasA", schema: .init(type: HasA.self)), .init(name: "item", schema: .init(referenceTo: "Item")),
                ]),
            dependencies: [Dynamic(name: "Item", properties: [.init(name: "own", schema: .init(type: Bool.self))])])
        let json = both.json
        func target(_ path: String...) -> JSONValue? {
            var value: JSONValue? = json
            for name in path {
                value = value?["properties"]?[name]
                if case .string(let reference)? = value?["$ref"] {
                    value = json["$defs"]?[SchemaPointer.unescaped(reference.dropFirst(8))]
                }
            }
            return value
        }
        #expect(target("first", "item", "value")?["type"] == .string("integer"))
        #expect(target("second", "item", "value")?["type"] == .string("string"))
        #expect(target("hasA", "item", "a")?["type"] == .string("integer"))
        #expect(target("item", "own")?["type"] == .string("boolean"))
        try Self.roundTrip(both)
    }

    @Test("[B5] names of any text are names", arguments: ["", "#", "a/b", "a~b", "100%", "%25", "ä 日本 🦊", "text", "Root\"s"])
    func names(name: String) throws {
        let schema = try GenerationSchema(
            root: Dynamic(name: "Root", properties: [.init(name: "x", schema: .init(referenceTo: name))]),
            dependencies: [Dynamic(name: name, properties: [.init(name: "inner", schema: .init(type: Int.self))])])
        let text = try Self.roundTrip(schema)
        #expect(text.contains("inner"))
        // The root by such a name, in itself.
        let own = try GenerationSchema(
            root: Dynamic(
                name: name, properties: [.init(name: "x", schema: .init(referenceTo: name), isOptional: true)]), dependencies: [])
        #expect(try Self.roundTrip(own).contains("\"#\""))
    }

    @Test("[B5] a root that is a type, or the name of a schema, is that schema")
    func roots() throws {
        let type = try GenerationSchema(root: Dynamic(type: HasA.self), dependencies: [])
        #expect(type.json.isEqual(to: HasA.generationSchema.json))
        try Self.roundTrip(type)
        let item = Dynamic(
            name: "Item", properties: [.init(name: "next", schema: .init(referenceTo: "Item"), isOptional: true)])
        let named = try GenerationSchema(root: .init(referenceTo: "Item"), dependencies: [item])
        #expect(try Self.roundTrip(named).hasPrefix("{\"title\":\"Item\""))
        let list = try GenerationSchema(root: Dynamic(type: [HasA].self), dependencies: [])
        try Self.roundTrip(list)
        // The schema of a type that is given by type may be referred to by its name.
        let twice = Dynamic(
            name: "Root",
            properties: [
                .init(name: "a", schema: .init(type: HasA.self)), .init(name: "b", schema: .init(referenceTo: "HasA")),
            ])
        try Self.roundTrip(try GenerationSchema(root: twice, dependencies: []))
    }

    /// A list of itself.
    fileprivate struct Tree: Generable {
        static var generationSchema: GenerationSchema { [Tree].generationSchema }
        let generatedContent: GeneratedContent
        init(_ content: GeneratedContent) { generatedContent = content }
    }
    @Generable fileprivate struct Forest { var trees: [Tree] }

    @Test("[B1] a type that is a list of itself has a schema")
    func lending() throws {
        try Self.roundTrip(Tree.generationSchema)
        try Self.roundTrip(Forest.generationSchema)
        #expect(Tree.generationSchema.name == "Array<Array<Tree>>")
    }

    @Test("[B5] two properties of one name are an error when something is to be generated, and can be saved all the same")
    func twice() throws {
        let schema = GenerationSchema(
            type: HasA.self, properties: [.init(name: "a", type: Int.self), .init(name: "a", type: String.self)])
        #expect(throws: LanguageModelError.self) { try Self.grammar(of: schema) }
        #expect(throws: Never.self) {
            try JSONDecoder().decode(GenerationSchema.self, from: JSONEncoder().encode(schema))
        }
    }
}
