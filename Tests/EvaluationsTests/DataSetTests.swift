import Foundation
import FoundationModels
import FoundationModelsTesting
import Testing

@testable import EvaluationCore

@Suite("data sets") struct DataSetTests {
    private static let checks = DataSetChecks(judge: ScriptedLanguageModel([]))

    @Test("wrong data sets are described with their lines")
    func wrongData() {
        for (text, part) in [
            ("{\"prompt\": \"a\"}\n{\"promt\": \"b\"}\n", "line 2: there is no key “promt”"), ("", "contains no samples"),
            ("{\"id\": \"b\"}", "“prompt” is missing"), ("[1]", "this is not an object"),
            ("{\"prompt\": \"a\"", "not valid JSON at column"),
            ("{\"prompt\": \"a\", \"regex\": \"(\"}", "is not a regular expression"), ("nonsense", "line 1"),
            ("{\"prompt\": \"a\", \"id\": \"x\"}\n\n{\"prompt\": \"b\", \"id\": \"x\"}", "line 3: there are two samples"),
            ("{\"prompt\": \"a\", \"contains\": \"b\"}", "“contains” must be a list."),
            ("{\"prompt\": \"a\", \"similarity\": 1}", "needs “expected”"),
        ] {
            #expect { try EvaluationDataSet(Data(text.utf8), name: "data") } throws: { "\($0)".contains(part) }
        }
        #expect { try EvaluationDataSet(Data([0x7B, 0xE9, 0x7D]), name: "data") } throws: { "\($0)" == "data is not UTF-8 text." }
    }

    @Test("a misspelt key at any level, and a schema that cannot be used, are found while the data set is read")
    func wrongParts() throws {
        for (part, message) in [
            (#""tools": [{"nme": "x", "description": "", "output": ""}]"#, "“nme” in “tools[0]”"),
            (#""calls": {"orderd": []}"#, "“orderd” in “calls”"),
            (#""calls": {"ordered": [{"name": "x", "argments": []}]}"#, "“argments” in “calls.ordered[0]”"),
            (#""calls": {"unordered": [{"anyOrder": [{"nam": "x"}]}]}"#, "“nam” in “calls.unordered[0].anyOrder[0]”"),
            (#""calls": {"ordered": [{"name": "x", "arguments": [{"exat": {}}]}]}"#, "“exat” in “calls.ordered[0].arguments[0]”"),
            (
                #""calls": {"ordered": [{"name": "x", "arguments": [{"range": {"argumentName": "a", "min": 1}}]}]}"#,
                "“min” in “calls.ordered[0].arguments[0].range”"
            ), (#""calls": {"ordered": [{"arguments": []}]}"#, "“calls.ordered[0].name” is missing"),
            (#""schema": {"pattern": "(a)\\1"}"#, "“schema” cannot be used"),
            (
                #""tools": [{"name": "x", "description": "", "output": "", "parameters": {"type": "string"}}]"#,
                "must be an object"
            ),
            (
                #""tools": [{"name": "x", "description": "", "output": "", "parameters": {"properties": {"a": {"$ref": "b.json"}}}}]"#,
                "“x” cannot be used: the schema at /properties/a/$ref uses an unsupported feature"
            ),
        ] {
            let line = "{\"prompt\": \"p\", \(part)}"
            #expect { try EvaluationDataSet(Data(line.utf8), name: "data") } throws: { "\($0)".contains(message) }
        }
        let line = """
            {"prompt": "p", "calls": {"ordered": [{"name": "x", "arguments": [{"oneOf": {"argumentName": "a", "allowedValues": [1]}}, \
            {"range": {"argumentName": "b", "minimum": 1}}]}], "allowsAdditionalCalls": false}}
            """
        #expect(try EvaluationDataSet(Data(line.utf8), name: "data").samples.map(\.id) == ["line 1"])
    }

    @Test("the parameters of a tool are a JSON Schema as people write it, which is kept as it is and in its order")
    func toolParameters() throws {
        for parameters in [
            #"{"type":"object","properties":{"when":{"type":"string","format":"date"},"city":{}},"required":["when","note"],"x-order":["when","city"]}"#,
            #"{"type":"object","additionalProperties":{"type":["string","null"],"maxLength":9}}"#,
            #"{"properties":{"n":{"type":"integer","exclusiveMinimum":0,"multipleOf":5,"not":{"const":10}}}}"#,
        ] {
            let line =
                #"{"prompt": "p", "tools": [{"name": "x", "description": "", "output": "", "parameters": \#(parameters)}]}"#
            let tool = try #require(try EvaluationDataSet(Data(line.utf8), name: "data").samples[0].tools?.first)
            #expect(try StaticOutputTool(tool).parameters.debugDescription == parameters)
        }
    }

    @Test("a schema of arguments is passed on as it was written: no type, a name without a description, and the order of members")
    func toolSchemas() throws {
        for parameters in [
            #"{"properties": {"zone": {}, "area": {"description": "Any."}}, "required": ["zone"]}"#,
            #"{"type": "object", "properties": {"zone": {"type": "string"}, "area": {"maxLength": 3}}, "required": ["zone", "more"]}"#,
            #"{"type": "object"}"#, "{}", "null",
        ] {
            let line =
                #"{"prompt": "p", "tools": [{"name": "t", "description": "", "output": "", "parameters": \#(parameters)}]}"#
            let sample = try EvaluationDataSet(Data(line.utf8), name: "data").samples[0]
            let schema = try StaticOutputTool(#require(sample.tools?.first)).parameters.debugDescription
            if parameters.contains("zone") {
                let places = (schema.range(of: "\"zone\"")?.lowerBound, schema.range(of: "\"area\"")?.lowerBound)
                #expect(try #require(places.0) < #require(places.1), "\(schema)")
            }
        }
        let line = #"{"prompt": "p", "tools": [{"name": "t", "description": "", "output": "", "parameters": {"type": "text"}}]}"#
        #expect { try EvaluationDataSet(Data(line.utf8), name: "data") } throws: {
            "\($0)".contains("The parameters of the tool “t”")
        }
    }

    @Test("answers are checked against what a sample requires")
    func checks() async throws {
        func passes(_ sample: String, _ answer: String, layer: SampleResult.Layer? = nil) async throws -> [String: Bool] {
            let sample = try EvaluationDataSet(Data(sample.utf8), name: "data").samples[0]
            let results = try await Self.checks.results(for: sample, DataSetAnswer(answer, layer: layer))
            return Dictionary(results.map { ($0.name, $0.passes == true) }, uniquingKeysWith: { $0 && $1 })
        }
        #expect(try await passes(#"{"prompt":"p","expected":"Paris"}"#, " Paris\n") == ["answers": true, "exact": true])
        #expect(try await passes(#"{"prompt":"p","expected":{"a":[1,2.0]}}"#, "{\"a\": [1.0, 2]}")["exact"] == true)
        #expect(try await passes(#"{"prompt":"p","expected":{"a":1}}"#, "{\"a\": 1, \"b\": 2}")["exact"] == false)
        #expect(
            try await passes(#"{"prompt":"p","contains":["x","Y"],"excludes":["z"]}"#, "Xy") == [
                "answers": true, "contains": true, "excludes": true,
            ])
        #expect(try await passes(#"{"prompt":"p","excludes":["z"]}"#, "aZb")["excludes"] == false)
        #expect(try await passes(#"{"prompt":"p","regex":"^[0-9]+$"}"#, "42") == ["answers": true, "regex": true])
        #expect(try await passes(#"{"prompt":"p","schema":{}}"#, "no JSON")["schema"] == false)
        let schema = #"{"prompt":"p","schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}"#
        #expect(try await passes(schema, "{\"a\": 1}")["schema"] == true)
        #expect(try await passes(schema, "{\"a\": \"one\"}")["schema"] == false)
        #expect(try await passes(schema, "{}")["schema"] == false)
        #expect(try await passes(#"{"prompt":"p","contains":["x"]}"#, "", layer: .guardrailPrompt) == ["answers": false])
        #expect(try await passes(#"{"prompt":"p","declines":true}"#, "", layer: .refusal) == ["declines": true])
        #expect(try await passes(#"{"prompt":"p","declines":true}"#, "Sure!") == ["declines": false])
        // A model may stop requests in languages that it does not list.
        let sample = try EvaluationDataSet(Data(#"{"prompt":"p","language":"el"}"#.utf8), name: "data").samples[0]
        var answer = DataSetAnswer("", layer: .language)
        #expect(try await Self.checks.results(for: sample, answer).map(\.passes) == [false])
        answer.isUnsupportedLanguage = true
        #expect(try await Self.checks.results(for: sample, answer).map(\.passes) == [true])
    }

    @Test("a data set is read from a file, whose name it has, also after a byte order mark")
    func file() throws {
        let folder = try Folder()
        let file = try folder.write(
            "facts.jsonl", "\u{FEFF}{\"prompt\": \"a\", \"context\": \"b\", \"similarity\": 0.5, \"expected\": \"c\"}")
        let dataSet = try EvaluationDataSet(contentsOf: file)
        #expect(dataSet.name == "facts.jsonl" && dataSet.samples.map(\.fullPrompt) == ["a\n\nb"] && dataSet.needsEmbedder)
        let missing = folder.url.appending(path: "none.jsonl")
        #expect {
            try EvaluationDataSet(contentsOf: missing)
        } throws: {
            if case .unreadable(missing, _)? = $0 as? EvaluationDataError { true } else { false }
        }
    }

    @Test("the better answers of feedback are a data set")
    func feedback() throws {
        let session = LanguageModelSession(
            model: ScriptedLanguageModel([]),
            transcript: Transcript(entries: [
                .instructions(.init(segments: [.text(.init(content: "Be brief."))], toolDefinitions: [])),
                .prompt(.init(segments: [.text(.init(content: "2 + 2?"))])),
                .response(.init(assetIDs: [], segments: [.text(.init(content: "5"))])),
            ]))
        let good = session.logFeedbackAttachment(sentiment: .positive)
        let better = session.logFeedbackAttachment(sentiment: .negative, desiredResponseText: "4")
        let lines = try EvaluationDataSet.jsonLines(fromFeedback: good + better)
        let samples = try EvaluationDataSet(Data(lines.utf8), name: "feedback").samples
        #expect(samples.map(\.prompt) == ["2 + 2?"] && samples[0].instructions == "Be brief." && samples[0].expected == "4")
        #expect(throws: EvaluationDataError.invalidFeedback(reason: "“f” is not feedback: in report 1, “transcript” is missing."))
        {
            try EvaluationDataSet.jsonLines(fromFeedback: Data("{\"a\": 1}".utf8), name: "f")
        }
    }

    @Test("the turns of a sample stand before its prompt") func earlierTurns() throws {
        let line = #"{"prompt": "Which colour?", "turns": [["My boat is red.", "Noted."]], "instructions": "Be brief."}"#
        let sample = try EvaluationDataSet(Data(line.utf8), name: "data").samples[0]
        let transcript = try sample.session(on: ScriptedLanguageModel([]), instructions: sample.instructions).transcript
        let kinds = transcript.map { entry in
            switch entry {
            case .instructions: "instructions"
            case .prompt: "prompt"
            case .response: "response"
            default: "other"
            }
        }
        #expect(kinds == ["instructions", "prompt", "response"])
    }
}
