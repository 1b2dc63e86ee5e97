internal import Grammar
internal import JSON

/// Checks whether the answer is JSON that conforms to a JSON Schema. An addition of this package.
///
/// The members of objects may be in any order, except in arrays with `uniqueItems`: there, members must be in the order in which
/// the schema lists them, and integers must be written without a fraction. Unknown formats of strings are not checked.
public struct JSONSchemaEvaluator<Input>: EvaluatorProtocol, Sendable
where Input: SampleProtocol, Input.ExpectedValue: Decodable, Input.ExpectedValue: Encodable, Input.ExpectedValue: Sendable {
    public typealias Subject = ModelSubject<Input.ExpectedValue>

    private let metric: Metric
    private let grammar: Grammar

    /// Creates an evaluator.
    ///
    /// - Parameters:
    ///   - metric: Passes or fails.
    ///   - schema: The JSON Schema, in a draft from 4 to 2020-12.
    /// - Throws: ``EvaluatorArgumentError/invalidSchema(reason:)`` if the text is not a schema, or the schema is not supported
    ///   or cannot be satisfied.
    public init(_ metric: Metric, schema: String) throws {
        self.metric = metric
        let document: JSONValue
        do { document = try JSONParser.parse(schema) } catch { throw EvaluatorArgumentError.invalidSchema(reason: "\(error)") }
        let bytes = TokenVocabulary(texts: (UInt8.min...UInt8.max).map { [$0] }, endTokens: [])
        do {
            grammar = try Grammar(.schema(document), vocabulary: bytes, options: GrammarOptions(membersInAnyOrder: true))
        } catch { throw EvaluatorArgumentError.invalidSchema(reason: "\(error)") }
    }

    public nonisolated(nonsending) func metrics(subject: ModelSubject<Input.ExpectedValue>, input: Input) async throws -> [Metric]
    {
        let problem = problem(with: ValueText.text(of: subject.value))
        return [problem.map { metric.failing(rationale: $0) } ?? metric.passing()]
    }

    /// What is wrong with an answer; nil if it conforms to the schema.
    private func problem(with text: String) -> String? {
        let answer: JSONValue
        do { answer = try JSONParser.parse(text) } catch { return "The answer is not JSON. \(error)" }
        var matcher = grammar.matcher()
        var read: [UInt8] = []
        for byte in answer.bytes {
            guard matcher.advance([byte]) else {
                let end = String(decoding: read.suffix(40), as: UTF8.self)
                return "The answer does not conform to the schema after “\(end)”."
            }
            read.append(byte)
        }
        return matcher.isComplete ? nil : "The answer ends before it conforms to the schema."
    }
}
