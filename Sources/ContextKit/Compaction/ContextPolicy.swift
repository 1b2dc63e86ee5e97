/// How a conversation is kept within its window.
public struct ContextPolicy: Sendable {
    /// The share of the window at which a context is made smaller, after the answer that reached it.
    public var threshold = 0.85
    /// Tokens kept free for a response; nil for a quarter of the window, 512 at the most. A request's own
    /// `maximumResponseTokens` counts if it is less.
    public var responseReserve: Int?
    /// What is done to make a context smaller, in order.
    public var steps: [CompactionStep]
    /// How turns that are not in the context come back; nil if they do not.
    public var recall: RecallPolicy?

    /// A policy of these steps.
    public init(steps: [CompactionStep], recall: RecallPolicy? = RecallPolicy()) {
        self.steps = steps
        self.recall = recall
    }

    /// One deep cut to a quarter of the window, notable sentences carried over, evicted turns recalled when a prompt needs
    /// them. Deep cuts are cheap: what stays in the context is computed again once, not at every turn.
    public static var standard: ContextPolicy {
        ContextPolicy(steps: [.dropToolExchanges(), .recentTurns(share: 0.25), .notableSentences()])
    }

    /// As ``standard``, with a summary that the model writes.
    public static var summarizing: ContextPolicy {
        ContextPolicy(steps: [.dropToolExchanges(), .recentTurns(share: 0.25), .summary()])
    }

    /// Begins anew when the window is full; nothing is carried but pinned facts.
    public static var reset: ContextPolicy { ContextPolicy(steps: [.reset], recall: nil) }

    func reserve(contextSize: Int, limit: Int?) -> Int {
        let reserve = max(1, min(responseReserve ?? min(512, contextSize / 4), contextSize / 2))
        return max(1, min(reserve, limit ?? reserve))
    }
}

/// When and how evicted turns come back into the context.
///
/// Most prompts need nothing from before, and what is recalled for nothing costs time at every turn. So a prompt that speaks of
/// the user or of the past ("my", "we", "earlier", and their like in some other languages) recalls what shares its rare words;
/// any other prompt only what is nearly the same and has several of them.
public struct RecallPolicy: Sendable {
    /// The share of the window that recalled turns may have for one prompt.
    public var share = 0.06
    /// Turns that match, at the most; each may bring its neighbours.
    public var greatestCount = 3
    /// What share of a prompt's weight in rare words a turn has to contain, if the prompt speaks of the user or of the past.
    /// Lower finds more, and more that is not needed.
    public var threshold = 0.35
    /// The same for all other prompts; 1 and more recalls nothing for them.
    public var strictThreshold = 0.75
    /// Rare words that a turn has to share with those other prompts.
    public var strictWordCount = 3

    /// The values that were measured to be good.
    public init() {}
}
