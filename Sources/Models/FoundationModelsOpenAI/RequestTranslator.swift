internal import FoundationModels
internal import JSON

/// Converts a request of a session to the body of a chat completion request.
struct RequestTranslator {
    let model: String
    /// The name of the limit: `max_tokens`, which all servers know, or `max_completion_tokens`, which replaces it for
    /// newer models of some services.
    private var limitName = "max_tokens"
    /// Whether the response's schema is part of the format `json_object`, as for servers that do not know `json_schema`.
    private var hasObjectFormat = false

    init(model: String) { self.model = model }

    /// Replaces a parameter that the server has rejected by one with the same meaning.
    ///
    /// - Returns: Whether there is one that was not in use before.
    mutating func replace(parameter: String) -> Bool {
        switch parameter {
        case "max_tokens" where limitName == "max_tokens": limitName = "max_completion_tokens"
        case "response_format" where !hasObjectFormat: hasObjectFormat = true
        default: return false
        }
        return true
    }

    /// - Throws: ``LanguageModelError/unsupportedTranscriptContent(_:)`` if an image cannot be read.
    func body(for request: LanguageModelExecutorGenerationRequest) throws -> JSONValue {
        var members: [JSONValue.Member] = [
            .init("model", .string(model)),
            .init("messages", .array(try messages(request.transcript))),
            .init("stream", .bool(true)),
            .init("stream_options", .object([.init("include_usage", .bool(true))])),
        ]
        members += options(request.generationOptions)
        if !request.enabledToolDefinitions.isEmpty {
            members.append(.init("tools", .array(request.enabledToolDefinitions.map(tool))))
            // Without a choice, servers decide as with “auto”.
            if let mode = request.generationOptions.toolCallingMode {
                members.append(.init("tool_choice", .string(mode.kind == .required ? "required" : "auto")))
            }
        }
        if let schema = request.schema {
            members.append(.init("response_format", format(of: schema)))
        }
        if let level = request.contextOptions.reasoningLevel { members.append(.init("reasoning_effort", .string(effort(level)))) }
        return .object(members)
    }

    private func format(of schema: GenerationSchema) -> JSONValue {
        if hasObjectFormat { return .object([.init("type", .string("json_object")), .init("schema", schema.json)]) }
        let format = JSONValue.object([
            .init("name", .string(Self.identifier(schema.name))), .init("schema", schema.json),
            // Some servers do not accept optional properties or further keywords in strict mode.
            .init("strict", .bool(!schema.isDocument && schema.json.requiresAll)),
        ])
        return .object([.init("type", .string("json_schema")), .init("json_schema", format)])
    }

    /// The parts of a request by which servers count its tokens: messages and the format of the response, and the tools; empty if there
    /// are none.
    ///
    /// Templates demand a prompt, and servers continue a response at the end. Where none is at the end, there is a short one here.
    ///
    /// - Throws: ``LanguageModelError/unsupportedTranscriptContent(_:)`` if an image cannot be read.
    func counted(_ transcript: Transcript) throws -> (request: [JSONValue.Member], tools: [JSONValue.Member]) {
        var messages = try messages(transcript)
        if !["user", "tool"].contains(messages.last?["role"]?.string) { messages.append(Message(role: "user", text: "x").json) }
        var request = [JSONValue.Member("messages", .array(messages))]
        if case .prompt(let prompt)? = transcript.last, case .schema(let schema)? = prompt.responseFormat?.kind {
            request.append(.init("response_format", format(of: schema)))
        }
        let tools = transcript.flatMap { entry -> [JSONValue] in
            if case .instructions(let instructions) = entry { instructions.toolDefinitions.map(tool) } else { [] }
        }
        return (request, tools.isEmpty ? [] : [.init("tools", .array(tools))])
    }

    private func options(_ options: GenerationOptions) -> [JSONValue.Member] {
        var members: [JSONValue.Member] = []
        func add(_ name: String, _ value: Double) {
            if let number = DecimalNumber("\(value)") { members.append(.init(name, .number(number))) }
        }
        if let limit = options.maximumResponseTokens {
            members.append(.init(limitName, .number(DecimalNumber(max(1, limit)))))
        }
        switch options.samplingMode?.kind {
        case .greedy: add("temperature", 0)
        case .randomTopK(let k, let seed):
            if let temperature = options.temperature { add("temperature", temperature) }
            members.append(.init("top_k", .number(DecimalNumber(k))))
            members += self.seed(seed)
        case .randomProbabilityThreshold(let threshold, let seed):
            if let temperature = options.temperature { add("temperature", temperature) }
            add("top_p", threshold)
            members += self.seed(seed)
        case nil: if let temperature = options.temperature { add("temperature", temperature) }
        }
        return members
    }

    private func seed(_ seed: UInt64?) -> [JSONValue.Member] {
        // Servers parse the seed as a signed integer.
        seed.map { [.init("seed", .number(DecimalNumber(Int($0 & UInt64(Int.max)))))] } ?? []
    }

    private func effort(_ level: ContextOptions.ReasoningLevel) -> String {
        switch level {
        case .light: "low"
        case .moderate: "medium"
        case .deep: "high"
        case .custom(let name): name
        }
    }

    private func tool(_ definition: Transcript.ToolDefinition) -> JSONValue {
        .object([
            .init("type", .string("function")),
            .init(
                "function",
                .object([
                    .init("name", .string(definition.name)), .init("description", .string(definition.description)),
                    .init("parameters", definition.parameters.json),
                ])),
        ])
    }

    /// Replaces the characters that names must not contain: only ASCII letters, digits, underscores and hyphens are
    /// allowed.
    static func identifier(_ name: String) -> String {
        String(name.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == "-") ? $0 : "_" }.prefix(64))
    }

    private func messages(_ transcript: Transcript) throws -> [JSONValue] {
        let outputs = Set(transcript.compactMap { if case .toolOutput(let output) = $0 { output.id } else { nil } })
        var made: Set<String> = []
        var messages: [Message] = []
        func add(_ message: Message) {
            // Many servers demand that roles take turns: a text and the calls after it are one message, and so are two prompts.
            if let last = messages.last, last.role == message.role, message.callID == nil {
                messages[messages.count - 1].parts += message.parts
                messages[messages.count - 1].calls += message.calls
            } else {
                messages.append(message)
            }
        }
        for entry in transcript {
            switch entry {
            case .instructions(let entry):
                // An entry that only defines tools has no segments.
                if !entry.segments.isEmpty { add(Message(role: "system", text: entry.segments.modelText)) }
            case .prompt(let prompt): add(Message(role: "user", parts: try parts(prompt.segments, of: entry)))
            case .response(let response): add(Message(role: "assistant", text: response.segments.modelText))
            case .toolCalls(let calls):
                // A tool that failed can leave a call without an output, which servers reject.
                let answered = calls.filter { outputs.contains($0.id) }
                if answered.isEmpty { continue }
                made.formUnion(answered.map(\.id))
                add(Message(role: "assistant", parts: [], calls: answered.map(call)))
            case .toolOutput(let output):
                // A shortened transcript can have an output without its call, which servers reject too.
                if !made.contains(output.id) { continue }
                add(Message(role: "tool", text: output.segments.modelText, callID: output.id))
            // Servers do not accept reasoning of earlier responses.
            case .reasoning, .data: break
            @unknown default: break
            }
        }
        return messages.map(\.json)
    }

    /// A message, whose neighbours may become part of it.
    private struct Message {
        var role: String
        var parts: [Part]
        var calls: [JSONValue] = []
        /// The call whose output it is.
        var callID: String?

        init(role: String, parts: [Part], calls: [JSONValue] = []) {
            (self.role, self.parts, self.calls) = (role, parts, calls)
        }

        init(role: String, text: String, callID: String? = nil) {
            (self.role, self.callID) = (role, callID)
            parts = text.isEmpty ? [] : [.text(text)]
        }

        var json: JSONValue {
            var members = [JSONValue.Member("role", .string(role))]
            if let callID { members.append(.init("tool_call_id", .string(callID))) }
            let texts = parts.compactMap { if case .text(let text) = $0 { text } else { nil } }
            if texts.count < parts.count {
                members.append(.init("content", .array(parts.map(\.json))))
            } else {
                let isNull = texts.isEmpty && !calls.isEmpty
                members.append(.init("content", isNull ? .null : .string(texts.joined(separator: "\n"))))
            }
            if !calls.isEmpty { members.append(.init("tool_calls", .array(calls))) }
            return .object(members)
        }
    }

    /// A part of a message's content.
    private enum Part {
        case text(String)
        case image(url: String)

        var json: JSONValue {
            switch self {
            case .text(let text): .object([.init("type", .string("text")), .init("text", .string(text))])
            case .image(let url):
                .object([.init("type", .string("image_url")), .init("image_url", .object([.init("url", .string(url))]))])
            }
        }
    }

    private func call(_ call: Transcript.ToolCall) -> JSONValue {
        .object([
            .init("id", .string(call.id)), .init("type", .string("function")),
            .init(
                "function",
                .object([.init("name", .string(call.toolName)), .init("arguments", .string(call.arguments.json.text))])),
        ])
    }

    private func parts(_ segments: [Transcript.Segment], of entry: Transcript.Entry) throws -> [Part] {
        try segments.map { segment in
            guard case .attachment(let attachment) = segment, case .image(let image) = attachment.content else {
                return .text([segment].modelText)
            }
            do { return .image(url: try image.dataURL()) } catch {
                throw LanguageModelError.unsupportedTranscriptContent(
                    .init(unsupportedContent: [entry], debugDescription: "An image cannot be read: \(error)"))
            }
        }
    }
}

extension JSONValue {
    /// Whether all properties of all objects in a schema are required.
    fileprivate var requiresAll: Bool {
        switch self {
        case .object(let members):
            if case .object(let properties)? = self["properties"], case .array(let required)? = self["required"],
                required.count < properties.count
            {
                return false
            }
            return members.allSatisfy(\.value.requiresAll)
        case .array(let values): return values.allSatisfy(\.requiresAll)
        default: return true
        }
    }
}
