/// A part of a document in an index.
public struct Passage: Sendable, Codable, Identifiable {
    public var id: Int64
    /// Identifies the document in this index.
    public var documentID: Int64
    /// The number of the passage in its document, from 0.
    public var number: Int
    /// The name of the collection to which the document belongs; empty if it has none.
    public var source: String
    /// The document's path or name.
    public var path: String
    /// The document's title, if it has one.
    public var title: String?
    /// The headings above the passage, the outermost first.
    public var headings: [String]
    /// The text, word for word.
    public var text: String
    /// The lines of the document, from 1; in a PDF, those of the page's text.
    public var lines: ClosedRange<Int>
    /// The page, from 1; nil for documents without pages.
    public var page: Int?
    /// The number of tokens of the embedding model.
    public var tokenCount: Int
    /// The metadata of the document.
    public var metadata: [String: String]

    package init(
        id: Int64, documentID: Int64, number: Int, source: String, path: String, title: String?, headings: [String],
        text: String, lines: ClosedRange<Int>, page: Int?, tokenCount: Int, metadata: [String: String]
    ) {
        self.id = id
        self.documentID = documentID
        self.number = number
        self.source = source
        self.path = path
        self.title = title
        self.headings = headings
        self.text = text
        self.lines = lines
        self.page = page
        self.tokenCount = tokenCount
        self.metadata = metadata
    }

    /// Where the passage is, for people: `guide.md:12-20`, or `book.pdf, page 3`.
    public var place: String {
        if let page { return "\(path), page \(page)" }
        return lines.count > 1 ? "\(path):\(lines.lowerBound)-\(lines.upperBound)" : "\(path):\(lines.lowerBound)"
    }
}

/// A passage that was found.
public struct SearchResult: Sendable, Codable, Identifiable {
    /// The passage.
    public var passage: Passage
    /// From 0 to 1, where 1 is the first result of every search that was combined, with all words of the query.
    public var score: Double
    /// The cosine of the angle between the vectors of query and passage.
    public var cosine: Double
    /// The rank in the search by words, from 1; nil if the passage has none of the words.
    public var lexicalRank: Int?
    /// The rank in the search by meaning, from 1; nil if it is not among the best.
    public var vectorRank: Int?
    /// The likelihood, from 0 to 1, that the passage answers the query, by a ranker that has read both; nil if it was not read
    /// (``SearchOptions/reranks``). Results are in the order of the sum of its logit and the score.
    public var relevance: Double?

    public var id: Int64 { passage.id }
}

/// Restricts a search to some documents.
public struct SearchFilter: Sendable, Equatable {
    /// The beginning of the paths of the documents; nil for all.
    public var pathPrefix: String?
    /// Metadata that the documents must have.
    public var metadata: [String: String]

    /// Creates a filter.
    public init(pathPrefix: String? = nil, metadata: [String: String] = [:]) {
        self.pathPrefix = pathPrefix
        self.metadata = metadata
    }

    package var isEmpty: Bool { pathPrefix == nil && metadata.isEmpty }

    func includes(path: String, metadata found: [String: String]) -> Bool {
        if let pathPrefix, !path.utf8.starts(with: pathPrefix.utf8) { return false }
        return metadata.allSatisfy { found[$0.key] == $0.value }
    }
}

/// How an index is searched.
public struct SearchOptions: Sendable {
    /// The maximum number of results.
    public var limit = 10
    /// The documents to search.
    public var filter = SearchFilter()
    /// From 0 (the most relevant passages, which may repeat each other) to 1 (the most different ones).
    public var diversity = 0.0
    /// The searches that are combined.
    public var mode = Mode.hybrid
    /// Whether a `Reranker` of `Embeddings` reads the best passages of a hybrid search and puts them in order, if there is one for the
    /// model. It finds more, and takes some 0.2 seconds.
    public var reranks = true

    /// The ways to search.
    public enum Mode: String, Sendable, Codable, CaseIterable {
        /// By words and by meaning, combined by rank.
        case hybrid
        /// By words (BM25).
        case words
        /// By the similarity of vectors.
        case meaning
    }

    /// Creates the default options.
    public init() {}

    /// For passages of a prompt: as many as may fit, without those that repeat others.
    public static var forPrompts: SearchOptions {
        var options = SearchOptions()
        (options.limit, options.diversity) = (24, 0.3)
        return options
    }
}
