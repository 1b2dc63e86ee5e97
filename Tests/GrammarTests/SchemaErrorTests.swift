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
}
