import Embeddings
import Evaluations
import Foundation
import FoundationModels
import Testing

/// The evaluators that this package adds.
@Suite("ready-made evaluators") struct ReadyMadeEvaluatorTests {
    /// A value with the members in this order, and other values.
    private struct City: Codable, Sendable, Equatable {
        var name: String
        var area: Double
    }

    /// The only result of an evaluator.
    private func result<Value: Codable & Sendable, E: EvaluatorProtocol>(
        _ evaluator: E, _ answer: Value, expected: Value? = nil
    ) async throws -> Metric where E.Input == ModelSample<Value>, E.Subject == ModelSubject<Value> {
        let metrics = try await evaluator.metrics(
            subject: ModelSubject(value: answer),
            input: ModelSample<Value>(input: ModelSampleInput(prompt: Prompt("p")), expected: expected))
        #expect(metrics.map(\.name) == ["m"])
        return try #require(metrics.first)
    }

    private let metric = Metric("m")

    @Test(
        "texts are equal without white space at both ends",
        arguments: [
            (" Paris\n", "Paris", true), ("Paris", "\tParis ", true), ("paris", "Paris", false), ("Paris.", "Paris", false),
            ("New  York", "New York", false), ("1.0", "1", false), ("", "", true),
        ])
    func exactText(answer: String, expected: String, passes: Bool) async throws {
        let result = try await result(ExactMatchEvaluator(metric), answer, expected: expected)
        #expect(result.value == (passes ? .passing : .failing))
        #expect(result.rationale == (passes ? nil : "Expected \(expected)."))
    }

    @Test(
        "other values are equal as JSON; a text is read as JSON",
        arguments: [
            (#"{"b": [1.0, 2], "a": null}"#, ["a": .null, "b": [1, 2.0]], true), (#"{"a": 1, "b": 2}"#, ["a": 1], false),
            (#"{"a": 1}"#, ["a": 1, "b": 2], false), ("[1, 2]", [2, 1], false), ("[1]", [1, 1], false), ("true", true, true),
            ("true", "true", true), ("1", true, false), (#"{"a": "1"}"#, ["a": 1], false), ("no JSON", [1], false),
            ("", [], false),
        ] as [(String, StructuredValue, Bool)])
    func exactStructure(answer: String, expected: StructuredValue, passes: Bool) async throws {
        let result = try await result(ExactMatchEvaluator(metric), .string(answer), expected: expected)
        #expect(result.value == (passes ? .passing : .failing))
    }

    @Test("values of an app are equal as JSON; a value that JSON does not have is an error")
    func exactValue() async throws {
        let evaluator = ExactMatchEvaluator<ModelSample<City>>(metric)
        let rome = City(name: "Rome", area: 1285)
        #expect(try await result(evaluator, rome, expected: rome).value == .passing)
        let other = try await result(evaluator, City(name: "Rome", area: 1), expected: rome)
        #expect(other == metric.failing(rationale: #"Expected {"area":1285,"name":"Rome"}."#))
        await #expect(throws: EncodingError.self) {
            _ = try await result(evaluator, City(name: "Rome", area: .infinity), expected: rome)
        }
    }

    @Test("without an expected value, a sample does not count")
    func nothingExpected() async throws {
        #expect(try await result(ExactMatchEvaluator(metric), "a").value == .ignore)
        #expect(try await result(ContainsEvaluator(metric), "a").value == .ignore)
        #expect(try await result(SimilarityEvaluator(metric, embedder: Letters()), "a").value == .ignore)
    }

    @Test("an answer contains all of the texts, none of them, or the expected one, in any case")
    func contains() async throws {
        let all = ContainsEvaluator<ModelSample<String>>(metric, all: ["Rome", "ÉTÉ", "x"])
        #expect(try await result(all, "rome in été: X").value == .passing)
        #expect(
            try await result(all, "Rome") == metric.failing(rationale: "The answer does not contain “ÉTÉ”, “x”."))
        let none = ContainsEvaluator<ModelSample<String>>(metric, none: ["sorry", "cannot"])
        #expect(try await result(none, "Here it is.").value == .passing)
        #expect(try await result(none, "SORRY, no.") == metric.failing(rationale: "The answer contains “sorry”."))
        for list in [ContainsEvaluator<ModelSample<String>>(metric, all: []), .init(metric, none: [])] {
            #expect(try await result(list, "a").value == .passing)
        }
        let expected = ContainsEvaluator<ModelSample<String>>(metric)
        #expect(try await result(expected, "It is paris.", expected: "Paris").value == .passing)
        #expect(try await result(expected, "It is Rome.", expected: "Paris").value == .failing)
        // The text of other values is their JSON.
        let name = ContainsEvaluator<ModelSample<City>>(metric, all: [#""name":"Rome""#])
        #expect(try await result(name, City(name: "Rome", area: 1)).value == .passing)
    }

    @Test("a part of an answer matches a pattern")
    func regex() async throws {
        let number = try RegexEvaluator<ModelSample<String>>(metric, pattern: "[0-9]+")
        #expect(try await result(number, "room 42").value == .passing)
        #expect(try await result(number, "room") == metric.failing(rationale: "The answer does not match [0-9]+."))
        let complete = try RegexEvaluator<ModelSample<String>>(metric, pattern: "(?i)^yes$")
        #expect(try await result(complete, "YES").value == .passing)
        #expect(try await result(complete, "yes!").value == .failing)
    }

    @Test("an answer conforms to a schema, with members in any order")
    func schema() async throws {
        let schema = #"""
            {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
             "required": ["name", "age"], "additionalProperties": false}
            """#
        let person = try JSONSchemaEvaluator<ModelSample<String>>(metric, schema: schema)
        for answer in [#"{"name": "Ada", "age": 36}"#, #"{"age":36.0,"name":"\u0041da"}"#, " {\"age\": 0,\n\"name\": \"\"}\n"] {
            #expect(try await result(person, answer).value == .passing, "\(answer)")
        }
        for answer in [
            #"{"name": "Ada"}"#, #"{"name": "Ada", "age": -1}"#, #"{"name": "Ada", "age": 1.5}"#, #"{"name": 1, "age": 1}"#,
            #"{"name": "Ada", "age": 36, "x": 1}"#, "[]", "",
        ] {
            #expect(try await result(person, answer).value == .failing, "\(answer)")
        }
        let wrong = try await result(person, #"{"name": "Ada", "age": "36"}"#)
        #expect(wrong == metric.failing(rationale: #"The answer does not conform to the schema after “{"name":"Ada","age":”."#))
        #expect(try await result(person, "Ada").rationale?.hasPrefix("The answer is not JSON.") == true)
        let ten = try JSONSchemaEvaluator<ModelSample<String>>(metric, schema: #"{"const": 10}"#)
        #expect(try await result(ten, "1") == metric.failing(rationale: "The answer ends before it conforms to the schema."))
        #expect(try await result(ten, "10").value == .passing)
        // As documented, items that must differ have one form.
        let different = try JSONSchemaEvaluator<ModelSample<String>>(
            metric, schema: #"{"items": {"properties": {"b": {}, "a": {}}}, "uniqueItems": true}"#)
        for (answer, passes) in [
            (#"[{"b":1,"a":2},{"b":1,"a":3}]"#, true), (#"[{"b":1,"a":2},{"b":1,"a":2}]"#, false), ("[1,2]", true),
            ("[1,1]", false),
            (#"[{"a":2,"b":1}]"#, false), ("[1.0]", false),
        ] {
            #expect(try await result(different, answer).value == (passes ? .passing : .failing), "\(answer)")
        }
        // Other values are checked as JSON.
        let city = try JSONSchemaEvaluator<ModelSample<City>>(metric, schema: #"{"properties": {"area": {"maximum": 9}}}"#)
        #expect(try await result(city, City(name: "a", area: 9)).value == .passing)
        #expect(try await result(city, City(name: "a", area: 10)).value == .failing)
    }

    @Test("a pattern that backtracks without end is an error") func slowPattern() async throws {
        let slow = try RegexEvaluator<ModelSample<String>>(metric, pattern: "(a+)+$")
        #expect(try await result(slow, "aaa").value == .passing)
        await #expect(throws: EvaluatorArgumentError.patternTooSlow("(a+)+$")) {
            _ = try await result(slow, String(repeating: "a", count: 60) + "b")
        }
        // Long answers alone are no problem.
        let long = String(repeating: "word ", count: 20_000)
        #expect(try await result(try RegexEvaluator(metric, pattern: "(?i)\\bzebra\\b"), long).value == .failing)
        #expect(try await result(try RegexEvaluator(metric, pattern: "(?s)^w.*d $"), long).value == .passing)
    }

    @Test("a wrong pattern or schema is an error that says what is wrong")
    func wrongArguments() async throws {
        #expect(throws: EvaluatorArgumentError.invalidPattern("(")) {
            try RegexEvaluator<ModelSample<String>>(metric, pattern: "(")
        }
        #expect(
            EvaluatorArgumentError.invalidPattern("(").localizedDescription == "“(” is not a regular expression.")
        for (schema, part) in [
            ("{", "Not valid JSON at line 1"), ("", "Not valid JSON"), ("5", "is not valid"),
            (#"{"type": "strin"}"#, "the schema at /type is not valid"), (#"{"pattern": "(a)\\1"}"#, "unsupported feature"),
            (#"{"allOf": [{"type": "null"}, {"type": "string"}]}"#, "cannot be satisfied"),
        ] {
            #expect("\(schema)") {
                try JSONSchemaEvaluator<ModelSample<String>>(metric, schema: schema)
            } throws: { error in
                guard case EvaluatorArgumentError.invalidSchema(let reason) = error else { return false }
                return reason.contains(part) && error.localizedDescription == "The schema cannot be used: \(reason)"
            }
        }
        let call = Transcript.ToolCall(id: "1", toolName: "t", arguments: GeneratedContent(properties: ["a": "b"]))
        let expectation = TrajectoryExpectation(expected: "t", arguments: [.pattern(argumentName: "a", regex: "[")])
        await #expect(throws: EvaluatorArgumentError.invalidPattern("[")) {
            _ = try await ToolCallEvaluator<ModelSample<String>>(allPass: .toolsAllPass, percentagePass: .toolsPercentagePass)
                .metrics(
                    subject: ModelSubject(value: "", transcript: StructuredTranscript(toolCalls: [call])),
                    input: ModelSample<String>(prompt: "p", expectations: expectation))
        }
    }

    /// The numbers of a, b and c in a text, as a vector of length 1.
    private struct Letters: EmbeddingModel {
        /// The number of vectors and of their elements that are missing.
        var missingVectors = 0
        var missingElements = 0

        func info() async throws -> EmbeddingModelInfo {
            EmbeddingModelInfo(name: "letters", identifier: "letters", dimension: 3, maximumTokenCount: 100)
        }
        func embed(_ texts: [String], as role: EmbeddingRole) async throws -> [[Float]] {
            #expect(role == .document)
            return texts.dropLast(missingVectors).map { text in
                let counts = "abc".map { letter in Float(text.count { $0 == letter }) }
                let length = counts.reduce(0) { $0 + $1 * $1 }.squareRoot()
                return counts.dropLast(missingElements).map { $0 / max(length, 1) }
            }
        }
        func tokenCounts(of texts: [String], as role: EmbeddingRole) async throws -> [Int] { texts.map(\.count) }
    }

    @Test("similarity is the cosine of the vectors; what a model returns is checked")
    func similarity() async throws {
        func cosine(_ answer: String, _ expected: String) async throws -> Double {
            let result = try await result(SimilarityEvaluator(metric, embedder: Letters()), answer, expected: expected)
            guard case .scoring(let score) = result.value else { return -2 }
            return score
        }
        #expect(abs(try await cosine("abc", "cab") - 1) < 1e-6)
        #expect(abs(try await cosine("a", "ab") - 0.5.squareRoot()) < 1e-6)
        #expect(try await cosine("a", "b") == 0)
        for broken in [Letters(missingVectors: 1), Letters(missingVectors: 2), Letters(missingElements: 1)] {
            await #expect(throws: EmbeddingError.self) {
                _ = try await result(SimilarityEvaluator(metric, embedder: broken), "a", expected: "b")
            }
        }
    }

    @Test("an evaluation combines them with evaluators of an app")
    func evaluation() async throws {
        struct Capitals: Evaluation {
            let isWord: RegexEvaluator<ModelSample<String>>
            var dataset: ArrayLoader<ModelSample<String>> {
                ArrayLoader(samples: [
                    ModelSample(prompt: "paris", expected: "Paris"), ModelSample(prompt: "Rome", expected: "Rome"),
                    ModelSample(prompt: "it is Oslo", expected: "Oslo"), ModelSample(prompt: "Bern"),
                ])
            }
            func subject(from sample: ModelSample<String>) async throws -> ModelSubject<String> {
                ModelSubject(value: sample.promptDescription)
            }
            var evaluators: Evaluators {
                ExactMatchEvaluator(Metric("Exact"))
                ContainsEvaluator(Metric("Contains"))
                ContainsEvaluator(Metric("No apology"), none: ["sorry"])
                isWord
                Evaluator { _, subject in Metric("Length").scoring(Double(subject.value.count)) }
            }
            func aggregateMetrics(using aggregator: inout MetricsAggregator) {
                for name in ["Exact", "Contains", "No apology", "Word"] { aggregator.computeMean(of: Metric(name)) }
            }
        }
        let result = try await Capitals(isWord: RegexEvaluator(Metric("Word"), pattern: #"^\w+$"#)).run()
        func mean(_ name: String) -> Double { result.aggregateValue(.mean(of: Metric(name))) }
        #expect(abs(mean("Exact") - 1.0 / 3) < 1e-9 && mean("Contains") == 1 && mean("No apology") == 1 && mean("Word") == 0.75)
    }
}
