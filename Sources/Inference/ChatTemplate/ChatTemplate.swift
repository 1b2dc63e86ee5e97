internal import Foundation
internal import JSON

/// The chat template of a model, parsed once: it converts messages to the text that the model continues.
///
/// Rendering returns pieces that separate the template's own text from the messages' text, so that a user's text cannot
/// end a turn or begin another one.
package struct ChatTemplate: Sendable {
    /// The template's source text in the model file.
    package let source: String
    private let nodes: [TemplateNode]
    private let beginningText: String
    private let endText: String
    /// Phi-4-mini's template reads the tools as JSON from the system message; others read them from any message.
    private let readsToolsOfFirstMessage: Bool
    private let readsToolsOfMessages: Bool

    package init(source: String, beginningText: String, endText: String) throws(TemplateError) {
        guard source.utf8.count <= 1 << 18 else { throw .syntax(line: 1, reason: "it is larger than 256 KB") }
        self.source = source
        self.beginningText = beginningText
        self.endText = endText
        nodes = try TemplateParser.parse(source)
        readsToolsOfFirstMessage = source.hasBytes(of: "message.tools")
        readsToolsOfMessages = source.hasBytes(of: "['tools']")
    }

    /// Renders a conversation.
    ///
    /// - Parameter addGenerationPrompt: whether to append the text that begins the model's turn.
    package func render(_ prompt: ChatPrompt, addGenerationPrompt: Bool) throws(TemplateError) -> [PromptPiece] {
        let tools = prompt.tools.map(Self.value)
        let list = prompt.messages.enumerated().map { index, message in
            Self.value(message, tools: readsToolsOfMessages || index == 0 && readsToolsOfFirstMessage ? tools : [])
        }
        var variables: [String: TemplateValue] = [
            "messages": .list(list), "add_generation_prompt": .bool(addGenerationPrompt),
            "bos_token": .text(beginningText), "eos_token": .text(endText),
            "enable_thinking": .bool(prompt.thinking != .off), "thinking": .bool(prompt.thinking != .off),
            "reasoning_effort": .text(prompt.thinking == .off ? "low" : prompt.thinking.rawValue),
        ]
        // Templates test whether `tools` is defined, so without tools it must not be an empty list.
        if !tools.isEmpty {
            variables["tools"] = .list(tools)
            variables["xml_tools"] = .list(tools)
        }
        return try render(variables: variables)
    }

    package func render(_ messages: [ChatMessage], addGenerationPrompt: Bool) throws(TemplateError) -> [PromptPiece] {
        try render(ChatPrompt(messages), addGenerationPrompt: addGenerationPrompt)
    }

    /// - Parameters:
    ///   - date: the time that `strftime_now` formats; nil for the current time.
    ///   - maximumSteps: the number of steps after which rendering fails.
    func render(
        variables: [String: TemplateValue], date: Date? = nil, maximumSteps: Int = TemplateInterpreter.maximumSteps
    ) throws(TemplateError) -> [PromptPiece] {
        try TemplateInterpreter.render(nodes, variables: variables, date: date, maximumSteps: maximumSteps).runs.map {
            $0.isUser ? .user($0.text) : .template($0.text)
        }
    }

    private static func value(_ message: ChatMessage, tools: [TemplateValue]) -> TemplateValue {
        var pairs: [(String, TemplateValue)] = [
            ("role", .text(message.role.rawValue)), ("content", .string(TemplateText(message.content, isUser: true))),
        ]
        if let reasoning = message.reasoning {
            pairs.append(("reasoning_content", .string(TemplateText(reasoning, isUser: true))))
        }
        if !message.toolCalls.isEmpty {
            pairs.append(
                (
                    "tool_calls",
                    .list(
                        message.toolCalls.map { call in
                            .dictionary(
                                TemplateDictionary([
                                    ("id", .text(call.id)), ("type", .text("function")),
                                    (
                                        "function",
                                        .dictionary(
                                            TemplateDictionary([
                                                ("name", .string(TemplateText(call.name, isUser: true))),
                                                ("arguments", TemplateValue(call.arguments)),
                                            ]))
                                    ),
                                ]))
                        })
                ))
        }
        if let name = message.toolName { pairs.append(("name", .string(TemplateText(name, isUser: true)))) }
        if let id = message.toolCallID { pairs.append(("tool_call_id", .text(id))) }
        if !tools.isEmpty { pairs.append(("tools", .string(TemplateValue.list(tools).json()))) }
        return .dictionary(TemplateDictionary(pairs))
    }

    private static func value(_ tool: ChatTool) -> TemplateValue {
        var function: [(String, TemplateValue)] = [
            ("name", .string(TemplateText(tool.name, isUser: true))),
            ("description", .string(TemplateText(tool.description, isUser: true))),
        ]
        if let parameters = tool.promptParameters { function.append(("parameters", TemplateValue(parameters))) }
        return .dictionary(
            TemplateDictionary([("type", .text("function")), ("function", .dictionary(TemplateDictionary(function)))]))
    }
}

extension TemplateValue {
    /// Creates a value from a conversation. Its strings are marked as user text.
    init(_ json: JSONValue) {
        switch json {
        case .null: self = .none
        case .bool(let value): self = .bool(value)
        case .number(let number):
            self = Int(number.text).map { .int($0) } ?? .float(Double(number.text) ?? 0)
        case .string(let text): self = .string(TemplateText(text, isUser: true))
        case .array(let values): self = .list(values.map { TemplateValue($0) })
        case .object(let members):
            self = .dictionary(TemplateDictionary(members.map { ($0.name, TemplateValue($0.value)) }))
        }
    }
}

extension String {
    /// Whether the UTF-8 bytes of `text` occur in this string. The first `contains` of the standard library takes milliseconds.
    func hasBytes(of text: String) -> Bool {
        let bytes = Array(utf8), wanted = Array(text.utf8)
        guard let first = wanted.first, bytes.count >= wanted.count else { return wanted.isEmpty }
        return (0...bytes.count - wanted.count).contains { bytes[$0] == first && bytes[$0...].starts(with: wanted) }
    }
}
