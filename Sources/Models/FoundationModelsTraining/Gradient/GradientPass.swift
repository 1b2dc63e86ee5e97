internal import CKernels
internal import Foundation
package import Inference

/// The loss of a batch and its gradient by the adapter's factors, with backpropagation through frozen quantised weights.
///
/// The inputs of all layers are kept; everything else within a layer is computed again in the backward pass, but for the layers that
/// memory is left for (arXiv:1604.06174).
package final class GradientPass: @unchecked Sendable {  // Used by one thread at a time.
    let model: FrozenModel
    let factors: LowRankFactors
    package let pool: WorkerPool
    /// Whether operands of products are rounded to bfloat16.
    package let rounds: Bool
    /// The matrices whose products have operands of 8 bits, by their names.
    let integers: [String: IntegerMatrix]
    let maximumRows: Int
    let kernels: UnsafePointer<ck_training_kernels>
    let forwardKernels: UnsafePointer<ck_kernels>
    let inputs: [Buffer]
    let states: [LayerState]
    /// The number of last layers that have a state of their own.
    let keptLayers: Int
    /// The first layer with factors: no gradient is needed below it.
    let firstTrained: Int
    let work: Workspace
    /// The gradient of the residual stream.
    let gradient: Buffer
    let logits: Buffer
    let headRows: Buffer
    let headGradients: Buffer
    let angles: [(cosine: Buffer, sine: Buffer, pairs: Int)]
    private let contextSize: Int

    /// The number of targets whose logits are in memory at the same time.
    let headChunk: Int
    /// Whether the factors that are trained are left out: then layers compute what the model computes with the adapter below, if any.
    var isBase = false

    /// A multiple of the 12 rows of a panel, about 128 MB: with few rows, decoding the matrix of the head takes longer than the products.
    static func headChunk(_ model: FrozenModel) -> Int {
        min(504, max(96, (32 << 20) / model.shape.vocabularySize / 12 * 12))
    }

    /// The bytes of the matrices of products with 8 bits.
    static func integerBytes(_ model: FrozenModel) -> Int {
        model.matrices.reduce(0) { $0 + (IntegerMatrix.bytes($1.type, rows: $1.rows, columns: $1.columns) ?? 0) }
    }

    /// The memory that a pass takes, in bytes, beyond the mapped file and the factors.
    static func bytes(_ model: FrozenModel, rows: Int, rank: Int, keptLayers: Int) -> Int {
        let width = model.shape.width
        let layers = model.layers
        let kept = layers.suffix(keptLayers).reduce(0) { $0 + LayerSize($1, width: width).floats(rows: rows, rank: rank) }
        let shared = LayerSize.largest(of: layers.dropLast(keptLayers), width: width)?.floats(rows: rows, rank: rank) ?? 0
        let head = headChunk(model) * (model.shape.vocabularySize + 2 * width)
        return 4 * ((layers.count + 2) * rows * width + kept + shared + head + Workspace.floats(model, rows: rows, rank: rank))
    }

    /// - Parameters:
    ///   - maximumRows: the largest number of tokens of a batch.
    ///   - keptLayers: the number of layers whose intermediate results are kept for the backward pass.
    ///   - usesIntegers: whether products with quantised matrices have operands of 8 bits.
    package init(
        _ model: FrozenModel, _ factors: LowRankFactors, pool: WorkerPool, maximumRows: Int, keptLayers: Int, rounds: Bool,
        usesIntegers: Bool = false, contextSize: Int
    ) throws(TrainingError) {
        (self.model, self.factors, self.pool, self.maximumRows) = (model, factors, pool, maximumRows)
        self.contextSize = contextSize
        kernels = ck_training_best()
        forwardKernels = pool.kernels
        self.rounds = rounds && kernels.pointee.rounded_tile != nil
        let width = model.shape.width
        let layers = model.layers
        self.keptLayers = min(keptLayers, layers.count)
        firstTrained = layers.firstIndex { $0.projections.contains { factors.places[$0.matrix.name] != nil } } ?? layers.count
        var integers: [String: IntegerMatrix] = [:]
        if usesIntegers {
            do {
                for matrix in model.matrices { integers[matrix.name] = try IntegerMatrix(matrix, pool: pool) }
            } catch { throw .outOfMemory(bytes: Self.integerBytes(model)) }
        }
        self.integers = integers
        var inputs: [Buffer] = []
        for _ in 0...layers.count { inputs.append(try Buffer(maximumRows * width)) }
        self.inputs = inputs
        var states: [LayerState] = []
        var shared: LayerState?
        if let size = LayerSize.largest(of: layers.dropLast(self.keptLayers), width: width) {
            shared = try LayerState(size, rows: maximumRows, rank: factors.rank)
        }
        for (index, layer) in layers.enumerated() {
            if index < layers.count - self.keptLayers, let shared {
                states.append(shared)
            } else {
                states.append(try LayerState(LayerSize(layer, width: width), rows: maximumRows, rank: factors.rank))
            }
        }
        self.states = states
        work = try Workspace(model, rows: maximumRows, rank: factors.rank, quantizes: integers.isEmpty ? nil : pool)
        gradient = try Buffer(maximumRows * width)
        headChunk = Self.headChunk(model)
        logits = try Buffer(headChunk * model.shape.vocabularySize)
        headRows = try Buffer(2 * headChunk * width)
        headGradients = try Buffer(headChunk * width)
        var angles: [(cosine: Buffer, sine: Buffer, pairs: Int)] = []
        for table in model.rotaries {
            let pairs = table.frequencies.count
            angles.append((try Buffer(maximumRows * pairs), try Buffer(maximumRows * pairs), pairs))
        }
        self.angles = angles
    }

    package struct Result {
        /// The sum of the cross-entropy of all targets, in nats.
        package var loss = 0.0
        /// The number of targets that had the largest logit.
        var right = 0
        package var targets = 0
    }

    /// Computes the loss of a batch, and adds its gradient, divided by `divisor`, to those of the factors.
    ///
    /// - Parameters:
    ///   - divisor: the number of targets of the whole step; nil to compute the loss only.
    ///   - expected: probabilities that are learned instead of the next tokens; the loss is then the divergence from them.
    ///   - isCancelled: asked before each layer.
    package func run(
        _ batch: TrainingBatch, divisor: Double?, expected: KeptText.Predictions? = nil, isCancelled: () -> Bool = { false }
    ) throws(TrainingError) -> Result {
        try forward(batch, isCancelled)
        var result = Result()
        gradient.clear()
        head(batch, factor: divisor.map { Float(1 / $0) }, expected: expected, &result)
        guard divisor != nil else { return result }
        for index in model.layers.indices[firstTrained...].reversed() {
            if isCancelled() { throw .cancelled }
            if index < model.layers.count - keptLayers { try forward(index, batch, isAgain: true) }
            try backward(index, batch)
        }
        return result
    }

    /// All layers.
    func forward(_ batch: TrainingBatch, _ isCancelled: () -> Bool) throws(TrainingError) {
        precondition(batch.tokens.count <= maximumRows, "the batch does not fit")
        try prepare(batch)
        for index in model.layers.indices {
            if isCancelled() { throw .cancelled }
            try forward(index, batch)
        }
    }

    private func prepare(_ batch: TrainingBatch) throws(TrainingError) {
        let width = model.shape.width
        for (row, token) in batch.tokens.enumerated() {
            model.embedding.decode(row: Int(token), to: inputs[0].pointer + row * width)
        }
        let scale = Float(model.shape.embeddingScale)
        if scale != 1 { for index in 0..<batch.tokens.count * width { inputs[0].pointer[index] *= scale } }
        for (first, end) in zip(batch.starts, batch.starts.dropFirst()) {
            for row in Int(first)..<Int(end) {
                for (table, angle) in zip(model.rotaries, angles) {
                    table.fill(
                        position: RowPosition(Int(batch.positions[row])), capacity: contextSize,
                        cosine: angle.cosine.pointer + row * angle.pairs,
                        sine: angle.sine.pointer + row * angle.pairs)
                }
            }
        }
    }
}
