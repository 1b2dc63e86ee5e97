internal import CKernels
internal import Foundation

/// Identifies a token of a vocabulary.
package typealias TokenID = Int32

/// The forward pass of a decoder-only model of any shape: what a ``ModelShape`` describes, over the operations of `CKernels`.
///
/// Not thread-safe: scratch memory is shared by all calls, so one call at a time.
package final class DecoderModel {
    package let shape: ModelShape
    let weights: Weights
    let pool: WorkerPool
    let scratch: Scratch
    var pass: ForwardPass { ForwardPass(shape: shape, weights: weights, pool: pool, scratch: scratch) }

    /// Tokens processed together. More would gain nothing: weights are read once per batch, and 256 rows already
    /// make reading them a small part of the work.
    package static let batchSize = 256

    /// - Parameters:
    ///   - adapter: Merged into the weights.
    ///   - cache: Where the packed weights are kept for the next time; nil for memory of this process only.
    package init(
        file: GGUFFile, pool: WorkerPool, adapter: AdapterFile? = nil, cache: PackedCache? = nil
    ) throws(ModelError) {
        shape = try ModelShape(file: file)
        weights = try Weights(file: file, shape: shape, pool: pool, adapter: adapter, cache: cache)
        self.pool = pool
        scratch = try Scratch(shape, batch: min(Self.batchSize, shape.contextLength))
    }

    /// Bytes that one generated token reads, without the KV cache.
    package var bytesPerToken: Int { weights.bytesPerToken }
    /// The same of a model that is not loaded.
    package static func bytesPerToken(file: GGUFFile, shape: ModelShape, pool: WorkerPool) throws(ModelError) -> Int {
        try Weights.bytesPerToken(file: file, shape: shape, pool: pool)
    }
    package var packedBytes: Int { weights.bytes }
    /// Whether the packed weights were there from an earlier run.
    package var wasCached: Bool { weights.wasCached }

    /// Logits of the last token given to `forward`, `[vocabulary]`; valid until the next call.
    package var logits: UnsafeMutableBufferPointer<Float> {
        UnsafeMutableBufferPointer(start: scratch.logits, count: shape.vocabularySize)
    }

    /// Appends `tokens` to the cache and computes the logits that follow the last of them.
    ///
    /// - Parameter wantsLogits: false saves the output head where only the cache is wanted.
    /// - Parameter candidates: tokens, ascending, whose logits are wanted; the others are left as they were. Nil for all.
    /// - Parameter isCancelled: asked before every layer of every batch; when it says yes the call throws
    ///   `CancellationError` and the cache keeps the batches that were finished (with recurrent layers, what the last
    ///   checkpoint has of them).
    /// - Precondition: the cache has room for the tokens; callers check first, because what to do about a full context
    ///   is theirs to decide.
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
                    cache.abandonBatch()
                    throw CancellationError()
                }
                cache.append(batch)
                if wantsLogits, end == tokens.endIndex { pass.head(row: batch.count - 1, candidates: candidates) }
            }
            start = end
        }
    }

    /// Appends `tokens`, at most a batch of them, and gives the natural logarithm of the probability of all but the first, each
    /// given everything before it.
    package func logProbability(
        of tokens: ArraySlice<TokenID>, cache: KVCache, isCancelled: () -> Bool = { false }
    ) throws(CancellationError) -> Double {
        let tokens = tokens.prefix(scratch.batch)
        try forward(tokens, cache: cache, wantsLogits: false, isCancelled: isCancelled)
        var sum = 0.0
        for (row, next) in tokens.dropFirst().enumerated() {
            pass.head(row: row)
            let count = Int32(shape.vocabularySize)
            let greatest = logits[Int(pool.kernels.pointee.argmax(scratch.logits, count))]
            let chosen = logits[Int(next)]
            let total = pool.kernels.pointee.exp_shifted(scratch.logits, greatest, 1, count, scratch.logits)
            sum += Double(chosen - greatest) - log(Double(total))
        }
        return sum
    }
}
