package import Grammar

/// A message of a conversation, as chat templates see it.
package struct ChatMessage: Sendable, Equatable {
    package enum Role: String, Sendable { case system, user, assistant, tool }
    package var role: Role
    package var content: String
    /// The calls that an assistant made.
    package var toolCalls: [ChatToolCall] = []
    /// What an assistant thought before it answered.
    package var reasoning: String?
    /// The tool that a result comes from, and the call that it answers.
    package var toolName: String?
    package var toolCallID: String?

    package init(role: Role, content: String) {
        self.role = role
        self.content = content
    }
}

/// A call of a tool.
package struct ChatToolCall: Sendable, Equatable {
    package var id: String
    package var name: String
    /// An object.
    package var arguments: JSONValue

    package init(id: String, name: String, arguments: JSONValue) {
        self.id = id
        self.name = name
        self.arguments = arguments
    }
}

/// A tool as a model is told about it.
package struct ChatTool: Sendable, Equatable {
    package var name: String
    package var description: String
    /// JSON Schema of the arguments: what calls are held to.
    package var parameters: JSONValue
    /// The same as the model reads it; nil if it is not told.
    package var shownParameters: JSONValue?

    package init(name: String, description: String, parameters: JSONValue, shownParameters: JSONValue? = nil) {
        self.name = name
        self.description = description
        self.parameters = parameters
        self.shownParameters = shownParameters
    }
}

/// How long a model is to think before it answers.
package enum ThinkingLevel: String, Sendable { case off, low, medium, high }

/// A conversation and what belongs to it, ready for a model's template.
package struct ChatPrompt: Sendable, Equatable {
    package var messages: [ChatMessage]
    package var tools: [ChatTool]
    package var thinking: ThinkingLevel

    package init(_ messages: [ChatMessage], tools: [ChatTool] = [], thinking: ThinkingLevel = .off) {
        self.messages = messages
        self.tools = tools
        self.thinking = thinking
    }
}
