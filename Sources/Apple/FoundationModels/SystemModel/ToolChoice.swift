internal import Foundation
package import Inference
internal import ModelPrompts

/// The tools for which a message may be, with the introduction of each, for models that were not trained to call tools: see
/// `TurnPlan+Recipients.swift`.
package struct ToolChoice {
    /// A possible recipient of the message; a nil tool means an assistant without tools.
    struct Recipient {
        let tool: Transcript.ToolDefinition?
        /// The system message before the user's message.
        let introduction: String
    }

    let recipients: [Recipient]
    /// The text of the last prompt.
    let message: String

    /// - Parameter allowsResponse: Whether a response without a tool call is a choice.
    /// - Returns: Nil if there is nothing to choose from: all tools have been called for this message.
    package init?(transcript: Transcript, tools: [Transcript.ToolDefinition], allowsResponse: Bool) {
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
        // A model that was not trained to stop would call endlessly, so each tool is called in one round per message
        // at most.
        let open = allowsResponse ? tools.filter { !called.contains($0.name) } : tools
        if open.isEmpty { return nil }
        // Many templates remove this white space; the message must end as it does in the prompt.
        self.message = message.trimmingCharacters(in: .whitespacesAndNewlines)
        var recipients = open.map {
            Recipient(tool: $0, introduction: ModelPrompts.message(to: $0.description))
        }
        if allowsResponse {
            recipients.append(
                Recipient(tool: nil, introduction: ModelPrompts.messageToNone))
        }
        self.recipients = recipients
    }

    /// Adds the tokens of the message and of the prompts before it.
    ///
    /// - Throws: `TemplateError`, or `GenerationFailure.emptyPrompt`.
    package func add(to tools: inout TurnTools, _ model: LoadedModel) throws {
        if recipients.count == 1 {
            tools.recipients = recipients.map { TurnRecipient(tool: $0.tool.map { ChatTool($0) }, prompt: []) }
            return
        }
        // Of a message that is longer than a batch, only the beginning counts.
        tools.message = Array(model.tokenizer.encode(message).prefix(EngineLimits.passTokens - 1))
        tools.recipients = try recipients.map { recipient in
            let prompt = model.tokenizer.encode(try prompt(for: recipient, model.template))
            if prompt.isEmpty { throw GenerationFailure.emptyPrompt }
            return TurnRecipient(tool: recipient.tool.map { ChatTool($0) }, prompt: prompt)
        }
    }

    /// The pieces of the prompt before the user's message.
    func prompt(for recipient: Recipient, _ template: ChatTemplate) throws -> [PromptPiece] {
        let pieces = try template.render(
            [ChatMessage(role: .system, content: recipient.introduction), ChatMessage(role: .user, content: message)],
            addGenerationPrompt: false)
        guard let place = pieces.lastIndex(where: { if case .user = $0 { true } else { false } }),
            case .user(let text) = pieces[place]
        else { return pieces }
        // Without system messages, the introduction is the beginning of the user's message.
        let isEnd = text.utf8.suffix(message.utf8.count).elementsEqual(message.utf8)
        let introduction = isEnd ? String(decoding: text.utf8.dropLast(message.utf8.count), as: UTF8.self) : ""
        return Array(pieces[..<place]) + (introduction.isEmpty ? [] : [.user(introduction)])
    }
}
