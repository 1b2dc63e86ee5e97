import Testing

@testable import Grammar

/// Schemas that cannot be used cause an error that names the location; no part of a schema is ignored.
@Suite struct SchemaErrorTests {
    private func kind(_ schema: String) -> (SchemaError.Kind, String)? {
        do {
            _ = try Grammar(schema)
            return nil
        } catch let error as SchemaError {
            return (error.kind, error.pointer)
        } catch {
            Issue.record(error)
            return nil
        }
    }

    @Test func longTextsAreMeasured() throws {
        let text = String(repeating: "ab", count: 3_000)
        let schema = "{\"const\":\"\(text)\",\"minLength\":10,\"maxLength\":6000}"
        #expect(try Grammar(schema).accepts("\"\(text)\""))
        #expect(kind(schema.replacing("6000", with: "5999"))?.0 == .unsatisfiable)
    }

    @Test(arguments: [
        ("false", ""), ("{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", ""),
        ("{\"properties\":{\"a\":{\"enum\":[]}}}", "/properties/a/enum"),
        ("{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":false}}", ""),
        ("{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":false}", ""),
        ("{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}", ""), ("{\"type\":\"array\",\"minItems\":2,\"maxItems\":1}", ""),
        ("{\"type\":\"string\",\"pattern\":\"^a$\",\"minLength\":2}", ""),
        ("{\"allOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", ""),
        ("{\"const\":1,\"enum\":[2]}", ""),
        ("{\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":\"#\"}},\"required\":[\"n\"]}", ""),
        ("{\"type\":\"integer\",\"exclusiveMinimum\":1,\"exclusiveMaximum\":2}", ""), ("{\"$ref\":\"#\"}", ""),
        ("{\"type\":\"array\",\"uniqueItems\":true,\"minItems\":3,\"items\":{\"enum\":[1,2]}}", ""),
    ])
    func unsatisfiable(_ schema: String, _ pointer: String) throws {
        let found = try #require(kind(schema), "\(schema) compiles")
        #expect(found.0 == .unsatisfiable, "\(schema)")
        if !pointer.isEmpty { #expect(found.1 == pointer) }
    }

    @Test(arguments: [
        ("{\"properties\":{\"a\":{\"pattern\":\"(a)\\\\1\"}}}", "/properties/a/pattern"),
        ("{\"pattern\":\"(?<=ab)c\"}", "/pattern"), ("{\"pattern\":\"(\\\\ba)*\"}", "/pattern"),
        ("{\"pattern\":\"^(?:(?:a(?!b))+c)*$\"}", "/pattern"),
        ("{\"items\":{\"$ref\":\"http://example.com/x\"}}", "/items/$ref"), ("{\"$dynamicRef\":\"#a\"}", "/$dynamicRef"),
        ("{\"anyOf\":[{\"oneOf\":[{\"properties\":{\"a\":true}}]}],\"unevaluatedProperties\":false}", "/unevaluatedProperties"),
        ("{\"contains\":{\"type\":\"null\"},\"unevaluatedItems\":false}", "/unevaluatedItems"),
        ("{\"$schema\":\"http://json-schema.org/draft-03/schema#\"}", "/$schema"),
    ])
    func unsupported(_ schema: String, _ pointer: String) throws {
        let found = try #require(kind(schema), "\(schema) compiles")
        #expect(found.0 == .unsupported, "\(schema)")
        #expect(found.1 == pointer)
    }

    /// What would take exponential time, or memory without end, is an error after a limited amount of work.
    @Test func tooMuchWork() throws {
        func nested(_ inner: String, _ count: String, _ levels: Int) -> String {
            String(repeating: "(?:", count: levels) + inner + String(repeating: "){\(count)}", count: levels)
        }
        for pattern in [nested("\\\\ba?", "0,8", 9), nested("^", "8", 12), nested("^a?", "2", 50)] {
            let found = try #require(kind("{\"type\":\"string\",\"pattern\":\"\(pattern)\"}"), "\(pattern) compiles")
            #expect(found.0 == .unsupported || found.0 == .tooComplex)
        }
        // Each schema refers to the next one twice.
        let schemas = (0..<30).map {
            "\"X\($0)\":{\"anyOf\":[{\"$ref\":\"#/$defs/X\($0 + 1)\"},{\"$ref\":\"#/$defs/X\($0 + 1)\"}]}"
        }
        let text =
            "{\"$defs\":{\(schemas.joined(separator: ",")),\"X30\":{\"type\":\"object\"}},\"$ref\":\"#/$defs/X0\",\"unevaluatedProperties\":false}"
        _ = kind(text)
    }

    @Test(arguments: [
        ("{\"type\":\"text\"}", "/type"), ("{\"properties\":[]}", "/properties"), ("{\"minLength\":-1}", "/minLength"),
        ("{\"required\":\"a\"}", "/required"), ("{\"pattern\":\"(\"}", "/pattern"), ("{\"pattern\":\"a{3,2}\"}", "/pattern"),
        ("{\"$ref\":\"#/nowhere\"}", ""), ("{\"items\":3}", "/items"), ("{\"multipleOf\":0}", "/multipleOf"), ("3", ""),
    ])
    func invalid(_ schema: String, _ pointer: String) throws {
        let found = try #require(kind(schema), "\(schema) compiles")
        #expect(found.0 == .invalid, "\(schema)")
        #expect(found.1 == pointer)
    }

    /// Compilation of hostile schemas ends, with or without an error: its work is limited.
    @Test(arguments: [
        "{\"type\":\"string\",\"pattern\":\"^(a{0,100000}){0,100000}$\"}",
        "{\"type\":\"string\",\"pattern\":\"^(a*)*(a|aa)+b{1000}$\"}",
        "{\"type\":\"string\",\"pattern\":\"(x+x+)+y\"}", "{\"type\":\"array\",\"minItems\":1000000000}",
        "{\"type\":\"string\",\"minLength\":1000000000}", "{\"multipleOf\":1e-300}", "{\"minimum\":1e308,\"type\":\"number\"}",
        "{\"type\":\"string\",\"pattern\":\"^.{0,1000}a.{1000}$\"}", "{\"not\":{\"maxLength\":2147483647}}",
        "{\"type\":\"string\",\"maxLength\":10,\"pattern\":\"^(?:(?:(?:a{100000000}){100000000}){100000000})$\"}",
    ])
    func hostile(_ schema: String) throws {
        do {
            _ = try Grammar(schema).matcher().allowed
        } catch let error as SchemaError {
            #expect([.tooComplex, .unsatisfiable].contains(error.kind), "\(schema): \(error)")
        }
    }

    @Test func deepNestingIsAnError() throws {
        for (open, close) in [("{\"items\":", "}"), ("{\"allOf\":[", "]}"), ("{\"not\":", "}")] {
            let schema = String(repeating: open, count: 400) + "{}" + String(repeating: close, count: 400)
            let found = try? Grammar(schema)
            #expect(found == nil, "400 levels are rejected")
        }
    }

    @Test func hugeEnumerationsCompile() throws {
        let values = (0..<20_000).map { "\"value number \($0)\"" }.joined(separator: ",")
        let grammar = try Grammar("{\"enum\":[\(values)]}")
        #expect(grammar.accepts("\"value number 19999\""))
        #expect(!grammar.accepts("\"value number 20000\""))
    }

    @Test func notesNameWhatIsOnlyDescribed() throws {
        let grammar = try Grammar("{\"properties\":{\"a\":{\"format\":\"color\"}}}")
        #expect(grammar.notes.count == 1)
        #expect(grammar.notes.first?.contains("/properties/a") == true)
        #expect(try Grammar("{\"format\":\"regex\"}").notes.count == 1)
    }

    /// Schemas as people and generators write them, with the keywords that have no effect, and what to write instead.
    @Test(arguments: [
        (
            ##"{"properties":{"a":{"type":"string","nullable":true}}}"##, "nullable", "/properties/a",
            ##""type": ["string", "null"]"##
        ),
        (
            ##"{"type":"string","enum":["a"],"nullable":true}"##, "nullable", "the root",
            ##"["string", "null"], and null in 'enum'"##
        ),
        (##"{"enum":["a"],"nullable":true}"##, "nullable", "the root", "write null in 'enum'"),
        (##"{"type":["string"],"nullable":true}"##, "nullable", "the root", "\"null\" in 'type'"),
        (
            ##"{"items":{"$ref":"#/$defs/A","nullable":true},"$defs":{"A":{"type":"string"}}}"##, "nullable", "/items",
            ##""anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]"##
        ),
        (##"{"anyOf":[{"type":"string"}],"nullable":true}"##, "nullable", "the root", ##""anyOf": [{…}, {"type": "null"}]"##),
        (##"{"type":"string","maxLenght":3}"##, "maxLenght", "the root", "write 'maxLength'"),
        (##"{"type":"string","max_length":3}"##, "max_length", "the root", "write 'maxLength'"),
        (##"{"type":"object","requried":["a"]}"##, "requried", "the root", "write 'required'"),
        (##"{"type":"object","propertys":{}}"##, "propertys", "the root", "write 'properties'"),
        (##"{"type":"array","item":{}}"##, "item", "the root", "write 'items'"),
        (##"{"anyof":[{"type":"null"}]}"##, "anyof", "the root", "write 'anyOf'"),
        (##"{"ref":"#/$defs/A"}"##, "ref", "the root", "write '$ref'"),
        (##"{"type":"number","divisibleBy":2}"##, "divisibleBy", "the root", "write 'multipleOf'"),
        (##"{"properties":{"a":{"type":"string","optional":true}}}"##, "optional", "/properties/a", "'required' of the object"),
        (
            ##"{"oneOf":[{"type":"object"}],"discriminator":{"propertyName":"kind"}}"##, "discriminator", "the root",
            ##"'oneOf' with schemas whose property "kind" has a different 'const' each"##
        ),
        (##"{"type":"string","foo":1}"##, "foo", "the root", "it is not a keyword of JSON Schema"),
        (##"{"type":"string","components":{"schemas":{"A":{}}}}"##, "components", "the root", "it is not a keyword"),
        (##"{"type":"integer","minLength":2}"##, "minLength", "the root", "it restricts strings, and 'type' allows none"),
        (##"{"type":"object","items":{}}"##, "items", "the root", "it restricts arrays, and 'type' allows none"),
        (##"{"then":{"type":"string"}}"##, "then", "the root", "write 'if' beside it"),
        (##"{"if":{"type":"string"}}"##, "if", "the root", "write 'then' or 'else' beside it"),
        (##"{"type":"array","maxContains":2}"##, "maxContains", "the root", "write 'contains' beside it"),
        (
            ##"{"type":"array","items":{},"additionalItems":false}"##, "additionalItems", "the root",
            "for all items, write 'items'"
        ),
        (##"{"type":"integer","exclusiveMinimum":true}"##, "exclusiveMinimum", "the root", "write the number instead of true"),
        (
            ##"{"$schema":"http://json-schema.org/draft-07/schema#","items":{"$ref":"#/definitions/A","minLength":2},"definitions":{"A":{"type":"string"}}}"##,
            "minLength", "/items", "put both into 'allOf'"
        ),
        (
            ##"{"$schema":"http://json-schema.org/draft-06/schema#","if":{"type":"string"},"then":{"minLength":2}}"##, "if",
            "the root",
            "name draft 7 or a later one"
        ),
    ])
    func keywordsWithoutEffectAreNoted(_ schema: String, _ keyword: String, _ place: String, _ advice: String) throws {
        let notes = try Grammar(schema).notes
        let note = try #require(notes.first { $0.hasPrefix("'\(keyword)' at \(place) has no effect: ") }, "\(schema): \(notes)")
        #expect(note.contains(advice), "\(schema): \(note)")
        #expect(notes.count == (schema.contains("draft-06") ? 2 : 1), "\(schema): \(notes)")
    }

    @Test(arguments: [
        ##"{"title":"T","description":"d","default":1,"example":1,"examples":[1],"$comment":"c","x-foo":1,"deprecated":true,"readOnly":true}"##,
        ##"{"$ref":"#/components/schemas/A","components":{"schemas":{"A":{"type":"string"},"B":{}}}}"##,
        ##"{"type":"string","nullable":false,"format":"date","minLength":2,"$id":"http://example.com/a","$anchor":"b"}"##,
        ##"{"type":["object","null"],"properties":{"nullable":{},"maxLenght":{}},"required":["requried"],"x-order":["nullable"]}"##,
        ##"{"enum":[{"nullable":true}],"const":{"nullable":true},"default":{"foo":1}}"##,
        ##"{"minimum":1,"exclusiveMinimum":true,"$schema":"http://json-schema.org/draft-04/schema#"}"##,
        ##"{"items":[{}],"additionalItems":false,"contains":{},"maxContains":2,"if":{},"then":{},"else":{}}"##,
    ])
    func keywordsWithAnEffectAreNotNoted(_ schema: String) throws { #expect(try Grammar(schema).notes == []) }
}
