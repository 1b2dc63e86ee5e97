/// How a conversation is kept within its window.
public struct ContextPolicy: Sendable {
    /// The share of the window above which the context is made smaller, after the answer that reached it. Where this
    /// would not leave enough space for the next prompt and its response, compaction starts earlier. Turns that recall
    /// has put in front of prompts do not count, because they are removed anyway.
    public var threshold = 0.85
    /// Tokens reserved for a response; nil for a quarter of the window and at most 512. Never more than half of the
    /// window. A smaller `maximumResponseTokens` of a request takes precedence.
    public var responseReserve: Int?
    /// The steps that make a context smaller, in order.
    public var steps: [CompactionStep]
    /// How turns that are not in the context are recalled; nil for no recall.
    public var recall: RecallPolicy?

    /// Creates a policy with these steps.
    public init(steps: [CompactionStep], recall: RecallPolicy? = RecallPolicy()) {
        self.steps = steps
        self.recall = recall
    }

    /// Reduces the context to 22 % of the window: 17 % for the newest turns, and the rest for notable sentences of the
    /// others. Evicted turns are recalled when a prompt needs them. A few large reductions are cheaper than many small
    /// ones: the remaining context is computed again once, not at every turn.
    public static var standard: ContextPolicy {
        ContextPolicy(steps: [.dropToolExchanges(), .recentTurns(share: 0.17), .notableSentences(share: 0.05)])
    }

    /// Like ``standard``, with a summary by the model instead of notable sentences, which takes a tenth of the window.
    public static var summarizing: ContextPolicy {
        ContextPolicy(steps: [.dropToolExchanges(), .recentTurns(share: 0.17), .summary(share: 0.1)])
    }

    /// Starts with an empty context when the window is full; only pinned facts are kept.
    public static var reset: ContextPolicy { ContextPolicy(steps: [.reset], recall: nil) }

    /// The share of the window that is kept free for recalled text.
    private static let recallShare = 0.075

    /// The number of tokens above which the context is made smaller. It leaves space for the next prompt, which is
    /// assumed to be as long as the previous ones, for the response, and for a part of the recalled turns. Unless
    /// ``threshold`` is lower, it is more than half of the window, which is the maximum that a compaction leaves.
    func threshold(contextSize: Int, reserve: Int, promptTokens: Int) -> Int {
        let needed = reserve + promptTokens + (recall == nil ? 0 : contextSize.share(Self.recallShare))
        return min(contextSize.share(threshold), max(contextSize - needed, contextSize / 2 + contextSize / 16))
    }

    func reserve(contextSize: Int, limit: Int?) -> Int {
        let reserve = max(1, min(responseReserve ?? min(512, contextSize / 4), contextSize / 2))
        return max(1, min(reserve, limit ?? reserve))
    }
}
