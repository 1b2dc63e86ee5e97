internal import Foundation
internal import Synchronization

/// The KV caches of a model's sequences. A sequence whose tokens begin like those of another sequence shares the pages of the
/// common prefix instead of computing it again.
final class CacheRegistry: Sendable {
    private struct Entry {
        weak var cache: (any SequenceMemory)?
        /// The sequence; nil once it has released its cache, which nobody changes any more.
        weak var owner: AnyObject?
    }

    private struct State: @unchecked Sendable {  // Cache contents are read on the engine's executor only.
        var entries: [Entry] = []
    }

    private let state = Mutex(State())
    private let released: ReleasedCaches
    private let maximumBytes: Int
    private let memory: SystemMemory
    /// The number of caches that were emptied for others, for tests and reports.
    let emptiedCaches = Atomic(0)

    /// A prefix is copied only if it is longer than the cached one by more than this number of tokens.
    private static let minimumPrefixGain = 16

    /// - Parameters:
    ///   - maximumBytes: the maximum size of the caches of all sequences that are not being processed.
    ///   - memory: the memory of the machine, some of which is left to other programs.
    init(
        released: ReleasedCaches = .shared, maximumBytes: Int = CacheRegistry.defaultMaximum, memory: SystemMemory = .current
    ) {
        self.released = released
        self.maximumBytes = maximumBytes
        self.memory = memory
    }

    /// A quarter of the memory, at least 1 GB.
    private static let defaultMaximum = max(1 << 30, SystemMemory.total / 4)

    deinit { released.removeAll(of: ObjectIdentifier(self)) }

    /// - Parameter owner: the object that uses the cache.
    func add(_ cache: any SequenceMemory, owner: AnyObject) {
        let entry = Entry(cache: cache, owner: owner)
        let boxed = State(entries: [entry])
        state.withLock { state in
            state.entries.removeAll { $0.cache == nil }
            state.entries += boxed.entries
        }
    }

    /// Empties the least recently used caches of idle sequences until all caches of the model fit the maximum, and while other
    /// programs need memory: a program may hold many sessions of which few are in use. Their next requests compute the tokens
    /// again. Called on the engine's executor.
    ///
    /// - Parameter isInUse: whether a request is using the cache.
    func trim(where isInUse: (any SequenceMemory) -> Bool) {
        // The owners are kept while their caches are changed, so that none of them is released meanwhile.
        let owned = state.withLock { state in State(entries: state.entries) }.entries.compactMap { entry in
            entry.owner.flatMap { owner in entry.cache.map { (owner: owner, cache: $0) } }
        }
        defer { withExtendedLifetime(owned) {} }
        let all = owned.map(\.cache)
        var holders: [ObjectIdentifier: (count: Int, bytes: Int)] = [:]
        var total = 0
        for cache in all {
            total += cache.checkpointBytes
            for (page, bytes) in cache.usedPages {
                if holders[ObjectIdentifier(page)] == nil { total += bytes }
                holders[ObjectIdentifier(page), default: (0, bytes)].count += 1
            }
        }
        // What other programs need. Caches that no session uses leave first.
        var missing = memory.missingBytes
        missing -= released.free(missing)
        let limit = missing > 0 ? min(maximumBytes, total - missing) : maximumBytes
        if total <= limit { return }
        var idle = all.filter { !isInUse($0) && !$0.tokens.isEmpty }.sorted { $0.lastUse < $1.lastUse }
        // The last one stays if the maximum allows it: without it, each turn of the only conversation would compute all turns again.
        if total <= maximumBytes { idle = idle.dropLast() }
        for cache in idle {
            if total <= limit { return }
            total -= cache.checkpointBytes
            // A page is freed with its last holder.
            for (page, bytes) in cache.usedPages {
                holders[ObjectIdentifier(page)]?.count -= 1
                if holders[ObjectIdentifier(page)]?.count == 0 { total -= bytes }
            }
            cache.rewind(to: 0)
            emptiedCaches.add(1, ordering: .relaxed)
        }
    }

    /// Whether there is memory for `bytes` more of a running request. Caches of idle sequences leave first. Called on the engine's
    /// executor.
    ///
    /// - Parameter isUrgent: nothing else can go on: the request may use a part of what is otherwise left to other programs.
    func hasRoom(for bytes: Int, isUrgent: Bool, where isInUse: (any SequenceMemory) -> Bool) -> Bool {
        let reserve = isUrgent ? memory.reserve / 8 : memory.reserve
        func isThere() -> Bool { memory.available().map { $0 - bytes >= reserve } ?? true }
        if isThere() { return true }
        trim(where: isInUse)
        return isThere()
    }

    /// Whether other sequences may copy from this cache.
    func contains(_ cache: any SequenceMemory) -> Bool {
        state.withLock { state in state.entries.contains { $0.cache === cache } }
    }

    /// Keeps the cache of a sequence that nothing refers to any more, until newer ones need its memory.
    ///
    /// - Returns: false if the cache is larger than all that are kept.
    @discardableResult func release(_ cache: any SequenceMemory) -> Bool { released.add(cache, of: ObjectIdentifier(self)) }

    /// Copies into `cache` the longest prefix of `tokens` that another cache contains, if it is longer than its own
    /// prefix by more than ``minimumPrefixGain`` tokens. Called on the engine's executor, while no cache is being written.
    func copyPrefix(to cache: any SequenceMemory, for tokens: [TokenID]) throws(ModelError) {
        let known = cache.reusablePrefix(of: tokens)
        guard tokens.count - known > Self.minimumPrefixGain else { return }
        if let best = longestPrefix(of: tokens, where: { $0 !== cache && $0.isCompatible(with: cache) }),
            best.count > known + Self.minimumPrefixGain
        {
            try cache.copyPrefix(of: best.cache, count: best.count)
        }
    }

    /// The cache that contains the longest prefix of `tokens`, and its length. Called on the engine's executor.
    func longestPrefix(of tokens: [TokenID], where isUsable: (any SequenceMemory) -> Bool = { _ in true }) -> (
        cache: any SequenceMemory, count: Int
    )? {
        let others = state.withLock { state in State(entries: state.entries) }
        var best: (cache: any SequenceMemory, count: Int)?
        for other in others.entries.compactMap(\.cache) + released.caches(of: ObjectIdentifier(self)) where isUsable(other) {
            let count = other.reusablePrefix(of: tokens)
            if count > best?.count ?? 0 { best = (other, count) }
        }
        return best
    }
}

/// The KV caches of released sequences of all models, within a budget in bytes.
final class ReleasedCaches: Sendable {
    private struct Entry {
        let cache: any SequenceMemory
        let registry: ObjectIdentifier
        let pages: [(page: AnyObject, bytes: Int)]
        let stateBytes: Int
    }

    private struct State: @unchecked Sendable {  // Released caches are only read.
        /// The most recent last.
        var entries: [Entry] = []

        /// Pages that several caches hold count once.
        var bytes: Int {
            var counted: Set<ObjectIdentifier> = []
            var sum = 0
            for entry in entries {
                sum += entry.stateBytes
                for (page, bytes) in entry.pages where counted.insert(ObjectIdentifier(page)).inserted { sum += bytes }
            }
            return sum
        }
    }

    private let state = Mutex(State())
    private let maximumBytes: Int

    static let shared = ReleasedCaches(maximumBytes: 512 << 20)

    init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

    var bytes: Int { state.withLock { $0.bytes } }

    /// - Returns: false if the cache is empty or too large to keep.
    func add(_ cache: any SequenceMemory, of registry: ObjectIdentifier) -> Bool {
        // The sequence is being deinitialized, so nothing writes to its cache. An empty cache, or one that needs the whole
        // budget, is of no use to other sequences.
        let boxed = State(
            entries: [Entry(cache: cache, registry: registry, pages: cache.usedPages, stateBytes: cache.usedStateBytes)])
        if cache.tokens.isEmpty || boxed.bytes > maximumBytes { return false }
        let removed = state.withLock { state in
            state.entries += boxed.entries
            var removed = State()
            while state.bytes > maximumBytes { removed.entries.append(state.entries.removeFirst()) }
            return removed
        }
        _ = removed  // freed outside the lock
        return true
    }

    /// Frees caches, the oldest first, until at least `missing` bytes are free or none is left.
    ///
    /// - Returns: the number of bytes that were freed.
    func free(_ missing: Int) -> Int {
        if missing <= 0 { return 0 }
        let (removed, freed) = state.withLock { state in
            var removed = State()
            let before = state.bytes
            while before - state.bytes < missing, !state.entries.isEmpty { removed.entries.append(state.entries.removeFirst()) }
            return (removed, before - state.bytes)
        }
        _ = removed  // freed outside the lock
        return freed
    }

    func caches(of registry: ObjectIdentifier) -> [any SequenceMemory] {
        let boxed = state.withLock { state in State(entries: state.entries.filter { $0.registry == registry }) }
        return boxed.entries.map(\.cache)
    }

    func removeAll(of registry: ObjectIdentifier) {
        let removed = state.withLock { state in
            let removed = State(entries: state.entries.filter { $0.registry == registry })
            state.entries.removeAll { $0.registry == registry }
            return removed
        }
        _ = removed  // freed outside the lock
    }
}
