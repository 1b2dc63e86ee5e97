internal import Synchronization

/// The KV caches of a model's sequences. A sequence whose tokens begin like those of another sequence copies the common
/// prefix from that cache instead of recomputing it.
final class CacheRegistry: Sendable {
    private struct Entry {
        weak var cache: KVCache?
    }

    private struct State: @unchecked Sendable {  // Cache contents are read on the engine's executor only.
        var entries: [Entry] = []
        /// Caches of released sequences, the most recent last.
        var releasedCaches: [KVCache] = []
    }

    private let state = Mutex(State())

    /// The maximum total number of tokens in caches of released sequences.
    private static let maximumReleasedTokens = 4096
    /// A prefix is copied only if it is longer than the cached one by more than this number of tokens.
    private static let minimumPrefixGain = 16

    func add(_ cache: KVCache) {
        let entry = Entry(cache: cache)
        let boxed = State(entries: [entry])
        state.withLock { state in
            state.entries.removeAll { $0.cache == nil }
            state.entries += boxed.entries
        }
    }

    /// Keeps the cache of a released sequence until newer ones replace it.
    func release(_ cache: KVCache) {
        let boxed = State(releasedCaches: [cache])
        state.withLock { state in
            state.releasedCaches += boxed.releasedCaches
            // This may run on any thread, which must not read token counts of caches; so the number of caches is
            // limited.
            if state.releasedCaches.count > 4 { state.releasedCaches.removeFirst() }
        }
    }

    /// Copies into `cache` the longest prefix of `tokens` that another cache contains, if it is longer than its own
    /// prefix by more than ``minimumPrefixGain`` tokens. Called on the engine's executor, while no cache is being written.
    func copyPrefix(to cache: KVCache, for tokens: [TokenID]) {
        let known = cache.reusablePrefix(of: tokens)
        guard tokens.count - known > Self.minimumPrefixGain else { return }
        let others = state.withLock { state in
            State(entries: state.entries, releasedCaches: state.releasedCaches)
        }
        var best: (cache: KVCache, count: Int)?
        for other in others.entries.compactMap(\.cache) + others.releasedCaches where other !== cache {
            let count = other.reusablePrefix(of: tokens)
            if count > (best?.count ?? known + Self.minimumPrefixGain) { best = (other, count) }
        }
        if let best { cache.copyPrefix(of: best.cache, count: best.count) }
        trim()
    }

    private func trim() {
        state.withLock { state in
            var total = state.releasedCaches.reduce(0) { $0 + $1.tokens.count }
            while total > Self.maximumReleasedTokens, !state.releasedCaches.isEmpty {
                total -= state.releasedCaches.removeFirst().tokens.count
            }
        }
    }
}
