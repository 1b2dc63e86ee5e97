internal import Synchronization

/// The caches of a model's sequences. A conversation that begins like another one, such as a copy of it that goes on elsewhere,
/// takes the beginning from there instead of computing it again.
final class CacheRegistry: Sendable {
    private struct Entry {
        weak var cache: KVCache?
    }

    private struct State: @unchecked Sendable {  // Caches are looked into on the engine's executor only.
        var entries: [Entry] = []
        /// Caches of conversations that are gone, the latest last.
        var retired: [KVCache] = []
    }

    private let state = Mutex(State())

    /// Tokens of conversations that are gone for which memory is kept.
    private static let retiredTokens = 4096
    /// Copying less is not worth looking for it.
    private static let leastGain = 16

    func add(_ cache: KVCache) {
        let entry = Entry(cache: cache)
        let boxed = State(entries: [entry])
        state.withLock { state in
            state.entries.removeAll { $0.cache == nil }
            state.entries += boxed.entries
        }
    }

    /// Keeps what a conversation that is gone has computed, as long as there is room.
    func retire(_ cache: KVCache) {
        let boxed = State(retired: [cache])
        state.withLock { state in
            state.retired += boxed.retired
            // Another thread may not look into caches; the number of them bounds their memory just as well.
            if state.retired.count > 4 { state.retired.removeFirst() }
        }
    }

    /// Copies into `cache` the longest beginning of `tokens` that another cache has, if that is much more than it has itself.
    /// Called on the engine's executor, where no cache is being written.
    func copyPrefix(to cache: KVCache, for tokens: [TokenID]) {
        let known = cache.reusablePrefix(of: tokens)
        guard tokens.count - known > Self.leastGain else { return }
        let others = state.withLock { state in
            State(entries: state.entries, retired: state.retired)
        }
        var best: (cache: KVCache, count: Int)?
        for other in others.entries.compactMap(\.cache) + others.retired where other !== cache {
            let count = other.reusablePrefix(of: tokens)
            if count > (best?.count ?? known + Self.leastGain) { best = (other, count) }
        }
        if let best { cache.copyPrefix(of: best.cache, count: best.count) }
        trim()
    }

    private func trim() {
        state.withLock { state in
            var total = state.retired.reduce(0) { $0 + $1.tokens.count }
            while total > Self.retiredTokens, !state.retired.isEmpty { total -= state.retired.removeFirst().tokens.count }
        }
    }
}
