internal import Synchronization

/// What identifies a model in a pool: the contents of its files. A file that was replaced is another model.
package struct ModelKey: Hashable, Sendable {
    enum Kind: Hashable, Sendable { case language, embedder }

    let kind: Kind
    /// Of the model's files, and of the adapter that is merged into its weights; nil if one cannot be examined.
    let contents: UInt64?
    /// The paths if the contents are not known.
    let source: String?

    init(_ kind: Kind, contents: UInt64?, source: String) {
        (self.kind, self.contents, self.source) = (kind, contents, contents == nil ? source : nil)
    }

    /// Identifies a model's files and those of the adapter that is merged into its weights.
    static func contents(model: UInt64?, adapter: UInt64??) -> UInt64? {
        guard let model else { return nil }
        guard let adapter else { return 31 &+ model }
        return adapter.map { (31 &+ model) &* 31 &+ $0 }
    }
}

/// A model that a request uses. It stays in memory until this object is released.
package final class ModelLease<Model: AnyObject & Sendable>: Sendable {
    package let model: Model
    package let key: ModelKey
    private let memory: PoolMemory

    fileprivate init(_ model: Model, _ key: ModelKey, _ memory: PoolMemory) {
        (self.model, self.key, self.memory) = (model, key, memory)
    }

    deinit { memory.endUse(of: model, key) }
}

/// The one owner of models in memory. It loads each of them once, for all who use it, and frees those that nobody uses when others need
/// their memory.
///
/// Programs hold sequences, not models: the keys and values of a sequence stay valid as long as the contents of the model's files are the
/// same, whether the model was loaded again meanwhile or not.
package final class ModelPool: Sendable {
    /// The models of this process.
    package static let shared = ModelPool(sharedConfiguration.withLock { $0 })

    private static let sharedConfiguration = Mutex(EngineConfiguration())

    /// Changes the limits of ``shared``. Has no effect once it has been used.
    package static func configureShared(_ change: (inout EngineConfiguration) -> Void) {
        sharedConfiguration.withLock { change(&$0) }
    }

    package let configuration: EngineConfiguration
    let memory: PoolMemory
    let telemetry: PoolTelemetry
    private let loads = Mutex(Loads())

    private typealias Loaded = any AnyObject & Sendable
    private typealias Waiter = CheckedContinuation<(Loaded, ModelKey), any Error>

    private struct Load {
        let id: Int
        var waiters: [Int: Waiter] = [:]
        /// Whether it goes on if nobody waits for it any more, because a later request needs the model.
        var isKept = false
        var task: Task<Void, Never>?
    }

    private struct Loads {
        var running: [ModelKey: Load] = [:]
        var count = 0

        mutating func number() -> Int {
            count += 1
            return count
        }
    }

    /// - Parameter observe: called with the bytes of memory that are counted, after each change.
    package init(
        _ configuration: EngineConfiguration = EngineConfiguration(), system: SystemMemory = .current,
        telemetry: PoolTelemetry = PoolTelemetry(), observe: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        (self.configuration, self.telemetry) = (configuration, telemetry)
        memory = PoolMemory(
            maximumBytes: configuration.memoryBytes, keptTokens: configuration.keptTokens, system: system, telemetry: telemetry,
            observe: observe)
    }

    /// Bytes of the memory that is in use or kept.
    package var usedBytes: Int { memory.account.used }

    /// A model that generates text; loads it first if necessary.
    ///
    /// - Parameters:
    ///   - adapter: the path of an adapter to merge into the weights.
    ///   - defaults: what is known of the file's model, such as by a catalogue.
    ///   - isPrewarm: whether loading goes on if the task is cancelled. It ends otherwise if nobody waits for it any more.
    /// - Throws: ``ModelError`` if the file cannot be used, ``TemplateError`` if its chat template cannot be read, or `CancellationError`.
    package func lease(
        path: String, adapter: String? = nil, threads: Int? = nil,
        defaults: @escaping LoadedModel.KnownDefaults = { _ in nil }, isPrewarm: Bool = false
    ) async throws -> ModelLease<LoadedModel> {
        let contents = ModelKey.contents(
            model: GGUFFile.identity(ofModel: path), adapter: adapter.map { GGUFFile.identity(of: [$0]) })
        let source = path + (adapter.map { " with " + $0 } ?? "")
        return try await lease(ModelKey(.language, contents: contents, source: source), source, isPrewarm) { [self] in
            let model = try await LoadedModel.load(
                path: path, adapter: adapter, threads: threads, defaults: defaults, memory: memory,
                configuration: configuration, countsWeights: true)
            return (model, model.identity)
        }
    }

    /// A model that computes vectors of texts; loads it first if necessary.
    ///
    /// - Throws: ``ModelError`` if the file cannot be used, or `CancellationError`.
    package func embedder(path: String, threads: Int? = nil) async throws -> ModelLease<TextEmbedder> {
        let contents = ModelKey.contents(model: GGUFFile.identity(ofModel: path), adapter: nil)
        return try await lease(ModelKey(.embedder, contents: contents, source: path), path, false) { [self] in
            let model = try await TextEmbedder.load(path: path, threads: threads, memory: memory)
            return (model, ModelKey.contents(model: model.identity, adapter: nil))
        }
    }

    /// The number of those who wait for models that are being loaded, for tests and reports.
    package var waiterCount: Int { loads.withLock { $0.running.values.reduce(0) { $0 + $1.waiters.count } } }

    /// The files of the models in memory.
    package var loadedPaths: [String] { memory.modelSources }

    /// Frees the models that nobody uses, and what is kept of sequences that are gone. Other sequences keep what they have computed.
    package func releaseIdle() {
        memory.releaseModels()
        memory.releaseKept()
    }

    /// Frees a model if nobody uses it.
    package func releaseIdle(path: String) { memory.releaseModels { ($0 as? LoadedModel)?.path == path } }

    /// Frees the models that compute vectors and that nobody uses.
    package func releaseIdleEmbedders() { memory.releaseModels { $0 is TextEmbedder } }

    // MARK: - Loading

    /// - Parameter load: returns the model and what identifies the files that it was read from.
    private func lease<Model: AnyObject & Sendable>(
        _ key: ModelKey, _ source: String, _ isPrewarm: Bool, _ load: @escaping @Sendable () async throws -> (Model, UInt64?)
    ) async throws -> ModelLease<Model> {
        let number = loads.withLock { $0.number() }
        let (loaded, key) = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                wait(number, for: key, source, isPrewarm, continuation, load)
            }
        } onCancel: {
            giveUp(number, key)
        }
        guard let model = loaded as? Model else { throw CancellationError() }  // the kind of the key says what it is
        return ModelLease(model, key, memory)
    }

    /// Answers with the model in memory, or when it was loaded.
    private func wait<Model: AnyObject & Sendable>(
        _ number: Int, for key: ModelKey, _ source: String, _ isPrewarm: Bool, _ waiter: Waiter,
        _ load: @escaping @Sendable () async throws -> (Model, UInt64?)
    ) {
        let known = loads.withLock { loads -> Result<(Loaded, ModelKey), any Error>? in
            if Task.isCancelled { return .failure(CancellationError()) }
            if let known = memory.use(key) { return .success((known.model, known.key)) }
            var running = loads.running[key] ?? Load(id: number)
            running.waiters[number] = waiter
            if isPrewarm { running.isKept = true }
            if running.task == nil {
                running.task = Task.detached { [self] in
                    let start = ContinuousClock.now
                    do {
                        let (model, contents) = try await load()
                        telemetry.noteLoad(source, .now - start)
                        finish(number, key, source, .success((model, contents)))
                    } catch {
                        finish(number, key, source, .failure(error))
                    }
                }
            }
            loads.running[key] = running
            return nil
        }
        if let known { waiter.resume(with: known) }
    }

    private func finish(_ number: Int, _ key: ModelKey, _ source: String, _ result: Result<(Loaded, UInt64?), any Error>) {
        var stale: [Loaded] = []
        let (waiters, answer) = loads.withLock { loads -> ([Waiter], Result<(Loaded, ModelKey), any Error>) in
            guard let running = loads.running[key], running.id == number else { return ([], .failure(CancellationError())) }
            loads.running[key] = nil
            return (
                Array(running.waiters.values),
                result.map { loaded, contents in
                    // The file may have been replaced before it was opened.
                    let key = ModelKey(key.kind, contents: contents, source: source)
                    let added = memory.add(loaded, key, source: source, users: running.waiters.count)
                    stale = added.stale  // freed outside the lock
                    return (added.used, key)
                }
            )
        }
        withExtendedLifetime(stale) {}
        for waiter in waiters { waiter.resume(with: answer) }
    }

    /// A load that nobody waits for any more is cancelled.
    private func giveUp(_ number: Int, _ key: ModelKey) {
        let (waiter, task) = loads.withLock { loads -> (Waiter?, Task<Void, Never>?) in
            guard var running = loads.running[key], let waiter = running.waiters.removeValue(forKey: number) else {
                return (nil, nil)
            }
            let isUnwanted = running.waiters.isEmpty && !running.isKept
            loads.running[key] = isUnwanted ? nil : running
            return (waiter, isUnwanted ? running.task : nil)
        }
        task?.cancel()
        waiter?.resume(throwing: CancellationError())
    }
}
