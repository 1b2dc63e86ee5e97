internal import AsyncLocks
package import Foundation
package import Grammar
internal import Synchronization

/// A model in memory. All its computation runs in this actor, on the engine's own executor.
///
/// Requests of several sequences are processed together: see ``Engine``.
package actor LoadedModel {
    package nonisolated let path: String
    package nonisolated let shape: ModelShape
    package nonisolated let tokenizer: Tokenizer
    package nonisolated let template: ChatTemplate
    private nonisolated let formats: (tools: ToolFormat?, thinking: ThinkingFormat?)
    private nonisolated let adapters = Mutex(Adapters())
    private nonisolated let origins: [MatrixOrigin]
    private nonisolated let vocabulary = Mutex<Task<TokenVocabulary, Never>?>(nil)
    /// The grammars of response formats and of tools' arguments.
    package nonisolated let grammars = GrammarCache(capacity: 64)
    /// The KV caches of all sequences, which may copy common prefixes from each other.
    private nonisolated let caches: CacheRegistry
    /// The model's default settings.
    package nonisolated let defaults: ModelDefaults
    /// Identifies the contents of the model file; nil if an adapter was merged into the weights, or if the file cannot be read.
    package nonisolated let fingerprint: String?
    /// Whether an adapter was merged into the weights.
    package nonisolated let hasMergedAdapter: Bool
    /// Load time in seconds.
    package nonisolated let loadSeconds: Double
    /// The number of threads that compute.
    package nonisolated let threads: Int
    /// Identifies the files of the model and the adapter; nil if they cannot be examined.
    private nonisolated let identity: UInt64?
    /// Computes in this actor; memory for sequences may be made on any thread.
    private nonisolated(unsafe) let model: any TokenModel
    private let engine: Engine
    /// Whether a task runs the engine.
    private var isRunning = false
    /// The number of decodings that were submitted to the engine, for tests.
    package private(set) var submissions = 0
    private nonisolated let executor: EngineExecutor

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Opens, validates and packs the model at `path`, with the adapter file at the path `adapter`, if any.
    ///
    /// - Parameters:
    ///   - threads: number of worker threads; nil for the pool that all models share.
    ///   - defaults: what is known of the file's model, such as by a catalogue; nil for nothing.
    /// - Throws: ``ModelError`` if the file cannot be used, ``TemplateError`` if its chat template cannot be read.
    package static func load(
        path: String, adapter: String? = nil, threads: Int? = nil, defaults: @escaping KnownDefaults = { _ in nil }
    ) async throws -> LoadedModel {
        try await load(path: path, adapter: adapter, threads: threads, defaults: defaults, caches: CacheRegistry())
    }

    static func load(
        path: String, adapter: String?, threads: Int?, defaults: @escaping KnownDefaults = { _ in nil }, caches: CacheRegistry
    ) async throws -> LoadedModel {
        let executor = EngineExecutor()
        return try await executor.run {
            try LoadedModel(
                path: path, adapter: adapter, threads: threads, catalogue: defaults, caches: caches, executor: executor)
        }
    }

    /// The default settings that are known for a file's model.
    package typealias KnownDefaults = @Sendable (GGUFFile) throws(ModelError) -> ModelDefaults?

    private init(
        path: String, adapter: String?, threads: Int?, catalogue: KnownDefaults, caches: CacheRegistry, executor: EngineExecutor
    ) throws {
        let clock = ContinuousClock()
        let start = clock.now
        let file = try GGUFFile(path: path)
        try ModelShape(file: file).checkGeneratesText()
        let adapterFile = try adapter.map { try AdapterFile(path: $0) }
        identity = ([file.identity] + (adapterFile.map { [$0.identity] } ?? [])).reduce(UInt64?(1)) { known, file in
            known.flatMap { known in file.map { known &* 31 &+ $0 } }
        }
        let model = try NeuralModel(
            file: file, pool: try threads.map { try WorkerPool(threads: $0) } ?? .shared(), adapter: adapterFile,
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
        defaults = try ModelDefaults(file: file, isSmall: model.packedBytes < 256 << 20, known: catalogue(file))
        self.path = path
        self.executor = executor
        self.caches = caches
        self.model = model
        origins = model.weights.origins
        hasMergedAdapter = adapterFile != nil
        fingerprint = adapterFile == nil ? try? file.fingerprint() : nil  // without one, the model has no probe
        self.threads = model.pool.threads
        engine = Engine(model: model, caches: caches)
        self.tokenizer = tokenizer
        shape = model.shape
        loadSeconds = (clock.now - start).seconds
    }

    /// Creates an empty sequence with a capacity of `contextSize` tokens, limited to the context length of the model.
    ///
    /// - Parameters:
    ///   - adapter: an adapter of this model that the sequence is processed with.
    ///   - sharesCache: whether other sequences may copy from its KV cache, also after the sequence is released.
    package nonisolated func makeSequence(
        contextSize: Int, format: CacheFormat = .binary16, adapter: LowRankAdapter? = nil, sharesCache: Bool = true
    ) throws -> SequenceState {
        let size = min(max(1, contextSize), shape.contextLength)
        return SequenceState(
            cache: try model.makeMemory(capacity: size, format: format, adapter: adapter), contextSize: size,
            registry: sharesCache ? caches : nil)
    }

    /// The tokens of the rendered conversation, as the engine processes them. All token counts are made with this
    /// function.
    package nonisolated func tokens(for prompt: ChatPrompt, addGenerationPrompt: Bool = true) throws -> [TokenID] {
        tokenizer.encode(try template.render(prompt, addGenerationPrompt: addGenerationPrompt), addsBoundaryTokens: true)
    }

    /// The tokenizer's vocabulary in the form that grammars use; created on first use. Other requests are processed
    /// meanwhile. Throws `CancellationError` if the calling task is cancelled while it is created.
    package nonisolated var grammarVocabulary: TokenVocabulary {
        get async throws {
            try await vocabulary.withLock { task in
                let known =
                    task
                    ?? Task.detached { [tokenizer] in
                        // It takes seconds with a large vocabulary, and must not block the threads of other tasks.
                        await onAnotherThread { TokenVocabulary(tokenizer) }
                    }
                if task == nil {
                    // The first request with a grammar usually has a prompt to process before it needs masks.
                    Task.detached(priority: .utility) { await known.value.prepareSharedMasks() }
                }
                task = known
                return known
            }.valueUnlessCancelled
        }
    }

    /// The format of tool calls that the model was trained for; nil if it has none.
    package nonisolated var toolFormat: ToolFormat? { formats.tools }
    /// The marks around the model's reasoning; nil if the model has no reasoning mode.
    package nonisolated var thinkingFormat: ThinkingFormat? { formats.thinking }

    // MARK: - Requests

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
        let scored = Array(continuation.prefix(EngineLimits.passTokens - 1))
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

    // MARK: - Adapters

    private struct LoadedAdapter {
        weak var adapter: LowRankAdapter?
    }

    private struct Adapters {
        var loaded: [UInt64: LoadedAdapter] = [:]
        /// The one that was used last, so that counting tokens does not read it again.
        var last: LowRankAdapter?
    }

    /// Reads an adapter for use beside the weights; sequences of the model share it. It stays in memory while a sequence uses
    /// it, and the one that was used last stays too.
    ///
    /// - Returns: nil if the adapter must be merged into the weights instead: see ``LowRankAdapter``.
    /// - Throws: ``ModelError`` if the file is damaged or the adapter does not fit the model.
    package nonisolated func adapter(path: String) async throws -> LowRankAdapter? {
        // A file that was replaced is read again: sequences continue with the one that they began with.
        if let identity = GGUFFile.identity(of: [path]), let known = adapters.withLock({ $0.loaded[identity]?.adapter }) {
            return known
        }
        let made = try await EngineExecutor().run { [origins, fingerprint, modelPath = self.path] in
            let file = try GGUFFile(path: modelPath)
            // The adapter is checked with the file, and used with the model in memory.
            if let fingerprint, try file.fingerprint() != fingerprint {
                throw ModelError.unreadable(
                    path: modelPath, reason: "it was replaced while the model was in memory: begin a new session")
            }
            return try LowRankAdapter(AdapterFile(path: path), for: origins, model: file)
        }
        guard let made else { return nil }
        return adapters.withLock { adapters in
            adapters.loaded = adapters.loaded.filter { $0.value.adapter != nil }
            let adapter = adapters.loaded[made.identity]?.adapter ?? made
            adapters.loaded[made.identity] = LoadedAdapter(adapter: adapter)
            adapters.last = adapter
            return adapter
        }
    }

    // MARK: - Cache files

    /// Writes the keys and values of the longest prefix of `tokens` that any sequence of the model has in its cache. Other
    /// requests are processed meanwhile.
    ///
    /// - Returns: the number of tokens of this prefix; 0 if there is none, and then no file is written.
    /// - Throws: ``CacheFileError``, or ``ModelError/outOfMemory(bytes:)``.
    package func writeCache(
        for tokens: [TokenID], format: CacheFormat = .binary16, adapter: LowRankAdapter? = nil, to url: URL
    ) async throws -> Int {
        guard let identity = identity(with: adapter),
            let (cache, count) = caches.longestPrefix(of: tokens, where: { $0.isOf(format, adapter) })
        else { return 0 }
        // The copy shares the pages, so that the sequence can be used again immediately.
        nonisolated(unsafe) let copy = try model.makeMemory(capacity: cache.capacity, format: format, adapter: adapter)
        try copy.copyPrefix(of: cache, count: count)
        if copy.tokens.isEmpty { return 0 }
        let file = CacheFile(url: url, model: identity)
        // Waiting for the disk must block neither the engine nor a thread of the cooperative pool.
        return try await EngineExecutor().run {
            try file.write(copy)
            return copy.tokens.count
        }
    }

    /// Reads the keys and values of a file, for the next sequence whose tokens begin in the same way.
    ///
    /// - Returns: the number of tokens; 0 if the cache is larger than all that are kept without a sequence.
    /// - Throws: ``CacheFileError`` if the file is damaged or was written with another model, or
    ///   ``ModelError/outOfMemory(bytes:)``.
    package nonisolated func readCache(
        from url: URL, format: CacheFormat = .binary16, adapter: LowRankAdapter? = nil
    ) async throws -> Int {
        guard let identity = identity(with: adapter) else { return 0 }
        let file = CacheFile(url: url, model: identity)
        nonisolated(unsafe) let model = model
        return try await EngineExecutor().run { [caches] in
            let cache = try file.read(for: model, format: format, adapter: adapter)
            return caches.release(cache) ? cache.tokens.count : 0
        }
    }

    private nonisolated func identity(with adapter: LowRankAdapter?) -> UInt64? {
        identity.map { $0 &* 31 &+ (adapter?.identity ?? 0) }
    }

    /// The number of requests that wait because too many others are being processed.
    package var waitingRequests: Int { engine.waitingCount }

    /// The numbers of passes and of tokens that the engine has processed.
    package var processed: (passes: Int, tokens: Int) { (engine.passes, engine.processedTokens) }
}

/// The engine's state of a conversation: its KV cache. Any actor may hold a reference, but only ``LoadedModel``
/// accesses the contents.
package final class SequenceState: @unchecked Sendable {  // The cache is used under `lock`, on the engine's executor.
    let cache: any SequenceMemory
    package let contextSize: Int
    let lock = AsyncLock()
    package var adapter: LowRankAdapter? { cache.adapter }
    package var format: CacheFormat { cache.format }

    private let registry: CacheRegistry?

    init(cache: any SequenceMemory, contextSize: Int, registry: CacheRegistry?) {
        self.cache = cache
        self.contextSize = contextSize
        self.registry = registry
        registry?.add(cache, owner: self)
    }

    deinit { registry?.release(cache) }
}

extension Duration {
    package var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) * 1e-18
    }
}
