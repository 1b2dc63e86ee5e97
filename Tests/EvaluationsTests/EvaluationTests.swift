import Evaluations
import Foundation
import FoundationModels
import FoundationModelsTesting
import TabularData
import Testing

/// An evaluation as an app writes it: does the model answer with the expected capital?
struct Capitals: Evaluation {
    static let exact = Metric("Exact")
    static let length = Metric("Length")
    let model: ScriptedLanguageModel

    var dataset: ArrayLoader<ModelSample<String>> {
        ArrayLoader(samples: [
            ModelSample(prompt: "Capital of France?", expected: "Paris"),
            ModelSample(prompt: "Capital of Italy?", expected: "Rome"),
            ModelSample(prompt: "Capital of Spain?", expected: "Madrid"), ModelSample(prompt: "Fails"),
        ])
    }

    func subject(from sample: ModelSample<String>) async throws -> ModelSubject<String> {
        let session = LanguageModelSession(model: model)
        let answer = try await session.respond(to: sample.prompt).content
        return ModelSubject(value: answer, transcript: session.transcript.structuredTranscript)
    }

    var evaluators: Evaluators {
        Evaluator { sample, subject in
            subject.value == sample.expected ? Self.exact.passing() : Self.exact.failing(rationale: "Got \(subject.value).")
        }
        Evaluator { _, subject in
            if subject.value == "Rom" { throw CancelledCheck() }
            return Self.length.scoring(Double(subject.value.count))
        }
    }

    struct CancelledCheck: Error {}

    func aggregateMetrics(using aggregator: inout MetricsAggregator) {
        aggregator.computeMean(of: Self.exact)
        aggregator.group("Length") { group in
            group.computeMaximum(of: Self.length)
            group.computeStandardDeviation(of: Self.length)
            group.custom(of: Self.length, label: "Sum") { $0.reduce(0, +) }
        }
        aggregator.computeMean(of: Metric("Unknown"))
    }

    static let script: [ScriptedLanguageModel.Step] = [.text("Paris"), .text("Rom"), .text("Madrid"), .failure(CancelledCheck())]
}

@Suite("evaluations") struct EvaluationTests {
    @Test("a run has the known scores; a failure of one sample does not end it")
    func run() async throws {
        let result = try await Capitals(model: ScriptedLanguageModel(Capitals.script)).run(info: ["version": "1"])
        #expect(result.evaluationID == "Capitals" && result.evaluationInfo == ["version": "1"])
        #expect(abs(result.aggregateValue(.mean(of: Capitals.exact)) - 2.0 / 3) < 1e-9)
        #expect(result.aggregateValue(.maximum(of: Capitals.length)) == 6)
        #expect(result.aggregateValue(.custom(label: "Sum")) == 11)
        #expect(result.aggregateValue(.median(of: Capitals.length)) == 5.5)
        #expect(result.aggregateValue(.mean(of: Metric("Unknown"))) == -1)
        let detailed = result.detailed
        #expect(detailed.shape.rows == 3)
        let responses: Column<ModelSubject<String>> = detailed[Capitals(model: ScriptedLanguageModel([])).responseColumn]
        #expect(responses.map { $0?.value } == ["Paris", "Rom", "Madrid"])
        #expect(detailed[metric: Capitals.exact].map { $0?.value } == [.passing, .failing, .passing])
        #expect(detailed[metric: Capitals.length][1] == nil)
        #expect(detailed["Expected", String.self].map { $0 } == ["Paris", "Rome", "Madrid"])
        #expect(result.groupedSummary.contains("Mean of Exact"))
        #expect(result.summary.description.split(separator: "\n").count == 6)
    }

    @Test("results are saved and read, one or several")
    func files() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }  // a leftover in the temporary folder is harmless
        let result = try await Capitals(model: ScriptedLanguageModel(Capitals.script)).run()
        let loaded = try EvaluationResult.loadJSON(from: try result.saveJSON(to: folder, includeTranscripts: true))
        #expect(loaded.resultID == result.resultID)
        #expect(loaded.aggregateValue(.custom(label: "Sum")) == 11)
        #expect(loaded.detailed["Response", String.self].map { $0 } == ["Paris", "Rom", "Madrid"])
        #expect(loaded.detailed[metric: Capitals.exact][1]?.rationale == "Got Rom.")
        let lines = try [result, loaded].saveJSONLines(to: folder.appending(path: "runs.jsonl"))
        #expect(try await EvaluationResult.loadJSONLines(from: lines).count == 2)
        #expect(throws: EvaluationResultsError.emptyJSONFile) { try EvaluationResult(jsonData: Data()) }
        #expect(throws: EvaluationResultsError.invalidJSONFormat) { try EvaluationResult(jsonData: Data("{}".utf8)) }
        let missing = folder.appending(path: "none.json")
        #expect(throws: EvaluationResultsError.fileNotFound(missing)) { try EvaluationResult.loadJSON(from: missing) }
    }

    @Test("numbers that JSON does not have survive, and a cancelled run is not a result")
    func unusual() async throws {
        struct Odd: Evaluation {
            static let score = Metric("Score")
            var dataset: ArrayLoader<ModelSample<String>> {
                ArrayLoader(samples: [ModelSample(prompt: "a", expected: "b"), ModelSample(prompt: "c", expected: "d")])
            }
            func subject(from sample: ModelSample<String>) async throws -> ModelSubject<String> { ModelSubject(value: "x") }
            var evaluators: Evaluators { Evaluator { _, _ in Self.score.scoring(.nan) } }
            func aggregateMetrics(using aggregator: inout MetricsAggregator) {
                aggregator.custom(of: Self.score, label: "Mean of Score") { _ in .infinity }
            }
        }
        let result = try await Odd().run()
        let loaded = try EvaluationResult(jsonData: result.jsonData())
        #expect(loaded.detailed[metric: Odd.score][0]?.doubleValue?.isNaN == true)
        #expect(loaded.aggregateValue(.custom(label: "Mean of Score")) == .infinity)
        #expect(loaded.aggregateValue(.mean(of: Odd.score)).isNaN)
        #expect(abs(loaded.duration - result.duration) < 0.002)
        // The cancellation of something else is an ordinary error, and an unknown metric has no results.
        struct Stopped: Evaluation {
            var dataset: ArrayLoader<ModelSample<String>> { Odd().dataset }
            func subject(from sample: ModelSample<String>) async throws -> ModelSubject<String> {
                ModelSubject(value: sample.promptDescription)
            }
            var evaluators: Evaluators {
                Evaluator { sample, _ in
                    if sample.promptDescription == "a" { throw CancellationError() }
                    return Metric("Response").passing()
                }
            }
            func aggregateMetrics(using aggregator: inout MetricsAggregator) {}
        }
        let stopped = try await Stopped().run()
        #expect(stopped.detailed[Stopped().responseColumn].map { $0?.value } == ["a", "c"])
        #expect(stopped.detailed[metric: Metric("Response")].map { $0?.value } == [nil, .passing])
        #expect(stopped.detailed[metric: Metric("Unknown")].map { $0?.value } == [nil, nil])
        let cancelled = Task {
            // The run takes microseconds: it must not end before it is cancelled.
            try? await Task.sleep(for: .seconds(60))  // ends when it is cancelled
            return try await Odd().run()
        }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
    }

    @Test("samples are read from JSON Lines; other lines are skipped")
    func loader() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString + ".jsonl")
        defer { try? FileManager.default.removeItem(at: file) }  // a leftover in the temporary folder is harmless
        let sample = ModelSample(
            prompt: "A", expected: "B", instructions: "C",
            expectations: TrajectoryExpectation(expected: "weather", arguments: [.exact(argumentName: "city", value: "Rome")]))
        let line = String(decoding: try JSONEncoder().encode(sample), as: UTF8.self)
        try Data("\(line)\nnot a sample\n{\"prompt\":\"D\"}\n".utf8).write(to: file)
        var samples: [ModelSample<String>] = []
        for try await sample in JSONLoader<ModelSample<String>>(url: file).stream { samples.append(sample) }
        #expect(samples.map(\.promptDescription) == ["A", "D"])
        #expect(samples[0].expected == "B" && samples[0].instructionsDescription == "C")
        #expect(samples[0].expectations?.ordered.first?.name == "weather")
        try Data("[\n  {\"prompt\": \"A\"},\n  {\"promt\": \"B\"},\n  {\"prompt\": \"C\"}\n]".utf8).write(to: file)
        var elements: [String] = []
        for try await sample in JSONLoader<ModelSample<String>>(url: file).stream { elements.append(sample.promptDescription) }
        #expect(elements == ["A", "C"])
    }

    private func calls(_ calls: [(String, GeneratedContent)]) -> ModelSubject<String> {
        ModelSubject(
            value: "",
            transcript: StructuredTranscript(
                toolCalls: calls.enumerated().map { Transcript.ToolCall(id: "\($0)", toolName: $1.0, arguments: $1.1) }))
    }

    @Test("tool calls are compared with expectations")
    func trajectories() async throws {
        let evaluator = ToolCallEvaluator<ModelSample<String>>(
            allPass: .toolsAllPass, percentagePass: .toolsPercentagePass,
            argumentMatchModel: ScriptedLanguageModel([.content(GeneratedContent(true)), .content(GeneratedContent(false))]))
        let made = calls([
            ("search", GeneratedContent(properties: ["query": "cheap flights to Rome", "limit": 5])),
            ("book", GeneratedContent(properties: ["flight": "AZ 123", "price": 99.5, "window": true])),
        ])
        func results(_ expectation: TrajectoryExpectation) async throws -> (Bool, Double) {
            let metrics = try await evaluator.metrics(
                subject: made, input: ModelSample<String>(prompt: "x", expectations: expectation))
            return (metrics[.toolsAllPass]?.value == .passing, metrics[.toolsPercentagePass]?.doubleValue ?? -1)
        }
        let search = ToolExpectation(
            "search", arguments: [.contains(argumentName: "query", substring: "Rome"), .exact(argumentName: "limit", value: 5)])
        let book = ToolExpectation(
            "book",
            arguments: [
                .pattern(argumentName: "flight", regex: "^[A-Z]{2} [0-9]+$"),
                .range(argumentName: "price", minimum: 50, maximum: 100),
                .oneOf(argumentName: "window", allowedValues: [true]), .keyOnly(argumentName: "price"),
            ])
        #expect(try await results(TrajectoryExpectation(ordered: [search, book])) == (true, 1))
        #expect(try await results(TrajectoryExpectation(ordered: [book, search])) == (false, 0.5))
        #expect(try await results(TrajectoryExpectation(ordered: [.anyOrder([book, search])])) == (true, 1))
        #expect(try await results(TrajectoryExpectation(unordered: [book, search])) == (true, 1))
        #expect(try await results(TrajectoryExpectation(ordered: [search], allowsAdditionalToolCalls: false)) == (false, 1))
        #expect(
            try await results(
                TrajectoryExpectation(disallowed: [
                    ToolExpectation("book", arguments: [.hasPrefix(argumentName: "flight", prefix: "LH")])
                ]))
                == (true, 1))
        #expect(try await results(TrajectoryExpectation(disallowed: [ToolExpectation("book")])) == (false, 0))
        let described = TrajectoryExpectation(
            expected: "search", arguments: [.naturalLanguage(argumentName: "query", criteria: "about travel")])
        #expect(try await results(described) == (true, 1))
        #expect(try await results(described) == (false, 0))
        // Every assignment of calls counts, not only the first one.
        let anySearch = ToolExpectation("search")
        let rome = ToolExpectation("search", arguments: [.exact(argumentName: "city", value: "Rome")])
        let two = calls([
            ("search", GeneratedContent(properties: ["city": "Rome"])),
            ("search", GeneratedContent(properties: ["city": "Oslo"])),
        ])
        for expectation in [
            TrajectoryExpectation(unordered: [anySearch, rome]), TrajectoryExpectation(ordered: [.anyOrder([anySearch, rome])]),
            TrajectoryExpectation(ordered: [anySearch], unordered: [rome]),
            TrajectoryExpectation(ordered: [.anyOrder([.anyOrder([rome]), anySearch]), .anyOrder([])]),
        ] {
            let metrics = try await evaluator.metrics(
                subject: two, input: ModelSample<String>(prompt: "x", expectations: expectation))
            #expect(metrics[.toolsAllPass]?.value == .passing, "\(expectation)")
        }
        // Expectations survive JSON and generated content.
        let copy = try TrajectoryExpectation(TrajectoryExpectation(ordered: [search, .anyOrder([book])]).generatedContent)
        #expect(copy.ordered[1].isAnyOrderGroup && copy.ordered[0].arguments.count == 2)
        _ = TrajectoryExpectation.generationSchema.debugDescription
    }

    @Test("a judge chooses levels of scales")
    func judge() async throws {
        let answer = GeneratedContent(properties: [
            "quality1": GeneratedContent(properties: ["reason": "Short.", "level": "2"]),
            "quality2": GeneratedContent(properties: ["reason": "Kind.", "level": "pass"]),
        ])
        let judge = ModelJudgeEvaluator<ModelSample<String>>(
            judge: ScriptedLanguageModel([.content(answer)]),
            dimensions: [
                ScoreDimension("Brevity", scale: .numeric([1: "Long.", 2: "Short."])),
                ScoreDimension("Tone", scale: .passFail(passDescription: "Kind.", failDescription: "Rude.")),
            ])
        let sample = ModelSample(prompt: "Say hello", expected: "Hi")
        let metrics = try await judge.metrics(subject: ModelSubject(value: "Hello!"), input: sample)
        #expect(metrics.map(\.doubleValue) == [2, 1] && metrics[0].rationale == "Short.")
        let empty = ModelJudgeEvaluator<ModelSample<String>>(
            "x", scale: ScoringScale(options: []), judge: ScriptedLanguageModel([]))
        await #expect(throws: ModelJudgeError.self) { try await empty.metrics(subject: ModelSubject(value: ""), input: sample) }
    }

    @Test("the system model judges", .enabled(if: SystemLanguageModel.default.isAvailable))
    func realJudge() async throws {
        let judge = ModelJudgeEvaluator<ModelSample<String>>(
            "Greeting", scale: .passFail(passDescription: "It greets.", failDescription: "It does not greet."))
        let metric = try await judge.metrics(
            subject: ModelSubject(value: "Hello, how are you?"), input: ModelSample(prompt: "Greet me", expected: "Hi"))
        #expect([0, 1].contains(metric[0].doubleValue))
    }

    @Test("samples are generated until there are enough, without repetitions and invalid ones")
    func generator() async throws {
        func step(_ prompt: String) -> ScriptedLanguageModel.Step {
            .content(GeneratedContent(properties: ["prompt": prompt, "expected": "x"]))
        }
        let model = ScriptedLanguageModel([
            step("one"), step("one"), step("bad"), step("two"), step("two"), step("two"), step("two"),
        ])
        let generator = SampleGenerator<ModelSample<String>>(
            Prompt("Questions"), samples: [ModelSample(prompt: "seed", expected: "y")], targetCount: 4,
            sessionProvider: { LanguageModelSession(model: model) }, samplingStrategy: .random(retries: 2),
            validator: { $0.promptDescription != "bad" })
        var made: [String] = []
        for try await sample in generator.run() { made.append(sample.promptDescription) }
        #expect(made == ["one", "two"])
        #expect(await generator.invalidSamples.map(\.promptDescription) == ["bad"])
    }

    @Test(
        "a test reads the result of its evaluation",
        .evaluates(Capitals(model: ScriptedLanguageModel(Capitals.script)), info: ["a": "b"]))
    func trait() {
        #expect(EvaluationContext.current.result.aggregateValue(.mean(of: Capitals.exact)) > 0.6)
    }
}
