internal import AsyncLocks
internal import Foundation
internal import Synchronization
internal import Tracing

/// The parameters of a request to a session.
struct SessionRequest: Sendable {
    var prompt: Prompt
    var schema: GenerationSchema?
    var options: GenerationOptions
    var contextOptions = ContextOptions()
    var metadata: [String: GeneratedContent] = [:]
    /// A format that schemas cannot express.
    var format: ResponseFormat?
    /// Throws if the response cannot be converted to the requested type.
    var validate: @Sendable (GeneratedContent) throws -> Void = { _ in }

    var entry: Transcript.Prompt {
        Transcript.Prompt(
            metadata: metadata, segments: prompt.parts.segments, options: options,
            responseFormat: schema.map { Transcript.ResponseFormat(schema: $0) }, contextOptions: contextOptions)
    }
}

extension LanguageModelSession {
    /// Processes a request. All public functions call this one.
    func run(_ request: SessionRequest, _ progress: ResponseProgress) async throws -> ResponseProgress.Finished {
        let number = state.withLock { state in
            state.requestCount += 1
            return state.requestCount
        }
        return try await withTaskCancellationHandler {
            try await process(request, number, progress)
        } onCancel: {
            state.withLock { state in if state.running == number { state.isEnding = true } }
        }
    }

    private func process(
        _ request: SessionRequest, _ number: Int, _ progress: ResponseProgress
    ) async throws -> ResponseProgress.Finished {
        let prompt = request.entry
        let before = try await begin(prompt, number)
        progress.record(.prompt(prompt))
        let trace = RequestTrace()
        return try await SessionPropertyValues.$current.withValue(properties) {
            let profile = behavior.resolved()
            let model = profile.model ?? SystemLanguageModel.default
            return try await withSpan("chat", ofKind: .client) { span in
                span.attributes["gen_ai.operation.name"] = "chat"
                span.attributes["gen_ai.request.model"] = "\(type(of: model))"
                do {
                    let finished = try await answer(request, prompt, before, profile, progress)
                    span.attributes["gen_ai.usage.input_tokens"] = finished.usage.input.totalTokenCount
                    span.attributes["gen_ai.usage.cache_read.input_tokens"] = finished.usage.input.cachedTokenCount
                    span.attributes["gen_ai.usage.output_tokens"] = finished.usage.output.totalTokenCount
                    await trace?.end(transcript, prompt, model, progress, nil)
                    return finished
                } catch {
                    span.attributes["error.type"] = "\(type(of: error))"
                    await trace?.end(before + [.prompt(prompt)], prompt, model, progress, error)
                    throw error
                }
            }
        }
    }

    /// Runs the rounds of the request and records their result or error.
    private func answer(
        _ request: SessionRequest, _ prompt: Transcript.Prompt, _ before: Transcript, _ profile: ResolvedProfile,
        _ progress: ResponseProgress
    ) async throws -> ResponseProgress.Finished {
        var rounds = RequestRounds(
            session: self, request: request, prompt: prompt, profile: profile, progress: progress)
        do {
            try await rounds.run()
            let finished = progress.finished()
            // A response that cannot be converted to the requested type is an error.
            try request.validate(finished.content)
            end { state in
                state.usage.add(finished.usage)
                state.discarded = []
            }
            return finished
        } catch {
            handleFailure(before, rounds.profile, error, progress)
            throw _SessionFailure.wrapping(error)
        }
    }

    /// Records the prompt, or throws if another request is in progress. Returns the transcript before the prompt.
    private func begin(_ prompt: Transcript.Prompt, _ number: Int) async throws -> Transcript {
        try Task.checkCancellation()
        func start(_ state: inout State) {
            state.running = number
            state.isEnding = Task.isCancelled
            state.hasSuccessor = false
            state.isRunningTools = false
        }
        let isFirst = state.withLock { state in
            guard requests.tryAcquire() else { return false }
            start(&state)
            return true
        }
        if !isFirst {
            // A cancelled request ends within one token, unless its tools are running; waiting for it saves the caller
            // from doing so. One request may wait. A tool or a callback of the request would wait for itself.
            let isInside = SessionPropertyValues.current === properties
            let waits = state.withLock { state in
                guard state.isEnding, !state.hasSuccessor, !state.isRunningTools, !isInside else { return false }
                state.hasSuccessor = true
                return true
            }
            guard waits else { throw _SessionFailure.wrapping(Error.concurrentRequests) }
            do { try await requests.acquire() } catch {
                state.withLock { $0.hasSuccessor = false }
                throw error
            }
            state.withLock { start(&$0) }
        }
        return update { state in
            let before = state.transcript
            state.isResponding = true
            state.wasMutated = false
            state.transcript.append(.prompt(prompt))
            return before
        }
    }

    /// Ends the request; the next one may begin.
    private func end(_ change: (inout State) -> Void) {
        update { state in
            change(&state)
            state.isResponding = false
            // In the same critical section: code that reads that the session is not responding can begin a request.
            requests.release()
        }
    }

    /// Handles a failed request; see ``transcriptErrorHandlingPolicy``.
    private func handleFailure(
        _ before: Transcript, _ profile: ResolvedProfile, _ error: any Swift.Error, _ progress: ResponseProgress
    ) {
        let policy = state.withLock { $0.policy } ?? profile.policy
        let partial = progress.partialEntries(usedIDs: state.withLock { $0.transcript.usedIDs })
        var keeps = partial.hasText && !(error is ToolCallError)
        // Unsafe output must not become part of the next prompt.
        if case LanguageModelError.guardrailViolation = error { keeps = false }
        end { state in
            state.usage.add(progress.current().usage)
            if policy?.keepsEntries ?? keeps {
                state.transcript.append(contentsOf: partial.entries)
                state.discarded = []
            } else {
                state.discarded = progress.recorded + partial.entries
                state.transcript = before
            }
        }
    }
}

/// The rounds of one request. In each round the model generates; if it calls tools, their outputs are appended and
/// another round follows.
private struct RequestRounds {
    let session: LanguageModelSession
    let request: SessionRequest
    let prompt: Transcript.Prompt
    /// The profile of the current round, evaluated once for each round.
    private(set) var profile: ResolvedProfile
    let progress: ResponseProgress
    private var toolRounds = ToolRounds()

    init(
        session: LanguageModelSession, request: SessionRequest, prompt: Transcript.Prompt, profile: ResolvedProfile,
        progress: ResponseProgress
    ) {
        self.session = session
        self.request = request
        self.prompt = prompt
        self.profile = profile
        self.progress = progress
    }

    mutating func run() async throws {
        while true {
            try await prepare(profile)
            let tools = profile.instructions.tools
            let options = request.options.completed(by: profile.options)
            var mode = options.toolCallingMode?.kind ?? .allowed
            if mode == .required, tools.isEmpty {
                throw LanguageModelError.unsupportedCapability(
                    .init(capability: .toolCalling, debugDescription: "Tool calls are required, but there are no tools."))
            }
            let hidesTools = mode == .disallowed
            if toolRounds.isExhausted { mode = .disallowed }
            let made = try await generate(profile, options, mode == .disallowed ? [] : tools, hidesTools: hidesTools)
            try Task.checkCancellation()
            try await notify(made, profile.callbacks)
            try checkMutation()
            let calls = made.flatMap { entry -> [Transcript.ToolCall] in
                if case .toolCalls(let calls) = entry { Array(calls) } else { [] }
            }
            if calls.isEmpty { return }
            if mode == .disallowed {
                throw GeneratedContent.ParsingError(
                    rawContent: calls[0].description, debugDescription: "The model called a tool, but tool calls are disallowed.")
            }
            session.state.withLock { $0.isRunningTools = true }
            let outputs = try await toolRounds.run(calls, tools: tools, callbacks: profile.callbacks)
            session.state.withLock { $0.isRunningTools = false }
            for output in outputs {
                append(.toolOutput(output))
                progress.record(.toolOutput(output))
            }
            profile = session.behavior.resolved()
        }
    }

    /// Applies the profile to the session before the model request: calls callbacks and updates the transcript.
    private func prepare(_ profile: ResolvedProfile) async throws {
        if profile.hasProfile {
            let last = session.state.withLock { $0.activeProfile }
            if last?.identity != profile.identity {
                for callback in last?.onDeactivate ?? [] { await callback() }
                let active = LanguageModelSession.ActiveProfile(
                    identity: profile.identity, onDeactivate: profile.callbacks.onDeactivate)
                session.state.withLock { $0.activeProfile = active }
                for callback in profile.callbacks.onActivate { await callback() }
            }
            session.update { $0.transcript = session.behavior.completed($0.transcript, profile) }
        }
        for callback in profile.callbacks.onPrompt { try await callback(prompt) }
    }

    /// Sends one request to the model and records its output.
    private func generate(
        _ profile: ResolvedProfile, _ options: GenerationOptions, _ tools: [any Tool], hidesTools: Bool
    ) async throws -> [Transcript.Entry] {
        var transcript = session.behavior.completed(session.state.withLock { $0.transcript }, profile)
        // Tools that may not be called are not part of the prompt.
        if hidesTools { transcript.hideTools() }
        if !profile.historyTransforms.isEmpty {
            let history = profile.historyTransforms.reduce(Array(transcript.history)) { $1($0) }
            transcript.history = Transcript.HistoryView(history[...])
        }
        var contextOptions = request.contextOptions
        contextOptions.reasoningLevel = contextOptions.reasoningLevel ?? profile.reasoningLevel
        var executorRequest = LanguageModelExecutorGenerationRequest(
            id: UUID(), transcript: transcript, enabledTools: tools.map { Transcript.ToolDefinition(tool: $0) },
            schema: request.schema, generationOptions: options, contextOptions: contextOptions, metadata: request.metadata)
        executorRequest.format = request.format
        progress.beginRound()
        let model: any LanguageModel = profile.model ?? SystemLanguageModel.default
        try await respond(with: model, executorRequest)
        try checkMutation()
        let made = try progress.endRound(usedIDs: session.state.withLock { $0.transcript.usedIDs })
        for entry in made { append(entry) }
        return made
    }

    private func respond(
        with model: some LanguageModel, _ request: LanguageModelExecutorGenerationRequest
    ) async throws {
        try model.capabilities.check(request)
        let executor = try session.executors.executor(for: model)
        let channel = LanguageModelExecutorGenerationChannel { [progress] in progress.receive($0) }
        try await executor.respond(to: request, model: model, streamingInto: channel)
    }

    private func notify(_ entries: [Transcript.Entry], _ callbacks: ProfileCallbacks) async throws {
        for entry in entries {
            switch entry {
            case .reasoning(let reasoning): for callback in callbacks.onReasoning { try await callback(reasoning) }
            case .response(let response): for callback in callbacks.onResponse { try await callback(response) }
            default: break
            }
        }
    }

    private func checkMutation() throws {
        if session.state.withLock({ $0.wasMutated }) {
            throw LanguageModelSession.Error.transcriptMutationWhileResponding
        }
    }

    private func append(_ entry: Transcript.Entry) { session.update { $0.transcript.append(entry) } }
}

extension Transcript {
    /// The ids of all entries and calls.
    fileprivate var usedIDs: Set<String> {
        var ids: Set<String> = []
        for entry in self {
            ids.insert(entry.id)
            if case .toolCalls(let calls) = entry { ids.formUnion(calls.map(\.id)) }
        }
        return ids
    }
}

extension GenerationOptions {
    /// These options, with nil values replaced by those of the other.
    fileprivate func completed(by other: GenerationOptions) -> GenerationOptions {
        GenerationOptions(
            samplingMode: samplingMode ?? other.samplingMode, temperature: temperature ?? other.temperature,
            maximumResponseTokens: maximumResponseTokens ?? other.maximumResponseTokens,
            toolCallingMode: toolCallingMode ?? other.toolCallingMode)
    }
}

extension LanguageModelCapabilities {
    /// - Throws: ``LanguageModelError/unsupportedCapability(_:)`` if the request requires a capability that the model
    ///   does not have.
    fileprivate func check(_ request: LanguageModelExecutorGenerationRequest) throws {
        func need(_ capability: Capability, _ reason: String) throws {
            if !contains(capability) {
                throw LanguageModelError.unsupportedCapability(
                    .init(capability: capability, debugDescription: "The model lacks a required capability: \(reason)."))
            }
        }
        if request.schema != nil { try need(.guidedGeneration, "guided generation") }
        if !request.enabledToolDefinitions.isEmpty { try need(.toolCalling, "tool calling") }
        if request.contextOptions.reasoningLevel != nil { try need(.reasoning, "reasoning") }
        let hasPictures = request.transcript.contains { entry in
            let segments: [Transcript.Segment] =
                switch entry {
                case .instructions(let entry): entry.segments
                case .prompt(let entry): entry.segments
                case .toolOutput(let entry): entry.segments
                default: []
                }
            return segments.contains { if case .attachment = $0 { true } else { false } }
        }
        if hasPictures { try need(.vision, "image input") }
    }
}
