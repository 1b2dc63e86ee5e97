internal import CKernels  // structures of calls
internal import Foundation

/// A decoder or encoder of any shape: its weights and its forward pass, described by a ``ModelShape`` and computed by
/// ``CPUKernels``.
///
/// Not thread-safe: all calls share scratch memory, so only one call may run at a time.
package final class NeuralModel: TokenModel {
    package let shape: ModelShape
    let weights: Weights
    package let pool: WorkerPool
    let kernels: CPUKernels
    let scratch: Scratch
    /// The segments of the current batch; the array is kept so that a pass allocates nothing.
    private var segments: [Segment] = []
    var pass: ForwardPass { ForwardPass(shape: shape, weights: weights, kernels: kernels, scratch: scratch) }

    /// - Parameters:
    ///   - adapter: an adapter to merge into the weights.
    ///   - cache: the cache of packed weights; nil for private memory. Not used with an adapter.
    ///   - batchSize: the maximum number of tokens of a batch: an encoder needs all tokens of a text.
    ///   - isCancelled: asked before each tensor is packed; if it returns true, ``ModelError/cancelled`` is thrown.
    package init(
        file: GGUFFile, pool: WorkerPool, adapter: AdapterFile? = nil, cache: PackedCache? = nil,
        batchSize: Int = EngineLimits.passTokens, isCancelled: @escaping () -> Bool = { false }
    ) throws(ModelError) {
        shape = try ModelShape(file: file)
        weights = try Weights(file: file, shape: shape, pool: pool, adapter: adapter, cache: cache, isCancelled: isCancelled)
        self.pool = pool
        kernels = CPUKernels(pool)
        scratch = try Scratch(
            shape, batch: shape.pooling == nil ? min(batchSize, shape.contextLength) : batchSize,
            hasUnits: weights.hasBlockScales && kernels.sumsBlocks)
    }

    /// The prediction head of a model, as a model of one layer; see ``PredictionHead``.
    init(predicting shape: ModelShape, layer: Int, after model: NeuralModel, file: GGUFFile) throws(ModelError) {
        self.shape = shape
        pool = model.pool
        weights = try Weights(predicting: shape, layer: layer, after: model.weights, file: file, pool: pool)
        kernels = CPUKernels(pool)
        scratch = try Scratch(
            shape, batch: model.scratch.batch, hasUnits: weights.hasBlockScales && kernels.sumsBlocks, joins: true)
    }

    /// An adapter for use beside the weights; nil if it must be merged into them.
    ///
    /// - Parameter file: The file of this model.
    /// - Throws: ``ModelError`` if the adapter does not fit the model.
    package func adapter(_ adapter: AdapterFile, file: GGUFFile) throws(ModelError) -> LowRankAdapter? {
        try LowRankAdapter([adapter], for: weights.origins, model: file)
    }

    /// The number of bytes of weights that one generated token reads, without the KV cache.
    package var bytesPerToken: Int { weights.bytesPerToken }
    /// The same for a model that is not loaded.
    package static func bytesPerToken(file: GGUFFile, shape: ModelShape, pool: WorkerPool) throws(ModelError) -> Int {
        try Weights.bytesPerToken(file: file, shape: shape, pool: pool)
    }
    /// Checks that a file has all tensors of its architecture, with the right shapes, and no others.
    package static func check(_ file: GGUFFile) throws(ModelError) {
        try Weights.check(file, ModelShape(file: file), .shared())
    }
    package var packedBytes: Int { weights.bytes }
    /// Whether the packed weights were read from the cache.
    package var wasCached: Bool { weights.wasCached }

    var limits: TokenModelLimits {
        TokenModelLimits(
            passTokens: scratch.batch, sequences: EngineLimits.sequences,
            logitRows: shape.isEncoder ? 0 : min(scratch.batch, EngineLimits.fewRows), vocabularySize: shape.vocabularySize,
            contextLength: shape.contextLength, width: shape.width)
    }

    func makeMemory(
        capacity: Int, format: CacheFormat, adapter: LowRankAdapter?
    ) throws(ModelError) -> any SequenceMemory {
        try KVCache(shape: shape, capacity: capacity, format: format, adapter: adapter)
    }

    // MARK: - Passes

    func forward(
        _ tokens: UnsafeBufferPointer<TokenID>, parts: [PassPart], states: inout [RowState], isCancelled: () -> Bool
    ) throws(CancellationError) {
        defer { segments.removeAll(keepingCapacity: true) }
        var row = 0
        for part in parts {
            // No input can cause this: an engine has the memory that its model has made.
            guard let cache = part.cache as? KVCache else { preconditionFailure("a model processes memory that it made") }
            segments.append(
                Segment(firstRow: row, rows: part.count, position: cache.rows.count, cache: cache, input: part.input))
            row += part.count
        }
        try process(tokens, segments, states: &states, isCancelled: isCancelled)
    }

    /// The callers decide what happens if the context is full, so they check and reserve.
    private func process(
        _ tokens: UnsafeBufferPointer<TokenID>, _ segments: [Segment], states: inout [RowState], isCancelled: () -> Bool
    ) throws(CancellationError) {
        precondition(tokens.count <= scratch.batch && segments.count <= EngineLimits.sequences, "the caller divides the work")
        for segment in segments {
            precondition(segment.position + segment.rows <= segment.cache.capacity, "the caller checks the context size")
            precondition(segment.position + segment.rows <= segment.cache.reservedPositions, "the caller reserves the pages")
        }
        guard pass.run(tokens, segments: segments, states: &states, isCancelled: isCancelled) else {
            for segment in segments { segment.cache.discardUnfinishedBatch() }
            throw CancellationError()
        }
        for segment in segments {
            segment.cache.append(
                UnsafeBufferPointer(rebasing: tokens[segment.firstRow..<segment.firstRow + segment.rows]), of: segment.input)
        }
    }

    func computeLogits(ofRows rows: ArraySlice<Int>, candidates: [TokenID]?) {
        precondition(rows.count <= limits.logitRows, "the caller divides the rows")
        pass.head(rows, candidates: candidates)
    }

    func logits(_ index: Int) -> HostLogits {
        HostLogits(start: scratch.logits + index * shape.vocabularySize, count: shape.vocabularySize)
    }

    func hiddenRows(from row: Int) -> UnsafePointer<Float>? { UnsafePointer(scratch.residual + row * shape.width) }

    /// The logits after the last token passed to ``forward(_:cache:wantsLogits:candidates:isCancelled:)``.
    package var logits: UnsafeMutableBufferPointer<Float> { logits(0) }

    /// Appends `tokens` to the cache and computes the logits after the last one.
    ///
    /// - Parameter wantsLogits: false skips the output head if only the cache is needed.
    /// - Parameter candidates: the tokens, in ascending order, whose logits are computed; the other logits remain
    ///   unchanged. Nil for all tokens.
    /// - Parameter isCancelled: called before every layer of every batch; if it returns true, the call throws
    ///   `CancellationError` and the cache keeps the finished batches (with recurrent layers, only up to the last
    ///   checkpoint).
    /// - Throws: `CancellationError`, or ``ModelError/outOfMemory(bytes:)`` if a page of the cache cannot be allocated.
    /// - Precondition: the cache has capacity for the tokens.
    package func forward(
        _ tokens: ArraySlice<TokenID>, cache: KVCache, wantsLogits: Bool = true, candidates: [TokenID]? = nil,
        isCancelled: () -> Bool = { false }
    ) throws {
        var start = tokens.startIndex
        while start < tokens.endIndex {
            let end = min(start + scratch.batch, tokens.endIndex)
            try cache.reserve(end - start)
            var none: [RowState] = []
            try tokens[start..<end].withUnsafeBufferPointer { batch in
                try forward(batch, parts: [PassPart(cache, batch.count)], states: &none, isCancelled: isCancelled)
            }
            start = end
        }
        guard wantsLogits, !tokens.isEmpty else { return }
        computeLogits(ofRows: [(tokens.count - 1) % scratch.batch], candidates: candidates)
    }

    /// Computes one vector of length 1 for each of several texts, in one batch.
    ///
    /// - Parameters:
    ///   - tokens: the tokens of all texts; none may be empty.
    ///   - parts: empty caches that share the memory of all layers, with the numbers of tokens.
    ///   - output: receives `[parts][embeddingWidth]`.
    func embed(
        _ tokens: UnsafeBufferPointer<TokenID>, parts: [(cache: KVCache, count: Int)], pooling: ModelShape.Pooling,
        into output: UnsafeMutablePointer<Float>, isCancelled: () -> Bool
    ) throws(CancellationError) {
        let segments = try encode(tokens, parts, isCancelled)
        pass.pool(segments, pooling, into: output)
    }

    /// Computes the score of each of several pairs of texts, in one batch: see ``ForwardPass/score(_:_:into:)``.
    func score(
        _ tokens: UnsafeBufferPointer<TokenID>, parts: [(cache: KVCache, count: Int)], pooling: ModelShape.Pooling,
        into output: UnsafeMutablePointer<Float>, isCancelled: () -> Bool
    ) throws(CancellationError) {
        let segments = try encode(tokens, parts, isCancelled)
        pass.score(segments, pooling, into: output)
    }

    /// Computes the vectors of all tokens of several texts, in one batch, each of length 1: `[tokens][width]`. They are overwritten by
    /// the next pass.
    func embedTokens(
        _ tokens: UnsafeBufferPointer<TokenID>, parts: [(cache: KVCache, count: Int)], isCancelled: () -> Bool
    ) throws(CancellationError) -> UnsafeBufferPointer<Float> {
        _ = try encode(tokens, parts, isCancelled)
        return pass.tokenVectors(count: tokens.count)
    }

    private func encode(
        _ tokens: UnsafeBufferPointer<TokenID>, _ parts: [(cache: KVCache, count: Int)], _ isCancelled: () -> Bool
    ) throws(CancellationError) -> [Segment] {
        var row = 0
        var segments: [Segment] = []
        for (cache, count) in parts {
            segments.append(Segment(firstRow: row, rows: count, position: 0, cache: cache, input: nil))
            row += count
        }
        var none: [RowState] = []
        try process(tokens, segments, states: &none, isCancelled: isCancelled)
        for part in parts { part.cache.rewind(to: 0, keepsPages: true) }
        return segments
    }

    // MARK: - Measurements

    /// The times of the operations of the passes that `body` makes.
    package func profile(_ body: () throws -> Void) rethrows -> [OperationTime] { OperationTime.sums(of: try calls(of: body)) }

    /// All operations of the passes that `body` makes, in order.
    package func calls(of body: () throws -> Void) rethrows -> [OperationCall] {
        let observer = OperationObserver(weights.origins)
        try observe(observer, body)
        return observer.calls
    }

    /// Calls a function with the names of the tensors that the passes of `body` multiply with the activations of a batch, and with these
    /// rows of activations; of experts, those of each with its rows.
    package func observe(
        _ input: @escaping (_ tensor: String, _ expert: (index: Int, count: Int), _ rows: ObservedRows) -> Void,
        _ body: () throws -> Void
    ) rethrows {
        let observer = OperationObserver(weights.origins) { origin, rows in
            guard origin.isAdaptable || origin.isOfExpert else { return }
            input(
                origin.name, origin.slice ?? (0, 1),
                ObservedRows(values: rows.x, count: Int(rows.count), width: Int(rows.columns)))
        }
        try observe(observer, body)
    }

    private func observe(_ observer: OperationObserver, _ body: () throws -> Void) rethrows {
        kernels.observer = observer
        defer { kernels.observer = nil }
        try body()
    }
}
