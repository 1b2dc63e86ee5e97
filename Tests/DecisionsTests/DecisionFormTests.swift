import JSON
import Testing

@testable import Decisions

/// Questions in the forms of two services.
struct DecisionFormTests {
    private func form(_ json: String) throws -> DecisionForm { try DecisionForm(JSONParser.parse(json)) }

    /// The place of what is wrong, with an exclamation mark if it is missing; nil if nothing is.
    private func problem(_ json: JSONValue) -> String? {
        do { _ = try DecisionForm(json) } catch {
            #expect(!error.reason.isEmpty)
            return error.path + (error.isMissing ? "!" : "")
        }
        return nil
    }

    private func check(_ cases: [(json: String, place: String)]) throws {
        for (json, place) in cases { #expect(try problem(JSONParser.parse(json)) == place, "\(json)") }
    }

    // MARK: - A list

    @Test func lists() throws {
        let items = try form(
            """
            [{"type": "predicate", "instructions": "Is it late?"},
             {"type": "choice", "name": "team", "instructions": "Which team?",
              "choices": ["sales", {"value": "billing", "description": "invoices"}, {"value": "support", "description": null}]},
             {"type": "score", "name": null, "instructions": "How urgent?", "levels": ["low", {"label": "high", "description": "now"}]}]
            """
        ).items
        #expect(items.map(\.name) == [nil, "team", nil])
        #expect(
            items.map(\.question) == [
                .init("Is it late?", .predicate()),
                .init("Which team?", .choice(["sales", .init("billing", "invoices"), "support"])),
                .init("How urgent?", .score(["low", .init("high", "now")])),
            ])
        #expect(
            items.map(\.values) == [
                [.bool(true), .bool(false)], [.string("sales"), .string("billing"), .string("support")],
                [.string("low"), .string("high")],
            ])
        #expect(try form("[{\"type\": \"predicate\", \"instructions\": \"a\"}]").style == .list)
    }

    /// A program gets back the value that it has sent, whatever name the model reads.
    @Test func choicesThatAreTrueOrFalse() throws {
        func item(_ choices: String) throws -> DecisionForm.Item {
            try form("[{\"type\": \"choice\", \"instructions\": \"Which?\", \"choices\": \(choices)}]").items[0]
        }
        let plain = try item(#"[{"value": true}, {"value": false}, "unknown"]"#)
        #expect(plain.question.options.map(\.name) == ["true", "false", "unknown"])
        #expect(plain.values == [.bool(true), .bool(false), .string("unknown")])
        // Beside a text of the same name, the two are told apart.
        let mixed = try item(#"["true", {"value": true, "description": "it is so"}, {"value": false}, "false"]"#)
        #expect(mixed.question.options.map(\.name) == ["true", "true (boolean)", "false (boolean)", "false"])
        #expect(mixed.question.options.map(\.description) == [nil, "it is so", nil, nil])
        #expect(mixed.values == [.string("true"), .bool(true), .bool(false), .string("false")])
        // So they are however the text is written.
        let capital = try item(#"["True", {"value": true}, "no"]"#)
        #expect(capital.values == [.string("True"), .bool(true), .string("no")])
    }

    @Test func instructionsInParts() throws {
        let items = try form(
            """
            [{"type": "predicate", "instructions": [{"type": "input_text", "text": "Does it fit?"},
              {"type": "input_json", "data": {"size": [1, "x"], "kind": {}}}, {"type": "text", "text": "Say so."}]}]
            """
        ).items
        #expect(
            items[0].question.text == """
                Does it fit?
                {
                  "size": [
                    1,
                    "x"
                  ],
                  "kind": {}
                }
                Say so.
                """)
        func instructions(_ parts: String) -> String { "[{\"type\": \"predicate\", \"instructions\": \(parts)}]" }
        try check([
            (instructions("[]"), "questions[0].instructions"),
            (instructions(#"[{"type": "input_text", "text": " "}]"#), "questions[0].instructions"),
            (instructions(#"[{"type": "input_text"}]"#), "questions[0].instructions[0].text!"),
            (
                instructions(#"[{"type": "input_text", "text": "a"}, {"type": "input_json"}]"#),
                "questions[0].instructions[1].data!"
            ),
            (instructions(#"[{"type": "input_image", "image_url": "x"}]"#), "questions[0].instructions[0]"),
            (instructions(#"[{"type": "input_audio"}]"#), "questions[0].instructions[0].type"),
            (instructions(#"["a"]"#), "questions[0].instructions[0].type"),
            (instructions(#"{"type": "input_text", "text": "a"}"#), "questions[0].instructions"),
        ])
    }

    @Test func problemsOfLists() throws {
        func question(_ fields: String) -> String {
            "[{\"type\": \"predicate\", \"instructions\": \"a\"}, {\"instructions\": \"b\", \(fields)}]"
        }
        func choices(_ list: String) -> String { question("\"type\": \"choice\", \"choices\": \(list)") }
        func levels(_ list: String) -> String { question("\"type\": \"score\", \"levels\": \(list)") }
        try check([
            ("[]", "questions"), ("5", "questions"), ("\"a\"", "questions"), ("null", "questions"), ("[1]", "questions[0]"),
            ("[{\"instructions\": \"a\"}]", "questions[0].type!"), ("[{\"type\": null}]", "questions[0].type!"),
            ("[{\"type\": 5}]", "questions[0].type"), (question("\"type\": \"number\""), "questions[1].type"),
            ("[{\"type\": \"predicate\"}]", "questions[0].instructions!"),
            ("[{\"type\": \"predicate\", \"instructions\": null}]", "questions[0].instructions!"),
            ("[{\"type\": \"predicate\", \"instructions\": 5}]", "questions[0].instructions"),
            ("[{\"type\": \"predicate\", \"instructions\": \"\\n \"}]", "questions[0].instructions"),
            (question("\"type\": \"predicate\", \"name\": 7"), "questions[1].name"),
            (question("\"type\": \"predicate\", \"choices\": []"), "questions[1].choices"),
            (question("\"type\": \"choice\", \"choices\": [\"a\"], \"levels\": []"), "questions[1].levels"),
            (question("\"type\": \"choice\""), "questions[1].choices!"), (choices("\"a\""), "questions[1].choices!"),
            (choices("[\"a\", 5]"), "questions[1].choices[1].value!"), (choices("[true]"), "questions[1].choices[0].value!"),
            (choices("[{\"value\": null}]"), "questions[1].choices[0].value"),
            (choices("[{\"value\": 5}]"), "questions[1].choices[0].value"),
            (choices("[{\"value\": \"a\", \"meaning\": \"b\"}]"), "questions[1].choices[0].meaning"),
            (choices("[{\"value\": \"a\", \"description\": 5}]"), "questions[1].choices[0].description"),
            (question("\"type\": \"score\""), "questions[1].levels!"),
            // Levels are texts: true is none.
            (levels("[\"a\", {\"label\": true}]"), "questions[1].levels[1].label"),
            (levels("[{\"value\": \"a\"}]"), "questions[1].levels[0].label!"),
            // What is wrong with the options themselves.
            (choices("[]"), "questions[1]"), (levels("[]"), "questions[1]"), (choices("[\"a\", \"a\"]"), "questions[1]"),
            (choices("[\"a\", \"b\", \" A\\n\"]"), "questions[1]"), (levels("[\"low\", \"Low\"]"), "questions[1]"),
            (choices("[\"a\", \" \"]"), "questions[1]"), (choices("[\"a\", \"b\\u0000\"]"), "questions[1]"),
            (choices("[{\"value\": true}, {\"value\": true}]"), "questions[1]"),
        ])
    }

    @Test func largestForms() throws {
        func choice(_ count: Int) -> JSONValue {
            .object([
                .init("type", .string("choice")), .init("instructions", .string("Which?")),
                .init("choices", .array((0..<count).map { .string("option \($0)") })),
            ])
        }
        #expect(problem(.array([choice(255)])) == nil && problem(.array([choice(256)])) == "questions[0]")
        let predicate = JSONValue.object([.init("type", .string("predicate")), .init("instructions", .string("Is it?"))])
        #expect(problem(.array([JSONValue](repeating: predicate, count: 400))) == nil)
        #expect(problem(.array([JSONValue](repeating: predicate, count: 401))) == "questions")
        let noul = JSONValue.object([.init("type", .string("noul")), .init("instructions", .string("Is it?"))])
        #expect(problem(.object((0..<400).map { .init("q\($0)", noul) })) == nil)
        #expect(problem(.object((0..<401).map { .init("q\($0)", noul) })) == "questions")
    }

    // MARK: - An object

    @Test func objects() throws {
        let form = try form(
            """
            {"zeta": {"type": "noul", "instructions": "Is it late?", "criteria": {"true": "after the date", "false": null}},
             "alpha": {"type": "choice", "criteria": {"support": null, "billing": "invoices", "sales": {"covers": ["offers"]}}},
             "mid": {"type": "score", "instructions": "How angry?", "criteria": ["calm", "angry"]},
             "beta": {"type": "noul", "instructions": {"claim": "It rains."}}}
            """)
        #expect(form.style == .named && form.items.map(\.name) == ["zeta", "alpha", "mid", "beta"], "in the order of the text")
        #expect(form.items[0].question == .init("Is it late?", .predicate(yes: "after the date")))
        let options = form.items[1].question.options
        #expect(options.map(\.name) == ["support", "billing", "sales"] && !form.items[1].question.text.isEmpty)
        #expect(options.map(\.description) == [nil, "invoices", "{\n  \"covers\": [\n    \"offers\"\n  ]\n}"])
        #expect(form.items[1].values == [.string("support"), .string("billing"), .string("sales")])
        #expect(form.items[2].question == .init("How angry?", .score(["calm", "angry"])))
        #expect(form.items[3].question.text == "{\n  \"claim\": \"It rains.\"\n}")
    }

    /// A criterion is enough.
    @Test func statementsWithoutInstructions() throws {
        let item = try form(
            #"{"a": {"type": "noul", "instructions": "", "criteria": {"true": "It rains.", "false": "It is dry."}}}"#
        )
        .items[0]
        #expect(item.question.text.contains("It rains.") && item.question.kind == .predicate(no: "It is dry."))
        #expect(item.values == [.bool(true), .bool(false)])
    }

    /// Clients send levels of any form, and get them back.
    @Test func levelsAreAnyValues() throws {
        let item = try form(
            #"{"a": {"type": "score", "criteria": ["calm", {"name": "angry", "signs": ["shouts"]}, ["furious"], 4, "two\nlines"]}}"#
        ).items[0]
        #expect(
            item.values.map(\.text) == [
                #""calm""#, #"{"name":"angry","signs":["shouts"]}"#, #"["furious"]"#, "4", #""two\nlines""#,
            ])
        #expect(item.question.options.count == 5 && item.question.options[1].name.contains("shouts"))
    }

    @Test func problemsOfObjects() throws {
        func question(_ fields: String) -> String {
            "{\"b\": {\"type\": \"noul\", \"instructions\": \"x\"}, \"a\": {\(fields)}}"
        }
        try check([
            ("{}", "questions"), ("{\"a\": 1}", "questions.a"), ("{\"a\": {}}", "questions.a.type!"),
            ("{\"a\": {\"type\": 5}}", "questions.a.type"), (question("\"type\": \"predicate\""), "questions.a.type"),
            (question("\"type\": \"noul\""), "questions.a.noul.instructions!"),
            (question("\"type\": \"noul\", \"criteria\": {\"true\": null}"), "questions.a.noul.instructions!"),
            (question("\"type\": \"noul\", \"instructions\": \"x\", \"options\": []"), "questions.a.noul.options"),
            (question("\"type\": \"choice\", \"instructions\": \"x\""), "questions.a.choice.criteria!"),
            (question("\"type\": \"choice\", \"criteria\": [\"x\"]"), "questions.a.choice.criteria!"),
            (question("\"type\": \"choice\", \"criteria\": null"), "questions.a.choice.criteria!"),
            (question("\"type\": \"score\", \"criteria\": {}"), "questions.a.score.criteria!"),
            (question("\"type\": \"choice\", \"criteria\": {}"), "questions.a"),
            (question("\"type\": \"score\", \"criteria\": []"), "questions.a"),
            (question("\"type\": \"choice\", \"criteria\": {\"x\": null, \"X \": null}"), "questions.a"),
        ])
    }
}
