internal import Foundation
internal import Grammar
internal import Inference
internal import Synchronization

/// Answers requests with a model file: what the system model and models from files have in common.
///
/// It holds the conversation's keys and values, so that a request computes only what is new.
package final class LocalModelExecutor: Sendable {
    private let configuration: LocalModel
    private let renderer: TranscriptRenderer
    private let loaded = Mutex<Conversation?>(nil)

    /// The loaded model and the sequence whose cache follows the transcript.
    private final class Conversation: Sendable {
        let model: LoadedModel
        let sequence: SequenceState
        /// For questions about the conversation that are not part of it, by what they begin with.
        private let asides = Mutex<[String: SequenceState]>([:])

        init(model: LoadedModel, sequence: SequenceState) {
            self.model = model
            self.sequence = sequence
        }

        func aside(for beginning: String) throws -> SequenceState {
            try asides.withLock { asides in
                if let known = asides[beginning] { return known }
                if asides.count >= 64 { asides.removeAll() }  // tools that change their descriptions
                let made = try model.makeSequence(contextSize: sequence.contextSize, keepsCache: false)
                asides[beginning] = made
                return made
            }
        }
    }

    package init(_ configuration: LocalModel) {
        self.configuration = configuration
        renderer = TranscriptRenderer(configuration)
    }

    private func conversation() async throws -> Conversation {
        if let known = loaded.withLock({ $0 }) { return known }
        let model = try await configuration.load()
        let made = Conversation(
            model: model, sequence: try model.makeSequence(contextSize: configuration.greatestContext))
        return loaded.withLock { known in
            if let known { return known }  // a prewarm was faster
            known = made
            return made
        }
    }

    /// Loads the model and computes the tokens that any request which begins like this transcript begins with.
    ///
    /// Its last prompt, if it ends with one, is the beginning of a prompt.
    package func prewarm(_ transcript: Transcript) {
        Task {
            // A hint has no one to report to: the request itself will say what is wrong.
            guard let conversation = try? await self.conversation() else { return }
            var prefix = ""
            var entries = Array(transcript)
            if case .prompt(let prompt)? = entries.last {
                prefix = prompt.segments.modelText
                entries.removeLast()
            }
            // Two prompts that differ from their first character on share exactly what comes before any prompt.
            func tokens(_ ending: String) throws -> [TokenID] {
                let prompt = Transcript.Prompt(segments: [.text(.init(content: prefix + ending))])
                return try conversation.model.tokens(
                    for: renderer.messages(for: entries + [.prompt(prompt)]), addGenerationPrompt: false)
            }
            // Nor do these have: see above.
            guard let one = try? tokens("a"), let other = try? tokens("\n1") else { return }
            let shared = zip(one, other).prefix { $0 == $1 }.map(\.0)
            try? await conversation.model.prefill(shared, in: conversation.sequence)
        }
    }

    /// Answers one request.
    ///
    /// - Throws: ``LanguageModelError`` and its like, or `CancellationError`.
    package func respond(
        to request: LanguageModelExecutorGenerationRequest, _ channel: LanguageModelExecutorGenerationChannel
    ) async throws {
        let checksText = configuration.checksText || request.schema != nil
        if checksText { try Guardrail.check(prompt: request.transcript) }
        try LanguageCheck(supported: configuration.description.languages).check(request.transcript)
        let conversation = try await self.conversation()
        let messages = renderer.messages(for: request.transcript)
        if let tools = try await chosenTools(request, conversation) {
            return try await call(tools, request, messages, conversation, channel)
        }
        let grammar = try await self.grammar(request, conversation.model)
        var output = CheckedOutput(isChecked: checksText)
        let limit = request.generationOptions.maximumResponseTokens.map { max(1, $0) }
        let result = try await generate(request, messages, grammar, limit: limit, conversation) { text in
            output.append(text)
            if !output.isUnsafe { channel.emit(.response(action: .appendText(text, tokenCount: 1))) }
            return !output.isUnsafe
        }
        if let violation = output.violation { throw violation }
        channel.emit(.response(action: .usage(result, conversation.model)))
    }

    private func grammar(
        _ request: LanguageModelExecutorGenerationRequest, _ model: LoadedModel
    ) async throws -> Grammar? {
        if let format = request.format { return try await format.grammar(for: model.grammarVocabulary) }
        guard let schema = request.schema else { return nil }
        return try await ResponseFormat(try schema.grammarSource()).grammar(for: model.grammarVocabulary)
    }

    /// - Parameter emit: Takes each piece of text; false ends the response.
    private func generate(
        _ request: LanguageModelExecutorGenerationRequest, _ messages: [ChatMessage], _ grammar: Grammar?, limit: Int?,
        _ conversation: Conversation, emit: sending (String) -> Bool
    ) async throws -> GenerationResult {
        let tokens = try conversation.model.tokens(for: messages)
        do {
            let result = try await conversation.model.generate(
                GenerationRequest(
                    tokens: tokens,
                    sampling: SamplingSettings(request.generationOptions), maximumTokens: limit, grammar: grammar),
                in: conversation.sequence, emit: emit)
            if result.stopReason == .contextFull {
                throw GenerationFailure.promptTooLong(
                    tokens: result.usage.promptTokens + result.usage.generatedTokens,
                    contextSize: conversation.sequence.contextSize)
            }
            return result
        } catch GenerationFailure.budgetTooSmall(let needed, let available) {
            let failure = GenerationFailure.budgetTooSmall(needed: needed, available: available)
            if available == limit {
                throw GeneratedContent.ParsingError(
                    rawContent: "", underlyingError: failure, debugDescription: failure.description)
            }
            throw LanguageModelError.contextSizeExceeded(
                .init(
                    contextSize: conversation.sequence.contextSize, tokenCount: tokens.count + needed,
                    debugDescription: failure.description))
        }
    }

    // MARK: - Tools

    /// The tools to call now, of which the model may choose; nil if it answers.
    private func chosenTools(
        _ request: LanguageModelExecutorGenerationRequest, _ conversation: Conversation
    ) async throws -> [Transcript.ToolDefinition]? {
        let tools = request.enabledToolDefinitions
        if tools.isEmpty { return nil }
        let isRequired = request.generationOptions.toolCallingMode?.kind == .required
        if isRequired, tools.count == 1 { return tools }
        guard let choice = ToolChoice(transcript: request.transcript, tools: tools, mayAnswer: !isRequired) else { return nil }
        let message = conversation.model.tokenizer.encode(choice.message)
        if message.isEmpty { return isRequired ? tools : nil }
        var best: (listener: ToolChoice.Listener, score: Double)?
        for listener in choice.listeners {
            let score = try await conversation.model.logProbability(
                of: message, after: choice.prompt(for: listener, conversation.model),
                in: try conversation.aside(for: listener.introduction))
            if score > best?.score ?? -.infinity { best = (listener, score) }
        }
        return best?.listener.tool.map { [$0] }
    }

    /// Calls that a model may make at once.
    private static let greatestCalls = 8
    /// Tokens that they may have together.
    private static let greatestCallTokens = 512

    /// Has the model write calls.
    private func call(
        _ tools: [Transcript.ToolDefinition], _ request: LanguageModelExecutorGenerationRequest, _ messages: [ChatMessage],
        _ conversation: Conversation, _ channel: LanguageModelExecutorGenerationChannel
    ) async throws {
        let grammarTools = try tools.compactMap { tool -> ToolGrammar.Tool? in
            guard case .schema(let parameters) = try tool.parameters.grammarSource() else { return nil }
            return ToolGrammar.Tool(name: tool.name, parameters: parameters)
        }
        let format = ResponseFormat(
            .tools(ToolGrammar(tools: grammarTools, allowsText: false, greatestCount: Self.greatestCalls)))
        let grammar = try await format.grammar(for: conversation.model.grammarVocabulary)
        var text = ""
        // The limit is meant for the answer; calls have one of their own, against arguments without end.
        let result = try await generate(request, messages, grammar, limit: Self.greatestCallTokens, conversation) {
            text += $0
            return true
        }
        var known: Set<String> = []
        for call in try GeneratedContent(json: text).value([GeneratedContent].self)
        // A small model may say the same thing several times.
        where known.insert(call.jsonString).inserted {
            let arguments = try call.value(GeneratedContent.self, forProperty: "arguments")
            channel.emit(
                .toolCalls(
                    action: .toolCall(
                        id: UUID().uuidString, name: try call.value(forProperty: "name"),
                        action: .appendArguments(arguments.jsonString, tokenCount: 0))))
        }
        channel.emit(.toolCalls(action: .usage(result, conversation.model)))
    }
}

extension LanguageModelExecutorGenerationChannel.Response.Action {
    fileprivate static func usage(_ result: GenerationResult, _ model: LoadedModel) -> Self {
        let usage = LanguageModelExecutorGenerationChannel.Usage(result, model)
        return .updateUsage(input: usage.input, output: usage.output, metadata: usage.metadata)
    }
}

extension LanguageModelExecutorGenerationChannel.ToolCalls.Action {
    fileprivate static func usage(_ result: GenerationResult, _ model: LoadedModel) -> Self {
        let usage = LanguageModelExecutorGenerationChannel.Usage(result, model)
        return .updateUsage(input: usage.input, output: usage.output, metadata: usage.metadata)
    }
}

extension LanguageModelExecutorGenerationChannel.Usage {
    fileprivate init(_ result: GenerationResult, _ model: LoadedModel) {
        self.init(
            input: Input(totalTokenCount: result.usage.promptTokens, cachedTokenCount: result.usage.cachedTokens),
            output: Output(totalTokenCount: result.usage.generatedTokens, reasoningTokenCount: 0),
            metadata: [
                "stopReason": result.stopReason.rawValue,
                "forcedTokens": result.usage.forcedTokens,
                "loadSeconds": model.loadSeconds,
                "promptSeconds": result.usage.promptSeconds,
                "generationSeconds": result.usage.generationSeconds,
            ])
    }
}

extension SamplingSettings {
    /// What the options ask for; what they leave open is chosen as the default model's authors recommend
    /// (temperature 0.2 and top-p 0.9), with a penalty on repetition that keeps a small model out of loops.
    init(_ options: GenerationOptions) {
        switch options.samplingMode?.kind {
        case .greedy: self = .greedy
        case .randomTopK(let k, let seed): self.init(temperature: options.temperature ?? 1, topK: k, seed: seed)
        case .randomProbabilityThreshold(let threshold, let seed):
            self.init(temperature: options.temperature ?? 1, topP: threshold, seed: seed)
        case nil: self.init(temperature: options.temperature ?? 0.2, topP: 0.9, repetitionPenalty: 1.15)
        }
    }
}
