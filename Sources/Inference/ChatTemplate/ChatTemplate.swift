/// A message of a conversation, as chat templates see it.
package struct ChatMessage: Sendable, Equatable {
    package enum Role: String, Sendable { case system, user, assistant }
    package var role: Role
    package var content: String

    package init(role: Role, content: String) {
        self.role = role
        self.content = content
    }
}

/// The template that a model was trained with, parsed once: it turns messages into the text the model continues.
///
/// Rendering gives pieces that keep the template's own text and the messages' text apart, so that nothing a user writes
/// can end a turn or begin another.
package struct ChatTemplate: Sendable {
    /// The template's text in the file.
    package let source: String
    private let nodes: [TemplateNode]
    private let beginningText: String
    private let endText: String

    package init(source: String, beginningText: String, endText: String) throws(TemplateError) {
        guard source.utf8.count <= 1 << 20 else { throw .syntax(line: 1, reason: "it is larger than 1 MB") }
        self.source = source
        self.beginningText = beginningText
        self.endText = endText
        nodes = try TemplateParser.parse(source)
    }

    /// - Parameter addGenerationPrompt: ends with what opens the model's turn.
    package func render(_ messages: [ChatMessage], addGenerationPrompt: Bool) throws(TemplateError) -> [PromptPiece] {
        let list: [TemplateValue] = messages.map { message in
            .dictionary(
                TemplateDictionary([
                    ("role", .text(message.role.rawValue)),
                    ("content", .string(TemplateText(message.content, isUser: true))),
                ]))
        }
        let text = try TemplateInterpreter.render(
            nodes,
            variables: [
                "messages": .list(list), "add_generation_prompt": .bool(addGenerationPrompt),
                "bos_token": .text(beginningText), "eos_token": .text(endText),
            ])
        return text.runs.map { $0.isUser ? .user($0.text) : .template($0.text) }
    }
}
