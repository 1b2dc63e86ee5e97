import Foundation
import FoundationModels
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
    package static let maximumNumber = Int(UInt32.max) - 1

    /// Number of newest turns that form the new context when the stored one is damaged.
    private static let turnsAfterDamage = 20

    /// A conversation's context as stored in the archive.
    struct StoredContext {
        var context: Context
        var revision: Int
        var damage: Damage?
        /// Whether the pinned facts and instructions are those of the archive.
        var hasHead = true
    }

    /// Compared to detect whether another program has continued the conversation.
    struct State: Equatable {
        var revision: Int
        /// The highest number of a turn; -1 before the first turn.
        var lastTurn: Int
    }

    // MARK: - Contexts

    func context(of conversation: String) throws -> StoredContext? {
        guard let row = try store.context(of: conversation) else { return nil }
        // nil means that the value is damaged; ``repairRevision(of:)`` has set it to 0.
        let revision = Self.valid(row.revision) ?? 0
        if let context = Self.decoded(Context.self, row.context, row.contextChecksum), context.isValid {
            return StoredContext(context: context, revision: revision)
        }
        let head = Self.decoded(Head.self, row.head, row.headChecksum)
        let last = try state(of: conversation)?.lastTurn ?? -1
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
                    : "the context cannot be read; the new one contains the pinned facts and the newest turns"),
            hasHead: head != nil)
    }

    /// Larger revisions are damaged.
    package static let maximumRevision = 1 << 40

    private static func valid(_ revision: Int64?) -> Int? {
        revision.flatMap { (0...Int64(maximumRevision)).contains($0) ? Int($0) : nil }
    }

    /// Replaces a damaged revision by 0, so that it can be compared and incremented.
    func repairRevision(of conversation: String) throws {
        if !isReadOnly { try store.repairRevision(of: conversation) }
    }

    /// Decodes JSON; nil if its checksum is wrong or it is damaged. Rows of older archives have no checksum.
    private static func decoded<Value: Decodable>(_ type: Value.Type, _ data: Data?, _ checksum: Int64?) -> Value? {
        guard let data else { return nil }
        if let checksum, checksum != Checksum.of(data) { return nil }
        return try? JSONDecoder().decode(type, from: data)  // damaged: the caller reports it
    }

    func state(of conversation: String) throws -> State? {
        try store.state(of: conversation).map { State(revision: Self.valid($0.revision) ?? 0, lastTurn: $0.lastTurn ?? -1) }
    }

    /// Adds a conversation.
    ///
    /// - Returns: Whether it was added; false if another program has added one with this identifier.
    @discardableResult
    func begin(_ conversation: String, _ context: Context) throws -> Bool {
        try writable().begin(conversation, created: Date(), Self.row(of: context))
    }

    private static func row(of context: Context) throws -> ContextRow {
        let data = try JSONEncoder().encode(context)
        let head = try JSONEncoder().encode(Head(instructions: context.instructions, pinned: context.pinned))
        return ContextRow(context: data, contextChecksum: Checksum.of(data), head: head, headChecksum: Checksum.of(head))
    }

    /// Writes a context unless another program has written one in the meantime.
    ///
    /// - Parameter revision: The revision that was read with the context, or that the last call returned.
    /// - Returns: The new revision; nil if the archive has a different revision than expected.
    func save(
        _ context: Context, _ compactions: [Compaction], revision: Int, in conversation: String
    ) throws -> Int? {
        let records = try compactions.map { try JSONEncoder().encode($0) }
        let isSaved = try writable().save(
            Self.row(of: context), compactions: records, revision: revision, in: conversation)
        return isSaved ? revision + 1 : nil
    }

    // MARK: - Turns

    /// Records a prompt that is about to be sent to the model.
    ///
    /// - Returns: Whether it was recorded; false if another program has used the number for the same conversation.
    func recordPrompt(_ prompt: String, number: Int, date: Date?, in conversation: String) throws -> Bool {
        let text = Data(prompt.utf8)
        return try writable().addPrompt(
            TurnRow(
                number: number, prompt: text, entries: nil, date: date?.timeIntervalSince1970,
                checksum: Checksum.of(turn: number, prompt: text, entries: nil)),
            title: String(prompt.prefix(80)).replacing("\u{0}", with: " "), in: conversation)
    }

    /// Records the answer to a prompt.
    func recordAnswer(_ turn: Turn, in conversation: String) throws {
        let prompt = Data(turn.prompt.utf8)
        // Always the same bytes: an answer whose writing may have failed is written again, and must not look like another one.
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let entries = try encoder.encode(Transcript(entries: turn.entries))
        let row = TurnRow(
            number: turn.number, prompt: prompt, entries: entries, date: turn.date?.timeIntervalSince1970,
            checksum: Checksum.of(turn: turn.number, prompt: prompt, entries: entries))
        // The words of the turn as it will be read: the members of a value are in another order then.
        let stored = Self.turns(from: [row]).turns.first ?? turn
        let isAdded = try writable().addAnswer(
            row, words: SearchText.wordCount(of: stored.indexedText), text: stored.searchedText, in: conversation)
        if !isAdded { throw ConversationError.archive(.init("another program has answered this prompt.")) }
    }

    func removePrompt(turn number: Int, in conversation: String) throws {
        try writable().removePrompt(turn: number, in: conversation)
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
        let (rows, last) = try store.turns(.from(number), of: conversation)
        let (turns, damage) = Self.turns(from: rows)
        return StoredTurns(turns: turns, damage: damage, last: last ?? -1)
    }

    /// The turns with these numbers that were answered and can be read.
    func turns(of conversation: String, numbers: Set<Int>) throws -> (turns: [Int: Turn], damage: [Damage]) {
        guard !numbers.isEmpty else { return ([:], []) }
        let (turns, damage) = Self.turns(from: try store.turns(.numbers(numbers.sorted()), of: conversation).rows)
        let answered = turns.filter { !$0.entries.isEmpty }
        return (Dictionary(answered.map { ($0.number, $0) }) { first, _ in first }, damage)
    }

    static func turns(from rows: [TurnRow]) -> (turns: [Turn], damage: [Damage]) {
        var (turns, damage): ([Turn], [Damage]) = ([], [])
        for row in rows {
            guard let number = row.number, (0...maximumNumber).contains(number) else {
                damage.append(Damage(turn: nil, reason: "a turn has an invalid number"))
                continue
            }
            guard let prompt = row.prompt else {
                damage.append(Damage(turn: number, reason: row.problem ?? "its prompt cannot be read"))
                continue
            }
            if let checksum = row.checksum, checksum != Checksum.of(turn: number, prompt: prompt, entries: row.entries) {
                damage.append(Damage(turn: number, reason: "its checksum is wrong"))
                continue
            }
            do {
                let entries = try row.entries.map { Array(try JSONDecoder().decode(Transcript.self, from: $0)) } ?? []
                let date = row.date.flatMap { abs($0) < 1e11 ? Date(timeIntervalSince1970: $0) : nil }
                turns.append(
                    Turn(number: number, prompt: String(decoding: prompt, as: UTF8.self), date: date, entries: entries))
            } catch {
                damage.append(Damage(turn: number, reason: "its entries cannot be read: \(error)"))
            }
        }
        return (turns, damage)
    }

    // MARK: - Vectors

    /// Answered turns whose vectors are missing, the oldest first.
    func turnsWithoutVectors(in conversation: String, model: String, from number: Int = 0, limit: Int) throws -> [Turn] {
        let numbers = try store.turnsWithoutVectors(in: conversation, model: model, from: number, limit: limit)
        let stored = try turns(of: conversation, numbers: Set(numbers))
        // Turns that cannot be read get an empty record, so that they are not tried again and again.
        return numbers.map { stored.turns[$0] ?? Turn(number: $0, prompt: "", date: nil, entries: []) }
    }

    /// The records of vectors of a conversation after a row, in order. They can be computed again at any time: damaged ones
    /// are left out.
    func vectors(in conversation: String, model: String, after row: Int64) throws -> [VectorRow] {
        try store.vectors(in: conversation, model: model, after: row).filter { (0...Self.maximumNumber).contains($0.turn) }
    }

    /// The records of turns, by their numbers.
    func vectors(of turns: [Int], in conversation: String, model: String) throws -> [Int: Data] {
        let rows = try store.vectors(of: turns, in: conversation, model: model)
        return Dictionary(rows.map { ($0.turn, $0.vectors) }) { first, _ in first }
    }
}

extension ConversationArchive.Context {
    /// Whether the numbers are within their ranges; a damaged file may contain any.
    fileprivate var isValid: Bool {
        (0...ConversationArchive.maximumNumber).contains(next) && (0...pinned.count).contains(pinnedInHead)
            && kept.allSatisfy { (0..<max(1, next)).contains($0.number) }
    }
}
