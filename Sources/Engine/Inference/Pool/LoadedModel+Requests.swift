internal import Waiting

/// Requests, and the task that runs the engine for them.
extension LoadedModel {
    /// Processes the tokens that are not yet in the sequence's KV cache, so that a request that begins with `tokens`
    /// starts sooner. Does nothing if the tokens do not fit the context.
    package nonisolated func prefill(_ tokens: [TokenID], in sequence: SequenceState) async throws {
        guard tokens.count < sequence.contextSize else { return }
        try await run(PrefillWork(prompt: ModelInput(tokens)), in: sequence)
    }

    /// The natural logarithm of the probability that the model generates `continuation` after `prompt`. Of a
    /// continuation longer than one batch, only the beginning counts.
    ///
    /// - Throws: ``GenerationFailure`` if the two do not fit the sequence, or `CancellationError`.
    package nonisolated func logProbability(
        of continuation: [TokenID], after prompt: [TokenID], in sequence: SequenceState
    ) async throws -> Double {
        guard !prompt.isEmpty else { throw GenerationFailure.emptyPrompt }
        let scored = Array(continuation.prefix(EngineLimits.passTokens - 1))
        let count = prompt.count + 1 + scored.count
        guard count <= sequence.contextSize else {
            throw GenerationFailure.promptTooLong(tokens: count, contextSize: sequence.contextSize)
        }
        let scoring = ScoringWork(of: scored, after: prompt)
        try await run(scoring, in: sequence)
        return scoring.logProbability
    }

    /// The probabilities of the tokens of a text from the second one on, each after those before it.
    ///
    /// - Parameter top: the number of most probable tokens to report for each.
    /// - Throws: ``GenerationFailure`` if the text is empty or does not fit the sequence, or `CancellationError`.
    package nonisolated func scores(of tokens: [TokenID], top: Int, in sequence: SequenceState) async throws -> [TokenScore] {
        guard !tokens.isEmpty else { throw GenerationFailure.emptyPrompt }
        guard tokens.count <= sequence.contextSize else {
            throw GenerationFailure.promptTooLong(tokens: tokens.count, contextSize: sequence.contextSize)
        }
        let scoring = PromptScoringWork(tokens, top: top)
        try await run(scoring, in: sequence)
        return scoring.scores
    }

    /// The number of leading tokens whose keys and values are in memory, for a request in a sequence like this one.
    package nonisolated func cachedTokens(of tokens: [TokenID], like sequence: SequenceState) -> Int {
        memory.knownPrefix(of: ModelInput(tokens).rows, model: contents) { $0.isCompatible(with: sequence.cache) }
    }

    /// Runs the work of a sequence to its end.
    nonisolated func run(_ work: any SequenceWork, in sequence: SequenceState) async throws {
        let events = TurnEvents()
        try await run(work, in: sequence, events: events) { _ = try await events.next() }
    }

    /// Runs the work of a sequence to its end, together with those of other sequences, while `read` takes its events in the caller's task.
    /// Tasks of low priority are background work, until a task of higher priority waits for them.
    nonisolated func run(
        _ work: any SequenceWork, in sequence: SequenceState, events: TurnEvents, read: () async throws -> Void
    ) async throws {
        precondition(sequence.fits(self), "the caller makes a sequence for each model")
        try await sequence.lock.acquire()
        defer { sequence.lock.release() }
        let signals = RequestSignals()
        let priority: Scheduler.Priority = Task.currentPriority < .medium ? .background : .interactive
        try await withTaskCancellationHandler {
            try await withTaskPriorityEscalationHandler {
                try await submit(Submission(work: work), sequence, priority, signals, events)
                try await read()
            } onPriorityEscalated: { _, new in
                guard new >= .medium else { return }
                signals.escalate()
                wakeEngine()
            }
        } onCancel: {
            signals.cancel()
            // A turn that waits for its grammar keeps no engine running.
            wakeEngine()
        }
    }

    /// Work on its way to the engine. Only the engine uses it until it has ended.
    private struct Submission: @unchecked Sendable {
        let work: any SequenceWork
    }

    private func submit(
        _ submission: Submission, _ sequence: SequenceState, _ priority: Scheduler.Priority, _ signals: RequestSignals,
        _ events: TurnEvents
    ) throws {
        try engine.submit(submission.work, in: sequence.cache, priority: priority, signals: signals) { events.finish($0) }
        submissions += 1
        startEngine()
    }

    /// Lets the engine look after its work again; called on any thread.
    nonisolated func wakeEngine() { Task.detached { await self.startEngine() } }

    private func startEngine() {
        if isRunning { return }
        isRunning = true
        if let wait = parked {
            memory.account.unpark(wait)
            parked = nil
        } else if !isCounted {
            memory.account.enter()
            isCounted = true
        }
        // Detached: the engine must not keep the task-local values of the request that happens to start it.
        Task.detached { await self.runEngine() }
    }

    private func runEngine() async {
        var isDone = false
        while !isDone {
            let changes = memory.account.changes
            if !engine.step() {
                if engine.isStalled { parked = memory.account.park(after: changes) { self.wakeEngine() } }
                isDone = !engine.isStalled || parked != nil
            }
            // Between two passes the actor accepts new requests.
            if !isDone { await Task.yield() }
        }
        isRunning = false
        // An engine whose requests wait for something else still runs: they will end.
        if parked == nil, !engine.hasJobs {
            memory.account.leave()
            isCounted = false
        }
    }

    /// The number of requests that wait because too many others are being processed.
    package var waitingRequests: Int { engine.waitingCount }

    /// The numbers of passes and of tokens that the engine has processed.
    package var processed: (passes: Int, tokens: Int) { (engine.passes, engine.processedTokens) }
}
