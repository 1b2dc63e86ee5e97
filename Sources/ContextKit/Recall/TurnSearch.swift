/// Finds the turns of a conversation that a prompt has to do with. ``LexicalSearch`` compares words; a search over embeddings, or
/// one that joins several, stands in the same place (``RecallPolicy/search``).
public protocol TurnSearch: Sendable {
    /// Turns that have to do with a prompt, the best first.
    ///
    /// - Parameters:
    ///   - prompt: What the user says.
    ///   - conversation: The conversation's name in the archive.
    ///   - count: How many turns the conversation has: their numbers are less.
    ///   - known: The numbers of the turns that are in the context already, which are not wanted.
    nonisolated(nonsending) func turns(
        for prompt: String, in conversation: String, of archive: ConversationArchive, count: Int, except known: Set<Int>
    ) async throws -> [ScoredTurn]
}

/// A turn that a prompt may need.
public struct ScoredTurn: Sendable, Codable, Equatable {
    /// Its number in the conversation.
    public var number: Int
    /// What turns are ordered by; it is compared with the scores of other turns for the same prompt only.
    public var score: Double
    /// How sure it is that the prompt needs something from before, from 0 to 1, judged by this turn.
    public var evidence: Double
    /// What the prompt and the turn have in common, for people.
    public var matches: [String]

    /// A turn with its score.
    public init(number: Int, score: Double, evidence: Double, matches: [String] = []) {
        (self.number, self.score, self.evidence, self.matches) = (number, score, evidence, matches)
    }
}
