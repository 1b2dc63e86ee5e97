/// Finds the turns of a conversation that are relevant for a prompt. ``HybridSearch`` compares words and meaning,
/// ``LexicalSearch`` words only; another search can replace them (``RecallPolicy/search``).
public protocol TurnSearch: Sendable {
    /// Returns the turns that are relevant for a prompt, best first.
    ///
    /// - Parameters:
    ///   - prompt: The user's prompt.
    ///   - conversation: The conversation's identifier in the archive.
    ///   - archive: The archive to search.
    ///   - count: Number of turns of the conversation. Turn numbers are less than this.
    ///   - known: The numbers of the turns that are already in the context; they must not be returned.
    nonisolated(nonsending) func turns(
        for prompt: String, in conversation: String, of archive: ConversationArchive, count: Int, except known: Set<Int>
    ) async throws -> [ScoredTurn]

    /// Prepares new turns of a conversation for searches. Called in the background after each answer; nothing waits for it.
    nonisolated(nonsending) func prepare(_ conversation: String, of archive: ConversationArchive) async throws
}

extension TurnSearch {
    /// Does nothing.
    public nonisolated(nonsending) func prepare(_ conversation: String, of archive: ConversationArchive) async throws {}
}

/// A turn that may be relevant for a prompt.
public struct ScoredTurn: Sendable, Codable, Equatable {
    /// The turn's number in the conversation.
    public var number: Int
    /// Determines the order of turns; only comparable between turns for the same prompt.
    public var score: Double
    /// The likelihood, from 0 to 1, that the prompt needs an earlier turn, judged by this turn.
    public var evidence: Double
    /// What the prompt and the turn have in common, for display.
    public var matches: [String]

    /// Creates a turn with its score.
    public init(number: Int, score: Double, evidence: Double, matches: [String] = []) {
        (self.number, self.score, self.evidence, self.matches) = (number, score, evidence, matches)
    }
}
