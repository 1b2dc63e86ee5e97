#if SQLite
import Foundation
import GRDB

/// What is computed of turns for searches.
extension SQLiteArchiveStore {
    func turnsWithoutVectors(in conversation: String, model: String, from number: Int, limit: Int) throws -> [Int] {
        try read { database in
            try Int.fetchAll(
                database,
                sql: """
                    SELECT number FROM turn WHERE conversation = ? AND number >= ? AND entries IS NOT NULL AND number NOT IN
                        (SELECT turn FROM turn_vector WHERE conversation = ? AND model = ? AND turn >= ?) ORDER BY number LIMIT ?
                    """,
                arguments: [conversation, number, conversation, model, number, limit])
        }
    }

    func addVectors(_ records: [(turn: Int, vectors: Data)], in conversation: String, model: String) throws {
        try write { database in
            for record in records {
                try database.execute(
                    sql: "INSERT OR IGNORE INTO turn_vector (conversation, model, turn, vectors) VALUES (?, ?, ?, ?)",
                    arguments: [conversation, model, record.turn, record.vectors])
            }
        }
    }

    func vectors(in conversation: String, model: String, after row: Int64) throws -> [VectorRow] {
        try read { database in
            // The plus signs make SQLite read the rows after a number instead of all rows of the conversation.
            try Row.fetchAll(
                database,
                sql:
                    "SELECT number, turn, vectors FROM turn_vector WHERE +conversation = ? AND +model = ? AND number > ? ORDER BY number",
                arguments: [conversation, model, row]
            ).compactMap(Self.vectors)
        }
    }

    func vectors(of turns: [Int], in conversation: String, model: String) throws -> [VectorRow] {
        guard !turns.isEmpty else { return [] }
        let list = turns.map(String.init).joined(separator: ",")
        return try read { database in
            try Row.fetchAll(
                database,
                sql: "SELECT number, turn, vectors FROM turn_vector WHERE conversation = ? AND model = ? AND turn IN (\(list))",
                arguments: [conversation, model]
            ).compactMap(Self.vectors)
        }
    }

    private static func vectors(_ row: Row) -> VectorRow? {
        guard let number = row.value("number", as: Int64.self), let turn = row.value("turn", as: Int.self),
            let vectors = row.value("vectors", as: Data.self)
        else { return nil }
        return VectorRow(row: number, turn: turn, vectors: vectors)
    }
}
#endif
