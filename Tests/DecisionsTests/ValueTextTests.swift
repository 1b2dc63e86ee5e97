import JSON
import TestSupport
import Testing

@testable import Decisions

/// Values in parts: texts, and places where only some values are possible.
struct ValueTextTests {
    /// The parts, with the options of fields in angles.
    private func parts(_ text: ValueText) -> [String] {
        text.pieces.map { piece in
            switch piece {
            case .text(let text): text
            case .field(let field):
                "<\(field.path.joined(separator: "/")): \(field.options.map(\.spacedText).joined(separator: " "))>"
            }
        }
    }

    private func parts(anyValueOf schema: String) throws -> [String] {
        parts(try ValueText(anyValueOf: JSONParser.parse(schema)))
    }

    private func value(_ json: String, of schema: String) throws -> ValueText {
        try ValueText(JSONParser.parse(json), of: JSONParser.parse(schema))
    }

    // MARK: - Any value of a schema

    @Test func valuesThatCanBeListed() throws {
        for (schema, expected) in [
            (#"{"enum": ["a", "b"]}"#, #"<: "a" "b">"#), (#"{"type": "boolean"}"#, "<: true false>"),
            (#"{"enum": ["a", 1, null, true, "a"]}"#, #"<: "a" 1 null true>"#),
            (#"{"type": "integer", "minimum": -1, "maximum": 2}"#, "<: -1 0 1 2>"),
            (#"{"type": "integer", "minimum": -7, "maximum": 12, "multipleOf": 5}"#, "<: -5 0 5 10>"),
            (#"{"anyOf": [{"const": "a"}, {"enum": ["b", "a"]}, {"type": "null"}]}"#, #"<: "a" "b" null>"#),
            (#"{"oneOf": [{"type": "boolean"}, {"type": "integer", "minimum": 1, "maximum": 2}]}"#, "<: true false 1 2>"),
            (##"{"$ref": "#/$defs/T", "$defs": {"T": {"enum": ["x", "y"]}}}"##, #"<: "x" "y">"#),
            (##"{"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}], "$defs": {"T": {"enum": ["x"]}}}"##, #"<: "x" null>"#),
            // A single value is no question.
            (#"{"const": {"a": [1, 2]}}"#, #"{"a": [1, 2]}"#), (#"{"enum": ["a"]}"#, #""a""#), (#"{"type": "null"}"#, "null"),
            (#"{"type": "integer", "minimum": 3, "maximum": 3}"#, "3"),
            // Texts have the form in which they are generated.
            (#"{"enum": ["say \"hi\"", "a\\b", "tab\t", "né/\u0001"]}"#, #"<: "say \"hi\"" "a\\b" "tab\t" "né/\u0001">"#),
        ] { #expect(try parts(anyValueOf: schema) == [expected], "\(schema)") }
        // As many as a question has.
        for (maximum, count) in [(254, 255), (255, nil)] as [(Int, Int?)] {
            let schema = #"{"type": "integer", "minimum": 0, "maximum": \#(maximum)}"#
            let text = try? ValueText(anyValueOf: JSONParser.parse(schema))
            #expect(text?.fields.first?.options.count == count)
        }
    }

    /// Definitions that use each other twice, with each other or with themselves, have as many parts as there are ways through them.
    @Test func workIsLimited() throws {
        let chain = (0..<40).map {
            "\"T\($0)\": {\"properties\": {\"a\": {\"$ref\": \"#/$defs/T\($0 + 1)\"}, \"b\": {\"$ref\": \"#/$defs/T\($0 + 1)\"}}}"
        }
        let schemas = [
            ##"{"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}}"##,
            "{\"$ref\": \"#/$defs/T0\", \"$defs\": {" + chain.joined(separator: ", ") + ", \"T40\": {\"type\": \"boolean\"}}}",
        ]
        for schema in schemas {
            let json = try JSONParser.parse(schema)
            #expect(throws: DecisionError.self) { try ValueText(anyValueOf: json) }
            #expect(ValueText.closedFields(of: json).count < 5_000)
        }
        let numbers = "{\"enum\": [" + (0..<20_000).map(String.init).joined(separator: ", ") + "]}"
        #expect(throws: DecisionError.openValue(pointer: "")) { try ValueText(anyValueOf: JSONParser.parse(numbers)) }
    }

    @Test func structures() throws {
        let schema = """
            {"type": "object", "$defs": {"Sender": {"type": "object", "properties": {"a/b": {"type": "boolean"}, "\\"q\\"": {"enum": [1, 2]}}}},
             "properties": {"team": {"enum": ["billing", "sales"]}, "version": {"const": "v1"}, "sender": {"$ref": "#/$defs/Sender"}}}
            """
        #expect(
            try parts(anyValueOf: schema) == [
                #"{"team": "#, #"<team: "billing" "sales">"#, #", "version": "v1", "sender": {"a/b": "#,
                "<sender/a/b: true false>",
                #", "\"q\"": "#, #"<sender/"q": 1 2>"#, "}}",
            ])
        var text = try ValueText(anyValueOf: JSONParser.parse(schema))
        #expect(text.fields.map(\.path) == [["team"], ["sender", "a/b"], ["sender", "\"q\""]])
        // Each part is decided after those before it.
        #expect(text.text(before: 1) == #"{"team": "# && text.character(after: 1) == ",")
        text.choose(1, at: 1)
        #expect(text.text(before: 3) == #"{"team": "sales", "version": "v1", "sender": {"a/b": "#)
        text.choose(0, at: 3)
        text.choose(1, at: 5)
        #expect(text.text(before: 7) == #"{"team": "sales", "version": "v1", "sender": {"a/b": true, "\"q\"": 2}}"#)
        #expect(text.character(after: 5) == "}")
        // At the end of the whole value nothing follows.
        #expect(try ValueText(anyValueOf: JSONParser.parse(#"{"type": "boolean"}"#)).character(after: 0) == nil)
    }

    @Test func openValues() throws {
        func pointer(_ schema: String) throws -> String? {
            do { _ = try parts(anyValueOf: schema) } catch DecisionError.openValue(let pointer) { return pointer }
            return nil
        }
        for schema in [
            "{}", "true", #"{"type": "string"}"#, #"{"type": "number", "minimum": 0, "maximum": 1}"#,
            #"{"type": "integer", "minimum": 0}"#, #"{"type": "integer", "minimum": 5, "maximum": 1}"#,
            #"{"type": "integer", "minimum": 0, "maximum": 9, "exclusiveMinimum": 0}"#,
            #"{"type": "integer", "minimum": 1, "maximum": 2, "multipleOf": 5}"#,
            #"{"type": "integer", "minimum": 1, "maximum": 2, "multipleOf": 0}"#,
            #"{"type": "integer", "minimum": -9223372036854775808, "maximum": 9223372036854775807}"#,
            #"{"type": "array", "items": {"enum": ["a", "b"]}}"#, #"{"enum": [{"a": 1}, "b"]}"#, #"{"enum": []}"#,
            #"{"anyOf": [{"enum": ["a"]}, {"type": "string"}]}"#, #"{"type": "object", "properties": {}}"#,
            // References that lead nowhere, or to themselves.
            ##"{"$ref": "#/$defs/None"}"##, ##"{"$ref": "#"}"##,
            ##"{"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}"##,
        ] { #expect(try pointer(schema) == "", "\(schema)") }
        let nested = #"{"properties": {"a": {"enum": ["x", "y"]}, "b": {"properties": {"c/d~50%": {"type": "string"}}}}}"#
        #expect(try pointer(nested) == "/b/c~1d~050%")
        // A type that has a part of its own kind has no end.
        let recursive = ##"{"properties": {"ok": {"type": "boolean"}, "next": {"$ref": "#"}}}"##
        #expect(try pointer(recursive)?.hasPrefix("/next/next/next") == true)
        let branching = ##"{"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}"##
        #expect(try pointer(branching)?.hasPrefix("/left/left") == true)
        let alternatives = ##"{"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"const": 1}]}"##
        #expect(try pointer(alternatives) == "")
    }

    /// What can be decided of a schema, whatever else it has.
    @Test func closedParts() throws {
        let schema = """
            {"properties": {"name": {"type": "string"}, "team": {"enum": ["x", "y"]}, "tags": {"items": {"type": "boolean"}},
             "sender": {"properties": {"isKnown": {"type": "boolean"}, "more": {}}}, "version": {"const": 1}}}
            """
        let fields = try ValueText.closedFields(of: JSONParser.parse(schema))
        #expect(fields.map(\.path) == [["team"], ["sender", "isKnown"]] && fields.map(\.options.count) == [2, 2])
        #expect(ValueText.closedFields(of: .bool(true)).isEmpty)
    }

    // MARK: - A value

    @Test func valuesWithOpenParts() throws {
        let schema = """
            {"type": "object", "properties": {"summary": {"type": "string"}, "team": {"enum": ["billing", "sales"]},
             "tags": {"type": "array", "items": {"enum": ["a", "b"]}}, "stars": {"type": "integer", "minimum": 1, "maximum": 3},
             "extra": {"type": "boolean"}}}
            """
        let json = #"{"summary": "It \"is\" late", "team": "sales", "tags": ["b", "a"], "stars": 3, "other": {"team": "sales"}}"#
        let text = try value(json, of: schema)
        #expect(
            parts(text) == [
                #"{"summary": "It \"is\" late", "team": "#, #"<team: "billing" "sales">"#, #", "tags": ["#, #"<tags/0: "a" "b">"#,
                ", ",
                #"<tags/1: "a" "b">"#, #"], "stars": "#, "<stars: 1 2 3>", #", "other": {"team": "sales"}}"#,
            ])
        #expect(text.fields.map(\.chosen) == [1, 1, 0, 2])
        #expect(text.text(before: text.pieces.count) == json)
        // Lists of lists, and a value without any open part.
        let grid = try value("[[true, false], [], [true]]", of: #"{"items": {"items": {"type": "boolean"}}}"#)
        #expect(grid.fields.map(\.path) == [["0", "0"], ["0", "1"], ["2", "0"]] && grid.fields.map(\.chosen) == [0, 1, 0])
        // A value that the schema does not have is a text, not a field.
        #expect(try parts(value(#"{"team": "nobody"}"#, of: schema)) == [#"{"team": "nobody"}"#])
        #expect(try parts(value("5", of: "true")) == ["5"] && parts(value("{}", of: schema)) == ["{}"])
    }

    /// Whatever the value, its parts add up to its text, and each option stands where the prompt ends.
    @Test func partsAddUp() throws {
        var random = SeededGenerator(9)
        let names = ["a", "b/c", "d \"e\"", "ü", "f\n"]
        func makeSchema(_ depth: Int) -> JSONValue {
            switch Int.random(in: 0..<(depth > 3 ? 5 : 8), using: &random) {
            case 0: return .object([.init("enum", .array([.string("x"), .string("\"y\""), .null, .number(DecimalNumber(4))]))])
            case 1: return .object([.init("type", .string("boolean"))])
            case 2:
                return .object([
                    .init("type", .string("integer")), .init("minimum", .number(DecimalNumber(0))),
                    .init("maximum", .number(DecimalNumber(9))),
                ])
            case 3: return .object([.init("type", .string("string"))])
            case 4: return .object([.init("const", .string("c"))])
            case 5: return .object([.init("items", makeSchema(depth + 1))])
            default: return .object([.init("properties", .object(names.map { .init($0, makeSchema(depth + 1)) }))])
            }
        }
        func makeValue(_ schema: JSONValue) -> JSONValue {
            if case .array(let values)? = schema["enum"] { return values[Int.random(in: 0..<values.count, using: &random)] }
            if let constant = schema["const"] { return constant }
            if let items = schema["items"] {
                let count = Int.random(in: 0...3, using: &random)
                return .array((0..<count).map { _ in makeValue(items) })
            }
            if case .object(let properties)? = schema["properties"] {
                var members: [JSONValue.Member] = []
                // Some are left out.
                for property in properties where Int.random(in: 0..<4, using: &random) > 0 {
                    members.append(.init(property.name, makeValue(property.value)))
                }
                return .object(members)
            }
            switch schema["type"]?.string {
            case "boolean": return .bool(Bool.random(using: &random))
            case "integer": return .number(DecimalNumber(Int.random(in: 0...9, using: &random)))
            default: return .string(["", "a \"text\"", "line\nline"][Int.random(in: 0..<3, using: &random)])
            }
        }
        var fields = 0
        for _ in 0..<200 {
            let schema = makeSchema(0)
            let whole = makeValue(schema)
            let text = try ValueText(whole, of: schema)
            #expect(text.text(before: text.pieces.count) == whole.spacedText)
            for (index, piece) in text.pieces.enumerated() {
                guard case .field(let field) = piece else { continue }
                fields += 1
                let chosen = field.options[try #require(field.chosen)]
                let next = text.character(after: index)
                #expect(whole.spacedText.hasPrefix(text.text(before: index) + chosen.spacedText + (next ?? "")))
                // Only at the end of the value is there no sign that ends an option: 1 is the beginning of 12.
                #expect((next == nil) == (text.pieces.count == 1))
                #expect(whole.values(along: field.path).last?.isEqual(to: chosen) == true)
            }
        }
        #expect(fields > 100)
    }

    /// Values may be nested more deeply than parts are looked for.
    @Test func deepValues() throws {
        let deep = String(repeating: "[", count: 100) + "true" + String(repeating: "]", count: 100)
        let schema = ##"{"anyOf": [{"type": "boolean"}, {"items": {"$ref": "#"}}], "items": {"$ref": "#"}}"##
        let text = try value(deep, of: schema)
        #expect(text.text(before: text.pieces.count) == deep)
    }
}
