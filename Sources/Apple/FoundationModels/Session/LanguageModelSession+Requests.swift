internal import Waiting
internal import Synchronization
internal import Tracing

extension LanguageModelSession {
    /// Processes a request. All public functions call this one.
    func run(_ request: SessionRequest, _ progress: ResponseProgress) async throws -> ResponseOutput.Finished {
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
    ) async throws -> ResponseOutput.Finished {
        let prompt = request.entry
        let before = try await begin(prompt, number)
        progress.withOutput { $0.record(.prompt(prompt)) }
        progress.observe { [weak self] in self?.notifyOfResponse() }
        state.withLock { $0.progress = progress }
        let trace = RequestTrace()
        return try await SessionPropertyValues.$current.withValue(properties) {
            let profile =
                if let made = request.profile { made } else { await behavior.resolved(on: request.isolation) }
            let model = profile.model ?? SystemLanguageModel.default
            return try await withSpan("chat", ofKind: .client) { span in
                span.attributes["gen_ai.operation.name"] = "chat"
                span.attributes["gen_ai.request.model"] =
                    (model as? any HasLocalModel)?.localModel.description.name ?? "\(type(of: model))"
                do {
                    let finished = try await runRounds(request, prompt, before, profile, progress)
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
    private func runRounds(
        _ request: SessionRequest, _ prompt: Transcript.Prompt, _ before: Transcript, _ profile: ResolvedProfile,
        _ progress: ResponseProgress
    ) async throws -> ResponseOutput.Finished {
        var rounds = RequestRounds(
            session: self, request: request, prompt: prompt, profile: profile, progress: progress)
        do {
            try await rounds.run()
            let finished = progress.withOutput { $0.finished }
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
            // A stream that nobody reads any more, although it still exists, must not keep the session from answering.
            let abandoned = isInside ? nil : state.withLock { $0.progress }.flatMap { $0.isAbandoned ? $0 : nil }
            abandoned?.cancel()
            let waits = state.withLock { state in
                if abandoned != nil, state.progress === abandoned { state.isEnding = true }
                guard state.isEnding, !state.hasSuccessor, !state.isRunningTools || abandoned != nil, !isInside else {
                    return false
                }
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
            state.progress = nil
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
        let (output, partial) = progress.withOutput { ($0, $0.partialEntries) }
        var keeps = partial.isAnswer && !(error is ToolCallError)
        // Unsafe output and refusals must not become part of the next prompt.
        switch error {
        case LanguageModelError.guardrailViolation, LanguageModelError.refusal: keeps = false
        default: break
        }
        end { state in
            state.usage.add(output.usage)
            if policy?.keepsEntries ?? keeps {
                state.transcript.append(contentsOf: partial.entries)
                state.discarded = []
            } else {
                state.discarded = output.entries + partial.entries
                state.transcript = before
            }
        }
    }
}
