internal import JSON
internal import Waiting
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
    /// The sequence whose KV cache follows the transcript, with its adapter. It stays when the model is freed between two requests.
    private let sequence = Mutex<AdaptedSequence?>(nil)
    /// The running prewarm, which the next request waits for: they have their first tokens in common.
    private let prewarming = Mutex<Task<Void, Never>?>(nil)

    private struct AdaptedSequence: Sendable {
        let state: SequenceState
        /// Whether its adapter is the model's for general use, and no other.
        let usesAssistant: Bool
    }

    /// The model, for one request, and the sequence whose KV cache follows the transcript.
    private struct ModelSequence: Sendable {
        let lease: ModelLease<LoadedModel>
        let adapted: AdaptedSequence

        var sequence: SequenceState { adapted.state }
        var model: LoadedModel { lease.model }

        /// Whether an adapter for a task changes what the model says.
        var hasTaskAdapter: Bool { sequence.adapter != nil && !adapted.usesAssistant || model.hasMergedAdapter }

        /// An empty sequence like that of the conversation, without its adapter. What it computes is kept when it is released, as long
        /// as there is room.
        func makePlainSequence() throws -> SequenceState {
            try model.makeSequence(contextSize: sequence.contextSize, format: sequence.format, adapter: nil)
        }
    }

    package init(_ configuration: LocalModel) {
        self.configuration = configuration
    }

    private func conversation(isPrewarm: Bool = false) async throws -> ModelSequence {
        let isFirst = sequence.withLock { $0 == nil }
        async let checks: Void = isFirst ? await Self.prepareChecks() : ()
        let lease = try await configuration.lease(isPrewarm: isPrewarm)
        await checks
        if let known = sequence.withLock({ $0 }), known.state.fits(lease.model) {
            return ModelSequence(lease: lease, adapted: known)
        }
        let adapter = try await configuration.adapter(for: lease.model)
        let made = AdaptedSequence(
            state: try lease.model.makeSequence(
                contextSize: configuration.maximumContext, format: configuration.cacheFormat, adapter: adapter),
            usesAssistant: adapter != nil && configuration.isForGeneralUse)
        let (used, before) = sequence.withLock { sequence -> (AdaptedSequence, AdaptedSequence?) in
            let before = sequence
            if let before, before.state.fits(lease.model) { return (before, before) }  // a concurrent prewarm created it first
            sequence = made
            return (made, before)
        }
        _ = before  // freed outside the lock
        return ModelSequence(lease: lease, adapted: used)
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

    /// Processes the tokens that a conversation has in common however its last prompt goes on. Prewarming is a hint and has no way to
    /// report errors; the request itself throws them.
    private func prefill(_ transcript: Transcript) async {
        guard let conversation = try? await self.conversation(isPrewarm: true) else { return }
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
        // A prompt that cannot be rendered fails in the request, with its error.
        guard let one = try? tokens("a"), let other = try? tokens("\n1") else { return }
        let shared = zip(one, other).prefix { $0 == $1 }.map(\.0)
        // So does a model that cannot process it.
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
        let model = conversation.model

        // What to send.
        let renderer = TranscriptRenderer(configuration, model)
        let plan = try RequestPlan(request, renderer, ModelFacts(model, hasTaskAdapter: conversation.hasTaskAdapter))
        let tokens = try model.tokens(for: plan.prompt)
        // A prompt that cannot fit is rejected before anything else is done with it.
        guard tokens.count < conversation.sequence.contextSize else {
            throw GenerationFailure.promptTooLong(tokens: tokens.count, contextSize: conversation.sequence.contextSize)
        }

        // What to check.
        var checks = InputChecks(request, configuration, model, usesAssistant: conversation.adapted.usesAssistant)
        let hasOtherAdapter = conversation.sequence.adapter != nil && checks.probe?.usesAssistant != true
        try await checks.check(
            request.transcript, languages: LanguageCheck(supported: configuration.description.languages),
            statesWithoutAdapter: hasOtherAdapter
                ? { try await self.states(of: tokens, layers: $0, conversation) } : nil)

        // What to run.
        var generation = GenerationRequest(
            tokens: tokens, sampling: plan.sampling, maximumTokens: plan.maximumTokens)
        generation.grammar = plan.format.map { model.grammar($0.source, $0.options) }
        generation.detectsLoops = configuration.detectsLoops
        // An answer is not empty.
        if plan.format == nil { generation.bannedFirstTokens = model.tokenizer.stopTokens.sorted() }
        let isFirst = plan.tools.madeCalls.isEmpty
        if isFirst { generation.stateLayers = checks.probe?.layers ?? [] }
        var run = TurnRun(checks, isFirst: isFirst, into: channel)
        let outcome: GenerationResult
        do {
            outcome = try await model.generateTurn(
                generation, tools: plan.turnTools(model), in: conversation.sequence
            ) { run.take($0) }
        } catch {
            throw Self.failure(error, limit: generation.maximumTokens, promptTokens: tokens.count, conversation)
        }
        try run.finish(request, outcome, model, contextSize: conversation.sequence.contextSize)
    }

    private static func failure(
        _ error: any Error, limit: Int?, promptTokens: Int, _ conversation: ModelSequence
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

    /// The probabilities of the options of some prompts.
    ///
    /// - Throws: ``LanguageModelError`` or a related error, or `CancellationError`.
    func read(_ prompts: [OptionPrompt], domain: UInt64) async throws -> OptionReading {
        let conversation = try await conversation()
        let (model, own) = (conversation.model, conversation.sequence)
        // Hundreds of questions on a long state are millions of characters.
        let questions = try await onAnotherThread(cancellable: { [configuration] check in
            let renderer = TranscriptRenderer(configuration, model)
            return try prompts.map { prompt in
                try check()
                return model.tokenizer.question(prompt, after: try model.tokens(for: renderer.prompt(for: prompt.entries)))
            }
        })
        do {
            let scores = try await model.scores(of: questions) {
                try model.makeSequence(
                    contextSize: own.contextSize, format: own.format, adapter: own.adapter, domain: domain)
            }
            return OptionReading(
                logProbabilities: scores.map(\.logProbabilities), promptTokens: scores.map(\.promptTokens),
                sharedTokens: scores.reduce(0) { $0 + $1.sharedTokens }, optionTokens: scores.reduce(0) { $0 + $1.optionTokens },
                fingerprint: try fingerprint(of: model))
        } catch {
            throw Self.failure(error, limit: nil, promptTokens: questions.map(\.prompt.count).max() ?? 0, conversation)
        }
    }

    /// What identifies the weights that answer: those of the model, and the names of its adapters.
    private func fingerprint(of model: LoadedModel) throws -> String? {
        guard let own = model.fingerprint else { return nil }
        let names = try configuration.adapterPaths.map { path in
            let name = URL(filePath: path).deletingPathExtension()
            // The adapters beside a model have its name, and that of their use.
            return name.pathExtension.isEmpty ? name.lastPathComponent : name.pathExtension
        }
        return ([own] + names).joined(separator: "+")
    }

    /// What identifies the weights of the model, and the number of its layers.
    func identity() async throws -> (fingerprint: String?, layerCount: Int) {
        let conversation = try await conversation()
        let model = conversation.model
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
        of tokens: [TokenID], layers: [Int], _ conversation: ModelSequence, sequence: SequenceState? = nil
    ) async throws -> [Int: [Float]] {
        var request = GenerationRequest(tokens: tokens, sampling: .greedy, maximumTokens: 1)
        request.stateLayers = layers
        var states: [Int: [Float]] = [:]
        do {
            let sequence = try sequence ?? conversation.makePlainSequence()
            _ = try await conversation.model.generateTurn(request, in: sequence) { event in
                if case .state(let values, let layer) = event { states[layer] = values }
                return true
            }
        } catch {
            throw Self.failure(error, limit: nil, promptTokens: tokens.count, conversation)
        }
        return states
    }
}

extension Tokenizer {
    /// A question with the tokens of its options, each with what it begins with and what follows it: words may extend across these limits.
    /// What the options only have in common because of the opening is a part of the prompt.
    fileprivate func question(_ prompt: OptionPrompt, after tokens: [TokenID]) -> OptionQuestion {
        let options = prompt.options.map { option in
            switch prompt.closing {
            case .none: encode(continuation: prompt.opening + option)
            case .text(let text): encode(continuation: prompt.opening + option + text)
            case .endOfTurn: encode(continuation: prompt.opening + option) + [endOfTurn]
            }
        }
        guard !prompt.opening.isEmpty, let first = options.first else { return OptionQuestion(prompt: tokens, options: options) }
        var shared = min(encode(continuation: prompt.opening).count, (options.map(\.count).min() ?? 1) - 1)
        for option in options.dropFirst() { shared = zip(first.prefix(shared), option).prefix { $0 == $1 }.count }
        return OptionQuestion(prompt: tokens + first.prefix(shared), options: options.map { Array($0.dropFirst(shared)) })
    }
}
