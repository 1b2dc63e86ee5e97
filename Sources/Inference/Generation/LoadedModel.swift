internal import AsyncLocks
internal import CKernels
package import Grammar

/// A model in memory. All its computation runs in this actor, on the engine's own executor.
///
/// Requests of several sequences are interleaved: the actor switches to the next request after every prompt batch and
/// after every generated token.
package actor LoadedModel {
    package nonisolated let path: String
    package nonisolated let shape: ModelShape
    package nonisolated let tokenizer: Tokenizer
    package nonisolated let template: ChatTemplate
    private nonisolated let formats: (tools: ToolFormat?, thinking: ThinkingFormat?)
    /// The tokenizer's vocabulary in the form that grammars use; created on first use.
    package private(set) lazy var grammarVocabulary = TokenVocabulary(tokenizer)
    /// The KV caches of all sequences, which may copy common prefixes from each other.
    private nonisolated let caches = CacheRegistry()
    /// The model's default settings.
    package nonisolated let defaults: ModelDefaults
    /// Load time in seconds.
    package nonisolated let loadSeconds: Double
    private let model: DecoderModel
    private nonisolated let executor: EngineExecutor

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Opens, validates and packs the model at `path`, with the adapter file at the path `adapter`, if any.
    ///
    /// - Parameter threads: number of worker threads; nil for ``WorkerPool/defaultThreads``.
    ///
    /// - Throws: ``ModelError`` if the file cannot be used, ``TemplateError`` if its chat template cannot be read.
    package static func load(path: String, adapter: String? = nil, threads: Int? = nil) async throws -> LoadedModel {
        let executor = EngineExecutor()
        return try await executor.run {
            try LoadedModel(path: path, adapter: adapter, threads: threads, executor: executor)
        }
    }

    private init(path: String, adapter: String?, threads: Int?, executor: EngineExecutor) throws {
        let clock = ContinuousClock()
        let start = clock.now
        let file = try GGUFFile(path: path)
        let model = try DecoderModel(
            file: file, pool: WorkerPool(threads: threads), adapter: try adapter.map { try AdapterFile(path: $0) },
            cache: PackedCache.standard)
        let tokenizer = try Tokenizer(file: file)
        guard tokenizer.vocabulary.count <= model.shape.vocabularySize else {
            throw ModelError.invalid(
                field: "tokenizer.ggml.tokens",
                reason: "has \(tokenizer.vocabulary.count) tokens, more than the \(model.shape.vocabularySize) embeddings"
            )
        }
        guard let source = try file.metadata.string("tokenizer.chat_template") else {
            throw ModelError.missing("tokenizer.chat_template")
        }
        template = try ChatTemplate(source: source, beginningText: tokenizer.beginningText, endText: tokenizer.endText)
        let known = Set(tokenizer.vocabulary.specialTokens)
        formats = (
            ToolFormat(template: source) { name in tokenizer.vocabulary.specialToken(named: name).map(known.contains) ?? false },
            ThinkingFormat(template: source)
        )
        defaults = try ModelDefaults(file: file, isSmall: model.packedBytes < 256 << 20)
        self.path = path
        self.executor = executor
        self.model = model
        self.tokenizer = tokenizer
        shape = model.shape
        loadSeconds = (clock.now - start).seconds
    }

    /// Creates an empty sequence with a capacity of `contextSize` tokens, limited to the context length of the model.
    ///
    /// - Parameter sharesCache: whether other sequences may copy from its KV cache, also after the sequence is released.
    package nonisolated func makeSequence(contextSize: Int, sharesCache: Bool = true) throws -> SequenceState {
        let size = min(max(1, contextSize), shape.contextLength)
        return SequenceState(
            cache: try KVCache(shape: shape, capacity: size), contextSize: size,
            registry: sharesCache ? caches : nil)
    }

    /// The tokens of the rendered conversation, as the engine processes them. All token counts are made with this
    /// function.
    package nonisolated func tokens(for prompt: ChatPrompt, addGenerationPrompt: Bool = true) throws -> [TokenID] {
        tokenizer.encode(try template.render(prompt, addGenerationPrompt: addGenerationPrompt), addsBoundaryTokens: true)
    }

    /// The format of tool calls that the model was trained for; nil if it has none.
    package nonisolated var toolFormat: ToolFormat? { formats.tools }
    /// The marks around the model's reasoning; nil if the model has no reasoning mode.
    package nonisolated var thinkingFormat: ThinkingFormat? { formats.thinking }

    // MARK: - Computing

    /// Processes the tokens that are not yet in the sequence's KV cache, so that a request that begins with `tokens`
    /// starts sooner. Does nothing if the tokens do not fit the context.
    package func prefill(_ tokens: [TokenID], in sequence: SequenceState) async throws {
        guard tokens.count < sequence.contextSize else { return }
        try await sequence.lock.acquire()
        defer { sequence.lock.release() }
        _ = try await process(tokens, in: sequence.cache, wantsLogits: false)
    }

    /// The natural logarithm of the probability that the model generates `continuation` after `prompt`. Of a
    /// continuation longer than one batch, only the beginning counts.
    ///
    /// - Throws: ``GenerationFailure`` if the two do not fit the sequence, or `CancellationError`.
    package func logProbability(
        of continuation: [TokenID], after prompt: [TokenID], in sequence: SequenceState
    ) async throws -> Double {
        guard let last = prompt.last else { throw GenerationFailure.emptyPrompt }
        let next = [last] + continuation.prefix(DecoderModel.batchSize - 1)
        guard prompt.count + next.count <= sequence.contextSize else {
            throw GenerationFailure.promptTooLong(tokens: prompt.count + next.count, contextSize: sequence.contextSize)
        }
        try await sequence.lock.acquire()
        defer { sequence.lock.release() }
        _ = try await process(Array(prompt.dropLast()), in: sequence.cache, wantsLogits: false)
        return try model.logProbability(of: next[...], cache: sequence.cache, isCancelled: { Task.isCancelled })
    }

    /// The natural logarithm of the ratio of the probabilities of two tokens as the next token after `prompt`.
    ///
    /// - Throws: ``GenerationFailure`` if the prompt does not fit the sequence, or `CancellationError`.
    package func logOdds(
        of one: TokenID, against other: TokenID, after prompt: [TokenID], in sequence: SequenceState
    ) async throws -> Double {
        guard !prompt.isEmpty else { throw GenerationFailure.emptyPrompt }
        guard prompt.count <= sequence.contextSize else {
            throw GenerationFailure.promptTooLong(tokens: prompt.count, contextSize: sequence.contextSize)
        }
        try await sequence.lock.acquire()
        defer { sequence.lock.release() }
        _ = try await process(Array(prompt.dropLast()), in: sequence.cache, wantsLogits: false)
        // The softmax denominator is the same for both tokens, so their two logits suffice.
        try model.forward(
            prompt.suffix(1), cache: sequence.cache, candidates: [min(one, other), max(one, other)],
            isCancelled: { Task.isCancelled })
        return Double(model.logits[Int(one)]) - Double(model.logits[Int(other)])
    }

    /// Generates a response to the request's prompt and passes its text to `emit`, in whole characters, until `emit`
    /// returns false.
    ///
    /// Afterwards the sequence contains the prompt and the response. Cancelling the task ends generation within one
    /// token.
    /// - Throws: ``GenerationFailure``, or `CancellationError`.
    package func generate(
        _ request: GenerationRequest, in sequence: SequenceState, emit: (String) -> Bool
    ) async throws -> GenerationResult {
        let contextSize = sequence.contextSize
        guard !request.tokens.isEmpty else { throw GenerationFailure.emptyPrompt }
        guard request.tokens.count < contextSize else {
            throw GenerationFailure.promptTooLong(tokens: request.tokens.count, contextSize: contextSize)
        }
        try await sequence.lock.acquire()
        defer { sequence.lock.release() }
        let cache = sequence.cache
        let clock = ContinuousClock()
        let start = clock.now
        var usage = GenerationUsage()
        usage.promptTokens = request.tokens.count
        if let grammar = request.grammar {
            return try await generate(request, under: grammar, in: sequence, usage, emit: emit)
        }
        usage.cachedTokens = try await process(request.tokens, in: cache, wantsLogits: true)
        let firstLogits = clock.now
        usage.promptSeconds = (firstLogits - start).seconds

        var sampler = Sampler(request.sampling)
        var text = TextOutput(stops: request.stopStrings)
        var loops = LoopDetector()
        var result = GenerationResult(stopReason: .maximumTokens, usage: usage)
        /// Number of text bytes before each token.
        var offsets: [Int] = []
        var bytes = 0
        let limit = request.maximumTokens ?? .max
        while usage.generatedTokens < limit {
            // All sequences share the logits buffer: there must be no `await` between a forward pass and this line.
            for token in request.bannedTokens { model.logits[Int(token)] = -.infinity }
            if usage.generatedTokens == 0 { for token in request.bannedFirstTokens { model.logits[Int(token)] = -.infinity } }
            guard let token = sampler.next(model.logits, kernels: model.pool.kernels) else {
                throw GenerationFailure.unusableLogits
            }
            usage.generatedTokens += 1
            // Checked before the model's stop tokens, because a stop token of the request may be one of them.
            if request.stopTokens.contains(token) {
                result.stopReason = .stopString
                result.stopToken = token
                break
            }
            if tokenizer.stopTokens.contains(token) {
                result.stopReason = .endOfTurn
                break
            }
            let piece = tokenizer.text(of: token)
            if let end = text.append(piece, emit) {
                result.stopReason = end
                result.stopString = text.stopString
                break
            }
            result.tokens.append(token)
            offsets.append(bytes)
            bytes += piece.count
            if request.detectsLoops, let kept = loops.append(token) {
                result.stopReason = .loop
                result.byteCountBeforeLoop = offsets[kept]
                break
            }
            if usage.generatedTokens == limit { break }
            guard cache.tokens.count < contextSize else {
                result.stopReason = .contextFull
                break
            }
            await Task.yield()  // lets other sequences run
            try Task.checkCancellation()
            try model.forward([token], cache: cache)
        }
        text.finish(emit)
        usage.generationSeconds = (clock.now - firstLogits).seconds
        result.usage = usage
        return result
    }

    /// Generates a response constrained by a grammar. The caller holds the sequence's lock.
    ///
    /// Forced tokens are collected and processed in one batch with the next token that has alternatives.
    private func generate(
        _ request: GenerationRequest, under grammar: Grammar, in sequence: SequenceState, _ usage: GenerationUsage,
        emit: (String) -> Bool
    ) async throws -> GenerationResult {
        let cache = sequence.cache
        let clock = ContinuousClock()
        let start = clock.now
        var usage = usage
        var decoder = ConstrainedDecoder(grammar) { [tokenizer] in tokenizer.encode(bytes: $0) }
        let limit = min(request.maximumTokens ?? .max, sequence.contextSize - request.tokens.count)
        let needed = decoder.minimumTokenCount
        if needed > limit { throw GenerationFailure.budgetTooSmall(needed: needed, available: max(0, limit)) }
        usage.cachedTokens = try await process(request.tokens, in: cache, wantsLogits: true)
        let firstLogits = clock.now
        usage.promptSeconds = (firstLogits - start).seconds

        var sampler = Sampler(request.sampling)
        var text = TextOutput(stops: request.stopStrings)
        var reason = StopReason.endOfTurn
        var written: [TokenID] = []
        /// Tokens of the response that are not yet in the KV cache.
        var pending: [TokenID] = []
        let chooser = TokenChooser(vocabulary: grammar.vocabulary, count: shape.vocabularySize)
        generation: while true {
            let remaining = limit - usage.generatedTokens
            if remaining <= 0 {
                reason = decoder.isComplete ? .endOfTurn : .maximumTokens
                break
            }
            var tokens: [TokenID]
            var isForced = false
            let step = decoder.next(remaining: remaining)
            switch step {
            case .end: break generation
            case .forced(let forced):
                tokens = request.batchesForcedTokens ? forced : Array(forced.prefix(1))
                isForced = true
            case .few, .many:
                if !pending.isEmpty {
                    await Task.yield()  // lets other sequences run
                    try Task.checkCancellation()
                    var candidates: [TokenID]?
                    if case .few(let few) = step { candidates = few }
                    try model.forward(pending[...], cache: cache, candidates: candidates, isCancelled: { Task.isCancelled })
                    pending.removeAll(keepingCapacity: true)
                }
                guard
                    let token = chooser.choose(
                        step, &decoder, &sampler, model.logits, remaining: remaining, kernels: model.pool.kernels)
                else {
                    // Finite logits without an allowed token: the grammar has reached its limits.
                    if model.logits.contains(where: \.isFinite), decoder.endEarly() { continue generation }
                    throw model.logits.contains(where: \.isFinite)
                        ? GenerationFailure.grammarTooComplex : GenerationFailure.unusableLogits
                }
                if tokenizer.stopTokens.contains(token) {
                    usage.generatedTokens += 1
                    break generation
                }
                tokens = [token]
            }
            for token in tokens {
                written.append(token)
                guard decoder.accept(token) else { throw GenerationFailure.grammarTooComplex }
                usage.generatedTokens += 1
                if isForced { usage.forcedTokens += 1 }
                if let end = text.append(tokenizer.text(of: token), emit) {
                    reason = end
                    break generation
                }
            }
            pending += tokens
            if !request.batchesForcedTokens, isForced {
                try Task.checkCancellation()
                try model.forward(pending[...], cache: cache, isCancelled: { Task.isCancelled })
                pending.removeAll(keepingCapacity: true)
            } else if pending.count > DecoderModel.batchSize {
                await Task.yield()
                try Task.checkCancellation()
                try model.forward(pending.dropLast(), cache: cache, wantsLogits: false, isCancelled: { Task.isCancelled })
                pending.removeFirst(pending.count - 1)
            }
        }
        text.finish(emit)
        usage.generationSeconds = (clock.now - firstLogits).seconds
        return GenerationResult(stopReason: reason, usage: usage, tokens: written)
    }

    /// Makes the cache contain exactly `tokens` and returns the number of tokens that were already cached.
    private func process(_ tokens: [TokenID], in cache: KVCache, wantsLogits: Bool) async throws -> Int {
        // If logits are wanted, the last token is always recomputed, because generation starts from its logits.
        caches.copyPrefix(to: cache, for: tokens)
        let limit = wantsLogits ? tokens.count - 1 : tokens.count
        let cached = cache.rewind(to: max(0, cache.reusablePrefix(of: tokens, limit: limit)))
        // Recurrent states can be restored only at a checkpoint, so one is saved before the last token, which is
        // recomputed each time.
        let checkpoint = cache.isRecurrent ? limit : tokens.count
        var start = cached
        while start < tokens.count {
            try Task.checkCancellation()
            let end = min(start + DecoderModel.batchSize, start < checkpoint ? checkpoint : tokens.count)
            try model.forward(
                tokens[start..<end], cache: cache, wantsLogits: wantsLogits && end == tokens.count,
                isCancelled: { Task.isCancelled })
            start = end
            if start == checkpoint { cache.addCheckpoint() }
            if start < tokens.count { await Task.yield() }
        }
        return cached
    }
}

/// The engine's state of a conversation: its KV cache. Any actor may hold a reference, but only ``LoadedModel``
/// accesses the contents.
package final class SequenceState: @unchecked Sendable {  // The cache is used under `lock`, on the engine's executor.
    let cache: KVCache
    package let contextSize: Int
    let lock = AsyncLock()

    private let registry: CacheRegistry?

    init(cache: KVCache, contextSize: Int, registry: CacheRegistry?) {
        self.cache = cache
        self.contextSize = contextSize
        self.registry = registry
        registry?.add(cache)
    }

    deinit { registry?.release(cache) }
}

extension Duration {
    package var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) * 1e-18
    }
}
