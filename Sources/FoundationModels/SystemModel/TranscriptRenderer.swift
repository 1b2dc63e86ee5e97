internal import Grammar
internal import Inference

/// Transcript entries as the chat messages that a model's template expects.
///
/// Each entry's text depends on nothing but itself and the entries before it, so that what a model has read stays in its
/// cache when the conversation goes on.
struct TranscriptRenderer {
    private let isTagging: Bool

    init(_ model: LocalModel) { isTagging = model.isTagging }

    private static let tagging = """
        You tag texts. Name what a text is about: topics, emotions, actions and objects, each in one or two words, in lower \
        case, the most important first.
        """

    func messages(for entries: some Sequence<Transcript.Entry>) -> [ChatMessage] {
        var messages: [ChatMessage] = []
        var hasInstructions = false
        var calls: [String: Transcript.ToolCall] = [:]
        for entry in entries {
            switch entry {
            case .instructions(let instructions):
                hasInstructions = true
                messages.append(.init(role: .system, content: text(of: instructions)))
            case .prompt(let prompt): messages.append(.init(role: .user, content: Self.text(of: prompt)))
            case .response(let response): messages.append(.init(role: .assistant, content: response.segments.modelText))
            // Models that were not trained to call tools imitate calls that they read: they get to know the results only, as part
            // of the question.
            case .toolCalls(let new): for call in new { calls[call.id] = call }
            case .toolOutput(let output):
                let result = Self.result(output, of: calls[output.id])
                if messages.last?.role == .user {
                    messages[messages.count - 1].content += "\n" + result
                } else {
                    messages.append(.init(role: .user, content: result))
                }
            // What a model thought is its own business: it is not asked to read it again.
            case .reasoning: break
            }
        }
        if isTagging, !hasInstructions { messages.insert(.init(role: .system, content: Self.tagging), at: 0) }
        return messages
    }

    private func text(of instructions: Transcript.Instructions) -> String {
        var parts = isTagging ? [Self.tagging] : []
        let text = instructions.segments.modelText
        if !text.isEmpty { parts.append(text) }
        if !instructions.toolDefinitions.isEmpty {
            let lines = instructions.toolDefinitions.map { tool in
                let arguments = SchemaSketch.text(of: tool.parameters, isArguments: true)
                return "- \(tool.name)" + (tool.explainsParameters ? "(\(arguments))" : "")
                    + ": \(tool.description)"
            }
            parts.append("You can call these tools:\n" + lines.joined(separator: "\n"))
        }
        return parts.joined(separator: "\n\n")
    }

    static func text(of prompt: Transcript.Prompt) -> String {
        let text = prompt.segments.modelText
        guard let format = prompt.responseFormat, prompt.contextOptions.includeSchemaInPrompt != false else { return text }
        return text + "\n\nAnswer with JSON like this:\n\(SchemaSketch.text(of: format.schema))"
    }

    /// What a call gave, in a line: `weather(city: Rome): sunny`.
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
        return "\(output.toolName)(\(arguments)): \(output.segments.modelText)"
    }
}

extension [Transcript.Segment] {
    /// The segments as a model reads them: structures as the compact JSON that it writes itself.
    package var modelText: String {
        map { segment in
            switch segment {
            case .text(let text): text.content
            case .structure(let structure): structure.content.json.text
            case .attachment(let attachment): attachment.description
            }
        }.joined(separator: "\n")
    }
}
