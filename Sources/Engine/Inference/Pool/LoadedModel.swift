internal import Waiting
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
    /// What proposes tokens, once it has been asked for.
    nonisolated let predictionHead = Mutex<UsedHead?>(nil)
    private nonisolated let origins: [MatrixOrigin]
    private nonisolated let vocabulary = Mutex<Task<TokenVocabulary, Never>?>(nil)
    /// The grammars of response formats and of tools' arguments.
    package nonisolated let grammars = GrammarCache(capacity: 64)
    /// The memory of all sequences, which may copy common prefixes from each other.
    nonisolated let memory: PoolMemory
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
    nonisolated let identity: UInt64?
    /// Identifies the contents among those whose sequences are in the same memory.
    nonisolated let contents: UInt64
    /// Computes in this actor; memory for sequences may be made on any thread.
    nonisolated(unsafe) let model: any TokenModel
    let engine: Engine
    /// Whether a task runs the engine, and whether it counts as one that runs or waits in the memory.
    var isRunning = false
    var isCounted = false
    /// The engine's wait for memory.
    var parked: Int?
    /// The number of requests that were submitted to the engine, for tests.
    package internal(set) var submissions = 0
    private nonisolated let executor: EngineExecutor
    /// The memory of the weights; nil if nobody counts it. Given back last.
    private nonisolated let room: MemoryReservation?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Opens, validates and packs the model at `path`, with the adapter file at the path `adapter`, if any, for use outside of a pool.
    ///
    /// - Parameters:
    ///   - threads: number of worker threads; nil for the pool that all models share.
    ///   - defaults: what is known of the file's model, such as by a catalogue; nil for nothing.
    /// - Throws: ``ModelError`` if the file cannot be used, ``TemplateError`` if its chat template cannot be read, or `CancellationError`.
    package static func load(
        path: String, adapter: String? = nil, threads: Int? = nil, defaults: @escaping KnownDefaults = { _ in nil }
    ) async throws -> LoadedModel {
        try await load(path: path, adapter: adapter, threads: threads, defaults: defaults, memory: PoolMemory())
    }

    /// - Parameter countsWeights: whether the weights are a part of the memory, for which the call waits.
    static func load(
        path: String, adapter: String? = nil, threads: Int? = nil, defaults: @escaping KnownDefaults = { _ in nil },
        memory: PoolMemory, configuration: EngineConfiguration = EngineConfiguration(), countsWeights: Bool = false
    ) async throws -> LoadedModel {
        let executor = EngineExecutor()
        let files = try await executor.run { try Files(path: path, adapter: adapter, threads: threads) }
        let room = countsWeights ? try await memory.reserveWeights(files.packedBytes) : nil
        return try await executor.load { isCancelled in
            try LoadedModel(
                files, catalogue: defaults, memory: memory, configuration: configuration, executor: executor, room: room,
                isCancelled: isCancelled)
        }
    }

    struct UsedHead: @unchecked Sendable {  // Only turns use it, on the executor of the engine.
        let head: PredictionHead
    }

    /// The default settings that are known for a file's model.
    package typealias KnownDefaults = @Sendable (GGUFFile) throws(ModelError) -> ModelDefaults?

    /// The files of a model, opened and checked: they are those that are loaded, even if others replace them meanwhile.
    private struct Files: Sendable {
        let model: GGUFFile
        let adapter: AdapterFile?
        let pool: WorkerPool
        let packedBytes: Int
        /// The time that it took to open them.
        let duration: Duration

        init(path: String, adapter: String?, threads: Int?) throws {
            let start = ContinuousClock.now
            model = try GGUFFile(path: path)
            let shape = try ModelShape(file: model)
            try shape.checkGeneratesText()
            self.adapter = try adapter.map { try AdapterFile(path: $0) }
            pool = try threads.map { try WorkerPool(threads: $0) } ?? .shared()
            try self.adapter?.check(model)
            packedBytes = try Weights.check(model, shape, pool, self.adapter)
            duration = .now - start
        }
    }

    private init(
        _ files: Files, catalogue: KnownDefaults, memory: PoolMemory, configuration: EngineConfiguration,
        executor: EngineExecutor, room: MemoryReservation?, isCancelled: @escaping @Sendable () -> Bool
    ) throws {
        let start = ContinuousClock.now
        let file = files.model
        let identity = ModelKey.contents(model: file.identity, adapter: files.adapter.map(\.identity))
        (self.identity, contents) = (identity, identity ?? .random(in: 0 ... .max))
        let model = try NeuralModel(
            file: file, pool: files.pool, adapter: files.adapter, cache: PackedCache.standard, isCancelled: isCancelled)
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
        path = file.path
        (self.executor, self.memory, self.model, self.room) = (executor, memory, model, room)
        origins = model.weights.origins
        hasMergedAdapter = files.adapter != nil
        fingerprint = files.adapter == nil ? try? file.fingerprint() : nil  // without one, the model has no probe
        self.threads = model.pool.threads
        engine = Engine(model: model, memory: memory, identity: contents, limits: Scheduler.Limits(configuration))
        self.tokenizer = tokenizer
        shape = model.shape
        loadSeconds = (files.duration + (.now - start)).seconds
    }

    /// Creates an empty sequence with a capacity of `contextSize` tokens, limited to the context length of the model.
    ///
    /// - Parameters:
    ///   - adapter: an adapter of this model that the sequence is processed with.
    ///   - sharesCache: whether other sequences may copy from its KV cache, also after the sequence is released.
    ///   - domain: only sequences of the same domain copy from each other: clients that must not notice what others have asked.
    ///
    /// It stays valid when the model is freed and loaded again: see ``SequenceState/fits(_:)``.
    package nonisolated func makeSequence(
        contextSize: Int, format: CacheFormat = .binary16, adapter: LowRankAdapter? = nil, sharesCache: Bool = true,
        domain: UInt64 = 0
    ) throws -> SequenceState {
        let size = min(max(1, contextSize), shape.contextLength)
        return SequenceState(
            cache: try model.makeMemory(capacity: size, format: format, adapter: adapter), contextSize: size,
            memory: memory, model: contents, isShared: sharesCache, domain: domain)
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

    /// Reads an adapter for use beside the weights, or several that are used together; sequences of the model share it.
    ///
    /// - Returns: nil if an adapter must be merged into the weights instead: see ``LowRankAdapter``.
    /// - Throws: ``ModelError`` if a file is damaged or an adapter does not fit the model.
    package nonisolated func adapter(paths: [String]) async throws -> LowRankAdapter? {
        try await memory.adapters.adapter(paths: paths, model: contents) {
            [origins, fingerprint, memory, modelPath = self.path] in
            let file = try GGUFFile(path: modelPath)
            // The adapter is checked with the file, and used with the model in memory.
            if let fingerprint, try file.fingerprint() != fingerprint {
                throw ModelError.unreadable(
                    path: modelPath, reason: "it was replaced while the model was in memory: begin a new session")
            }
            return try LowRankAdapter(
                paths.map { try AdapterFile(path: $0) }, for: origins, model: file, reserve: { memory.reserveAdapter($0) })
        }
    }
}
