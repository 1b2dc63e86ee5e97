/// When and how evicted turns come back into the context.
///
/// Most prompts need nothing from before, and what is recalled for nothing costs time. Whether a prompt does is judged by what the
/// archive knows: rare words, names, numbers and dates that an earlier turn has and the context does not. Turns that are recalled
/// stand in front of the prompt, at the end of the context, so that nothing before it has to be computed again; they leave it again
/// after one more turn, or when the room is needed.
public struct RecallPolicy: Sendable {
    /// The share of the window that recalled turns may have for one prompt, as far as it is free.
    public var share = 0.3
    /// How sure it has to be that a prompt needs something from before (``ScoredTurn/evidence``). 0 recalls for every prompt, more
    /// than 1 for none.
    public var minimumEvidence = 0.5
    /// Turns whose score is less than this share of the best one's are not brought back.
    public var minimumShareOfBest = 0.2
    /// Turns before and after a match that come with it, 8 at the most, as far as there is room: they often have the other half of
    /// what was said.
    public var neighbours = 1
    /// What finds the turns.
    public var search: any TurnSearch = LexicalSearch()

    /// Tokens that recalled turns may have. Doubtful evidence gets a fifth of the room, the best 70 % of it: everyday talk that
    /// opens recall by chance is cheap then, and the rest stays for the turn after. In small windows a share would not hold a single
    /// turn.
    func tokens(contextSize: Int, evidence: Double) -> Int {
        let certainty = min(1, 0.2 + max(0, evidence - minimumEvidence))
        return min(max(contextSize.share(share * certainty), min(128, contextSize / 4)), contextSize.share(share))
    }

    /// ``neighbours``, within sense.
    var reach: Int { neighbours.clamped(to: 0...8) }

    /// The values that were measured to be good.
    public init() {}
}
