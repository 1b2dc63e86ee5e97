import Foundation
import Grammar
import JSON
import ModelPrompts
import Testing

@testable import FoundationModels

/// The JSON of schemas: names, references and recursion, for schemas from code and from untrusted sources.
struct SchemaTests {
    private typealias Dynamic = DynamicGenerationSchema

    private static func read(_ json: String) throws -> GenerationSchema {
        try JSONDecoder().decode(GenerationSchema.self, from: Data(json.utf8))
    }

    /// Encodes and decodes the schema, and compiles it to a grammar.
    @discardableResult
    private static func roundTrip(_ schema: GenerationSchema) throws -> String {
        let again = try JSONDecoder().decode(GenerationSchema.self, from: JSONEncoder().encode(schema))
        #expect(again.json.isEqual(to: schema.json), "\(schema.debugDescription)\n\(again.debugDescription)")
        #expect(throws: Never.self) { try grammar(of: schema) }
        _ = SchemaDescription.text(of: schema)
        return schema.debugDescription
    }

    @discardableResult
    private static func grammar(of schema: GenerationSchema) throws -> Grammar {
        let bytes = TokenVocabulary(texts: (UInt8.min...UInt8.max).map { [$0] } + [nil], endTokens: [256])
        return try Grammar(try schema.grammarSource(), vocabulary: bytes, options: GrammarOptions(allowsZeroFraction: false))
    }

    // MARK: - Untrusted schemas

    @Test(
        "[B5] unnamed recursive definitions have a finite representation",
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
        // The generated content can be converted back.
        #expect(try Explicit(Explicit(name: "a", nick: nil).generatedContent).nick == nil)
    }

    @Test("filtering a transcript returns an array or a transcript, depending on the expected type") func filtered() {
        let transcript = Transcript(entries: [.prompt(.init(segments: [])), .response(.init(assetIDs: [], segments: []))])
        let entries: [Transcript.Entry] = transcript.filter { if case .prompt = $0 { true } else { false } }
        let shorter: Transcript = transcript.filter { if case .prompt = $0 { true } else { false } }
        func returned() -> [Transcript.Entry] { transcript.filter { _ in true } }
        #expect(entries.count == 1 && shorter.count == 1 && returned().count == 2)
    }

    @Test("[B5] references that refer only to each other are rejected")
    func endless() {
        for json in [
            ##"{"type":"array","items":{"$ref":"#/$defs/A"},"$defs":{"A":{"$ref":"#/$defs/A"}}}"##,
            ##"{"type":"null","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"}}}"##,
        ] {
            #expect(throws: DecodingError.self) { try Self.read(json) }
        }
    }

    @Test("[B5] definitions that refer twice to the next level are not expanded exponentially")
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

    @Test("[B5] a chain of 3,000 definitions and an object of 3,000 properties are decoded and encoded")
    func large() throws {
        let count = 3_000
        let links = (0..<count).map { ##""p\##($0)":{"type":"array","items":{"$ref":"#/$defs/p\##($0 + 1)"}}"## }
        let chain = try Self.read(
            ##"{"type":"array","items":{"$ref":"#/$defs/p0"},"$defs":{"## + links.joined(separator: ",")
                + ##","p\##(count)":{"type":"null"}}}"##)
        #expect(chain.debugDescription.utf8.count > count * 20)
        _ = SchemaDescription.text(of: chain)
        let names = (0..<count).map { "\"p\($0)\"" }
        let members = names.map { "\($0):{\"type\":\"null\"}" }.joined(separator: ",")
        let list = names.joined(separator: ",")
        let wide = try Self.read(
            "{\"title\":\"R\",\"type\":\"object\",\"properties\":{\(members)},\"required\":[\(list)],\"x-order\":[\(list)],\"additionalProperties\":false}"
        )
        #expect(wide.debugDescription.utf8.count > count * 20)
        _ = SchemaDescription.text(of: wide)
    }

    @Test("[B5] patterns are checked, and deeply nested patterns are errors, not crashes")
    func patterns() throws {
        let nested = String(repeating: "[", count: 50_000) + "a" + String(repeating: "]", count: 50_000)
        for pattern in [nested, String(repeating: "(", count: 50_000) + String(repeating: ")", count: 50_000)] {
            let text = "{\"type\":\"string\",\"pattern\":\"\(pattern)\"}"
            #expect(throws: DecodingError.self) { try Self.read(text) }
            let schema = try Self.read(
                "{\"title\":\"T\",\"type\":\"object\",\"properties\":{\"a\":\(text)},\"required\":[\"a\"],\"x-order\":[\"a\"],"
                    + "\"additionalProperties\":false}")
            #expect(throws: (any Error).self) { try Self.grammar(of: schema) }
        }
        for json in [
            ##"{"type":"string","pattern":"a","allOf":[{"pattern":"["}]}"##,
            ##"{"type":"array","items":{"$ref":"http://somewhere"}}"##,
        ] {
            #expect(throws: DecodingError.self) { try Self.read(json) }
        }
        // A property of any type is written in a form that can be read.
        struct Anything: Generable {
            static var generationSchema: GenerationSchema {
                GenerationSchema(type: Self.self, properties: [.init(name: "any", type: GeneratedContent.self)])
            }
            let generatedContent: GeneratedContent
            init(_ content: GeneratedContent) { generatedContent = content }
        }
        let anything = try JSONDecoder().decode(
            GenerationSchema.self, from: JSONEncoder().encode(Anything.generationSchema))
        #expect(anything.json == Anything.generationSchema.json)
        let constant = try Self.read(##"{"const":"b","pattern":"b"}"##)
        #expect(constant.debugDescription.contains("pattern"))
    }

    @Test(
        "[B5] numbers that only Double can represent are valid bounds", arguments: ["1e300", "-1e300", "5e-324", "1e128", "0.1"])
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

    @Test("[B1] unions of the same name in different types remain different, also in an encoded transcript")
    func unions() throws {
        let text = try Self.roundTrip(Pair.generationSchema)
        #expect(text.contains("Kind2"))
        let format = Transcript.ResponseFormat(schema: Pair.generationSchema)
        let transcript = Transcript(entries: [.prompt(.init(segments: [], responseFormat: format))])
        let saved = try JSONEncoder().encode(transcript)
        #expect(try JSONDecoder().decode(Transcript.self, from: saved).count == 1)
    }

    /// Types with manually built schemas.
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
        // This does not throw, because both names are defined.
        return (try? GenerationSchema(root: root, dependencies: [item])) ?? Int.generationSchema
    }

    @Test("[B5] a name is resolved in its own schema, even if other schemas define the same name")
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

    @Test("[B5] any string is a valid name", arguments: ["", "#", "a/b", "a~b", "100%", "%25", "ä 日本 🦊", "text", "Root\"s"])
    func names(name: String) throws {
        let schema = try GenerationSchema(
            root: Dynamic(name: "Root", properties: [.init(name: "x", schema: .init(referenceTo: name))]),
            dependencies: [Dynamic(name: name, properties: [.init(name: "inner", schema: .init(type: Int.self))])])
        let text = try Self.roundTrip(schema)
        #expect(text.contains("inner"))
        // A root with this name that refers to itself.
        let own = try GenerationSchema(
            root: Dynamic(
                name: name, properties: [.init(name: "x", schema: .init(referenceTo: name), isOptional: true)]), dependencies: [])
        #expect(try Self.roundTrip(own).contains("\"#\""))
    }

    @Test("[B5] a root that refers to a type or to a named schema is that schema")
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
        // The schema of a type can also be referred to by its name.
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
    func selfReferentialArray() throws {
        try Self.roundTrip(Tree.generationSchema)
        try Self.roundTrip(Forest.generationSchema)
        #expect(Tree.generationSchema.name == "Array<Array<Tree>>")
    }

    @Test("[B5] two properties of the same name are an error in generation, but can be encoded")
    func twice() throws {
        let schema = GenerationSchema(
            type: HasA.self, properties: [.init(name: "a", type: Int.self), .init(name: "a", type: String.self)])
        #expect(throws: LanguageModelError.self) { try Self.grammar(of: schema) }
        #expect(throws: Never.self) {
            try JSONDecoder().decode(GenerationSchema.self, from: JSONEncoder().encode(schema))
        }
    }
}
