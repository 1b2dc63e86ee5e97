public import Decisions
public import Embeddings
public import Foundation
public import FoundationModels
internal import Files
internal import Grammar
internal import JSON
internal import ModelPrompts
internal import TextScreening

extension EvaluationDataSet {
    /// How the samples of a data set are answered and checked.
    public struct Options: Sendable {
        /// Instructions for samples that have none.
        public var instructions: String?
        /// Answers are sampled once with each of these seeds; without seeds, they are the most probable ones.
        public var seeds: [UInt64] = []
        /// The temperature of answers with a seed.
        public var temperature = 0.7
        /// The maximum number of tokens of an answer, for samples that have none.
        public var maximumResponseTokens = 300
        /// The model that judges answers and arguments; nil for the model under test.
        public var judge: (any LanguageModel)?
        /// The model for samples with a minimum similarity.
        public var embedder: (any EmbeddingModel)?
        /// How questions are decided, for samples that have one.
        public var decisions = DecisionOptions()
        /// Whether the model under test lists a language: a request in another one may be stopped. Nil if every language counts as
        /// listed, except for a `SystemLanguageModel`, which says it.
        public var supportsLocale: (@Sendable (Locale) -> Bool)?

        /// Creates options.
        public init() {}

        /// What changes the answers, for people.
        package var summary: [String] {
            var parts = [seeds.isEmpty ? "greedy" : "seeds \(seeds.map(String.init).joined(separator: ","))"]
            parts.append("at most \(maximumResponseTokens) tokens")
            if !seeds.isEmpty, temperature != 0.7 { parts.append("temperature \(temperature)") }
            if let instructions { parts.append("instructions \(String(FNV.hash(instructions.utf8), radix: 16).prefix(8))") }
            return parts
        }
    }

    /// Answers the samples with a model and checks the answers, several samples at once.
    ///
    /// - Parameters:
    ///   - model: The model under test, which may be a guarded one.
    ///   - options: How samples are answered.
    ///   - info: Texts that the result keeps and reports show. `model`, `adapter`, `settings` and `judge` come first in reports;
    ///     without `settings`, those of the options are added.
    ///   - parallel: The number of samples that are answered at once.
    ///   - file: A file to which each result is added. A run that was stopped continues with it, if the data set, `info` and
    ///     `fingerprints` are the same. A sample for which the request failed runs again.
    ///   - fingerprints: Hashes of what else the results depend on, such as the file of the model, by names.
    ///   - progress: Called at the beginning, and after each sample.
    /// - Throws: ``EvaluationDataError``, `SystemLanguageModel.Error.assetsUnavailable` if there is no model, or `CancellationError`.
    public nonisolated(nonsending) func run(
        on model: some LanguageModel, options: Options = Options(), info: [String: String] = [:], parallel: Int = 4,
        file: URL? = nil, fingerprints: [String: String] = [:], progress: (EvaluationProgress) -> Void = { _ in }
    ) async throws -> EvaluationResult {
        var options = options
        options.judge = options.judge ?? model
        if options.supportsLocale == nil, let model = model as? SystemLanguageModel {
            options.supportsLocale = { model.supportsLocale($0) }
        }
        return try await run(
            options: options, info: info, parallel: parallel, file: file, fingerprints: fingerprints, progress: progress
        ) { [options] sample in
            try sample.session(on: model, instructions: sample.instructions ?? options.instructions)
        }
    }

    /// Answers the samples with sessions of the program, such as those of the feature that is tested, and checks the answers.
    ///
    /// - Parameters:
    ///   - options: How samples are answered. Instructions are those of the session. Without a judge, it is the system model.
    ///   - info: Texts that the result keeps and reports show. `model`, `adapter`, `settings` and `judge` come first in reports;
    ///     without `settings`, those of the options are added.
    ///   - parallel: The number of samples that are answered at once.
    ///   - file: A file to which each result is added. A run that was stopped continues with it, if the data set, `info` and
    ///     `fingerprints` are the same. A sample for which the request failed runs again.
    ///   - fingerprints: Hashes of what else the results depend on, such as the file of the model, by names.
    ///   - progress: Called at the beginning, and after each sample.
    ///   - prompt: The prompt of a sample, such as one in which the document has marks.
    ///   - session: A new session for a sample, which may have tools of its own. An error ends the run.
    /// - Throws: ``EvaluationDataError``, `SystemLanguageModel.Error.assetsUnavailable` if there is no model, `CancellationError`, or
    ///   an error of `session`.
    public nonisolated(nonsending) func run(
        options: Options = Options(), info: [String: String] = [:], parallel: Int = 4, file: URL? = nil,
        fingerprints: [String: String] = [:], progress: (EvaluationProgress) -> Void = { _ in },
        prompt: @escaping @Sendable (Sample) -> String = { $0.fullPrompt },
        session: @escaping @Sendable (Sample) async throws -> LanguageModelSession
    ) async throws -> EvaluationResult {
        if needsEmbedder, options.embedder == nil { throw EvaluationDataError.missingEmbedder }
        let start = Date()
        let seeds: [UInt64?] = options.seeds.isEmpty ? [nil] : options.seeds
        // Nothing is sampled for a decision: another seed has the same result.
        let work = seeds.enumerated().flatMap { index, seed in
            samples.filter { index == 0 || $0.decision == nil }.map { (sample: $0, seed: $0.decision == nil ? seed : nil) }
        }
        let header = RunHeader(
            dataset: name, fingerprint: fingerprint,
            info: info.merging(["settings": options.summary.joined(separator: ", ")]) { given, _ in given },
            contents: fingerprints.isEmpty ? nil : fingerprints)
        let checks = DataSetChecks(judge: options.judge ?? SystemLanguageModel.default, embedder: options.embedder)
        let results = try await EvaluationRunner(header: header, parallel: parallel, file: file).run(
            work.map { .init(key: .init(id: $0.sample.id, seed: $0.seed), class: $0.sample.class) }, progress: progress
        ) { [options] index in
            let (sample, seed) = work[index]
            let answer =
                if let decision = sample.decision {
                    try await DataSetAnswer(deciding: decision, about: prompt(sample), session(sample), options.decisions)
                } else {
                    try await DataSetAnswer(
                        to: prompt(sample), of: sample, session(sample), options.generation(of: sample, seed),
                        supportsLocale: options.supportsLocale)
                }
            var result = answer.result
            result.request = result.prompt == sample.fullPrompt ? nil : sample.fullPrompt
            result.checks = try await checks.results(for: sample, answer)
            return result
        }
        return EvaluationResult(header: header, start: start, end: Date(), samples: results)
    }
}

extension EvaluationDataSet.Options {
    fileprivate func generation(of sample: EvaluationDataSet.Sample, _ seed: UInt64?) -> GenerationOptions {
        GenerationOptions(
            samplingMode: seed.map { .random(probabilityThreshold: 0.9, seed: $0) } ?? .greedy,
            temperature: seed == nil ? nil : temperature, maximumResponseTokens: sample.maxTokens ?? maximumResponseTokens)
    }
}

/// The answer to a sample, and the layer that rejected it.
struct DataSetAnswer: Sendable {
    var result: SampleResult
    var calls: [Transcript.ToolCall] = []
    /// Whether the model does not list the language of the sample.
    var isUnsupportedLanguage = false

    var text: String { result.response ?? "" }

    init(_ text: String, layer: SampleResult.Layer? = nil) {
        result = SampleResult(prompt: "")
        (result.response, result.layer) = (text, layer)
    }

    nonisolated(nonsending) init(
        to prompt: String, of sample: EvaluationDataSet.Sample, _ session: LanguageModelSession, _ options: GenerationOptions,
        supportsLocale: (@Sendable (Locale) -> Bool)?
    ) async throws {
        var result = SampleResult(prompt: prompt)
        result.response = ""
        let start = ContinuousClock.now
        do {
            if let schema = sample.schema {
                let responses = session.streamResponse(
                    to: Prompt("\(prompt)\n\n\(SchemaDescription.request(for: schema))"),
                    format: ResponseFormat(.schema(schema)), options: options)
                result.response = try await responses.collect().content
            } else {
                let text = try await session.respond(to: prompt, options: options).content
                result.response = text
                if RefusalText.isRefusal(text) { (result.layer, result.detail) = (.refusal, "The model declined.") }
            }
        } catch {
            try Task.checkCancellation()
            // Without a model there is nothing to evaluate.
            if case SystemLanguageModel.Error.assetsUnavailable = error { throw error }
            (result.layer, result.detail) = Self.layer(of: error)
        }
        result.seconds = (ContinuousClock.now - start) / .seconds(1)
        if result.layer == .language, let language = sample.language, let supportsLocale {
            isUnsupportedLanguage = !supportsLocale(Locale(identifier: language))
        }
        let transcript = session.transcript.structuredTranscript
        calls = transcript.toolCalls
        result.add(transcript)
        result.transcript = nil
        result.add(session.usage)
        self.result = result
    }

    /// Decides a question.
    nonisolated(nonsending) init(
        deciding decision: (item: DecisionForm.Item, expected: Int), about prompt: String, _ session: LanguageModelSession,
        _ options: DecisionOptions
    ) async throws {
        var result = SampleResult(prompt: prompt)
        let question = decision.item.question
        result.expected = question.options[decision.expected].name
        result.response = ""
        let start = ContinuousClock.now
        do {
            let run = try await session.decisions(about: prompt, [question], options: options)
            let answer = run.answers[0]
            result.response = answer.option.name
            result.decision = SampleResult.Decision(
                kind: question.kind.name, chosen: answer.distribution.mostLikely, expected: decision.expected,
                probabilities: answer.distribution.probabilities, logProbabilities: run.logProbabilities[0],
                model: run.model)
            (result.inputTokens, result.outputTokens) = (run.promptTokens, 0)
        } catch {
            try Task.checkCancellation()
            if case SystemLanguageModel.Error.assetsUnavailable = error { throw error }
            (result.layer, result.detail) = Self.layer(of: error)
        }
        result.seconds = (ContinuousClock.now - start) / .seconds(1)
        self.result = result
    }

    private static func layer(of error: any Error) -> (SampleResult.Layer, String) {
        switch error {
        case LanguageModelError.guardrailViolation(let violation):
            if violation.metadata["list"] != nil { return (.denyList, violation.debugDescription) }
            return (
                violation.debugDescription.hasPrefix("The prompt") ? .guardrailPrompt : .guardrailResponse,
                violation.debugDescription
            )
        case LanguageModelError.refusal(let refusal): return (.refusal, refusal.debugDescription)
        case LanguageModelError.unsupportedLanguageOrLocale(let failure): return (.language, failure.debugDescription)
        case LanguageModelError.contextSizeExceeded(let failure): return (.contextWindow, failure.debugDescription)
        case LanguageModelError.unsupportedGenerationGuide(let failure): return (.decoding, failure.debugDescription)
        case LanguageModelError.unsupportedCapability(let failure): return (.decoding, failure.debugDescription)
        case let error as GeneratedContent.ParsingError: return (.decoding, error.debugDescription)
        default: return (.error, "\(error)")
        }
    }
}
