public import Foundation
import FoundationModels
import GRDB

/// Conversations in an SQLite database: every turn, word for word, whether or not it is still in a context.
///
/// What was written stays when the process is killed. A turn is written before it is asked and again when it is answered, so
/// that at most an answer in flight is lost.
public final class ConversationArchive: Sendable {
    let database: DatabaseQueue

    /// An archive that lasts as long as the program.
    public init() throws {
        do {
            database = try DatabaseQueue()
            try Self.migrate(database)
        } catch {
            throw ConversationError.archive(.init(error))
        }
    }

    /// The archive in a file, which is made if it is missing.
    ///
    /// - Throws: ``ConversationError/archive(_:)`` if the file cannot be used, or is no archive.
    public convenience init(url: URL) throws { try self.init(url: url, greatestPageCount: nil) }

    /// - Parameter greatestPageCount: How large the file may get, in pages; tests fill a disk by it.
    init(url: URL, greatestPageCount: Int?) throws {
        do {
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            var configuration = Configuration()
            configuration.busyMode = .timeout(5)
            configuration.prepareDatabase { database in
                try database.execute(sql: "PRAGMA journal_mode = WAL")
                // Not even a power cut takes what was said.
                try database.execute(sql: "PRAGMA synchronous = FULL")
                if let greatestPageCount { try database.execute(sql: "PRAGMA max_page_count = \(greatestPageCount)") }
            }
            database = try DatabaseQueue(path: url.path, configuration: configuration)
            try Self.migrate(database)
        } catch {
            throw ConversationError.archive(.init(error))
        }
    }

    private static func migrate(_ database: DatabaseQueue) throws {
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
                    CREATE VIRTUAL TABLE turn_text USING fts5(
                        text, content = '', tokenize = 'porter unicode61 remove_diacritics 2');
                    """)
        }
        try migrator.migrate(database)
    }

    /// A conversation in the archive.
    public struct Summary: Sendable, Codable, Identifiable {
        public var id: String
        /// When it began.
        public var created: Date
        /// Its first prompt.
        public var title: String
        /// Turns that were answered.
        public var turnCount: Int
    }

    /// All conversations, the newest first.
    public func conversations() throws -> [Summary] {
        try read { database in
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT id, created, title, (SELECT count(*) FROM turn WHERE conversation = id AND entries IS NOT NULL) AS turns
                    FROM conversation ORDER BY created DESC, id
                    """)
            return rows.map {
                Summary(
                    id: $0["id"], created: Date(timeIntervalSince1970: $0["created"]), title: $0["title"], turnCount: $0["turns"])
            }
        }
    }

    /// All turns of a conversation, oldest first, answered or not.
    public func turns(of conversation: String) throws -> [Turn] {
        try read { try Self.turns($0, conversation, "1 ORDER BY number") }
    }

    /// What compactions of a conversation did, oldest first.
    public func compactions(of conversation: String) throws -> [Compaction] {
        try read { database in
            try Data.fetchAll(
                database, sql: "SELECT record FROM compaction WHERE conversation = ? ORDER BY rowid", arguments: [conversation]
            ).map { try JSONDecoder().decode(Compaction.self, from: $0) }
        }
    }

    // MARK: - For conversations

    /// What a conversation's context is made of, besides the turns since.
    struct Context: Codable {
        var instructions = ""
        var pinned: [String] = []
        /// The pinned facts that the instructions have; later ones stand at the end until the next compaction.
        var pinnedInHead = 0
        var carried = ""
        /// The turns that were kept by the last compaction, as it left them.
        var kept: [KeptTurn] = []
        /// All turns from this one on are in the context.
        var next = 0
    }

    struct KeptTurn: Codable {
        var number: Int
        var prompt: String
        var entries: Transcript
    }

    func context(of conversation: String) throws -> (Context, revision: Int)? {
        try read { database in
            let row = try Row.fetchOne(
                database, sql: "SELECT context, revision FROM conversation WHERE id = ?", arguments: [conversation])
            return try row.map { (try JSONDecoder().decode(Context.self, from: $0["context"] as Data), $0["revision"]) }
        }
    }

    func begin(_ conversation: String, _ context: Context) throws {
        try write { database in
            try database.execute(
                sql: "INSERT INTO conversation (id, created, title, context) VALUES (?, ?, '', ?)",
                arguments: [conversation, Date().timeIntervalSince1970, try JSONEncoder().encode(context)])
        }
    }

    /// Records what is about to be asked.
    func ask(_ prompt: String, number: Int, in conversation: String) throws {
        try write { database in
            try database.execute(
                sql: "INSERT INTO turn (conversation, number, prompt) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                arguments: [conversation, number, Data(prompt.utf8)])
            try Self.checkOwner(database)
            try database.execute(
                sql: "UPDATE conversation SET title = ? WHERE id = ? AND title = ''",
                arguments: [String(prompt.prefix(80)).replacing("\u{0}", with: " "), conversation])
        }
    }

    /// Records what came of a prompt.
    func answer(_ turn: Turn, in conversation: String) throws {
        let entries = try JSONEncoder().encode(Transcript(entries: turn.entries))
        try write { database in
            try database.execute(
                sql: """
                    INSERT INTO turn (conversation, number, prompt, entries) VALUES (?, ?, ?, ?)
                    ON CONFLICT (conversation, number) DO UPDATE SET entries = excluded.entries
                    WHERE turn.entries IS NULL AND turn.prompt = excluded.prompt
                    """,
                arguments: [conversation, turn.number, Data(turn.prompt.utf8), entries])
            try Self.checkOwner(database)
            // The index knows a turn by its conversation's number and its own: words are looked up within one conversation.
            if let first = try Self.firstRow(database, conversation) {
                try database.execute(
                    sql: "INSERT INTO turn_text (rowid, text) VALUES (?, ?)",
                    arguments: [first + Int64(turn.number), SearchText.indexed("\(turn.prompt)\n\(turn.response)")])
            }
        }
    }

    /// Row of a conversation's turn 0 in the index.
    static func firstRow(_ database: Database, _ conversation: String) throws -> Int64? {
        try Int64.fetchOne(
            database, sql: "SELECT number << 32 FROM conversation WHERE id = ?", arguments: [conversation])
    }

    /// After a turn was written: that it was not, because there is one of its number already, is somebody else's doing.
    private static func checkOwner(_ database: Database) throws {
        if database.changesCount == 0 {
            throw ConversationError.archive(.init("another program is going on with this conversation."))
        }
    }

    func forget(turn number: Int, in conversation: String) throws {
        try write { database in
            try database.execute(
                sql: "DELETE FROM turn WHERE conversation = ? AND number = ? AND entries IS NULL",
                arguments: [conversation, number])
        }
    }

    /// - Parameter revision: The one that the context was read with, or the last that was returned.
    func save(
        _ context: Context, _ compactions: [Compaction], revision: Int, in conversation: String
    ) throws -> Int {
        let data = try JSONEncoder().encode(context)
        let records = try compactions.map { try JSONEncoder().encode($0) }
        try write { database in
            try database.execute(
                sql: "UPDATE conversation SET context = ?, revision = revision + 1 WHERE id = ? AND revision = ?",
                arguments: [data, conversation, revision])
            try Self.checkOwner(database)
            for record in records {
                try database.execute(
                    sql: "INSERT INTO compaction (conversation, record) VALUES (?, ?)", arguments: [conversation, record])
            }
        }
        return revision + 1
    }

    /// The turns from a number on, answered or not.
    func turns(of conversation: String, from number: Int) throws -> [Turn] {
        try read { try Self.turns($0, conversation, "number >= ? ORDER BY number", [number]) }
    }

    static func turns(
        _ database: Database, _ conversation: String, _ condition: String, _ arguments: StatementArguments = []
    ) throws -> [Turn] {
        let rows = try Row.fetchAll(
            database, sql: "SELECT number, prompt, entries FROM turn WHERE conversation = ? AND \(condition)",
            arguments: [conversation] + arguments)
        return try rows.map { row in
            let data: Data? = row["entries"]
            let entries = try data.map { Array(try JSONDecoder().decode(Transcript.self, from: $0)) } ?? []
            let prompt: Data = row["prompt"]
            return Turn(number: row["number"], prompt: String(decoding: prompt, as: UTF8.self), entries: entries)
        }
    }

    func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
        do { return try database.read(body) } catch let error as ConversationError { throw error } catch {
            throw ConversationError.archive(.init(error))
        }
    }

    private func write(_ body: (Database) throws -> Void) throws {
        do { try database.write(body) } catch let error as ConversationError { throw error } catch {
            throw ConversationError.archive(.init(error))
        }
    }
}
