package import Inference
internal import JSON
internal import ModelPrompts

/// Converts transcript entries to the conversation that a model's chat template expects.
///
/// The text of each entry depends only on the entry itself and those before it, so that the KV cache stays valid when
/// the conversation continues.
package struct TranscriptRenderer {
    private let isTagging: Bool
    /// Whether the model was trained to call tools: its template then receives tools, calls and results.
    private let hasToolFormat: Bool
    /// The instructions for conversations without instructions.
    private let ownInstructions: String?

    init(isTagging: Bool = false, _ facts: ModelFacts) {
        self.isTagging = isTagging
        hasToolFormat = facts.hasToolFormat
        ownInstructions = facts.defaults.instructions
    }

    package init(_ configuration: LocalModel, _ model: LoadedModel) {
        self.init(isTagging: configuration.isTagging, ModelFacts(model, hasTaskAdapter: false))
    }

    package func prompt(for entries: some Sequence<Transcript.Entry>, thinking: ThinkingLevel = .off) -> ChatPrompt {
        var messages: [ChatMessage] = []
        var tools: [ChatTool] = []
        var hasInstructions = false
        var calls: [String: Transcript.ToolCall] = [:]
        var thoughts: String?
        for entry in entries {
            switch entry {
            case .instructions(let instructions):
                hasInstructions = true
                if hasToolFormat { tools = instructions.toolDefinitions.map { ChatTool($0) } }
                var text = text(of: instructions)
                if text.isEmpty, !instructions.toolDefinitions.isEmpty { text = ownInstructions ?? "" }
                // For instructions with tools only, the template provides the text.
                if !text.isEmpty || instructions.toolDefinitions.isEmpty { messages.append(.init(role: .system, content: text)) }
            case .prompt(let prompt): messages.append(.init(role: .user, content: Self.text(of: prompt)))
            case .response(let response):
                var message = ChatMessage(role: .assistant, content: response.segments.modelText)
                message.reasoning = thoughts
                thoughts = nil
                messages.append(message)
            case .toolCalls(let new):
                for call in new { calls[call.id] = call }
                guard hasToolFormat else { break }
                var message = ChatMessage(role: .assistant, content: "")
                // Text before the calls belongs to the same turn.
                if let last = messages.last, last.role == .assistant, last.toolCalls.isEmpty {
                    message = last
                    messages.removeLast()
                }
                message.reasoning = message.reasoning ?? thoughts
                thoughts = nil
                message.toolCalls = new.map { ChatToolCall(id: $0.id, name: $0.toolName, arguments: $0.arguments.json) }
                messages.append(message)
            // Data is for programs: no template has a form for it.
            case .data: break
            case .toolOutput(let output):
                if hasToolFormat {
                    var message = ChatMessage(role: .tool, content: output.segments.modelText)
                    (message.toolName, message.toolCallID) = (output.toolName, output.id)
                    messages.append(message)
                } else if messages.last?.role == .user {
                    // Models that were not trained to call tools imitate calls in the prompt. They receive only the
                    // results, as part of the question.
                    messages[messages.count - 1].content += "\n" + Self.result(output, of: calls[output.id])
                } else {
                    messages.append(.init(role: .user, content: Self.result(output, of: calls[output.id])))
                }
            // Templates determine how much of the reasoning becomes part of the prompt again.
            case .reasoning(let reasoning): thoughts = reasoning.segments.modelText
            }
        }
        if isTagging, !hasInstructions {
            messages.insert(.init(role: .system, content: ModelPrompts.tagging), at: 0)
        } else if !hasInstructions, let ownInstructions {
            messages.insert(.init(role: .system, content: ownInstructions), at: 0)
        }
        return ChatPrompt(messages, tools: tools, thinking: thinking)
    }

    private func text(of instructions: Transcript.Instructions) -> String {
        var parts = isTagging ? [ModelPrompts.tagging] : []
        let text = instructions.segments.modelText
        if !text.isEmpty { parts.append(text) }
        if !instructions.toolDefinitions.isEmpty, !hasToolFormat {
            let lines = instructions.toolDefinitions.map { tool in
                let arguments = SchemaDescription.text(of: tool.parameters, isArguments: true)
                return "- \(tool.name)" + (tool.explainsParameters ? "(\(arguments))" : "")
                    + ": \(tool.description)"
            }
            parts.append(ModelPrompts.tools(lines))
        }
        return parts.joined(separator: "\n\n")
    }

    static func text(of prompt: Transcript.Prompt) -> String {
        let text = prompt.segments.modelText
        guard let format = prompt.responseFormat, prompt.contextOptions.includeSchemaInPrompt != false else { return text }
        return text + "\n\n" + SchemaDescription.request(for: format.schema.forResponse(format.schema.json))
    }

    /// The output of a call: `Result of weather(city: Rome): sunny`.
    private static func result(_ output: Transcript.ToolOutput, of call: Transcript.ToolCall?) -> String {
        var arguments = ""
        if case .object(let members)? = call?.arguments.json {
            arguments = members.map { member in
                if case .string(let text) = member.value {
                    "\(member.name): \(text)"
                } else {
                    "\(member.name): \(member.value.text)"
                }
            }.joined(separator: ", ")
        }
        return ModelPrompts.result(output.toolName, arguments, output.segments.modelText)
    }
}
