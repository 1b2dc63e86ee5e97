internal import Waiting
internal import Synchronization

/// The memory of all models of a pool and of their sequences, within one budget: what is used least recently leaves first, never what is
/// in use. Caches of sequences that are gone leave first, then those of idle sequences, which are emptied, then idle models.
///
/// A sequence whose tokens begin like those of another one of the same model shares the pages of the common prefix instead of computing
/// it again.
final class PoolMemory: Sendable {
    /// The keys and values of a sequence.
    private struct Cache {
        /// The sequence owns it until it removes the entry.
        unowned let memory: any SequenceMemory
        /// Strong once the sequence is gone.
        var kept: (any SequenceMemory)?
        /// Identifies the contents of the model.
        let model: UInt64
        /// Whether other sequences may copy from it, and it is kept when the sequence is gone.
        let isShared: Bool
        /// The engine that uses it now. It may be read and changed by this engine only; by whoever holds the lock if it is nil.
        var user: ObjectIdentifier?
        var lastUse: Int
    }

    private struct Model {
        let model: any AnyObject & Sendable
        /// The paths of its files.
        let source: String
        /// The number of leases.
        var users: Int
        var lastUse: Int
        /// Whether the file was replaced, so that nobody asks for it again.
        var isStale = false
    }

    private struct State {
        var caches: [Int: Cache] = [:]
        var models: [ModelKey: Model] = [:]
        /// Counts uses.
        var clock = 0

        mutating func tick() -> Int {
            clock += 1
            return clock
        }
    }

    /// What the lock protects although the compiler does not know it.
    private struct Unchecked<Value>: @unchecked Sendable {
        var value: Value
    }

    let account: MemoryAccount
    let adapters = AdapterStore()
    private let system: SystemMemory
    /// The tokens of sequences that are gone that are kept.
    private let keptTokens: Int
    private let state = Mutex(Unchecked(value: State()))
    let telemetry: PoolTelemetry
    private let loads = AsyncLock()
    /// The number of caches and models that were freed for others, for tests and reports.
    let evictions = Atomic(0)

    /// A prefix is copied only if it is longer than the cached one by more than this number of tokens.
    private static let minimumPrefixGain = 16

    /// - Parameters:
    ///   - system: the memory of the machine, some of which is left to other programs.
    ///   - observe: called with the bytes that are counted, after each change.
    init(
        maximumBytes: Int = EngineConfiguration.defaultMemory, keptTokens: Int = EngineConfiguration().keptTokens,
        system: SystemMemory = .current, telemetry: PoolTelemetry = PoolTelemetry(),
        observe: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        (self.system, self.keptTokens) = (system, keptTokens)
        self.telemetry = telemetry
        account = MemoryAccount(limit: maximumBytes) { bytes, pages in
            telemetry.memory(bytes: bytes, pages: pages)
            observe(bytes)
        }
    }

    // MARK: - Room

    /// Reserves memory of a running request. What is idle leaves first.
    ///
    /// - Parameter isLast: nothing else can go on: the budget does not apply, and a part of what is otherwise left to other programs may
    ///   be used.
    /// - Returns: nil if there is no room.
    func reserve(_ bytes: Int, isLast: Bool = false) -> MemoryReservation? {
        if bytes == 0 { return account.reserve(0, isLast: true) }
        let margin = isLast ? system.reserve / 8 : system.reserve
        repeat {
            let isThere = system.available().map { $0 - bytes >= margin } ?? true
            if isThere, let reservation = account.reserve(bytes, isLast: isLast) { return reservation }
        } while evictNext()
        return nil
    }

    /// Reserves memory of an adapter. Its request cannot go on without it, and it is small: it counts also if it does not fit.
    func reserveAdapter(_ bytes: Int) -> MemoryReservation? {
        while true {
            if let reservation = account.reserve(bytes) { return reservation }
            if !evictNext() { return account.reserve(bytes, isLast: true) }
        }
    }

    /// Reserves the memory of a model's weights. Waits until enough of what is in use is idle, in the order of the calls. A model that is
    /// larger than the budget gets it when no other one is in memory.
    ///
    /// The weights are often a file that the system reads and drops by itself, so that the memory that other programs leave does not
    /// matter here.
    ///
    /// - Throws: `CancellationError`.
    func reserveWeights(_ bytes: Int) async throws -> MemoryReservation {
        try await loads.acquire()
        defer { loads.release() }
        while true {
            let changes = account.changes
            if let reservation = makeRoom(forWeights: bytes) { return reservation }
            telemetry.noteWait(for: bytes)
            try await account.waitForChange(after: changes)
        }
    }

    private func makeRoom(forWeights bytes: Int) -> MemoryReservation? {
        account.enter()
        defer { account.leave() }
        repeat {
            if let reservation = account.reserve(bytes, for: .weights) { return reservation }
        } while evictNext()
        return account.weights == 0 ? account.reserve(bytes, for: .weights, isLast: true) : nil
    }

    /// After a request: empties caches of idle sequences while the budget is exceeded, which only the last request that could go on does,
    /// and while other programs need memory. The cache that was used last stays: without it, each turn of the only conversation would
    /// compute all turns again.
    func trim() {
        let missing = max(account.used - account.limit, system.missingBytes)
        if missing <= 0 { return }
        let goal = account.used - missing
        while account.used > goal, evictNext(forOthers: true) {}
    }

    /// Frees the models that nobody uses.
    func releaseModels(where isIncluded: (any AnyObject & Sendable) -> Bool = { _ in true }) {
        let idle = state.withLock { state in
            let idle = state.value.models.filter { $0.value.users == 0 && isIncluded($0.value.model) }
            for key in idle.keys { state.value.models[key] = nil }
            return idle
        }
        _ = idle  // freed outside the lock
    }

    /// Frees what is kept of sequences that are gone, and the last adapter unless a sequence uses it.
    func releaseKept() {
        let kept = state.withLock { state in
            let kept = state.value.caches.filter { $0.value.kept != nil && $0.value.user == nil }
            for id in kept.keys { state.value.caches[id] = nil }
            return Unchecked(value: kept)
        }
        _ = kept  // freed outside the lock
        adapters.releaseLast()
    }

    private enum Evicted {
        case cache(any SequenceMemory)
        case contents(Any)
        case model(any AnyObject & Sendable, source: String)
    }

    /// Frees what leaves next.
    ///
    /// - Parameter forOthers: for other programs; no models, whose files the system drops from memory, and not the last cache.
    /// - Returns: false if all is in use.
    private func evictNext(forOthers: Bool = false) -> Bool {
        let evicted = state.withLock { state in Unchecked(value: Self.takeNext(of: &state.value, forOthers: forOthers)) }.value
        // It is freed here, outside the lock.
        if evicted != nil { evictions.add(1, ordering: .relaxed) }
        switch evicted {
        case nil: return false
        case .cache: telemetry.noteEviction(of: "kept cache")
        case .contents: telemetry.noteEviction(of: "idle cache")
        case .model(_, let source): telemetry.noteEviction(of: "model", source)
        }
        return true
    }

    private static func takeNext(of state: inout State, forOthers: Bool) -> Evicted? {
        let idle = state.caches.filter { $0.value.user == nil }
        if let (id, cache) = idle.filter({ $0.value.kept != nil }).min(by: { $0.value.lastUse < $1.value.lastUse }) {
            state.caches[id] = nil
            return cache.kept.map { .cache($0) }
        }
        let full = idle.values.filter { !$0.memory.isEmpty }
        if full.count > (forOthers ? 1 : 0), let cache = full.min(by: { $0.lastUse < $1.lastUse }) {
            return .contents(cache.memory.takeContents())
        }
        if forOthers { return nil }
        guard let (key, model) = state.models.filter({ $0.value.users == 0 }).min(by: { $0.value.lastUse < $1.value.lastUse })
        else { return nil }
        state.models[key] = nil
        return .model(model.model, source: model.source)
    }

    // MARK: - Models

    /// The paths of the models in memory.
    var modelSources: [String] { state.withLock { $0.value.models.values.map(\.source) } }

    /// The number of models in memory, for tests and reports.
    var modelCount: Int { state.withLock { $0.value.models.count } }

    /// A model in memory, with a lease that ``endUse(of:_:)`` ends. If the files are gone, it is the one that was read from them.
    func use(_ key: ModelKey) -> (model: any AnyObject & Sendable, key: ModelKey)? {
        state.withLock { state in
            let now = state.value.tick()
            let key =
                key.source.flatMap { source in
                    state.value.models.first { $0.key.kind == key.kind && $0.value.source == source && !$0.value.isStale }?.key
                } ?? key
            state.value.models[key]?.users += 1
            state.value.models[key]?.lastUse = now
            return state.value.models[key].map { ($0.model, key) }
        }
    }

    /// Adds a model that was loaded.
    ///
    /// - Parameter users: the number of leases it has already.
    /// - Returns: the model to use, which is another one if it was in memory meanwhile, and idle ones whose files were replaced. Called
    ///   under a lock of the pool, outside of which the caller frees them.
    func add(
        _ model: any AnyObject & Sendable, _ key: ModelKey, source: String, users: Int
    ) -> (used: any AnyObject & Sendable, stale: [any AnyObject & Sendable]) {
        state.withLock { state in
            let now = state.value.tick()
            if state.value.models[key] != nil {
                state.value.models[key]?.users += users
            } else {
                state.value.models[key] = Model(model: model, source: source, users: users, lastUse: now)
            }
            var stale: [any AnyObject & Sendable] = []
            for (other, entry) in state.value.models where entry.source == source && other.kind == key.kind && other != key {
                state.value.models[other]?.isStale = true
                if entry.users == 0 { state.value.models[other] = nil }
                stale.append(entry.model)
            }
            return (state.value.models[key]?.model ?? model, stale)
        }
    }

    func endUse(of model: any AnyObject & Sendable, _ key: ModelKey) {
        let stale = state.withLock { state -> Model? in
            guard var entry = state.value.models[key], entry.model === model else { return nil }
            entry.users -= 1
            entry.lastUse = state.value.tick()
            let isGone = entry.isStale && entry.users == 0
            state.value.models[key] = isGone ? nil : entry
            return isGone ? entry : nil
        }
        _ = stale  // freed outside the lock
        account.noteChange()
    }

    // MARK: - Sequences

    /// Adds the memory of a sequence, which must be removed before it is freed.
    func add(_ memory: any SequenceMemory, model: UInt64, isShared: Bool) {
        state.withLock { state in
            let now = state.value.tick()
            memory.registration = now
            state.value.caches[now] = Cache(memory: memory, model: model, isShared: isShared, lastUse: now)
        }
    }

    /// The sequence is gone. Its memory is kept for others if it is shared and has contents.
    func remove(_ memory: any SequenceMemory) {
        guard let id = memory.registration else { return }
        let removed = state.withLock { state -> Unchecked<[Cache]> in
            let now = state.value.tick()
            guard state.value.caches[id]?.isShared == true, memory.rows.count > 0 else {
                return Unchecked(value: [state.value.caches.removeValue(forKey: id)].compactMap(\.self))
            }
            state.value.caches[id]?.kept = memory
            state.value.caches[id]?.lastUse = now
            return Unchecked(value: Self.takeSurplus(of: &state.value, limit: keptTokens, except: id))
        }
        _ = removed  // freed outside the lock
        account.noteChange()
    }

    /// The caches of sequences that are gone beyond a number of tokens, those that were used least recently.
    private static func takeSurplus(of state: inout State, limit: Int, except newest: Int) -> [Cache] {
        var kept = state.caches.filter { $0.value.kept != nil && $0.value.user == nil }
        var tokens = kept.values.reduce(0) { $0 + $1.memory.rows.count }
        var surplus: [Cache] = []
        let last = kept.removeValue(forKey: newest)
        // What is a beginning of the newest one is there twice.
        if let last, !last.memory.isRecurrent {
            for (id, cache) in kept
            where cache.model == last.model && cache.memory.isCompatible(with: last.memory)
                && cache.memory.rows.commonPrefix(with: last.memory.rows) == cache.memory.rows.count
            {
                tokens -= cache.memory.rows.count
                (state.caches[id], kept[id]) = (nil, nil)
                surplus.append(cache)
            }
        }
        for (id, cache) in kept.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
            if tokens <= limit { break }
            tokens -= cache.memory.rows.count
            state.caches[id] = nil
            surplus.append(cache)
        }
        return surplus
    }

    /// Keeps memory that no sequence uses, for those whose tokens begin in the same way.
    func keep(_ memory: any SequenceMemory, model: UInt64) {
        add(memory, model: model, isShared: true)
        remove(memory)
    }

    /// An engine uses the memory from now on.
    func beginUse(of memory: any SequenceMemory, by user: ObjectIdentifier) {
        guard let id = memory.registration else { return }
        state.withLock { $0.value.caches[id]?.user = user }
    }

    func endUse(of memory: any SequenceMemory) {
        guard let id = memory.registration else { return }
        state.withLock { state in
            let now = state.value.tick()
            state.value.caches[id]?.user = nil
            state.value.caches[id]?.lastUse = now
        }
        account.noteChange()
    }

    /// Whether other sequences may copy from this memory.
    func isShared(_ memory: any SequenceMemory) -> Bool {
        guard let id = memory.registration else { return false }
        return state.withLock { $0.value.caches[id]?.isShared } ?? false
    }

    /// Copies into `memory` the longest prefix of `rows` that another sequence of the model has, if it is longer than its own prefix by
    /// more than ``minimumPrefixGain`` tokens. Called by the engine that uses `memory`.
    ///
    /// - Throws: ``ModelError/outOfMemory(bytes:)`` if there is no room for a copy.
    func copyPrefix(to memory: any SequenceMemory, for rows: InputRows, model: UInt64, user: ObjectIdentifier)
        throws(ModelError)
    {
        let known = memory.reusablePrefix(of: rows)
        guard rows.count - known > Self.minimumPrefixGain else { return }
        try withLongestPrefix(of: rows, model: model, user: user, where: { $0 !== memory && $0.isCompatible(with: memory) }) {
            source, count throws(ModelError) in
            guard count > known + Self.minimumPrefixGain else { return }
            let bytes = memory.bytesToCopy(count)
            guard let room = reserve(bytes) else { throw .outOfMemory(bytes: bytes) }
            try memory.copyPrefix(of: source, count: count, in: room)
        }
    }

    /// The number of leading rows that an idle sequence of the model has, so that they would not be computed again.
    func knownPrefix(of rows: InputRows, model: UInt64, where isUsable: (any SequenceMemory) -> Bool) -> Int {
        state.withLock { state in
            state.value.caches.values.reduce(0) { best, cache in
                guard cache.model == model, cache.isShared, cache.user == nil, isUsable(cache.memory) else { return best }
                return max(best, cache.memory.reusablePrefix(of: rows))
            }
        }
    }

    /// Calls `body` with the memory that has the longest prefix of `rows`, and its length. Nobody changes the memory meanwhile.
    ///
    /// - Parameter user: the engine of the model, on whose executor this is called.
    /// - Returns: nil if no memory begins with them.
    func withLongestPrefix<Result>(
        of rows: InputRows, model: UInt64, user: ObjectIdentifier, where isUsable: (any SequenceMemory) -> Bool,
        _ body: (any SequenceMemory, Int) throws(ModelError) -> Result
    ) throws(ModelError) -> Result? {
        let found = state.withLock { state in
            var best: (id: Int, count: Int)?
            for (id, cache) in state.value.caches
            where cache.model == model && cache.isShared && (cache.user == nil || cache.user == user) && isUsable(cache.memory) {
                let count = cache.memory.reusablePrefix(of: rows)
                if count > best?.count ?? 0 { best = (id, count) }
            }
            guard let best, let cache = state.value.caches[best.id] else {
                return Unchecked<(id: Int, memory: any SequenceMemory, count: Int, wasIdle: Bool)?>(value: nil)
            }
            state.value.caches[best.id]?.user = user
            return Unchecked(value: (best.id, cache.memory, best.count, cache.user == nil))
        }.value
        guard let found else { return nil }
        defer {
            if found.wasIdle {
                state.withLock { $0.value.caches[found.id]?.user = nil }
                account.noteChange()
            }
        }
        return try body(found.memory, found.count)
    }
}
