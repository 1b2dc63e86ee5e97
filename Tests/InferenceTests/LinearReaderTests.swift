import Grammar
import JSON
import TestSupport
import Testing

@testable import Inference

/// Templates, schemas and JSON come from files and models: none makes the work of its reader grow with the square of its length.
@Suite struct LinearReaderTests {
    @Test(
        arguments: [
            "[", "[]", "{", "{\"a\":", "\"", "\"a\",", "\\u", "\\u00e9", "1", "-", "1e", "0.", "[1,", " ", "\n", "a", "é",
            "true,",
        ])
    func json(unit: String) {
        for (start, end) in [("", ""), ("[", "]"), ("\"", "\"")] {
            let ratio = Linearity.ratio(4_000) { count in
                // Most of these are no JSON; what counts is when that is known.
                _ = try? JSONParser.parse(start + String(repeating: unit, count: count) + end)
            }
            #expect(ratio < Linearity.limit, "\(start)")
        }
    }

    @Test(
        arguments: [
            "a", "{", "{{", "{%", "{#", "{{ a }}", "{{ a", "{% if a %}", "{% if a %}x{% endif %}", "{% for a in b %}",
            "{% set a = 1 %}", "{{ 'a' ~ ", "{{ (", "{{ [", "{{ a | b", "{{ not ", "{{ -", "\n", "{%- ", " -%}", "'", "{{ a.b",
            "{{ a[",
        ])
    func templates(unit: String) {
        let ratio = Linearity.ratio(1_000) { count in
            // Most of these are no templates.
            _ = try? ChatTemplate(
                source: String(repeating: unit, count: count), beginningText: "", endText: "")
        }
        #expect(ratio < Linearity.limit)
    }

    @Test(
        arguments: [
            ("{\"enum\": [", "\"a\",", "1]}"), ("{\"properties\": {", "\"p\": {},", "\"q\": {}}}"),
            ("{\"allOf\": [", "{\"type\": \"string\"},", "{}]}"), ("{\"description\": \"", "x", "\"}"),
            ("{\"pattern\": \"", "a", "\"}"), ("{\"pattern\": \"", "[a-z]", "\"}"), ("{\"required\": [", "\"a\",", "\"b\"]}"),
        ])
    func schemas(start: String, unit: String, end: String) {
        let ratio = Linearity.ratio(100) { count in
            // Some are no schemas that can be used; what counts is when that is known.
            guard let schema = try? JSONParser.parse(start + String(repeating: unit, count: count) + end) else { return }
            _ = try? Grammar(.schema(schema), vocabulary: TurnTestBytes.grammarVocabulary)
        }
        #expect(ratio < Linearity.limit)
    }
}
