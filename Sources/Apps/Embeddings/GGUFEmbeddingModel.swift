public import Foundation
internal import Inference
internal import InstalledModels

/// An embedding model in a GGUF file that runs on the CPU of this machine.
///
/// ```swift
/// let model = GGUFEmbeddingModel.default
/// let vectors = try await model.embed(["The cat sleeps.", "A feline is resting."], as: .document)
/// print(dotProduct(vectors[0], vectors[1]))
/// ```
///
/// Supported are the architectures bert, nomic-bert, modern-bert and gemma-embedding, and decoders whose file names a
/// pooling, such as Qwen3-Embedding. Instances with the same file share the model in memory. The file is loaded by the first
/// call; it can be used from any task, and computes on its own threads.
public struct GGUFEmbeddingModel: EmbeddingModel, Hashable {
    /// The GGUF file.
    public let url: URL

    /// - Parameter url: The GGUF file. If it cannot be used, the first call throws an error.
    public init(url: URL) { self.url = url }

    /// The model that `fm model pull embedder` installs (all-MiniLM-L6-v2), or the one that the environment variable
    /// `FM_EMBEDDER` names.
    public static var `default`: GGUFEmbeddingModel { GGUFEmbeddingModel(url: URL(filePath: ModelStore.embedderPath)) }

    /// Whether the file exists.
    public var isAvailable: Bool { FileManager.default.fileExists(atPath: url.path) }

    public nonisolated(nonsending) func info() async throws -> EmbeddingModelInfo {
        let lease = try await vectors()
        let embedder = lease.model
        return EmbeddingModelInfo(
            name: embedder.shape.name, identifier: embedder.fingerprint, dimension: embedder.shape.embeddingWidth,
            maximumTokenCount: embedder.maximumTokens)
    }

    public nonisolated(nonsending) func embed(_ texts: [String], as role: EmbeddingRole) async throws -> [[Float]] {
        let lease = try await vectors()
        let embedder = lease.model
        return try await embedder.embed(texts: texts.map { Self.prompt(embedder, role) + $0 })
    }

    public nonisolated(nonsending) func tokenCounts(of texts: [String], as role: EmbeddingRole) async throws -> [Int] {
        let lease = try await vectors()
        let embedder = lease.model
        return await embedder.tokenCounts(of: texts.map { Self.prompt(embedder, role) + $0 })
    }

    private static func prompt(_ embedder: TextEmbedder, _ role: EmbeddingRole) -> String {
        role == .query ? embedder.prompts.query : embedder.prompts.document
    }

    // MARK: - Loading

    /// Frees the embedding models that no call is using. The next call loads the model again.
    public static func releaseAll() { ModelPool.shared.releaseIdleEmbedders() }

    /// The model in memory, for one call, if it makes vectors.
    private nonisolated(nonsending) func vectors() async throws -> ModelLease<TextEmbedder> {
        let lease = try await embedder()
        guard lease.model.readsPairs else { return lease }
        throw EmbeddingError(
            "The model at \(url.path) reads a question and a text together, and makes no vectors. “fm model pull embedder” installs one that does."
        )
    }

    /// The same, whatever it makes.
    nonisolated(nonsending) func embedder() async throws -> ModelLease<TextEmbedder> {
        let path = url.path
        do {
            return try await ModelPool.shared.embedder(path: path)
        } catch let error as CancellationError {
            throw error
        } catch {
            throw EmbeddingError(
                FileManager.default.fileExists(atPath: path)
                    ? "\(error)"
                    : "There is no embedding model at \(path). Put a GGUF file of an encoder there, or name another one with FM_EMBEDDER."
            )
        }
    }
}

/// Why an embedding model cannot be used.
public struct EmbeddingError: Error, LocalizedError, CustomStringConvertible {
    /// The problem and what to do.
    public var description: String
    public var errorDescription: String? { description }

    /// Creates an error with a readable description.
    public init(_ description: String) { self.description = description }
}
