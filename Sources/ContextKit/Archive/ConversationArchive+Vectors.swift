import Foundation
import GRDB

/// The vectors of turns, for the search by meaning. They can be computed again at any time.
extension ConversationArchive {
    /// Answered turns whose vectors are missing, the oldest first.
    func turnsWithoutVectors(in conversation: String, model: String, limit: Int) throws -> [Turn] {
        let numbers = try read { database in
            try Int.fetchAll(
                database,
                sql: """
                    SELECT number FROM turn WHERE conversation = ? AND entries IS NOT NULL AND number NOT IN
                        (SELECT turn FROM turn_vector WHERE conversation = ? AND model = ?) ORDER BY number LIMIT ?
                    """,
                arguments: [conversation, conversation, model, limit])
        }
        let stored = try turns(of: conversation, numbers: Set(numbers))
        // Turns that cannot be read get an empty record, so that they are not tried again and again.
        return numbers.map { stored.turns[$0] ?? Turn(number: $0, prompt: "", date: nil, entries: []) }
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

    /// The number of a conversation in the archive; nil if there is none.
    func number(of conversation: String) throws -> Int64? {
        try read { try Int64.fetchOne($0, sql: "SELECT number FROM conversation WHERE id = ?", arguments: [conversation]) }
    }

    /// The records of a conversation after a row, in order.
    func vectors(
        in conversation: String, model: String, after row: Int64
    ) throws -> [(row: Int64, turn: Int, vectors: Data)] {
        try read { database in
            // The plus signs make SQLite read the rows after a number instead of all rows of the conversation.
            try Row.fetchAll(
                database,
                sql:
                    "SELECT number, turn, vectors FROM turn_vector WHERE +conversation = ? AND +model = ? AND number > ? ORDER BY number",
                arguments: [conversation, model, row]
            ).compactMap { row in
                guard let number = row.value("number", as: Int64.self), let turn = row.value("turn", as: Int.self),
                    let vectors = row.value("vectors", as: Data.self), (0...Self.maximumNumber).contains(turn)
                else { return nil }
                return (number, turn, vectors)
            }
        }
    }
}
