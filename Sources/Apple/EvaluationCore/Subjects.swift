internal import Waiting
internal import Foundation
public import FoundationModels

/// The output of a feature for one sample.
public protocol EvaluationSubject<Value> {
    /// The type of the output.
    associatedtype Value: Decodable, Encodable
    /// The output.
    var value: Self.Value { get }
    /// The prompts, tool calls and responses that led to it, if they are known.
    var transcript: StructuredTranscript? { get }
}

extension EvaluationSubject {
    /// Nil.
    public var transcript: StructuredTranscript? { nil }
}

/// The output of a language model.
public struct ModelSubject<Value>: EvaluationSubject, Sendable where Value: Decodable, Value: Encodable, Value: Sendable {
    public var value: Value
    public var transcript: StructuredTranscript?
    /// The tokens of the request and why the answer ended, for reports: `session.usage`. An addition of this package.
    public var usage: LanguageModelSession.Usage?

    /// Creates an output.
    public init(value: Value, transcript: StructuredTranscript? = nil) {
        self.value = value
        self.transcript = transcript
    }

    /// The tool calls, in order.
    public var toolCalls: [Transcript.ToolCall] { transcript?.toolCalls ?? [] }
}

/// An output that knows more of its request, and that a run can make of its results.
protocol RecordedSubject: EvaluationSubject {
    var usage: LanguageModelSession.Usage? { get }
    /// The output without its transcript; nil if its text is not all of it.
    init?(_ result: SampleResult)
}

extension ModelSubject: RecordedSubject {
    init?(_ result: SampleResult) {
        guard let text = result.response else { return nil }
        // A text that is no value of the type, such as one with an infinite number, stays without its value.
        guard let value = text as? Value ?? (try? JSONDecoder().decode(Value.self, from: Data(text.utf8))) else { return nil }
        self.init(value: value)
    }
}

/// The entries of a transcript by kind.
public struct StructuredTranscript: Sendable {
    /// The tool calls, in order.
    public var toolCalls: [Transcript.ToolCall]
    /// The outputs of tools, in order.
    public var toolOutputs: [Transcript.ToolOutput]
    /// The text of the instructions.
    public var instructionText: String
    /// The texts of the prompts, in order.
    public var prompts: [String]
    /// The responses, in order.
    public var responses: [Transcript.Response]

    /// Creates a transcript.
    public init(
        toolCalls: [Transcript.ToolCall] = [], toolOutputs: [Transcript.ToolOutput] = [], instructionText: String = "",
        prompts: [String] = [], responses: [Transcript.Response] = []
    ) {
        self.toolCalls = toolCalls
        self.toolOutputs = toolOutputs
        self.instructionText = instructionText
        self.prompts = prompts
        self.responses = responses
    }
}

extension Transcript {
    /// The entries by kind.
    public var structuredTranscript: StructuredTranscript {
        var result = StructuredTranscript()
        for entry in self {
            switch entry {
            case .instructions(let instructions):
                result.instructionText += (result.instructionText.isEmpty ? "" : "\n") + instructions.segments.modelText
            case .prompt(let prompt): result.prompts.append(prompt.segments.modelText)
            case .toolCalls(let calls): result.toolCalls += calls
            case .toolOutput(let output): result.toolOutputs.append(output)
            case .response(let response): result.responses.append(response)
            default: break
            }
        }
        return result
    }
}

// MARK: - Evaluators

/// Measures the output for a sample.
public protocol EvaluatorProtocol<Input, Subject>: Sendable {
    /// The type of the samples.
    associatedtype Input: SampleProtocol where Self.Input.ExpectedValue == Self.Subject.Value
    /// The type of the outputs.
    associatedtype Subject: EvaluationSubject
    /// The results for one sample.
    ///
    /// - Throws: Any error: the sample has no results of this evaluator then.
    nonisolated(nonsending) func metrics(subject: Self.Subject, input: Self.Input) async throws -> [Metric]
}

/// An evaluator that is a function.
public struct Evaluator<Input>: EvaluatorProtocol, @unchecked Sendable
where Input: SampleProtocol, Input.ExpectedValue: Decodable, Input.ExpectedValue: Encodable, Input.ExpectedValue: Sendable {
    public typealias Subject = ModelSubject<Input.ExpectedValue>

    // Unchecked: Apple's initialiser takes a function that is not marked Sendable. One task at a time calls it, which has the lock.
    private let evaluate: nonisolated(nonsending) (Input, ModelSubject<Input.ExpectedValue>) async throws -> Metric
    private let lock = AsyncLock()

    /// Creates an evaluator.
    public init(_ evaluate: nonisolated(nonsending) @escaping (Input, ModelSubject<Input.ExpectedValue>) async throws -> Metric) {
        self.evaluate = evaluate
    }

    public nonisolated(nonsending) func metrics(subject: ModelSubject<Input.ExpectedValue>, input: Input) async throws -> [Metric]
    {
        try await lock.acquire()
        defer { lock.release() }
        return [try await evaluate(input, subject)]
    }
}

/// Combines evaluators.
@resultBuilder
public struct EvaluatorsBuilder<Sample, Subject> where Sample: SampleProtocol, Subject: EvaluationSubject {
    public static func buildExpression(
        _ expression: any EvaluatorProtocol<Sample, Subject>
    ) -> any EvaluatorProtocol<Sample, Subject> { expression }

    public static func buildPartialBlock(
        first: any EvaluatorProtocol<Sample, Subject>
    ) -> [any EvaluatorProtocol<Sample, Subject>] { [first] }

    public static func buildPartialBlock(
        first: [any EvaluatorProtocol<Sample, Subject>]
    ) -> [any EvaluatorProtocol<Sample, Subject>] { first }

    public static func buildPartialBlock(
        accumulated: [any EvaluatorProtocol<Sample, Subject>], next: any EvaluatorProtocol<Sample, Subject>
    ) -> [any EvaluatorProtocol<Sample, Subject>] { accumulated + [next] }

    public static func buildPartialBlock(
        accumulated: [any EvaluatorProtocol<Sample, Subject>], next: [any EvaluatorProtocol<Sample, Subject>]
    ) -> [any EvaluatorProtocol<Sample, Subject>] { accumulated + next }

    public static func buildOptional(
        _ component: [any EvaluatorProtocol<Sample, Subject>]?
    ) -> [any EvaluatorProtocol<Sample, Subject>] { component ?? [] }
}
