/// PromptEvaluation: a test of a prompt. It runs a feature for some samples, measures its answers, and compares a figure with a limit.
///
///     swift test --filter PromptEvaluation
///
/// The results are attached to the test. The samples are few, so that the test is fast; some hundred tell more, and belong to a file
/// (`JSONLoader`). A limit below 1 lets the test pass with models that differ in one answer.

import Evaluations
import FoundationModels
import Testing

/// The feature that is tested: code of an app.
struct CapitalFinder {
    let session = LanguageModelSession(instructions: "Answer in one short sentence.")

    func answer(_ prompt: Prompt) async throws -> String {
        try await session.respond(to: prompt, options: GenerationOptions(samplingMode: .greedy)).content
    }
}

struct CapitalEvaluation: Evaluation {
    static let correct = Metric("Correct")
    static let brief = Metric("Brief")

    var dataset: ArrayLoader<ModelSample<String>> {
        ArrayLoader(samples: [
            ModelSample(prompt: "What is the capital of France?", expected: "Paris"),
            ModelSample(prompt: "What is the capital of Italy?", expected: "Rome"),
            ModelSample(prompt: "What is the capital of Japan?", expected: "Tokyo"),
        ])
    }

    func subject(from sample: ModelSample<String>) async throws -> ModelSubject<String> {
        let finder = CapitalFinder()
        let answer = try await finder.answer(sample.prompt)
        return ModelSubject(value: answer, transcript: finder.session.transcript.structuredTranscript)
    }

    var evaluators: Evaluators {
        ContainsEvaluator(Self.correct)
        Evaluator { _, subject in
            subject.value.count <= 120 ? Self.brief.passing() : Self.brief.failing(rationale: subject.value)
        }
    }

    func aggregateMetrics(using aggregator: inout MetricsAggregator) {
        aggregator.computeMean(of: Self.correct)
        aggregator.computeMean(of: Self.brief)
    }
}

@Suite("An evaluation of a prompt", .enabled(if: SystemLanguageModel.default.isAvailable))
struct PromptEvaluation {
    @Test("Most capitals are right, and answers are brief", .evaluates(CapitalEvaluation()))
    func capitals() {
        let result = EvaluationContext.current.result
        #expect(result.aggregateValue(.mean(of: CapitalEvaluation.correct)) > 0.5)
        #expect(result.aggregateValue(.mean(of: CapitalEvaluation.brief)) > 0.5)
    }
}
