internal import ContextKit
internal import Foundation
internal import FoundationModels
internal import Grammar
internal import Inference
internal import JSON
internal import Logging
internal import ModelPrompts
internal import Waiting

/// A turn of a model of this machine: everything that is known before a token is generated. What is wrong with a request is found here.
struct LocalTurn: ServedTurn {
    let request: TurnRequest
    let model: LoadedModel
    /// Keeps the model in memory.
    private let lease: ModelLease<LoadedModel>
    private let adapter: LowRankAdapter?
    private let local: LocalModel
    private let tools: TurnTools
    private let generation: GenerationRequest
    /// Checks the turn for safety; nil if the server does not.
    private let checks: TurnGuard?
    /// The sampling of the model with its adapter.
    private let defaults: ModelDefaults
    private let isFree: Bool
    /// The turns that were left out because the conversation did not fit, and those of them that came back.
    let leftOutTurns: Int
    let recalledTurns: Int

    var tokens: [TokenID] { generation.tokens }
    var promptTokens: Int? { tokens.count }
    var contextSize: Int { min(local.maximumContext, model.shape.contextLength) }

    /// Without a limit in the request, an answer ends after this number of tokens.
    static let defaultMaximumTokens = 4_096

    /// Loads the model, renders the prompt, compiles the grammars.
    ///
    /// - Parameter turn: waits for a place among the few requests whose prompts are rendered at the same time, because that keeps processors
    ///   busy that others need. Schemas are compiled outside of it: those who wait for a large one hold up nobody.
    /// - Throws: ``RequestError``, or `CancellationError`.
    init(
        _ request: TurnRequest, _ served: ServedModel, _ schemas: SchemaChecks, _ windows: ConversationWindows,
        isGuarded: Bool = false, turn: () async throws -> RequestGate.Place
    ) async throws {
        local = served.local
        self.request = request
        let definitions = try await Self.definitions(request.tools.tools, schemas)
        let place = try await turn()
        defer { place.leave(tokens: 1) }
        lease = try await served.lease()
        model = lease.model
        adapter = try await local.adapter(for: model)
        var defaults = model.defaults
        // An adapter for a task may teach forms that repeat words: a penalty would change them.
        if adapter != nil && !local.isForGeneralUse || model.hasMergedAdapter { defaults.repetitionPenalty = nil }
        self.defaults = defaults

        let size = min(local.maximumContext, model.shape.contextLength)
        let written = try await Self.prompt(request, definitions, local, model, windows)
        let tokens = written.tokens
        (tools, leftOutTurns, recalledTurns) = (written.tools, written.leftOutTurns, written.recalledTurns)
        place.leave(tokens: 1)
        guard tokens.count < size else {
            throw RequestError.tooLong(tokens: tokens.count, contextSize: size, param: request.inputName)
        }
        var generation = GenerationRequest(
            tokens: tokens, sampling: .greedy, maximumTokens: request.maximumTokens ?? Self.defaultMaximumTokens,
            stopStrings: request.stops)
        generation.stopTokens = Set(request.stopTokens)
        generation.minimumTokens = request.minimumTokens
        generation.topScores = request.topScores
        generation.endsAtLimit = true
        // What is written and where it ends is the model's and the request's, also where it repeats itself or is empty.
        generation.detectsLoops = false
        if request.ignoresEnd { generation.bannedTokens = model.tokenizer.stopTokens.sorted() }
        if case .chat = request.input { isFree = false } else { isFree = true }
        if request.format != nil {
            for (name, isSet) in [
                ("ignore_eos", request.ignoresEnd), ("min_tokens", request.minimumTokens > 0),
                ("stop_token_ids", !request.stopTokens.isEmpty),
            ] where isSet {
                throw RequestError.unsupported(name, "the form of the answer says where it ends.")
            }
        }
        for bias in request.sampling.biases where Int(bias.token) >= model.tokenizer.vocabulary.count {
            throw RequestError.invalid(
                "logit_bias", "The model has no token \(bias.token): it has \(model.tokenizer.vocabulary.count) tokens.")
        }
        if let format = request.format {
            do {
                let grammar = try await model.grammars.grammar(
                    format.source, vocabulary: try await model.grammarVocabulary, options: AnswerFormat.options)
                generation.grammar = PendingGrammar(grammar)
            } catch let error as SchemaError {
                throw RequestError(error, place: format.place)
            }
        }
        checks = isGuarded ? Self.guardrails(request, local, model, hasAdapter: adapter != nil) : nil
        if checks?.isPromptUnsafe == true { throw RequestError.unsafePrompt(request) }
        generation.stateLayers = checks?.layers ?? []
        self.generation = generation
    }

    /// The checks of the last message, as sessions have them.
    private static func guardrails(
        _ request: TurnRequest, _ local: LocalModel, _ model: LoadedModel, hasAdapter: Bool
    ) -> TurnGuard {
        let prompt =
            switch request.input {
            case .chat(let chat): chat.messages.last { $0.role == .user }?.content ?? ""
            case .text(let text): text
            case .tokens(let tokens): String(decoding: model.tokenizer.decode(tokens), as: UTF8.self)
            }
        let usesAssistant = hasAdapter && local.isForGeneralUse
        // Without a chat template, no probe knows the states: the words decide.
        var isChat = false
        var isAnswered = false
        if case .chat(let chat) = request.input {
            isChat = true
            // A prompt is checked once: what follows are results of calls.
            isAnswered = chat.messages.last?.role == .tool
        }
        return TurnGuard(
            prompt: isAnswered ? "" : prompt, model, usesAssistant: usesAssistant,
            hasOtherAdapter: hasAdapter && !usesAssistant || !isChat || isAnswered,
            hasSchema: request.format != nil)
    }

    func run(answer: Int, emit: (TurnOutput) -> Bool) async throws -> TurnFinish {
        if request.maximumTokens == 0 {
            var usage = TurnUsage()
            usage.promptTokens = tokens.count
            return TurnFinish(reason: .length, usage: usage)
        }
        var generation = generation
        generation.sampling = request.sampling.settings(defaults, answer: answer)
        let sequence = try model.makeSequence(
            contextSize: local.maximumContext, format: local.cacheFormat, adapter: adapter,
            domain: request.cacheSalt.map { Self.domain(of: $0) } ?? 0)
        var hasCalls = false
        let tokenizer = model.tokenizer
        let result: GenerationResult
        var checks = checks
        var hasAnswer = false
        func receive(_ event: TurnEvent) -> Bool {
            switch event {
            case .text(let piece):
                guard checks?.take(piece.text) ?? true else { return false }
                hasAnswer = true
                return emit(.text(piece.text, piece.scores.map { TokenLogprob($0, tokenizer) }))
            case .thought(let piece): return emit(.thought(piece.text))
            case .call(let call): return emit(.call(call))
            case .state(let state, let layer): return checks?.take(state, layer: layer) ?? true
            }
        }
        do {
            if isFree {
                result = try await model.generate(generation, in: sequence) { receive(.text($0)) }
            } else {
                result = try await model.generateTurn(generation, tools: tools, in: sequence) { event in
                    if case .call = event { hasCalls = true }
                    return receive(event)
                }
            }
        } catch {
            throw RequestError.wrapping(error, request)
        }
        var usage = TurnUsage(result)
        usage.loadSeconds = model.loadSeconds
        if checks?.violation != nil {
            if !hasAnswer { throw RequestError.unsafePrompt(request) }
            return TurnFinish(reason: .filtered, usage: usage)
        }
        return TurnFinish(reason: reason(result, hasCalls), stopString: result.stopString, usage: usage)
    }

    private func reason(_ result: GenerationResult, _ hasCalls: Bool) -> TurnFinish.Reason {
        switch result.stopReason {
        case .endOfTurn: hasCalls ? .calls : .stop
        // A text that must have a form is not complete where a stop string ends it.
        case .stopString: request.format == nil ? .stop : .length
        case .loop, .grammarLimit, .maximumTokens, .contextFull: .length
        case .unwanted: .stop
        }
    }

    func echo() async throws -> TurnOutput {
        let text = String(decoding: model.tokenizer.decode(tokens), as: UTF8.self)
        guard let top = request.topScores, let first = tokens.first else { return .text(text, []) }
        let sequence = try model.makeSequence(
            contextSize: local.maximumContext, format: local.cacheFormat, adapter: adapter, sharesCache: false)
        do {
            let scores = try await model.scores(of: tokens, top: top, in: sequence)
            return .text(
                text, [TokenLogprob(first: first, model.tokenizer)] + scores.map { TokenLogprob($0, model.tokenizer) })
        } catch {
            throw RequestError.wrapping(error, request)
        }
    }

    private static let secret = RequestIdentifier.make("")

    /// What belongs to others with the same text alone.
    static func domain(of salt: String) -> UInt64 {
        // 0 is the domain of those who ask for nothing. Nobody can find a text with the hash of another one's.
        max(1, UInt64(APIKey.hash(of: secret + salt).prefix(16), radix: 16) ?? 1)
    }
}

// MARK: - The prompt

extension LocalTurn {
    static func definitions(
        _ tools: [ToolUse.Tool], _ checks: SchemaChecks
    ) async throws -> [Transcript.ToolDefinition] {
        var definitions: [Transcript.ToolDefinition] = []
        for tool in tools {
            let definition = Transcript.ToolDefinition(
                name: tool.name, description: tool.description, parameters: GenerationSchema(checked: tool.parameters))
            // The arguments of every tool are enforced, also of one that is not strict.
            do { try await checks.check(ChatTool(definition).parameters) } catch let error as SchemaError {
                throw RequestError(error, place: tool.place, code: "invalid_function_parameters")
            }
            definitions.append(definition)
        }
        return definitions
    }

    /// The prompt of a request.
    private struct Written {
        var tokens: [TokenID]
        var tools = TurnTools()
        var leftOutTurns = 0
        var recalledTurns = 0
    }

    private static func prompt(
        _ request: TurnRequest, _ definitions: [Transcript.ToolDefinition], _ local: LocalModel, _ model: LoadedModel,
        _ windows: ConversationWindows
    ) async throws -> Written {
        let count = model.tokenizer.vocabulary.count
        switch request.input {
        case .tokens(let tokens):
            if let wrong = tokens.first(where: { $0 < 0 || Int($0) >= count }) {
                throw RequestError.invalid(request.inputName, "The model has no token \(wrong): it has \(count) tokens.")
            }
            return Written(tokens: tokens)
        case .text(let text):
            var tokens = model.tokenizer.encode([.template(text)], addsBoundaryTokens: true)
            if let end = model.tokenizer.endMark, tokens.last == end { tokens.removeLast() }
            if tokens.isEmpty { throw RequestError.invalid(request.inputName, "“\(request.inputName)” is empty.") }
            return Written(tokens: tokens)
        case .chat(let chat):
            let conversation = try await FittedConversation(chat, request, definitions, local, model, windows)
            var written = Written(tokens: conversation.tokens)
            if let fitted = conversation.fitted {
                written.leftOutTurns = fitted.leftOutTurns
                written.recalledTurns = Set(fitted.recall?.recalledItems.map(\.turn) ?? []).count
            }
            if let prefill = chat.prefill { written.tokens += model.tokenizer.encode(continuation: prefill) }
            written.tools = try turnTools(
                request, definitions, conversation.prompt, Transcript(entries: conversation.entries), model)
            return written
        }
    }

    /// The tokens that are kept free for the answer where the conversation is made to fit.
    static func reserve(_ request: TurnRequest, _ contextSize: Int) -> Int {
        max(1, min(request.maximumTokens ?? 512, 512, contextSize / 4))
    }

    private static func turnTools(
        _ request: TurnRequest, _ definitions: [Transcript.ToolDefinition], _ prompt: ChatPrompt, _ transcript: Transcript,
        _ model: LoadedModel
    ) throws -> TurnTools {
        var tools = TurnTools()
        let names = Set(request.tools.callable.map(\.name))
        let callable = definitions.filter { names.contains($0.name) }
        tools.callable = callable.map { ChatTool($0) }
        tools.areInPrompt = !prompt.tools.isEmpty || prompt.messages.contains { !$0.toolCalls.isEmpty }
        tools.mustCall = request.tools.mustCall
        tools.maximumCalls = request.tools.allowsSeveral ? tools.maximumCalls : 1
        if case .named = request.tools.choice { tools.maximumCalls = 1 }
        // The client decides what it makes of equal calls.
        tools.repeatable = names
        if model.toolFormat == nil, !callable.isEmpty {
            let choice = ToolChoice(transcript: transcript, tools: callable, allowsResponse: !tools.mustCall)
            do { try choice?.add(to: &tools, model) } catch {
                throw RequestError.invalid(
                    request.inputName, "The model's chat template cannot write this conversation: \(error)")
            }
        }
        return tools
    }
}

extension Transcript {
    /// The entries of a conversation. The first instructions have the tools.
    static func entries(_ messages: [ChatMessage], _ tools: [ToolDefinition]) -> [Entry] {
        var entries: [Entry] = []
        var tools = tools
        func segments(_ text: String) -> [Segment] { [.text(.init(content: text))] }
        if !tools.isEmpty, !messages.contains(where: { $0.role == .system }) {
            entries.append(.instructions(.init(segments: [], toolDefinitions: tools)))
        }
        for message in messages {
            switch message.role {
            case .system:
                entries.append(.instructions(.init(segments: segments(message.content), toolDefinitions: tools)))
                tools = []
            case .user: entries.append(.prompt(.init(segments: segments(message.content))))
            case .assistant:
                if let thought = message.reasoning { entries.append(.reasoning(.init(segments: segments(thought)))) }
                if !message.content.isEmpty || message.toolCalls.isEmpty {
                    entries.append(.response(.init(segments: segments(message.content))))
                }
                if !message.toolCalls.isEmpty {
                    entries.append(
                        .toolCalls(
                            .init(
                                message.toolCalls.map {
                                    ToolCall(id: $0.id, toolName: $0.name, arguments: GeneratedContent($0.arguments))
                                })))
                }
            case .tool:
                entries.append(
                    .toolOutput(
                        .init(
                            id: message.toolCallID ?? "", toolName: message.toolName ?? "", segments: segments(message.content))))
            }
        }
        return entries
    }
}

// MARK: - Errors

extension ServedModel {
    /// - Throws: ``RequestError`` if the model cannot be loaded, or `CancellationError`.
    func lease() async throws -> ModelLease<LoadedModel> {
        do { return try await local.lease() } catch SystemLanguageModel.Error.assetsUnavailable(let reason) {
            // The reason has the server's paths, which are for its log.
            ServerLog.logger.error(
                "A model cannot be used", metadata: ["model": "\(name)", "reason": "\(reason.debugDescription)"])
            throw RequestError(
                503, type: "server_error", code: "model_unavailable", param: "model",
                "The model “\(name)” cannot be loaded now. The server's log says why.")
        }
    }
}

extension RequestError {
    init(_ error: SchemaError, place: String, code: String = "invalid_schema") {
        let pointer = error.pointer.isEmpty ? "/" : error.pointer
        self.init(400, code: code, param: place, "\(error.sentence) (JSON pointer “\(pointer)” of “\(place)”.)")
        details = [.init("pointer", .string(error.pointer))]
    }

    static func unsafePrompt(_ request: TurnRequest) -> RequestError {
        RequestError(
            400, type: "guardrail_violation", code: "content_filter", param: request.inputName,
            "The server's guardrails do not let this prompt pass: it may be unsafe.")
    }

    /// The error of a turn, as clients see it.
    static func wrapping(_ error: any Error, _ request: TurnRequest) -> any Error {
        if error is CancellationError || error is RequestError { return error }
        if let error = error as? SchemaError { return RequestError(error, place: request.format?.place ?? "tools") }
        guard let failure = error as? GenerationFailure else {
            ServerLog.logger.error("A turn has failed", metadata: ["reason": "\(error)"])
            return RequestError.fault
        }
        switch failure {
        case .promptTooLong(let tokens, let size):
            return RequestError.tooLong(tokens: tokens, contextSize: size, param: request.inputName)
        case .budgetTooSmall(let needed, let available):
            return RequestError(
                400, code: "max_tokens_too_small", param: "max_tokens",
                "The shortest answer of this form needs \(needed) tokens, but only \(available) are available. Allow more tokens."
            )
        case .argumentTooLong:
            return RequestError(400, code: "context_length_exceeded", param: request.inputName, failure.description)
        case .emptyPrompt: return RequestError.invalid(request.inputName, failure.description)
        case .grammarTooComplex:
            return RequestError(400, code: "invalid_schema", param: request.format?.place, failure.description)
        case .tooManyRequests, .outOfMemory:
            return RequestError(503, type: "server_error", code: "overloaded", failure.description, retryAfter: 5)
        case .unusableLogits where !request.sampling.biases.isEmpty:
            return RequestError.invalid("logit_bias", "“logit_bias” leaves no token that the answer could go on with.")
        case .unusableLogits, .unusableInput:
            ServerLog.logger.error("A turn has failed", metadata: ["reason": "\(failure)"])
            return RequestError.fault
        }
    }
}
