package import Foundation

/// The database of an archive. It keeps the contents of conversations as bytes with checksums and does not know what they
/// mean: ``ConversationArchive`` reads and writes them.
///
/// The values that a store returns may be damaged: of another type than expected (nil here), or out of range.
package protocol ArchiveStore: Sendable {
    /// The file of the archive; nil if it is in memory or on a server.
    var file: URL? { get }
    /// Whether the archive can only be read.
    var isReadOnly: Bool { get }

    // MARK: Conversations

    func conversations() throws -> [ConversationArchive.Summary]
    /// A number that no other conversation of the archive has or had; nil if there is no such conversation.
    func number(of conversation: String) throws -> Int64?
    func context(of conversation: String) throws -> ContextRow?
    /// The revision of the context and the highest number of a turn.
    func state(of conversation: String) throws -> (revision: Int64?, lastTurn: Int?)?
    /// Replaces a damaged revision by 0, so that it can be compared and incremented.
    func repairRevision(of conversation: String) throws
    /// Adds a conversation.
    ///
    /// - Returns: false if another program has added one with this identifier; nothing is written then.
    func begin(_ conversation: String, created: Date, _ context: ContextRow) throws -> Bool
    /// Writes a context with the next revision, and the records of compactions.
    ///
    /// - Returns: false if the stored revision is not `revision`; nothing is written then.
    func save(_ context: ContextRow, compactions: [Data], revision: Int, in conversation: String) throws -> Bool
    /// The records of compactions, oldest first.
    func compactions(of conversation: String) throws -> [Data]

    /// Removes a conversation with its turns, vectors, words and records. Does nothing if it does not exist.
    func remove(_ conversation: String) throws

    // MARK: Turns

    /// Adds a prompt, and the title of the conversation if it has none.
    ///
    /// - Returns: false if there is a turn with the number.
    func addPrompt(_ turn: TurnRow, title: String, in conversation: String) throws -> Bool
    /// Adds an answered turn, or the answer to its prompt.
    ///
    /// - Parameters:
    ///   - words: The number of words of the turn.
    ///   - text: The text by which the turn is found.
    /// - Returns: false if there is another prompt or an answer.
    func addAnswer(_ turn: TurnRow, words: Int, text: String, in conversation: String) throws -> Bool
    /// Removes a prompt without an answer.
    func removePrompt(turn: Int, in conversation: String) throws
    /// Turns in the order of their numbers, and the highest number of any turn of the conversation, read at the same time.
    func turns(_ selection: TurnSelection, of conversation: String) throws -> (rows: [TurnRow], last: Int?)

    // MARK: Search

    /// For each word, the numbers of the newest turns that contain it, the highest first.
    ///
    /// - Parameters:
    ///   - count: Only turns with numbers up to this one.
    ///   - limit: The maximum number of turns of a word.
    func turns(with words: [String], in conversation: String, count: Int, limit: Int) throws -> [[Int]]
    /// The numbers of words of turns.
    func wordCounts(of turns: [Int], in conversation: String) throws -> [Int: Int]
    /// The numbers of answered turns without a record of vectors, from a number on, the lowest first.
    func turnsWithoutVectors(in conversation: String, model: String, from number: Int, limit: Int) throws -> [Int]
    /// Adds records of vectors. Turns that have one keep it.
    func addVectors(_ records: [(turn: Int, vectors: Data)], in conversation: String, model: String) throws
    /// The records after a row, in the order in which they were added.
    func vectors(in conversation: String, model: String, after row: Int64) throws -> [VectorRow]
    /// The records of turns, in any order.
    func vectors(of turns: [Int], in conversation: String, model: String) throws -> [VectorRow]
}

/// The context of a conversation as it is stored.
package struct ContextRow: Sendable {
    package var context: Data?
    package var contextChecksum: Int64?
    /// A second copy of the data that no turn contains.
    package var head: Data?
    package var headChecksum: Int64?
    package var revision: Int64?

    package init(context: Data?, contextChecksum: Int64?, head: Data?, headChecksum: Int64?, revision: Int64? = nil) {
        self.context = context
        self.contextChecksum = contextChecksum
        self.head = head
        self.headChecksum = headChecksum
        self.revision = revision
    }
}

/// A turn as it is stored.
package struct TurnRow: Sendable {
    package var number: Int?
    package var prompt: Data?
    /// nil until the prompt is answered.
    package var entries: Data?
    /// When the prompt was sent, in seconds since 1970. Its column is `asked`.
    package var date: Double?
    package var checksum: Int64?
    /// Why the row cannot be read.
    package var problem: String?

    package init(number: Int?, prompt: Data?, entries: Data?, date: Double?, checksum: Int64?, problem: String? = nil) {
        self.number = number
        self.prompt = prompt
        self.entries = entries
        self.date = date
        self.checksum = checksum
        self.problem = problem
    }
}

/// The vectors of a turn as they are stored.
package struct VectorRow: Sendable {
    package var row: Int64
    package var turn: Int
    package var vectors: Data

    package init(row: Int64, turn: Int, vectors: Data) { (self.row, self.turn, self.vectors) = (row, turn, vectors) }
}

/// Which turns are read.
package enum TurnSelection: Sendable {
    /// This number and all higher ones.
    case from(Int)
    case numbers([Int])
}
