#if SQLite
internal import Waiting
import Embeddings
import Foundation
import GRDB
import Logging
import Synchronization
import TextSearch

/// An index in an SQLite file. Vectors are searched in memory.
final class SQLiteDocumentStore: DocumentStore {
    let path: String
    var name: String { path }
    private let reader: any DatabaseReader
    private let writer: (any DatabaseWriter)?

    var isReadOnly: Bool { writer == nil }

    private let loaded = Mutex<(table: VectorTable, revision: Int)?>(nil)
    /// Held while the vectors in memory are brought up to date.
    private let loading = AsyncLock()

    private static let format = 1
    private static let log = Logger(label: "FoundationModels.Retrieval")

    /// - Parameters:
    ///   - created: The properties of a new index; nil opens an existing one for reading.
    ///   - maximumPageCount: The maximum size of the file in pages; tests use it to simulate a full disk.
    init(path: String, created: IndexProperties?, maximumPageCount: Int? = nil) throws {
        self.path = path
        do {
            var configuration = Configuration()
            configuration.busyMode = .timeout(10)
            if let created {
                try FileManager.default.createDirectory(
                    at: URL(filePath: path).deletingLastPathComponent(), withIntermediateDirectories: true)
                configuration.prepareDatabase {
                    try $0.execute(sql: "PRAGMA synchronous = NORMAL")
                    if let maximumPageCount { try $0.execute(sql: "PRAGMA max_page_count = \(maximumPageCount)") }
                }
                let pool = try Self.pool(path, configuration)
                try Self.migrate(pool, created, path: path)
                (reader, writer) = (pool, pool)
            } else {
                guard FileManager.default.fileExists(atPath: path) else {
                    throw RetrievalError.index(path: path, reason: "there is no such file")
                }
                configuration.readonly = true
                (reader, writer) = (try DatabaseQueue(path: path, configuration: configuration), nil)
            }
        } catch { throw Self.readable(error, path) }
    }

    /// SQLite does not wait when two programs create a write-ahead log at the same time: one of them tries again.
    private static func pool(_ path: String, _ configuration: Configuration) throws -> DatabasePool {
        for _ in 0..<200 {
            do { return try DatabasePool(path: path, configuration: configuration) } catch let error as DatabaseError {
                guard error.resultCode.primaryResultCode == .SQLITE_BUSY else { throw error }
                usleep(10_000)
            }
        }
        return try DatabasePool(path: path, configuration: configuration)
    }

    func close() async throws { try await onAnotherThread { [self] in try closeAndWait() } }

    private func closeAndWait() throws {
        guard let writer else { return }
        do {
            try writer.close()
            // Without a write-ahead log, readers need not write beside the file. If another program uses the index, the log
            // stays.
            let alone = try DatabaseQueue(path: path)
            try alone.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = DELETE") }
            try alone.close()
        } catch let error as DatabaseError where error.resultCode.primaryResultCode == .SQLITE_BUSY {
            return
        } catch { throw Self.readable(error, path) }
    }

    private static func readable(_ error: any Error, _ path: String) -> any Error {
        switch error {
        case is RetrievalError, is CancellationError: return error
        case let error as DatabaseError:
            let reason =
                switch error.resultCode.primaryResultCode {
                case .SQLITE_NOTADB: "it is not an index"
                case .SQLITE_CORRUPT: "it is damaged; build it again"
                case .SQLITE_FULL: "the disk is full"
                case .SQLITE_BUSY: "another program is writing to it; try again when it has finished"
                case .SQLITE_CANTOPEN: "it cannot be opened"
                case .SQLITE_READONLY: "it cannot be written"
                default: error.message ?? "\(error)"
                }
            return RetrievalError.index(path: path, reason: reason)
        default: return RetrievalError.index(path: path, reason: error.localizedDescription)
        }
    }

    // SQLite waits up to ten seconds for other programs. GRDB does that on its own threads, and ends it with the task.

    private func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        do { return try await reader.read(body) } catch { throw Self.readable(error, path) }
    }

    private func write<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        guard let writer else { throw RetrievalError.readOnly(path: path) }
        do { return try await writer.write(body) } catch { throw Self.readable(error, path) }
    }

    /// For threads that may wait.
    private func readAndWait<Value>(_ body: (Database) throws -> Value) throws -> Value {
        do { return try reader.read(body) } catch { throw Self.readable(error, path) }
    }

    private static func migrate(_ database: DatabasePool, _ created: IndexProperties, path: String) throws {
        try database.write { database in
            if try database.tableExists("property") { return }
            guard try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_master") == 0 else {
                throw RetrievalError.index(path: path, reason: "it is a database of another program")
            }
            try database.execute(
                sql: """
                    CREATE TABLE property (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
                    CREATE TABLE document (
                        id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, path TEXT NOT NULL, title TEXT,
                        size INTEGER, modified REAL, hash INTEGER NOT NULL, metadata TEXT NOT NULL, UNIQUE (source, path));
                    CREATE TABLE chunk (
                        id INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL REFERENCES document (id) ON DELETE CASCADE,
                        number INTEGER NOT NULL, headings TEXT NOT NULL, text TEXT NOT NULL, line INTEGER NOT NULL,
                        last_line INTEGER NOT NULL, page INTEGER, tokens INTEGER NOT NULL, codes BLOB NOT NULL,
                        vector BLOB NOT NULL, UNIQUE (document, number));
                    CREATE VIRTUAL TABLE chunk_text USING fts5(
                        text, headings, tokenize = 'porter unicode61 remove_diacritics 2');
                    """)
            let values: [(String, any DatabaseValueConvertible)] = [
                ("format", format), ("revision", 0), ("model", created.model.identifier), ("modelName", created.model.name),
                ("dimension", created.model.dimension), ("maximumTokens", created.model.maximumTokenCount),
                ("chunkTokens", created.chunkTokens), ("overlap", created.overlap),
            ]
            for (name, value) in values {
                try database.execute(sql: "INSERT INTO property VALUES (?, ?)", arguments: [name, value])
            }
        }
    }

    // MARK: - Properties

    func properties() async throws -> IndexProperties {
        try await read { [path] database in
            guard try database.tableExists("property") else {
                throw RetrievalError.index(path: path, reason: "it is not an index")
            }
            func integer(_ name: String) throws -> Int {
                guard let value = try Int.fetchOne(database, sql: "SELECT value FROM property WHERE name = ?", arguments: [name])
                else { throw RetrievalError.index(path: path, reason: "it is damaged; build it again") }
                return value
            }
            func text(_ name: String) throws -> String {
                try String.fetchOne(database, sql: "SELECT value FROM property WHERE name = ?", arguments: [name]) ?? ""
            }
            guard try integer("format") == Self.format else {
                throw RetrievalError.index(path: path, reason: "it was written by a newer version of this program")
            }
            return IndexProperties(
                model: EmbeddingModelInfo(
                    name: try text("modelName"), identifier: try text("model"), dimension: try integer("dimension"),
                    maximumTokenCount: try integer("maximumTokens")),
                chunkTokens: try integer("chunkTokens"), overlap: try integer("overlap"))
        }
    }

    func counts() async throws -> (documents: Int, chunks: Int) {
        try await read { database in
            (
                try Int.fetchOne(database, sql: "SELECT count(*) FROM document") ?? 0,
                try Int.fetchOne(database, sql: "SELECT count(*) FROM chunk") ?? 0
            )
        }
    }

    // MARK: - Documents

    func documents(source: String) async throws -> [String: DocumentRecord] {
        try await read { database in
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT id, path, size, modified, hash, NOT EXISTS (SELECT 1 FROM chunk WHERE chunk.document = document.id) AS empty
                    FROM document WHERE source = ?
                    """, arguments: [source])
            return Dictionary(
                rows.map {
                    (
                        $0["path"],
                        DocumentRecord(
                            id: $0["id"], size: $0["size"], modified: $0["modified"], hash: $0["hash"], isEmpty: $0["empty"])
                    )
                },
                uniquingKeysWith: { $1 })
        }
    }

    func replace(_ documents: [IndexedDocument]) async throws {
        try await write { database in
            for document in documents {
                try Self.remove(database, source: document.source, path: document.path)
                let metadata = String(decoding: try JSONEncoder().encode(document.metadata), as: UTF8.self)
                try database.execute(
                    sql: """
                        INSERT INTO document (source, path, title, size, modified, hash, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)
                        """,
                    arguments: [
                        document.source, document.path, document.title, document.size, document.modified, document.hash, metadata,
                    ])
                let id = database.lastInsertedRowID
                for (number, chunk) in document.chunks.enumerated() {
                    let headings = chunk.headings.joined(separator: "\n")
                    try database.execute(
                        sql: """
                            INSERT INTO chunk (document, number, headings, text, line, last_line, page, tokens, codes, vector)
                            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                            """,
                        arguments: [
                            id, number, headings, chunk.text, chunk.firstLine, chunk.lastLine, chunk.page, chunk.tokens,
                            Data(VectorTable.encoded(document.vectors[number])), Self.data(document.vectors[number]),
                        ])
                    try database.execute(
                        sql: "INSERT INTO chunk_text (rowid, text, headings) VALUES (?, ?, ?)",
                        arguments: [
                            database.lastInsertedRowID, SearchText.indexed(chunk.text),
                            SearchText.indexed(document.context(of: chunk)),
                        ])
                }
            }
            try Self.changed(database)
        }
    }

    func touch(_ id: Int64, size: Int, modified: Double) async throws {
        try await write {
            try $0.execute(sql: "UPDATE document SET size = ?, modified = ? WHERE id = ?", arguments: [size, modified, id])
        }
    }

    func remove(source: String, paths: [String]) async throws -> Int {
        try await write { database in
            var count = 0
            for path in paths where try Self.remove(database, source: source, path: path) { count += 1 }
            if count > 0 { try Self.changed(database) }
            return count
        }
    }

    @discardableResult private static func remove(_ database: Database, source: String, path: String) throws -> Bool {
        let old = try Int64.fetchOne(
            database, sql: "SELECT id FROM document WHERE source = ? AND path = ?", arguments: [source, path])
        guard let old else { return false }
        try database.execute(
            sql: "DELETE FROM chunk_text WHERE rowid IN (SELECT id FROM chunk WHERE document = ?)", arguments: [old])
        try database.execute(sql: "DELETE FROM document WHERE id = ?", arguments: [old])
        return true
    }

    private static func changed(_ database: Database) throws {
        try database.execute(sql: "UPDATE property SET value = value + 1 WHERE name = 'revision'")
    }

    // MARK: - Vectors

    /// Binary16, little-endian.
    private static func data(_ vector: [Float]) -> Data {
        vector.map { Float16($0).bitPattern.littleEndian }.withUnsafeBytes { Data($0) }
    }

    private static func vector(_ data: Data) -> [Float] {
        data.withUnsafeBytes { bytes in
            (0..<bytes.count / 2).map {
                Float(Float16(bitPattern: UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 2 * $0, as: UInt16.self))))
            }
        }
    }

    /// The vectors of the index as it is now. One search reads what is new, on a thread that may wait; the others wait for it without
    /// a thread, and all of them search the vectors at the same time.
    private func vectors(dimension: Int) async throws -> VectorTable {
        try await loading.acquire()
        defer { loading.release() }
        return try await onAnotherThread { [self] in
            // Taken out, so that changing the table does not copy it unless another search uses it.
            let known = loaded.withLock { loaded in
                defer { loaded = nil }
                return loaded
            }
            var (table, revision) = known ?? (VectorTable(dimension: dimension), -1)
            revision = try load(into: &table, revision)
            loaded.withLock { [table] in $0 = (table, revision) }
            return table
        }
    }

    /// Brings the vectors in memory up to date. The revision of an index changes whenever a document is replaced or removed.
    ///
    /// - Returns: The revision that they have now.
    private func load(into table: inout VectorTable, _ known: Int) throws -> Int {
        try readAndWait { database in
            let revision = try Int.fetchOne(database, sql: "SELECT value FROM property WHERE name = 'revision'") ?? 0
            if revision == known { return revision }
            let newest = table.keys.last ?? 0
            var isDamaged = false
            let rows = try Row.fetchCursor(
                database, sql: "SELECT id, codes FROM chunk WHERE id > ? ORDER BY id", arguments: [newest])
            while let row = try rows.next() {
                let id: Int64 = row["id"]
                let isComplete = try row.withUnsafeData(named: "codes") { codes in
                    codes?.withUnsafeBytes { table.append(id, encoded: $0) } ?? false
                }
                if !isComplete { isDamaged = true }
            }
            if isDamaged { throw RetrievalError.index(path: path, reason: "it is damaged; build it again") }
            if try Int.fetchOne(database, sql: "SELECT count(*) FROM chunk") != table.count {
                let current = Set(try Int64.fetchAll(database, sql: "SELECT id FROM chunk"))
                table.remove(Set(table.keys).subtracting(current))
            }
            return revision
        }
    }

    // MARK: - Search

    func candidates(
        words: [String], near vector: [Float]?, limit: Int, filter: SearchFilter
    ) async throws -> SearchCandidates {
        let table = if let vector { try await vectors(dimension: vector.count) } else { VectorTable?.none }
        return try await onAnotherThread { [self] in
            let included = try included(filter)
            var nearest: [Int64] = []
            if let vector, let table {
                // The order of the last ones is not exact.
                let count = limit * 2
                if let included {
                    nearest = table.nearest(to: vector, count: count) { included.contains($0) }.map(\.key)
                } else {
                    nearest = table.nearest(to: vector, count: count).map(\.key)
                }
            }
            return SearchCandidates(lexical: try lexical(words, limit: limit, included: included), nearest: nearest)
        }
    }

    /// The chunks of the documents that a filter includes; nil for all.
    private func included(_ filter: SearchFilter) throws -> Set<Int64>? {
        if filter.isEmpty { return nil }
        return try readAndWait { database in
            var documents: [Int64] = []
            let rows = try Row.fetchCursor(database, sql: "SELECT id, path, metadata FROM document")
            while let row = try rows.next() {
                let path = String.fromDatabaseValue(row["path"]) ?? ""
                if filter.includes(path: path, metadata: Self.metadata(row)) { documents.append(row["id"]) }
            }
            var chunks: Set<Int64> = []
            for document in documents {
                chunks.formUnion(
                    try Int64.fetchAll(database, sql: "SELECT id FROM chunk WHERE document = ?", arguments: [document]))
            }
            return chunks
        }
    }

    /// The metadata of a document; empty if it is damaged, so that the text is still found.
    fileprivate static func metadata(_ row: Row) -> [String: String] {
        let text = String.fromDatabaseValue(row["metadata"]) ?? ""
        do { return try JSONDecoder().decode([String: String].self, from: Data(text.utf8)) } catch {
            log.warning("The metadata of a document in an index is damaged and taken to be empty: \(error)")
            return [:]
        }
    }

    /// The chunks that contain any of the words, best first (BM25). Of words of different frequency, chunks must contain one of
    /// the less frequent ones: ranking all chunks with a frequent word would take most of the time.
    private func lexical(_ words: [String], limit: Int, included: Set<Int64>?) throws -> [(id: Int64, share: Double)] {
        guard !words.isEmpty else { return [] }
        func any(_ words: [String]) -> String { words.map { "\"\($0)\"" }.joined(separator: " OR ") }
        return try readAndWait { database in
            let total = try Int.fetchOne(database, sql: "SELECT count(*) FROM chunk") ?? 0
            var rare: [(word: String, chunks: Set<Int64>)] = []
            var weights: [Double] = []
            for word in words {
                let chunks = try Int64.fetchSet(
                    database, sql: "SELECT rowid FROM chunk_text WHERE chunk_text MATCH ? LIMIT ?",
                    arguments: [any([word]), SearchCandidates.frequent])
                if chunks.count < SearchCandidates.frequent {
                    rare.append((word, chunks))
                    weights.append(SearchText.weight(count: chunks.count, total: total))
                }
            }
            func ranked(_ query: String) throws -> [(id: Int64, share: Double)] {
                var result: [(id: Int64, share: Double)] = []
                let rows = try Int64.fetchCursor(
                    database,
                    sql: "SELECT rowid FROM chunk_text WHERE chunk_text MATCH ? ORDER BY bm25(chunk_text, 1.0, 0.5) LIMIT ?",
                    arguments: [query, included == nil ? limit : -1])
                let all = weights.reduce(0, +)
                while result.count < limit, let id = try rows.next() {
                    guard included?.contains(id) ?? true else { continue }
                    let found = zip(rare, weights).reduce(0) { $1.0.chunks.contains(id) ? $0 + $1.1 : $0 }
                    result.append((id, rare.isEmpty ? 1 : found / all))
                }
                return result
            }
            let found = rare.filter { !$0.chunks.isEmpty }.map(\.word)
            // The second part adds the frequent words to the ranking.
            if !found.isEmpty { return try ranked("(\(any(found))) AND (\(any(words)))") }
            let all = try ranked(words.map { "\"\($0)\"" }.joined(separator: " AND "))
            return all.count >= limit ? all : try ranked(any(words))
        }
    }

    func vectors(_ ids: [Int64]) async throws -> [Int64: [Float]] {
        try await read { database in
            var result: [Int64: [Float]] = [:]
            for id in ids {
                if let data = try Data.fetchOne(database, sql: "SELECT vector FROM chunk WHERE id = ?", arguments: [id]) {
                    result[id] = Self.vector(data)
                }
            }
            return result
        }
    }

    func passages(_ ids: [Int64]) async throws -> [Int64: Passage] {
        try await read { [path] database in
            var result: [Int64: Passage] = [:]
            for id in ids {
                if let row = try Row.fetchOne(database, sql: Self.passageQuery + " WHERE chunk.id = ?", arguments: [id]) {
                    result[id] = try Passage(row, path: path)
                }
            }
            return result
        }
    }

    func passages(document: Int64, numbers: ClosedRange<Int>) async throws -> [Passage] {
        try await read { [path] database in
            try Row.fetchAll(
                database,
                sql: Self.passageQuery + " WHERE document = ? AND number BETWEEN ? AND ? ORDER BY number",
                arguments: [document, numbers.lowerBound, numbers.upperBound]
            ).map { try Passage($0, path: path) }
        }
    }

    private static let passageQuery = """
        SELECT chunk.id, document, number, headings, text, line, last_line, page, tokens, source, path, title, metadata FROM chunk
        JOIN document ON document.id = document
        """
}

extension Passage {
    /// - Throws: ``RetrievalError/index(path:reason:)`` if the row is damaged.
    fileprivate init(_ row: Row, path: String) throws {
        func value<Value: DatabaseValueConvertible>(_ name: String) throws -> Value {
            guard let value = Value.fromDatabaseValue(row[name]) else {
                throw RetrievalError.index(path: path, reason: "it is damaged; build it again")
            }
            return value
        }
        let headings: String = try value("headings")
        let line: Int = try value("line")
        self.init(
            id: try value("id"), documentID: try value("document"), number: try value("number"), source: try value("source"),
            path: try value("path"), title: String.fromDatabaseValue(row["title"]),
            headings: headings.isEmpty ? [] : headings.components(separatedBy: "\n"), text: try value("text"),
            lines: line...max(line, try value("last_line")), page: Int.fromDatabaseValue(row["page"]),
            tokenCount: try value("tokens"), metadata: SQLiteDocumentStore.metadata(row))
    }
}
#endif
