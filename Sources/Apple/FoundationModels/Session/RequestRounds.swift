internal import Foundation
internal import Synchronization

/// The rounds of one request. In each round the model generates; if it calls tools, their outputs are appended and
/// another round follows.
struct RequestRounds {
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

    /// The model of the current round.
    private var model: any LanguageModel { profile.model ?? SystemLanguageModel.default }

    mutating func run() async throws {
        while true {
            try await prepare(profile)
            let tools = profile.instructions.tools
            var options = request.options.completed(by: profile.options)
            // A required call has been made: more calls may follow, and an answer in words ends the request.
            if options.toolCallingMode == .required, toolRounds.hasRun { options.toolCallingMode = .allowed }
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
            toolRounds.stopsRepeatedCalls = await (model as? any HasLocalModel)?.localModel.stopsRepeatedCalls ?? false
            session.state.withLock { $0.isRunningTools = true }
            let outputs = try await toolRounds.run(calls, tools: tools, callbacks: profile.callbacks)
            session.state.withLock { $0.isRunningTools = false }
            for output in outputs {
                append(.toolOutput(output))
                progress.withOutput { $0.record(.toolOutput(output)) }
            }
            profile = await session.behavior.resolved(on: request.isolation)
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
        var tools = tools
        // A model that made the same calls twice, with the same outputs, would rather make them again than answer.
        if toolRounds.stopsRepeatedCalls, let shortened = transcript.withoutRepeatedCalls {
            (transcript, tools) = (shortened, [])
        }
        var contextOptions = request.contextOptions
        contextOptions.reasoningLevel = contextOptions.reasoningLevel ?? profile.reasoningLevel
        var executorRequest = LanguageModelExecutorGenerationRequest(
            id: UUID(), transcript: transcript, enabledTools: tools.map { Transcript.ToolDefinition(tool: $0) },
            schema: request.schema, generationOptions: options, contextOptions: contextOptions, metadata: request.metadata)
        executorRequest.format = request.format
        let (usedIDs, replaceableIDs) = session.state.withLock { ($0.transcript.usedIDs, $0.transcript.replaceableIDs) }
        progress.withOutput { $0.beginRound(usedIDs: usedIDs, replaceableIDs: replaceableIDs) }
        try await respond(with: model, executorRequest)
        try checkMutation()
        // A model around another one may have passed entries on without a check.
        for entry in progress.withOutput({ $0.dataEntries }) { try await model.check(entry) }
        // At once, so that no reader of the transcript sees less than before.
        return try session.update { state in
            let made = try progress.withOutput { try $0.endRound() }
            for entry in made { state.transcript.append(orReplace: entry) }
            return made
        }
    }

    private func respond(
        with model: some LanguageModel, _ request: LanguageModelExecutorGenerationRequest
    ) async throws {
        try model.capabilities.check(request)
        try await model.checkAttachments(of: request)
        let executor = try session.executors.executor(for: model)
        let channel = LanguageModelExecutorGenerationChannel { [progress] in
            progress.receive($0)
        } admits: { [progress] data in
            do {
                try await model.check(data.entry)
                return true
            } catch {
                progress.withOutput { $0.refuse(because: error) }
                return false
            }
        }
        do { try await executor.respond(to: request, model: model, streamingInto: channel) } catch {
            throw progress.withOutput { $0.refusal } ?? error
        }
        if let refusal = progress.withOutput({ $0.refusal }) { throw refusal }
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
