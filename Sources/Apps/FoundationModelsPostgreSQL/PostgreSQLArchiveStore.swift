#if PostgreSQL
import ContextKit
import Foundation

/// An archive of conversations in a schema of a PostgreSQL database.
final class PostgreSQLArchiveStore: ArchiveStore {
    private let server: PostgreSQLServer

    var file: URL? { nil }
    var isReadOnly: Bool { server.isReadOnly }

    private static let tables = """
        CREATE TABLE conversation (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, created double precision NOT NULL,
            title text NOT NULL, context bytea NOT NULL, context_checksum bigint NOT NULL, head bytea NOT NULL,
            head_checksum bigint NOT NULL, revision bigint NOT NULL DEFAULT 0);
        CREATE TABLE turn (
            conversation bigint NOT NULL REFERENCES conversation (number) ON DELETE CASCADE, number bigint NOT NULL,
            prompt bytea NOT NULL, entries bytea, asked double precision, checksum bigint, words bigint,
            PRIMARY KEY (conversation, number));
        CREATE TABLE turn_word (
            conversation bigint NOT NULL REFERENCES conversation (number) ON DELETE CASCADE, word text NOT NULL,
            turn bigint NOT NULL, PRIMARY KEY (conversation, word, turn));
        CREATE TABLE turn_vector (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            conversation bigint NOT NULL REFERENCES conversation (number) ON DELETE CASCADE, model text NOT NULL,
            turn bigint NOT NULL, vectors bytea NOT NULL, UNIQUE (conversation, model, turn));
        CREATE INDEX turn_vector_order ON turn_vector (conversation, model, number);
        CREATE TABLE compaction (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            conversation bigint NOT NULL REFERENCES conversation (number) ON DELETE CASCADE, record bytea NOT NULL);
        CREATE INDEX compaction_conversation ON compaction (conversation, number);
        \(SearchWords.configuration)
        """

    init(_ settings: String, schema: String, isReadOnly: Bool) throws {
        do {
            server = try PostgreSQLServer(
                settings, schema: schema, kind: "conversations", isReadOnly: isReadOnly, usesVectors: false,
                statementTimeout: "120s",
                migrations: [Self.tables])
        } catch let error as PostgreSQLError { throw ConversationError.archive(.init(error.reason)) }
    }

    private func run<Value>(
        _ mode: PostgreSQLServer.Mode, _ body: (PostgreSQLConnection) throws -> Value
    ) throws -> Value {
        do { return try server.transaction(mode, body) } catch let error as PostgreSQLError {
            throw ConversationError.archive(.init(error.reason))
        }
    }

    // MARK: - Conversations

    func conversations() throws -> [ConversationArchive.Summary] {
        try run(.read) { connection in
            let rows = try connection.query(
                """
                SELECT id, created, title, (SELECT count(*) FROM turn WHERE conversation = c.number AND entries IS NOT NULL)
                FROM conversation c ORDER BY created DESC, id
                """)
            return (0..<rows.count).map { row in
                ConversationArchive.Summary(
                    id: rows.text(row, 0) ?? "", created: Date(timeIntervalSince1970: rows.double(row, 1) ?? 0),
                    title: rows.text(row, 2) ?? "", turnCount: Int(rows.integer(row, 3) ?? 0))
            }
        }
    }

    func number(of conversation: String) throws -> Int64? {
        try run(.read) { try Self.number(of: conversation, $0) }
    }

    private static func number(of conversation: String, _ connection: PostgreSQLConnection) throws -> Int64? {
        let rows = try connection.query("SELECT number FROM conversation WHERE id = $1", [.text(conversation)])
        return rows.count > 0 ? rows.integer(0, 0) : nil
    }

    /// The number of a conversation that must exist, as a parameter.
    private static func key(
        of conversation: String, _ connection: PostgreSQLConnection
    ) throws -> PostgreSQLConnection.Parameter {
        guard let number = try number(of: conversation, connection) else {
            throw ConversationError.archive(.init("the conversation is no longer in the archive."))
        }
        return .integer(number)
    }

    func context(of conversation: String) throws -> ContextRow? {
        try run(.read) { connection in
            let rows = try connection.query(
                "SELECT context, context_checksum, head, head_checksum, revision FROM conversation WHERE id = $1",
                [.text(conversation)])
            guard rows.count > 0 else { return nil }
            return ContextRow(
                context: try rows.bytes(0, 0), contextChecksum: rows.integer(0, 1), head: try rows.bytes(0, 2),
                headChecksum: rows.integer(0, 3), revision: rows.integer(0, 4))
        }
    }

    func state(of conversation: String) throws -> (revision: Int64?, lastTurn: Int?)? {
        try run(.read) { connection in
            let rows = try connection.query(
                """
                SELECT revision, (SELECT max(number) FROM turn WHERE conversation = c.number AND number BETWEEN 0 AND $2)
                FROM conversation c WHERE id = $1
                """, [.text(conversation), .integer(Int64(ConversationArchive.maximumNumber))])
            guard rows.count > 0 else { return nil }
            return (rows.integer(0, 0), rows.integer(0, 1).map { Int($0) })
        }
    }

    func repairRevision(of conversation: String) throws {
        try run(.write) { connection in
            _ = try connection.query(
                "UPDATE conversation SET revision = 0 WHERE id = $1 AND revision NOT BETWEEN 0 AND $2",
                [.text(conversation), .integer(Int64(ConversationArchive.maximumRevision))])
        }
    }

    func begin(_ conversation: String, created: Date, _ context: ContextRow) throws -> Bool {
        try run(.write) { connection in
            try connection.query(
                """
                INSERT INTO conversation (id, created, title, context, context_checksum, head, head_checksum)
                VALUES ($1, $2, '', $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING RETURNING number
                """, [.text(conversation), .double(created.timeIntervalSince1970)] + Self.parameters(context)
            ).count > 0
        }
    }

    private static func parameters(_ context: ContextRow) -> [PostgreSQLConnection.Parameter] {
        [bytes(context.context), integer(context.contextChecksum), bytes(context.head), integer(context.headChecksum)]
    }

    private static func bytes(_ data: Data?) -> PostgreSQLConnection.Parameter { data.map { .bytes($0) } ?? .null }

    private static func integer(_ value: Int64?) -> PostgreSQLConnection.Parameter { value.map { .integer($0) } ?? .null }

    func remove(_ conversation: String) throws {
        try run(.write) { connection in
            _ = try connection.query("DELETE FROM conversation WHERE id = $1", [.text(conversation)])
        }
    }

    func save(_ context: ContextRow, compactions: [Data], revision: Int, in conversation: String) throws -> Bool {
        try run(.write) { connection in
            let key = try Self.key(of: conversation, connection)
            let rows = try connection.query(
                """
                UPDATE conversation SET context = $1, context_checksum = $2, head = $3, head_checksum = $4,
                    revision = revision + 1 WHERE number = $5 AND revision = $6
                """, Self.parameters(context) + [key, .integer(Int64(revision))])
            guard rows.changed > 0 else { return false }
            for record in compactions {
                try connection.query(
                    "INSERT INTO compaction (conversation, record) VALUES ($1, $2)", [key, .bytes(record)])
            }
            return true
        }
    }

    func compactions(of conversation: String) throws -> [Data] {
        try run(.read) { connection in
            let rows = try connection.query(
                """
                SELECT record FROM compaction WHERE conversation = (SELECT number FROM conversation WHERE id = $1)
                ORDER BY number
                """, [.text(conversation)])
            return try (0..<rows.count).compactMap { try rows.bytes($0, 0) }
        }
    }

    // MARK: - Turns

    func addPrompt(_ turn: TurnRow, title: String, in conversation: String) throws -> Bool {
        try run(.write) { connection in
            let key = try Self.key(of: conversation, connection)
            let rows = try connection.query(
                """
                INSERT INTO turn (conversation, number, prompt, asked, checksum) VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT DO NOTHING
                """, [key] + Self.parameters(turn))
            guard rows.changed > 0 else { return false }
            try connection.query("UPDATE conversation SET title = $1 WHERE number = $2 AND title = ''", [.text(title), key])
            return true
        }
    }

    /// Number, prompt, date and checksum.
    private static func parameters(_ turn: TurnRow) -> [PostgreSQLConnection.Parameter] {
        [
            integer(turn.number.map { Int64($0) }), bytes(turn.prompt), turn.date.map { .double($0) } ?? .null,
            integer(turn.checksum),
        ]
    }

    func addAnswer(_ turn: TurnRow, words: Int, text: String, in conversation: String) throws -> Bool {
        try run(.write) { connection in
            let key = try Self.key(of: conversation, connection)
            // If the connection is lost while the answer is committed, it is written again: the same answer is not another one.
            let rows = try connection.query(
                """
                INSERT INTO turn (conversation, number, prompt, asked, checksum, entries, words)
                VALUES ($1, $2, $3, $4, $5, $6, $7)
                ON CONFLICT (conversation, number) DO UPDATE SET entries = excluded.entries, checksum = excluded.checksum,
                    words = excluded.words
                WHERE turn.prompt = excluded.prompt AND (turn.entries IS NULL OR turn.entries = excluded.entries)
                """, [key] + Self.parameters(turn) + [Self.bytes(turn.entries), .integer(Int64(words))])
            guard rows.changed > 0, let number = turn.number else { return false }
            for part in SearchWords.parts(of: SearchWords.normalized(text)) {
                try connection.query(
                    """
                    INSERT INTO turn_word (conversation, word, turn)
                    SELECT $1::bigint, unnest(tsvector_to_array(to_tsvector('words', $2))), $3::bigint ON CONFLICT DO NOTHING
                    """, [key, .text(String(part)), .integer(Int64(number))])
            }
            return true
        }
    }

    func removePrompt(turn: Int, in conversation: String) throws {
        try run(.write) { connection in
            _ = try connection.query(
                "DELETE FROM turn WHERE conversation = $1 AND number = $2 AND entries IS NULL",
                [Self.key(of: conversation, connection), .integer(Int64(turn))])
        }
    }

    func turns(_ selection: TurnSelection, of conversation: String) throws -> (rows: [TurnRow], last: Int?) {
        try run(.read) { connection in
            guard let key = try Self.number(of: conversation, connection) else { return ([], nil) }
            let (condition, parameter): (String, PostgreSQLConnection.Parameter) =
                switch selection {
                case .from(let number): ("number >= $2", .integer(Int64(number)))
                case .numbers(let numbers): ("number = ANY ($2::bigint[])", .array(numbers))
                }
            let rows = try connection.query(
                """
                SELECT number, prompt, entries, asked, checksum FROM turn WHERE conversation = $1 AND \(condition)
                ORDER BY number
                """, [.integer(key), parameter])
            let last = try connection.query(
                "SELECT max(number) FROM turn WHERE conversation = $1 AND number BETWEEN 0 AND $2",
                [.integer(key), .integer(Int64(ConversationArchive.maximumNumber))])
            let turns = try (0..<rows.count).map { row in
                TurnRow(
                    number: rows.integer(row, 0).map { Int($0) }, prompt: try rows.bytes(row, 1), entries: try rows.bytes(row, 2),
                    date: rows.double(row, 3), checksum: rows.integer(row, 4))
            }
            return (turns, last.integer(0, 0).map { Int($0) })
        }
    }

    // MARK: - Search

    func turns(with words: [String], in conversation: String, count: Int, limit: Int) throws -> [[Int]] {
        let list = try PostgreSQLConnection.Parameter.json(words.map(SearchWords.normalized))
        return try run(.read) { connection in
            var turns = [[Int]](repeating: [], count: words.count)
            guard let key = try Self.number(of: conversation, connection) else { return turns }
            // A word of the prompt may be several words of the index.
            let rows = try connection.query(
                """
                SELECT w.position, t.turn
                FROM (SELECT position, tsvector_to_array(to_tsvector('words', word)) AS lexemes
                    FROM json_array_elements_text($1::json) WITH ORDINALITY AS l (word, position)) w
                CROSS JOIN LATERAL (
                    SELECT turn FROM turn_word a
                    WHERE conversation = $2 AND word = w.lexemes[1] AND turn BETWEEN 0 AND $3 AND NOT EXISTS (
                        SELECT 1 FROM unnest(w.lexemes[2:]) AS other WHERE NOT EXISTS (
                            SELECT 1 FROM turn_word b WHERE b.conversation = $2 AND b.word = other AND b.turn = a.turn))
                    ORDER BY turn DESC LIMIT $4) t
                ORDER BY w.position, t.turn DESC
                """, [list, .integer(key), .integer(Int64(count)), .integer(Int64(limit))])
            for row in 0..<rows.count {
                guard let position = rows.integer(row, 0), let turn = rows.integer(row, 1) else { continue }
                turns[Int(position) - 1].append(Int(turn))
            }
            return turns
        }
    }

    func wordCounts(of turns: [Int], in conversation: String) throws -> [Int: Int] {
        try run(.read) { connection in
            let rows = try connection.query(
                """
                SELECT number, words FROM turn
                WHERE conversation = (SELECT number FROM conversation WHERE id = $1) AND number = ANY ($2::bigint[])
                """, [.text(conversation), .array(turns)])
            var counts: [Int: Int] = [:]
            for row in 0..<rows.count {
                if let number = rows.integer(row, 0), let words = rows.integer(row, 1) { counts[Int(number)] = Int(words) }
            }
            return counts
        }
    }

    func turnsWithoutVectors(in conversation: String, model: String, from number: Int, limit: Int) throws -> [Int] {
        try run(.read) { connection in
            guard let key = try Self.number(of: conversation, connection) else { return [] }
            let rows = try connection.query(
                """
                SELECT number FROM turn t WHERE conversation = $1 AND number >= $4 AND entries IS NOT NULL AND NOT EXISTS (
                    SELECT 1 FROM turn_vector WHERE conversation = $1 AND model = $2 AND turn = t.number)
                ORDER BY number LIMIT $3
                """, [.integer(key), .text(model), .integer(Int64(limit)), .integer(Int64(number))])
            return (0..<rows.count).compactMap { rows.integer($0, 0).map { Int($0) } }
        }
    }

    func addVectors(_ records: [(turn: Int, vectors: Data)], in conversation: String, model: String) throws {
        try run(.write) { connection in
            let key = try Self.key(of: conversation, connection)
            // One program at a time, so that rows become visible in the order of their numbers and readers miss none.
            try connection.query("SELECT 1 FROM conversation WHERE number = $1 FOR NO KEY UPDATE", [key])
            for record in records {
                try connection.query(
                    """
                    INSERT INTO turn_vector (conversation, model, turn, vectors) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
                    """, [key, .text(model), .integer(Int64(record.turn)), .bytes(record.vectors)])
            }
        }
    }

    func vectors(in conversation: String, model: String, after row: Int64) throws -> [VectorRow] {
        try run(.read) { connection in
            guard let key = try Self.number(of: conversation, connection) else { return [] }
            let rows = try connection.query(
                """
                SELECT number, turn, vectors FROM turn_vector WHERE conversation = $1 AND model = $2 AND number > $3
                ORDER BY number
                """, [.integer(key), .text(model), .integer(row)])
            return try Self.vectors(rows)
        }
    }

    func vectors(of turns: [Int], in conversation: String, model: String) throws -> [VectorRow] {
        try run(.read) { connection in
            guard let key = try Self.number(of: conversation, connection) else { return [] }
            let rows = try connection.query(
                """
                SELECT number, turn, vectors FROM turn_vector WHERE conversation = $1 AND model = $2 AND turn = ANY ($3::bigint[])
                """, [.integer(key), .text(model), .array(turns)])
            return try Self.vectors(rows)
        }
    }

    private static func vectors(_ rows: PostgreSQLRows) throws -> [VectorRow] {
        try (0..<rows.count).compactMap { index in
            guard let number = rows.integer(index, 0), let turn = rows.integer(index, 1), let vectors = try rows.bytes(index, 2)
            else {
                return nil
            }
            return VectorRow(row: number, turn: Int(turn), vectors: vectors)
        }
    }
}
#endif
