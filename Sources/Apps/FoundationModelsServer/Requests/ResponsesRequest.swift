internal import Inference
internal import JSON

/// POST /v1/responses: https://platform.openai.com/docs/api-reference/responses/create
struct ResponsesRequest: Sendable {
    var turn: TurnRequest
    var isStreamed = false
    var isStored = true
    var isBackground = false
    var previous: String?
    var conversation: String?
    var instructions: String?
    /// The items of the request, as they are listed.
    var input: [JSONValue] = []
    var wantsLogprobs = false
    /// What this server does not know, and leaves out: agents that send it end with an error otherwise.
    var skipped: [String] = []
    /// Fields of the request that the response repeats.
    var echoed: [JSONValue.Member] = []
    var thinking = ThinkingLevel.off

    init(_ body: JSONValue) throws(RequestError) {
        var fields = try Fields(body)
        turn = TurnRequest(model: try fields.string("model") ?? "default", input: .text(""))
        turn.inputName = "input"
        instructions = try fields.string("instructions")
        previous = try fields.string("previous_response_id")
        if let value = fields.value("conversation") {
            conversation = value.string
            if conversation == nil { conversation = try Self.identifier(&fields) }
            if previous != nil {
                throw .invalid("previous_response_id", "“previous_response_id” and “conversation” exclude each other.")
            }
        }
        try readInput(&fields)
        turn.maximumTokens = try fields.int("max_output_tokens", in: 1...Int.max)
        turn.sampling.temperature = try fields.number("temperature", in: 0...2)
        turn.sampling.topP = try fields.number("top_p", in: 0...1)
        // What other servers add.
        if let topK = try fields.int("top_k", in: 0...(1 << 20)), topK > 0 { turn.sampling.topK = topK }
        turn.sampling.minP = try fields.number("min_p", in: 0...1)
        turn.sampling.repetition = try fields.number("repetition_penalty", in: 0.01...10)
        turn.sampling.presence = try fields.number("presence_penalty", in: -2...2)
        turn.sampling.frequency = try fields.number("frequency_penalty", in: -2...2)
        if let seed = try fields.int("seed") { turn.sampling.seed = UInt64(bitPattern: Int64(seed)) }
        turn.stops = try fields.readStops("stop")
        let includes = try fields.strings("include") ?? []
        wantsLogprobs = includes.contains("message.output_text.logprobs")
        let top = try fields.int("top_logprobs", in: 0...20)
        if wantsLogprobs || top != nil { turn.topScores = top ?? 0 }
        isStreamed = try fields.bool("stream") ?? false
        isStored = try fields.bool("store") ?? true
        isBackground = try fields.bool("background") ?? false
        if isBackground, !isStored { throw .invalid("store", "A response in the background must be stored.") }
        switch try fields.choice("truncation", ["auto", "disabled"]) {
        case "auto": turn.truncates = true
        default: break
        }
        try readText(&fields)
        try readTools(&fields)
        if var reasoning = try fields.object("reasoning") {
            if let effort = try reasoning.choice("effort", ThinkingLevel.efforts) { thinking = ThinkingLevel(effort: effort) }
            reasoning.ignore("summary", "generate_summary")
            try reasoning.finish()
        }
        try fields.refuse("prompt", "this server keeps no prompts; send “instructions” and “input”.")
        try fields.refuse("context_management", unless: { $0 == .array([]) }, "use “truncation”: “auto”.")
        try fields.refuse("moderation", "see the server's guardrails.")
        turn.cacheSalt = try fields.string("cache_salt")
        fields.ignore(
            "metadata", "user", "safety_identifier", "service_tier", "prompt_cache_key", "prompt_cache_retention",
            "prompt_cache_options", "stream_options", "client_metadata")
        try fields.finish()
        echo(body)
    }

    private static func identifier(_ fields: inout Fields) throws(RequestError) -> String? {
        guard var object = try fields.object("conversation") else { return nil }
        let id = try object.string(required: "id")
        try object.finish()
        return id
    }

    private mutating func readInput(_ fields: inout Fields) throws(RequestError) {
        guard let value = fields.value("input") else {
            if previous != nil || conversation != nil { return }
            throw .invalid("input", "“input” is missing.")
        }
        if let text = value.string {
            input = [ResponseItems.listed(.object([.init("role", .string("user")), .init("content", .string(text))]))]
            return
        }
        guard let items = try fields.array("input") else { return }
        guard items.count <= ChatRequest.maximumMessages else { throw .invalid("input", "“input” has too many items.") }
        // What is wrong with one of them is said with its place.
        var check = ResponseItems()
        for (index, item) in items.enumerated() {
            if item["type"]?.string != "item_reference" { try check.add(item, place: "input[\(index)]") }
            input.append(ResponseItems.listed(item))
        }
        skipped += check.skipped.map { "item \($0)" }
    }

    private mutating func readText(_ fields: inout Fields) throws(RequestError) {
        guard var text = try fields.object("text") else { return }
        if var format = try text.object("format") {
            switch try format.choice("type", ["text", "json_object", "json_schema"]) {
            case "json_object": turn.format = .anyObject(place: "text.format")
            case "json_schema": turn.format = try format.readNamedSchema()
            default: break
            }
            try format.finish()
        }
        if let verbosity = try text.string("verbosity"), verbosity != "medium" { skipped.append("text.verbosity") }
        try text.finish()
    }

    private mutating func readTools(_ fields: inout Fields) throws(RequestError) {
        for var tool in try fields.objects("tools") ?? [] {
            let type = try tool.string("type") ?? "function"
            guard type == "function" else {
                skipped.append("\(tool.place("type")) \(type)")
                continue
            }
            tool.ignore("defer_loading")
            turn.tools.tools.append(try ToolUse.Tool(function: &tool))
        }
        turn.tools.allowsSeveral = try fields.bool("parallel_tool_calls") ?? true
        if try fields.int("max_tool_calls", in: 1...Int.max) == 1 { turn.tools.allowsSeveral = false }
        if let value = fields.value("tool_choice") {
            if let word = value.string {
                guard let choice = ToolUse.Choice(word: word) else {
                    throw .invalid("tool_choice", "“tool_choice” must be “none”, “auto”, “required”, or an object.")
                }
                turn.tools.choice = choice
            } else if var object = try fields.object("tool_choice") {
                switch try object.string(required: "type") {
                case "function":
                    turn.tools.choice = .named(try object.string(required: "name"))
                    try object.finish()
                case "allowed_tools":
                    turn.tools.choice = try ToolUse.Choice(allowed: &object) { tool throws(RequestError) in
                        try tool.string(required: "name")
                    }
                default: throw .unsupportedValue("tool_choice.type", "it must be “function” or “allowed_tools”.")
                }
            }
        }
        try turn.tools.check(param: "tool_choice")
    }

    private mutating func echo(_ body: JSONValue) {
        let fallbacks: [(String, JSONValue)] = [
            ("instructions", .null), ("max_output_tokens", .null), ("metadata", .object([])),
            ("parallel_tool_calls", .bool(true)),
            ("temperature", .double(1)), ("tool_choice", .string("auto")), ("tools", .array([])), ("top_p", .double(1)),
            ("truncation", .string("disabled")), ("top_logprobs", .int(0)), ("user", .null), ("safety_identifier", .null),
            ("prompt_cache_key", .null), ("service_tier", .string("default")), ("background", .bool(false)),
            ("store", .bool(true)),
            ("reasoning", .object([.init("effort", .null), .init("summary", .null)])),
            ("text", .object([.init("format", .object([.init("type", .string("text"))]))])),
        ]
        echoed = fallbacks.map { name, fallback in
            .init(name, body[name].flatMap { $0 == .null ? nil : $0 } ?? fallback)
        }
    }

    /// The request with the conversation that it continues.
    ///
    /// - Parameter earlier: the items before those of the request.
    func turn(after earlier: [JSONValue]) throws(RequestError) -> TurnRequest {
        var items = ResponseItems()
        try items.add(stored: earlier)
        let known = Dictionary((earlier + input).compactMap { item in item["id"]?.string.map { ($0, item) } }) { first, _ in first
        }
        for (index, item) in input.enumerated() {
            guard item["type"]?.string == "item_reference" else {
                try items.add(item, place: "input[\(index)]")
                continue
            }
            guard let target = known[item["id"]?.string ?? ""], target["type"]?.string != "item_reference" else {
                throw .invalid("input[\(index)].id", "There is no item with this identifier in the conversation.")
            }
            try items.add(target, place: "input[\(index)]")
        }
        var chat = TurnRequest.Chat()
        chat.messages = items.messages
        chat.thinking = thinking
        if let instructions { chat.messages.insert(ChatMessage(role: .system, content: instructions), at: 0) }
        if chat.messages.isEmpty { throw .invalid("input", "“input” is empty.") }
        var turn = turn
        turn.input = .chat(chat)
        turn.conversation = conversation
        // A conversation that the server keeps never ends.
        if conversation != nil { turn.truncates = true }
        return turn
    }
}
