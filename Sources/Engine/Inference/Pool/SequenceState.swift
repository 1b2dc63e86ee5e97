internal import Waiting

/// The engine's state of a conversation: its KV cache. Any actor may hold a reference, but only ``LoadedModel`` accesses the contents,
/// and the memory of the pool while no request uses it.
///
/// It does not hold the model, which may be freed and loaded again between two requests.
package final class SequenceState: @unchecked Sendable {  // The cache is used under `lock`, on the engine's executor.
    let cache: any SequenceMemory
    package let contextSize: Int
    let lock = AsyncLock()
    package var adapter: LowRankAdapter? { cache.adapter }
    package var format: CacheFormat { cache.format }

    private let memory: PoolMemory
    /// Identifies the contents of the model.
    private let model: UInt64

    /// - Parameter isShared: whether other sequences may copy from the cache, also when this one is gone.
    ///   - domain: only sequences of the same domain copy from each other.
    init(cache: any SequenceMemory, contextSize: Int, memory: PoolMemory, model: UInt64, isShared: Bool, domain: UInt64 = 0) {
        cache.domain = domain
        (self.cache, self.contextSize, self.memory, self.model) = (cache, contextSize, memory, model)
        memory.add(cache, model: model, isShared: isShared)
    }

    deinit { memory.remove(cache) }

    /// Whether the sequence belongs to a model with these contents. It does also when the model was freed and loaded again.
    package func fits(_ model: LoadedModel) -> Bool { model.contents == self.model && model.memory === memory }
}
