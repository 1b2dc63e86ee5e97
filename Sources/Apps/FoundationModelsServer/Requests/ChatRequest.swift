internal import Inference
internal import JSON

/// How a reply is sent.
struct ReplyOptions: Sendable {
    var isStreamed = false
    /// Whether a stream ends with the token counts.
    var includesUsage = false
    /// The number of answers, and of those from which they are chosen.
    var answers = 1
    var candidates = 1
    /// Whether calls are written in the older form, `function_call`.
    var usesFunctionCall = false
}

/// POST /v1/chat/completions: https://platform.openai.com/docs/api-reference/chat/create, with the fields that vLLM and llama.cpp add.
struct ChatRequest: Sendable {
    var turn: TurnRequest
    var reply: ReplyOptions

    init(_ body: JSONValue) throws(RequestError) {
        var fields = try Fields(body)
        var turn = TurnRequest(model: try fields.string("model") ?? "default", input: .text(""))
        var reply = ReplyOptions()
        var chat = TurnRequest.Chat()
        chat.messages = try Self.messages(&fields)

        try fields.readSampling(into: &turn.sampling)
        try fields.readLimits(into: &turn)
        // The older name of the same.
        turn.maximumTokens = try fields.int("max_tokens", in: 1...Int.max)
        if let limit = try fields.int("max_completion_tokens", in: 1...Int.max) { turn.maximumTokens = limit }
        reply.answers = try fields.int("n", in: 1...128) ?? 1
        reply.candidates = reply.answers
        reply.isStreamed = try fields.bool("stream") ?? false
        if var options = try fields.object("stream_options") {
            guard reply.isStreamed else { throw .invalid("stream_options", "“stream_options” needs “stream”: true.") }
            reply.includesUsage = try options.bool("include_usage") ?? false
            options.ignore("include_obfuscation", "continuous_usage_stats")
            try options.finish()
        }
        let wantsScores = try fields.bool("logprobs") ?? false
        let top = try fields.int("top_logprobs", in: 0...20)
        if top != nil, !wantsScores { throw .invalid("top_logprobs", "“top_logprobs” needs “logprobs”: true.") }
        if wantsScores { turn.topScores = top ?? 0 }

        let other = try fields.readOtherFormats()
        turn.format = try fields.readResponseFormat() ?? other
        if other != nil, let format = turn.format, format.place != other?.place {
            throw .invalid(format.place, "The form of the answer is given twice.")
        }
        (turn.tools, reply.usesFunctionCall) = try Self.tools(&fields)

        if let effort = try fields.choice("reasoning_effort", ThinkingLevel.efforts) {
            chat.thinking = ThinkingLevel(effort: effort)
        }
        if var options = try fields.object("chat_template_kwargs") {
            for name in ["enable_thinking", "thinking"] {
                if let isOn = try options.bool(name) {
                    chat.thinking = isOn ? (chat.thinking == .off ? .medium : chat.thinking) : .off
                }
            }
            if let effort = try options.choice("reasoning_effort", ThinkingLevel.efforts) {
                chat.thinking = ThinkingLevel(effort: effort)
            }
            try options.finish()
        }
        try fields.refuse("add_generation_prompt", unless: { $0 == .bool(true) }, "the model always begins its turn.")
        let continuesLast = try fields.bool("continue_final_message")
        try chat.takePrefill(continuesLast)
        if chat.prefill != nil, let format = turn.format {
            throw .invalid(format.place, "An answer that is begun by the last message cannot have a form as well.")
        }
        chat.describesFormat = try fields.bool("include_schema_in_prompt") ?? true

        try fields.readCacheFields(into: &turn)
        try fields.refuse("modalities", unless: { $0 == .array([.string("text")]) }, "models of this server write text only.")
        try fields.refuse("audio", "models of this server write text only.")
        try fields.refuse("web_search_options", "this server searches nothing.")
        try fields.refuse("moderation", "see the server's guardrails.")
        try fields.refuse("verbosity", unless: { $0.string == "medium" }, "say in the prompt how long the answer should be.")
        // A text from which answers are proposed changes no answer.
        fields.ignore("prediction")
        try fields.finish()

        turn.input = .chat(chat)
        (self.turn, self.reply) = (turn, reply)
    }

    // MARK: - Messages

    /// The maximum number of messages of a request.
    static let maximumMessages = 4_096

    private static func messages(_ fields: inout Fields) throws(RequestError) -> [ChatMessage] {
        guard let objects = try fields.objects("messages") else { throw .invalid("messages", "“messages” is missing.") }
        guard !objects.isEmpty else { throw .invalid("messages", "“messages” is empty.") }
        guard objects.count <= maximumMessages else {
            throw .invalid("messages", "“messages” has \(objects.count) messages; the most are \(maximumMessages).")
        }
        var messages: [ChatMessage] = []
        var names: [String: String] = [:]
        for var object in objects {
            let message = try message(&object, names)
            for call in message.toolCalls { names[call.id] = call.name }
            messages.append(message)
        }
        return messages
    }

    private static func message(_ fields: inout Fields, _ names: [String: String]) throws(RequestError) -> ChatMessage {
        let role = try fields.choice("role", ["system", "developer", "user", "assistant", "tool", "function"])
        var message = ChatMessage(role: .user, content: "")
        let content = try text(&fields, "content")
        switch role {
        case "system", "developer": message.role = .system
        case "assistant":
            message.role = .assistant
            message.reasoning = try fields.string("reasoning")
            if let reasoning = try fields.string("reasoning_content") { message.reasoning = reasoning }
            for (index, var call) in (try fields.objects("tool_calls") ?? []).enumerated() {
                message.toolCalls.append(try self.call(&call, index))
            }
            if var call = try fields.object("function_call") {
                message.toolCalls.append(
                    ChatToolCall(
                        id: "call_0", name: try call.string(required: "name"), arguments: arguments(try call.string("arguments")))
                )
                try call.finish()
            }
            let refusal = try fields.string("refusal")
            fields.ignore("annotations", "audio", "prefix", "function_call")
            message.content = content ?? refusal ?? ""
            if content == nil, refusal == nil, message.toolCalls.isEmpty {
                throw .invalid(fields.place("content"), "“\(fields.place("content"))” is missing.")
            }
        case "tool":
            message.role = .tool
            let id = try fields.string(required: "tool_call_id")
            (message.toolCallID, message.toolName) = (id, try fields.string("name") ?? names[id])
        case "function":
            message.role = .tool
            message.toolName = try fields.string(required: "name")
            message.toolCallID = "call_0"
        case "user": break
        default: throw .invalid(fields.place("role"), "“\(fields.place("role"))” is missing.")
        }
        if message.role != .assistant {
            guard let content else { throw .invalid(fields.place("content"), "“\(fields.place("content"))” is missing.") }
            message.content = content
        }
        // Templates have no place for the names of people.
        fields.ignore("name", "id", "cache_control")
        try fields.finish()
        return message
    }

    private static func call(_ fields: inout Fields, _ index: Int) throws(RequestError) -> ChatToolCall {
        _ = try fields.choice("type", ["function"])
        guard var function = try fields.object("function") else {
            throw .invalid(fields.place("function"), "“\(fields.place("function"))” is missing.")
        }
        let call = ChatToolCall(
            id: try fields.string("id") ?? "call_\(index)", name: try function.string(required: "name"),
            arguments: arguments(function.value("arguments")))
        fields.ignore("index")
        try function.finish()
        try fields.finish()
        return call
    }

    /// Arguments are JSON as text. What another model wrote may be no JSON: it goes to the template as it is.
    static func arguments(_ value: JSONValue?) -> JSONValue {
        guard let text = value?.string else { return value ?? .object([]) }
        return arguments(text)
    }

    static func arguments(_ text: String?) -> JSONValue {
        guard let text, !text.isEmpty else { return .object([]) }
        // The model reads what the client sends back: text that is no JSON stays the text that it is.
        return (try? JSONParser.parse(text)) ?? .string(text)
    }

    /// The text of a message: a string, or the texts of parts.
    private static func text(_ fields: inout Fields, _ name: String) throws(RequestError) -> String? {
        guard let value = fields.value(name) else { return nil }
        if let text = value.string { return text }
        var texts: [String] = []
        for var part in try fields.objects(name) ?? [] {
            let type = try part.string("type")
            switch type {
            case "text", nil: texts.append(try part.string(required: "text"))
            case "refusal": texts.append(try part.string(required: "refusal"))
            default:
                throw .unsupportedValue(part.place("type"), "models of this server read text only.")
            }
            part.ignore("cache_control", "annotations", "prompt_cache_breakpoint")
            try part.finish()
        }
        return texts.joined(separator: "\n")
    }

    // MARK: - Tools

    private static func tools(_ fields: inout Fields) throws(RequestError) -> (ToolUse, isOldForm: Bool) {
        var use = ToolUse()
        let tools = try fields.objects("tools")
        for var tool in tools ?? [] {
            guard try tool.string("type") ?? "function" == "function" else {
                throw .unsupportedValue(tool.place("type"), "only functions are.")
            }
            guard var function = try tool.object("function") else {
                throw .invalid(tool.place("function"), "“\(tool.place("function"))” is missing.")
            }
            use.tools.append(try ToolUse.Tool(function: &function))
            tool.ignore("cache_control")
            try tool.finish()
        }
        var isOldForm = false
        for var function in try fields.objects("functions") ?? [] {
            isOldForm = true
            use.tools.append(try ToolUse.Tool(function: &function))
        }
        if let value = fields.value("function_call"), isOldForm {
            if let text = value.string {
                use.choice = text == "none" ? .none : .auto
            } else if var choice = try fields.object("function_call") {
                use.choice = .named(try choice.string(required: "name"))
                try choice.finish()
            }
        }
        use.allowsSeveral = try fields.bool("parallel_tool_calls") ?? !isOldForm
        if let choice = fields.value("tool_choice") { use.choice = try Self.choice(choice, &fields) }
        try use.check(param: "tool_choice")
        return (use, isOldForm)
    }

    private static func choice(_ value: JSONValue, _ fields: inout Fields) throws(RequestError) -> ToolUse.Choice {
        if let text = value.string {
            guard let choice = ToolUse.Choice(word: text) else {
                throw .invalid(
                    "tool_choice", "“tool_choice” must be “none”, “auto”, “required”, or an object that names a function.")
            }
            return choice
        }
        guard var object = try fields.object("tool_choice") else { return .auto }
        switch try object.string("type") ?? "function" {
        case "function":
            guard var function = try object.object("function") else {
                throw .invalid("tool_choice.function", "“tool_choice.function” is missing.")
            }
            let name = try function.string(required: "name")
            try function.finish()
            try object.finish()
            return .named(name)
        case "allowed_tools":
            var options = try object.object("allowed_tools") ?? object
            let choice = try ToolUse.Choice(allowed: &options) { tool throws(RequestError) in
                if var function = try tool.object("function") { return try function.string(required: "name") }
                return try tool.string(required: "name")
            }
            return choice
        default: throw .unsupportedValue("tool_choice.type", "it must be “function” or “allowed_tools”.")
        }
    }
}

extension ToolUse.Choice {
    init?(word: String) {
        switch word {
        case "none": self = .none
        case "auto": self = .auto
        case "required", "any": self = .required
        default: return nil
        }
    }

    /// `{"mode": "auto", "tools": […]}`
    init(allowed fields: inout Fields, name: (inout Fields) throws(RequestError) -> String) throws(RequestError) {
        let mode = try fields.choice("mode", ["auto", "required"]) ?? "auto"
        var names: [String] = []
        for var tool in try fields.objects("tools") ?? [] { names.append(try name(&tool)) }
        if names.isEmpty { throw .invalid(fields.place("tools"), "“\(fields.place("tools"))” is missing or empty.") }
        self = .allowed(names, isRequired: mode == "required")
    }
}

extension ToolUse.Tool {
    /// `{"name", "description", "parameters", "strict"}`
    init(function: inout Fields) throws(RequestError) {
        name = try Self.name(&function)
        description = try function.string("description") ?? ""
        parameters = Self.parameters(function.value("parameters"))
        isStrict = try function.bool("strict") ?? false
        place = function.place("parameters")
        function.ignore("cache_control")
        try function.finish()
    }
}

extension ToolUse.Tool {
    /// A name that no template and no format of calls takes for something else.
    static func name(_ function: inout Fields) throws(RequestError) -> String {
        let name = try function.string(required: "name")
        func isAllowed(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "A")...UInt8(ascii: "Z"):
                true
            default: "-._:".utf8.contains(byte)
            }
        }
        guard !name.isEmpty, name.utf8.count <= 128, name.utf8.allSatisfy(isAllowed) else {
            throw .invalid(
                function.place("name"),
                "“\(function.place("name"))” must have 1 to 128 letters, digits, underscores, dashes, points or colons.")
        }
        return name
    }

    /// A tool whose parameters name nothing has none: as a schema, `{}` would allow everything.
    static func parameters(_ schema: JSONValue?) -> JSONValue {
        let nothing: Set = ["type", "properties", "required", "title", "description", "$schema", "additionalProperties"]
        guard case .object(let members) = schema ?? .object([]) else { return schema ?? .null }
        let isEmpty = members.allSatisfy { member in
            switch member.name {
            case "properties": member.value == .object([])
            case "required": member.value == .array([])
            case "additionalProperties": member.value == .bool(false)
            case "type": member.value == .string("object")
            default: nothing.contains(member.name)
            }
        }
        guard isEmpty else { return schema ?? .object(members) }
        return .object([
            .init("type", .string("object")), .init("properties", .object([])), .init("additionalProperties", .bool(false)),
        ])
    }
}

extension TurnRequest.Chat {
    /// The last message begins the answer if it is the assistant's.
    ///
    /// - Parameter isWanted: whether the client says so; nil if it says nothing.
    mutating func takePrefill(_ isWanted: Bool?) throws(RequestError) {
        let isLast = messages.last?.role == .assistant && messages.last?.toolCalls.isEmpty == true
        guard isLast, isWanted != false else {
            if isWanted == true { throw .invalid("continue_final_message", "The last message must be the assistant's.") }
            return
        }
        let message = messages.removeLast()
        if messages.isEmpty { throw .invalid("messages", "There is no message that could be answered.") }
        prefill = message.content
    }
}
