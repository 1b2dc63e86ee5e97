#if PostgreSQL
internal import Waiting
import Embeddings
import Foundation
import Retrieval
import TextSearch

/// An index in a schema of a PostgreSQL database: vectors in an HNSW index of pgvector, words in a GIN index.
final class PostgreSQLDocumentStore: DocumentStore {
    private let server: PostgreSQLServer
    private let dimension: Int

    var name: String { server.name }
    var isReadOnly: Bool { server.isReadOnly }

    /// pgvector builds HNSW indexes of binary16 vectors up to this size. Larger ones are searched one by one.
    private static let maximumIndexedDimension = 4_000

    private static func tables(_ dimension: Int) -> String {
        """
        CREATE TABLE document (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, source text NOT NULL, path text NOT NULL, title text,
            size bigint, modified double precision, hash bigint NOT NULL, metadata jsonb NOT NULL, UNIQUE (source, path));
        CREATE TABLE chunk (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            document bigint NOT NULL REFERENCES document (id) ON DELETE CASCADE, number integer NOT NULL,
            headings text NOT NULL, text text NOT NULL, line integer NOT NULL, last_line integer NOT NULL, page integer,
            tokens integer NOT NULL, vector halfvec(\(dimension)) NOT NULL, words tsvector NOT NULL,
            UNIQUE (document, number));
        \(SearchWords.configuration)
        CREATE INDEX chunk_words ON chunk USING gin (words) WITH (fastupdate = off);
        """
            + (dimension <= maximumIndexedDimension
                ? "CREATE INDEX chunk_vector ON chunk USING hnsw (vector halfvec_ip_ops)" : "")
    }

    private static func properties(_ created: IndexProperties) -> [(name: String, value: String)] {
        [
            ("model", created.model.identifier), ("modelName", created.model.name), ("dimension", "\(created.model.dimension)"),
            ("maximumTokens", "\(created.model.maximumTokenCount)"), ("chunkTokens", "\(created.chunkTokens)"),
            ("overlap", "\(created.overlap)"),
        ].map { ($0.0, $0.1.withoutNull) }
    }

    /// - Parameter created: The properties of a new index; nil opens an existing one for reading.
    init(_ settings: String, schema: String, created: IndexProperties?) async throws {
        // An index that exists keeps its own properties, which are compared when it is opened.
        let tables = created.map { Self.tables($0.model.dimension) } ?? ""
        do {
            (server, dimension) = try await onAnotherThread {
                let server = try PostgreSQLServer(
                    settings, schema: schema, kind: "search index", isReadOnly: created == nil, usesVectors: true,
                    migrations: [tables], properties: created.map(Self.properties) ?? [])
                let stored = try server.transaction(.read) { connection in
                    try connection.query("SELECT value FROM property WHERE name = 'dimension'").integer(0, 0)
                }
                return (server, Int(stored ?? 0))
            }
        } catch let error as PostgreSQLError {
            throw RetrievalError.index(path: "PostgreSQL, schema \(schema)", reason: error.reason)
        }
    }

    private func run<Value: Sendable>(
        _ mode: PostgreSQLServer.Mode, _ body: @escaping @Sendable (PostgreSQLConnection) throws -> Value
    ) async throws -> Value {
        if mode == .write, isReadOnly { throw RetrievalError.readOnly(path: name) }
        do { return try await server.background(mode, body) } catch let error as PostgreSQLError {
            throw RetrievalError.index(path: name, reason: error.reason)
        }
    }

    private var damaged: RetrievalError { .index(path: name, reason: "it is damaged; build it again") }

    func properties() async throws -> IndexProperties {
        let values = try await run(.read) { connection in
            let rows = try connection.query("SELECT name, value FROM property")
            return Dictionary((0..<rows.count).map { (rows.text($0, 0) ?? "", rows.text($0, 1) ?? "") }) { first, _ in first }
        }
        func integer(_ name: String) throws -> Int {
            guard let value = values[name].flatMap({ Int($0) }) else { throw damaged }
            return value
        }
        return IndexProperties(
            model: EmbeddingModelInfo(
                name: values["modelName"] ?? "", identifier: values["model"] ?? "", dimension: try integer("dimension"),
                maximumTokenCount: try integer("maximumTokens")),
            chunkTokens: try integer("chunkTokens"), overlap: try integer("overlap"))
    }

    func counts() async throws -> (documents: Int, chunks: Int) {
        try await run(.read) { connection in
            let rows = try connection.query("SELECT (SELECT count(*) FROM document), (SELECT count(*) FROM chunk)")
            return (Int(rows.integer(0, 0) ?? 0), Int(rows.integer(0, 1) ?? 0))
        }
    }

    func close() async throws { server.close() }

    // MARK: - Documents

    func documents(source: String) async throws -> [String: DocumentRecord] {
        try await run(.read) { connection in
            let rows = try connection.query(
                """
                SELECT path, id, size, modified, hash, NOT EXISTS (SELECT 1 FROM chunk WHERE chunk.document = document.id)
                FROM document WHERE source = $1
                """, [.text(source.withoutNull)])
            var records: [String: DocumentRecord] = [:]
            for row in 0..<rows.count {
                guard let path = rows.text(row, 0), let id = rows.integer(row, 1), let hash = rows.integer(row, 4) else {
                    continue
                }
                records[path] = DocumentRecord(
                    id: id, size: rows.integer(row, 2).map { Int($0) }, modified: rows.double(row, 3), hash: hash,
                    isEmpty: rows.text(row, 5) == "t")
            }
            return records
        }
    }

    /// A chunk as the server reads it.
    private struct Row: Encodable {
        var number: Int
        var headings: String
        var text: String
        var line: Int
        var last_line: Int
        var page: Int?
        var tokens: Int
        var vector: String
        var words: String
        var context: String
    }

    func replace(_ documents: [IndexedDocument]) async throws {
        let rows = try documents.map { document in
            try document.chunks.enumerated().map { number, chunk in
                guard document.vectors[number].count == dimension else { throw damaged }
                return Row(
                    number: number, headings: chunk.headings.joined(separator: "\n").withoutNull, text: chunk.text.withoutNull,
                    line: chunk.firstLine, last_line: chunk.lastLine, page: chunk.page, tokens: chunk.tokens,
                    vector: Self.text(of: document.vectors[number]), words: SearchWords.normalized(chunk.text),
                    context: SearchWords.normalized(document.context(of: chunk)))
            }
        }
        try await run(.write) { connection in
            try Self.lock(connection)
            for (document, rows) in zip(documents, rows) {
                let (source, path) = (document.source.withoutNull, document.path.withoutNull)
                try connection.query("DELETE FROM document WHERE source = $1 AND path = $2", [.text(source), .text(path)])
                let id =
                    try connection.query(
                        """
                        INSERT INTO document (source, path, title, size, modified, hash, metadata)
                        VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id
                        """,
                        [
                            .text(source), .text(path), document.title.map { .text($0.withoutNull) } ?? .null,
                            document.size.map { .integer(Int64($0)) } ?? .null, document.modified.map { .double($0) } ?? .null,
                            .integer(document.hash), try .json(document.metadata.withoutNull),
                        ]
                    ).integer(0, 0) ?? 0
                // The headings and names count half as much as the text.
                // In parts, because the server limits the size of a statement.
                for first in stride(from: 0, to: rows.count, by: 500) {
                    let part = Array(rows[first..<min(first + 500, rows.count)])
                    try connection.query(
                        """
                        INSERT INTO chunk (document, number, headings, text, line, last_line, page, tokens, vector, words)
                        SELECT $1::bigint, number, headings, text, line, last_line, page, tokens, vector::halfvec,
                            setweight(to_tsvector('words', c.words), 'A') || setweight(to_tsvector('words', c.context), 'C')
                        FROM json_to_recordset($2::json) AS c (
                            number integer, headings text, text text, line integer, last_line integer, page integer,
                            tokens integer, vector text, words text, context text)
                        """, [.integer(id), try .json(part)])
                }
            }
        }
    }

    /// One program at a time changes documents: two that replace the same ones would wait for each other.
    private static func lock(_ connection: PostgreSQLConnection) throws {
        try connection.query("SELECT pg_advisory_xact_lock(hashtextextended('documents ' || current_schema(), 0))")
    }

    private static func text(of vector: [Float]) -> String {
        // Numbers that binary16 cannot represent are errors of the server.
        "[" + vector.map { "\(Float(Float16($0)))" }.joined(separator: ",") + "]"
    }

    func touch(_ id: Int64, size: Int, modified: Double) async throws {
        try await run(.write) { connection in
            _ = try connection.query(
                "UPDATE document SET size = $1, modified = $2 WHERE id = $3",
                [.integer(Int64(size)), .double(modified), .integer(id)])
        }
    }

    func remove(source: String, paths: [String]) async throws -> Int {
        try await run(.write) { connection in
            try Self.lock(connection)
            return try connection.query(
                """
                DELETE FROM document WHERE source = $1 AND path IN (SELECT json_array_elements_text($2::json))
                """, [.text(source.withoutNull), try .json(paths.map(\.withoutNull))]
            ).changed
        }
    }

    // MARK: - Search

    /// Of fewer chunks, the vectors are compared one by one if a filter chooses them.
    private static let fewChunks = 20_000

    func candidates(
        words: [String], near vector: [Float]?, limit: Int, filter: SearchFilter
    ) async throws -> SearchCandidates {
        return try await run(.read) { connection in
            let condition = Condition(
                path: filter.pathPrefix.map { .text($0.withoutNull) },
                metadata: filter.metadata.isEmpty ? nil : try .json(filter.metadata.withoutNull))
            var found = SearchCandidates()
            let terms = words.map(SearchWords.normalized).filter { !$0.isEmpty }
            if !terms.isEmpty { found.lexical = try Self.lexical(connection, terms, limit, condition) }
            if let vector { found.nearest = try Self.nearest(connection, vector, limit, condition) }
            return found
        }
    }

    /// Restricts a search to documents. Uses the parameters `$1` and `$2`.
    private struct Condition {
        var path: PostgreSQLConnection.Parameter?
        var metadata: PostgreSQLConnection.Parameter?

        var isEmpty: Bool { path == nil && metadata == nil }

        var sql: String {
            isEmpty
                ? "$1::text IS NULL AND $2::text IS NULL"
                : """
                document IN (SELECT d.id FROM document d
                    WHERE ($1::text IS NULL OR starts_with(d.path, $1)) AND ($2::jsonb IS NULL OR d.metadata @> $2::jsonb))
                """
        }

        var parameters: [PostgreSQLConnection.Parameter] {
            [path ?? .null, metadata ?? .null]
        }
    }

    /// The chunks that contain any of the words, best first. As in BM25, rare words and short chunks count more, and repetitions
    /// less and less (`ts_rank` of a single word). Of words of different frequency, chunks must contain one of the less frequent
    /// ones: ranking all chunks with a frequent word would take most of the time.
    private static func lexical(
        _ connection: PostgreSQLConnection, _ words: [String], _ limit: Int, _ condition: Condition
    ) throws -> [(id: Int64, share: Double)] {
        let counts = try connection.query(
            """
            SELECT (SELECT count(*) FROM (SELECT 1 FROM chunk WHERE words @@ plainto_tsquery('words', word) LIMIT $2) AS found),
                (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'chunk'::regclass)
            FROM json_array_elements_text($1::json) WITH ORDINALITY AS w (word, position) ORDER BY position
            """, [try .json(words), .integer(Int64(SearchCandidates.frequent))])
        var terms = words.indices.map { Term(word: words[$0], count: Int(counts.integer($0, 0) ?? 0)) }
        // The server's estimate is missing at first, and small tables are counted quickly.
        var total = Int(counts.integer(0, 1) ?? 0)
        if total < 100_000 { total = Int(try connection.query("SELECT count(*) FROM chunk").integer(0, 0) ?? 0) }
        total = max(total, terms.map(\.count).max() ?? 0)
        for index in terms.indices {
            terms[index].weight = SearchText.weight(count: terms[index].count, total: total)
        }
        let rare = terms.filter { $0.count < SearchCandidates.frequent }
        let all = rare.reduce(0) { $0 + $1.weight }
        func ranked(_ required: [Term], joined: String = " | ") throws -> [(id: Int64, share: Double)] {
            let rows = try connection.query(
                """
                WITH term AS (SELECT plainto_tsquery('words', word) AS query, weight, count
                    FROM json_to_recordset($3::json) AS t (word text, weight double precision, count integer)),
                required AS (SELECT string_agg('(' || plainto_tsquery('words', word)::text || ')', $5)::tsquery AS query
                    FROM json_array_elements_text($4::json) AS w (word))
                SELECT id, (SELECT sum(weight) FROM term WHERE count < $7 AND words @@ term.query)
                FROM chunk, required WHERE words @@ required.query AND \(condition.sql)
                ORDER BY (SELECT sum(weight * ts_rank('{0, 0.5, 0, 1}', words, term.query)) FROM term)
                    / (0.6 + length(words) / 250.0) DESC, id LIMIT $6
                """,
                condition.parameters + [
                    try .json(terms), try .json(required.map(\.word)), .text(joined), .integer(Int64(limit)),
                    .integer(Int64(SearchCandidates.frequent)),
                ])
            return (0..<rows.count).compactMap { row in
                rows.integer(row, 0).map { ($0, rare.isEmpty || all <= 0 ? 1 : (rows.double(row, 1) ?? 0) / all) }
            }
        }
        let found = rare.filter { $0.count > 0 }
        if !found.isEmpty { return try ranked(found) }
        let frequent = terms.filter { $0.count > 0 }
        if frequent.isEmpty { return [] }
        let together = try ranked(frequent, joined: " & ")
        return together.count >= limit ? together : try ranked(frequent)
    }

    private struct Term: Encodable {
        var word: String
        var count: Int
        var weight = 0.0
    }

    private static func nearest(
        _ connection: PostgreSQLConnection, _ vector: [Float], _ limit: Int, _ condition: Condition
    ) throws -> [Int64] {
        let order = "ORDER BY vector <#> $3::halfvec LIMIT $4"
        let parameters = condition.parameters + [.text(text(of: vector)), .integer(Int64(limit))]
        func ids(_ sql: String) throws -> [Int64] {
            let rows = try connection.query(sql, parameters)
            return (0..<rows.count).compactMap { rows.integer($0, 0) }
        }
        // Compares all vectors of the chunks.
        let exact = """
            WITH included AS MATERIALIZED (SELECT id, vector FROM chunk WHERE \(condition.sql))
            SELECT id FROM included \(order)
            """
        if !condition.isEmpty {
            let count = try connection.query(
                "SELECT count(*) FROM (SELECT 1 FROM chunk WHERE \(condition.sql) LIMIT \(fewChunks)) AS found",
                condition.parameters)
            if count.integer(0, 0) ?? 0 < fewChunks { return try ids(exact) }
        }
        // The more the search looks at, the fewer of the nearest it misses.
        try connection.execute(
            "SET LOCAL hnsw.ef_search = \(min(1_000, max(200, limit * 2))); SET LOCAL hnsw.iterative_scan = relaxed_order")
        let found = try ids("SELECT id FROM chunk WHERE \(condition.sql) \(order)")
        // The index gives up if the chunks that a filter chooses are all far from the query.
        return condition.isEmpty || found.count >= limit ? found : try ids(exact)
    }

    func vectors(_ ids: [Int64]) async throws -> [Int64: [Float]] {
        try await run(.read) { connection in
            let rows = try connection.query("SELECT id, vector FROM chunk WHERE id = ANY ($1::bigint[])", [.array(ids)])
            var result: [Int64: [Float]] = [:]
            for row in 0..<rows.count {
                guard let id = rows.integer(row, 0), let text = rows.text(row, 1) else { continue }
                result[id] = text.dropFirst().dropLast().split(separator: ",").map { Float($0) ?? 0 }
            }
            return result
        }
    }

    private static let passageQuery = """
        SELECT chunk.id, document, number, source, path, title, headings, text, line, last_line, page, tokens, metadata
        FROM chunk JOIN document ON document.id = document
        """

    func passages(_ ids: [Int64]) async throws -> [Int64: Passage] {
        let passages = try await run(.read) { connection in
            Self.passages(
                try connection.query("\(Self.passageQuery) WHERE chunk.id = ANY ($1::bigint[])", [.array(ids)]))
        }
        return Dictionary(passages.map { ($0.id, $0) }) { first, _ in first }
    }

    func passages(document: Int64, numbers: ClosedRange<Int>) async throws -> [Passage] {
        try await run(.read) { connection in
            Self.passages(
                try connection.query(
                    "\(Self.passageQuery) WHERE document = $1 AND number BETWEEN $2 AND $3 ORDER BY number",
                    [.integer(document), .integer(Int64(numbers.lowerBound)), .integer(Int64(numbers.upperBound))]))
        }
    }

    private static func passages(_ rows: PostgreSQLRows) -> [Passage] {
        (0..<rows.count).map { row in
            func integer(_ column: Int) -> Int { Int(rows.integer(row, column) ?? 0) }
            let headings = rows.text(row, 6) ?? ""
            let metadata = rows.text(row, 12).flatMap { text in
                try? JSONDecoder().decode([String: String].self, from: Data(text.utf8))  // changed by others: left out
            }
            return Passage(
                id: rows.integer(row, 0) ?? 0, documentID: rows.integer(row, 1) ?? 0, number: integer(2),
                source: rows.text(row, 3) ?? "", path: rows.text(row, 4) ?? "", title: rows.text(row, 5),
                headings: headings.isEmpty ? [] : headings.components(separatedBy: "\n"), text: rows.text(row, 7) ?? "",
                lines: integer(8)...max(integer(8), integer(9)), page: rows.integer(row, 10).map { Int($0) },
                tokenCount: integer(11), metadata: metadata ?? [:])
        }
    }
}

extension String {
    /// PostgreSQL cannot store U+0000 in text.
    fileprivate var withoutNull: String { utf8.contains(0) ? replacing("\0", with: " ") : self }
}

extension [String: String] {
    fileprivate var withoutNull: [String: String] {
        Dictionary(map { ($0.key.withoutNull, $0.value.withoutNull) }) { first, _ in first }
    }
}
#endif
