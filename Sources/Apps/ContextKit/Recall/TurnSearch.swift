/// Finds what was said earlier in a conversation and is relevant for a prompt. ``HybridSearch`` compares words and meaning;
/// another search can replace it (``RecallPolicy/search``).
public protocol TurnSearch: Sendable {
    /// Returns what is relevant for a prompt, best first.
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

/// A turn, or one side of it, that may be relevant for a prompt.
public struct ScoredTurn: Sendable, Codable, Equatable {
    /// Who said something.
    public enum Side: String, Sendable, Codable {
        /// The user, in the prompt.
        case user
        /// The model, in its response, and the outputs of tools.
        case model
    }

    /// The turn's number in the conversation.
    public var number: Int
    /// The side that is relevant; nil for the whole turn.
    public var side: Side?
    /// The likelihood, from 0 to 1, that this is what the prompt needs, if it needs anything.
    public var score: Double
    /// The likelihood, from 0 to 1, that the prompt needs anything that was said earlier. Usually the same for all results.
    public var evidence: Double
    /// What the prompt and the turn have in common, for display.
    public var matches: [String]

    /// Creates a turn with its score.
    public init(number: Int, side: Side? = nil, score: Double, evidence: Double, matches: [String] = []) {
        (self.number, self.side, self.score, self.evidence, self.matches) = (number, side, score, evidence, matches)
    }
}
