/// How a conversation is kept within its window.
public struct ContextPolicy: Sendable {
    /// The share of the window at which a context is made smaller, after the answer that reached it. In a window where the next
    /// prompt and its response would not have room then, it is done earlier. Turns that recall has put in front of prompts do not
    /// count: they leave by themselves.
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

    /// One deep cut, to 22 % of the window: 17 % for the newest turns, and the rest for notable sentences of the others; evicted turns are recalled when a prompt needs them. Deep cuts are cheap: what stays in the context is computed again once,
    /// not at every turn.
    public static var standard: ContextPolicy {
        ContextPolicy(steps: [.dropToolExchanges(), .recentTurns(share: 0.17), .notableSentences(share: 0.05)])
    }

    /// As ``standard``, with a summary that the model writes.
    public static var summarizing: ContextPolicy {
        ContextPolicy(steps: [.dropToolExchanges(), .recentTurns(share: 0.17), .summary(share: 0.05)])
    }

    /// Begins anew when the window is full; nothing is carried but pinned facts.
    public static var reset: ContextPolicy { ContextPolicy(steps: [.reset], recall: nil) }

    /// The tokens at which a context is made smaller: the next prompt, which is taken to be as long as the ones before, the response
    /// to it, and some of what it may recall must have room. Never so few that a context that was just made smaller reaches them.
    func threshold(contextSize: Int, reserve: Int, promptTokens: Int) -> Int {
        let needed = reserve + promptTokens + contextSize.share((recall?.share ?? 0) / 4)
        return min(contextSize.share(threshold), max(contextSize - needed, contextSize / 2 + contextSize / 16))
    }

    func reserve(contextSize: Int, limit: Int?) -> Int {
        let reserve = max(1, min(responseReserve ?? min(512, contextSize / 4), contextSize / 2))
        return max(1, min(reserve, limit ?? reserve))
    }
}
