/// The functions of a tokenizer that a plan needs.
struct TurnVocabulary: Sendable {
    /// The tokens of text in which control tokens count.
    var encode: @Sendable (String) -> [TokenID]
    /// The tokens of text in which they do not.
    var encodePlain: @Sendable (String) -> [TokenID]
    /// The control token with a name.
    var specialToken: @Sendable (String) -> TokenID?
}

extension TurnVocabulary {
    init(_ tokenizer: Tokenizer) {
        encode = { tokenizer.encode([.template($0)]) }
        encodePlain = { tokenizer.encode([.user($0)]) }
        specialToken = { tokenizer.vocabulary.specialToken(named: $0) }
    }
}

/// The tools of a turn, and what is known of their calls.
package struct TurnTools: Sendable {
    /// The tools that may be called in this turn; calls of all others are prevented.
    package var callable: [ChatTool] = []
    /// Whether the prompt has tools, callable in this turn or not, or calls of them.
    package var areInPrompt = false
    /// Whether the model must call a tool.
    package var mustCall = false
    /// The maximum number of calls in the turn.
    package var maximumCalls = 8
    /// The names of tools that may be called again with the same arguments.
    package var repeatable: Set<String> = []
    /// Calls that have been made for the same prompt, which are not made again.
    package var madeCalls: [ChatToolCall] = []
    /// For a model that was not trained to call tools: who the message may be for. Empty for other models.
    package var recipients: [TurnRecipient] = []
    /// The user's message, without white space around it.
    package var message: [TokenID] = []

    package init() {}
}

/// A tool, or an assistant without tools, to which a message may be written.
package struct TurnRecipient: Sendable {
    /// Nil for an assistant without tools.
    package var tool: ChatTool?
    /// The prompt before the message.
    package var prompt: [TokenID]

    package init(tool: ChatTool?, prompt: [TokenID]) { (self.tool, self.prompt) = (tool, prompt) }
}

/// What a turn in the chat format of a model may contain besides the answer.
struct ChatTurn: Sendable {
    var tools = TurnTools()
    var toolFormat: ToolFormat?
    var thinkingFormat: ThinkingFormat?
    /// The context size, for errors.
    var contextSize = 0
    /// The grammar of all arguments of a tool, or of one of them, and of the text that follows, compiled when a call needs it.
    var grammar: @Sendable (ChatTool, ChatTool.Property?, _ after: String) -> PendingGrammar? = { _, _, _ in nil }
    /// The grammar of a list of calls of at most so many of these tools, for models that were not trained to call tools.
    var callList: @Sendable ([ChatTool], Int) -> PendingGrammar? = { _, _ in nil }
}
