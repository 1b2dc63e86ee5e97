internal import CKernels
internal import Foundation

/// A decoder-only model of any shape: its weights and its forward pass, described by a ``ModelShape`` and computed by
/// the operations of `CKernels`.
///
/// Not thread-safe: all calls share scratch memory, so only one call may run at a time.
package final class DecoderModel {
    package let shape: ModelShape
    let weights: Weights
    let pool: WorkerPool
    let scratch: Scratch
    var pass: ForwardPass { ForwardPass(shape: shape, weights: weights, pool: pool, scratch: scratch) }

    /// The maximum number of tokens per batch. Weights are read once per batch; with 256 rows, reading them is a small
    /// part of the work already, so larger batches would not be faster.
    package static let batchSize = 256

    /// - Parameters:
    ///   - adapter: an adapter to merge into the weights.
    ///   - cache: the cache of packed weights; nil for private memory. Not used with an adapter.
    package init(
        file: GGUFFile, pool: WorkerPool, adapter: AdapterFile? = nil, cache: PackedCache? = nil
    ) throws(ModelError) {
        shape = try ModelShape(file: file)
        weights = try Weights(file: file, shape: shape, pool: pool, adapter: adapter, cache: cache)
        self.pool = pool
        scratch = try Scratch(shape, batch: min(Self.batchSize, shape.contextLength))
    }

    /// The number of bytes of weights that one generated token reads, without the KV cache.
    package var bytesPerToken: Int { weights.bytesPerToken }
    /// The same for a model that is not loaded.
    package static func bytesPerToken(file: GGUFFile, shape: ModelShape, pool: WorkerPool) throws(ModelError) -> Int {
        try Weights.bytesPerToken(file: file, shape: shape, pool: pool)
    }
    package var packedBytes: Int { weights.bytes }
    /// Whether the packed weights were read from the cache.
    package var wasCached: Bool { weights.wasCached }

    /// The logits after the last token passed to `forward`, `[vocabulary]`; valid until the next call.
    package var logits: UnsafeMutableBufferPointer<Float> {
        UnsafeMutableBufferPointer(start: scratch.logits, count: shape.vocabularySize)
    }

    /// Appends `tokens` to the cache and computes the logits after the last one.
    ///
    /// - Parameter wantsLogits: false skips the output head if only the cache is needed.
    /// - Parameter candidates: the tokens, in ascending order, whose logits are computed; the other logits remain
    ///   unchanged. Nil for all tokens.
    /// - Parameter isCancelled: called before every layer of every batch; if it returns true, the call throws
    ///   `CancellationError` and the cache keeps the finished batches (with recurrent layers, only up to the last
    ///   checkpoint).
    /// - Precondition: the cache has capacity for the tokens. Callers must check this, because they decide how to
    ///   handle a full context.
    package func forward(
        _ tokens: ArraySlice<TokenID>, cache: KVCache, wantsLogits: Bool = true, candidates: [TokenID]? = nil,
        isCancelled: () -> Bool = { false }
    ) throws(CancellationError) {
        precondition(cache.tokens.count + tokens.count <= cache.capacity, "the caller checks the context size")
        var start = tokens.startIndex
        while start < tokens.endIndex {
            let end = min(start + scratch.batch, tokens.endIndex)
            try tokens[start..<end].withUnsafeBufferPointer { (batch) throws(CancellationError) in
                let pass = pass
                guard pass.run(batch, cache: cache, isCancelled: isCancelled) else {
                    cache.discardUnfinishedBatch()
                    throw CancellationError()
                }
                cache.append(batch)
                if wantsLogits, end == tokens.endIndex { pass.head(row: batch.count - 1, candidates: candidates) }
            }
            start = end
        }
    }

    /// Appends `tokens`, at most one batch, to the cache. Returns the natural logarithm of the joint probability of all
    /// of them but the first, each conditioned on all previous tokens. Overwrites `logits`.
    package func logProbability(
        of tokens: ArraySlice<TokenID>, cache: KVCache, isCancelled: () -> Bool = { false }
    ) throws(CancellationError) -> Double {
        let tokens = tokens.prefix(scratch.batch)
        try forward(tokens, cache: cache, wantsLogits: false, isCancelled: isCancelled)
        var sum = 0.0
        for (row, next) in tokens.dropFirst().enumerated() {
            pass.head(row: row)
            let count = Int32(shape.vocabularySize)
            let maximum = logits[Int(pool.kernels.pointee.argmax(scratch.logits, count))]
            let chosen = logits[Int(next)]
            let total = pool.kernels.pointee.exp_shifted(scratch.logits, maximum, 1, count, scratch.logits)
            sum += Double(chosen - maximum) - log(Double(total))
        }
        return sum
    }
}
