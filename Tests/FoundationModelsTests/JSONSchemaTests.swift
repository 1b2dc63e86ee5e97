import Foundation
import Grammar
import Inference
import JSON
import ModelPrompts
import Testing

@testable import FoundationModels

/// JSON Schemas that are not in the form of Apple's framework: those of people, servers and generators.
struct JSONSchemaTests {
    private static func read(_ json: String) throws -> GenerationSchema {
        try JSONDecoder().decode(GenerationSchema.self, from: Data(json.utf8))
    }

    private static let bytes = TokenVocabulary(texts: (UInt8.min...UInt8.max).map { [$0] } + [nil], endTokens: [256])

    /// Whether a grammar accepts a document as a whole.
    private static func accepts(_ source: GrammarSource, _ document: String) throws -> Bool {
        var matcher = try Grammar(source, vocabulary: bytes).matcher()
        return matcher.advance(document.utf8) && matcher.isComplete
    }

    @Test(
        "[B5] what a decoded schema says is enforced and encoded again",
        arguments: [
            (##"{"type":"string","maxLength":2}"##, ##""ab""##, ##""abc""##),
            (##"{"type":"string","format":"date"}"##, ##""2024-02-29""##, ##""2023-02-29""##),
            (##"{"type":"integer","exclusiveMinimum":3}"##, "4", "3"), (##"{"type":"integer","multipleOf":5}"##, "15", "16"),
            (##"{"type":"integer","minimum":1.5}"##, "2", "1"),
            (##"{"type":"string","not":{"const":"x"}}"##, ##""y""##, ##""x""##),
            (##"{"type":["string","null"]}"##, "null", "1"), (##"{"enum":["a",1]}"##, "1", "2"),
            (##"{"type":"string","enum":["a",1]}"##, ##""a""##, "1"),
            (##"{"type":"string","pattern":"a","allOf":[{"type":"string","maxLength":2}]}"##, ##""xa""##, ##""xxa""##),
            (##"{"type":"object","additionalProperties":{"type":"integer"}}"##, ##"{"a":1,"b":2}"##, ##"{"a":"1"}"##),
            (
                ##"{"type":"object","patternProperties":{"^k":{"type":"null"}},"additionalProperties":false}"##,
                ##"{"k1":null}"##,
                ##"{"x":null}"##
            ),
            // A required property without a description and a property without a type have any value.
            (
                ##"{"type":"object","properties":{"a":{"type":"string"}},"required":["a","z"]}"##,
                ##"{"a":"x","z":[1,{"q":null}]}"##,
                ##"{"a":"x"}"##
            ),
            (
                ##"{"type":"object","properties":{"a":{"description":"Any value"}},"required":["a"],"additionalProperties":false}"##,
                ##"{"a":{"b":[]}}"##, "{}"
            ),
            (
                ##"{"title":"T","type":"object","properties":{"a":{}},"required":["a"],"x-order":["a"],"additionalProperties":false}"##,
                ##"{"a":[true]}"##, "{}"
            ),
            (##"{"$ref":"#/definitions/A","definitions":{"A":{"type":"boolean"}}}"##, "true", "1"),
            // Only in the form of types, which have objects, a pattern matches the whole string.
            (##"{"type":"array","items":{"type":"string","pattern":"^INV-"}}"##, ##"["INV-1"]"##, ##"["1"]"##),
            (
                ##"{"$defs":{"A":{"type":"string","pattern":"b"}},"type":"array","items":{"$ref":"#/$defs/A"}}"##, ##"["abc"]"##,
                ##"["a"]"##
            ),
            (
                ##"{"title":"T","type":"object","properties":{"a":{"type":"array","items":{"type":"string","pattern":"b"}}},"##
                    + ##""required":["a"],"x-order":["a"],"additionalProperties":false}"##, ##"{"a":["b"]}"##, ##"{"a":["abc"]}"##
            ),
        ])
    func kept(json: String, valid: String, invalid: String) throws {
        let schema = try Self.read(json)
        let again = try JSONDecoder().decode(GenerationSchema.self, from: JSONEncoder().encode(schema))
        for schema in [schema, again] {
            let source = try schema.grammarSource()
            #expect(try Self.accepts(source, valid), "\(valid)")
            #expect(try !Self.accepts(source, invalid), "\(invalid)")
        }
        #expect(again.json.isEqual(to: schema.json))
        _ = SchemaDescription.text(of: schema)
    }

    @Test("[B5] a schema that cannot be enforced is refused with the reason and its place")
    func refused() {
        for (json, reason) in [
            (##"{"properties":{"a":{"$ref":"other.json"}}}"##, "/properties/a/$ref uses an unsupported feature: the reference"),
            (##"{"properties":{"a":{"type":"strng"}}}"##, "/properties/a/type is not valid: 'strng' is not a type"),
            (##"{"type":"string","minLength":3,"maxLength":2}"##, "cannot be satisfied"),
            (##"{"type":"object","required":["a"],"additionalProperties":false}"##, "cannot be satisfied"),
            (##"{"items":{"pattern":"(a)\\1"}}"##, "/items/pattern uses an unsupported feature"),
        ] {
            #expect("\(json)") { try Self.read(json) } throws: { error in
                guard case DecodingError.dataCorrupted(let context) = error else { return false }
                return context.debugDescription.contains(reason)
            }
        }
    }

    @Test("[B5] optional properties of a JSON Schema are left out, and not null")
    func optional() throws {
        let schema = try Self.read(
            ##"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"],"additionalProperties":false}"##
        )
        guard case .schema(let json) = try schema.grammarSource() else { return }
        let response = GrammarSource.schema(schema.forResponse(json))
        #expect(try Self.accepts(response, ##"{"a":"x"}"##) && Self.accepts(response, ##"{"a":"x","b":1}"##))
        #expect(try !Self.accepts(response, ##"{"a":"x","b":null}"##))
        #expect(!SchemaDescription.request(for: schema.forResponse(schema.json)).contains("null"))
    }

    @Test("[B5] the order of properties survives encoding")
    func order() throws {
        let json = try JSONParser.parse(
            ##"{"type":"object","properties":{"z":{"type":"object","properties":{"b":{},"a":{}}},"a":{"maxLength":3}},"required":["z"]}"##
        )
        let schema = try GenerationSchema(jsonSchema: json)
        let again = try JSONDecoder().decode(GenerationSchema.self, from: JSONEncoder().encode(schema))
        for schema in [schema, again] {
            #expect(try Self.accepts(schema.grammarSource(), ##"{"z":{"b":1,"a":2},"a":"x"}"##))
            #expect(try !Self.accepts(schema.grammarSource(), ##"{"z":{"a":1,"b":2},"a":"x"}"##))
            #expect(try !Self.accepts(schema.grammarSource(), ##"{"a":"x","z":{}}"##))
            #expect(SchemaDescription.text(of: schema) == ##"{"z": {"b"?: anything, "a"?: anything}, "a"?: anything}"##)
        }
    }

    /// A type whose schema comes from JSON.
    private struct Event: Generable {
        static var generationSchema: GenerationSchema {
            let json =
                ##"{"type":"object","properties":{"day":{"$ref":"#/definitions/Day"},"next":{"$ref":"#"}},"required":["day"],"##
                + ##""additionalProperties":false,"definitions":{"Day":{"type":"string","format":"date"}}}"##
            // The test fails if the schema is another one.
            return (try? JSONSchemaTests.read(json)) ?? Int.generationSchema
        }
        let generatedContent: GeneratedContent
        init(_ content: GeneratedContent) { generatedContent = content }
    }

    private struct Calendar: Generable {
        static var generationSchema: GenerationSchema {
            GenerationSchema(
                type: Self.self, properties: [.init(name: "first", type: Event.self), .init(name: "others", type: [Event].self)])
        }
        let generatedContent: GeneratedContent
        init(_ content: GeneratedContent) { generatedContent = content }
    }

    @Test("[B5] a JSON Schema within another schema keeps its references")
    func nested() throws {
        let schema = Calendar.generationSchema
        let again = try JSONDecoder().decode(GenerationSchema.self, from: JSONEncoder().encode(schema))
        for schema in [schema, again] {
            let source = try schema.grammarSource()
            #expect(
                try Self.accepts(
                    source, ##"{"first":{"day":"2024-02-29","next":{"day":"2025-01-01"}},"others":[{"day":"2025-01-02"}]}"##))
            #expect(try !Self.accepts(source, ##"{"first":{"day":"tomorrow"},"others":[]}"##))
            #expect(try !Self.accepts(source, ##"{"first":{"day":"2024-02-29","next":{}},"others":[]}"##))
        }
    }

    @Test("references of a moved schema lead to the same parts, also those in unknown keywords and below identifiers")
    func moved() throws {
        let schema = try JSONParser.parse(
            ##"{"type":"object","properties":{"a":{"$ref":"#/components/A"},"b":{"$ref":"#/properties/a"},"##
                + ##""own":{"$id":"http://example.com/own","$ref":"#/$defs/T","$defs":{"T":{"type":"boolean"}}}},"##
                + ##""components":{"A":{"properties":{"n":{"$ref":"#/components/list/0"},"next":{"$ref":"#/components/A"}}},"##
                + ##""list":[{"type":"integer"}],"note":{"$ref":"#/data"}}}"##)
        let moved = schema.moved(to: "/$defs/X")
        #expect(moved["properties"]?["own"] == schema["properties"]?["own"])
        #expect(moved["components"]?["note"] == schema["components"]?["note"])
        #expect(moved["properties"]?["b"]?["$ref"] == .string("#/$defs/X/properties/a"))
        #expect(moved["components"]?["A"]?["properties"]?["n"]?["$ref"] == .string("#/$defs/X/components/list/0"))
        let document = JSONValue.object([
            .init("$ref", .string("#/$defs/X")), .init("$defs", .object([.init("X", moved)])),
        ])
        for source in [GrammarSource.schema(schema), .schema(document)] {
            #expect(try Self.accepts(source, ##"{"a":{"n":1,"next":{"n":2}},"b":{"n":3},"own":true}"##))
            for wrong in [##"{"a":{"n":"1"}}"##, ##"{"a":{"next":{"n":"1"}}}"##, ##"{"b":{"n":"1"}}"##, ##"{"own":1}"##] {
                #expect(try !Self.accepts(source, wrong), "\(wrong)")
            }
        }
    }

    @Test(
        "the description of a schema for the prompt says what its values are",
        arguments: [
            (##"{"type":"object","additionalProperties":{"type":"integer"}}"##, "{text: integer, …}"),
            (##"{"properties":{"a":{"type":"string"}},"required":["a","z"]}"##, ##"{"a": text, "z": anything}"##),
            (
                ##"{"$ref":"#/definitions/P","definitions":{"P":{"type":"object","properties":{"n":{"type":["string","null"]}}}}}"##,
                "P\nP = {\"n\"?: text or null}"
            ),
            (##"{"type":"string","pattern":"a","allOf":[{"pattern":"b"}]}"##, "text"),
            (##"{"oneOf":[{"type":"string"},{"type":"integer","minimum":1,"maximum":3}]}"##, "text or integer 1...3"),
            (
                ##"{"type":"object","properties":{"a":{"type":"null"}},"allOf":[{"properties":{"b":{"type":"boolean"}}}]}"##,
                ##"{"a"?: null} and {"b"?: true or false}"##
            ), ("true", "anything"), (##"{"type":"object"}"##, "{}"),
        ])
    func described(json: String, text: String) throws {
        #expect(try SchemaDescription.text(of: Self.read(json)) == text)
    }

    @Test("the description of a schema whose parts have many types is not longer than the schema")
    func describedInLinearTime() throws {
        var json = "{}"
        for _ in 0..<60 { json = ##"{"type":["object","object","array"],"properties":{"a":\##(json)},"required":["a","b"]}"## }
        #expect(try SchemaDescription.request(for: JSONParser.parse(json)).utf8.count < 10_000)
    }

    // MARK: - Tools

    private static func tool(_ parameters: String) throws -> ChatTool {
        ChatTool(Transcript.ToolDefinition(name: "find", description: "Finds.", parameters: try read(parameters)))
    }

    @Test("[C1] parameters without a type or without a description are any JSON value, in calls of every format")
    func parameters() throws {
        let tool = try Self.tool(
            ##"{"title":"Arguments","$schema":"http://json-schema.org/draft-07/schema#","properties":{"city":{},"title":{"description":"A title"}},"required":["city","day"]}"##
        )
        // The formats that write all arguments as an object.
        let call = GrammarSource.framed(before: " ", schema: tool.parameters, after: "")
        let arguments = ##"{"city":["Rome",{"x":1}],"title":"a","day":{"month":null}}"##
        #expect(try Self.accepts(call, " " + arguments))
        for wrong in ["1", ##"{"city":"Rome"}"##, ##"["city","day"]"##] {
            #expect(try !Self.accepts(call, " " + wrong), "\(wrong)")
        }
        // Other formats write the arguments that are described.
        #expect(tool.parameters["properties"]?["day"] == .object([]))
        // The prompt has the property that is called like a keyword, and not the keyword.
        let prompt = try #require(tool.promptParameters)
        #expect(
            prompt["title"] == nil && prompt["$schema"] == nil
                && prompt["properties"]?["title"]?["description"] == .string("A title"))
        let calls = GrammarSource.tools(
            ToolGrammar(tools: [.init(name: "find", parameters: tool.parameters)], allowsText: false))
        #expect(try Self.accepts(calls, ##"{"name":"find","arguments":\##(arguments)}"##))
        let content = try GeneratedContent(json: arguments)
        #expect(try content.value(GeneratedContent.self, forProperty: "day").jsonString == ##"{"month": null}"##)
    }

    @Test("[C1] parameters that are a reference, a dictionary, or nothing are those of an object")
    func unusualParameters() throws {
        let dictionary = ##"{"type":"object","additionalProperties":{"type":"integer"},"required":["n"]}"##
        for (parameters, valid, invalid) in [
            (
                ##"{"$ref":"#/definitions/A","definitions":{"A":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}"##,
                ##"{"a":1}"##, "{}"
            ), (dictionary, ##"{"n":1,"m":2}"##, ##"{"n":"1"}"##), ("{}", ##"{"a":[1]}"##, "[]"), ("true", "{}", "1"),
            (##"{"type":["object","null"]}"##, "{}", "null"),
        ] {
            let schema = GrammarSource.schema(try Self.tool(parameters).parameters)
            #expect(try Self.accepts(schema, valid), "\(parameters)")
            #expect(try !Self.accepts(schema, invalid), "\(parameters)")
        }
        let resolved = try Self.tool(##"{"$ref":"#/definitions/A","definitions":{"A":{"properties":{"a":{}}}}}"##)
        #expect(resolved.parameters["properties"]?["a"] == .object([]))
        #expect(try Self.tool(dictionary).promptParameters?["additionalProperties"] != nil)
    }

    @Generable struct Code {
        @Guide(.pattern(/[a-z]{2}/)) var text: String
    }

    @Generable struct Impossible {
        @Guide(.minimumCount(3), .maximumCount(1)) var words: [String]
    }

    @Test("[C1] a guide of a tool's parameters that cannot be enforced is an error")
    func guidesOfTools() throws {
        try Transcript.ToolDefinition(name: "a", description: "", parameters: Code.generationSchema).checkGuides()
        let tool = Transcript.ToolDefinition(name: "a", description: "", parameters: Impossible.generationSchema)
        #expect {
            try tool.checkGuides()
        } throws: { error in
            guard case LanguageModelError.unsupportedGenerationGuide(let guide) = error else { return false }
            return guide.debugDescription.contains("a maximum count that is negative or less than the minimum count")
        }
    }

    @Test("[C1] the pattern of an argument matches the whole string, as that of a response does")
    func patternOfArgument() throws {
        let tool = ChatTool(Transcript.ToolDefinition(name: "a", description: "", parameters: Code.generationSchema))
        #expect(try Self.accepts(.schema(tool.parameters), ##"{"text":"ab"}"##))
        #expect(try !Self.accepts(.schema(tool.parameters), ##"{"text":"1ab"}"##))
    }
}
