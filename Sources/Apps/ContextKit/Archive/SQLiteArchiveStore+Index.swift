#if SQLite
import Foundation
import GRDB

/// The full-text index of an archive. It keeps no texts (`content = ''`), so that a row is removed with exactly the text that was added.
extension SQLiteArchiveStore {
    /// Columns and options of the full-text index. Options of newer versions of SQLite, such as `contentless_delete`, would make files
    /// that older versions cannot read.
    static let indexDefinition = "text, content = '', tokenize = 'porter unicode61 remove_diacritics 2'"

    /// The row of a conversation's turn 0 in the index.
    static func firstRow(_ database: Database, _ conversation: String) throws -> Int64? {
        try Int64.fetchOne(
            database, sql: "SELECT number << 32 FROM conversation WHERE id = ?", arguments: [conversation])
    }

    /// Adds a turn to the index, unless it is there. Its row number combines the numbers of the conversation and the turn, so that a
    /// search can be limited to one conversation.
    static func index(_ text: String, turn number: Int, behind first: Int64, _ database: Database) throws {
        let row = first + Int64(number)
        if try Bool.fetchOne(database, sql: "SELECT 1 FROM turn_text_docsize WHERE id = ?", arguments: [row]) != nil { return }
        try database.execute(sql: "INSERT INTO turn_text (rowid, text) VALUES (?, ?)", arguments: [row, text])
    }

    static func checksum(_ text: String) -> Int64 { Checksum.of(Data(text.utf8)) }

    func turns(with words: [String], in conversation: String, count: Int, limit: Int) throws -> [[Int]] {
        func search(_ database: Database) throws -> [[Int]] {
            guard let first = try Self.firstRow(database, conversation) else { return words.map { _ in [] } }
            return try words.map { word in
                try Int64.fetchAll(
                    database,
                    sql: """
                        SELECT rowid FROM turn_text WHERE turn_text MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?
                        """,
                    arguments: ["\"\(word)\"", first, first + Int64(count), limit]
                ).map { Int($0 - first) }
            }
        }
        // A damaged index is rebuilt, and the search is repeated.
        do { return try read(search) } catch ConversationError.archive(let failure) where failure.isDamage && !isReadOnly {
            try rebuildIndex()
            return try read(search)
        }
    }

    func wordCounts(of turns: [Int], in conversation: String) throws -> [Int: Int] {
        guard !turns.isEmpty else { return [:] }
        let list = turns.map(String.init).joined(separator: ",")
        return try read { database in
            let rows = try Row.fetchAll(
                database, sql: "SELECT number, words FROM turn WHERE conversation = ? AND number IN (\(list))",
                arguments: [conversation])
            var counts: [Int: Int] = [:]
            for row in rows {
                if let number = row.value("number", as: Int.self), let words = row.value("words", as: Int.self) {
                    counts[number] = words
                }
            }
            return counts
        }
    }

    // MARK: - Removal

    /// Removes a conversation from the index.
    ///
    /// - Returns: false if the text of one of its turns is not known: the turn is damaged, or the text was made by another version of the
    ///   program. The index must then be rebuilt.
    static func removeFromIndex(_ conversation: String, _ database: Database) throws -> Bool {
        guard let first = try firstRow(database, conversation) else {
            let turns = "SELECT count(*) FROM turn WHERE conversation = ?"
            return try Int.fetchOne(database, sql: turns, arguments: [conversation]) == 0
        }
        let indexed = try Int64.fetchAll(
            database, sql: "SELECT id FROM turn_text_docsize WHERE id BETWEEN ? AND ?",
            arguments: [first, first + Int64(ConversationArchive.maximumNumber)])
        if indexed.isEmpty { return true }
        let rows = try Row.fetchAll(
            database, sql: "SELECT number, text_checksum FROM turn WHERE conversation = ?", arguments: [conversation])
        var checksums: [Int: Int64] = [:]
        for row in rows { if let number = row.value("number", as: Int.self) { checksums[number] = row.value("text_checksum") } }
        var texts: [Int64: String] = [:]
        for turn in ConversationArchive.turns(from: try turns(database, conversation, "1")).turns {
            guard let sum = checksums[turn.number] else { continue }
            texts[first + Int64(turn.number)] = turn.searchedTexts.first { checksum($0) == sum }
        }
        guard indexed.allSatisfy({ texts[$0] != nil }) else { return false }
        do {
            for row in indexed {
                try database.execute(
                    sql: "INSERT INTO turn_text (turn_text, rowid, text) VALUES ('delete', ?, ?)", arguments: [row, texts[row]])
            }
        } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_CORRUPT_VTAB {
            return false
        }
        return true
    }

    /// Removes what is left of removed texts from the pages of the index. Only a few pages are written in each transaction, so that
    /// other programs can write in between.
    static func purgeIndex(_ database: Database) throws {
        // A negative number begins with all pages, the following ones continue.
        var pages = -pagesOfStep
        while true {
            let before = database.totalChangesCount
            try database.execute(sql: "INSERT INTO turn_text (turn_text, rank) VALUES ('merge', ?)", arguments: [pages])
            // One change is that of the command itself.
            guard database.totalChangesCount - before > 1 else { return }
            pages = pagesOfStep
        }
    }

    private static let pagesOfStep = 256

    // MARK: - Damage

    func rebuildIndex() throws { try write(Self.rebuildIndex) }

    /// Rebuilds the index from all turns that can be read.
    static func rebuildIndex(_ database: Database) throws {
        try emptyIndex(database)
        for conversation in try String.fetchAll(database, sql: "SELECT id FROM conversation WHERE typeof(id) = 'text'") {
            guard let first = try firstRow(database, conversation) else { continue }
            let turns = ConversationArchive.turns(from: try turns(database, conversation, "1")).turns
            for turn in turns where !turn.entries.isEmpty {
                let text = turn.searchedText
                try index(text, turn: turn.number, behind: first, database)
                let sum = checksum(text)
                try database.execute(
                    sql: "UPDATE turn SET text_checksum = ? WHERE conversation = ? AND number = ? AND text_checksum IS NOT ?",
                    arguments: [sum, conversation, turn.number, sum])
            }
        }
    }

    private static func emptyIndex(_ database: Database) throws {
        do {
            try database.inSavepoint {
                try database.execute(sql: "INSERT INTO turn_text (turn_text) VALUES ('delete-all')")
                return .commit
            }
        } catch is DatabaseError {
            // An index whose structure cannot be read accepts no commands: its tables get the rows of a new, empty one.
            try database.execute(sql: "CREATE VIRTUAL TABLE temp.new_text USING fts5(\(indexDefinition))")
            for table in ["data", "idx", "docsize", "config"] {
                try database.execute(
                    sql: "DELETE FROM turn_text_\(table); INSERT INTO turn_text_\(table) SELECT * FROM temp.new_text_\(table)")
            }
            try database.execute(sql: "DROP TABLE temp.new_text")
        }
    }
}
#endif
