internal import Inference
internal import JSON

/// The output of a turn: checks the events of the model's turn and passes them on to the session.
struct TurnRun: ~Copyable {
    private let channel: LanguageModelExecutorGenerationChannel
    private var checks: TurnGuard
    private var text = ""
    private var hasCalls = false

    /// - Parameter isFirst: whether it is the first turn after the prompt: a prompt is checked once.
    init(_ checks: InputChecks, isFirst: Bool, into channel: LanguageModelExecutorGenerationChannel) {
        self.channel = channel
        self.checks = TurnGuard(
            isChecked: checks.isChecked, probe: checks.probe, suspicion: isFirst ? checks.suspicion : nil)
    }

    /// Processes an event; returns false to end the turn.
    mutating func take(_ event: TurnEvent) -> Bool {
        switch event {
        case .text(let piece):
            guard checks.take(piece.text) else { return false }
            text += piece.text
            channel.emit(.response(action: .appendText(piece.text, tokenCount: piece.tokens.count)))
        case .thought(let piece):
            channel.emit(.reasoning(action: .appendText(piece.text, tokenCount: piece.tokens.count)))
        case .state(let state, let layer):
            return checks.take(state, layer: layer)
        case .call(let call):
            hasCalls = true
            channel.emit(
                .toolCalls(
                    action: .toolCall(
                        id: call.id, name: call.name, action: .appendArguments(call.arguments.text, tokenCount: 0))))
        }
        return true
    }

    /// Checks and reports the turn when all of it has been generated.
    ///
    /// - Throws: the error of an unsafe prompt or response, of a refusal instead of a value, or of a full context.
    mutating func finish(
        _ request: LanguageModelExecutorGenerationRequest, _ outcome: GenerationResult, _ model: LoadedModel, contextSize: Int
    ) throws {
        if let violation = checks.violation { throw violation }
        if request.generatesValue, let refusal = Refusals.refusal(in: text, prompt: request.transcript.lastPromptText) {
            throw refusal
        }
        let usage = LanguageModelExecutorGenerationChannel.Usage(outcome, model)
        channel.emit(
            hasCalls
                ? .toolCalls(action: .updateUsage(input: usage.input, output: usage.output, metadata: usage.metadata))
                : .response(action: .updateUsage(input: usage.input, output: usage.output, metadata: usage.metadata)))
        if outcome.stopReason == .contextFull {
            throw GenerationFailure.promptTooLong(
                tokens: outcome.usage.promptTokens + outcome.usage.generatedTokens, contextSize: contextSize)
        }
    }
}

extension LanguageModelExecutorGenerationChannel.Usage {
    fileprivate init(_ outcome: GenerationResult, _ model: LoadedModel) {
        self.init(
            input: Input(totalTokenCount: outcome.usage.promptTokens, cachedTokenCount: outcome.usage.cachedTokens),
            output: Output(totalTokenCount: outcome.usage.generatedTokens, reasoningTokenCount: outcome.thoughtTokens),
            metadata: [
                "stopReason": outcome.stopReason.rawValue,
                "forcedTokens": outcome.usage.forcedTokens,
                "loadSeconds": model.loadSeconds,
                "promptSeconds": outcome.usage.promptSeconds,
                "generationSeconds": outcome.usage.generationSeconds,
            ])
    }
}
