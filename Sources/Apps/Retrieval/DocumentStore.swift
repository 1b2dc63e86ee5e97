package import Embeddings

/// The database of an index: documents, their chunks with vectors, and the full text.
package protocol DocumentStore: Sendable {
    /// The file or the place on a server, for people.
    var name: String { get }
    var isReadOnly: Bool { get }

    func properties() async throws -> IndexProperties
    func counts() async throws -> (documents: Int, chunks: Int)
    /// Ends writing. Must be the last call.
    func close() async throws

    // MARK: Documents

    /// What is known of the documents of a source, by path.
    func documents(source: String) async throws -> [String: DocumentRecord]
    /// Replaces documents, in one transaction.
    func replace(_ documents: [IndexedDocument]) async throws
    /// Records that a document was written again with the same content.
    func touch(_ id: Int64, size: Int, modified: Double) async throws
    /// Removes documents. Returns the number of those that were there.
    func remove(source: String, paths: [String]) async throws -> Int

    // MARK: Search

    /// The chunks that may answer a query.
    ///
    /// - Parameters:
    ///   - words: For the search by words; empty for none.
    ///   - vector: For the search by meaning; nil for none.
    ///   - limit: The maximum number of chunks of each search.
    func candidates(
        words: [String], near vector: [Float]?, limit: Int, filter: SearchFilter
    ) async throws -> SearchCandidates
    /// The stored vectors of some chunks.
    func vectors(_ ids: [Int64]) async throws -> [Int64: [Float]]
    /// The contents of some chunks. Those that are missing are left out.
    func passages(_ ids: [Int64]) async throws -> [Int64: Passage]
    /// The chunks of a document with these numbers, in order.
    func passages(document: Int64, numbers: ClosedRange<Int>) async throws -> [Passage]
}

/// What an index says about itself.
package struct IndexProperties: Sendable {
    package var model: EmbeddingModelInfo
    package var chunkTokens: Int
    package var overlap: Int

    package init(model: EmbeddingModelInfo, chunkTokens: Int, overlap: Int) {
        (self.model, self.chunkTokens, self.overlap) = (model, chunkTokens, overlap)
    }
}

/// What is compared to find out whether a document has changed.
package struct DocumentRecord: Sendable {
    package var id: Int64
    package var size: Int?
    package var modified: Double?
    package var hash: Int64
    /// Whether it has no chunks.
    package var isEmpty: Bool

    package init(id: Int64, size: Int?, modified: Double?, hash: Int64, isEmpty: Bool) {
        (self.id, self.size, self.modified, self.hash, self.isEmpty) = (id, size, modified, hash, isEmpty)
    }
}

/// A document with everything that is computed for it.
package struct IndexedDocument: Sendable {
    package var source: String
    package var path: String
    package var title: String?
    package var size: Int?
    package var modified: Double?
    package var hash: Int64
    package var metadata: [String: String]
    package var chunks: [Chunk] = []
    package var vectors: [[Float]] = []

    /// The text by which a chunk is found besides its own.
    package func context(of chunk: Chunk) -> String {
        "\(chunk.headings.joined(separator: "\n"))\n\(title ?? "")\n\(path)"
    }
}

/// Chunks that two searches have found, best first.
package struct SearchCandidates: Sendable {
    /// A chunk with words of the query. Its share of the words counts words by their rarity; words that more chunks contain than
    /// are counted do not matter, unless the query has no others.
    package var lexical: [(id: Int64, share: Double)] = []
    package var nearest: [Int64] = []

    package init(lexical: [(id: Int64, share: Double)] = [], nearest: [Int64] = []) {
        (self.lexical, self.nearest) = (lexical, nearest)
    }

    /// A word that more chunks contain says little about any of them.
    package static let frequent = 2_000
}
