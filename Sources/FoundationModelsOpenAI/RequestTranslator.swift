internal import FoundationModels
internal import JSON

/// Converts a request of a session to the body of a chat completion request.
struct RequestTranslator {
    let model: String
    /// The name of the limit: `max_tokens`, which all servers know, or `max_completion_tokens`, which replaces it for
    /// newer models of some services.
    var limitName = "max_tokens"

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
            let format = JSONValue.object([
                .init("name", .string(Self.identifier(schema.name))), .init("schema", schema.json),
                // Some servers do not accept optional properties or further keywords in strict mode.
                .init("strict", .bool(!schema.isDocument && schema.json.requiresAll)),
            ])
            members.append(
                .init("response_format", .object([.init("type", .string("json_schema")), .init("json_schema", format)])))
        }
        if let level = request.contextOptions.reasoningLevel { members.append(.init("reasoning_effort", .string(effort(level)))) }
        return .object(members)
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
        var messages: [JSONValue] = []
        for entry in transcript {
            switch entry {
            case .instructions(let entry):
                // An entry that only defines tools has no segments.
                if !entry.segments.isEmpty { messages.append(message("system", .string(entry.segments.modelText))) }
            case .prompt(let prompt): messages.append(message("user", try content(prompt.segments, of: entry)))
            case .response(let response): messages.append(message("assistant", .string(response.segments.modelText)))
            case .toolCalls(let calls):
                // A tool that failed can leave a call without an output, which servers reject.
                let answered = calls.filter { outputs.contains($0.id) }
                if answered.isEmpty { continue }
                messages.append(
                    .object([
                        .init("role", .string("assistant")), .init("content", .null),
                        .init("tool_calls", .array(answered.map(call))),
                    ]))
            case .toolOutput(let output):
                messages.append(
                    .object([
                        .init("role", .string("tool")), .init("tool_call_id", .string(output.id)),
                        .init("content", .string(output.segments.modelText)),
                    ]))
            // Servers do not accept reasoning of earlier responses.
            case .reasoning, .data: break
            @unknown default: break
            }
        }
        return messages
    }

    private func message(_ role: String, _ content: JSONValue) -> JSONValue {
        .object([.init("role", .string(role)), .init("content", content)])
    }

    private func call(_ call: Transcript.ToolCall) -> JSONValue {
        .object([
            .init("id", .string(call.id)), .init("type", .string("function")),
            .init(
                "function",
                .object([.init("name", .string(call.toolName)), .init("arguments", .string(call.arguments.json.text))])),
        ])
    }

    /// A text, or a list of texts and images.
    private func content(_ segments: [Transcript.Segment], of entry: Transcript.Entry) throws -> JSONValue {
        let hasPictures = segments.contains { segment in
            if case .attachment(let attachment) = segment, case .image = attachment.content { true } else { false }
        }
        guard hasPictures else { return .string(segments.modelText) }
        return .array(
            try segments.map { segment in
                guard case .attachment(let attachment) = segment, case .image(let image) = attachment.content else {
                    return .object([.init("type", .string("text")), .init("text", .string([segment].modelText))])
                }
                do {
                    return .object([
                        .init("type", .string("image_url")),
                        .init("image_url", .object([.init("url", .string(try image.dataURL()))])),
                    ])
                } catch {
                    throw LanguageModelError.unsupportedTranscriptContent(
                        .init(unsupportedContent: [entry], debugDescription: "An image cannot be read: \(error)"))
                }
            })
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
