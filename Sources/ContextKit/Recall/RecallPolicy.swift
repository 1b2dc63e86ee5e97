/// When and how evicted turns are put back into the context.
///
/// Most prompts need no earlier turns, and an unnecessary recall costs time. Whether a prompt needs any is estimated
/// from rare words, names, numbers and dates that occur in an earlier turn and not in the context. Recalled turns are
/// put in front of the prompt, at the end of the context, so that nothing before it has to be computed again. They are
/// removed after one more turn, or earlier if the space is needed.
public struct RecallPolicy: Sendable {
    /// The maximum share of the window for the turns recalled for one prompt, as far as it is free.
    public var share = 0.3
    /// The minimum likelihood that a prompt needs an earlier turn (``ScoredTurn/evidence``). 0 recalls for every
    /// prompt, a value above 1 for none.
    public var minimumEvidence = 0.5
    /// Turns whose score is below this share of the best score are not recalled.
    public var minimumShareOfBest = 0.2
    /// Number of turns before and after a match that are recalled with it, at most 8, as far as they fit. They often
    /// contain the other half of an exchange.
    public var neighbours = 1
    /// The search that finds the turns.
    public var search: any TurnSearch = HybridSearch()

    /// The maximum number of tokens of recalled turns. Low evidence gets a fifth of the share, high evidence up to 70
    /// %, so that an unnecessary recall is cheap and tokens remain for the next turn. The minimum is 128 tokens or a
    /// quarter of the window, because in a small window the share alone would not hold a single turn.
    func tokens(contextSize: Int, evidence: Double) -> Int {
        let certainty = min(1, 0.2 + max(0, evidence - minimumEvidence))
        return min(max(contextSize.share(share * certainty), min(128, contextSize / 4)), contextSize.share(share))
    }

    /// ``neighbours``, limited to the valid range.
    var reach: Int { neighbours.clamped(to: 0...8) }

    /// Creates a policy with default values that were chosen by measurement.
    public init() {}
}
