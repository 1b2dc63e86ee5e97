#if SQLite
import Foundation
import GRDB
import Logging
import Synchronization

/// An archive in an SQLite file, or in memory.
final class SQLiteArchiveStore: ArchiveStore {
    let database: DatabaseQueue
    let isReadOnly: Bool
    /// Whether a repair failed, or did not help.
    private let cannotRepair = Mutex(false)

    var file: URL? { database.path == ":memory:" ? nil : URL(filePath: database.path) }

    /// Creates an archive in memory.
    init() throws {
        do {
            (database, isReadOnly) = (try DatabaseQueue(), false)
            try Self.migrator.migrate(database)
        } catch { throw ConversationError(archive: error) }
    }

    /// - Parameter maximumPageCount: The maximum size of the file in pages; tests use it to simulate a full disk.
    init(url: URL, isReadOnly: Bool, maximumPageCount: Int?) throws {
        do {
            database = isReadOnly ? try Self.openForReading(url) : try Self.open(url, maximumPageCount)
            self.isReadOnly = isReadOnly
        } catch { throw ConversationError(archive: error) }
    }

    private static func open(_ url: URL, _ maximumPageCount: Int?) throws -> DatabaseQueue {
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        // Conversations are private: other users of the machine cannot read a new file. The files beside it get the same mode.
        let descriptor = Glibc.open(url.path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
        if descriptor >= 0 { close(descriptor) }
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
        // Another program that creates or migrates the file at the same moment makes this fail: what it has done is found then.
        for _ in 1..<maximumOpenings {
            do {
                return try openMigrated(url, configuration)
            } catch let error as DatabaseError where isContention(error) {
                usleep(20_000)
            }
        }
        return try openMigrated(url, configuration)
    }

    private static let maximumOpenings = 50

    private static func openMigrated(_ url: URL, _ configuration: Configuration) throws -> DatabaseQueue {
        let database = try DatabaseQueue(path: url.path, configuration: configuration)
        try migrator.migrate(database)
        return database
    }

    /// Whether a migration may have failed because another program did it.
    private static func isContention(_ error: DatabaseError) -> Bool {
        switch error.resultCode {
        case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_CONSTRAINT: true
        case .SQLITE_ERROR: ["already exists", "duplicate column"].contains { (error.message ?? "").contains($0) }
        default: false
        }
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
            // A file with a write-ahead log needs an index of the log beside it, which SQLite cannot create on a read-only disk. The
            // only way without one, `immutable=1`, ignores the newest turns in the log, and returns wrong results if another machine
            // changes the file. A copy is opened instead, which only this user can read, and which is deleted once it is open.
            guard FileManager.default.isReadableFile(atPath: url.path) else { throw error }
            let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            defer { try? FileManager.default.removeItem(at: folder) }  // the system deletes what is left over
            let copy = folder.appending(path: "archive")
            try FileManager.default.copyItem(at: url, to: copy)
            if FileManager.default.fileExists(atPath: url.path + "-wal") {
                try FileManager.default.copyItem(atPath: url.path + "-wal", toPath: copy.path + "-wal")
            }
            return try open(copy.path)
        }
    }

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
        // The checksum of the text by which the index finds a turn. Rows of older programs have none.
        migrator.registerMigration("4") { database in
            try database.execute(sql: "ALTER TABLE turn ADD COLUMN text_checksum INTEGER")
        }
        return migrator
    }

    func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
        try repairing { try database.read(body) }
    }

    func write<Value>(_ body: (Database) throws -> Value) throws -> Value {
        try repairing { try database.write(body) }
    }

    /// Reads outside a transaction, which fails as a whole if one of its statements meets a damaged page.
    private func readEach<Value>(_ body: (Database) throws -> Value) throws -> Value {
        do { return try database.unsafeRead(body) } catch { throw ConversationError(archive: error) }
    }

    /// Repeats an operation that meets a damaged page after a repair, which another program may have done meanwhile.
    private func repairing<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch let error as DatabaseError
            where error.resultCode == .SQLITE_CORRUPT && error.extendedResultCode != .SQLITE_CORRUPT_VTAB && !isReadOnly
            && !cannotRepair.withLock({ $0 })
        {
            do {
                if try repair() {
                    Logger.contextKit.warning("Damaged parts of the archive \(database.path) were replaced.")
                    try database.write(Self.rebuildIndex)
                }
            } catch let failure as DatabaseError {
                // A repair reads the whole archive: one that failed is not tried for each operation.
                let isTemporary = failure.resultCode == .SQLITE_BUSY || failure.resultCode == .SQLITE_FULL
                if !isTemporary { cannotRepair.withLock { $0 = true } }
                throw ConversationError(archive: error)
            }
            do { return try body() } catch {
                if (error as? DatabaseError)?.resultCode == .SQLITE_CORRUPT { cannotRepair.withLock { $0 = true } }
                throw ConversationError(archive: error)
            }
        } catch { throw ConversationError(archive: error) }
    }

    // MARK: - Conversations

    func conversations() throws -> [ConversationArchive.Summary] {
        func summaries(_ database: Database, answered: String) throws -> [ConversationArchive.Summary] {
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT id, created, title, (SELECT count(*) FROM turn WHERE conversation = id \(answered)) AS turns
                    FROM conversation ORDER BY created DESC, id
                    """)
            return rows.compactMap { row in
                guard let id = row.value("id", as: String.self) else { return nil }
                return ConversationArchive.Summary(
                    id: id, created: Date(timeIntervalSince1970: row.value("created") ?? 0), title: row.value("title") ?? "",
                    turnCount: row.value("turns") ?? 0)
            }
        }
        do {
            return try read { try summaries($0, answered: "AND entries IS NOT NULL") }
        } catch ConversationError.archive(let failure) where failure.isDamage {
            // The index has all turns, also those on damaged pages, but not whether they were answered.
            return try readEach { try summaries($0, answered: "") }
        }
    }

    func number(of conversation: String) throws -> Int64? {
        try read { try Int64.fetchOne($0, sql: "SELECT number FROM conversation WHERE id = ?", arguments: [conversation]) }
    }

    func context(of conversation: String) throws -> ContextRow? {
        try read { database in
            try Row.fetchOne(
                database,
                sql: "SELECT context, context_checksum, head, head_checksum, revision FROM conversation WHERE id = ?",
                arguments: [conversation]
            ).map { row in
                ContextRow(
                    context: row.value("context"), contextChecksum: row.value("context_checksum"), head: row.value("head"),
                    headChecksum: row.value("head_checksum"), revision: row.value("revision"))
            }
        }
    }

    func state(of conversation: String) throws -> (revision: Int64?, lastTurn: Int?)? {
        try read { database in
            let row = try Row.fetchOne(
                database, sql: "SELECT revision FROM conversation WHERE id = ?", arguments: [conversation])
            guard let row else { return nil }
            return (row.value("revision"), try Self.lastTurn(database, conversation))
        }
    }

    private static func lastTurn(_ database: Database, _ conversation: String) throws -> Int? {
        try Int.fetchOne(
            database, sql: "SELECT max(number) FROM turn WHERE conversation = ? AND number BETWEEN 0 AND ?",
            arguments: [conversation, ConversationArchive.maximumNumber])
    }

    func repairRevision(of conversation: String) throws {
        try write { database in
            try database.execute(
                sql: """
                    UPDATE conversation SET revision = 0
                    WHERE id = ? AND (typeof(revision) <> 'integer' OR revision NOT BETWEEN 0 AND ?)
                    """, arguments: [conversation, ConversationArchive.maximumRevision])
        }
    }

    func begin(_ conversation: String, created: Date, _ context: ContextRow) throws -> Bool {
        try write { database in
            try database.execute(
                sql: """
                    INSERT INTO conversation (id, created, title, context, context_checksum, head, head_checksum)
                    VALUES (?, ?, '', ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
                    """,
                arguments: [
                    conversation, created.timeIntervalSince1970, context.context, context.contextChecksum, context.head,
                    context.headChecksum,
                ])
            return database.changesCount > 0
        }
    }

    func save(_ context: ContextRow, compactions: [Data], revision: Int, in conversation: String) throws -> Bool {
        try write { database in
            try database.execute(
                sql: """
                    UPDATE conversation SET context = ?, context_checksum = ?, head = ?, head_checksum = ?, revision = revision + 1
                    WHERE id = ? AND revision = ?
                    """,
                arguments: [
                    context.context, context.contextChecksum, context.head, context.headChecksum, conversation, revision,
                ])
            guard database.changesCount > 0 else { return false }
            for record in compactions {
                try database.execute(
                    sql: "INSERT INTO compaction (conversation, record) VALUES (?, ?)", arguments: [conversation, record])
            }
            return true
        }
    }

    func compactions(of conversation: String) throws -> [Data] {
        try read { database in
            try Row.fetchAll(
                database, sql: "SELECT record FROM compaction WHERE conversation = ? ORDER BY rowid", arguments: [conversation]
            ).compactMap { $0.value("record") }
        }
    }

    func remove(_ conversation: String) throws {
        try repairing {
            try database.writeWithoutTransaction { database in
                // What is removed is overwritten in the file. Tables that a repair has replaced refer to the conversation too: a
                // deletion that continues in them fails at their damaged pages.
                try database.execute(sql: "PRAGMA secure_delete = ON; PRAGMA foreign_keys = OFF")
                // These are flags in memory: nothing is read or written that could fail.
                defer { try? database.execute(sql: "PRAGMA secure_delete = OFF; PRAGMA foreign_keys = ON") }
                var rows: [String: [Int64]] = [:]
                try database.inTransaction(.immediate) {
                    let isIndexed = try !Self.removeFromIndex(conversation, database)
                    for table in Self.tables {
                        let condition = "FROM \(table) WHERE \(Self.conversationColumn(of: table)) = ?"
                        rows[table] = try Int64.fetchAll(database, sql: "SELECT rowid \(condition)", arguments: [conversation])
                        try database.execute(sql: "DELETE \(condition)", arguments: [conversation])
                    }
                    if isIndexed { try Self.rebuildIndex(database) }
                    return .commit
                }
                try Self.removeDamaged(conversation, rows, database)
                // The conversation is gone. While others write, what is left of it in the index stays until the next removal.
                do { try Self.purgeIndex(database) } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
                    Logger.contextKit.info("Words of a removed conversation stay in the index until the next removal: \(error)")
                }
            }
        }
        // The write-ahead log still has the old pages; another program that reads may keep them a little longer.
        do { try database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") } } catch {
            Logger.contextKit.warning("Texts of a removed conversation stay in the write-ahead log for now: \(error)")
        }
    }

    // MARK: - Turns

    func addPrompt(_ turn: TurnRow, title: String, in conversation: String) throws -> Bool {
        try write { database in
            try database.execute(
                sql: """
                    INSERT INTO turn (conversation, number, prompt, asked, checksum) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
                    """,
                arguments: [conversation, turn.number, turn.prompt, turn.date, turn.checksum])
            guard database.changesCount > 0 else { return false }
            try database.execute(
                sql: "UPDATE conversation SET title = ? WHERE id = ? AND title = ''", arguments: [title, conversation])
            return true
        }
    }

    func addAnswer(_ turn: TurnRow, words: Int, text: String, in conversation: String) throws -> Bool {
        do {
            return try addAnswer(turn, words: words, text: text, in: conversation, isIndexed: true)
        } catch ConversationError.archive(let failure) where failure.isDamage {
            // The turn matters more than the index: a damaged index must not prevent it from being written.
            let isAdded = try addAnswer(turn, words: words, text: text, in: conversation, isIndexed: false)
            do { try rebuildIndex() } catch {
                // The next search tries again and reports the error.
                Logger.contextKit.warning("The index of an archive is damaged and cannot be rebuilt: \(error)")
            }
            return isAdded
        }
    }

    private func addAnswer(
        _ turn: TurnRow, words: Int, text: String, in conversation: String, isIndexed: Bool
    ) throws -> Bool {
        try write { database in
            // If it is not known whether an answer was committed, it is written again: the same answer is not another one.
            try database.execute(
                sql: """
                    INSERT INTO turn (conversation, number, prompt, entries, asked, checksum, words, text_checksum)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT (conversation, number) DO UPDATE SET entries = excluded.entries, checksum = excluded.checksum,
                    words = excluded.words, text_checksum = coalesce(turn.text_checksum, excluded.text_checksum)
                    WHERE turn.prompt = excluded.prompt AND (turn.entries IS NULL OR turn.entries = excluded.entries)
                    """,
                arguments: [
                    conversation, turn.number, turn.prompt, turn.entries, turn.date, turn.checksum, words,
                    isIndexed ? Self.checksum(text) : nil,
                ])
            guard database.changesCount > 0 else { return false }
            if isIndexed, let number = turn.number, let first = try Self.firstRow(database, conversation) {
                try Self.index(text, turn: number, behind: first, database)
            }
            return true
        }
    }

    func removePrompt(turn number: Int, in conversation: String) throws {
        try write { database in
            try database.execute(
                sql: "DELETE FROM turn WHERE conversation = ? AND number = ? AND entries IS NULL",
                arguments: [conversation, number])
        }
    }

    func turns(_ selection: TurnSelection, of conversation: String) throws -> (rows: [TurnRow], last: Int?) {
        let condition =
            switch selection {
            case .from(let number): "number >= \(number)"
            case .numbers(let numbers): "number IN (\(numbers.map(String.init).joined(separator: ",")))"
            }
        do {
            return try read { database in
                (try Self.turns(database, conversation, condition), try Self.lastTurn(database, conversation))
            }
        } catch ConversationError.archive(let failure) where failure.isDamage {
            return try readEach { database in
                (try Self.eachTurn(database, conversation, condition), try Self.lastTurn(database, conversation))
            }
        }
    }

    private static let turnColumns = "number, prompt, entries, asked, checksum"

    /// The turns that match an SQL condition on their numbers.
    static func turns(_ database: Database, _ conversation: String, _ condition: String) throws -> [TurnRow] {
        try Row.fetchAll(
            database, sql: "SELECT \(turnColumns) FROM turn WHERE conversation = ? AND \(condition) ORDER BY number",
            arguments: [conversation]
        ).map(turn)
    }

    /// The same turns, each read alone, so that a damaged page affects only its turns. The numbers come from a separate index.
    private static func eachTurn(_ database: Database, _ conversation: String, _ condition: String) throws -> [TurnRow] {
        let numbers = try Row.fetchAll(
            database, sql: "SELECT number FROM turn WHERE conversation = ? AND \(condition) ORDER BY number",
            arguments: [conversation]
        ).compactMap { $0.value("number", as: Int.self) }
        return try numbers.flatMap { number in
            do {
                return try turns(database, conversation, "number = \(number)")
            } catch let error as DatabaseError {
                return [
                    TurnRow(
                        number: number, prompt: nil, entries: nil, date: nil, checksum: nil,
                        problem: error.message ?? "\(error.resultCode)")
                ]
            }
        }
    }

    private static func turn(_ row: Row) -> TurnRow {
        TurnRow(
            number: row.value("number"), prompt: row.value("prompt"), entries: row.value("entries"), date: row.value("asked"),
            checksum: row.value("checksum"))
    }
}

extension Row {
    /// A column's value; nil for NULL and for a value of another type, which a damaged file may contain.
    func value<Value: DatabaseValueConvertible>(_ column: String, as type: Value.Type = Value.self) -> Value? {
        Value.fromDatabaseValue(self[column])
    }
}
#endif
