public import Foundation
import GRDB

/// Stores conversations in an SQLite database: every turn, verbatim, whether or not it is still in a context.
///
/// Written data survives when the process is killed. A turn is written before it is sent to the model and again when it
/// is answered, so that at most the answer in progress is lost. Each turn has a checksum: a damaged turn is reported
/// and left out, and all others stay usable. Several processes may use one archive and take turns in one conversation.
public final class ConversationArchive: Sendable {
    let database: DatabaseQueue
    /// The vectors of conversations that were searched by meaning.
    let vectors = VectorMemory()
    /// Whether the archive was opened for reading only.
    public let isReadOnly: Bool

    /// Creates an archive in memory.
    public init() throws {
        do {
            (database, isReadOnly) = (try DatabaseQueue(), false)
            try Self.migrate(database)
        } catch {
            throw ConversationError.archive(.init(error))
        }
    }

    /// Opens the archive in a file. The file is created if it does not exist.
    ///
    /// - Parameter isReadOnly: Opens a file that must not or cannot be changed, such as one on a read-only disk. Its
    ///   conversations can be read but not continued.
    /// - Throws: ``ConversationError/archive(_:)`` if the file cannot be used or is not an archive.
    public convenience init(url: URL, isReadOnly: Bool = false) throws {
        try self.init(url: url, isReadOnly: isReadOnly, maximumPageCount: nil)
    }

    /// - Parameter maximumPageCount: The maximum size of the file in pages; tests use it to simulate a full disk.
    init(url: URL, isReadOnly: Bool = false, maximumPageCount: Int?) throws {
        do {
            database = isReadOnly ? try Self.openForReading(url) : try Self.open(url, maximumPageCount)
            self.isReadOnly = isReadOnly
        } catch {
            throw ConversationError.archive(.init(error))
        }
    }

    private static func open(_ url: URL, _ maximumPageCount: Int?) throws -> DatabaseQueue {
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        var configuration = Configuration()
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { database in
            try database.execute(sql: "PRAGMA journal_mode = WAL")
            // Committed data survives a power failure.
            try database.execute(sql: "PRAGMA synchronous = FULL")
            // A turn takes about nine pages of the write-ahead log. The log is checkpointed every few turns and
            // truncated to 128 KB, because a small disk may not have space for a log of 4 MB.
            try database.execute(sql: "PRAGMA wal_autocheckpoint = 24")
            try database.execute(sql: "PRAGMA journal_size_limit = 131072")
            if let maximumPageCount { try database.execute(sql: "PRAGMA max_page_count = \(maximumPageCount)") }
        }
        let database = try DatabaseQueue(path: url.path, configuration: configuration)
        try migrate(database)
        return database
    }

    private static func openForReading(_ url: URL) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        func open(_ path: String) throws -> DatabaseQueue {
            let database = try DatabaseQueue(path: path, configuration: configuration)
            // Without later migrations, turns are found by their words only.
            guard try database.read({ try migrator.completedMigrations($0).contains("2") }) else {
                throw ConversationError.archive(.init("it is not an archive, or it is too old: open it for writing once."))
            }
            return database
        }
        do {
            return try open(url.path)
        } catch let error as DatabaseError
            where [.SQLITE_CANTOPEN, .SQLITE_READONLY].contains(error.resultCode.primaryResultCode)
        {
            // SQLite cannot create the index of the write-ahead log on a read-only disk. A copy is opened instead,
            // which is deleted once it is open.
            guard FileManager.default.isReadableFile(atPath: url.path) else { throw error }
            let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }  // the system deletes what is left over
            let copy = folder.appending(path: "archive")
            try FileManager.default.copyItem(at: url, to: copy)
            if FileManager.default.fileExists(atPath: url.path + "-wal") {
                try FileManager.default.copyItem(atPath: url.path + "-wal", toPath: copy.path + "-wal")
            }
            return try open(copy.path)
        }
    }

    /// Columns and options of the full-text index.
    static let indexDefinition = "text, content = '', tokenize = 'porter unicode61 remove_diacritics 2'"

    private static func migrate(_ database: DatabaseQueue) throws { try migrator.migrate(database) }

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(
                sql: """
                    CREATE TABLE conversation (
                        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, created REAL NOT NULL,
                        title TEXT NOT NULL, context BLOB NOT NULL, revision INTEGER NOT NULL DEFAULT 0);
                    CREATE TABLE turn (
                        conversation TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE, number INTEGER NOT NULL,
                        prompt BLOB NOT NULL, entries BLOB, PRIMARY KEY (conversation, number));
                    CREATE TABLE compaction (
                        conversation TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE, record BLOB NOT NULL);
                    CREATE VIRTUAL TABLE turn_text USING fts5(\(indexDefinition));
                    """)
        }
        // Dates, checksums, lengths, and a second copy of the data that only the context has. Older rows have none of
        // these.
        migrator.registerMigration("2") { database in
            try database.execute(
                sql: """
                    ALTER TABLE turn ADD COLUMN asked REAL;
                    ALTER TABLE turn ADD COLUMN checksum INTEGER;
                    ALTER TABLE turn ADD COLUMN words INTEGER;
                    ALTER TABLE conversation ADD COLUMN context_checksum INTEGER;
                    ALTER TABLE conversation ADD COLUMN head BLOB;
                    ALTER TABLE conversation ADD COLUMN head_checksum INTEGER;
                    """)
        }
        migrator.registerMigration("3") { database in
            try database.execute(
                sql: """
                    CREATE TABLE turn_vector (
                        number INTEGER PRIMARY KEY AUTOINCREMENT,
                        conversation TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE, model TEXT NOT NULL,
                        turn INTEGER NOT NULL, vectors BLOB NOT NULL, UNIQUE (conversation, model, turn));
                    """)
        }
        return migrator
    }

    /// A conversation in the archive.
    public struct Summary: Sendable, Codable, Identifiable {
        public var id: String
        /// When the conversation began.
        public var created: Date
        /// The first 80 characters of its first prompt.
        public var title: String
        /// Number of answered turns.
        public var turnCount: Int
    }

    /// All conversations, newest first.
    public func conversations() throws -> [Summary] {
        try read { database in
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT id, created, title, (SELECT count(*) FROM turn WHERE conversation = id AND entries IS NOT NULL) AS turns
                    FROM conversation ORDER BY created DESC, id
                    """)
            return rows.compactMap { row in
                guard let id = row.value("id", as: String.self) else { return nil }
                return Summary(
                    id: id, created: Date(timeIntervalSince1970: row.value("created") ?? 0), title: row.value("title") ?? "",
                    turnCount: row.value("turns") ?? 0)
            }
        }
    }

    /// All turns of a conversation that can be read, oldest first, answered or not. Turns that cannot be read are left
    /// out; see ``damage(in:)``.
    public func turns(of conversation: String) throws -> [Turn] { try turns(of: conversation, from: .min).turns }

    /// The parts of a conversation that cannot be read. This reads all of its turns.
    public func damage(in conversation: String) throws -> [Damage] {
        let context = try context(of: conversation)?.damage.map { [$0] } ?? []
        return context + (try turns(of: conversation, from: .min).damage)
    }

    /// The compactions of a conversation, oldest first. Records that cannot be read are left out: they are for
    /// information only.
    public func compactions(of conversation: String) throws -> [Compaction] {
        try read { database in
            try Row.fetchAll(
                database, sql: "SELECT record FROM compaction WHERE conversation = ? ORDER BY rowid", arguments: [conversation]
            ).compactMap { row in
                try? row.value("record", as: Data.self).map { try JSONDecoder().decode(Compaction.self, from: $0) }  // see above
            }
        }
    }

    func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
        do { return try database.read(body) } catch let error as ConversationError { throw error } catch {
            throw ConversationError.archive(.init(error))
        }
    }

    func write<Value>(_ body: (Database) throws -> Value) throws -> Value {
        if isReadOnly { throw ConversationError.archive(.init("the archive was opened for reading only.")) }
        do { return try database.write(body) } catch let error as ConversationError { throw error } catch {
            throw ConversationError.archive(.init(error))
        }
    }
}
