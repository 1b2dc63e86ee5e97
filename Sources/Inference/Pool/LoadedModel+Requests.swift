internal import AsyncLocks
internal import Grammar

/// Requests, and the task that runs the engine for them.
extension LoadedModel {
    /// Processes the tokens that are not yet in the sequence's KV cache, so that a request that begins with `tokens`
    /// starts sooner. Does nothing if the tokens do not fit the context.
    package nonisolated func prefill(_ tokens: [TokenID], in sequence: SequenceState) async throws {
        guard tokens.count < sequence.contextSize else { return }
        try await run(PrefillWork(prompt: tokens), in: sequence)
    }

    /// The natural logarithm of the probability that the model generates `continuation` after `prompt`. Of a
    /// continuation longer than one batch, only the beginning counts.
    ///
    /// - Throws: ``GenerationFailure`` if the two do not fit the sequence, or `CancellationError`.
    package nonisolated func logProbability(
        of continuation: [TokenID], after prompt: [TokenID], in sequence: SequenceState
    ) async throws -> Double {
        guard !prompt.isEmpty else { throw GenerationFailure.emptyPrompt }
        let scored = Array(continuation.prefix(NeuralModel.batchSize - 1))
        let count = prompt.count + 1 + scored.count
        guard count <= sequence.contextSize else {
            throw GenerationFailure.promptTooLong(tokens: count, contextSize: sequence.contextSize)
        }
        let scoring = ScoringWork(of: scored, after: prompt)
        try await run(scoring, in: sequence)
        return scoring.logProbability
    }

    /// Generates a response to the request's prompt and passes its text to `emit`, in whole characters, until `emit`
    /// returns false. `emit` is called in the caller's task.
    ///
    /// Afterwards the sequence contains the prompt and the response. Cancelling the task ends generation within one
    /// token.
    /// - Throws: ``GenerationFailure``, or `CancellationError`.
    package nonisolated func generate(
        _ request: GenerationRequest, in sequence: SequenceState, emit: (GeneratedText) -> Bool
    ) async throws -> GenerationResult {
        try await turn(request, TurnPlan(request, ChatTurn(), TurnVocabulary(tokenizer)), in: sequence) { event in
            if case .text(let piece) = event { emit(piece) } else { true }
        }
    }

    /// Generates a turn in the chat format of the model: reasoning, the answer, calls of tools.
    ///
    /// - Parameters:
    ///   - request: the prompt, sampling, the limit for reasoning and answer, and a grammar if the answer has one.
    ///   - receive: called with each event in the caller's task; returns false to end the turn.
    /// - Throws: ``GenerationFailure``, ``SchemaError`` of a tool's arguments, or `CancellationError`.
    package nonisolated func generateTurn(
        _ request: GenerationRequest, tools: TurnTools = TurnTools(), in sequence: SequenceState,
        receive: (TurnEvent) -> Bool
    ) async throws -> GenerationResult {
        var chat = ChatTurn()
        chat.toolFormat = toolFormat
        chat.thinkingFormat = thinkingFormat
        chat.tools = tools
        if toolFormat == nil { chat.tools.callable = [] }
        chat.contextSize = sequence.contextSize
        chat.minimumOptionalArgumentLogOdds = defaults.minimumOptionalArgumentLogOdds
        chat.minimumNextCallLogOdds = defaults.minimumNextCallLogOdds
        chat.minimumCallProbability = defaults.minimumCallProbability
        if !chat.tools.callable.isEmpty { chat.grammar = argumentGrammar(try await grammarVocabulary) }
        return try await turn(request, TurnPlan(request, chat, TurnVocabulary(tokenizer)), in: sequence, receive: receive)
    }

    /// The grammars of arguments, compiled when a call needs them: most turns call nothing.
    private nonisolated func argumentGrammar(
        _ vocabulary: TokenVocabulary
    ) -> @Sendable (ChatTool, ChatTool.Property?) throws -> Grammar? {
        { [grammars] tool, property in
            let source: GrammarSource =
                if let property {
                    .framed(before: "", schema: property.schema, after: "")
                } else {
                    .framed(before: " ", schema: tool.parameters, after: "")
                }
            return try grammars.grammarNow(
                source, vocabulary: vocabulary, options: GrammarOptions(isSpaced: true, allowsZeroFraction: false))
        }
    }

    private nonisolated func turn(
        _ request: GenerationRequest, _ plan: TurnPlan, in sequence: SequenceState, receive: (TurnEvent) -> Bool
    ) async throws -> GenerationResult {
        let contextSize = sequence.contextSize
        guard !request.tokens.isEmpty else { throw GenerationFailure.emptyPrompt }
        guard request.tokens.count < contextSize else {
            throw GenerationFailure.promptTooLong(tokens: request.tokens.count, contextSize: contextSize)
        }
        let events = TurnEvents()
        let decoding = try TurnDecoding(
            request, plan: plan, tokenizer: tokenizer, contextSize: contextSize,
            logitCount: shape.vocabularySize, isUnwanted: { events.isUnwanted }, send: events.send)
        try await run(decoding, in: sequence, events: events) {
            while true {
                let received = try await events.next()
                if received.isEmpty { return }
                for event in received where !events.isUnwanted {
                    // A cancellation takes effect between two events, too.
                    if Task.isCancelled { break }
                    if !receive(event) { events.refuse() }
                }
            }
        }
        return decoding.result
    }

    /// Runs a decoding to its end.
    private nonisolated func run(_ decoding: any SequenceWork, in sequence: SequenceState) async throws {
        let events = TurnEvents()
        try await run(decoding, in: sequence, events: events) { _ = try await events.next() }
    }

    /// Runs a decoding to its end, together with those of other sequences, while `read` takes its events in the caller's task.
    /// Tasks of low priority are background work, until a task of higher priority waits for them.
    private nonisolated func run(
        _ decoding: any SequenceWork, in sequence: SequenceState, events: TurnEvents, read: () async throws -> Void
    ) async throws {
        try await sequence.lock.acquire()
        defer { sequence.lock.release() }
        let signals = RequestSignals()
        let priority: Scheduler.Priority = Task.currentPriority < .medium ? .background : .interactive
        try await withTaskCancellationHandler {
            try await withTaskPriorityEscalationHandler {
                try await submit(Submission(decoding: decoding), sequence, priority, signals, events)
                try await read()
            } onPriorityEscalated: { _, new in
                if new >= .medium { signals.escalate() }
            }
        } onCancel: {
            signals.cancel()
        }
    }

    /// A decoding on its way to the engine. Only the engine uses it until it has ended.
    private struct Submission: @unchecked Sendable {
        let decoding: any SequenceWork
    }

    private func submit(
        _ submission: Submission, _ sequence: SequenceState, _ priority: Scheduler.Priority, _ signals: RequestSignals,
        _ events: TurnEvents
    ) throws {
        try engine.submit(submission.decoding, in: sequence.cache, priority: priority, signals: signals) { events.finish($0) }
        submissions += 1
        startEngine()
    }

    private func startEngine() {
        if isRunning { return }
        isRunning = true
        // Detached: the engine must not keep the task-local values of the request that happens to start it.
        Task.detached { await self.runEngine() }
    }

    private func runEngine() async {
        // Between two passes the actor accepts new requests.
        while engine.step() { await Task.yield() }
        isRunning = false
    }

    /// The number of requests that wait because too many others are being processed.
    package var waitingRequests: Int { engine.waitingCount }

    /// The numbers of passes and of tokens that the engine has processed.
    package var processed: (passes: Int, tokens: Int) { (engine.passes, engine.processedTokens) }
}
