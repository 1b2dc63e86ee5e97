package import Grammar
internal import Inference
internal import Synchronization

/// The session's hold on the engine: the loaded model and the sequence whose cache follows the transcript.
final class Turn: Sendable {
    let model: LoadedModel
    let sequence: SequenceState

    init(contextSize: Int) async throws {
        model = try await ModelLoader.systemModel()
        sequence = try model.makeSequence(contextSize: contextSize)
    }
}

extension LanguageModelSession {
    /// One request, from prompt to response. Every way to ask ends here.
    ///
    /// - Parameters:
    ///   - format: what the response must be; nil for any text.
    ///   - emit: called with each new piece of the response's text.
    func run(
        _ prompt: Prompt, options: GenerationOptions, format: ResponseFormat? = nil, emit: @Sendable (String) -> Void
    ) async throws -> StreamSource.Finished {
        let before = try begin(prompt, options)
        var text = ""
        do {
            let turn = try await engine()
            let entries = state.withLock { $0.transcript }
            let grammar = try await format?.grammar(for: turn.model.grammarVocabulary)
            let tokens = try turn.model.tokens(for: TranscriptRenderer.messages(for: entries))
            let result = try await turn.model.generate(
                GenerationRequest(
                    tokens: tokens, sampling: SamplingSettings(options),
                    maximumTokens: options.maximumResponseTokens.map { max(1, $0) }, grammar: grammar),
                in: turn.sequence
            ) { piece in
                text += piece
                emit(piece)
            }
            if result.stopReason == .contextFull {
                throw GenerationFailure.promptTooLong(
                    tokens: result.usage.promptTokens + result.usage.generatedTokens, contextSize: turn.sequence.contextSize)
            }
            let usage = Usage(result, model: turn.model)
            return finish(before, text, usage)
        } catch {
            abandon(before, text)
            throw Self.publicError(error)
        }
    }

    /// Records the prompt, or refuses because another request is running. Returns the length of the transcript before it.
    private func begin(_ prompt: Prompt, _ options: GenerationOptions) throws -> Int {
        // Asked first without telling observers: a refused request changes nothing.
        guard !state.withLock({ $0.isResponding }) else { throw Self.concurrentRequests }
        return try update { state in
            guard !state.isResponding else { throw Self.concurrentRequests }
            state.isResponding = true
            defer { state.transcript.append(.prompt(.init(segments: [.text(.init(content: prompt.text))], options: options))) }
            return state.transcript.count
        }
    }

    private static var concurrentRequests: GenerationError {
        .concurrentRequests(.init(debugDescription: "This session is still answering another request; it takes one at a time."))
    }

    private func finish(_ before: Int, _ text: String, _ usage: Usage) -> StreamSource.Finished {
        update { state in
            state.transcript.append(Self.response(text))
            state.usage.add(usage)
            state.isResponding = false
            return StreamSource.Finished(
                rawContent: text.generatedContent, entries: Array(state.transcript)[before...], usage: usage)
        }
    }

    /// After an error: a prompt that was not answered at all is taken back, an answer that broke off stays readable.
    private func abandon(_ before: Int, _ text: String) {
        update { state in
            if text.isEmpty {
                state.transcript.removeLast(state.transcript.count - before)
            } else {
                state.transcript.append(Self.response(text))
            }
            state.isResponding = false
        }
    }

    private static func response(_ text: String) -> Transcript.Entry {
        .response(.init(assetIDs: [], segments: [.text(.init(content: text))]))
    }

    /// The engine and this session's sequence, made at the first use.
    func engine() async throws -> Turn {
        if let turn = state.withLock({ $0.turn }) { return turn }
        let made = try await Turn(contextSize: SystemLanguageModel.default.contextSize)
        return state.withLock { state in
            if let turn = state.turn { return turn }  // a prewarm was faster
            state.turn = made
            return made
        }
    }

    /// The engine's errors as the framework's.
    private static func publicError(_ error: any Swift.Error) -> any Swift.Error {
        switch error {
        case let failure as GenerationFailure:
            let context = GenerationError.Context(debugDescription: failure.description)
            switch failure {
            case .promptTooLong, .budgetTooSmall: return GenerationError.exceededContextWindowSize(context)
            case .unusableLogits, .emptyPrompt: return GenerationError.decodingFailure(context)
            }
        case let failure as SchemaError: return GenerationError.unsupportedGuide(.init(debugDescription: failure.sentence))
        case let failure as ModelError: return GenerationError.assetsUnavailable(.init(debugDescription: failure.description))
        case let failure as TemplateError: return GenerationError.decodingFailure(.init(debugDescription: failure.description))
        default: return error
        }
    }
}

/// What a response must be, and how it is written.
package struct ResponseFormat: Sendable {
    package var source: GrammarSource
    package var options: GrammarOptions

    package init(_ source: GrammarSource, options: GrammarOptions = GrammarOptions(allowsZeroFraction: false)) {
        self.source = source
        self.options = options
    }

    func grammar(for vocabulary: TokenVocabulary) async throws -> Grammar {
        try await GrammarCache.shared.grammar(source, vocabulary: vocabulary, options: options)
    }
}

extension LanguageModelSession {
    /// Answers a prompt in a format, piece by piece, as text.
    package func streamResponse(
        to prompt: Prompt, format: ResponseFormat, options: GenerationOptions
    ) -> sending ResponseStream<String> {
        let source = StreamSource()
        let request = source.run { source in
            try await self.run(prompt, options: options, format: format) { source.append($0) }
        }
        return ResponseStream(source: source, request: request)
    }
}

extension LanguageModelSession.Usage {
    init(_ result: GenerationResult, model: LoadedModel) {
        self.init(
            input: Input(totalTokenCount: result.usage.promptTokens, cachedTokenCount: result.usage.cachedTokens),
            output: Output(totalTokenCount: result.usage.generatedTokens, reasoningTokenCount: 0))
        func number(_ value: Double) -> GeneratedContent { GeneratedContent(kind: .number(value)) }
        metadata = [
            "stopReason": result.stopReason.rawValue.generatedContent,
            "forcedTokens": number(Double(result.usage.forcedTokens)),
            "loadSeconds": number(model.loadSeconds),
            "promptSeconds": number(result.usage.promptSeconds),
            "generationSeconds": number(result.usage.generationSeconds),
        ]
    }
}

extension Turn {
    /// Computes the tokens that any prompt after this transcript begins with.
    func prefill(_ transcript: Transcript, promptPrefix: Prompt?) async {
        // Two prompts that differ from their first character on share exactly what comes before any prompt.
        func tokens(_ ending: String) throws -> [TokenID] {
            let prompt = Transcript.Prompt(segments: [.text(.init(content: (promptPrefix?.text ?? "") + ending))])
            let messages = TranscriptRenderer.messages(for: Array(transcript) + [.prompt(prompt)])
            return try model.tokens(for: messages, addGenerationPrompt: false)
        }
        // A hint has no one to report to: the request itself will say what is wrong.
        guard let one = try? tokens("a"), let other = try? tokens("\n1") else { return }
        let shared = zip(one, other).prefix { $0 == $1 }.map(\.0)
        try? await model.prefill(shared, in: sequence)
    }
}
