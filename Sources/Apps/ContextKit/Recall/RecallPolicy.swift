/// When and how earlier turns are put back into the context.
///
/// Most prompts need no earlier turns, and an unnecessary recall costs time. The search estimates whether a prompt needs any, and
/// which (``ScoredTurn``). Recalled text is put in front of the prompt, at the end of the context, so that nothing before it has to be
/// computed again. It is removed after one more turn, or earlier if the space is needed.
public struct RecallPolicy: Sendable {
    /// The maximum share of the window for the text recalled for one prompt, as far as it is free.
    public var share = 0.75
    /// The minimum likelihood that a prompt needs anything that was said earlier (``ScoredTurn/evidence``). 0 recalls for every
    /// prompt, a value above 1 for none.
    public var minimumEvidence = Self.usualEvidence
    static let usualEvidence = 0.35
    /// Something is recalled if the likelihood that the prompt needs it, divided by its tokens, is at least this: the gain of a token. With
    /// 0.0001, a percentage point less of the evidence is found in public conversations, with a tenth fewer tokens for a question.
    public var minimumGain = 0.00003
    /// The search that finds what is relevant.
    public var search: any TurnSearch = HybridSearch()

    /// The maximum number of tokens of recalled text. An uncertain need gets a part of the share, so that an unnecessary recall is cheap.
    func tokens(contextSize: Int, evidence: Double) -> Int {
        let range = max(0.01, Self.certainEvidence - minimumEvidence)
        return contextSize.share(share * min(1, max(Self.smallestPart, (evidence - minimumEvidence) / range)))
    }

    /// The evidence from which on all of the share is used, and the part of it that the lowest evidence gets. In cross-validation over the
    /// conversations that the models were trained with, with a ranker, half of the questions have this evidence, and 0.5 % of the ordinary
    /// prompts.
    private static let certainEvidence = 0.8
    private static let smallestPart = 0.1

    /// Creates a policy with default values that were chosen by measurement.
    public init() {}
}
