package import Grammar

/// One response to generate.
package struct GenerationRequest: Sendable {
    /// The whole prompt. What the sequence already holds of it is not computed again.
    package var tokens: [TokenID]
    package var sampling: SamplingSettings
    /// Tokens after which the response is cut, nil for as many as the context holds.
    package var maximumTokens: Int?
    /// Texts at which the response ends; they are not part of it.
    package var stopStrings: [String]
    /// Tokens at which the response ends; they are not part of it.
    package var stopTokens: Set<TokenID> = []
    /// Tokens that are never chosen.
    package var bannedTokens: [TokenID] = []
    /// Tokens that the response does not begin with.
    package var bannedFirstTokens: [TokenID] = []
    /// Whether a text that repeats itself without end is stopped.
    package var stopsLoops = true
    /// What the response must be; nil for any text.
    package var grammar: Grammar?
    /// Whether tokens that the grammar leaves no choice about are computed in one batch. The response is the same.
    package var usesFastForward = true

    package init(
        tokens: [TokenID], sampling: SamplingSettings, maximumTokens: Int? = nil, stopStrings: [String] = [],
        grammar: Grammar? = nil
    ) {
        self.grammar = grammar
        self.tokens = tokens
        self.sampling = sampling
        self.maximumTokens = maximumTokens
        self.stopStrings = stopStrings
    }
}

/// Why a response ended.
package enum StopReason: String, Sendable {
    /// The model ended its turn.
    case endOfTurn
    /// A stop string or a stop token of the request appeared.
    case stopString
    /// The response repeated itself without end; the repetitions are not part of it.
    case loop
    /// `maximumTokens` was reached.
    case maximumTokens
    /// The context is full: the response is cut in the middle.
    case contextFull
    /// Whoever takes the text wanted no more of it.
    case unwanted
}

/// What a response cost.
package struct GenerationUsage: Sendable, Equatable {
    /// Tokens of the prompt.
    package var promptTokens = 0
    /// Those of them whose keys and values were still in the cache.
    package var cachedTokens = 0
    /// Tokens generated, the end-of-turn token included.
    package var generatedTokens = 0
    /// Those of them that the grammar left no choice about: the model was not asked.
    package var forcedTokens = 0
    /// Seconds spent on the part of the prompt that was not cached, until the first logits.
    package var promptSeconds = 0.0
    /// Seconds from the first logits to the end.
    package var generationSeconds = 0.0

    package init() {}

    /// Adds what another part of the same response cost. The prompt is that of the first part.
    package mutating func add(_ other: GenerationUsage) {
        if promptTokens == 0 {
            promptTokens = other.promptTokens
            cachedTokens = other.cachedTokens
            promptSeconds = other.promptSeconds
        } else {
            generationSeconds += other.promptSeconds
        }
        generatedTokens += other.generatedTokens
        forcedTokens += other.forcedTokens
        generationSeconds += other.generationSeconds
    }
}

package struct GenerationResult: Sendable {
    package var stopReason: StopReason
    package var usage: GenerationUsage
    /// The tokens of the response, without the one that ended it.
    package var tokens: [TokenID] = []
    /// The stop token of the request that ended it.
    package var stopToken: TokenID?
    /// The stop string that ended it.
    package var stopString: String?
    /// Where a loop was cut off: bytes of the text that are kept.
    package var keptBytes: Int?
}

/// Why a response could not be generated or finished.
package enum GenerationFailure: Error, Equatable, CustomStringConvertible {
    /// The prompt leaves no room for even one token of response.
    case promptTooLong(tokens: Int, contextSize: Int)
    /// The chat template made nothing of the conversation: there is nothing to continue.
    case emptyPrompt
    /// The model's output is not a number: its file is damaged.
    case unusableLogits
    /// What the response must be cannot be followed any further: its patterns need more memory than there is for them.
    case grammarTooComplex
    /// Even the shortest response that the grammar allows needs more tokens than there are.
    case budgetTooSmall(needed: Int, available: Int)

    package var description: String {
        switch self {
        case .promptTooLong(let tokens, let contextSize):
            "The conversation has \(tokens) tokens, which exceeds the context size of \(contextSize). Shorten it or split it."
        case .emptyPrompt:
            "The model's chat template gives no text for this conversation."
        case .budgetTooSmall(let needed, let available):
            "The shortest possible response needs \(needed) tokens, but only \(available) are left for it. Allow more, or ask for less."
        case .grammarTooComplex:
            "The format of the response became too complex to follow. Simplify its patterns, or ask for less."
        case .unusableLogits:
            "The model computed values that are not numbers; its file is probably damaged."
        }
    }
}
