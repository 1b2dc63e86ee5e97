/// What a text is used for. Some models were trained with a different prefix for each role.
public enum EmbeddingRole: String, Sendable, Codable, CaseIterable {
    /// A question or a search text.
    case query
    /// A text that is searched.
    case document
}

/// The properties of an embedding model.
public struct EmbeddingModelInfo: Sendable, Codable, Equatable {
    /// The model's name, for people.
    public var name: String
    /// Identifies the weights. Vectors of models with different identifiers must not be compared.
    public var identifier: String
    /// The number of elements of a vector.
    public var dimension: Int
    /// The maximum number of tokens of a text; longer texts are cut off.
    public var maximumTokenCount: Int

    /// Creates a description of a model.
    public init(name: String, identifier: String, dimension: Int, maximumTokenCount: Int) {
        self.name = name
        self.identifier = identifier
        self.dimension = dimension
        self.maximumTokenCount = maximumTokenCount
    }
}

/// A model that maps texts to vectors, so that texts with a similar meaning have a large dot product.
///
/// ``GGUFEmbeddingModel`` runs on this machine. Conform to this protocol to use another engine or a server.
public protocol EmbeddingModel: Sendable {
    /// The model's properties. Loads the model if that is necessary.
    nonisolated(nonsending) func info() async throws -> EmbeddingModelInfo

    /// Computes one vector for each text, in the order of the texts. Each has the Euclidean length 1, so that the dot product
    /// of two vectors is their cosine similarity.
    ///
    /// - Parameters:
    ///   - texts: The texts, in any number and of any lengths.
    ///   - role: What the texts are used for.
    /// - Throws: The error of the model, or `CancellationError`.
    nonisolated(nonsending) func embed(_ texts: [String], as role: EmbeddingRole) async throws -> [[Float]]

    /// The number of tokens of each text, including those that the model adds and a prefix for the role.
    nonisolated(nonsending) func tokenCounts(of texts: [String], as role: EmbeddingRole) async throws -> [Int]
}

extension EmbeddingModel {
    /// Computes the vector of one text.
    public nonisolated(nonsending) func embed(_ text: String, as role: EmbeddingRole) async throws -> [Float] {
        try await embed([text], as: role).first ?? []
    }
}

extension EmbeddingModel {
    /// Computes vectors and checks what the model returns, which may be the work of another program.
    ///
    /// - Throws: ``EmbeddingError`` if there is not one vector of `dimension` finite numbers for each text.
    public nonisolated(nonsending) func checkedVectors(
        of texts: [String], as role: EmbeddingRole, dimension: Int
    ) async throws -> [[Float]] {
        let vectors = try await embed(texts, as: role)
        guard vectors.count == texts.count else {
            throw EmbeddingError("The embedding model returned \(vectors.count) vectors for \(texts.count) texts.")
        }
        for vector in vectors where vector.count != dimension || !vector.allSatisfy(\.isFinite) {
            throw EmbeddingError(
                "The embedding model returned a vector of \(vector.count) elements that is not one of \(dimension) finite numbers."
            )
        }
        return vectors
    }
}

/// The dot product of two vectors: the cosine similarity of vectors of length 1.
///
/// - Precondition: The vectors have the same number of elements.
public func dotProduct(_ one: [Float], _ other: [Float]) -> Float {
    precondition(one.count == other.count, "vectors of different models cannot be compared")
    var sum: Float = 0
    for index in one.indices { sum += one[index] * other[index] }
    return sum
}
