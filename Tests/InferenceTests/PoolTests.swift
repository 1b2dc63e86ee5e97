import Foundation
import Metrics
import Synchronization
import TestSupport
import Testing

@testable import Inference

/// The owner of models: what is loaded, what stays in memory, and what leaves.
@Suite(.timeLimit(.minutes(2))) struct PoolTests {
    /// A tiny model whose weights are larger than the caches of some sequences.
    private static func tiny(_ seed: UInt64) -> TinyModel {
        var tiny = TinyModel()
        (tiny.seed, tiny.kvHeads) = (seed, 1)
        return tiny
    }

    private static let machine = SystemMemory(available: { nil }, reserve: 0)

    private static func pool(_ bytes: Int, observe: @escaping @Sendable (Int) -> Void = { _ in }) -> ModelPool {
        var configuration = EngineConfiguration()
        (configuration.memoryBytes, configuration.activeRequests) = (bytes, 2)
        return ModelPool(configuration, system: machine, observe: observe)
    }

    /// The bytes of a model's weights and of a page of its sequences.
    private static func sizes(_ path: String) throws -> (weights: Int, page: Int) {
        let file = try GGUFFile(path: path)
        let model = try NeuralModel(file: file, pool: WorkerPool(threads: 1))
        return (model.packedBytes, try KVCache(shape: model.shape, capacity: 256).pageBytes)
    }

    /// Counts the models that still exist.
    private final class WeakModels: Sendable {
        private struct Entry {
            weak var model: LoadedModel?
        }

        private let entries = Mutex<[Entry]>([])

        func add(_ model: LoadedModel) { entries.withLock { $0.append(Entry(model: model)) } }
        var count: Int { entries.withLock { $0.filter { $0.model != nil }.count } }
    }

    private static func prompt(_ number: Int) -> [TokenID] {
        (0..<20 + number * 13 % 100).map { TokenID(($0 * 7 + number * number) % 250 + 1) }
    }

    private static func answer(_ number: Int, _ model: LoadedModel, in sequence: SequenceState) async throws -> [TokenID] {
        var request = GenerationRequest(tokens: prompt(number), sampling: .greedy, maximumTokens: 2 + number % 8)
        request.bannedTokens = model.tokenizer.stopTokens.sorted()
        return try await model.generate(request, in: sequence) { _ in true }.tokens
    }

    /// The answers that the model in a file gives alone, by the fingerprint of the file.
    private static func answersAlone(_ path: String, _ count: Int) async throws -> (String, [[TokenID]]) {
        let model = try await LoadedModel.load(path: path, threads: 1)
        var answers: [[TokenID]] = []
        for number in 0..<count {
            answers.append(try await answer(number, model, in: model.makeSequence(contextSize: 256, sharesCache: false)))
        }
        return (try #require(model.fingerprint), answers)
    }

    @Test("three models with memory for two: each answer is the one that its model gives alone, whatever leaves meanwhile")
    func threeModels() async throws {
        let prompts = 24
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let paths = (0..<3).map { folder.appendingPathComponent("\($0).gguf").path }
        var expected: [String: [[TokenID]]] = [:]
        // The contents of all files, also of the one that replaces another later.
        for seed in [4, 1, 2, 3] as [UInt64] {
            let path = paths[Int(seed % 4 % 3)]
            try Data(Self.tiny(seed).builder().bytes()).write(to: URL(filePath: path), options: .atomic)
            let (fingerprint, answers) = try await Self.answersAlone(path, prompts)
            expected[fingerprint] = answers
        }
        #expect(expected.count == 4)
        let (weights, page) = try Self.sizes(paths[0])
        // Two engines with two requests each, whose caches are copies of others for a moment, and some kept caches.
        let limit = 2 * weights + 10 * page
        #expect(10 * page < weights, "three models must not fit")
        let most = Mutex(0)
        let pool = Self.pool(limit) { bytes in most.withLock { $0 = max($0, bytes) } }
        let made = WeakModels()
        let answers = expected
        @Sendable func use(
            _ path: String, _ number: Int, _ sequences: inout [String: SequenceState]
        ) async throws {
            let lease = try await pool.lease(path: path, threads: 1)
            made.add(lease.model)
            if sequences[path]?.fits(lease.model) != true { sequences[path] = try lease.model.makeSequence(contextSize: 256) }
            guard let sequence = sequences[path], let fingerprint = lease.model.fingerprint else { return }
            #expect(try await Self.answer(number, lease.model, in: sequence) == answers[fingerprint]?[number])
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<16 {
                group.addTask {
                    var random = SeededGenerator(UInt64(task))
                    var sequences: [String: SequenceState] = [:]
                    var path = paths[task % 3]
                    for round in 0..<63 {
                        // A conversation has some turns.
                        if round % 6 == 0 { path = paths[Int.random(in: 0..<3, using: &random)] }
                        if task == 0, round == 30 {
                            try Data(Self.tiny(4).builder().bytes()).write(to: URL(filePath: paths[1]), options: .atomic)
                        }
                        let number = Int.random(in: 0..<prompts, using: &random)
                        if Int.random(in: 0..<5, using: &random) == 0 {
                            let (other, known) = (paths[Int.random(in: 0..<3, using: &random)], sequences)
                            let cancelled = Task {
                                var sequences = known
                                try await use(other, number, &sequences)
                            }
                            for _ in 0..<Int.random(in: 0..<60, using: &random) { await Task.yield() }
                            cancelled.cancel()
                            do { try await cancelled.value } catch is CancellationError {}
                        }
                        try await use(path, number, &sequences)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(most.withLock { $0 } <= limit && pool.memory.evictions.load(ordering: .relaxed) > 0)
        // The sequences are gone. What is left are idle models and kept caches.
        #expect(pool.memory.modelCount <= 2 && pool.usedBytes <= limit)
        pool.releaseIdle()
        await eventually { made.count == 0 && pool.usedBytes == 0 }
        #expect(pool.memory.account.waitingCount == 0)
    }

    @Test("all idle caches of a model leave for a request of another one")
    func cachesOfAnotherModel() async throws {
        let files = try [Self.tiny(1).file(), Self.tiny(2).file()]
        let (weights, page) = try Self.sizes(files[0].path)
        let pool = Self.pool(2 * weights + 3 * page)
        let leases = [
            try await pool.lease(path: files[0].path, threads: 1), try await pool.lease(path: files[1].path, threads: 1),
        ]
        let sequences = try (0..<3).map { _ in try leases[0].model.makeSequence(contextSize: 256) }
        var answers: [[TokenID]] = []
        for (number, sequence) in sequences.enumerated() {
            answers.append(try await Self.answer(number, leases[0].model, in: sequence))
        }
        #expect(sequences.map(\.cache.isEmpty) == [false, false, false] && pool.usedBytes == 2 * weights + 3 * page)
        // A prompt of two pages.
        let long = try leases[1].model.makeSequence(contextSize: 512)
        try await leases[1].model.prefill((0..<500).map { TokenID($0 % 250 + 1) }, in: long)
        #expect((long.cache as? KVCache)?.pages.count == 2 && sequences.map(\.cache.isEmpty) == [true, true, false])
        let other = try leases[1].model.makeSequence(contextSize: 256)
        try await leases[1].model.prefill(Array(repeating: 9, count: 100), in: other)
        #expect(sequences.allSatisfy { $0.cache.isEmpty } && !long.cache.isEmpty)
        for (number, sequence) in sequences.enumerated() {
            #expect(try await Self.answer(number, leases[0].model, in: sequence) == answers[number])
        }
        #expect(pool.usedBytes <= pool.configuration.memoryBytes)
    }

    @Test("an idle model leaves while its sequences stay, and answers the same from their caches when it was loaded again")
    func sequencesOutliveTheirModel() async throws {
        let file = try Self.tiny(1).file()
        let pool = Self.pool(1 << 30)
        weak var first: LoadedModel?
        let sequence: SequenceState
        let answer: [TokenID]
        do {
            let lease = try await pool.lease(path: file.path, threads: 1)
            first = lease.model
            sequence = try lease.model.makeSequence(contextSize: 256)
            answer = try await Self.answer(9, lease.model, in: sequence)
            pool.releaseIdle()
            #expect(pool.memory.modelCount == 1, "it is in use")
        }
        pool.releaseIdle()
        let page = try Self.sizes(file.path).page
        await eventually { first == nil && pool.usedBytes == page }
        #expect(pool.memory.modelCount == 0)
        let lease = try await pool.lease(path: file.path, threads: 1)
        #expect(sequence.fits(lease.model))
        var request = GenerationRequest(tokens: Self.prompt(9), sampling: .greedy, maximumTokens: answer.count)
        request.bannedTokens = lease.model.tokenizer.stopTokens.sorted()
        let again = try await lease.model.generate(request, in: sequence) { _ in true }
        #expect(again.tokens == answer && again.usage.cachedTokens == request.tokens.count - 1)
    }

    @Test(
        "a file is loaded once, also by another path; a file that replaces it is another model, and one that is gone stays in memory"
    )
    func filesAreModels() async throws {
        let file = try Self.tiny(1).file()
        let link = file.path + ".link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file.path)
        defer { try? FileManager.default.removeItem(atPath: link) }  // the system removes a leftover
        let pool = Self.pool(1 << 30)
        async let some = pool.lease(path: file.path, threads: 1)
        async let others = pool.lease(path: link, threads: 1)
        let leases = try await [some, others]
        #expect(leases[0].model === leases[1].model && pool.memory.modelCount == 1)
        let sequence = try leases[0].model.makeSequence(contextSize: 256)
        try Data(Self.tiny(2).builder().bytes()).write(to: URL(filePath: file.path), options: .atomic)
        let replaced = try await pool.lease(path: file.path, threads: 1)
        #expect(replaced.model !== leases[0].model && !sequence.fits(replaced.model) && replaced.key != leases[0].key)
        // Who uses a model goes on when its file is removed.
        try FileManager.default.removeItem(atPath: file.path)
        let again = try await pool.lease(path: file.path, threads: 1)
        #expect(again.model === replaced.model && again.key == replaced.key)
    }

    @Test("a load waits until enough is idle, in order; who cancels it waits no longer, and it ends if nobody else does")
    func loadsWait() async throws {
        let files = try (1...3).map { try Self.tiny(UInt64($0)).file() }
        defer { withExtendedLifetime(files) {} }
        let paths = files.map(\.path)
        let (weights, page) = try Self.sizes(paths[0])
        let pool = Self.pool(weights + page)
        var first: ModelLease? = try await pool.lease(path: paths[0], threads: 1)
        @Sendable func load(_ index: Int, isPrewarm: Bool = false) -> Task<ModelKey, any Error> {
            Task { try await pool.lease(path: paths[index], threads: 1, isPrewarm: isPrewarm).key }
        }
        func waits(_ count: Int) async { await eventually { pool.memory.account.waitingCount == count } }
        // Nobody waits any more: the load ends.
        let cancelled = load(1)
        await waits(1)
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        await waits(0)
        // Somebody else still waits for it.
        let (one, other) = (load(1), load(1))
        await waits(1)
        await eventually { pool.waiterCount == 2 }
        one.cancel()
        await #expect(throws: CancellationError.self) { try await one.value }
        #expect(first != nil && pool.memory.modelCount == 1)
        first = nil
        _ = try await other.value
        #expect(pool.memory.modelCount == 1 && pool.usedBytes == weights)
        // A prewarm goes on without the task.
        var second: ModelLease? = try await pool.lease(path: paths[1], threads: 1)
        let prewarm = load(2, isPrewarm: true)
        await waits(1)
        prewarm.cancel()
        await #expect(throws: CancellationError.self) { try await prewarm.value }
        #expect(second != nil && pool.memory.account.waitingCount == 1)
        second = nil
        _ = try await load(2).value
        #expect(pool.memory.modelCount == 1)
    }

    @Test("packing ends between two tensors when it is cancelled, and cancellation is not an error of the file")
    func packingIsCancelled() async throws {
        let temporary = try Self.tiny(1).file()
        let file = try GGUFFile(path: temporary.path)
        let pool = try WorkerPool(threads: 1)
        var asked = 0
        #expect(throws: ModelError.cancelled) {
            _ = try NeuralModel(file: file, pool: pool) {
                asked += 1
                return asked == 4
            }
        }
        #expect(asked == 4)
        await #expect(throws: CancellationError.self) {
            try await EngineExecutor().load { _ in throw ModelError.cancelled }
        }
        await #expect(throws: ModelError.missing("x")) { try await EngineExecutor().load { _ in throw ModelError.missing("x") } }
    }

    @Test("a model that is larger than the memory is loaded alone, and its requests go on")
    func largerThanTheMemory() async throws {
        let files = try (1...2).map { try Self.tiny(UInt64($0)).file() }
        let pool = Self.pool(1_000)
        weak var first: LoadedModel?
        do {
            let lease = try await pool.lease(path: files[0].path, threads: 1)
            first = lease.model
            let sequence = try lease.model.makeSequence(contextSize: 256)
            let answer = try await Self.answer(3, lease.model, in: sequence)
            #expect(!answer.isEmpty)
            // The cache of the only conversation stays.
            #expect(!sequence.cache.isEmpty)
        }
        let second = try await pool.lease(path: files[1].path, threads: 1)
        #expect(first == nil && pool.memory.modelCount == 1)
        withExtendedLifetime(second) {}
    }

    @Test("a file that cannot be used is an error for all who wait, and may be replaced")
    func failures() async throws {
        let file = try TemporaryFile(Array("GGUF?".utf8))
        let pool = Self.pool(1 << 30)
        await #expect(throws: ModelError.self) { try await pool.lease(path: file.path, threads: 1) }
        await #expect(throws: ModelError.self) { try await pool.lease(path: file.path + ".missing", threads: 1) }
        try Data(Self.tiny(1).builder().bytes()).write(to: URL(filePath: file.path), options: .atomic)
        let lease = try await pool.lease(path: file.path, threads: 1)
        // A model that generates text computes no vectors.
        await #expect(throws: ModelError.self) { try await pool.embedder(path: file.path, threads: 1) }
        let weights = try Self.sizes(file.path).weights
        await eventually { pool.memory.modelCount == 1 && pool.usedBytes == weights }
        withExtendedLifetime(lease) {}
    }

    // MARK: - Counting

    @Test("bytes are counted until the last part of them is given back")
    func counting() {
        let account = MemoryAccount(limit: 100)
        var whole = account.reserve(60)
        #expect(account.reserve(50) == nil && account.used == 60)
        var part = whole?.divide(20, for: .page)
        #expect(account.used == 60 && part != nil)
        whole = nil
        #expect(account.used == 20)
        let weights = account.reserve(80, for: .weights)
        #expect(account.weights == 80 && account.reserve(1) == nil)
        let more = account.reserve(30, isLast: true)
        #expect(account.used == 130 && more != nil)
        part = nil
        #expect(account.used == 110 && weights != nil)
        withExtendedLifetime((weights, more)) {}
    }

    @Test("an engine without memory waits while another one runs, and goes on alone if none does")
    func enginesWait() throws {
        let file = try Self.tiny(1).file()
        let model = try NeuralModel(file: GGUFFile(path: file.path), pool: WorkerPool(threads: 1))
        let page = try KVCache(shape: model.shape, capacity: 256).pageBytes
        let memory = PoolMemory(maximumBytes: page, system: Self.machine)
        let engine = Engine(model: model, memory: memory)
        let account = memory.account
        func submit(_ sequence: SequenceState, _ end: @escaping (Result<Void, any Error>) -> Void) throws {
            try engine.submit(
                PrefillWork(prompt: ModelInput(Self.prompt(5))), in: sequence.cache, priority: .interactive,
                signals: RequestSignals(),
                completion: end)
        }
        func sequence() throws -> SequenceState {
            SequenceState(
                cache: try KVCache(shape: model.shape, capacity: 256), contextSize: 256, memory: memory, model: 0, isShared: true)
        }
        let woken = Atomic(0)
        // Another engine holds the memory.
        var held = memory.reserve(page)
        account.enter()
        account.enter()
        let first = try sequence()
        var isDone = false
        try submit(first) { _ in isDone = true }
        var changes = account.changes
        #expect(!engine.step() && engine.isStalled && !isDone && held != nil)
        #expect(account.park(after: changes) { woken.add(1, ordering: .relaxed) } != nil)
        #expect(!account.othersRun && account.waitingCount == 1)
        held = nil
        #expect(woken.load(ordering: .relaxed) == 1 && account.othersRun && account.waitingCount == 0)
        while !isDone, engine.step() {}
        #expect(isDone && account.used == page)
        // What changed meanwhile must be looked at again.
        #expect(account.park(after: changes) {} == nil)
        // The other engine ends without making room.
        first.cache.rewind(to: 0)
        held = memory.reserve(page)
        isDone = false
        try submit(first) { _ in isDone = true }
        changes = account.changes
        #expect(!engine.step() && engine.isStalled)
        #expect(account.park(after: changes) { woken.add(1, ordering: .relaxed) } != nil)
        account.leave()
        #expect(woken.load(ordering: .relaxed) == 2 && !account.othersRun)
        while !isDone, engine.step() {}
        #expect(isDone && account.used == 2 * page && held != nil, "the last one exceeds the memory")
    }

    // MARK: - Configuration

    @Test("the limits of the configuration are those of the scheduler")
    func limits() {
        var configuration = EngineConfiguration()
        let usual = Scheduler.Limits()
        var limits = Scheduler.Limits(configuration)
        #expect(
            limits.active == usual.active && limits.waiting == usual.waiting && limits.batchTokens == usual.batchTokens
                && limits.mixedTokens == usual.mixedTokens)
        (configuration.activeRequests, configuration.waitingRequests) = (0, 7)
        (configuration.batchTokens, configuration.mixedTokens) = (100, 30)
        limits = Scheduler.Limits(configuration)
        #expect(limits.active == 1 && limits.waiting == 7 && limits.batchTokens == 100 && limits.mixedTokens == 30)
    }

    @Test("figures of the pool and its engines reach the factory of a program")
    func metrics() async throws {
        let figures = Figures()
        let file = try Self.tiny(1).file()
        let pool = ModelPool(system: Self.machine, telemetry: PoolTelemetry(metrics: figures))
        let lease = try await pool.lease(path: file.path, threads: 1)
        let sequence = try lease.model.makeSequence(contextSize: 256)
        let request = GenerationRequest(tokens: Self.prompt(7), sampling: .greedy, maximumTokens: 6)
        let result = try await lease.model.generate(request, in: sequence) { _ in true }
        let (prompt, answer) = (result.usage.promptTokens, result.usage.generatedTokens)
        let processed = await lease.model.processed
        #expect(figures["passes"] == Double(processed.passes) && figures.counts["pass_tokens"] == processed.passes)
        #expect(figures["pass_tokens"] == Double(processed.tokens))
        #expect(figures["prompt_tokens"] == Double(prompt) && figures["generated_tokens"] == Double(answer))
        #expect(figures["waiting_requests"] == 0 && figures["active_requests"] == 0)
        #expect(figures.counts["load_time"] == 1 && figures.counts["queue_time"] == 1)
        #expect(figures.last["memory_bytes"] == Double(pool.usedBytes) && figures.last["cache_pages"] == 1)
        #expect(figures["evictions"] == nil)
    }
}

/// The figures that a pool has reported, by their names without the common beginning.
private final class Figures: MetricsFactory {
    private struct State {
        var sums: [String: Double] = [:]
        var counts: [String: Int] = [:]
        var last: [String: Double] = [:]
    }

    private let state = Mutex(State())

    subscript(_ name: String) -> Double? { state.withLock { $0.sums[name] } }
    var counts: [String: Int] { state.withLock { $0.counts } }
    var last: [String: Double] { state.withLock { $0.last } }

    fileprivate func add(_ value: Double, to name: String) {
        state.withLock { state in
            state.sums[name, default: 0] += value
            state.counts[name, default: 0] += 1
            state.last[name] = value
        }
    }

    private final class Handler: CounterHandler, RecorderHandler, TimerHandler, MeterHandler {
        let name: String
        let figures: Figures

        init(_ label: String, _ figures: Figures) {
            (name, self.figures) = (String(label.dropFirst("foundation_models_".count)), figures)
        }

        func increment(by amount: Int64) { figures.add(Double(amount), to: name) }
        func increment(by amount: Double) { figures.add(amount, to: name) }
        func decrement(by amount: Double) { figures.add(-amount, to: name) }
        func record(_ value: Int64) { figures.add(Double(value), to: name) }
        func record(_ value: Double) { figures.add(value, to: name) }
        func recordNanoseconds(_ duration: Int64) { figures.add(Double(duration), to: name) }
        func set(_ value: Int64) {}
        func set(_ value: Double) {}
        func reset() {}
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler { Handler(label, self) }
    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler { Handler(label, self) }
    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        Handler(label, self)
    }
    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { Handler(label, self) }
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyMeter(_ handler: any MeterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}
}
