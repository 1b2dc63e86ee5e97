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
    let maximumRows: Int
    let kernels: UnsafePointer<ck_training_kernels>
    private let forwardKernels: UnsafePointer<ck_kernels>
    let inputs: [Buffer]
    private let states: [LayerState]
    /// The number of last layers that have a state of their own.
    let keptLayers: Int
    let work: Workspace
    /// The gradient of the residual stream.
    let gradient: Buffer
    let logits: Buffer
    let headRows: Buffer
    let headGradients: Buffer
    private let angles: [(cosine: Buffer, sine: Buffer, pairs: Int)]
    private let contextSize: Int

    /// The number of targets whose logits are in memory at the same time.
    let headChunk: Int
    /// Whether the factors are left out: then layers compute what the model alone computes.
    var isBase = false

    /// A multiple of the 12 rows of a panel, about 128 MB: with few rows, decoding the matrix of the head takes longer than the products.
    static func headChunk(_ model: FrozenModel) -> Int {
        min(504, max(96, (32 << 20) / model.shape.vocabularySize / 12 * 12))
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
    package init(
        _ model: FrozenModel, _ factors: LowRankFactors, pool: WorkerPool, maximumRows: Int, keptLayers: Int, rounds: Bool,
        contextSize: Int
    ) throws(TrainingError) {
        (self.model, self.factors, self.pool, self.maximumRows) = (model, factors, pool, maximumRows)
        self.contextSize = contextSize
        kernels = ck_training_best()
        forwardKernels = pool.kernels
        self.rounds = rounds && kernels.pointee.rounded_tile != nil
        let width = model.shape.width
        let layers = model.layers
        self.keptLayers = min(keptLayers, layers.count)
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
        work = try Workspace(model, rows: maximumRows, rank: factors.rank)
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
        for index in model.layers.indices.reversed() {
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
                        position: RowPosition(row - Int(first)), capacity: contextSize,
                        cosine: angle.cosine.pointer + row * angle.pairs,
                        sine: angle.sine.pointer + row * angle.pairs)
                }
            }
        }
    }

    // MARK: - Products

    /// Packs rows as the left operand of products.
    func pack(
        _ x: UnsafePointer<Float>, stride: Int, count: Int, k: Int, transposed: Bool = false, in memory: UnsafeMutableRawPointer
    ) -> ck_training_operand {
        // The gradients of factors are sums over rows that are read as they are: rounding these rows would take longer than the product.
        var operand = ck_training_operand(panels: memory, count: Int32(count), k: Int32(k), rounds: rounds && !transposed)
        ck_training_pack(pool.handle, x, Int32(stride), transposed, &operand)
        return operand
    }

    func product(
        _ matrix: FrozenMatrix, transposed: Bool, _ x: ck_training_operand, _ y: UnsafeMutablePointer<Float>, stride: Int,
        scale: Float = 1, adds: Bool
    ) -> ck_training_product {
        ck_training_product(
            weights: matrix.data, row_bytes: matrix.rowBytes, type: matrix.type, rows: Int32(matrix.rows),
            columns: Int32(matrix.columns), transposed: transposed, x: x, y: y, ldy: Int32(stride), scale: scale * matrix.scale,
            add: adds)
    }

    /// The same with a matrix of numbers.
    func product(
        _ numbers: UnsafePointer<Float>, rows: Int, columns: Int, rowStride: Int? = nil, transposed: Bool,
        _ x: ck_training_operand,
        _ y: UnsafeMutablePointer<Float>, stride: Int, scale: Float = 1, adds: Bool
    ) -> ck_training_product {
        ck_training_product(
            weights: UnsafeRawPointer(numbers).assumingMemoryBound(to: UInt8.self), row_bytes: 4 * (rowStride ?? columns),
            type: CK_TYPE_F32, rows: Int32(rows), columns: Int32(columns), transposed: transposed, x: x, y: y, ldy: Int32(stride),
            scale: scale, add: adds)
    }

    func multiply(_ products: [ck_training_product]) {
        products.withUnsafeBufferPointer {
            ck_training_multiply(pool.handle, kernels, $0.baseAddress, Int32($0.count))
        }
    }

    /// y = W·x + bias + scale·B·A·x for matrices with the same input.
    private func apply(
        _ projections: [FrozenModel.Projection], low: ArraySlice<Buffer>, x: UnsafePointer<Float>, rows: Int,
        to y: UnsafeMutablePointer<Float>, stride: Int
    ) {
        guard let columns = projections.first?.matrix.columns else { return }
        let operand = pack(x, stride: columns, count: rows, k: columns, in: work.operand)
        var products: [ck_training_product] = []
        for (projection, low) in zip(projections, low) {
            products.append(
                product(projection.matrix, transposed: false, operand, y + projection.offset, stride: stride, adds: false))
            if !isBase, let place = factors.places[projection.matrix.name] {
                products.append(
                    product(
                        factors.values.pointer + place.offset, rows: place.rank, columns: place.columns, transposed: false,
                        operand,
                        low.pointer, stride: place.rank, adds: false))
            }
        }
        multiply(products)
        for (projection, low) in zip(projections, low) {
            if let bias = projection.bias {
                for row in 0..<rows {
                    let out = y + row * stride + projection.offset
                    for column in bias.indices { out[column] += bias[column] }
                }
            }
            guard !isBase, let place = factors.places[projection.matrix.name] else { continue }
            let operand = pack(low.pointer, stride: place.rank, count: rows, k: place.rank, in: work.small)
            multiply([
                product(
                    factors.values.pointer + place.bOffset, rows: place.rank, columns: place.rows, transposed: true, operand,
                    y + projection.offset, stride: stride, scale: factors.scale * projection.matrix.scale, adds: true)
            ])
        }
    }

    /// The gradient of ``apply``: of the factors, and of the input, which is overwritten.
    private func applyBackward(
        _ projections: [FrozenModel.Projection], low: ArraySlice<Buffer>, x: UnsafePointer<Float>, rows: Int,
        dy: UnsafePointer<Float>, stride: Int, dx: UnsafeMutablePointer<Float>?
    ) {
        var isFirst = true
        for (projection, low) in zip(projections, low) {
            let matrix = projection.matrix
            let gradient = dy + projection.offset
            let place = factors.places[matrix.name]
            if dx == nil, place == nil { continue }
            let operand = pack(gradient, stride: stride, count: rows, k: matrix.rows, in: work.operand)
            var products: [ck_training_product] = []
            if let dx {
                products.append(product(matrix, transposed: true, operand, dx, stride: matrix.columns, adds: !isFirst))
                isFirst = false
            }
            if let place {
                products.append(
                    product(
                        factors.values.pointer + place.bOffset, rows: place.rank, columns: place.rows, transposed: false, operand,
                        work.low.pointer, stride: place.rank, scale: factors.scale * matrix.scale, adds: false))
            }
            multiply(products)
            guard let place else { continue }
            let lowTransposed = pack(
                low.pointer, stride: place.rank, count: place.rank, k: rows, transposed: true, in: work.small)
            multiply([
                product(
                    gradient, rows: rows, columns: place.rows, rowStride: stride, transposed: true, lowTransposed,
                    factors.gradients.pointer + place.bOffset, stride: place.rows, scale: factors.scale * matrix.scale,
                    adds: true)
            ])
            let upTransposed = pack(
                work.low.pointer, stride: place.rank, count: place.rank, k: rows, transposed: true, in: work.small)
            multiply([
                product(
                    x, rows: rows, columns: place.columns, transposed: true, upTransposed,
                    factors.gradients.pointer + place.offset, stride: place.columns, adds: true)
            ])
            guard let dx else { continue }
            let up = pack(work.low.pointer, stride: place.rank, count: rows, k: place.rank, in: work.small)
            multiply([
                product(
                    factors.values.pointer + place.offset, rows: place.rank, columns: place.columns, transposed: true, up, dx,
                    stride: place.columns, adds: true)
            ])
        }
    }

    // MARK: - Layers

    func norm(
        _ x: UnsafePointer<Float>, stride: Int, _ weight: [Float], rows: Int, to output: UnsafeMutablePointer<Float>,
        outputStride: Int
    ) {
        ck_training_norm(
            pool.handle, forwardKernels, x, Int32(stride), weight, Float(model.shape.normEpsilon), Int32(rows),
            Int32(weight.count),
            output, Int32(outputStride))
    }

    private func normBackward(
        _ x: UnsafePointer<Float>, stride: Int, _ weight: [Float], _ dy: UnsafePointer<Float>, gradientStride: Int, rows: Int,
        to dx: UnsafeMutablePointer<Float>, outputStride: Int
    ) {
        ck_training_norm_backward(
            pool.handle, kernels, x, Int32(stride), weight, dy, Int32(gradientStride), Float(model.shape.normEpsilon),
            Int32(rows),
            Int32(weight.count), dx, Int32(outputStride))
    }

    /// Rows of heads: a norm of each head is one of `count` rows.
    private struct Heads {
        var offset: Int
        var count: Int
        var dimension: Int
        var weight: [Float]
    }

    private func heads(_ layer: FrozenModel.Layer) -> [Heads] {
        guard let q = layer.queryNorm, let k = layer.keyNorm else { return [] }
        return [
            Heads(offset: 0, count: layer.queryWidth / q.count, dimension: q.count, weight: q),
            Heads(offset: layer.queryWidth, count: layer.keyWidth / k.count, dimension: k.count, weight: k),
        ]
    }

    private func rotate(_ layer: FrozenModel.Layer, _ x: UnsafeMutablePointer<Float>, rows: Int, inverse: Bool) {
        guard let rotary = layer.attention.rotary else { return }
        let angle = angles[rotary]
        let a = layer.attention
        for (offset, heads) in [(0, a.heads), (layer.queryWidth, a.kvHeads)] {
            ck_training_rotate(
                pool.handle, x + offset, Int32(layer.inputWidth), Int32(rows), Int32(heads), Int32(a.keyDimension),
                Int32(angle.pairs), model.shape.rotaries[rotary].halves, angle.cosine.pointer, angle.sine.pointer, inverse)
        }
    }

    /// Queries are multiplied by a factor that depends on the position.
    private func scaleQueries(_ layer: FrozenModel.Layer, _ x: UnsafeMutablePointer<Float>, _ batch: TrainingBatch) {
        guard let temperature = layer.attention.temperature else { return }
        for (first, end) in zip(batch.starts, batch.starts.dropFirst()) {
            for row in Int(first)..<Int(end) {
                let factor = Float(1 + temperature.beta * log(1 + Double((row - Int(first)) / temperature.length)))
                for column in 0..<layer.queryWidth { x[row * layer.inputWidth + column] *= factor }
            }
        }
    }

    private func attention(
        _ layer: FrozenModel.Layer, _ state: LayerState, _ batch: TrainingBatch, gradient: (dout: Buffer, din: Buffer)? = nil
    ) throws(TrainingError) {
        let a = layer.attention
        var call = ck_training_attention()
        (call.heads, call.kv_heads) = (Int32(a.heads), Int32(a.kvHeads))
        (call.key_dim, call.value_dim) = (Int32(a.keyDimension), Int32(a.valueDimension))
        let stride = Int32(layer.inputWidth)
        (call.ldq, call.ldk, call.ldv, call.ldo) = (stride, stride, stride, Int32(layer.attendedWidth))
        (call.scale, call.soft_cap, call.window) = (Float(a.scale), Float(a.softCap), Int32(clamping: a.window ?? 0))
        call.sequences = Int32(batch.starts.count - 1)
        let input = state.attentionInput.pointer
        call.q = UnsafePointer(input)
        call.k = UnsafePointer(input + layer.queryWidth)
        call.v = UnsafePointer(input + layer.queryWidth + layer.keyWidth)
        call.out = state.attended.pointer
        call.lse = state.lse.pointer
        if let gradient {
            call.dout = UnsafePointer(gradient.dout.pointer)
            call.dq = gradient.din.pointer
            call.dk = gradient.din.pointer + layer.queryWidth
            call.dv = gradient.din.pointer + layer.queryWidth + layer.keyWidth
        }
        let needed = try batch.starts.withUnsafeBufferPointer { starts throws(TrainingError) -> Int in
            call.starts = starts.baseAddress
            return ck_training_attention_floats(&call) * pool.threads
        }
        if work.attention.count < needed { work.attention = try Buffer(needed) }
        call.scratch = work.attention.pointer
        batch.starts.withUnsafeBufferPointer { starts in
            call.starts = starts.baseAddress
            if gradient == nil {
                ck_training_attend(pool.handle, kernels, &call)
            } else {
                ck_training_attend_backward(pool.handle, kernels, &call)
            }
        }
    }

    /// residual + scale · norm(branch)
    private func addToResidual(
        _ branch: UnsafePointer<Float>, norm weight: [Float]?, residual: UnsafePointer<Float>, rows: Int,
        to output: UnsafeMutablePointer<Float>
    ) {
        let width = model.shape.width
        var branch = branch
        if let weight {
            norm(branch, stride: width, weight, rows: rows, to: work.other.pointer, outputStride: width)
            branch = UnsafePointer(work.other.pointer)
        }
        let scale = Float(model.shape.residualScale)
        for index in 0..<rows * width { output[index] = residual[index] + scale * branch[index] }
    }

    /// - Parameter isAgain: whether the output is known already.
    private func forward(_ index: Int, _ batch: TrainingBatch, isAgain: Bool = false) throws(TrainingError) {
        let layer = model.layers[index]
        let state = states[index]
        let x = inputs[index].pointer
        let width = model.shape.width
        let rows = batch.tokens.count
        func normed(_ x: UnsafeMutablePointer<Float>, _ weight: [Float]?, to output: Buffer) {
            if let weight {
                norm(x, stride: width, weight, rows: rows, to: output.pointer, outputStride: width)
            } else {
                output.pointer.update(from: x, count: rows * width)
            }
        }
        normed(x, layer.mixerNorm, to: state.normed)
        let input = state.attentionInput.pointer
        let inputCount = layer.inputs.count
        apply(
            layer.inputs, low: state.low[..<inputCount], x: state.normed.pointer, rows: rows, to: input, stride: layer.inputWidth)
        let heads = heads(layer)
        func normHeads() {
            if heads.isEmpty { return }
            state.raw.pointer.update(from: input, count: rows * layer.inputWidth)
            for part in heads {
                for row in 0..<rows {
                    let at = row * layer.inputWidth + part.offset
                    for head in 0..<part.count {
                        forwardKernels.pointee.rmsnorm(
                            state.raw.pointer + at + head * part.dimension, part.weight, Float(model.shape.normEpsilon),
                            Int32(part.dimension), input + at + head * part.dimension)
                    }
                }
            }
        }
        if layer.attention.headNorm != .rotatedHeads { normHeads() }
        rotate(layer, input, rows: rows, inverse: false)
        if layer.attention.headNorm == .rotatedHeads { normHeads() }
        scaleQueries(layer, input, batch)
        try attention(layer, state, batch)
        let branch = layer.mixerPostNorm == nil ? work.branch : state.attentionOutput
        apply(
            [layer.output], low: state.low[inputCount...inputCount], x: state.attended.pointer, rows: rows, to: branch.pointer,
            stride: width)
        addToResidual(branch.pointer, norm: layer.mixerPostNorm, residual: x, rows: rows, to: state.middle.pointer)
        normed(state.middle.pointer, layer.denseNorm, to: state.denseInput)
        let gates = state.gates.pointer
        apply(
            layer.gates, low: state.low[(inputCount + 1)..<(inputCount + 1 + layer.gates.count)], x: state.denseInput.pointer,
            rows: rows, to: gates, stride: layer.gateWidth)
        ck_training_activate(
            pool.handle, kernels, layer.activation, gates,
            layer.dense.isGated ? gates + layer.dense.width : nil,
            Int32(layer.gateWidth), Int32(rows), Int32(layer.dense.width), state.hidden.pointer)
        // Without a norm after it, the gradient does not need the last product.
        if isAgain, layer.densePostNorm == nil {
            lowOnly(layer.down, low: state.low[layer.projections.count - 1], x: state.hidden.pointer, rows: rows)
            return
        }
        let output = layer.densePostNorm == nil ? work.branch : state.denseOutput
        apply(
            [layer.down], low: state.low[(layer.projections.count - 1)..<layer.projections.count], x: state.hidden.pointer,
            rows: rows, to: output.pointer, stride: width)
        if isAgain { return }
        addToResidual(
            output.pointer, norm: layer.densePostNorm, residual: state.middle.pointer, rows: rows, to: inputs[index + 1].pointer)
    }

    /// x · Aᵀ of one matrix.
    private func lowOnly(_ projection: FrozenModel.Projection, low: Buffer, x: UnsafePointer<Float>, rows: Int) {
        guard let place = factors.places[projection.matrix.name] else { return }
        let operand = pack(x, stride: place.columns, count: rows, k: place.columns, in: work.operand)
        multiply([
            product(
                factors.values.pointer + place.offset, rows: place.rank, columns: place.columns, transposed: false, operand,
                low.pointer, stride: place.rank, adds: false)
        ])
    }

    private func backward(_ index: Int, _ batch: TrainingBatch) throws(TrainingError) {
        let layer = model.layers[index]
        let state = states[index]
        let width = model.shape.width
        let rows = batch.tokens.count
        let scale = Float(model.shape.residualScale)
        let inputCount = layer.inputs.count
        /// The gradient of a branch's last product, in `work.branch`.
        func branchGradient(_ output: Buffer, _ weight: [Float]?) {
            if let weight {
                let scaled = work.other.pointer
                for index in 0..<rows * width { scaled[index] = scale * gradient.pointer[index] }
                work.branch.pointer.update(repeating: 0, count: rows * width)
                normBackward(
                    output.pointer, stride: width, weight, scaled, gradientStride: width, rows: rows, to: work.branch.pointer,
                    outputStride: width)
            } else {
                for index in 0..<rows * width { work.branch.pointer[index] = scale * gradient.pointer[index] }
            }
        }
        /// Adds the gradient of a branch's input to that of the residual stream.
        func addGradient(_ x: UnsafePointer<Float>, _ weight: [Float]?, _ dy: UnsafePointer<Float>) {
            if let weight {
                normBackward(
                    x, stride: width, weight, dy, gradientStride: width, rows: rows, to: gradient.pointer, outputStride: width)
            } else {
                ck_training_add(pool.handle, gradient.pointer, dy, rows * width)
            }
        }
        branchGradient(state.denseOutput, layer.densePostNorm)
        applyBackward(
            [layer.down], low: state.low[(layer.projections.count - 1)..<layer.projections.count], x: state.hidden.pointer,
            rows: rows, dy: work.branch.pointer, stride: width,
            dx: work.wide.pointer)
        let gates = state.gates.pointer
        ck_training_activate_backward(
            pool.handle, kernels, layer.activation, gates,
            layer.dense.isGated ? gates + layer.dense.width : nil,
            Int32(layer.gateWidth), Int32(rows), Int32(layer.dense.width), work.wide.pointer)
        applyBackward(
            layer.gates, low: state.low[(inputCount + 1)..<(inputCount + 1 + layer.gates.count)], x: state.denseInput.pointer,
            rows: rows, dy: gates, stride: layer.gateWidth, dx: work.wide.pointer)
        addGradient(state.middle.pointer, layer.denseNorm, work.wide.pointer)

        branchGradient(state.attentionOutput, layer.mixerPostNorm)
        applyBackward(
            [layer.output], low: state.low[inputCount...inputCount], x: state.attended.pointer, rows: rows,
            dy: work.branch.pointer,
            stride: width, dx: work.wide.pointer)
        try attention(layer, state, batch, gradient: (work.wide, work.other))
        let din = work.other.pointer
        scaleQueries(layer, din, batch)
        let heads = heads(layer)
        func normHeadsBackward() {
            for part in heads {
                for row in 0..<rows {
                    let at = row * layer.inputWidth + part.offset
                    for head in 0..<part.count {
                        let place = at + head * part.dimension
                        let dx = work.wide.pointer
                        dx.update(repeating: 0, count: part.dimension)
                        kernels.pointee.norm_backward(
                            state.raw.pointer + place, part.weight, din + place, Float(model.shape.normEpsilon),
                            Int32(part.dimension), dx)
                        (din + place).update(from: dx, count: part.dimension)
                    }
                }
            }
        }
        if layer.attention.headNorm == .rotatedHeads { normHeadsBackward() }
        rotate(layer, din, rows: rows, inverse: true)
        if layer.attention.headNorm != .rotatedHeads { normHeadsBackward() }
        // The embeddings are not trained: nothing below the first layer needs a gradient.
        applyBackward(
            layer.inputs, low: state.low[..<inputCount], x: state.normed.pointer, rows: rows, dy: din, stride: layer.inputWidth,
            dx: index == 0 ? nil : work.wide.pointer)
        if index > 0 { addGradient(inputs[index].pointer, layer.mixerNorm, work.wide.pointer) }
    }
}

extension ModelShape.Activation {
    /// Nil if its gradient is not implemented.
    var trainingValue: ck_activation? {
        switch self {
        case .silu: CK_SILU
        case .gelu: CK_GELU
        case .reluSquared: CK_RELU_SQUARED
        case .exactGelu, .swigluOAI: nil
        }
    }
}
