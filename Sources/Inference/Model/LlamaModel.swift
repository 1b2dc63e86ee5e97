internal import CKernels
internal import Foundation

/// Identifies a token of a vocabulary.
package typealias TokenID = Int32

/// The forward pass of the llama family: RMSNorm, grouped-query attention with rotary positions, SwiGLU
/// (LLaMA, arXiv:2302.13971; GQA, arXiv:2305.13245).
///
/// Not thread-safe: scratch memory is shared by all calls, so one call at a time.
package final class LlamaModel {
    package let configuration: ModelConfiguration
    let weights: Weights
    let pool: WorkerPool
    private let rotary: RotaryTable
    private let scratch: Activations

    /// Tokens processed together. More would gain nothing: weights are read once per batch, and 256 rows already
    /// make reading them a small part of the work.
    package static let batchSize = 256

    /// - Parameter adapter: Merged into the weights.
    package init(file: GGUFFile, pool: WorkerPool, adapter: AdapterFile? = nil) throws(ModelError) {
        configuration = try ModelConfiguration(file: file)
        weights = try Weights(file: file, configuration: configuration, pool: pool, adapter: adapter)
        self.pool = pool
        rotary = RotaryTable(configuration, factors: weights.rotaryFactors)
        scratch = try Activations(
            configuration, batch: min(Self.batchSize, configuration.contextLength),
            quantizes: weights.wantsQuantizedActivations)
    }

    /// Bytes that one generated token reads, without the KV cache.
    package var bytesPerToken: Int { weights.bytesPerToken }
    package var packedBytes: Int { weights.bytes }

    /// Logits of the last token given to `forward`, `[vocabulary]`; valid until the next call.
    package var logits: UnsafeMutableBufferPointer<Float> {
        UnsafeMutableBufferPointer(start: scratch.logits, count: configuration.vocabularySize)
    }

    /// Appends `tokens` to the cache and computes the logits that follow the last of them.
    ///
    /// - Parameter wantsLogits: false saves the output head where only the cache is wanted.
    /// - Parameter candidates: tokens, ascending, whose logits are wanted; the others are left as they were. Nil for all.
    /// - Parameter isCancelled: asked before every layer of every batch; when it says yes the call throws
    ///   `CancellationError` and the cache keeps the batches that were finished.
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
                try forward(
                    batch: batch, cache: cache, wantsLogits: wantsLogits && end == tokens.endIndex, candidates: candidates,
                    isCancelled: isCancelled)
            }
            start = end
        }
    }

    private func forward(
        batch: UnsafeBufferPointer<TokenID>, cache: KVCache, wantsLogits: Bool, candidates: [TokenID]?, isCancelled: () -> Bool
    ) throws(CancellationError) {
        let c = configuration
        let s = scratch
        let rows = batch.count
        let position = cache.tokens.count
        let handle = pool.handle
        let kernels = pool.kernels
        let width = c.width
        let kvWidth = Int32(c.kvHeads * c.headDimension)
        let attentionWidth = Int32(c.heads * c.headDimension)
        let feedForwardWidth = Int32(c.feedForwardWidth)
        let epsilon = Float(c.normEpsilon)
        s.setRows(rows)

        var embedding = weights.embedding
        for row in 0..<rows {
            ck_matrix_row(&embedding, batch[row], s.residual + row * width)
            rotary.fill(position: position + row, cosine: s.cosine + row * s.pairs, sine: s.sine + row * s.pairs)
        }
        s.prepareAttention(cache: cache, position: position, rows: rows)
        for (index, layer) in weights.layers.enumerated() {
            if isCancelled() { throw CancellationError() }

            ck_normalize(handle, kernels, s.residual, layer.attentionNorm, epsilon, s.normed, &s.normedRows, s.quantizes)
            s.products[0] = ck_product(matrix: layer.query, y: s.query, ldy: attentionWidth, add: false)
            s.products[1] = ck_product(matrix: layer.key, y: s.key, ldy: kvWidth, add: false)
            s.products[2] = ck_product(matrix: layer.value, y: s.value, ldy: kvWidth, add: false)
            ck_matmul(handle, kernels, &s.normedRows, s.products, 3)
            s.rotation.keys = cache.keys(layer: index)
            s.rotation.values = cache.values(layer: index)
            ck_rotate_and_store(handle, kernels, &s.rotation)
            s.attention.keys = UnsafePointer(cache.keys(layer: index))
            s.attention.values = UnsafePointer(cache.values(layer: index))
            ck_attend(handle, kernels, &s.attention)
            if s.quantizes { ck_quantize(handle, kernels, &s.attendedRows) }
            s.products[0] = ck_product(matrix: layer.output, y: s.residual, ldy: Int32(width), add: true)
            ck_matmul(handle, kernels, &s.attendedRows, s.products, 1)

            ck_normalize(handle, kernels, s.residual, layer.feedForwardNorm, epsilon, s.normed, &s.normedRows, s.quantizes)
            s.products[0] = ck_product(matrix: layer.gate, y: s.gate, ldy: feedForwardWidth, add: false)
            s.products[1] = ck_product(matrix: layer.up, y: s.up, ldy: feedForwardWidth, add: false)
            ck_matmul(handle, kernels, &s.normedRows, s.products, 2)
            ck_swiglu(handle, kernels, s.gate, s.up, &s.gatedRows, s.quantizes)
            s.products[0] = ck_product(matrix: layer.down, y: s.residual, ldy: Int32(width), add: true)
            ck_matmul(handle, kernels, &s.gatedRows, s.products, 1)
        }
        cache.append(batch)
        if wantsLogits { head(row: rows - 1, candidates: candidates) }
    }

    /// Logits of one row of the last batch.
    private func head(row: Int, candidates: [TokenID]? = nil) {
        let s = scratch
        s.setRows(1)
        ck_normalize(
            pool.handle, pool.kernels, s.residual + row * configuration.width, weights.outputNorm,
            Float(configuration.normEpsilon), s.normed, &s.normedRows, s.quantizes)
        s.products[0] = ck_product(matrix: weights.head, y: s.logits, ldy: Int32(configuration.vocabularySize), add: false)
        if let candidates {
            ck_matmul_rows(pool.kernels, &s.normedRows, s.products, candidates, Int32(candidates.count))
        } else {
            ck_matmul(pool.handle, pool.kernels, &s.normedRows, s.products, 1)
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
            head(row: row)
            let count = Int32(configuration.vocabularySize)
            let greatest = logits[Int(pool.kernels.pointee.argmax(scratch.logits, count))]
            let chosen = logits[Int(next)]
            let total = pool.kernels.pointee.exp_shifted(scratch.logits, greatest, 1, count, scratch.logits)
            sum += Double(chosen - greatest) - log(Double(total))
        }
        return sum
    }
}
