package import JSON

/// A message of a conversation, as passed to chat templates.
package struct ChatMessage: Sendable, Equatable {
    package enum Role: String, Sendable { case system, user, assistant, tool }
    package var role: Role
    package var content: String
    /// The tool calls that the assistant made.
    package var toolCalls: [ChatToolCall] = []
    /// The assistant's reasoning before the answer.
    package var reasoning: String?
    /// For a tool result: the name of the tool and the identifier of the call.
    package var toolName: String?
    package var toolCallID: String?

    package init(role: Role, content: String) {
        self.role = role
        self.content = content
    }
}

/// A tool call.
package struct ChatToolCall: Sendable, Equatable {
    package var id: String
    package var name: String
    /// A JSON object.
    package var arguments: JSONValue

    package init(id: String, name: String, arguments: JSONValue) {
        self.id = id
        self.name = name
        self.arguments = arguments
    }
}

/// A tool that is offered to a model.
package struct ChatTool: Sendable, Equatable {
    package var name: String
    package var description: String
    /// JSON Schema of the arguments; generated calls conform to it.
    package var parameters: JSONValue
    /// The schema as it appears in the prompt; nil if the prompt does not include it.
    package var promptParameters: JSONValue?

    package init(name: String, description: String, parameters: JSONValue, promptParameters: JSONValue? = nil) {
        self.name = name
        self.description = description
        self.parameters = parameters
        self.promptParameters = promptParameters
    }
}

/// The amount of reasoning before the answer.
package enum ThinkingLevel: String, Sendable { case off, low, medium, high }

/// A conversation with its tools and reasoning level: the input of a chat template.
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
