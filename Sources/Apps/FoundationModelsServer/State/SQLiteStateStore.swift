#if SQLite
internal import Foundation
internal import GRDB
internal import JSON

/// Responses and conversations in a file of SQLite, or in memory.
final class SQLiteStateStore: StateStore {
    private let database: any DatabaseWriter

    /// - Parameter file: nil for memory.
    init(_ file: URL?) throws {
        var configuration = Configuration()
        configuration.busyMode = .timeout(10)
        if let file {
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            // Prompts are nobody else's business. SQLite gives its other files the mode of this one.
            if !FileManager.default.fileExists(atPath: file.path) {
                _ = FileManager.default.createFile(atPath: file.path, contents: nil, attributes: [.posixPermissions: 0o600])
            }
            database = try DatabasePool(path: file.path, configuration: configuration)
        } else {
            database = try DatabaseQueue(configuration: configuration)
        }
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(
                sql: """
                    CREATE TABLE response (
                        id TEXT PRIMARY KEY, owner TEXT NOT NULL, created INTEGER NOT NULL, previous TEXT,
                        object BLOB NOT NULL, input BLOB NOT NULL);
                    CREATE TABLE conversation (
                        id TEXT PRIMARY KEY, owner TEXT NOT NULL, created INTEGER NOT NULL, next INTEGER NOT NULL DEFAULT 0,
                        metadata BLOB NOT NULL);
                    CREATE TABLE item (
                        conversation TEXT NOT NULL REFERENCES conversation ON DELETE CASCADE, number INTEGER NOT NULL,
                        id TEXT NOT NULL, json BLOB NOT NULL, PRIMARY KEY (conversation, number));
                    CREATE UNIQUE INDEX item_id ON item (conversation, id);
                    """)
        }
        migrator.registerMigration("2") { database in
            // The time until which a server writes it, in seconds since 1970; 0 if none does.
            try database.execute(
                sql: """
                    ALTER TABLE response ADD COLUMN lease INTEGER NOT NULL DEFAULT 0;
                    CREATE INDEX response_previous ON response (previous);
                    """)
        }
        migrator.registerMigration("3") { database in
            try database.execute(
                sql: """
                    CREATE TABLE console (
                        id TEXT NOT NULL, owner TEXT NOT NULL, title TEXT NOT NULL, found TEXT NOT NULL, tree BLOB NOT NULL,
                        messages INTEGER NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL, revision INTEGER NOT NULL,
                        PRIMARY KEY (owner, id));
                    CREATE INDEX console_updated ON console (owner, updated);
                    """)
        }
        try migrator.migrate(database)
    }

    private static func data(_ value: JSONValue) -> Data { Data(value.bytes) }

    private static func value(_ data: Data) throws -> JSONValue { try JSONParser.parse(data) }

    // MARK: - Responses

    func save(_ response: StoredResponse) async throws {
        try await database.write { database in
            try database.execute(
                sql: """
                    INSERT INTO response (id, owner, created, previous, object, input, lease) VALUES (?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT (id) DO UPDATE SET object = excluded.object, lease = excluded.lease
                    """,
                arguments: [
                    response.id, response.owner, response.created, response.previous, Self.data(response.object),
                    Self.data(.array(response.input)), response.lease.map { Self.now + $0 } ?? 0,
                ])
        }
    }

    func response(_ id: String, owner: String) async throws -> StoredResponse? {
        try await database.read { database in
            guard
                let row = try Row.fetchOne(
                    database, sql: "SELECT created, previous, object, input, lease FROM response WHERE id = ? AND owner = ?",
                    arguments: [id, owner]),
                case .array(let input) = try Self.value(row["input"])
            else { return nil }
            return StoredResponse(
                id: id, owner: owner, created: row["created"], previous: row["previous"], object: try Self.value(row["object"]),
                input: input, lease: row["lease"] > 0 ? row["lease"] - Self.now : nil)
        }
    }

    func extendLease(of id: String, by seconds: Int) async throws -> Bool {
        try await database.write { database in
            try database.execute(
                sql: "UPDATE response SET lease = ? WHERE id = ? AND lease > 0", arguments: [Self.now + seconds, id])
            return database.changesCount > 0
        }
    }

    func finish(_ id: String, as object: JSONValue) async throws -> Bool {
        try await database.write { database in
            try database.execute(
                sql: "UPDATE response SET object = ?, lease = 0 WHERE id = ? AND lease > 0", arguments: [Self.data(object), id])
            return database.changesCount > 0
        }
    }

    /// All users of a file have one clock.
    private static var now: Int { Int(Date().timeIntervalSince1970) }

    func deleteResponse(_ id: String, owner: String) async throws -> Bool {
        try await database.write { database in
            try database.execute(sql: "DELETE FROM response WHERE id = ? AND owner = ?", arguments: [id, owner])
            return database.changesCount > 0
        }
    }

    func deleteResponses(olderThan seconds: Int, beyond count: Int) async throws {
        try await database.write { database in
            try database.execute(
                sql: """
                    DELETE FROM response WHERE lease = 0 AND NOT EXISTS (
                        SELECT 1 FROM response AS next WHERE next.previous = response.id)
                    AND (created < ? OR id IN (SELECT id FROM (
                        SELECT id, row_number() OVER (PARTITION BY owner ORDER BY created DESC, rowid DESC) AS place FROM response)
                        WHERE place > ?))
                    """,
                arguments: [Self.now - seconds, count])
        }
    }

    // MARK: - Conversations

    func save(_ conversation: StoredConversation) async throws {
        try await database.write { database in
            try database.execute(
                sql: """
                    INSERT INTO conversation (id, owner, created, metadata) VALUES (?, ?, ?, ?)
                    ON CONFLICT (id) DO UPDATE SET metadata = excluded.metadata
                    """,
                arguments: [conversation.id, conversation.owner, conversation.created, Self.data(conversation.metadata)])
        }
    }

    func conversation(_ id: String, owner: String) async throws -> StoredConversation? {
        try await database.read { database in
            let row = try Row.fetchOne(
                database, sql: "SELECT created, metadata FROM conversation WHERE id = ? AND owner = ?", arguments: [id, owner])
            return try row.map { row in
                StoredConversation(id: id, owner: owner, created: row["created"], metadata: try Self.value(row["metadata"]))
            }
        }
    }

    func deleteConversation(_ id: String, owner: String) async throws -> Bool {
        try await database.write { database in
            try database.execute(sql: "DELETE FROM conversation WHERE id = ? AND owner = ?", arguments: [id, owner])
            return database.changesCount > 0
        }
    }

    func items(of conversation: String) async throws -> (items: [StoredItem], next: Int) {
        try await database.read { database in
            let next =
                try Int.fetchOne(database, sql: "SELECT next FROM conversation WHERE id = ?", arguments: [conversation]) ?? 0
            let rows = try Row.fetchAll(
                database, sql: "SELECT id, json FROM item WHERE conversation = ? ORDER BY number", arguments: [conversation])
            return (try rows.map { StoredItem(id: $0["id"], json: try Self.value($0["json"])) }, next)
        }
    }

    func append(_ items: [StoredItem], to conversation: String, expected: Int?) async throws {
        try await database.write { database in
            let next = try Int.fetchOne(database, sql: "SELECT next FROM conversation WHERE id = ?", arguments: [conversation])
            guard let next, expected ?? next == next else { throw StateConflict() }
            for (offset, item) in items.enumerated() {
                try database.execute(
                    sql: "INSERT OR IGNORE INTO item (conversation, number, id, json) VALUES (?, ?, ?, ?)",
                    arguments: [conversation, next + offset, item.id, Self.data(item.json)])
            }
            try database.execute(
                sql: "UPDATE conversation SET next = ? WHERE id = ?", arguments: [next + items.count, conversation])
        }
    }

    func deleteItem(_ id: String, of conversation: String) async throws -> Bool {
        try await database.write { database in
            try database.execute(sql: "DELETE FROM item WHERE conversation = ? AND id = ?", arguments: [conversation, id])
            return database.changesCount > 0
        }
    }

    // MARK: - The console

    func save(_ conversation: ConsoleConversation, expected: Int?) async throws -> Int {
        try await database.write { database in
            let known = try Int.fetchOne(
                database, sql: "SELECT revision FROM console WHERE owner = ? AND id = ?",
                arguments: [conversation.owner, conversation.id])
            // A conversation that is gone is written again: the page has all of it.
            if let known, known != expected { throw StateConflict() }
            let revision = (known ?? 0) + 1
            try database.execute(
                sql: """
                    INSERT INTO console (id, owner, title, found, tree, messages, created, updated, revision)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT (owner, id) DO UPDATE SET title = excluded.title, found = excluded.found, tree = excluded.tree,
                        messages = excluded.messages, updated = excluded.updated, revision = excluded.revision
                    """,
                arguments: [
                    conversation.id, conversation.owner, conversation.title, conversation.found, Self.data(conversation.tree),
                    conversation.messages, conversation.created, conversation.updated, revision,
                ])
            return revision
        }
    }

    func consoleConversation(_ id: String, owner: String) async throws -> ConsoleConversation? {
        try await database.read { database in
            let row = try Row.fetchOne(
                database, sql: "SELECT title, tree, messages, created, updated, revision FROM console WHERE owner = ? AND id = ?",
                arguments: [owner, id])
            return try row.map { row in
                ConsoleConversation(
                    id: id, owner: owner, title: row["title"], text: "", tree: try Self.value(row["tree"]),
                    messages: row["messages"], created: row["created"], updated: row["updated"], revision: row["revision"])
            }
        }
    }

    func consoleConversations(owner: String, containing words: [String]) async throws -> [ConsoleConversation.Summary] {
        try await database.read { database in
            let conditions = words.map { _ in "AND instr(found, ?) > 0" }.joined(separator: " ")
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT id, title, messages, created, updated FROM console WHERE owner = ? \(conditions)
                    ORDER BY updated DESC, rowid DESC LIMIT \(Self.maximumListed)
                    """, arguments: StatementArguments([owner] + words))
            return rows.map {
                .init(id: $0["id"], title: $0["title"], created: $0["created"], updated: $0["updated"], messages: $0["messages"])
            }
        }
    }

    func deleteConsoleConversation(_ id: String, owner: String) async throws -> Bool {
        try await database.write { database in
            try database.execute(sql: "DELETE FROM console WHERE owner = ? AND id = ?", arguments: [owner, id])
            return database.changesCount > 0
        }
    }
}
#endif
