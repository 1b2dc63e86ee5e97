import Decisions
import Foundation
import FoundationModels
import TestSupport
import Testing

@testable import EvaluationCore

@Suite("data sets with decisions") struct DecisionEvaluationTests {
    private static let predicate = #""decision": {"type": "predicate", "instructions": "Is it late?"}"#
    private static let choice =
        #""decision": {"type": "choice", "instructions": "Which team?", "choices": ["billing", {"value": "support"}, {"value": true}]}"#
    private static let score =
        #""decision": {"type": "score", "instructions": "How urgent?", "levels": ["low", {"label": "middle"}, "high"]}"#

    private static func dataSet(_ lines: String...) throws -> EvaluationDataSet {
        try EvaluationDataSet(Data(lines.joined(separator: "\n").utf8), name: "data")
    }

    private static func sample(_ fields: String) throws -> EvaluationDataSet.Sample {
        try dataSet("{\"prompt\": \"Where is it?\", \(fields)}").samples[0]
    }

    // MARK: - Lines

    @Test("the right answer is one of the values of the question: a level by its number too")
    func expectedValues() throws {
        for (decision, expected, index) in [
            (Self.predicate, "true", 0), (Self.predicate, "false", 1), (Self.choice, #""billing""#, 0),
            (Self.choice, #""support""#, 1), (Self.choice, "true", 2), (Self.score, #""low""#, 0), (Self.score, #""high""#, 2),
            (Self.score, "0", 0), (Self.score, "2", 2),
        ] {
            let sample = try Self.sample("\(decision), \"expected\": \(expected)")
            #expect(sample.decision?.expected == index, "\(decision), \(expected)")
        }
        // Levels that are numbers for people are names.
        let numbers = #""decision": {"type": "score", "instructions": "Stars?", "levels": ["1", "2", "3"]}"#
        #expect(try Self.sample("\(numbers), \"expected\": \"1\"").decision?.expected == 0)
        #expect(try Self.sample("\(numbers), \"expected\": 1").decision?.expected == 1)
        #expect(try Self.sample(#""expected": "Rome""#).decision == nil)
    }

    @Test("wrong decisions are described with their lines and places")
    func wrongLines() throws {
        let values = "“expected” must be one of the values that “decision” offers"
        for (fields, message) in [
            (Self.predicate, values), ("\(Self.predicate), \"expected\": \"true\"", values),
            ("\(Self.predicate), \"expected\": null", values), ("\(Self.choice), \"expected\": \"sales\"", values),
            ("\(Self.choice), \"expected\": \"true\"", values), ("\(Self.choice), \"expected\": 0", values),
            ("\(Self.score), \"expected\": 3", values), ("\(Self.score), \"expected\": -1", values),
            ("\(Self.score), \"expected\": 1.5", values), (#""decision": 5, "expected": true"#, "“decision”"),
            (#""decision": null, "expected": true"#, "“decision”"), (#""decision": {}, "expected": true"#, "“decision.type”"),
            (#""decision": {"type": "predicate"}, "expected": true"#, "“decision.instructions”"),
            (
                #""decision": {"type": "choice", "instructions": "a", "choices": ["a", 5]}, "expected": "a""#,
                "“decision.choices.1.value”"
            ),
            (
                #""decision": {"type": "choice", "instructions": "a", "choices": ["a", "A"]}, "expected": "a""#,
                "are the same"
            ),
            (
                #""decision": {"type": "predicate", "instructions": "a", "contains": ["b"]}, "expected": true"#,
                "“decision.contains”"
            ),
        ] {
            let line = "{\"prompt\": \"a\"}\n{\"prompt\": \"b\", \(fields)}"
            #expect {
                try EvaluationDataSet(Data(line.utf8), name: "data")
            } throws: { error in
                let text = "\(error)"
                return text.contains("line 2: ") && text.contains(message) && !text.hasSuffix("..")
            }
        }
        // Nothing is generated that could be checked.
        for (field, value) in [
            ("contains", #"["a"]"#), ("excludes", #"["a"]"#), ("regex", #""a""#), ("schema", "{}"), ("similarity", "0.5"),
            ("rubric", #""a""#), ("declines", "true"),
            ("calls", #"{"unordered": [{"name": "now"}], "allowsAdditionalCalls": true}"#),
            ("tools", #"[{"name": "now", "description": "The time.", "output": "noon"}]"#),
        ] {
            #expect {
                try Self.sample("\(Self.predicate), \"expected\": true, \"\(field)\": \(value)")
            } throws: { "\($0)".contains("“\(field)” is a check of answers, and “decision” has none") }
        }
    }

    // MARK: - Runs

    /// A model of random weights.
    private static func file(seed: UInt64 = 1) throws -> TemporaryFile {
        var tiny = TinyModel()
        (tiny.seed, tiny.context) = (seed, 1_024)
        return try tiny.file()
    }

    private static func model(_ file: TemporaryFile) -> SystemLanguageModel {
        SystemLanguageModel(file: file.path, guardrails: .permissiveContentTransformations)
    }

    private static func mixed() throws -> EvaluationDataSet {
        try dataSet(
            "{\"id\": \"a\", \"prompt\": \"Where is it?\", \(predicate), \"expected\": true, \"class\": \"mail\"}",
            "{\"id\": \"b\", \"prompt\": \"Where is it?\", \(predicate), \"expected\": false}",
            "{\"id\": \"c\", \"prompt\": \"Where is it?\", \"context\": \"A mail.\", \(choice), \"expected\": true}",
            "{\"id\": \"d\", \"prompt\": \"Where is it?\", \(score), \"expected\": \"high\"}")
    }

    @Test("questions are decided, and judged by their most probable option")
    func run() async throws {
        let file = try Self.file()
        defer { withExtendedLifetime(file) {} }
        let result = try await Self.mixed().run(on: Self.model(file))
        #expect(result.samples.map(\.id) == ["a", "b", "c", "d"])
        #expect(result.samples.map { $0.decision?.kind } == ["predicate", "predicate", "choice", "score"])
        #expect(result.samples.map(\.expected) == ["yes", "no", "true", "high"])
        #expect(result.samples[2].prompt == "Where is it?\n\nA mail.")
        for sample in result.samples {
            let decision = try #require(sample.decision)
            let isRight = decision.chosen == decision.expected
            #expect(sample.layer == nil && sample.checks.map(\.name) == ["decision"] && sample.checks[0].passes == isRight)
            #expect(sample.checks[0].score == decision.probability && (sample.checks[0].reason == nil) == isRight)
            #expect(sample.passes == isRight)
            #expect(abs(decision.probabilities.reduce(0, +) - 1) < 1e-9)
            #expect(decision.probabilities[decision.chosen] == decision.probabilities.max())
            #expect(decision.logProbabilities.count == decision.probabilities.count && decision.model != nil)
            #expect((sample.response == sample.expected) == isRight && (sample.inputTokens ?? 0) > 0 && sample.outputTokens == 0)
        }
        // Yes and no of the same question: one of them is right.
        #expect(result.samples[0].decision?.logProbabilities == result.samples[1].decision?.logProbabilities)
        #expect(result.samples[0].passes != result.samples[1].passes)
    }

    @Test("a calibration changes probabilities, and what it was fitted to stays in the results")
    func calibratedRun() async throws {
        let file = try Self.file()
        defer { withExtendedLifetime(file) {} }
        let plain = try await Self.mixed().run(on: Self.model(file))
        var options = EvaluationDataSet.Options()
        options.decisions.calibration = Calibration(
            entries: ["predicate", "choice", "score"].map { .init(kind: $0, temperature: 3) })
        let warm = try await Self.mixed().run(on: Self.model(file), options: options)
        for (before, after) in zip(plain.samples, warm.samples) {
            let (one, other) = (try #require(before.decision), try #require(after.decision))
            #expect(one.logProbabilities == other.logProbabilities && one.chosen == other.chosen)
            #expect(other.probabilities[other.chosen] < one.probabilities[one.chosen])
        }
    }

    @Test("a question that does not fit the window is a sample that did not pass, not the end of the run")
    func tooLong() async throws {
        let file = try Self.file()
        defer { withExtendedLifetime(file) {} }
        let long = String(repeating: "one two three ", count: 200)
        let dataSet = try Self.dataSet(
            "{\"id\": \"a\", \"prompt\": \"\(long)\", \(Self.choice), \"expected\": \"billing\"}",
            "{\"id\": \"b\", \"prompt\": \"Where is it?\", \(Self.choice), \"expected\": \"billing\"}")
        let samples = try await dataSet.run(on: Self.model(file)).samples
        #expect(samples.map { $0.layer?.rawValue } == [SampleResult.Layer.contextWindow.rawValue, nil])
        #expect(samples[0].decision == nil && samples[0].checks.map(\.passes) == [false] && samples[1].decision != nil)
        let report = EvaluationReport(EvaluationResult(test: samples))
        #expect(report.decisions.map(\.quality.count) == [1])
    }

    @Test("decisions are kept in the file of a run") func runFile() async throws {
        let folder = try Folder()
        let file = try Self.file()
        defer { withExtendedLifetime((folder, file)) {} }
        let url = folder.url.appending(path: "run.jsonl")
        let first = try await Self.mixed().run(on: Self.model(file), file: url)
        // Nothing is decided again, not even by another model.
        let other = try Self.file(seed: 2)
        let second = try await Self.mixed().run(on: Self.model(other), file: url)
        #expect(second.samples.map(\.decision) == first.samples.map(\.decision))
        #expect(try EvaluationResult(contentsOfRun: url).samples.map(\.decision) == first.samples.map(\.decision))
        withExtendedLifetime(other) {}
    }

    // MARK: - Reports

    @Test("the report has the quality of each kind, in all its forms")
    func report() async throws {
        let file = try Self.file()
        defer { withExtendedLifetime(file) {} }
        let report = EvaluationReport(try await Self.mixed().run(on: Self.model(file)))
        #expect(report.decisions.map(\.kind) == ["predicate", "choice", "score", "all"])
        #expect(report.decisions.map(\.quality.count) == [2, 1, 1, 4])
        #expect(report.decisions[0].quality.accuracy == 0.5 && report.decisions.allSatisfy { $0.fitted == nil })
        let all = try #require(report.decisions.last)
        #expect(all.quality.accuracy == Double(report.total.passed) / 4)

        let lines = report.text.split(separator: "\n").map(String.init)
        let first = try #require(lines.firstIndex(of: "Decisions:"))
        #expect(lines[first + 1].contains("calibration error") && lines[first + 1].contains("log loss"))
        let kinds = lines[(first + 2)...].prefix(4).map { $0.split(separator: " ").first.map(String.init) }
        #expect(kinds == ["predicate", "choice", "score", "all"] && lines[first + 2].contains("50.0 %"))
        #expect(report.html.contains("calibration error") && report.html.contains("mean probability"))

        let json = try #require(try JSONSerialization.jsonObject(with: report.json()) as? [String: Any])
        let summaries = try #require(json["decisions"] as? [[String: Any]])
        #expect(summaries.map { $0["kind"] as? String } == ["predicate", "choice", "score", "all"])
        let quality = try #require(summaries[0]["quality"] as? [String: Any])
        #expect(quality["count"] as? Int == 2 && quality["accuracy"] as? Double == 0.5)
        #expect(Set(quality.keys) == ["count", "accuracy", "calibration_error", "log_loss", "bins"])
    }

    @Test("a report of answers has no table of decisions") func reportWithoutDecisions() throws {
        let report = EvaluationReport(EvaluationResult(test: [.test("a", passes: true)]))
        #expect(report.decisions.isEmpty && !report.text.contains("Decisions:"))
        #expect(!report.html.contains("calibration error"))
        #expect(try !String(decoding: report.json(), as: UTF8.self).contains("decisions"))
    }

    /// Choices of a model that is too sure: of five with 99 %, four are right.
    private func sure(_ count: Int, kind: String = "choice") -> [SampleResult] {
        (0..<count).map { number in
            let isRight = number % 5 != 4
            var result = SampleResult.test("\(kind) \(100 + number)", passes: isRight)
            result.decision = .init(
                kind: kind, chosen: 0, expected: isRight ? 0 : 1, probabilities: [0.99, 0.01],
                logProbabilities: [log(0.99), log(0.01)], model: "m")
            return result
        }
    }

    @Test("fitted temperatures are shown from 40 decisions on, and judged with questions that they were not fitted to")
    func fitted() throws {
        #expect(EvaluationReport(EvaluationResult(test: sure(39))).decisions[0].fitted == nil)
        let report = EvaluationReport(EvaluationResult(test: sure(40)))
        let summary = try #require(report.decisions.first)
        let fitted = try #require(summary.fitted)
        #expect(report.decisions.count == 1, "one kind needs no sum")
        #expect(abs(summary.quality.calibrationError - 0.19) < 1e-9 && summary.quality.accuracy == 0.8)
        #expect(fitted.count == 40 && fitted.accuracy == 0.8)
        #expect(fitted.calibrationError < 0.01 && fitted.logLoss < summary.quality.logLoss)
        #expect(report.text.contains("0.190"))
        let json = try #require(try JSONSerialization.jsonObject(with: report.json()) as? [String: Any])
        let summaries = try #require(json["decisions"] as? [[String: Any]])
        #expect(summaries[0]["fitted"] is [String: Any])
        // What one half says is not used to judge it: with all mistakes in the other one, the temperature is far too low.
        var halves = sure(40)
        for index in halves.indices {
            halves[index].decision?.expected = index % 2 == 0 ? 0 : index % 4 / 2
        }
        let divided = try #require(EvaluationReport(EvaluationResult(test: halves)).decisions[0].fitted)
        #expect(divided.accuracy == 0.75 && divided.logLoss > 1)
        // Of several kinds, each needs as many, but all together have a sum.
        let kinds = EvaluationReport(EvaluationResult(test: sure(30) + sure(30, kind: "score"))).decisions
        #expect(kinds.map(\.kind) == ["choice", "score", "all"] && kinds.map { $0.fitted == nil } == [true, true, false])
    }
}
