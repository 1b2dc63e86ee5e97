internal import Inference

/// Whether a message is for a tool, for models that were not trained to call any.
///
/// A small model does not follow when it is asked which tool to use, but it does know what people write to whom. So the message
/// is what is scored: how probable it is as something said to each tool, or to an assistant who needs none (a noisy channel,
/// arXiv:2108.04106). Nothing but a tool or an answer can come out of it.
struct ToolChoice {
    /// Someone to whom a message may be said; nil is an assistant without tools.
    struct Listener {
        let tool: Transcript.ToolDefinition?
        /// What is said before the message.
        let introduction: String
    }

    let listeners: [Listener]
    /// What was asked last.
    let message: String

    /// - Parameter mayAnswer: Whether none of the tools is a choice.
    /// - Returns: nil if there is nothing to choose: no tool is left that has not been called for this message.
    init?(transcript: Transcript, tools: [Transcript.ToolDefinition], mayAnswer: Bool) {
        var message = ""
        var called: Set<String> = []
        for entry in transcript {
            switch entry {
            case .prompt(let prompt):
                message = prompt.segments.modelText
                called = []
            case .toolCalls(let calls): called.formUnion(calls.map(\.toolName))
            default: break
            }
        }
        // A model that has not learned when it is done would call for ever: one round of calls for each tool and message.
        let open = mayAnswer ? tools.filter { !called.contains($0.name) } : tools
        if open.isEmpty { return nil }
        self.message = message
        var listeners = open.map {
            Listener(tool: $0, introduction: "The user writes a message. It is for this tool: \($0.description)")
        }
        if mayAnswer {
            listeners.append(
                Listener(
                    tool: nil,
                    introduction: "The user writes a message. It needs no tool: small talk, a question about the world, a wish "
                        + "for a text."))
        }
        self.listeners = listeners
    }

    /// The prompt up to the message, as the model reads it when it listens.
    func prompt(for listener: Listener, _ model: LoadedModel) throws -> [TokenID] {
        let pieces = try model.template.render(
            [ChatMessage(role: .system, content: listener.introduction), ChatMessage(role: .user, content: message)],
            addGenerationPrompt: false)
        let place = pieces.lastIndex { if case .user = $0 { true } else { false } } ?? pieces.endIndex
        return model.tokenizer.encode(Array(pieces[..<place]))
    }
}
