package import Grammar
internal import Synchronization

/// Turns of a model, and the grammars of their parts.
extension LoadedModel {
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
        chat.contextSize = sequence.contextSize
        chat.grammar = { tool, property, after in self.argumentGrammar(tool, property, after) }
        chat.callList = { tools, count in self.callListGrammar(tools, count) }
        if toolFormat != nil, !tools.callable.isEmpty {
            // A call needs the vocabulary soon; it is made while the prompt is processed. Cancellation is the only error.
            Task.detached { [self] in _ = try? await grammarVocabulary }
        }
        return try await turn(request, TurnPlan(request, chat, TurnVocabulary(tokenizer)), in: sequence, receive: receive)
    }

    /// The grammar of a response, compiled while the model computes.
    package nonisolated func grammar(_ source: GrammarSource, _ options: GrammarOptions) -> PendingGrammar {
        if let known = grammars.known(source, options: options) { return PendingGrammar(known) }
        return PendingGrammar { [self] in
            try await grammars.grammar(source, vocabulary: try await grammarVocabulary, options: options)
        }
    }

    /// The grammar of arguments, compiled when a call needs it: most turns call nothing.
    private nonisolated func argumentGrammar(
        _ tool: ChatTool, _ property: ChatTool.Property?, _ after: String
    ) -> PendingGrammar {
        let source: GrammarSource =
            if let property {
                .framed(before: "", schema: property.schema, after: after)
            } else {
                .framed(before: " ", schema: tool.parameters, after: after)
            }
        // A turn need not wait for what is there.
        if let known = grammars.known(source, options: Self.callOptions) { return PendingGrammar(known) }
        return PendingGrammar { [self] in
            try await grammars.unpreparedGrammar(source, vocabulary: try await grammarVocabulary, options: Self.callOptions)
        }
    }

    private nonisolated func callListGrammar(_ tools: [ChatTool], _ count: Int) -> PendingGrammar {
        let tools = tools.map { ToolGrammar.Tool(name: $0.name, parameters: $0.parameters) }
        return grammar(.tools(ToolGrammar(tools: tools, allowsText: false, maximumCount: count)), Self.callOptions)
    }

    private static let callOptions = GrammarOptions(isSpaced: true, allowsZeroFraction: false)

    /// Reads the layer with which the model predicts the token after the next one, if its file has one: from now on it proposes tokens
    /// of turns, instead of a look-up. Does not change what turns say.
    ///
    /// - Returns: whether the file has such a layer.
    @discardableResult package func loadPredictionHead() throws(ModelError) -> Bool {
        guard let model = model as? NeuralModel else { return false }
        let file = try GGUFFile(path: path)
        guard let fingerprint, try file.fingerprint() == fingerprint else {
            throw .unreadable(
                path: path, reason: "it was replaced while the model was in memory, or has an adapter merged into it")
        }
        let head = try PredictionHead(of: model, file: file)
        predictionHead.withLock { $0 = head.map { UsedHead(head: $0) } }
        return head != nil
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
        let driver = try TurnDriver(
            request, plan: plan, tokenizer: tokenizer, contextSize: contextSize,
            logitCount: shape.vocabularySize, head: predictionHead.withLock { $0?.head }, isUnwanted: { events.isUnwanted },
            wake: wakeEngine, send: events.send)
        try await run(driver, in: sequence, events: events) {
            while true {
                let received = try await events.next()
                if received.isEmpty { return }
                for event in received where !events.isUnwanted {
                    // A cancellation takes effect between two events, too.
                    if Task.isCancelled { break }
                    if !receive(event) {
                        events.refuse()
                        // The turn may wait for its grammar.
                        wakeEngine()
                    }
                }
            }
        }
        memory.telemetry.noteAnswer(tokens: driver.result.usage.generatedTokens)
        return driver.result
    }
}
