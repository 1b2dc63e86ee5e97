import Evaluations
import Foundation
import FoundationModels
import FoundationModelsTesting
import Synchronization
import TabularData
import TestSupport
import Testing

@testable import EvaluationCore

/// What an evaluation has done.
private final class Log: Sendable {
    private struct State {
        var begun: [String] = []
        var evaluating = 0
        var evaluatedAtOnce = 0
    }

    private let state = Mutex(State())

    var begun: [String] { state.withLock { $0.begun } }
    var evaluatedAtOnce: Int { state.withLock { $0.evaluatedAtOnce } }
    func begin(_ sample: String) { state.withLock { $0.begun.append(sample) } }

    func evaluate() {
        state.withLock {
            $0.evaluating += 1
            $0.evaluatedAtOnce = max($0.evaluatedAtOnce, $0.evaluating)
        }
    }

    func endEvaluation() { state.withLock { $0.evaluating -= 1 } }
}

/// Does a feature count the letters of words? It counts one too few for long words, and fails for words with spaces.
private struct Lengths: Evaluation {
    static let correct = Metric("Correct")
    static let letters = Metric("Letters")

    struct Word: ReportedSample {
        var input: String
        var expected: Int?
        var id: String { input }
        var `class`: String? { input.count < 5 ? "short" : "long" }
    }

    struct NoWord: LocalizedError { var errorDescription: String? { "This is no word." } }

    var words = ["a", "of", "the", "four", "seven", "twelve"]
    var log = Log()
    /// How many samples must have begun before the first one ends.
    var together = 1
    var acceptsSpaces = false

    var dataset: ArrayLoader<Word> { ArrayLoader(samples: words.map { Word(input: $0, expected: $0.count) }) }

    func subject(from sample: Word) async throws -> ModelSubject<Int> {
        log.begin(sample.input)
        await eventually { log.begun.count >= together }
        if sample.input.contains(" "), !acceptsSpaces { throw NoWord() }
        return ModelSubject(value: sample.input.count - (sample.input.count > 5 ? 1 : 0))
    }

    var evaluators: Evaluators {
        Evaluator { [log] sample, subject in
            log.evaluate()
            for _ in 0..<20 { await Task.yield() }
            log.endEvaluation()
            return subject.value == sample.expected ? Self.correct.passing() : Self.correct.failing(rationale: "\(subject.value)")
        }
        Evaluator { _, subject in Self.letters.scoring(Double(subject.value)) }
    }

    func aggregateMetrics(using aggregator: inout MetricsAggregator) { aggregator.computeMean(of: Self.correct) }
}

@Suite("evaluation runs") struct EvaluationRunTests {
    /// The parts of a result that do not depend on time.
    private func contents(_ result: EvaluationResult) -> [[String]] {
        result.samples.map { sample in
            [sample.title, sample.class ?? "", sample.prompt, sample.response ?? "none", "\(sample.checks)", "\(sample.errors)"]
        }
    }

    @Test("several samples at once have the results of one after the other, in the same order")
    func parallel() async throws {
        let one = try await Lengths().run()
        let evaluation = Lengths(together: 4)
        var progress: [Int] = []
        let four = try await evaluation.run(parallel: 4) { progress.append($0.completed) }
        #expect(contents(one) == contents(four) && one.samples.map(\.id) == Lengths().words)
        #expect(Set(evaluation.log.begun.prefix(4)) == ["a", "of", "the", "four"] && progress == Array(0...6))
        #expect(evaluation.log.evaluatedAtOnce == 1, "a function need not be safe to be called by several tasks")
        #expect(four.detailed[evaluation.responseColumn].map { $0?.value } == [1, 2, 3, 4, 5, 5])
        #expect(four.detailed[metric: Lengths.correct].map { $0?.value } == Array(repeating: .passing, count: 5) + [.failing])
        #expect(abs(four.aggregateValue(.mean(of: Lengths.correct)) - 5.0 / 6) < 1e-9)
        let report = EvaluationReport(four)
        #expect(report.classes.map(\.name) == ["short", "long"] || report.classes.map(\.name) == ["long", "short"])
        #expect(report.total.passed == 5 && report.checks.map(\.score) == [nil, 20.0 / 6])
    }

    @Test("a run that was killed while it wrote a result continues with the next sample, and is the same in the end")
    func continuing() async throws {
        let folder = try Folder()
        let file = folder.url.appending(path: "run.jsonl")
        let complete = try await Lengths().run(info: ["version": "1"], parallel: 1, file: file)
        let lines = try Data(contentsOf: file).split(separator: 0x0A)
        #expect(lines.count == 7)
        try Data(lines.prefix(4).joined(separator: [0x0A]) + [0x0A] + lines[4].prefix(30)).write(to: file)
        let evaluation = Lengths()
        var known = -1
        let continued = try await evaluation.run(info: ["version": "1"], parallel: 3, file: file) { progress in
            if progress.latest == nil { known = progress.continued }
        }
        #expect(known == 3 && Set(evaluation.log.begun) == ["four", "seven", "twelve"])
        #expect(contents(continued) == contents(complete) && continued.evaluationInfo == ["version": "1"])
        // Results of the file have their outputs too.
        #expect(continued.detailed[evaluation.responseColumn].map { $0?.value } == [1, 2, 3, 4, 5, 5])
        #expect(contents(try EvaluationResult(contentsOfRun: file)).count == 6)
        // A complete run is not run again.
        let again = Lengths()
        #expect(contents(try await again.run(info: ["version": "1"], parallel: 2, file: file)) == contents(complete))
        #expect(again.log.begun.isEmpty)
        // Another version, other samples or another model are another run.
        for (other, info, fingerprints, difference) in [
            (Lengths(), ["version": "2"], [:], "version"), (Lengths(words: ["a"]), ["version": "1"], [:], "data set"),
        ] as [(Lengths, [String: String], [String: String], String)] {
            await #expect {
                try await other.run(info: info, parallel: 1, file: file, fingerprints: fingerprints)
            } throws: {
                if case .otherRun(file, _, [difference])? = $0 as? EvaluationDataError { true } else { false }
            }
            #expect(other.log.begun.isEmpty)
        }
        await #expect(throws: EvaluationDataError.runWithoutFingerprints(file)) {
            try await Lengths().run(info: ["version": "1"], parallel: 1, file: file, fingerprints: ["model": "1"])
        }
        withExtendedLifetime(folder) {}
    }

    @Test("a sample for which the feature failed runs again; an id that two samples have is an error")
    func failures() async throws {
        let folder = try Folder()
        let file = folder.url.appending(path: "run.jsonl")
        let first = try await Lengths(words: ["a", "no word", "b"]).run(parallel: 2, file: file)
        #expect(first.samples.map(\.passes) == [true, false, true] && first.samples[1].layer == .error)
        #expect(first.samples[1].errors == ["The feature failed: This is no word."] && first.detailed.shape.rows == 2)
        let evaluation = Lengths(words: ["a", "no word", "b"], acceptsSpaces: true)
        let second = try await evaluation.run(parallel: 2, file: file)
        #expect(evaluation.log.begun == ["no word"] && second.samples.map(\.response) == ["1", "6", "1"])
        #expect(second.comparison(with: first).layerChanges.map(\.before) == ["error"])
        await #expect(throws: EvaluationDataError.repeatedID("a")) { try await Lengths(words: ["a", "a"]).run(parallel: 2) }
        withExtendedLifetime(folder) {}
    }

    @Test("a cancelled run throws, and its file has what was done before")
    func cancelled() async throws {
        let folder = try Folder()
        let file = folder.url.appending(path: "run.jsonl")
        let run = Task {
            try await Lengths().run(parallel: 1, file: file) { progress in
                if progress.completed == 2 { withUnsafeCurrentTask { $0?.cancel() } }
            }
        }
        await #expect(throws: CancellationError.self) { try await run.value }
        #expect(try EvaluationResult(contentsOfRun: file).samples.count == 2)
        withExtendedLifetime(folder) {}
    }

    @Test("an output with the usage of its session has tokens in the result")
    func usage() async throws {
        struct Greetings: Evaluation {
            var dataset: ArrayLoader<ModelSample<String>> { ArrayLoader(samples: [ModelSample(prompt: "Hello", expected: "Hi")]) }
            func subject(from sample: ModelSample<String>) async throws -> ModelSubject<String> {
                let session = LanguageModelSession(model: ScriptedLanguageModel([.text("Good morning")]))
                var subject = ModelSubject(value: try await session.respond(to: sample.prompt).content)
                subject.usage = session.usage
                return subject
            }
            var evaluators: Evaluators { ExactMatchEvaluator(Metric("Exact")) }
            func aggregateMetrics(using aggregator: inout MetricsAggregator) {}
        }
        let result = try await Greetings().run(parallel: 2)
        #expect(result.samples.map(\.outputTokens) == [2] && result.samples.map(\.id) == ["sample 1"])
        #expect(EvaluationReport(result).html.contains("2 tokens"))
    }

    @Test("results that an earlier version saved are read")
    func earlierResults() throws {
        let text = """
            {"aggregates": [{"operation": {"metric": "Exact", "operation": "Mean"}, "value": 0.5}], "endTime": "2026-01-01T00:00:02.000Z",
            "evaluationID": "Capitals", "evaluationInfo": {"a": "b"}, "resultID": "6F9619FF-8B86-D011-B42D-00C04FC964FF",
            "samples": [{"errors": [], "expected": "Rome", "input": "Italy?", "response": "Rom", "seconds": 1,
            "results": [{"name": "Exact", "rationale": "Got Rom.", "result": "fail"}, {"name": "Length", "score": 3}]}],
            "startTime": "2026-01-01T00:00:00.000Z"}
            """
        let result = try EvaluationResult(jsonData: Data(text.utf8))
        #expect(result.detailed["Input", String.self].map { $0 } == ["Italy?"] && result.duration == 2)
        #expect(result.detailed[metric: Metric("Exact")][0] == Metric("Exact").failing(rationale: "Got Rom."))
        #expect(result.detailed[metric: Metric("Length")][0]?.doubleValue == 3)
        let copy = try EvaluationResult(jsonData: result.jsonData())
        #expect(copy.samples.map(\.checks) == result.samples.map(\.checks) && copy.evaluationInfo == ["a": "b"])
    }

    // MARK: - Data sets

    private static let facts = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "facts.jsonl")
    private static let model = ScriptedLanguageModel(answers: [
        "Capital of France?": "It is Paris.", "Capital of Italy?": "Rom", "Reply with the word yes.": "Yes",
    ])

    @Test("a data set runs against a model of the program, several samples at once, with seeds and a file")
    func dataSet() async throws {
        let folder = try Folder()
        let file = folder.url.appending(path: "facts.run.jsonl")
        let dataSet = try EvaluationDataSet(contentsOf: Self.facts)
        let one = try await dataSet.run(on: Self.model, parallel: 1)
        #expect(one.samples.map(\.id) == ["line 1", "line 2", "yes"] && one.samples.map(\.passes) == [true, false, true])
        #expect(one.samples[1].checks.last?.name == "exact" && one.samples[1].checks.last?.reason == "Expected Rome.")
        #expect(one.samples.map(\.outputTokens) == [3, 1, 1] && one.evaluationID == "facts.jsonl")
        #expect(one.aggregateValue(.mean(of: Metric("answers"))) == 1)
        #expect(contents(try await dataSet.run(on: Self.model, parallel: 3)) == contents(one))
        var options = EvaluationDataSet.Options()
        options.seeds = [1, 2]
        let seeded = try await dataSet.run(on: Self.model, options: options, info: ["model": "scripted"], file: file)
        #expect(seeded.samples.map(\.seed) == [1, 1, 1, 2, 2, 2])
        #expect(EvaluationReport(seeded).header.heading == "scripted (seeds 1,2, at most 300 tokens)")
        // A script without steps: all results come from the file.
        let known = try await dataSet.run(
            on: ScriptedLanguageModel([]), options: options, info: ["model": "scripted"], file: file)
        #expect(contents(known) == contents(seeded))
        options.seeds = [1]
        await #expect {
            try await dataSet.run(on: Self.model, options: options, info: ["model": "scripted"], file: file)
        } throws: {
            if case .otherRun(file, _, ["settings"])? = $0 as? EvaluationDataError { true } else { false }
        }
        let comparison = try await dataSet.run(on: Self.model).comparison(with: one)
        #expect(comparison.common == 3 && comparison.changes.isEmpty && comparison.difference == 0)
        withExtendedLifetime(folder) {}
    }

    @Test("what stops requests is in the results; without a model the run ends")
    func layers() async throws {
        let lines = """
            {"prompt": "a", "declines": true}
            {"prompt": "b", "language": "el"}
            {"prompt": "c"}
            {"prompt": "d", "declines": true}
            """
        let dataSet = try EvaluationDataSet(Data(lines.utf8), name: "layers")
        let model = ScriptedLanguageModel([
            .failure(LanguageModelError.guardrailViolation(.init(debugDescription: "The prompt is unsafe."))),
            .failure(
                LanguageModelError.unsupportedLanguageOrLocale(
                    .init(languageCode: Locale.LanguageCode("el"), debugDescription: "Greek."))),
            .failure(URLError(.notConnectedToInternet)), .text("I'm sorry, but I can't assist with that."),
        ])
        var options = EvaluationDataSet.Options()
        options.supportsLocale = { $0.language.languageCode != "el" }
        let result = try await dataSet.run(on: model, options: options, parallel: 1)
        #expect(result.samples.map(\.layer) == [.guardrailPrompt, .language, .error, .refusal])
        #expect(result.samples.map(\.passes) == [true, true, false, true])
        let missing = ScriptedLanguageModel([
            .failure(SystemLanguageModel.Error.assetsUnavailable(.init(debugDescription: "There is no model.")))
        ])
        await #expect(throws: SystemLanguageModel.Error.self) { try await dataSet.run(on: missing, parallel: 1) }
        let similar = try EvaluationDataSet(
            Data(#"{"prompt": "a", "expected": "b", "similarity": 0.5}"#.utf8), name: "similar")
        await #expect(throws: EvaluationDataError.missingEmbedder) { try await similar.run(on: missing) }
    }

    @Test("a data set runs with sessions and prompts of the program")
    func sessions() async throws {
        let dataSet = try EvaluationDataSet(
            Data(#"{"prompt": "Who?", "context": "Ada.", "contains": ["Ada"], "instructions": "Be brief."}"#.utf8), name: "d")
        let model = ScriptedLanguageModel(answers: ["[Ada.] Who?": "Ada"])
        let result = try await dataSet.run(prompt: { "[\($0.context ?? "")] \($0.prompt)" }) { sample in
            LanguageModelSession(model: model, instructions: "Answer. \(sample.instructions ?? "")")
        }
        let sample = try #require(result.samples.first)
        #expect(sample.passes && sample.prompt == "[Ada.] Who?" && sample.request == "Who?\n\nAda.")
        #expect(sample.instructions == "Answer. Be brief.")
    }

    @Test("tools of a data set have their outputs, and the calls are in the results")
    func tools() async throws {
        let line = """
            {"prompt": "Rain?", "tools": [{"name": "weather", "description": "The weather.", "output": "sunny", "parameters": \
            {"properties": {"city": {"type": "string"}}}}], "requiresTool": true, "contains": ["no"], \
            "calls": {"ordered": [{"name": "weather", "arguments": [{"exact": {"argumentName": "city", "value": "Rome"}}]}]}}
            """
        let model = ScriptedLanguageModel([
            .toolCalls([.init(name: "weather", arguments: GeneratedContent(properties: ["city": "Rome"]))]), .text("No rain."),
        ])
        let result = try await EvaluationDataSet(Data(line.utf8), name: "d").run(on: model)
        let sample = try #require(result.samples.first)
        #expect(sample.passes && sample.calls?.map(\.name) == ["weather"] && sample.calls?.first?.output == "sunny")
        #expect(sample.checks.first { $0.name == "calls" }?.score == 1)
    }

    @Test("a test reads the result of its data set", .evaluates(dataSet: facts, on: model, info: ["model": "scripted"]))
    func dataSetTrait() {
        let result = EvaluationContext.current.result
        #expect(result.samples.count == 3 && EvaluationReport(result, minimum: 0.6).isPassed)
        #expect(!EvaluationReport(result).isPassed)
    }

    @Test("a test reads the result of an evaluation of several samples at once", .evaluates(Lengths(together: 3), parallel: 3))
    func parallelTrait() {
        #expect(EvaluationContext.current.result.samples.map(\.id) == Lengths().words)
    }
}
