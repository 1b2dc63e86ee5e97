#if PostgreSQL
internal import Foundation
internal import FoundationModelsPostgreSQL
internal import JSON

/// Responses and conversations in a schema of a PostgreSQL database, which several servers share.
final class PostgreSQLStateStore: StateStore {
    private let server: PostgreSQLServer

    private static let tables = """
        CREATE TABLE response (
            id text PRIMARY KEY, owner text NOT NULL, created bigint NOT NULL, previous text, object bytea NOT NULL,
            input bytea NOT NULL);
        CREATE TABLE conversation (
            id text PRIMARY KEY, owner text NOT NULL, created bigint NOT NULL, next bigint NOT NULL DEFAULT 0,
            metadata bytea NOT NULL);
        CREATE TABLE item (
            conversation text NOT NULL REFERENCES conversation (id) ON DELETE CASCADE, number bigint NOT NULL,
            id text NOT NULL, json bytea NOT NULL, PRIMARY KEY (conversation, number), UNIQUE (conversation, id));
        """

    /// The time until which a server writes a response, in seconds since 1970 by the clock of the database; 0 if none does.
    private static let leases = """
        ALTER TABLE response ADD COLUMN lease bigint NOT NULL DEFAULT 0;
        CREATE INDEX response_previous ON response (previous);
        """
    private static let console = """
        CREATE TABLE console (
            id text NOT NULL, owner text NOT NULL, title bytea NOT NULL, found bytea NOT NULL, tree bytea NOT NULL,
            messages bigint NOT NULL, created bigint NOT NULL, updated bigint NOT NULL, revision bigint NOT NULL,
            PRIMARY KEY (owner, id));
        CREATE INDEX console_updated ON console (owner, updated);
        """
    private static let now = "extract(epoch FROM now())::bigint"

    /// - Parameter settings: as libpq documents.
    /// - Throws: an error that says what is wrong with the server.
    init(_ settings: String) throws {
        do {
            server = try PostgreSQLServer(
                settings, schema: "fm_server", kind: "server", isReadOnly: false, usesVectors: false, statementTimeout: "30s",
                migrations: [Self.tables, Self.leases, Self.console])
        } catch let error as PostgreSQLError { throw Unusable(errorDescription: error.reason) }
    }

    struct Unusable: LocalizedError { var errorDescription: String? }

    // Values are stored as bytes: texts may have the character U+0000.
    private static func data(_ value: JSONValue) -> PostgreSQLConnection.Parameter { .bytes(Data(value.bytes)) }

    private static func value(_ rows: PostgreSQLRows, _ row: Int, _ column: Int) throws -> JSONValue {
        try JSONParser.parse(try rows.bytes(row, column) ?? Data("null".utf8))
    }

    private static func text(_ text: String?) -> PostgreSQLConnection.Parameter { text.map { .text($0) } ?? .null }

    // MARK: - Responses

    func save(_ response: StoredResponse) async throws {
        try await server.background(.write) { connection in
            _ = try connection.query(
                """
                INSERT INTO response (id, owner, created, previous, object, input, lease)
                VALUES ($1, $2, $3, $4, $5, $6, COALESCE(\(Self.now) + $7, 0))
                ON CONFLICT (id) DO UPDATE SET object = excluded.object, lease = excluded.lease
                """,
                [
                    .text(response.id), .text(response.owner), .integer(Int64(response.created)), Self.text(response.previous),
                    Self.data(response.object), Self.data(.array(response.input)),
                    response.lease.map { .integer(Int64($0)) } ?? .null,
                ])
        }
    }

    func response(_ id: String, owner: String) async throws -> StoredResponse? {
        if id.utf8.contains(0) { return nil }
        return try await server.background(.read) { connection in
            let rows = try connection.query(
                """
                SELECT created, previous, object, input, CASE WHEN lease > 0 THEN lease - \(Self.now) END
                FROM response WHERE id = $1 AND owner = $2
                """,
                [.text(id), .text(owner)])
            guard rows.count > 0, case .array(let input) = try Self.value(rows, 0, 3) else { return nil }
            return StoredResponse(
                id: id, owner: owner, created: Int(rows.integer(0, 0) ?? 0), previous: rows.text(0, 1),
                object: try Self.value(rows, 0, 2), input: input, lease: rows.integer(0, 4).map { Int($0) })
        }
    }

    func extendLease(of id: String, by seconds: Int) async throws -> Bool {
        try await server.background(.write) { connection in
            try connection.query(
                "UPDATE response SET lease = \(Self.now) + $1 WHERE id = $2 AND lease > 0", [.integer(Int64(seconds)), .text(id)]
            ).changed > 0
        }
    }

    func finish(_ id: String, as object: JSONValue) async throws -> Bool {
        try await server.background(.write) { connection in
            try connection.query(
                "UPDATE response SET object = $1, lease = 0 WHERE id = $2 AND lease > 0", [Self.data(object), .text(id)]
            ).changed > 0
        }
    }

    func deleteResponse(_ id: String, owner: String) async throws -> Bool {
        if id.utf8.contains(0) { return false }
        return try await server.background(.write) { connection in
            try connection.query("DELETE FROM response WHERE id = $1 AND owner = $2", [.text(id), .text(owner)]).changed > 0
        }
    }

    func deleteResponses(olderThan seconds: Int, beyond count: Int) async throws {
        try await server.background(.write) { connection in
            _ = try connection.query(
                """
                DELETE FROM response WHERE lease = 0 AND NOT EXISTS (
                    SELECT 1 FROM response AS next WHERE next.previous = response.id)
                AND (created < \(Self.now) - $1 OR id IN (SELECT id FROM (
                    SELECT id, row_number() OVER (PARTITION BY owner ORDER BY created DESC, id) AS place FROM response) AS placed
                    WHERE place > $2))
                """,
                [.integer(Int64(seconds)), .integer(Int64(count))])
        }
    }

    // MARK: - Conversations

    func save(_ conversation: StoredConversation) async throws {
        try await server.background(.write) { connection in
            _ = try connection.query(
                """
                INSERT INTO conversation (id, owner, created, metadata) VALUES ($1, $2, $3, $4)
                ON CONFLICT (id) DO UPDATE SET metadata = excluded.metadata
                """,
                [
                    .text(conversation.id), .text(conversation.owner), .integer(Int64(conversation.created)),
                    Self.data(conversation.metadata),
                ])
        }
    }

    func conversation(_ id: String, owner: String) async throws -> StoredConversation? {
        if id.utf8.contains(0) { return nil }
        return try await server.background(.read) { connection in
            let rows = try connection.query(
                "SELECT created, metadata FROM conversation WHERE id = $1 AND owner = $2", [.text(id), .text(owner)])
            guard rows.count > 0 else { return nil }
            return StoredConversation(
                id: id, owner: owner, created: Int(rows.integer(0, 0) ?? 0), metadata: try Self.value(rows, 0, 1))
        }
    }

    func deleteConversation(_ id: String, owner: String) async throws -> Bool {
        if id.utf8.contains(0) { return false }
        return try await server.background(.write) { connection in
            try connection.query("DELETE FROM conversation WHERE id = $1 AND owner = $2", [.text(id), .text(owner)]).changed > 0
        }
    }

    func items(of conversation: String) async throws -> (items: [StoredItem], next: Int) {
        try await server.background(.read) { connection in
            let next = try connection.query("SELECT next FROM conversation WHERE id = $1", [.text(conversation)])
            let rows = try connection.query(
                "SELECT id, json FROM item WHERE conversation = $1 ORDER BY number", [.text(conversation)])
            let items = try (0..<rows.count).map { row in
                StoredItem(id: rows.text(row, 0) ?? "", json: try Self.value(rows, row, 1))
            }
            return (items, next.count > 0 ? Int(next.integer(0, 0) ?? 0) : 0)
        }
    }

    func append(_ items: [StoredItem], to conversation: String, expected: Int?) async throws {
        try await server.background(.write) { connection in
            let rows = try connection.query("SELECT next FROM conversation WHERE id = $1 FOR UPDATE", [.text(conversation)])
            guard rows.count > 0, let next = rows.integer(0, 0), Int64(expected ?? Int(next)) == next else {
                throw StateConflict()
            }
            for (offset, item) in items.enumerated() {
                try connection.query(
                    "INSERT INTO item (conversation, number, id, json) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                    [.text(conversation), .integer(next + Int64(offset)), .text(item.id), Self.data(item.json)])
            }
            try connection.query(
                "UPDATE conversation SET next = $1 WHERE id = $2", [.integer(next + Int64(items.count)), .text(conversation)])
        }
    }

    func deleteItem(_ id: String, of conversation: String) async throws -> Bool {
        if id.utf8.contains(0) { return false }
        return try await server.background(.write) { connection in
            try connection.query("DELETE FROM item WHERE conversation = $1 AND id = $2", [.text(conversation), .text(id)]).changed
                > 0
        }
    }

    // MARK: - The console

    func save(_ conversation: ConsoleConversation, expected: Int?) async throws -> Int {
        try await server.background(.write) { connection in
            let rows = try connection.query(
                "SELECT revision FROM console WHERE owner = $1 AND id = $2 FOR UPDATE",
                [.text(conversation.owner), .text(conversation.id)])
            let known = rows.count > 0 ? Int(rows.integer(0, 0) ?? 0) : nil
            if let known, known != expected { throw StateConflict() }
            let revision = (known ?? 0) + 1
            _ = try connection.query(
                """
                INSERT INTO console (id, owner, title, found, tree, messages, created, updated, revision)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                ON CONFLICT (owner, id) DO UPDATE SET title = excluded.title, found = excluded.found, tree = excluded.tree,
                    messages = excluded.messages, updated = excluded.updated, revision = excluded.revision
                """,
                [
                    .text(conversation.id), .text(conversation.owner), .bytes(Data(conversation.title.utf8)),
                    .bytes(Data(conversation.found.utf8)), Self.data(conversation.tree), .integer(Int64(conversation.messages)),
                    .integer(Int64(conversation.created)), .integer(Int64(conversation.updated)), .integer(Int64(revision)),
                ])
            return revision
        }
    }

    private static func string(_ rows: PostgreSQLRows, _ row: Int, _ column: Int) throws -> String {
        String(decoding: try rows.bytes(row, column) ?? Data(), as: UTF8.self)
    }

    func consoleConversation(_ id: String, owner: String) async throws -> ConsoleConversation? {
        if id.utf8.contains(0) { return nil }
        return try await server.background(.read) { connection in
            let rows = try connection.query(
                "SELECT title, tree, messages, created, updated, revision FROM console WHERE owner = $1 AND id = $2",
                [.text(owner), .text(id)])
            guard rows.count > 0 else { return nil }
            return ConsoleConversation(
                id: id, owner: owner, title: try Self.string(rows, 0, 0), text: "", tree: try Self.value(rows, 0, 1),
                messages: Int(rows.integer(0, 2) ?? 0), created: Int(rows.integer(0, 3) ?? 0),
                updated: Int(rows.integer(0, 4) ?? 0), revision: Int(rows.integer(0, 5) ?? 0))
        }
    }

    func consoleConversations(owner: String, containing words: [String]) async throws -> [ConsoleConversation.Summary] {
        try await server.background(.read) { connection in
            let conditions = words.indices.map { "AND position($\($0 + 2) IN found) > 0" }.joined(separator: " ")
            let rows = try connection.query(
                """
                SELECT id, title, messages, created, updated FROM console WHERE owner = $1 \(conditions)
                ORDER BY updated DESC, id LIMIT \(Self.maximumListed)
                """, [.text(owner)] + words.map { .bytes(Data($0.utf8)) })
            return try (0..<rows.count).map { row in
                .init(
                    id: rows.text(row, 0) ?? "", title: try Self.string(rows, row, 1), created: Int(rows.integer(row, 3) ?? 0),
                    updated: Int(rows.integer(row, 4) ?? 0), messages: Int(rows.integer(row, 2) ?? 0))
            }
        }
    }

    func deleteConsoleConversation(_ id: String, owner: String) async throws -> Bool {
        if id.utf8.contains(0) { return false }
        return try await server.background(.write) { connection in
            try connection.query("DELETE FROM console WHERE owner = $1 AND id = $2", [.text(owner), .text(id)]).changed > 0
        }
    }
}
#endif
