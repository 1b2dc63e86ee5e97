/// A part of a model's turn, which ends by itself: ``TurnPlan`` then decides what follows.
struct TurnPhase {
    enum Kind {
        /// Text without a grammar.
        case free
        /// Text that conforms to a grammar.
        case constrained(PendingGrammar)
        /// One of several sequences of tokens, none of which begins with another one.
        case choice([[TokenID]])
        /// No text: something is asked of the model beside the turn.
        case question(TurnQuestion)
    }

    /// What the text of a phase is.
    enum Output {
        case answer
        case thought
        /// A part of a call, which only the plan reads.
        case call
    }

    var kind: Kind
    var output = Output.answer
    /// The maximum number of tokens; nil for no limit other than the context size.
    var maximumTokens: Int?
    /// The number of tokens before which the model cannot end the phase.
    var minimumTokens = 0
    /// Strings and tokens that end the phase; they are not part of its text.
    var stopStrings: [String] = []
    var stopTokens: Set<TokenID> = []
    /// Texts that end the phase if it begins with one of them, after white space; they are not part of its text.
    var openings: [String] = []
    /// A token that ends the phase if it is the first one.
    var firstStopToken: TokenID?
    var bannedTokens: [TokenID] = []
    var bannedFirstTokens: [TokenID] = []
    /// Tools that are called if the text begins with a call of them.
    var callableTools: [String] = []
    /// Whether the phase ends with the first text that is neither a stop string nor the beginning of a call.
    var endsWithText = false
    /// Whether white space at the beginning is left out of the text.
    var trimsStart = false
    /// Whether the phase ends when it repeats itself endlessly.
    var detectsLoops = false
}

/// Asks how probable tokens are after another prompt, on a branch of the sequence: nothing of it becomes part of the turn, and the
/// sequence keeps its tokens.
struct TurnQuestion {
    var prompt: [TokenID]
    var tokens: [TokenID]
}

/// How a phase ended.
struct PhaseEnd {
    var reason: StopReason
    /// The tokens of the phase, without the token or string that ended it.
    var tokens: [TokenID] = []
    /// The text of the phase if it is a part of a call.
    var text = ""
    var stopToken: TokenID?
    var stopString: String?
    /// The tool whose call the text began with.
    var calledTool: String?
    /// The tokens that the turn has generated so far, including this phase.
    var generatedTokens = 0
    /// Whether the phase was an answer without any text but white space.
    var isBlank = false
    /// The answer to a question: the natural logarithm of the probability of its tokens.
    var logValue = 0.0
    /// The number of bytes of the text after which a constrained text was shortened, because there was no room for more.
    var shortenedAt: Int?
}

/// An event in a model's turn.
package enum TurnEvent: Sendable {
    /// Part of the answer.
    case text(GeneratedText)
    /// Part of the reasoning before the answer.
    case thought(GeneratedText)
    case call(ChatToolCall)
    /// The residual stream of the prompt's last token after a layer that the request names, `[width]`. Before all other events.
    case state([Float], layer: Int)
}
