package import Grammar

/// What is to be generated: the prompt, and settings that hold for all parts of a turn.
package struct GenerationRequest: Sendable {
    /// The whole prompt. The prefix that the sequence already contains is not recomputed.
    package var input: ModelInput
    /// The tokens of the prompt.
    package var tokens: [TokenID] {
        get { input.ids }
        set { input = ModelInput(newValue) }
    }
    package var sampling: SamplingSettings
    /// The maximum number of tokens of reasoning and answer; nil for no limit other than the context size.
    package var maximumTokens: Int?
    /// The number of tokens of an answer without a grammar before which the model cannot end it.
    package var minimumTokens = 0
    /// Whether calls of tools count towards ``maximumTokens``, and a call or a guided answer for which there is no room ends the turn
    /// without it, as one that is cut. Otherwise such a call is an error.
    package var endsAtLimit = false
    /// Strings that end the answer; they are not part of it.
    package var stopStrings: [String]
    /// Tokens that end the answer; they are not part of it.
    package var stopTokens: Set<TokenID> = []
    /// Tokens that must not occur in the answer.
    package var bannedTokens: [TokenID] = []
    /// Tokens that must not be the first token of the answer.
    package var bannedFirstTokens: [TokenID] = []
    /// Whether generation stops when the answer repeats itself endlessly; see ``LoopDetector``.
    package var detectsLoops = true
    /// The grammar that constrains the answer; nil for free text.
    package var grammar: PendingGrammar?
    /// The number of most probable tokens that are reported for each generated token; nil to report no probabilities.
    package var topScores: Int?
    /// The layers after which the residual stream of the prompt's last token is reported.
    package var stateLayers: [Int] = []
    /// Whether tokens that repeat the prompt or the response are proposed and processed in one batch. Does not change the
    /// response.
    package var proposesTokens = true
    /// Whether forced tokens (the only ones that the grammar allows) are processed in one batch. Does not change the
    /// response.
    package var batchesForcedTokens = true

    package init(
        tokens: [TokenID], sampling: SamplingSettings, maximumTokens: Int? = nil, stopStrings: [String] = [],
        grammar: Grammar? = nil
    ) {
        self.grammar = grammar.map { PendingGrammar($0) }
        input = ModelInput(tokens)
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
    /// The response repeated itself endlessly. A guided value was closed where it was.
    case loop
    /// A guided value was closed where it was, because it was nested too deeply or its grammar needed too much memory.
    case grammarLimit
    /// `maximumTokens` was reached.
    case maximumTokens
    /// The context is full, so the response is incomplete.
    case contextFull
    /// The caller wants no more of it.
    case unwanted
}

/// Token counts and times of a response.
package struct GenerationUsage: Sendable, Equatable {
    /// Tokens in the prompt.
    package var promptTokens = 0
    /// Prompt tokens that were already in the KV cache.
    package var cachedTokens = 0
    /// Generated tokens, including the end-of-turn token.
    package var generatedTokens = 0
    /// Generated tokens that were the only ones the grammar allowed, so that they needed no sampling.
    package var forcedTokens = 0
    /// Tokens that were proposed because they followed the same tokens before, and those of them that were generated.
    package var proposedTokens = 0
    package var acceptedTokens = 0
    /// Seconds until prompt processing started, because other requests were processed.
    package var queueSeconds = 0.0
    /// Seconds from the start of prompt processing to the first logits.
    package var promptSeconds = 0.0
    /// Seconds from the first logits to the end of the response.
    package var generationSeconds = 0.0

    package init() {}
}

package struct GenerationResult: Sendable {
    package var stopReason: StopReason
    package var usage: GenerationUsage
    /// The tokens of reasoning.
    package var thoughtTokens = 0
    /// The tokens of the response, without the token that ended it.
    package var tokens: [TokenID] = []
    /// The stop token of the request that ended the response, if any.
    package var stopToken: TokenID?
    /// The stop string that ended the response, if any.
    package var stopString: String?
}

/// Why a response could not be generated or finished.
package enum GenerationFailure: Error, Equatable, CustomStringConvertible {
    /// The prompt fills the context, so that not even one token of response fits.
    case promptTooLong(tokens: Int, contextSize: Int)
    /// The chat template rendered the conversation as an empty prompt.
    case emptyPrompt
    /// The logits are not finite numbers, probably because the file is damaged.
    case unusableLogits
    /// Matching the grammar exceeded the memory limit for its patterns.
    case grammarTooComplex
    /// Even the shortest response that the grammar allows needs more tokens than are available.
    case budgetTooSmall(needed: Int, available: Int)
    /// There is no room in the context for an argument of a tool call.
    case argumentTooLong(tool: String, argument: String?, contextSize: Int)
    /// Too many requests to the same model wait already.
    case tooManyRequests(waiting: Int)
    /// The prompt has vectors that the model cannot process.
    case unusableInput(ModelInputError)
    /// The machine has no memory for the keys and values of the conversation, also without those of idle ones.
    case outOfMemory(bytes: Int)

    package var description: String {
        switch self {
        case .promptTooLong(let tokens, let contextSize):
            "The conversation has \(tokens) tokens, which exceeds the context size of \(contextSize). Shorten it or split it."
        case .emptyPrompt:
            "The model's chat template renders this conversation as an empty prompt."
        case .budgetTooSmall(let needed, let available):
            "The shortest possible response needs \(needed) tokens, but only \(available) are available. "
                + "Allow more tokens or request less."
        case .argumentTooLong(let tool, let argument, let contextSize):
            (argument.map { "The argument “\($0)” of the call to “\(tool)” does" } ?? "The arguments of the call to “\(tool)” do")
                + " not fit into the context of \(contextSize) tokens. Shorten the conversation, or let the tool take less at once."
        case .tooManyRequests(let waiting):
            "\(waiting) requests to this model wait already. Try again when some of them have ended."
        case .outOfMemory(let bytes):
            "There is not enough memory for the conversation: \(bytes / 1_000_000) MB more are needed. Try again when other requests "
                + "have ended, or use a smaller context or model."
        case .unusableInput(let error): error.description
        case .grammarTooComplex:
            "The response format is too complex: its patterns exceed the memory limit. Simplify them or request less."
        case .unusableLogits:
            "The model computed values that are not numbers; its file is probably damaged."
        }
    }
}
