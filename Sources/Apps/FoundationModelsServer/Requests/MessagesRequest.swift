internal import Inference
internal import JSON

/// POST /v1/messages of Anthropic's API: https://docs.anthropic.com/en/api/messages
///
/// Coding agents send fields and tools that only Anthropic's server knows, and end with an error that they cannot handle: these are left
/// out, and named in a header of the reply.
struct MessagesRequest: Sendable {
    var turn: TurnRequest
    var isStreamed = false
    /// What was left out.
    var skipped: [String] = []

    /// - Parameter needsLimit: whether `max_tokens` must be there, as for answers but not for counts.
    init(_ body: JSONValue, needsLimit: Bool = true) throws(RequestError) {
        var fields = try Fields(body)
        turn = TurnRequest(model: try fields.string("model") ?? "default", input: .text(""))
        var chat = TurnRequest.Chat()
        if let limit = try fields.int("max_tokens", in: 1...Int.max) {
            turn.maximumTokens = limit
        } else if needsLimit {
            throw .invalid("max_tokens", "“max_tokens” is missing.")
        }
        turn.sampling.temperature = try fields.number("temperature", in: 0...1)
        turn.sampling.topP = try fields.number("top_p", in: 0...1)
        if let topK = try fields.int("top_k", in: 0...(1 << 20)), topK > 0 { turn.sampling.topK = topK }
        turn.stops = try fields.readStops("stop_sequences")
        isStreamed = try fields.bool("stream") ?? false

        let system = try Self.system(&fields)
        if !system.isEmpty { chat.messages.append(ChatMessage(role: .system, content: system)) }
        guard let messages = try fields.objects("messages") else { throw .invalid("messages", "“messages” is missing.") }
        guard !messages.isEmpty else { throw .invalid("messages", "“messages” is empty.") }
        guard messages.count <= ChatRequest.maximumMessages else {
            throw .invalid("messages", "“messages” has too many messages.")
        }
        var names: [String: String] = [:]
        for var message in messages { try Self.add(&message, to: &chat.messages, &names) }
        try chat.takePrefill(nil)
        try readTools(&fields)

        if var thinking = try fields.object("thinking") {
            if try thinking.choice("type", ["enabled", "disabled", "adaptive"]) == "enabled" {
                let budget = try thinking.int("budget_tokens", in: 1...Int.max) ?? 4_096
                chat.thinking = budget < 2_048 ? .low : budget < 8_192 ? .medium : .high
            }
            thinking.ignore("budget_tokens", "display")
            try thinking.finish()
        }
        turn.format = try Self.format(&fields)
        if chat.prefill != nil, let format = turn.format {
            throw .invalid(format.place, "An answer that is begun by the last message cannot have a form as well.")
        }
        fields.ignore("metadata", "service_tier")
        turn.input = .chat(chat)
        skipped += fields.unread
    }

    private static func system(_ fields: inout Fields) throws(RequestError) -> String {
        guard let value = fields.value("system") else { return "" }
        if let text = value.string { return text }
        var texts: [String] = []
        for var block in try fields.objects("system") ?? [] {
            guard try block.string("type") ?? "text" == "text" else { continue }
            let text = try block.string(required: "text")
            // What agents tell the service of their accounts is no part of the prompt: it changes with each version of theirs.
            if texts.isEmpty, text.hasPrefix("x-anthropic-billing-header") { continue }
            texts.append(text)
        }
        return texts.joined(separator: "\n\n")
    }

    private static func add(
        _ fields: inout Fields, to messages: inout [ChatMessage], _ names: inout [String: String]
    ) throws(RequestError) {
        let role = try fields.choice("role", ["user", "assistant", "system"])
        guard let role else { throw .invalid(fields.place("role"), "“\(fields.place("role"))” is missing.") }
        guard let content = fields.value("content") else {
            throw .invalid(fields.place("content"), "“\(fields.place("content"))” is missing.")
        }
        var message = ChatMessage(role: role == "user" ? .user : role == "system" ? .system : .assistant, content: "")
        if let text = content.string {
            message.content = text
            messages.append(message)
            return
        }
        var texts: [String] = []
        for var block in try fields.objects("content") ?? [] {
            switch try block.string(required: "type") {
            case "text": texts.append(try block.string(required: "text"))
            case "thinking": message.reasoning = try block.string("thinking")
            case "redacted_thinking": break
            case "tool_use":
                let call = ChatToolCall(
                    id: try block.string(required: "id"), name: try block.string(required: "name"),
                    arguments: block.value("input") ?? .object([]))
                names[call.id] = call.name
                message.toolCalls.append(call)
            case "tool_result":
                let id = try block.string(required: "tool_use_id")
                var result = ChatMessage(role: .tool, content: try text(of: &block, "content"))
                if try block.bool("is_error") == true { result.content = "Error: " + result.content }
                (result.toolCallID, result.toolName) = (id, names[id])
                messages.append(result)
            default: throw .unsupportedValue(block.place("type"), "models of this server read text only.")
            }
        }
        message.content = texts.joined(separator: "\n")
        // A message that has results of calls only is these results.
        if message.role != .user || !texts.isEmpty { messages.append(message) }
    }

    private static func text(of block: inout Fields, _ name: String) throws(RequestError) -> String {
        guard let value = block.value(name) else { return "" }
        if let text = value.string { return text }
        var texts: [String] = []
        for var part in try block.objects(name) ?? [] {
            guard try part.string("type") ?? "text" == "text" else {
                throw .unsupportedValue(part.place("type"), "models of this server read text only.")
            }
            texts.append(try part.string(required: "text"))
        }
        return texts.joined(separator: "\n")
    }

    private mutating func readTools(_ fields: inout Fields) throws(RequestError) {
        for var tool in try fields.objects("tools") ?? [] {
            // Tools of the service itself have a type, and no schema.
            let type = try tool.string("type") ?? "custom"
            guard type == "custom", let schema = tool.value("input_schema") else {
                skipped.append("\(tool.place("type")) \(type)")
                continue
            }
            turn.tools.tools.append(
                ToolUse.Tool(
                    name: try ToolUse.Tool.name(&tool), description: try tool.string("description") ?? "",
                    parameters: ToolUse.Tool.parameters(schema),
                    isStrict: try tool.bool("strict") ?? false, place: tool.place("input_schema")))
        }
        guard var choice = try fields.object("tool_choice") else { return try turn.tools.check(param: "tool_choice") }
        switch try choice.string(required: "type") {
        case "auto": turn.tools.choice = .auto
        case "any": turn.tools.choice = .required
        case "none": turn.tools.choice = .none
        case "tool": turn.tools.choice = .named(try choice.string(required: "name"))
        default: throw .invalid("tool_choice.type", "“tool_choice.type” must be “auto”, “any”, “tool” or “none”.")
        }
        turn.tools.allowsSeveral = try choice.bool("disable_parallel_tool_use") != true
        try choice.finish()
        try turn.tools.check(param: "tool_choice")
    }

    /// `output_format`, or `output_config.format`: a schema of the answer.
    private static func format(_ fields: inout Fields) throws(RequestError) -> AnswerFormat? {
        var format = try fields.object("output_format")
        if var config = try fields.object("output_config") {
            if let own = try config.object("format") { format = own }
            config.ignore("effort")
            try config.finish()
        }
        guard var format else { return nil }
        guard try format.choice("type", ["json_schema", "text"]) == "json_schema" else { return nil }
        return try format.readNamedSchema()
    }
}

extension Fields {
    /// The names of the fields that nobody has read.
    var unread: [String] { unreadNames.map { place($0) } }
}
