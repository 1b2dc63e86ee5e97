internal import Inference
internal import JSON

/// POST /api/chat and /api/generate of Ollama's API: https://github.com/ollama/ollama/blob/main/docs/api.md
struct OllamaRequest: Sendable {
    var turn: TurnRequest
    var isStreamed = true
    /// Whether the request only loads the model.
    var loadsOnly = false
    /// The `keep_alive` of a request that frees the model.
    var unloads = false

    init(_ body: JSONValue, isChat: Bool) throws(RequestError) {
        var fields = try Fields(body)
        turn = TurnRequest(model: try fields.string(required: "model"), input: .text(""))
        isStreamed = try fields.bool("stream") ?? true
        var chat = TurnRequest.Chat()
        if isChat {
            try Self.readMessages(&fields, into: &chat)
            for var tool in try fields.objects("tools") ?? [] {
                _ = try tool.string("type")
                guard var function = try tool.object("function") else {
                    throw .invalid(tool.place("function"), "“\(tool.place("function"))” is missing.")
                }
                turn.tools.tools.append(try ToolUse.Tool(function: &function))
                try tool.finish()
            }
            try turn.tools.check(param: "tools")
            loadsOnly = chat.messages.isEmpty
            if !loadsOnly { try chat.takePrefill(nil) }
        } else {
            let prompt = try fields.string("prompt") ?? ""
            loadsOnly = prompt.isEmpty
            if let system = try fields.string("system"), !system.isEmpty {
                chat.messages.append(ChatMessage(role: .system, content: system))
            }
            chat.messages.append(ChatMessage(role: .user, content: prompt))
            try fields.refuse("suffix", unless: { $0.string == "" }, "texts are continued at their end only.")
            try fields.refuse("template", unless: { $0.string == "" }, "the model's own template is used.")
            try fields.refuse("images", unless: { $0 == .array([]) }, "models of this server read text only.")
            // A context of numbers, as replies of other servers have it, would be of another model.
            try fields.refuse("context", unless: { $0 == .array([]) }, "use /api/chat for conversations.")
            turn.inputName = "prompt"
        }
        let isRaw = try fields.bool("raw") ?? false
        if isRaw, isChat || chat.messages.count > 1 {
            throw .unsupported("raw", "a text without a template has no messages and no system text.")
        }
        if let format = fields.value("format"), format.string != "" {
            if let name = format.string {
                guard name == "json" else { throw .invalid("format", "“format” must be “json” or a schema.") }
                turn.format = .anyObject(place: "format")
            } else {
                turn.format = .schema(format, place: "format")
            }
        }
        if let think = fields.value("think") {
            switch think {
            case .bool(let isOn): chat.thinking = isOn ? .medium : .off
            case .string(let effort) where ThinkingLevel.efforts.contains(effort): chat.thinking = ThinkingLevel(effort: effort)
            default: throw .invalid("think", "“think” must be true, false, “low”, “medium” or “high”.")
            }
        }
        if var options = try fields.object("options") { try Self.read(&options, into: &turn) }
        if let keep = fields.value("keep_alive") { unloads = keep.integer == 0 || keep.string == "0" }
        let wantsScores = try fields.bool("logprobs") ?? false
        let top = try fields.int("top_logprobs", in: 0...20)
        if wantsScores { turn.topScores = top ?? 0 }
        // Ollama leaves out the beginning of what is too long, unless told not to. Here it is an error, unless told to.
        turn.truncates = try fields.bool("truncate") ?? false
        fields.ignore("shift", "_debug_render_only")
        try fields.finish()
        turn.input = isRaw ? .text(chat.messages.last?.content ?? "") : .chat(chat)
    }

    private static func readMessages(_ fields: inout Fields, into chat: inout TurnRequest.Chat) throws(RequestError) {
        for var object in try fields.objects("messages") ?? [] {
            let role = try object.choice("role", ["system", "user", "assistant", "tool"])
            guard let role = role.flatMap({ ChatMessage.Role(rawValue: $0) }) else {
                throw .invalid(object.place("role"), "“\(object.place("role"))” is missing.")
            }
            var message = ChatMessage(role: role, content: try object.string("content") ?? "")
            message.reasoning = try object.string("thinking")
            for (index, var call) in (try object.objects("tool_calls") ?? []).enumerated() {
                guard var function = try call.object("function") else {
                    throw .invalid(call.place("function"), "“\(call.place("function"))” is missing.")
                }
                message.toolCalls.append(
                    ChatToolCall(
                        id: try call.string("id") ?? "call_\(index)", name: try function.string(required: "name"),
                        arguments: ChatRequest.arguments(function.value("arguments"))))
                function.ignore("index", "description")
                try function.finish()
                call.ignore("type")
                try call.finish()
            }
            message.toolName = try object.string("tool_name")
            if let name = try object.string("name"), message.toolName == nil { message.toolName = name }
            message.toolCallID = try object.string("tool_call_id")
            try object.refuse("images", unless: { $0 == .array([]) }, "models of this server read text only.")
            try object.finish()
            chat.messages.append(message)
        }
    }

    private static func read(_ options: inout Fields, into turn: inout TurnRequest) throws(RequestError) {
        try options.readSampling(into: &turn.sampling)
        turn.stops = try options.readStops("stop")
        // -1 and -2: no limit of its own.
        if let limit = try options.int("num_predict", in: -2...Int.max), limit > 0 { turn.maximumTokens = limit }
        // The sizes of the server's engine.
        options.ignore(
            "num_ctx", "num_batch", "num_gpu", "main_gpu", "use_mmap", "use_mlock", "num_thread", "numa", "num_keep", "low_vram",
            "vocab_only", "f16_kv", "penalize_newline", "draft_num_predict")
        try options.finish()
    }
}
