internal import AsyncLocks

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
