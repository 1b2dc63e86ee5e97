package import Foundation
internal import Inference
internal import ModelAdapters
import Synchronization

/// A model that reads a question and texts, and estimates which of the texts answer it.
///
/// A search by words or by vectors finds candidates fast and puts them in a rough order. A ranker compares each token of the question
/// with each token of a text, which takes longer (some 8 ms for a text of 120 tokens on two cores) and is more exact:
///
/// ```swift
/// let reranker = Reranker()
/// let scores = try await reranker.scores(of: passages, for: "When does the pharmacy open?")
/// let best = zip(passages, scores).max { $0.1 < $1.1 }
/// ```
///
/// It uses all-MiniLM-L6-v2 (`fm model pull embedder`) with a small trained part that this package contains. It was
/// trained with conversations in English and German. It can be used from any task, and computes on
/// its own threads.
public struct Reranker: Sendable {
    private let model: GGUFEmbeddingModel
    /// A file with another trained part.
    private let file: URL?

    /// Creates a ranker with the default embedding model, or another file of the same model.
    public init(model: GGUFEmbeddingModel = .default) { self.init(model: model, file: nil) }

    /// A ranker with another trained part, to compare it.
    package init(model: GGUFEmbeddingModel = .default, file: URL?) { (self.model, self.file) = (model, file) }

    /// A text, and what it is about, such as the question that it answers: that is read, but not compared.
    public struct Candidate: Sendable {
        /// The text.
        public var text: String
        /// What was said or written before it.
        public var context: String

        /// Creates a candidate.
        public init(_ text: String, context: String = "") { (self.text, self.context) = (text, context) }
    }

    /// Whether it can be used: the file of the model exists, and there is a trained part for it. Loads the model.
    ///
    /// - Throws: ``EmbeddingError`` if the file cannot be used, or `CancellationError`.
    public nonisolated(nonsending) func isAvailable() async throws -> Bool {
        guard model.isAvailable else { return false }
        return try await trained(model.embedder().model) != nil
    }

    /// The likelihood, from 0 to 1, that each text answers a question. It was trained with one to three right texts among six others that
    /// a search ranks high; among more texts, it is too high.
    ///
    /// - Throws: ``EmbeddingError`` if there is no model, or no trained part for it, or `CancellationError`.
    public nonisolated(nonsending) func scores(of texts: [String], for question: String) async throws -> [Double] {
        try await scores(of: texts.map { Candidate($0) }, for: question)
    }

    /// The same for texts with what was said before them.
    public nonisolated(nonsending) func scores(of candidates: [Candidate], for question: String) async throws -> [Double] {
        guard let logits = try await logits(of: candidates, for: question) else {
            throw EmbeddingError(
                "There is no ranker for the model at \(model.url.path). It is made for all-MiniLM-L6-v2, which “fm model pull embedder” installs."
            )
        }
        return logits.map { 1 / (1 + exp(-$0)) }
    }

    /// The maximum number of tokens of a question. Longer questions, and texts, are known by their beginnings.
    public static let questionTokens = 48
    /// The maximum number of tokens of a text.
    public static let textTokens = 200
    /// The maximum number of tokens of a context: its last ones.
    public static let contextTokens = 36

    /// The logits of the scores; nil if there is no model, or no trained part for it.
    private nonisolated(nonsending) func logits(of candidates: [Candidate], for question: String) async throws -> [Double]? {
        guard model.isAvailable else { return nil }
        let lease = try await model.embedder()
        let embedder = lease.model
        guard let trained = try trained(embedder) else { return nil }
        let marks = embedder.tokens(of: "")
        guard let begin = marks.first, let end = marks.last else { return nil }
        let texts = candidates.map { candidate in
            let text = embedder.plainTokens(of: candidate.text).prefix(min(Self.textTokens, embedder.maximumTokens - 2))
            let context = candidate.context.isEmpty ? [] : embedder.plainTokens(of: candidate.context).suffix(Self.contextTokens)
            return TextEmbedder.Candidate(tokens: [begin] + text + [end] + context, compared: text.count + 2)
        }
        let tokens = [begin] + embedder.plainTokens(of: question).prefix(Self.questionTokens) + [end]
        return try await embedder.logits(of: texts, for: tokens, ranker: trained)
    }

    /// The trained part for a model.
    private func trained(_ embedder: TextEmbedder) throws -> RankerFile? {
        let name = file?.path ?? embedder.fingerprint
        if let known = Self.known.withLock({ $0?.name == name ? $0?.trained : nil }) { return known }
        var adapter = try file.map { try AdapterFile(path: $0.path) }
        var count = 0
        if file == nil, let bytes = model_adapter(embedder.fingerprint, "ranker", &count) {
            let contents = Data(bytesNoCopy: UnsafeMutableRawPointer(mutating: bytes), count: count, deallocator: .none)
            adapter = try AdapterFile(contents: contents, name: "the ranker")
        }
        guard let adapter else { return nil }
        let trained = try RankerFile(adapter: adapter)
        Self.known.withLock { $0 = (name, trained) }
        return trained
    }

    /// The trained part that was used last.
    private static let known = Mutex<(name: String, trained: RankerFile)?>(nil)
}
