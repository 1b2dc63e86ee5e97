internal import Waiting
public import Embeddings
public import Foundation
import TextSearch

/// An index of documents, searched by words and by meaning.
///
/// ```swift
/// let index = try await SearchIndex(url: URL(filePath: "docs.index"))
/// try await index.update(folder: URL(filePath: "docs"))
/// for result in try await index.search("How do I renew a passport?") { print(result.passage.place, result.passage.text) }
/// ```
///
/// An index is a file of SQLite; the product `FoundationModelsPostgreSQL` has indexes on a PostgreSQL server, for large
/// collections. Documents are cut into passages between sentences. Several processes may read an index while one writes it. Each document
/// is replaced in one transaction: whenever a program ends, an index has either the old or the new version of it.
public final class SearchIndex: Sendable {
    /// The path of the file, or the place on a server.
    public var name: String { store.name }
    /// The model that computes the vectors of passages and queries.
    public let model: any EmbeddingModel
    /// Whether the index was opened for reading.
    public var isReadOnly: Bool { store.isReadOnly }

    let store: any DocumentStore
    let chunker: DocumentChunker
    private let dimension: Int

    /// Options of a new index.
    public struct Configuration: Sendable {
        /// The maximum number of tokens of a passage, limited to what the embedding model reads.
        public var passageTokens = 200
        /// The maximum number of tokens at the end of a passage that the next one repeats.
        public var overlap = 24

        /// Creates the default options.
        public init() {}
    }

    /// Opens an index, or creates it.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - model: The embedding model. An existing index must have been built with it.
    ///   - configuration: Options of a new index; an existing one keeps its own.
    /// - Throws: ``RetrievalError``, or the error of the model.
    public convenience init(
        url: URL, model: any EmbeddingModel = GGUFEmbeddingModel.default, configuration: Configuration = Configuration()
    ) async throws {
        let created = try await Self.properties(model, configuration)
        try await self.init(store: Self.open(url, created: created), model: model)
    }

    /// - Parameter created: The properties of a new index; nil to read an existing one.
    private static func open(_ url: URL, created: IndexProperties?) async throws -> any DocumentStore {
        #if SQLite
        try await onAnotherThread { try SQLiteDocumentStore(path: url.path, created: created) }
        #else
        throw RetrievalError.index(
            path: url.path,
            reason: "this program was built without SQLite; build it with the trait SQLite of swift-foundation-models")
        #endif
    }

    /// The properties of a new index.
    package static func properties(
        _ model: any EmbeddingModel, _ configuration: Configuration
    ) async throws -> IndexProperties {
        let info = try await model.info()
        let tokens = max(16, min(configuration.passageTokens, info.maximumTokenCount - 2))
        return IndexProperties(
            model: info, chunkTokens: tokens, overlap: max(0, min(configuration.overlap, tokens / 2)))
    }

    /// Opens an existing index for reading only, for example one that was shipped with a program.
    ///
    /// - Throws: ``RetrievalError``, or the error of the model.
    public convenience init(readingFrom url: URL, model: any EmbeddingModel = GGUFEmbeddingModel.default) async throws {
        try await self.init(store: Self.open(url, created: nil), model: model)
    }

    /// Opens an index in another database.
    package init(store: any DocumentStore, model: any EmbeddingModel) async throws {
        let properties = try await store.properties()
        let info = try await model.info()
        guard properties.model.identifier == info.identifier, properties.model.dimension == info.dimension else {
            throw RetrievalError.otherModel(
                path: store.name, indexed: "\(properties.model.name) (\(properties.model.identifier))",
                current: "\(info.name) (\(info.identifier))")
        }
        (self.store, self.model) = (store, model)
        chunker = DocumentChunker(limit: properties.chunkTokens, overlap: properties.overlap, model: model)
        dimension = info.dimension
    }

    /// Closes the index after writing, so that it is a single file that can be copied and read from a read-only disk. Must be the
    /// last call.
    public func close() async throws { try await store.close() }

    /// The numbers of documents and passages.
    public func counts() async throws -> (documents: Int, passages: Int) {
        let counts = try await store.counts()
        return (counts.documents, counts.chunks)
    }

    // MARK: - Documents

    /// Adds a document, or replaces the one with the same path.
    ///
    /// - Parameters:
    ///   - document: The text.
    ///   - path: Identifies the document in its source.
    ///   - source: The name of a collection of documents.
    ///   - metadata: For ``SearchFilter``.
    /// - Returns: The number of passages.
    @discardableResult public func add(
        _ document: ExtractedText, path: String, source: String = "", metadata: [String: String] = [:]
    ) async throws -> Int {
        var indexed = IndexedDocument(
            source: source, path: path, title: document.title, hash: 0, metadata: metadata)
        indexed.chunks = try await chunker.chunks(of: document)
        indexed.vectors = try await vectors(of: indexed.chunks)
        try await store.replace([indexed])
        return indexed.chunks.count
    }

    func vectors(of chunks: [Chunk]) async throws -> [[Float]] {
        try await model.checkedVectors(of: chunks.map(\.embedded), as: .document, dimension: dimension)
    }

    /// Removes a document. Does nothing if it is not in the index.
    public func remove(path: String, source: String = "") async throws {
        _ = try await store.remove(source: source, paths: [path])
    }

    // MARK: - Search

    /// The number of results of each search that are combined.
    private static let depth = 50
    private static let maximumLimit = 100_000

    /// The passages that answer a query, best first.
    ///
    /// - Throws: ``RetrievalError``, or the error of the model.
    public func search(_ query: String, options: SearchOptions = SearchOptions()) async throws -> [SearchResult] {
        let limit = min(max(0, options.limit), Self.maximumLimit)
        let depth = max(Self.depth, limit)
        var wanted: [Float] = []
        if options.mode != .words {
            wanted = try await model.checkedVectors(of: [query], as: .query, dimension: dimension).first ?? []
        }
        var words = options.mode == .meaning ? [] : SearchText.words(of: query)
        // A query of common words only is a search for them.
        if words.isEmpty, options.mode != .meaning { words = SearchText.words(of: query, includesCommon: true) }
        let found = try await store.candidates(
            words: words, near: options.mode == .words ? nil : wanted, limit: depth, filter: options.filter)
        let lexical = found.lexical.map(\.id)
        var nearest = found.nearest
        let stored = try await store.vectors(Array(Set(lexical + nearest)))
        var cosines: [Int64: Double] = [:]
        if !wanted.isEmpty {
            for (id, vector) in stored where vector.count == wanted.count {
                // A damaged vector is not similar to anything.
                let cosine = Double(dotProduct(wanted, vector))
                cosines[id] = cosine.isFinite ? cosine : 0
            }
            // Texts whose vectors point elsewhere have nothing to do with the query, whatever their rank.
            nearest = nearest.filter { cosines[$0] ?? 0 > 0 }
            nearest = Array(nearest.sorted { (cosines[$0] ?? 0, $1) > (cosines[$1] ?? 0, $0) }.prefix(depth))
        }
        // A chunk with few of the query's words is not a good answer, even if no other has more of them.
        let byWords = found.lexical.map { (key: $0.id, weight: options.mode == .hybrid ? $0.share : 1) }
        let lists = [(byWords, options.mode != .meaning), (nearest.map { ($0, 1) }, options.mode != .words)]
            .filter(\.1).map(\.0)
        let best = Double(lists.count) / (RankFusion.constant + 1)
        let fused = RankFusion.fused(lists)
        let scores = Dictionary(uniqueKeysWithValues: fused.map { ($0.key, $0.score / best) })
        var order = fused.map { (key: $0.key, value: $0.score / best) }
        let relevance = options.reranks && options.mode == .hybrid ? try await relevance(order.map(\.key), query) : [:]
        Self.sort(&order, by: relevance)
        if options.diversity > 0 {
            let pool = Array(order.prefix(depth))
            order = Diversity.chosen(
                count: limit, relevance: pool.map(\.value), vectors: pool.map { stored[$0.key] ?? [] },
                diversity: min(1, options.diversity)
            ).map { pool[$0] }
        }
        let chosen = order.prefix(limit).map(\.key)
        let passages = try await store.passages(chosen)
        func ranks(_ ids: [Int64]) -> [Int64: Int] { Dictionary(uniqueKeysWithValues: zip(ids, 1...)) }
        let (lexicalRanks, vectorRanks) = (ranks(lexical), ranks(nearest))
        return chosen.compactMap { key in
            passages[key].map {
                SearchResult(
                    passage: $0, score: scores[key] ?? 0, cosine: cosines[key] ?? 0, lexicalRank: lexicalRanks[key],
                    vectorRank: vectorRanks[key], relevance: relevance[key])
            }
        }
    }

    /// The number of passages that a ranker reads.
    private static let rankedPassages = 24
    /// What a logit counts beside the score of the search: the largest of the values up to 0.1 that were compared, on the 360 questions of
    /// `Benchmarks/search`. The passage with the answer is among the first five for 81.7 %; 79.7 % with 0.05, 78.3 % without a ranker.
    private static let logitShare = 0.1

    /// The likelihood of the first passages, by a ranker; empty without one.
    private func relevance(_ found: [Int64], _ query: String) async throws -> [Int64: Double] {
        guard found.count > 1, let model = model as? GGUFEmbeddingModel else { return [:] }
        let reranker = Reranker(model: model)
        guard try await reranker.identifier() != nil else { return [:] }
        let passages = try await store.passages(Array(found.prefix(Self.rankedPassages)))
        let ids = passages.keys.sorted()
        let candidates = ids.compactMap { passages[$0] }.map {
            Reranker.Candidate($0.text, context: $0.headings.joined(separator: ", "))
        }
        return Dictionary(uniqueKeysWithValues: zip(ids, try await reranker.scores(of: candidates, for: query)))
    }

    /// Adds what a ranker says to the scores. What it has not read is like the worst that it has.
    private static func sort(_ results: inout [(key: Int64, value: Double)], by relevance: [Int64: Double]) {
        let logits = relevance.mapValues { logOdds($0) * logitShare }
        guard let least = logits.values.min() else { return }
        for index in results.indices { results[index].value += logits[results[index].key] ?? least }
        // Of equal ones, the better ones of the search stay first.
        results = results.enumerated().sorted { ($0.element.value, $1.offset) > ($1.element.value, $0.offset) }.map(\.element)
    }

    /// The passages around one, in the same document: `distance` before and after it.
    public func neighbours(of passage: Passage, distance: Int) async throws -> [Passage] {
        let distance = max(0, min(distance, 1_000))
        return try await store.passages(
            document: passage.documentID, numbers: passage.number - distance...passage.number + distance
        ).filter { $0.number != passage.number }
    }
}
