internal import ContextKit
internal import FoundationModels
internal import Grammar
internal import Inference
internal import JSON
internal import Logging
internal import ModelPrompts
internal import TokenCounts

/// A turn of a model on another server, with the same promises as one of this machine: the form is checked while the answer comes.
struct UpstreamTurn: ServedTurn {
    let request: TurnRequest
    private let pool: UpstreamPool
    private let messages: [ChatMessage]
    private let definitions: [Transcript.ToolDefinition]
    private let thinking: ThinkingLevel
    private let form: UpstreamCheck.Form?
    private let tools: [String: UpstreamCheck.Form]
    let leftOutTurns: Int
    let recalledTurns: Int
    var promptTokens: Int? { nil }

    /// - Parameter turn: waits for a place among the few requests that are made to fit at the same time.
    /// - Throws: ``RequestError``, or `CancellationError`.
    init(
        _ request: TurnRequest, _ pool: UpstreamPool, contextSize: Int, _ checks: SchemaChecks, _ windows: ConversationWindows,
        turn: () async throws -> RequestGate.Place
    ) async throws {
        guard case .chat(var chat) = request.input else {
            throw RequestError.unsupported(
                request.inputName, "servers behind this one are asked for answers in conversations only.")
        }
        if request.echoes { throw RequestError.unsupported("echo", "the model runs on another server.") }
        for (name, isSet) in [
            ("ignore_eos", request.ignoresEnd), ("min_tokens", request.minimumTokens > 0),
            ("stop_token_ids", !request.stopTokens.isEmpty),
        ] where isSet { throw RequestError.unsupported(name, "the model runs on another server.") }
        (self.request, self.pool) = (request, pool)
        do { form = try await checks.form(request.format?.source) } catch let error as SchemaError {
            throw RequestError(error, place: request.format?.place ?? "")
        }
        var tools: [String: UpstreamCheck.Form] = [:]
        for tool in request.tools.callable {
            do { tools[tool.name] = try await checks.form(.schema(tool.parameters)) } catch let error as SchemaError {
                throw RequestError(error, place: tool.place, code: "invalid_function_parameters")
            }
        }
        self.tools = tools
        if chat.describesFormat, case .schema(let schema, _)? = request.format,
            let place = chat.messages.lastIndex(where: { $0.role == .user })
        {
            chat.messages[place].content += "\n\n" + SchemaDescription.request(for: schema)
        }
        thinking = chat.thinking
        definitions = request.tools.tools.map {
            Transcript.ToolDefinition(
                name: $0.name, description: $0.description, parameters: GenerationSchema(checked: $0.parameters))
        }
        guard request.truncates else {
            (messages, leftOutTurns, recalledTurns) = (chat.messages, 0, 0)
            return
        }
        let reserve = max(1, min(request.maximumTokens ?? 512, 512, contextSize / 4))
        let place = try await turn()
        defer { place.leave(tokens: 1) }
        let fitted = try await windows.fit(
            Transcript.entries(chat.messages, definitions), request, contextSize: contextSize, reserve: reserve
        ) { TokenEstimate.count($0) }
        messages = ChatMessage.messages(of: fitted.entries)
        leftOutTurns = fitted.leftOutTurns
        recalledTurns = Set(fitted.recall?.recalledItems.map(\.turn) ?? []).count
    }

    func echo() async throws -> TurnOutput { .text("", []) }

    /// Requests of one conversation have this in common.
    private var affinity: String {
        if let id = request.conversation { return id }
        let first = messages.firstIndex { $0.role == .user } ?? 0
        return messages.prefix(first + 1).map { "\($0.role) \($0.content)" }.joined(separator: "\u{0}")
            + (request.cacheSalt ?? "")
    }

    func run(answer: Int, emit: (TurnOutput) -> Bool) async throws -> TurnFinish {
        var tried: Set<Int> = []
        var attempt = 0
        var last: (any Error)?
        // Each server once, and one of them once more: what a model writes is another text with another seed.
        while attempt <= pool.urls.count {
            if tried.count == pool.urls.count { tried = [] }
            guard let server = pool.choose(affinity, except: tried) else { break }
            tried.insert(server)
            var kept: [TurnOutput] = []
            var hasEmitted = false
            let result: Result<TurnFinish, any Error>
            do {
                let finish = try await ask(server, answer, attempt) { output in
                    if request.isWhole {
                        kept.append(output)
                        return !Task.isCancelled
                    }
                    hasEmitted = true
                    return emit(output)
                }
                result = .success(finish)
            } catch { result = .failure(error) }
            pool.end(server, Self.outcome(result))
            switch result {
            case .success(var finish):
                for output in kept where !emit(output) { throw CancellationError() }
                // A server that reports no counts: an upper estimate.
                if finish.usage.promptTokens == 0 {
                    finish.usage.promptTokens = TokenEstimate.count(Transcript.entries(messages, definitions))
                }
                return finish
            case .failure(let error):
                if error is CancellationError { throw error }
                ServerLog.logger.warning(
                    "A server has failed", metadata: ["server": "\(pool.urls[server])", "reason": "\(Self.reason(error))"])
                // What the client has asked for is wrong for every server.
                if let refusal = Self.refusal(error, request) { throw refusal }
                if hasEmitted {
                    throw RequestError(
                        502, type: "server_error",
                        code: error is UpstreamReply.Invalid ? "upstream_invalid_output" : "upstream_failed",
                        "The answer of the server that runs the model cannot be used from here on. Nothing more of it is sent.")
                }
                last = error
                attempt += 1
            }
        }
        if last is UpstreamReply.Invalid {
            throw RequestError(
                502, type: "server_error", code: "upstream_invalid_output",
                "The servers that run the model gave \(attempt) answers, none of which is what the request asks for.")
        }
        if (last as? UpstreamPool.Failure)?.status == 429 {
            throw RequestError(
                429, type: "rate_limit_error", code: "rate_limit_exceeded",
                "The servers that run the model have reached their limits. Try again later.", retryAfter: 5)
        }
        throw RequestError(
            503, type: "server_error", code: "upstream_unavailable",
            "No server that runs the model has answered. Try again later.",
            retryAfter: 5)
    }

    /// What an answer says of the server. One that is too slow for the deadline is cancelled here and says nothing; a server that is
    /// silent fails by itself.
    private static func outcome(_ result: Result<TurnFinish, any Error>) -> UpstreamChoice.Outcome {
        switch result {
        case .success: return .good
        case .failure(let error):
            if error is CancellationError || error is UpstreamReply.Invalid { return .nothing }
            let status = (error as? UpstreamPool.Failure)?.status ?? (error as? UpstreamReply.Failed)?.status
            return status.map { (400..<500).contains($0) } ?? false ? .nothing : .fault
        }
    }

    private func ask(_ server: Int, _ answer: Int, _ attempt: Int, emit: (TurnOutput) -> Bool) async throws -> TurnFinish {
        var knowsSchemas = true
        while true {
            var reply = UpstreamReply(request, form: form, tools: tools)
            do {
                try await pool.stream(body(answer, attempt, knowsSchemas: knowsSchemas), to: server) { data, isWhole in
                    for output in try reply.read(data, isWhole: isWhole) {
                        if !emit(output) { throw CancellationError() }
                    }
                    return !reply.isDone
                }
            } catch let failure as UpstreamPool.Failure {
                // It says which forms it knows.
                guard knowsSchemas, request.format != nil, [400, 422].contains(failure.status),
                    failure.body.text.contains("response_format") || failure.body.text.contains("json_schema")
                else { throw failure }
                knowsSchemas = false
                continue
            }
            let (outputs, finish) = try reply.end()
            for output in outputs where !emit(output) { throw CancellationError() }
            return finish
        }
    }

    // MARK: - The request

    private func body(_ answer: Int, _ attempt: Int, knowsSchemas: Bool) -> JSONValue {
        var members: [JSONValue.Member] = [
            .init("model", .string(request.model)), .init("messages", .array(messages.map { Self.message($0) })),
            .init("stream", .bool(true)), .init("stream_options", .object([.init("include_usage", .bool(true))])),
        ]
        func add(_ name: String, _ value: JSONValue?) { if let value { members.append(.init(name, value)) } }
        let sampling = request.sampling
        add("max_tokens", request.maximumTokens.map { .int($0) })
        add("temperature", sampling.temperature.map { .double($0) })
        add("top_p", sampling.topP.map { .double($0) })
        add("top_k", sampling.topK.map { .int($0) })
        add("min_p", sampling.minP.map { .double($0) })
        add("presence_penalty", sampling.presence.map { .double($0) })
        add("frequency_penalty", sampling.frequency.map { .double($0) })
        add("repetition_penalty", sampling.repetition.map { .double($0) })
        // Servers read the seed as a signed number.
        add("seed", sampling.seed.map { .int(Int(($0 &+ UInt64(answer) &+ UInt64(attempt) &* 1_000) & UInt64(Int.max))) })
        if !request.stops.isEmpty { add("stop", .array(request.stops.map { .string($0) })) }
        if !sampling.biases.isEmpty {
            add(
                "logit_bias",
                .object(sampling.biases.map { .init("\($0.token)", .double(Double(max(-100, min(100, $0.value))))) }))
        }
        if let top = request.topScores {
            add("logprobs", .bool(true))
            if top > 0 { add("top_logprobs", .int(top)) }
        }
        add("dry_multiplier", sampling.dry.map { .double($0) })
        add("dry_base", sampling.dryBase.map { .double($0) })
        add("dry_allowed_length", sampling.dryAllowedLength.map { .int($0) })
        add("cache_salt", request.cacheSalt.map { .string(APIKey.hash(of: $0)) })
        if thinking != .off { add("reasoning_effort", .string(thinking.rawValue)) }
        add("response_format", format(knowsSchemas: knowsSchemas))
        switch request.format {
        case .pattern(let pattern, _)?: add("structured_outputs", .object([.init("regex", .string(pattern))]))
        case .choices(let texts, _)?:
            add("structured_outputs", .object([.init("choice", .array(texts.map { .string($0) }))]))
        default: break
        }
        if !request.tools.tools.isEmpty, request.tools.choice != .none {
            add("tools", .array(request.tools.callable.map { Self.tool($0) }))
            add("tool_choice", choice)
            if !request.tools.allowsSeveral { add("parallel_tool_calls", .bool(false)) }
        }
        return .object(members)
    }

    private func format(knowsSchemas: Bool) -> JSONValue? {
        guard case .schema(let schema, _)? = request.format else { return nil }
        guard knowsSchemas else { return .object([.init("type", .string("json_object")), .init("schema", schema)]) }
        return .object([
            .init("type", .string("json_schema")),
            .init(
                "json_schema", .object([.init("name", .string("answer")), .init("strict", .bool(true)), .init("schema", schema)])),
        ])
    }

    private var choice: JSONValue {
        switch request.tools.choice {
        case .none: .string("none")
        case .auto: .string("auto")
        case .required: .string("required")
        case .allowed(_, let isRequired): .string(isRequired ? "required" : "auto")
        case .named(let name):
            .object([.init("type", .string("function")), .init("function", .object([.init("name", .string(name))]))])
        }
    }

    private static func tool(_ tool: ToolUse.Tool) -> JSONValue {
        var function: [JSONValue.Member] = [
            .init("name", .string(tool.name)), .init("description", .string(tool.description)),
            .init("parameters", tool.parameters),
        ]
        if tool.isStrict { function.append(.init("strict", .bool(true))) }
        return .object([.init("type", .string("function")), .init("function", .object(function))])
    }

    private static func message(_ message: ChatMessage) -> JSONValue {
        var members: [JSONValue.Member] = [.init("role", .string(message.role.rawValue))]
        let isCall = message.content.isEmpty && !message.toolCalls.isEmpty
        members.append(.init("content", isCall ? .null : .string(message.content)))
        if let id = message.toolCallID { members.append(.init("tool_call_id", .string(id))) }
        if !message.toolCalls.isEmpty {
            members.append(
                .init(
                    "tool_calls",
                    .array(
                        message.toolCalls.map { call in
                            .object([
                                .init("id", .string(call.id)), .init("type", .string("function")),
                                .init(
                                    "function",
                                    .object([
                                        .init("name", .string(call.name)),
                                        .init("arguments", .string(call.arguments.string ?? call.arguments.text)),
                                    ])),
                            ])
                        })))
        }
        return .object(members)
    }

    // MARK: - Errors

    /// What a server's refusal means for the client; nil if another server may do better.
    private static func refusal(_ error: any Error, _ request: TurnRequest) -> RequestError? {
        let (status, body): (Int?, JSONValue)
        switch error {
        case let failure as UpstreamPool.Failure: (status, body) = (failure.status, failure.body)
        case let failed as UpstreamReply.Failed: (status, body) = (failed.status, failed.body)
        default: return nil
        }
        if status == 404 { return .unknownModel(request.model) }
        guard status == 400 || status == 413 || status == 422 else { return nil }
        let object = body["error"] ?? body
        let message = object["message"]?.string ?? ""
        let code = object["code"]?.string
        if code == "context_length_exceeded" || object["type"]?.string == "exceed_context_size_error"
            || message.contains("maximum context length")
        {
            // The context size, then that of the request.
            let numbers = message.split { !$0.isNumber }.compactMap { Int($0) }.filter { $0 > 15 }
            return .tooLong(
                tokens: object["n_prompt_tokens"]?.integer ?? numbers.dropFirst().first ?? 0,
                contextSize: object["n_ctx"]?.integer ?? numbers.first ?? 0, param: request.inputName)
        }
        return RequestError(
            400, code: "upstream_refused", param: object["param"]?.string,
            "The server that runs the model refuses the request: \(message.prefix(500))")
    }

    private static func reason(_ error: any Error) -> String {
        switch error {
        case let failure as UpstreamPool.Failure: failure.reason
        case let failed as UpstreamReply.Failed: "it reports an error: \(failed.body.text.prefix(300))"
        case let invalid as UpstreamReply.Invalid: invalid.reason
        default: "\(error)"
        }
    }
}

extension ChatMessage {
    /// The messages of entries, as far as they have texts and calls.
    static func messages(of entries: [Transcript.Entry]) -> [ChatMessage] {
        var messages: [ChatMessage] = []
        func text(_ segments: [Transcript.Segment]) -> String {
            segments.compactMap { if case .text(let text) = $0 { text.content } else { nil } }.joined(separator: "\n")
        }
        for entry in entries {
            switch entry {
            case .instructions(let entry): messages.append(ChatMessage(role: .system, content: text(entry.segments)))
            case .prompt(let entry): messages.append(ChatMessage(role: .user, content: text(entry.segments)))
            case .response(let entry): messages.append(ChatMessage(role: .assistant, content: text(entry.segments)))
            case .toolCalls(let calls):
                if messages.last?.role != .assistant { messages.append(ChatMessage(role: .assistant, content: "")) }
                messages[messages.count - 1].toolCalls += calls.map {
                    ChatToolCall(id: $0.id, name: $0.toolName, arguments: $0.arguments.json)
                }
            case .toolOutput(let output):
                var message = ChatMessage(role: .tool, content: text(output.segments))
                (message.toolCallID, message.toolName) = (output.id, output.toolName)
                messages.append(message)
            default: break
            }
        }
        return messages
    }
}
