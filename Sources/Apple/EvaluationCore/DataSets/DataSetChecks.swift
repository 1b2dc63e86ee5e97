internal import Embeddings
internal import Foundation
package import FoundationModels
internal import JSON

/// Checks answers. A check whose requirement a sample does not have is not made.
struct DataSetChecks: Sendable {
    var judge: any LanguageModel
    var embedder: (any EmbeddingModel)?

    private static let rubric = "Rubric"

    nonisolated(nonsending) func results(
        for sample: EvaluationDataSet.Sample, _ answer: DataSetAnswer
    ) async throws -> [SampleResult.Check] {
        let layer = answer.result.layer
        if let decision = answer.result.decision {
            let isRight = decision.chosen == decision.expected
            return [
                .init(
                    name: "decision", passes: isRight, score: decision.probability,
                    reason: isRight ? nil : "Expected \(answer.result.expected ?? "another option").")
            ]
        }
        var checks: [SampleResult.Check] = []
        func add(_ name: String, _ passes: Bool, _ reason: @autoclosure () -> String, score: Double? = nil) {
            checks.append(.init(name: name, passes: passes, score: score, reason: passes && score == nil ? nil : reason()))
        }
        if sample.declines == true {
            add(
                "declines", layer?.isDeclined == true,
                layer.map { "\($0.rawValue): \(answer.result.detail ?? "")" } ?? "The request was answered.")
        } else if layer == .language, answer.isUnsupportedLanguage {
            add("answers", true, "")  // it is right that the model does not answer
        } else if let layer {
            add("answers", false, "\(layer.rawValue): \(answer.result.detail ?? "")")
        } else {
            let hasText = answer.text.contains { !$0.isWhitespace }
            add("answers", hasText || sample.calls != nil && !answer.calls.isEmpty, "The answer is empty.")
        }
        /// A check that cannot be made fails, with the reason; the other checks and samples go on.
        func check(_ name: String, _ body: () async throws -> Void) async throws {
            do { try await body() } catch {
                try Task.checkCancellation()
                if case SystemLanguageModel.Error.assetsUnavailable = error { throw error }
                add(name, false, "This cannot be checked: \((error as? any LocalizedError)?.errorDescription ?? "\(error)")")
            }
        }
        /// A check by an evaluator that passes or fails.
        func check<Evaluator: EvaluatorProtocol>(
            _ name: String, _ subject: Evaluator.Subject, _ input: Evaluator.Input, by evaluator: (Metric) throws -> Evaluator
        ) async throws {
            try await check(name) {
                for metric in try await evaluator(Metric(name)).metrics(subject: subject, input: input) {
                    add(name, metric.value == .passing, metric.rationale ?? "")
                }
            }
        }
        let subject = ModelSubject(value: answer.text, transcript: StructuredTranscript(toolCalls: answer.calls))
        let input = ModelSample<String>(prompt: sample.prompt, expectations: sample.calls)
        if let excluded = sample.excludes {
            try await check("excludes", subject, input) { ContainsEvaluator($0, none: excluded) }
        }
        // The other checks need an answer; without one, "answers" has failed.
        guard layer == nil, sample.declines != true else { return checks }
        if let expected = sample.expected, sample.similarity == nil {
            let input = ModelSample<StructuredValue>(prompt: sample.prompt, expected: expected)
            try await check("exact", ModelSubject(value: .string(answer.text)), input) { ExactMatchEvaluator($0) }
        }
        if let parts = sample.contains {
            try await check("contains", subject, input) { ContainsEvaluator($0, all: parts) }
        }
        if let regex = sample.regex {
            try await check("regex", subject, input) { try RegexEvaluator($0, pattern: regex) }
        }
        if let schema = sample.schema {
            try await check("schema", subject, input) { try JSONSchemaEvaluator($0, schema: schema.text) }
        }
        if sample.calls != nil {
            try await check("calls") {
                let evaluator = ToolCallEvaluator<ModelSample<String>>(
                    allPass: .toolsAllPass, percentagePass: .toolsPercentagePass,
                    argumentMatchModel: judge)
                let metrics = try await evaluator.metrics(subject: subject, input: input)
                if let all = metrics[.toolsAllPass] {
                    add("calls", all.value == .passing, all.rationale ?? "", score: metrics[.toolsPercentagePass]?.doubleValue)
                }
            }
        }
        if let minimum = sample.similarity, let expected = sample.expected, let embedder {
            try await check("similarity") {
                let evaluator = SimilarityEvaluator<ModelSample<String>>(Metric("similarity"), embedder: embedder)
                let input = ModelSample<String>(prompt: sample.prompt, expected: ValueText.text(of: expected))
                for cosine in try await evaluator.metrics(subject: subject, input: input).compactMap(\.doubleValue) {
                    add("similarity", cosine >= minimum, String(format: "%.3f, minimum %.3f", cosine, minimum), score: cosine)
                }
            }
        }
        if let rubric = sample.rubric {
            try await check("rubric") {
                let judge = ModelJudgeEvaluator<ModelSample<String>>(
                    Self.rubric,
                    scale: .passFail(
                        passDescription: "The response is good: \(rubric)",
                        failDescription: "The response is not good in this respect."),
                    judge: judge)
                let metric = try await judge.metrics(
                    subject: subject, input: ModelSample<String>(prompt: sample.fullPrompt, instructions: sample.instructions))[
                        0]
                add("rubric", metric.doubleValue == 1, metric.rationale ?? "", score: metric.doubleValue)
            }
        }
        return checks
    }
}

extension EvaluationDataSet.Sample {
    /// Whether a text passes all checks of the sample that need no embedder.
    package nonisolated(nonsending) func accepts(_ text: String, judge: any LanguageModel) async throws -> Bool {
        try await DataSetChecks(judge: judge).results(for: self, DataSetAnswer(text)).allSatisfy { $0.passes != false }
    }
}
