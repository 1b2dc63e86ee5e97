public import Foundation
public import FoundationModels
import ModelPrompts

/// A level of a scale.
public protocol ScoreLevel: CaseIterable, Hashable, Sendable {
    /// The name of the level, which the judge chooses.
    var label: String { get }
    /// When the level applies.
    var guideDescription: String { get }
    /// The score.
    var value: Double { get }
}

extension ScoreLevel {
    /// The name of the case.
    public var label: String { "\(self)" }
}

/// A level of a scale.
public struct ScaleOption: Sendable {
    /// The name of the level, which the judge chooses.
    public let label: String
    /// When the level applies.
    public let guideDescription: String
    /// The score.
    public let value: Double

    /// Creates a level.
    public init(label: String, guideDescription: String, value: Double) {
        self.label = label
        self.guideDescription = guideDescription
        self.value = value
    }
}

/// The scores that a judge can give.
public struct ScoringScale: Sendable {
    /// The levels, the lowest first.
    public let options: [ScaleOption]

    /// Creates a scale.
    public init(options: [ScaleOption]) { self.options = options.sorted { $0.value < $1.value } }

    /// A scale of numbers with the descriptions of when they apply.
    public static func numeric(_ scale: [Double: String]) -> ScoringScale {
        ScoringScale(
            options: scale.map { value, description in
                let label = Int(exactly: value).map { "\($0)" } ?? "\(value)"
                return ScaleOption(label: label, guideDescription: description, value: value)
            })
    }

    /// A scale of two levels, with scores of 1 and 0.
    public static func passFail(passDescription: String, failDescription: String) -> ScoringScale {
        ScoringScale(options: [
            ScaleOption(label: "fail", guideDescription: failDescription, value: 0),
            ScaleOption(label: "pass", guideDescription: passDescription, value: 1),
        ])
    }

    /// A scale of the cases of a type.
    public static func custom<Level>(_ level: Level.Type) -> ScoringScale where Level: ScoreLevel {
        ScoringScale(
            options: Level.allCases.map { ScaleOption(label: $0.label, guideDescription: $0.guideDescription, value: $0.value) })
    }
}

/// A quality that a judge scores.
public struct ScoreDimension: Sendable {
    /// The name of the quality and of its metric.
    public let name: String
    /// What the quality is.
    public let description: String?
    /// The scores that the judge can give.
    public let scale: ScoringScale
    /// The metric of the quality.
    public var metric: Metric { Metric(name) }

    /// Creates a quality.
    public init(_ name: String, description: String? = nil, scale: ScoringScale) {
        self.name = name
        self.description = description
        self.scale = scale
    }
}

/// What scores a judge may give.
public enum ScoringMode: Sendable, Equatable, Hashable {
    /// A level of the scale.
    case discrete
    /// Any number between the lowest and the highest level.
    case continuous
}

/// Why a judge gave no score.
public enum ModelJudgeError: LocalizedError {
    case invalidScore(dimension: String, value: String)
    case invalidResponse(String)
    case jsonDecodingFailed(response: String, underlying: any Error)
    case missingDimension(String, response: String)
    case noScaleValues(dimension: String)

    public var errorDescription: String? {
        switch self {
        case .invalidScore(let dimension, let value): "The judge's score for \(dimension), \(value), is not on the scale."
        case .invalidResponse(let response): "The judge's response has another form: \(response)"
        case .jsonDecodingFailed(let response, let error): "The judge's response is not JSON (\(error)): \(response)"
        case .missingDimension(let dimension, let response): "The judge's response has no score for \(dimension): \(response)"
        case .noScaleValues(let dimension): "The scale of \(dimension) has no levels, or one whose value is not a number."
        }
    }
}

/// What a judge is asked.
public struct ModelJudgePrompt<Input>: Sendable where Input: ModelSampleProtocol {
    /// The judge's instructions, if no others are given.
    public static var defaultInstructions: String {
        ModelPrompts.judgeInstructions
    }

    /// The judge's instructions.
    public let instructions: String
    /// The text of an output; nil for its JSON, or the text itself for a `String`.
    public let evaluationTarget: (@Sendable (Input.ExpectedValue) -> String)?
    /// Texts that the judge sees, by their titles.
    public let reference: (nonisolated(nonsending) @Sendable (Input, Input.ExpectedValue) async throws -> [String: String])?

    /// Creates a prompt.
    public init(
        instructions: String = ModelJudgePrompt.defaultInstructions,
        evaluationTarget: (@Sendable (Input.ExpectedValue) -> String)? = nil,
        reference: (nonisolated(nonsending) @Sendable (Input, Input.ExpectedValue) async throws -> [String: String])? = nil
    ) {
        self.instructions = instructions
        self.evaluationTarget = evaluationTarget
        self.reference = reference
    }
}

/// A language model that scores responses. Its answer is constrained to the scales, and it is sampled greedily.
public struct ModelJudgeEvaluator<Input>: EvaluatorProtocol, Sendable where Input: ModelSampleProtocol {
    public typealias Subject = ModelSubject<Input.ExpectedValue>

    /// The qualities that are scored.
    public let dimensions: [ScoreDimension]
    /// What scores the judge may give.
    public let scoringMode: ScoringMode
    private let judge: any LanguageModel
    private let prompt: ModelJudgePrompt<Input>
    private let comparesWithExpected: Bool

    /// The judge's instructions, if no others are given.
    public static var defaultInstructions: String { ModelJudgePrompt<Input>.defaultInstructions }

    private init(
        _ judge: any LanguageModel, _ dimensions: [ScoreDimension], _ scoringMode: ScoringMode, _ prompt: ModelJudgePrompt<Input>,
        comparesWithExpected: Bool = false
    ) {
        self.judge = judge
        self.dimensions = dimensions
        self.scoringMode = scoringMode
        self.prompt = prompt
        self.comparesWithExpected = comparesWithExpected
    }

    /// Scores one quality.
    public init(
        _ name: String, scale: ScoringScale, judge: any LanguageModel = SystemLanguageModel(),
        scoringMode: ScoringMode = .discrete
    ) {
        self.init(judge, [ScoreDimension(name, scale: scale)], scoringMode, ModelJudgePrompt())
    }

    /// Scores one quality, with a prompt.
    public init(
        _ name: String, scale: ScoringScale, judge: any LanguageModel, scoringMode: ScoringMode = .discrete,
        prompt: ModelJudgePrompt<Input>
    ) { self.init(judge, [ScoreDimension(name, scale: scale)], scoringMode, prompt) }

    /// Scores several qualities.
    public init(
        judge: any LanguageModel = SystemLanguageModel(), dimensions: [ScoreDimension], scoringMode: ScoringMode = .discrete
    ) { self.init(judge, dimensions, scoringMode, ModelJudgePrompt()) }

    /// Scores several qualities, with a prompt.
    public init(
        judge: any LanguageModel, dimensions: [ScoreDimension], scoringMode: ScoringMode = .discrete,
        prompt: ModelJudgePrompt<Input>
    ) { self.init(judge, dimensions, scoringMode, prompt) }

    /// Compares the response with the expected one in one quality.
    public static func pairwise(
        _ name: String, scale: ScoringScale, judge: any LanguageModel, scoringMode: ScoringMode = .discrete,
        evaluationTarget: (@Sendable (Input.ExpectedValue) -> String)? = nil
    ) -> ModelJudgeEvaluator<Input> {
        pairwise(
            judge: judge, dimensions: [ScoreDimension(name, scale: scale)], scoringMode: scoringMode,
            evaluationTarget: evaluationTarget)
    }

    /// Compares the response with the expected one in several qualities.
    public static func pairwise(
        judge: any LanguageModel, dimensions: [ScoreDimension], scoringMode: ScoringMode = .discrete,
        evaluationTarget: (@Sendable (Input.ExpectedValue) -> String)? = nil
    ) -> ModelJudgeEvaluator<Input> {
        ModelJudgeEvaluator(
            judge, dimensions, scoringMode, ModelJudgePrompt(evaluationTarget: evaluationTarget), comparesWithExpected: true)
    }

    /// The prompt for a sample.
    ///
    /// - Throws: An error of the function for references.
    public nonisolated(nonsending) func judgePrompt(for sample: Input, output: Input.ExpectedValue) async throws -> Prompt {
        var parts = ["Request:\n\(sample.input.promptDescription)"]
        if let instructions = sample.input.instructionsDescription, !instructions.isEmpty {
            parts.insert("Instructions of the assistant:\n\(instructions)", at: 0)
        }
        if comparesWithExpected, let expected = sample.output.value {
            parts.append("Reference response:\n\(text(of: expected))")
        }
        for (title, text) in try await prompt.reference?(sample, output).sorted(by: { $0.key < $1.key }) ?? [] {
            parts.append("\(title):\n\(text)")
        }
        // The response is between marks: it may contain anything, such as other levels.
        parts.append(ModelPrompts.response(text(of: output)))
        if comparesWithExpected { parts.append("Compare the response with the reference response.") }
        for dimension in dimensions {
            var lines = ["Levels of \(dimension.name)\(dimension.description.map { " (\($0))" } ?? ""):"]
            lines += dimension.scale.options.reversed().map { "- \($0.label): \($0.guideDescription)" }
            parts.append(lines.joined(separator: "\n"))
        }
        parts.append(ModelPrompts.whichLevel)
        return Prompt(parts.joined(separator: "\n\n"))
    }

    private func text(of value: Input.ExpectedValue) -> String { prompt.evaluationTarget?(value) ?? ValueText.text(of: value) }

    /// - Throws: ``ModelJudgeError``, or an error of the judge's session.
    public nonisolated(nonsending) func metrics(subject: ModelSubject<Input.ExpectedValue>, input: Input) async throws -> [Metric]
    {
        if comparesWithExpected, input.output.value == nil {
            return dimensions.map { $0.metric.ignore(rationale: "There is no expected response to compare with.") }
        }
        let schema = try schema()
        let session = LanguageModelSession(model: judge, instructions: prompt.instructions)
        let response = try await session.respond(
            to: try await judgePrompt(for: input, output: subject.value), schema: schema,
            options: GenerationOptions(samplingMode: .greedy)
        ).content
        return try dimensions.enumerated().map { index, dimension in
            guard case .structure(let answers, _) = response.kind else {
                throw ModelJudgeError.invalidResponse(response.jsonString)
            }
            guard let answer = answers[Self.key(index)] else {
                throw ModelJudgeError.missingDimension(dimension.name, response: response.jsonString)
            }
            let reason = try answer.value(String.self, forProperty: "reason")
            let score: Double
            switch scoringMode {
            case .discrete:
                let label = try answer.value(String.self, forProperty: "level")
                guard let option = dimension.scale.options.first(where: { $0.label == label }) else {
                    throw ModelJudgeError.invalidScore(dimension: dimension.name, value: label)
                }
                score = option.value
            case .continuous: score = try answer.value(Double.self, forProperty: "score")
            }
            return dimension.metric.scoring(score, rationale: reason)
        }
    }

    /// Names of qualities may have characters that are unusual in keys.
    private static func key(_ index: Int) -> String { "quality\(index + 1)" }

    private func schema() throws -> GenerationSchema {
        let properties = try dimensions.enumerated().map { index, dimension in
            guard let lowest = dimension.scale.options.first?.value, let highest = dimension.scale.options.last?.value,
                dimension.scale.options.allSatisfy({ $0.value.isFinite })
            else {
                throw ModelJudgeError.noScaleValues(dimension: dimension.name)
            }
            let score: DynamicGenerationSchema.Property =
                switch scoringMode {
                case .discrete:
                    .init(
                        name: "level",
                        schema: DynamicGenerationSchema(
                            name: "Level\(index + 1)", anyOf: dimension.scale.options.reversed().map(\.label)))
                case .continuous:
                    .init(
                        name: "score",
                        schema: DynamicGenerationSchema(type: Double.self, guides: [.range(lowest...highest)]))
                }
            // The reason comes first, so that the score follows from it.
            return DynamicGenerationSchema.Property(
                name: Self.key(index), description: dimension.name,
                schema: DynamicGenerationSchema(
                    name: "Quality\(index + 1)",
                    properties: [.init(name: "reason", schema: DynamicGenerationSchema(type: String.self)), score]))
        }
        return try GenerationSchema(root: DynamicGenerationSchema(name: "Judgement", properties: properties), dependencies: [])
    }
}
