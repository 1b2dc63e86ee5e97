public import Embeddings

/// Scores how similar the meaning of the answer and of the expected value are. An addition of this package.
///
/// The score is the cosine of their vectors, from -1 to 1; 1 for the same text. What is similar enough depends on the model.
/// The text of a value that is not a `String` is its JSON.
public struct SimilarityEvaluator<Input>: EvaluatorProtocol, Sendable
where Input: SampleProtocol, Input.ExpectedValue: Decodable, Input.ExpectedValue: Encodable, Input.ExpectedValue: Sendable {
    public typealias Subject = ModelSubject<Input.ExpectedValue>

    private let metric: Metric
    private let embedder: any EmbeddingModel

    /// Creates an evaluator.
    ///
    /// - Parameters:
    ///   - metric: Has the score; a sample without an expected value does not count.
    ///   - embedder: The model for the vectors, such as `GGUFEmbeddingModel.default`.
    public init(_ metric: Metric, embedder: any EmbeddingModel) {
        self.metric = metric
        self.embedder = embedder
    }

    /// - Throws: The error of the embedding model, or `EmbeddingError` if it does not return a vector for each text.
    public nonisolated(nonsending) func metrics(subject: ModelSubject<Input.ExpectedValue>, input: Input) async throws -> [Metric]
    {
        guard let expected = input.expected else { return [metric.ignore(rationale: "Nothing is expected.")] }
        let texts = [ValueText.text(of: subject.value), ValueText.text(of: expected)]
        let dimension = try await embedder.info().dimension
        let vectors = try await embedder.checkedVectors(of: texts, as: .document, dimension: dimension)
        return [metric.scoring(Double(dotProduct(vectors[0], vectors[1])))]
    }
}
