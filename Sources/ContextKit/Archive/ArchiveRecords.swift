import Foundation
import FoundationModels
import GRDB
import TextSearch

extension ConversationArchive {
    /// A part of an archive that cannot be read. Everything else stays usable.
    public struct Damage: Sendable, Codable, Equatable {
        /// The number of the turn that cannot be read; nil for the conversation's context, and for a turn whose number
        /// is invalid.
        public var turn: Int?
        /// What is wrong with it.
        public var reason: String
    }

    /// The contents of a conversation's context, except the turns that followed.
    struct Context: Codable {
        var instructions = ""
        var pinned: [String] = []
        /// Number of pinned facts that are part of the instructions. Later ones are put in front of each prompt until
        /// the next compaction.
        var pinnedInHead = 0
        var carried = ""
        /// The turns kept by the last compaction, in the form in which it left them.
        var kept: [KeptTurn] = []
        /// All turns with this number or a higher one are in the context.
        var next = 0
    }

    struct KeptTurn: Codable {
        var number: Int
        var prompt: String
        var date: Date?
        var entries: Transcript
    }

    /// A second copy of the data that no turn contains. A damaged context is rebuilt from it and the turns.
    private struct Head: Codable {
        var instructions: String
        var pinned: [String]
    }

    /// The maximum number of a turn: the index has 32 bits for it.
    static let maximumNumber = Int(UInt32.max) - 1

    /// Number of newest turns that form the new context when the stored one is damaged.
    private static let turnsAfterDamage = 20

    /// A conversation's context as stored in the archive.
    struct StoredContext {
        var context: Context
        var revision: Int
        var damage: Damage?
    }

    /// Compared to detect whether another program has continued the conversation.
    struct State: Equatable {
        var revision: Int
        /// The highest number of a turn; -1 before the first turn.
        var lastTurn: Int
    }

    // MARK: - Contexts

    func context(of conversation: String) throws -> StoredContext? {
        try read { database in
            let row = try Row.fetchOne(
                database,
                sql: "SELECT context, context_checksum, head, head_checksum, revision FROM conversation WHERE id = ?",
                arguments: [conversation])
            guard let row else { return nil }
            // nil means that the value is damaged; ``repairRevision(of:)`` has set it to 0.
            let revision = Self.revision(row) ?? 0
            if let context = Self.decoded(Context.self, row, "context"), context.isValid {
                return StoredContext(context: context, revision: revision)
            }
            let head = Self.decoded(Head.self, row, "head")
            let last = try Self.state(database, conversation)?.lastTurn ?? -1
            let pinned = head?.pinned ?? []
            return StoredContext(
                context: Context(
                    instructions: head?.instructions ?? "", pinned: pinned, pinnedInHead: pinned.count,
                    next: max(0, last + 1 - Self.turnsAfterDamage)),
                revision: revision,
                damage: Damage(
                    turn: nil,
                    reason: head == nil
                        ? "the context and its pinned facts cannot be read; the new one contains the newest turns"
                        : "the context cannot be read; the new one contains the pinned facts and the newest turns"))
        }
    }

    private static func revision(_ row: Row) -> Int? {
        row.value("revision", as: Int64.self).flatMap { (0..<1 << 40).contains($0) ? Int($0) : nil }
    }

    /// Replaces a damaged revision by 0, so that it can be compared and incremented.
    func repairRevision(of conversation: String) throws {
        if isReadOnly { return }
        try write { database in
            try database.execute(
                sql: """
                    UPDATE conversation SET revision = 0
                    WHERE id = ? AND (typeof(revision) <> 'integer' OR revision NOT BETWEEN 0 AND 1099511627775)
                    """, arguments: [conversation])
        }
    }

    /// Decodes a JSON column; nil if its checksum is wrong or it is damaged. Rows of older archives have no checksum.
    private static func decoded<Value: Decodable>(_ type: Value.Type, _ row: Row, _ column: String) -> Value? {
        guard let data = row.value(column, as: Data.self) else { return nil }
        if let checksum = row.value("\(column)_checksum", as: Int64.self), checksum != Checksum.of(data) { return nil }
        return try? JSONDecoder().decode(type, from: data)  // damaged: the caller reports it
    }

    func state(of conversation: String) throws -> State? { try read { try Self.state($0, conversation) } }

    private static func state(_ database: Database, _ conversation: String) throws -> State? {
        let row = try Row.fetchOne(
            database,
            sql: """
                SELECT revision, (SELECT max(number) FROM turn WHERE conversation = id AND number BETWEEN 0 AND ?) AS last
                FROM conversation WHERE id = ?
                """, arguments: [maximumNumber, conversation])
        return row.map { State(revision: revision($0) ?? 0, lastTurn: $0.value("last") ?? -1) }
    }

    func begin(_ conversation: String, _ context: Context) throws {
        let stored = try Self.columns(of: context)
        try write { database in
            try database.execute(
                sql: """
                    INSERT INTO conversation (id, created, title, context, context_checksum, head, head_checksum)
                    VALUES (?, ?, '', ?, ?, ?, ?)
                    """,
                arguments: [conversation, Date().timeIntervalSince1970] + stored)
        }
    }

    private static func columns(of context: Context) throws -> StatementArguments {
        let data = try JSONEncoder().encode(context)
        let head = try JSONEncoder().encode(Head(instructions: context.instructions, pinned: context.pinned))
        return [data, Checksum.of(data), head, Checksum.of(head)]
    }

    /// Writes a context unless another program has written one in the meantime.
    ///
    /// - Parameter revision: The revision that was read with the context, or that the last call returned.
    /// - Returns: The new revision; nil if the archive has a different revision than expected.
    func save(
        _ context: Context, _ compactions: [Compaction], revision: Int, in conversation: String
    ) throws -> Int? {
        let stored = try Self.columns(of: context)
        let records = try compactions.map { try JSONEncoder().encode($0) }
        return try write { database in
            try database.execute(
                sql: """
                    UPDATE conversation SET context = ?, context_checksum = ?, head = ?, head_checksum = ?, revision = revision + 1
                    WHERE id = ? AND revision = ?
                    """,
                arguments: stored + [conversation, revision])
            guard database.changesCount > 0 else { return nil }
            for record in records {
                try database.execute(
                    sql: "INSERT INTO compaction (conversation, record) VALUES (?, ?)", arguments: [conversation, record])
            }
            return revision + 1
        }
    }

    // MARK: - Turns

    /// Records a prompt that is about to be sent to the model.
    ///
    /// - Returns: Whether it was recorded; false if another program has used the number for the same conversation.
    func recordPrompt(_ prompt: String, number: Int, date: Date?, in conversation: String) throws -> Bool {
        let text = Data(prompt.utf8)
        return try write { database in
            try database.execute(
                sql: """
                    INSERT INTO turn (conversation, number, prompt, asked, checksum) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
                    """,
                arguments: [
                    conversation, number, text, date?.timeIntervalSince1970,
                    Checksum.of(turn: number, prompt: text, entries: nil),
                ])
            guard database.changesCount > 0 else { return false }
            try database.execute(
                sql: "UPDATE conversation SET title = ? WHERE id = ? AND title = ''",
                arguments: [String(prompt.prefix(80)).replacing("\u{0}", with: " "), conversation])
            return true
        }
    }

    /// Records the answer to a prompt.
    func recordAnswer(_ turn: Turn, in conversation: String) throws {
        do { try recordAnswer(turn, in: conversation, isIndexed: true) } catch ConversationError.archive(let failure)
            where failure.isDamage
        {
            // The turn matters more than the index: a damaged index must not prevent it from being written.
            try recordAnswer(turn, in: conversation, isIndexed: false)
            try? rebuildIndex()  // the next search tries again and reports the error
        }
    }

    private func recordAnswer(_ turn: Turn, in conversation: String, isIndexed: Bool) throws {
        let prompt = Data(turn.prompt.utf8)
        let entries = try JSONEncoder().encode(Transcript(entries: turn.entries))
        try write { database in
            try database.execute(
                sql: """
                    INSERT INTO turn (conversation, number, prompt, entries, asked, checksum, words) VALUES (?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT (conversation, number) DO UPDATE SET entries = excluded.entries, checksum = excluded.checksum,
                    words = excluded.words WHERE turn.entries IS NULL AND turn.prompt = excluded.prompt
                    """,
                arguments: [
                    conversation, turn.number, prompt, entries, turn.date?.timeIntervalSince1970,
                    Checksum.of(turn: turn.number, prompt: prompt, entries: entries),
                    SearchText.wordCount(of: turn.indexedText),
                ])
            guard database.changesCount > 0 else {
                throw ConversationError.archive(.init("another program has answered this prompt."))
            }
            if isIndexed, let first = try Self.firstRow(database, conversation) {
                try Self.index(turn, behind: first, database)
            }
        }
    }

    /// Adds a turn to the index. Its row number combines the numbers of the conversation and the turn, so that a search
    /// can be limited to one conversation.
    private static func index(_ turn: Turn, behind first: Int64, _ database: Database) throws {
        let dates = turn.date.map { DateWords.words(of: $0) } ?? []
        try database.execute(
            sql: "INSERT INTO turn_text (rowid, text) VALUES (?, ?)",
            arguments: [first + Int64(turn.number), ([turn.indexedText] + dates).joined(separator: " ")])
    }

    /// Searches the index. A damaged index is rebuilt, and the search is repeated.
    func search<Value>(_ body: (Database) throws -> Value) throws -> Value {
        do { return try read(body) } catch ConversationError.archive(let failure) where failure.isDamage && !isReadOnly {
            try rebuildIndex()
            return try read(body)
        }
    }

    /// Rebuilds the index from all turns that can be read.
    private func rebuildIndex() throws {
        try write { database in
            try Self.emptyIndex(database)
            for conversation in try String.fetchAll(database, sql: "SELECT id FROM conversation WHERE typeof(id) = 'text'") {
                guard let first = try Self.firstRow(database, conversation) else { continue }
                for turn in try Self.turns(database, conversation, "1").turns where !turn.entries.isEmpty {
                    try Self.index(turn, behind: first, database)
                }
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

    /// The row of a conversation's turn 0 in the index.
    static func firstRow(_ database: Database, _ conversation: String) throws -> Int64? {
        try Int64.fetchOne(
            database, sql: "SELECT number << 32 FROM conversation WHERE id = ?", arguments: [conversation])
    }

    func removePrompt(turn number: Int, in conversation: String) throws {
        try write { database in
            try database.execute(
                sql: "DELETE FROM turn WHERE conversation = ? AND number = ? AND entries IS NULL",
                arguments: [conversation, number])
        }
    }

    /// The turns that match an SQL condition on their numbers, if they can be read, and the damage to the others.
    private static func turns(
        _ database: Database, _ conversation: String, _ condition: String
    ) throws -> (turns: [Turn], damage: [Damage]) {
        let columns = "number, prompt, entries, asked, checksum"
        let condition = "conversation = ? AND \(condition) ORDER BY number"
        let arguments: StatementArguments = [conversation]
        do {
            let rows = try Row.fetchAll(
                database, sql: "SELECT \(columns) FROM turn WHERE \(condition)", arguments: arguments)
            return Self.turns(rows)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            // The numbers come from a separate index. Each turn is read alone, so that a damaged page affects only its
            // turns.
            let numbers = try Row.fetchAll(
                database, sql: "SELECT number FROM turn WHERE \(condition)", arguments: arguments
            ).compactMap { $0.value("number", as: Int.self) }
            var (turns, damage): ([Turn], [Damage]) = ([], [])
            for number in numbers {
                do {
                    let row = try Row.fetchAll(
                        database, sql: "SELECT \(columns) FROM turn WHERE conversation = ? AND number = ?",
                        arguments: [conversation, number])
                    let one = Self.turns(row)
                    (turns, damage) = (turns + one.turns, damage + one.damage)
                } catch let error as DatabaseError {
                    damage.append(Damage(turn: number, reason: error.message ?? "\(error.resultCode)"))
                }
            }
            return (turns, damage)
        }
    }

    /// The turns of a conversation as stored in the archive.
    struct StoredTurns {
        /// The turns that can be read, answered or not.
        var turns: [Turn]
        /// The turns that cannot be read.
        var damage: [Damage]
        /// The highest number of any turn; -1 if there are none.
        var last: Int
    }

    /// The turns with this number or a higher one.
    func turns(of conversation: String, from number: Int = 0) throws -> StoredTurns {
        try read { database in
            let (turns, damage) = try Self.turns(database, conversation, "number >= \(number)")
            let last = try Self.state(database, conversation)?.lastTurn ?? -1
            return StoredTurns(turns: turns, damage: damage, last: last)
        }
    }

    /// The turns with these numbers that were answered and can be read.
    func turns(of conversation: String, numbers: Set<Int>) throws -> (turns: [Int: Turn], damage: [Damage]) {
        guard !numbers.isEmpty else { return ([:], []) }
        let list = numbers.sorted().map(String.init).joined(separator: ",")
        let (turns, damage) = try read { try Self.turns($0, conversation, "number IN (\(list))") }
        let answered = turns.filter { !$0.entries.isEmpty }
        return (Dictionary(answered.map { ($0.number, $0) }) { first, _ in first }, damage)
    }

    private static func turns(_ rows: [Row]) -> (turns: [Turn], damage: [Damage]) {
        var (turns, damage): ([Turn], [Damage]) = ([], [])
        for row in rows {
            guard let number = row.value("number", as: Int.self), (0...maximumNumber).contains(number) else {
                damage.append(Damage(turn: nil, reason: "a turn has an invalid number"))
                continue
            }
            guard let prompt = row.value("prompt", as: Data.self) else {
                damage.append(Damage(turn: number, reason: "its prompt cannot be read"))
                continue
            }
            let data = row.value("entries", as: Data.self)
            if let checksum = row.value("checksum", as: Int64.self),
                checksum != Checksum.of(turn: number, prompt: prompt, entries: data)
            {
                damage.append(Damage(turn: number, reason: "its checksum is wrong"))
                continue
            }
            do {
                let entries = try data.map { Array(try JSONDecoder().decode(Transcript.self, from: $0)) } ?? []
                let asked = row.value("asked", as: Double.self).flatMap { abs($0) < 1e11 ? $0 : nil }
                let date = asked.map { Date(timeIntervalSince1970: $0) }
                turns.append(
                    Turn(number: number, prompt: String(decoding: prompt, as: UTF8.self), date: date, entries: entries))
            } catch {
                damage.append(Damage(turn: number, reason: "its entries cannot be read: \(error)"))
            }
        }
        return (turns, damage)
    }
}

extension ConversationArchive.Context {
    /// Whether the numbers are within their ranges; a damaged file may contain any.
    fileprivate var isValid: Bool {
        (0...ConversationArchive.maximumNumber).contains(next) && (0...pinned.count).contains(pinnedInHead)
            && kept.allSatisfy { (0..<max(1, next)).contains($0.number) }
    }
}

extension Row {
    /// A column's value; nil for NULL and for a value of another type, which a damaged file may contain.
    func value<Value: DatabaseValueConvertible>(_ column: String, as type: Value.Type = Value.self) -> Value? {
        Value.fromDatabaseValue(self[column])
    }
}
