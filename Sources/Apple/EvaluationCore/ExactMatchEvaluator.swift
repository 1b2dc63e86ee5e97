internal import Foundation

/// Checks whether the answer equals the expected value. An addition of this package.
///
/// Texts are equal if they have the same characters without the white space at both ends. Other values are equal if their JSON
/// is: 1 equals 1.0, and the order of members does not matter. An answer that is a text, such as the value of a
/// `ModelSubject<StructuredValue>`, is read as JSON if the expected value is not a text.
public struct ExactMatchEvaluator<Input>: EvaluatorProtocol, Sendable
where Input: SampleProtocol, Input.ExpectedValue: Decodable, Input.ExpectedValue: Encodable, Input.ExpectedValue: Sendable {
    public typealias Subject = ModelSubject<Input.ExpectedValue>

    private let metric: Metric

    /// Creates an evaluator.
    ///
    /// - Parameter metric: Passes or fails; a sample without an expected value does not count.
    public init(_ metric: Metric) { self.metric = metric }

    /// - Throws: `EncodingError` if a value cannot be written as JSON, such as one with an infinite number.
    public nonisolated(nonsending) func metrics(subject: ModelSubject<Input.ExpectedValue>, input: Input) async throws -> [Metric]
    {
        guard let expected = input.expected else { return [metric.ignore(rationale: "Nothing is expected.")] }
        let matches = try StructuredValue(json: subject.value).matches(StructuredValue(json: expected))
        return [matches ? metric.passing() : metric.failing(rationale: "Expected \(ValueText.text(of: expected)).")]
    }
}

extension StructuredValue {
    fileprivate init(json value: some Encodable) throws {
        switch value {
        case let value as StructuredValue: self = value
        case let text as String: self = .string(text)
        default: self = try JSONDecoder().decode(StructuredValue.self, from: JSONEncoder().encode(value))
        }
    }

    /// Whether an answer is the expected one.
    fileprivate func matches(_ expected: StructuredValue) -> Bool {
        guard case .string(let text) = self else { return isEqual(to: expected) }
        if case .string(let expected) = expected {
            return text.trimmingCharacters(in: .whitespacesAndNewlines)
                == expected.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        // Whether the text is JSON is the question.
        let value = try? JSONDecoder().decode(StructuredValue.self, from: Data(text.utf8))
        return value?.isEqual(to: expected) ?? false
    }

    /// Numbers are equal whether they are written as integers or not.
    private func isEqual(to other: StructuredValue) -> Bool {
        switch (self, other) {
        case (.int(let a), .double(let b)), (.double(let b), .int(let a)): Double(a) == b
        case (.array(let a), .array(let b)): a.count == b.count && zip(a, b).allSatisfy { $0.isEqual(to: $1) }
        case (.dictionary(let a), .dictionary(let b)):
            a.count == b.count && a.allSatisfy { key, value in b[key].map { value.isEqual(to: $0) } ?? false }
        default: self == other
        }
    }
}
