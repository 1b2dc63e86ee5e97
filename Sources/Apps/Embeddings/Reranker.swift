public import Foundation
package import Inference
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
/// Nearly all of the time is for reading the texts, which does not depend on the question. Texts that are compared with many questions are
/// read once:
///
/// ```swift
/// let prepared = try await reranker.prepared(passages.map { .init($0) })
/// for question in questions { print(try await reranker.scores(of: prepared, for: question)) }
/// ```
///
/// It uses all-MiniLM-L6-v2 (`fm model pull embedder`) with a small trained part that this package contains. It was
/// trained with conversations in English, German, Spanish and French. It can be used from any task, and computes on
/// its own threads.
///
/// With the file of a model that reads question and text together, such as ettin-reranker-17m-v1 (English;
/// `fm model import cross-encoder/ettin-reranker-17m-v1`), the scores are those of that model. Then texts cannot be prepared: every question
/// reads all of them.
public struct Reranker: Sendable {
    private let model: GGUFEmbeddingModel
    /// A file with another trained part.
    private let file: URL?

    /// Creates a ranker with the default embedding model, another file of the same model, or a model that reads question and text together.
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

    /// A text that a ranker has read: 96 bytes for each of its tokens.
    public struct PreparedText: Sendable, Equatable {
        /// The text for storage. It can be compared by a ranker with the same ``Reranker/identifier()``.
        public let data: Data

        /// A text from storage. If the data is damaged, the text, or a part of it, has no score, and counts as one that answers nothing.
        public init(data: Data) { self.data = data }

        /// - Parameter parts: the codes of each part.
        fileprivate init(_ parts: [TokenCodes]) {
            var data = Data()
            for part in parts {
                data.append(contentsOf: withUnsafeBytes(of: UInt32(part.count).littleEndian) { Array($0) })
                part.withUnsafeBytes { data.append(contentsOf: $0) }
            }
            self.data = data
        }

        /// The largest logit of a part; nil without parts.
        fileprivate func logit(for question: RankedQuestion) -> Double? {
            data.withUnsafeBytes { bytes in
                var best: Double?
                var place = 0
                while bytes.count - place > 4 {
                    let size = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self)))
                    place += 4
                    guard size > 0, size <= bytes.count - place else { break }
                    let logit = UnsafeRawBufferPointer(rebasing: bytes[place..<place + size]).withMemoryRebound(to: Int8.self) {
                        question.logit(of: $0)
                    }
                    best = max(best ?? logit, logit)
                    place += size
                }
                return best
            }
        }
    }

    /// Names what prepares texts: the model and the trained part. nil if texts cannot be prepared, because the file of the model does not
    /// exist, because there is no trained part for it, or because it reads question and text together. Loads the model.
    ///
    /// - Throws: ``EmbeddingError`` if the file cannot be used, or `CancellationError`.
    public nonisolated(nonsending) func identifier() async throws -> String? {
        guard model.isAvailable else { return nil }
        let embedder = try await model.embedder().model
        guard !embedder.readsPairs, let trained = try trained(embedder) else { return nil }
        return "\(embedder.fingerprint)-\(String(trained.identity ?? 0, radix: 16))"
    }

    /// The likelihood, from 0 to 1, that each text answers a question. It was trained with a few right texts among up to 64 of the same
    /// conversation or document; it puts texts in order, and is not calibrated for others.
    ///
    /// - Throws: ``EmbeddingError`` if there is no model, or no trained part for it, or `CancellationError`.
    public nonisolated(nonsending) func scores(of texts: [String], for question: String) async throws -> [Double] {
        try await scores(of: texts.map { Candidate($0) }, for: question)
    }

    /// The same for texts with what was said before them.
    public nonisolated(nonsending) func scores(of candidates: [Candidate], for question: String) async throws -> [Double] {
        let lease = try await model.embedder()
        guard lease.model.readsPairs else { return try await scores(of: prepared(candidates), for: question) }
        return try await Self.scores(of: candidates, for: question, lease.model)
    }

    /// The likelihoods of a model that reads question and text together: the best part of a text counts.
    private nonisolated(nonsending) static func scores(
        of candidates: [Candidate], for question: String, _ reader: TextEmbedder
    ) async throws -> [Double] {
        let pairs = pairs(of: candidates, for: question, reader)
        var scores = try await reader.scores(of: pairs.flatMap(\.self))[...]
        guard scores.allSatisfy(\.isFinite) else {
            throw EmbeddingError(
                "The model \(reader.shape.name) has scores that are no numbers. Its file may be damaged: install it again.")
        }
        return pairs.map { parts in
            defer { scores = scores.dropFirst(parts.count) }
            return 1 / (1 + exp(-(scores.prefix(parts.count).max() ?? 0)))
        }
    }

    /// What a model that reads question and text together reads: for each text, each of its parts after the question and the end of the
    /// context.
    package static func pairs(of candidates: [Candidate], for question: String, _ reader: TextEmbedder) -> [[[TokenID]]] {
        let (begin, end) = marks(reader)
        let asked = begin + reader.plainTokens(of: question).prefix(reader.maximumTokens / 4) + end
        return candidates.map { candidate in
            let context = candidate.context.isEmpty ? [] : reader.plainTokens(of: candidate.context).suffix(contextTokens)
            let size = max(1, reader.maximumTokens - asked.count - context.count - end.count)
            return parts(reader.plainTokens(of: candidate.text), size).map { asked + context + $0 + end }
        }
    }

    /// The same for texts that were read before. Takes some milliseconds for hundreds of them.
    public nonisolated(nonsending) func scores(of texts: [PreparedText], for question: String) async throws -> [Double] {
        scores(of: texts, for: try await prepared(question: question))
    }

    /// The same for a question that was read before.
    public func scores(of texts: [PreparedText], for question: PreparedQuestion) -> [Double] {
        texts.map { text in text.logit(for: question.read).map { 1 / (1 + exp(-$0)) } ?? 0 }
    }

    /// A question that a ranker has read.
    public struct PreparedQuestion: Sendable {
        fileprivate let read: RankedQuestion

        /// The likelihood, from 0 to 1, that a prompt of a conversation asks for something that was said earlier in it, judged by the
        /// prompt alone: of prompts as likely as questions that do and others.
        public var refersBack: Double { read.recall.map { 1 / (1 + exp(-$0)) } ?? 0.5 }
    }

    /// Reads a question.
    ///
    /// - Throws: ``EmbeddingError`` if there is no model, or no trained part for it, or `CancellationError`.
    public nonisolated(nonsending) func prepared(question: String) async throws -> PreparedQuestion {
        let (lease, trained) = try await ranker()
        let embedder = lease.model
        let (begin, end) = Self.marks(embedder)
        let tokens = begin + embedder.plainTokens(of: question).prefix(Self.questionTokens) + end
        return PreparedQuestion(read: try await embedder.question(tokens, ranker: trained))
    }

    /// Reads texts, so that they can be compared with questions.
    ///
    /// - Throws: ``EmbeddingError`` if there is no model, or no trained part for it, or `CancellationError`.
    public nonisolated(nonsending) func prepared(_ candidates: [Candidate]) async throws -> [PreparedText] {
        let (lease, trained) = try await ranker()
        let embedder = lease.model
        let (begin, end) = Self.marks(embedder)
        let texts = candidates.map { candidate in
            let context = candidate.context.isEmpty ? [] : embedder.plainTokens(of: candidate.context).suffix(Self.contextTokens)
            let size = max(1, min(Self.partTokens, embedder.maximumTokens - begin.count - end.count - Self.contextTokens))
            return Self.parts(embedder.plainTokens(of: candidate.text), size).map { part in
                TextEmbedder.Candidate(tokens: begin + part + end + context, compared: begin.count + part.count + end.count)
            }
        }
        var codes = try await embedder.codes(of: texts.flatMap(\.self), ranker: trained)[...]
        return texts.map { parts in
            defer { codes = codes.dropFirst(parts.count) }
            return PreparedText(Array(codes.prefix(parts.count)))
        }
    }

    /// The maximum number of tokens of a question. Of a longer one, the beginning is read; a model that reads question and text together reads
    /// as many as take a quarter of its length.
    public static let questionTokens = 48
    /// The maximum number of tokens that are read together. Longer texts are read in parts, and the best part counts. The parts of a model that
    /// reads question and text together are as long as the question leaves room for.
    public static let partTokens = 120
    /// The maximum number of parts of a text. Of a longer one, the beginning is read.
    public static let maximumParts = 6
    /// The maximum number of tokens of a context: its last ones.
    public static let contextTokens = 36

    /// Parts of about the same length.
    private static func parts(_ tokens: [TokenID], _ limit: Int) -> [ArraySlice<TokenID>] {
        let count = min(tokens.count, maximumParts * limit)
        if count == 0 { return [[]] }
        let parts = (count + limit - 1) / limit
        let size = (count + parts - 1) / parts
        return stride(from: 0, to: count, by: size).map { tokens[$0..<min($0 + size, count)] }
    }

    /// The marks of the beginning and the end of a text.
    private static func marks(_ embedder: TextEmbedder) -> (begin: [TokenID], end: [TokenID]) {
        let marks = embedder.tokens(of: "")
        return (Array(marks.prefix(1)), Array(marks.dropFirst().suffix(1)))
    }

    /// The model in memory, for one call, and its trained part.
    private nonisolated(nonsending) func ranker() async throws -> (ModelLease<TextEmbedder>, RankerFile) {
        let lease = try await model.embedder()
        guard !lease.model.readsPairs else {
            throw EmbeddingError(
                "The model at \(model.url.path) reads a question and a text together: texts cannot be prepared for it. Use scores(of:for:) with the texts themselves."
            )
        }
        guard let trained = try trained(lease.model) else {
            throw EmbeddingError(
                "There is no ranker for the model at \(model.url.path). It is made for all-MiniLM-L6-v2, which “fm model pull embedder” installs."
            )
        }
        return (lease, trained)
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
