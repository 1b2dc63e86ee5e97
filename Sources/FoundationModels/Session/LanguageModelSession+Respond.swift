internal import Synchronization

extension LanguageModelSession {
    /// Answers a prompt.
    ///
    /// - Throws: ``GenerationError``, or `CancellationError` if the task is cancelled.
    @discardableResult
    public nonisolated(nonsending) func respond(
        to prompt: Prompt, options: GenerationOptions = GenerationOptions()
    ) async throws -> Response<String> {
        let finished = try await run(prompt, options: options) { _ in }
        return Response(
            content: try String(finished.rawContent), rawContent: finished.rawContent,
            transcriptEntries: finished.entries, usage: finished.usage)
    }

    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func respond(
        to prompt: String, options: GenerationOptions = GenerationOptions()
    ) async throws -> Response<String> {
        try await respond(to: Prompt(prompt), options: options)
    }

    @discardableResult
    public nonisolated(nonsending) func respond(
        options: GenerationOptions = GenerationOptions(), @PromptBuilder prompt: () throws -> Prompt
    ) async throws -> Response<String> {
        try await respond(to: try prompt(), options: options)
    }

    /// Answers a prompt, piece by piece. Errors come while the stream is read.
    public func streamResponse(
        to prompt: Prompt, options: GenerationOptions = GenerationOptions()
    ) -> sending ResponseStream<String> {
        let source = StreamSource()
        let request = source.run { source in
            try await self.run(prompt, options: options) { source.append($0) }
        }
        return ResponseStream(source: source, request: request)
    }

    @_disfavoredOverload
    public func streamResponse(
        to prompt: String, options: GenerationOptions = GenerationOptions()
    ) -> sending ResponseStream<String> {
        streamResponse(to: Prompt(prompt), options: options)
    }

    public func streamResponse(
        options: GenerationOptions = GenerationOptions(), @PromptBuilder prompt: () throws -> Prompt
    ) rethrows -> sending ResponseStream<String> {
        streamResponse(to: try prompt(), options: options)
    }

    /// Loads the model and computes what a request that begins like this will need, in the background.
    ///
    /// Call it when a request is likely, about a second ahead: its first token then comes sooner.
    public func prewarm(promptPrefix: Prompt? = nil) {
        let transcript = state.withLock { $0.transcript }
        Task {
            // A hint has no one to report to: the request itself will say what is wrong.
            guard let turn = try? await engine() else { return }
            await turn.prefill(transcript, promptPrefix: promptPrefix)
        }
    }
}
