internal import JSON
internal import AsyncLocks
internal import Foundation
internal import Grammar
internal import Inference
internal import ModelPrompts
internal import Synchronization
internal import TextScreening

/// Processes requests with a model file; shared by the system model and models from files.
///
/// It holds the conversation's KV cache, so that a request processes only new tokens.
package final class LocalModelExecutor: Sendable {
    private let configuration: LocalModel
    private let loaded = Mutex<Conversation?>(nil)
    /// The running prewarm, which the next request waits for: they have their first tokens in common.
    private let prewarming = Mutex<Task<Void, Never>?>(nil)

    /// The loaded model and the sequence whose KV cache follows the transcript.
    private final class Conversation: Sendable {
        let model: LoadedModel
        let sequence: SequenceState
        /// Sequences for scoring texts that are not part of the conversation, by their prefix.
        private let scoringSequences = Mutex<[String: SequenceState]>([:])

        init(model: LoadedModel, sequence: SequenceState) {
            self.model = model
            self.sequence = sequence
        }

        /// The model's settings. An adapter teaches forms that repeat words: a penalty would change them.
        var defaults: ModelDefaults {
            var defaults = model.defaults
            if sequence.adapter != nil || model.hasMergedAdapter { defaults.repetitionPenalty = nil }
            return defaults
        }

        private let answers = Mutex<SequenceState?>(nil)

        /// The sequence of answers after tool calls, whose prompt has no tools, so that the other sequence keeps its cache.
        func answerSequence() throws -> SequenceState {
            try answers.withLock { known in
                if let known { return known }
                let made = try model.makeSequence(
                    contextSize: sequence.contextSize, format: sequence.format, adapter: sequence.adapter)
                known = made
                return made
            }
        }

        func scoringSequence(for beginning: String) throws -> SequenceState {
            try scoringSequences.withLock { scoringSequences in
                if let known = scoringSequences[beginning] { return known }
                if scoringSequences.count >= 64 { scoringSequences.removeAll() }  // bounds memory if tool descriptions change
                let made = try model.makeSequence(
                    contextSize: sequence.contextSize, format: sequence.format, adapter: sequence.adapter, sharesCache: false)
                scoringSequences[beginning] = made
                return made
            }
        }
    }

    package init(_ configuration: LocalModel) {
        self.configuration = configuration
    }

    private func conversation() async throws -> Conversation {
        if let known = loaded.withLock({ $0 }) { return known }
        async let checks: Void = Self.prepareChecks()
        let model = try await configuration.load()
        await checks
        let made = Conversation(
            model: model,
            sequence: try model.makeSequence(
                contextSize: configuration.maximumContext, format: configuration.cacheFormat,
                adapter: try await configuration.adapter(for: model)))
        return loaded.withLock { known in
            if let known { return known }  // a concurrent prewarm created it first
            known = made
            return made
        }
    }

    /// Unpacks the tables of the checks, which takes as long as loading a small model does, and is done at the same time.
    private static func prepareChecks() async {
        _ = Guardrail.violation(in: "A text", threshold: 1)
        _ = LanguageIdentifier.candidates(for: "A text")
    }

    /// Loads the model and processes the tokens that are common to all requests that begin with this transcript.
    ///
    /// If the transcript ends with a prompt, that prompt may be incomplete: further text may follow it.
    package func prewarm(_ transcript: Transcript) {
        prewarming.withLock { running in
            let previous = running
            previous?.cancel()
            // A request that waits for the task raises its priority. It waits for the one before too, which ends soon.
            running = Task(priority: .utility) {
                await previous?.value
                await self.prefill(transcript)
            }
        }
    }

    /// Prewarming is a hint and has no way to report errors; the request itself throws them.
    private func prefill(_ transcript: Transcript) async {
        guard let conversation = try? await self.conversation() else { return }
        var prefix = ""
        var entries = Array(transcript)
        if case .prompt(let prompt)? = entries.last {
            prefix = prompt.segments.modelText
            entries.removeLast()
        }
        let renderer = TranscriptRenderer(configuration, conversation.model)
        // Two prompts with different continuations share exactly the tokens that do not depend on the continuation.
        func tokens(_ ending: String) throws -> [TokenID] {
            let prompt = Transcript.Prompt(segments: [.text(.init(content: prefix + ending))])
            return try conversation.model.tokens(
                for: renderer.prompt(for: entries + [.prompt(prompt)]), addGenerationPrompt: false)
        }
        // Errors are ignored for the same reason as above.
        guard let one = try? tokens("a"), let other = try? tokens("\n1") else { return }
        let shared = zip(one, other).prefix { $0 == $1 }.map(\.0)
        try? await conversation.model.prefill(shared, in: conversation.sequence)
    }

    /// Processes one request.
    ///
    /// - Throws: ``LanguageModelError`` or a related error, or `CancellationError`.
    package func respond(
        to request: LanguageModelExecutorGenerationRequest, _ channel: LanguageModelExecutorGenerationChannel
    ) async throws {
        if let prewarming = prewarming.withLock({ $0.take() }) {
            do { try await prewarming.valueUnlessCancelled } catch {
                prewarming.cancel()
                throw error
            }
        }
        let conversation = try await self.conversation()
        let renderer = TranscriptRenderer(configuration, conversation.model)
        let prompt = renderer.prompt(for: request.transcript, thinking: request.contextOptions.thinkingLevel)
        let tokens = try conversation.model.tokens(for: prompt)
        // A prompt that cannot fit is rejected before anything else is done with it.
        guard tokens.count < conversation.sequence.contextSize else {
            throw GenerationFailure.promptTooLong(tokens: tokens.count, contextSize: conversation.sequence.contextSize)
        }
        let checksText = configuration.checksText || request.schema != nil && configuration.checksValues
        var probe =
            checksText
            ? GuardrailProbe.probe(of: conversation.model, hasSchema: request.schema != nil || request.format != nil) : nil
        // What the user's own words say of a prompt is confirmed by the probe, if the model has one: it reads them in their context.
        var suspicion =
            checksText
            ? Guardrail.violation(
                in: ModelPrompts.ownWords(in: request.transcript.lastPromptText), threshold: Guardrail.promptThreshold) : nil
        if conversation.sequence.adapter != nil, let known = probe {
            // An adapter changes the states that the probe reads, so that a suspicion is confirmed in a pass without it.
            if let found = suspicion {
                let score = known.score(try await states(of: tokens, layers: known.layers, conversation))
                suspicion = score.map { $0 >= known.threshold - known.marginOfSuspicion } ?? true ? found : nil
            }
            probe = nil
        }
        if let suspicion, probe == nil { throw Guardrail.error("The prompt", suspicion) }
        try LanguageCheck(supported: configuration.description.languages).check(request.transcript)
        // For a model without a tool call format, scoring determines the tool that the message is for.
        if conversation.model.toolFormat == nil, let tools = try await chosenTools(request, conversation) {
            if let suspicion { throw Guardrail.error("The prompt", suspicion) }
            return try await call(tools, request, tokens, conversation, channel)
        }
        var tools = TurnTools()
        let mode = request.generationOptions.toolCallingMode?.kind ?? .allowed
        if mode != .disallowed { for tool in request.enabledToolDefinitions { try tool.checkGuides() } }
        tools.callable = mode == .disallowed ? [] : request.enabledToolDefinitions.map { ChatTool($0) }
        tools.areInPrompt = !prompt.tools.isEmpty
        tools.mustCall = mode == .required && !tools.callable.isEmpty
        let made = request.transcript.callsOfLastPrompt
        tools.repeatable = Set(request.enabledToolDefinitions.filter(\.isRepeatable).map(\.name))
        tools.madeCalls = made
        let limit = request.generationOptions.maximumResponseTokens.map { max(1, $0) }
        var generation = GenerationRequest(
            tokens: tokens, sampling: SamplingSettings(request.generationOptions, conversation.defaults),
            maximumTokens: limit, grammar: try await grammar(request, conversation.model))
        generation.detectsLoops = configuration.detectsLoops
        generation.nullBias = conversation.model.defaults.nullBias ?? 0
        // An answer is not empty.
        if generation.grammar == nil { generation.bannedFirstTokens = conversation.model.tokenizer.stopTokens.sorted() }
        // A prompt is checked once.
        if made.isEmpty { generation.stateLayers = probe?.layers ?? [] }
        var turn = Turn(isChecked: checksText, probe: probe, suspicion: made.isEmpty ? suspicion : nil)
        let hasResults = conversation.model.toolFormat != nil && !made.isEmpty && !tools.mustCall
        var outcome: GenerationResult?
        if !hasResults || !tools.callable.isEmpty {
            // Small models answer better from a prompt without tools; here they only make a different call, if any.
            tools.onlyCalls = hasResults && conversation.model.defaults.answersFromResults
            outcome = try await generate(generation, tools, conversation.sequence, &turn, channel, conversation)
        }
        if hasResults, !turn.hasCalls, turn.isEmpty, !turn.output.isUnsafe {
            let answer = renderer.answerPrompt(for: request.transcript, thinking: request.contextOptions.thinkingLevel)
            generation.tokens = try conversation.model.tokens(for: answer)
            (tools.callable, tools.onlyCalls) = ([], false)
            let decision = outcome?.usage.generatedTokens ?? 0
            outcome = try await generate(
                generation, tools, try conversation.answerSequence(), &turn, channel, conversation)
            outcome?.usage.generatedTokens += decision
        }
        if let outcome { try finish(request, outcome, &turn, conversation, channel) }
    }

    /// Checks and reports the turn when all of it has been generated.
    private func finish(
        _ request: LanguageModelExecutorGenerationRequest, _ outcome: GenerationResult, _ turn: inout Turn,
        _ conversation: Conversation, _ channel: LanguageModelExecutorGenerationChannel
    ) throws {
        if let violation = turn.violation { throw violation }
        if request.generatesValue,
            let refusal = Refusals.refusal(in: turn.text, prompt: request.transcript.lastPromptText)
        {
            throw refusal
        }
        turn.report(outcome, conversation.model, channel)
        if outcome.stopReason == .contextFull {
            throw GenerationFailure.promptTooLong(
                tokens: outcome.usage.promptTokens + outcome.usage.generatedTokens,
                contextSize: conversation.sequence.contextSize)
        }
    }

    private func generate(
        _ generation: GenerationRequest, _ tools: TurnTools, _ sequence: SequenceState, _ turn: inout Turn,
        _ channel: LanguageModelExecutorGenerationChannel, _ conversation: Conversation
    ) async throws -> GenerationResult {
        do {
            return try await conversation.model.generateTurn(generation, tools: tools, in: sequence) { turn.take($0, channel) }
        } catch {
            throw Self.failure(error, limit: generation.maximumTokens, promptTokens: generation.tokens.count, conversation)
        }
    }

    /// The output of the model's turn so far.
    private struct Turn: ~Copyable {
        var output: CheckedOutput
        private(set) var text = ""
        private(set) var hasCalls = false

        private let probe: GuardrailProbe?
        /// The states that the probe reads, by layer.
        private var states: [Int: [Float]] = [:]
        /// What the words of the prompt say, until the probe has confirmed it or not.
        private var suspicion: Guardrail.Violation?
        private var promptViolation: Guardrail.Violation?

        init(isChecked: Bool, probe: GuardrailProbe?, suspicion: Guardrail.Violation?) {
            output = CheckedOutput(isChecked: isChecked)
            self.probe = probe
            self.suspicion = suspicion
        }

        /// Whether there is no text but white space.
        var isEmpty: Bool { !text.contains { !$0.isWhitespace } }
        /// The error of an unsafe prompt or response.
        var violation: LanguageModelError? {
            mutating get { (promptViolation ?? suspicion).map { Guardrail.error("The prompt", $0) } ?? output.violation }
        }

        /// Processes an event; returns false to end the turn.
        mutating func take(_ event: TurnEvent, _ channel: LanguageModelExecutorGenerationChannel) -> Bool {
            switch event {
            case .text(let piece):
                output.append(piece.text)
                if output.isUnsafe { return false }
                text += piece.text
                channel.emit(.response(action: .appendText(piece.text, tokenCount: piece.tokens.count)))
            case .thought(let piece):
                channel.emit(.reasoning(action: .appendText(piece.text, tokenCount: piece.tokens.count)))
            case .state(let state, let layer):
                // The states come before all text.
                states[layer] = state
                guard let probe, let score = probe.score(states) else { break }
                if score >= probe.threshold - (suspicion == nil ? 0 : probe.marginOfSuspicion) {
                    promptViolation = suspicion ?? .init(category: "unsafe", score: score)
                    return false
                }
                suspicion = nil
            case .call(let call):
                hasCalls = true
                channel.emit(
                    .toolCalls(
                        action: .toolCall(
                            id: call.id, name: call.name, action: .appendArguments(call.arguments.text, tokenCount: 0))))
            }
            return true
        }

        func report(
            _ outcome: GenerationResult, _ model: LoadedModel, _ channel: LanguageModelExecutorGenerationChannel
        ) {
            let usage = LanguageModelExecutorGenerationChannel.Usage(outcome, model)
            channel.emit(
                hasCalls
                    ? .toolCalls(action: .updateUsage(input: usage.input, output: usage.output, metadata: usage.metadata))
                    : .response(action: .updateUsage(input: usage.input, output: usage.output, metadata: usage.metadata)))
        }
    }

    private static func failure(
        _ error: any Error, limit: Int?, promptTokens: Int, _ conversation: Conversation
    ) -> any Error {
        guard case GenerationFailure.budgetTooSmall(let needed, let available) = error else { return error }
        let failure = GenerationFailure.budgetTooSmall(needed: needed, available: available)
        if available == limit {
            return GeneratedContent.ParsingError(
                rawContent: "", underlyingError: failure, debugDescription: failure.description)
        }
        return LanguageModelError.contextSizeExceeded(
            .init(
                contextSize: conversation.sequence.contextSize, tokenCount: promptTokens + needed,
                debugDescription: failure.description))
    }

    private func grammar(
        _ request: LanguageModelExecutorGenerationRequest, _ model: LoadedModel
    ) async throws -> Grammar? {
        if let format = request.format { return try await format.grammar(for: model) }
        guard let schema = request.schema else { return nil }
        var source = try schema.grammarSource()
        if case .schema(let json) = source { source = .schema(schema.forResponse(json)) }
        return try await ResponseFormat(source).grammar(for: model)
    }

    /// The natural logarithm of the odds of two beginnings of a response.
    ///
    /// - Throws: ``LanguageModelError`` or a related error, or `CancellationError`.
    func logOdds(of one: String, against other: String, after transcript: Transcript) async throws -> Double {
        let conversation = try await conversation()
        let model = conversation.model
        let tokens = try model.tokens(for: TranscriptRenderer(configuration, model).prompt(for: transcript))
        do {
            let first = try await model.logProbability(
                of: model.tokenizer.encode(one), after: tokens, in: conversation.sequence)
            let second = try await model.logProbability(
                of: model.tokenizer.encode(other), after: tokens, in: conversation.sequence)
            return first - second
        } catch {
            throw Self.failure(error, limit: nil, promptTokens: tokens.count, conversation)
        }
    }

    /// What identifies the weights of the model, and the number of its layers.
    func identity() async throws -> (fingerprint: String?, layerCount: Int) {
        let model = try await conversation().model
        return (model.fingerprint, model.shape.layers.count)
    }

    /// The states after some layers of the last token of a prompt.
    func states(after transcript: Transcript, layers: [Int]) async throws -> [[Float]] {
        let conversation = try await conversation()
        let tokens = try conversation.model.tokens(
            for: TranscriptRenderer(configuration, conversation.model).prompt(for: transcript))
        let states = try await states(of: tokens, layers: layers, conversation, sequence: conversation.sequence)
        return layers.map { GuardrailProbe.normalised(states[$0] ?? []) }
    }

    /// The states of the last token of a prompt after some layers, without the conversation's adapter unless `sequence` has it.
    private func states(
        of tokens: [TokenID], layers: [Int], _ conversation: Conversation, sequence: SequenceState? = nil
    ) async throws -> [Int: [Float]] {
        var request = GenerationRequest(tokens: tokens, sampling: .greedy, maximumTokens: 1)
        request.stateLayers = layers
        var states: [Int: [Float]] = [:]
        do {
            let sequence =
                try sequence
                ?? conversation.model.makeSequence(
                    contextSize: conversation.sequence.contextSize, format: conversation.sequence.format)
            _ = try await conversation.model.generateTurn(request, in: sequence) { event in
                if case .state(let values, let layer) = event { states[layer] = values }
                return true
            }
        } catch {
            throw Self.failure(error, limit: nil, promptTokens: tokens.count, conversation)
        }
        return states
    }

    // MARK: - Models that were not trained to call tools

    /// The tools from which the model must choose its next calls; nil if it responds with text.
    private func chosenTools(
        _ request: LanguageModelExecutorGenerationRequest, _ conversation: Conversation
    ) async throws -> [Transcript.ToolDefinition]? {
        let tools = request.enabledToolDefinitions
        if tools.isEmpty { return nil }
        let isRequired = request.generationOptions.toolCallingMode?.kind == .required
        if isRequired, tools.count == 1 { return tools }
        guard let choice = ToolChoice(transcript: request.transcript, tools: tools, allowsResponse: !isRequired) else {
            return nil
        }
        let message = conversation.model.tokenizer.encode(choice.message)
        if message.isEmpty { return isRequired ? tools : nil }
        var best: (recipient: ToolChoice.Recipient, score: Double)?
        for recipient in choice.recipients {
            let score = try await conversation.model.logProbability(
                of: message, after: choice.prompt(for: recipient, conversation.model),
                in: try conversation.scoringSequence(for: recipient.introduction))
            if score > best?.score ?? -.infinity { best = (recipient, score) }
        }
        return best?.recipient.tool.map { [$0] }
    }

    /// The maximum number of calls in one round.
    private static let maximumCalls = 8

    /// Generates tool calls, constrained by a grammar.
    private func call(
        _ tools: [Transcript.ToolDefinition], _ request: LanguageModelExecutorGenerationRequest, _ tokens: [TokenID],
        _ conversation: Conversation, _ channel: LanguageModelExecutorGenerationChannel
    ) async throws {
        let model = conversation.model
        let grammarTools = try tools.compactMap { tool -> ToolGrammar.Tool? in
            guard case .schema(let parameters) = try tool.parameters.grammarSource() else { return nil }
            return ToolGrammar.Tool(name: tool.name, parameters: parameters)
        }
        let format = ResponseFormat(
            .tools(ToolGrammar(tools: grammarTools, allowsText: false, maximumCount: Self.maximumCalls)))
        var text = ""
        let result: GenerationResult
        do {
            // The request's limit applies to the response, not to calls.
            var generation = GenerationRequest(
                tokens: tokens, sampling: SamplingSettings(request.generationOptions, conversation.defaults),
                grammar: try await format.grammar(for: model))
            generation.detectsLoops = false
            result = try await model.generateTurn(generation, in: conversation.sequence) { event in
                if case .text(let piece) = event { text += piece.text }
                return true
            }
            // Calls that were shortened would be calls with other arguments.
            if result.stopReason == .grammarLimit { throw GenerationFailure.grammarTooComplex }
            if result.stopReason != .endOfTurn {
                throw GenerationFailure.argumentTooLong(
                    tool: tools[0].name, argument: nil, contextSize: conversation.sequence.contextSize)
            }
        } catch {
            throw Self.failure(error, limit: nil, promptTokens: tokens.count, conversation)
        }
        var known: Set<String> = []
        for call in try GeneratedContent(json: text).value([GeneratedContent].self)
        // A small model may generate the same call several times.
        where known.insert(call.jsonString).inserted {
            let arguments = try call.value(GeneratedContent.self, forProperty: "arguments")
            channel.emit(
                .toolCalls(
                    action: .toolCall(
                        id: UUID().uuidString, name: try call.value(forProperty: "name"),
                        action: .appendArguments(arguments.jsonString, tokenCount: 0))))
        }
        let usage = LanguageModelExecutorGenerationChannel.Usage(result, model)
        channel.emit(.toolCalls(action: .updateUsage(input: usage.input, output: usage.output, metadata: usage.metadata)))
    }
}

extension Transcript {
    /// The calls since the last prompt whose outputs are there.
    fileprivate var callsOfLastPrompt: [ChatToolCall] {
        var calls: [ChatToolCall] = []
        var outputs: Set<String> = []
        for entry in self {
            switch entry {
            case .prompt: calls = []
            case .toolCalls(let new):
                calls += new.map { ChatToolCall(id: $0.id, name: $0.toolName, arguments: $0.arguments.json) }
            case .toolOutput(let output): outputs.insert(output.id)
            default: break
            }
        }
        return calls.filter { outputs.contains($0.id) }
    }
}

extension ContextOptions {
    fileprivate var thinkingLevel: ThinkingLevel {
        switch reasoningLevel {
        case nil: .off
        case .light: .low
        case .moderate: .medium
        case .deep: .high
        case .custom(let name): ThinkingLevel(rawValue: name.lowercased()) ?? .medium
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

extension SamplingSettings {
    /// Settings from the options. What the options do not set is the model's default: its temperature also with an explicit sampling
    /// mode, and everything without one. The model's repetition penalty is a part of its sampling: it does not change what is most
    /// probable.
    init(_ options: GenerationOptions, _ defaults: ModelDefaults) {
        switch options.samplingMode?.kind {
        case .greedy: self.init(temperature: 0)
        case .randomTopK(let k, let seed):
            self.init(temperature: options.temperature ?? defaults.temperature ?? 1, topK: k, seed: seed)
        case .randomProbabilityThreshold(let threshold, let seed):
            self.init(temperature: options.temperature ?? defaults.temperature ?? 1, topP: threshold, seed: seed)
        case nil:
            self.init(temperature: options.temperature ?? defaults.temperature ?? 0.7, topK: defaults.topK, topP: defaults.topP)
        }
        penalties = options.penalties ?? SamplingPenalties()
        if options.penalties == nil, options.samplingMode == nil { penalties.minP = defaults.minP ?? 0 }
        if !isGreedy { penalties.repetition = penalties.repetition ?? defaults.repetitionPenalty }
    }
}
