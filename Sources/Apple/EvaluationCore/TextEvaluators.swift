public import Foundation

/// Checks whether the answer contains texts. An addition of this package.
///
/// Upper and lower case are the same. The text of an answer that is not a `String` is its JSON.
public struct ContainsEvaluator<Input>: EvaluatorProtocol, Sendable
where Input: SampleProtocol, Input.ExpectedValue: Decodable, Input.ExpectedValue: Encodable, Input.ExpectedValue: Sendable {
    public typealias Subject = ModelSubject<Input.ExpectedValue>

    private enum Requirement { case expected, all([String]), none([String]) }

    private let metric: Metric
    private let requirement: Requirement

    /// Requires the text of the expected value of each sample.
    ///
    /// - Parameter metric: Passes or fails; a sample without an expected value does not count.
    public init(_ metric: Metric) { (self.metric, requirement) = (metric, .expected) }

    /// Requires all of the texts.
    ///
    /// - Parameter metric: Passes or fails.
    public init(_ metric: Metric, all texts: [String]) { (self.metric, requirement) = (metric, .all(texts)) }

    /// Requires that the answer contains none of the texts.
    ///
    /// - Parameter metric: Passes or fails.
    public init(_ metric: Metric, none texts: [String]) { (self.metric, requirement) = (metric, .none(texts)) }

    public nonisolated(nonsending) func metrics(subject: ModelSubject<Input.ExpectedValue>, input: Input) async throws -> [Metric]
    {
        let answer = ValueText.text(of: subject.value)
        let (texts, isRequired): ([String], Bool)
        switch requirement {
        case .expected:
            guard let expected = input.expected else { return [metric.ignore(rationale: "Nothing is expected.")] }
            (texts, isRequired) = ([ValueText.text(of: expected)], true)
        case .all(let required): (texts, isRequired) = (required, true)
        case .none(let excluded): (texts, isRequired) = (excluded, false)
        }
        let wrong = texts.filter { answer.localizedCaseInsensitiveContains($0) != isRequired }
        if wrong.isEmpty { return [metric.passing()] }
        let list = wrong.map { "“\($0)”" }.joined(separator: ", ")
        return [metric.failing(rationale: "The answer \(isRequired ? "does not contain" : "contains") \(list).")]
    }
}

/// Checks whether a part of the answer matches a regular expression. An addition of this package.
///
/// The syntax is that of `NSRegularExpression`. The text of an answer that is not a `String` is its JSON. A search that takes millions of
/// steps ends with an error.
public struct RegexEvaluator<Input>: EvaluatorProtocol, Sendable
where Input: SampleProtocol, Input.ExpectedValue: Decodable, Input.ExpectedValue: Encodable, Input.ExpectedValue: Sendable {
    public typealias Subject = ModelSubject<Input.ExpectedValue>

    private let metric: Metric
    private let pattern: String

    /// Creates an evaluator.
    ///
    /// - Parameters:
    ///   - metric: Passes or fails.
    ///   - pattern: The regular expression; begin it with `^` and end it with `$` to match the complete answer.
    /// - Throws: ``EvaluatorArgumentError/invalidPattern(_:)``.
    public init(_ metric: Metric, pattern: String) throws {
        self.metric = metric
        self.pattern = pattern
        _ = try SearchPattern(pattern)
    }

    public nonisolated(nonsending) func metrics(subject: ModelSubject<Input.ExpectedValue>, input: Input) async throws -> [Metric]
    {
        let matches = try SearchPattern(pattern).isFound(in: ValueText.text(of: subject.value))
        return [matches ? metric.passing() : metric.failing(rationale: "The answer does not match \(pattern).")]
    }
}

/// What is wrong with an argument of an evaluator. An addition of this package.
public enum EvaluatorArgumentError: Error, LocalizedError, Sendable, Equatable {
    /// The text is not a regular expression.
    case invalidPattern(String)
    /// The regular expression backtracks without end in an answer.
    case patternTooSlow(String)
    /// The text is not a JSON Schema, or the schema is not supported or cannot be satisfied.
    case invalidSchema(reason: String)

    public var errorDescription: String? {
        switch self {
        case .invalidPattern(let pattern): "“\(pattern.prefix(60))” is not a regular expression."
        case .patternTooSlow(let pattern):
            "“\(pattern.prefix(60))” takes too many steps. Repeat no group that contains repetitions, as in (a+)+."
        case .invalidSchema(let reason): "The schema cannot be used: \(reason)"
        }
    }
}
