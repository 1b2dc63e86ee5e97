#if SQLite
import Foundation
import GRDB

/// Repair of an archive in which pages of a table are damaged, for example by a defective disk.
///
/// SQLite fails every statement that meets such a page, so that no conversation of the archive could be continued. A damaged table
/// is renamed and replaced by a new one with all rows that can be read. A turn that cannot be read gets an empty row whose checksum
/// is wrong: it is reported as damaged, and its number is not used again. The old table stays in the file, for other tools. A damaged
/// index is replaced with its table, and the full-text index by an empty one.
extension SQLiteArchiveStore {
    /// Conversations are last: what is lost of them is completed from the new table of turns.
    static let tables = ["turn", "compaction", "turn_vector", "conversation"]
    /// The column with the identifier of the conversation.
    static func conversationColumn(of table: String) -> String { table == "conversation" ? "id" : "conversation" }

    /// Rows are at least this large on average; it limits the search for rows if no other limit can be read.
    private static let minimumRowBytes = 64
    private static let maximumRemovedRows: Int64 = 1 << 22

    /// Replaces damaged tables. Other programs wait meanwhile.
    ///
    /// - Returns: Whether something was damaged.
    func repair() throws -> Bool {
        guard !isReadOnly, let file else { return false }
        // Reads that meet damaged pages make a transaction fail: another connection searches for them, while this one prevents
        // changes.
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        let reader = try DatabaseQueue(path: file.path, configuration: configuration)
        return try database.writeWithoutTransaction { database in
            // References to a renamed table must continue to refer to the new one.
            try database.execute(sql: "PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON")
            // These are flags in memory: nothing is read or written that could fail.
            defer { try? database.execute(sql: "PRAGMA foreign_keys = ON; PRAGMA legacy_alter_table = OFF") }
            var isRepaired = false
            try database.inTransaction(.immediate) {
                let (damaged, isIndexReadable) = try reader.unsafeRead { reader in
                    (try Self.tables.compactMap { try Self.damage(of: $0, reader) }, try Self.isIndexReadable(reader))
                }
                for table in damaged { try Self.replace(table, database) }
                if !damaged.isEmpty { try Self.addMissingConversations(database) }
                if !isIndexReadable { try Self.replaceIndex(database) }
                isRepaired = !damaged.isEmpty || !isIndexReadable
                return .commit
            }
            return isRepaired
        }
    }

    /// A table with pages that cannot be read.
    private struct DamagedTable {
        var name: String
        var definition: String
        var columns: [String]
        var readable: [Int64]
        /// The keys of rows that cannot be read, as far as an index has them.
        var lost: [Row]
        /// The highest number that was given to a row.
        var sequence: Int64?
    }

    /// Nil if all rows of the table can be read.
    private static func damage(of table: String, _ database: Database) throws -> DamagedTable? {
        let key: String? =
            switch table {
            case "conversation": "id"
            case "turn": "conversation, number"
            case "turn_vector": "conversation, turn"
            default: nil
            }
        // The values of an index that have no damaged page of their own.
        let keys: [Row]? = key.flatMap { key in
            try? Row.fetchAll(  // the index may be damaged too
                database,
                sql:
                    "SELECT rowid AS row, \(key) FROM \(table) INDEXED BY sqlite_autoindex_\(table)_1 WHERE \(key.prefix { $0 != "," }) >= ''"
            )
        }
        // Nil if they cannot be read: the other limits are used.
        let sequence = try? Int64.fetchOne(database, sql: "SELECT seq FROM sqlite_sequence WHERE name = ?", arguments: [table])
        let newest = try? Int64.fetchOne(database, sql: "SELECT coalesce(max(rowid), 0) FROM \(table)")
        let isIndexDamaged = key != nil && keys == nil
        let limits = [sequence, newest].compactMap(\.self) + (keys ?? []).compactMap { $0["row"] as Int64? }
        let bytes =
            try Int64.fetchOne(database, sql: "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size") ?? 0
        let isBounded = newest != nil || sequence != nil || keys != nil
        // A damaged page may say any number: a file has no more rows than fit into it, and some that were removed.
        let mostRows = max(bytes / Int64(minimumRowBytes), maximumRemovedRows)
        let last = isBounded ? min(limits.max() ?? 0, mostRows) : bytes / Int64(minimumRowBytes)
        var (readable, isDamaged): ([Int64], Bool) = ([], false)
        let statement = try database.makeStatement(sql: "SELECT * FROM \(table) NOT INDEXED WHERE rowid = ?")
        for row in stride(from: 1 as Int64, through: last, by: 1) {
            do {
                if try Row.fetchOne(statement, arguments: [row]) != nil { readable.append(row) }
            } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
                isDamaged = true
            }
        }
        guard isDamaged || newest == nil || isIndexDamaged else { return nil }
        guard
            let definition = try String.fetchOne(
                database, sql: "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", arguments: [table])
        else { return nil }
        let isReadable = Set(readable)
        return DamagedTable(
            name: table, definition: definition, columns: try database.columns(in: table).map(\.name), readable: readable,
            lost: (keys ?? []).filter { !isReadable.contains($0["row"] ?? 0) }, sequence: sequence)
    }

    private static func replace(_ table: DamagedTable, _ database: Database) throws {
        var number = 1
        while try database.tableExists("damaged_\(table.name)_\(number)") { number += 1 }
        let old = "damaged_\(table.name)_\(number)"
        try database.execute(sql: "ALTER TABLE \(table.name) RENAME TO \(old)")
        try database.execute(sql: table.definition)
        if let sequence = table.sequence {
            // Numbers of lost conversations are not given again.
            try database.execute(sql: "DELETE FROM sqlite_sequence WHERE name = ?", arguments: [table.name])
            try database.execute(
                sql: "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", arguments: [table.name, sequence])
        }
        // Tables without a number of their own keep their order.
        let columns = ((table.sequence == nil ? ["rowid"] : []) + table.columns).joined(separator: ", ")
        let copy = try database.makeStatement(
            sql: "INSERT OR IGNORE INTO \(table.name) (\(columns)) SELECT \(columns) FROM \(old) NOT INDEXED WHERE rowid = ?")
        for row in table.readable { try copy.execute(arguments: [row]) }
        for row in table.lost {
            switch table.name {
            case "turn":
                try database.execute(
                    sql: "INSERT OR IGNORE INTO turn (conversation, number, prompt, checksum) VALUES (?, ?, x'', 0)",
                    arguments: [row["conversation"] as DatabaseValue, row["number"] as DatabaseValue])
            case "conversation": try addDamagedConversation(row["id"] as DatabaseValue, database)
            default: break  // computed again
            }
        }
    }

    private static let indexTables = ["turn_text_data", "turn_text_idx", "turn_text_docsize", "turn_text_config"]

    /// Whether all pages of the full-text index can be read.
    private static func isIndexReadable(_ database: Database) throws -> Bool {
        do {
            for table in indexTables {
                let rows = try Row.fetchCursor(database, sql: "SELECT * FROM \(table)")
                while let row = try rows.next() { _ = row.copy() }
            }
            return true
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT { return false }
    }

    private static func replaceIndex(_ database: Database) throws {
        var number = 1
        while try database.tableExists("damaged_turn_text_\(number)") { number += 1 }
        try database.execute(sql: "ALTER TABLE turn_text RENAME TO damaged_turn_text_\(number)")
        try database.execute(sql: "CREATE VIRTUAL TABLE turn_text USING fts5(\(indexDefinition))")
    }

    /// Conversations of which only turns are left get a context that is reported as damaged.
    private static func addMissingConversations(_ database: Database) throws {
        let ids = try DatabaseValue.fetchAll(
            database,
            sql: "SELECT DISTINCT conversation FROM turn WHERE conversation NOT IN (SELECT id FROM conversation)")
        for id in ids { try addDamagedConversation(id, database) }
    }

    /// Removes a conversation from the tables that repairs have replaced, as far as they can be read. Not in a transaction, which would
    /// fail if a statement meets a damaged page.
    ///
    /// - Parameter rows: The numbers of the rows that the conversation had in each of ``tables``: rows of replaced tables keep them.
    static func removeDamaged(_ conversation: String, _ rows: [String: [Int64]], _ database: Database) throws {
        for table in tables {
            var number = 1
            while try database.tableExists("damaged_\(table)_\(number)") {
                let delete = "DELETE FROM damaged_\(table)_\(number) WHERE \(conversationColumn(of: table)) = ?"
                do { try database.execute(sql: delete, arguments: [conversation]) } catch {
                    // It removes nothing if one row cannot be read: those around it are removed one by one, and it stays.
                    for row in rows[table] ?? [] {
                        try? database.execute(sql: delete + " AND rowid = ?", arguments: [conversation, row])
                    }
                }
                number += 1
            }
        }
    }

    private static func addDamagedConversation(_ id: DatabaseValue, _ database: Database) throws {
        try database.execute(
            sql: """
                INSERT OR IGNORE INTO conversation (id, created, title, context, context_checksum, head, head_checksum)
                VALUES (?, coalesce((SELECT min(asked) FROM turn WHERE conversation = ?), 0), '', x'', 0, x'', 0)
                """, arguments: [id, id])
    }
}
#endif
