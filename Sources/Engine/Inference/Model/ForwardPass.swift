internal import CKernels  // structures of calls
internal import Foundation

/// Consecutive rows of a batch: the next tokens of one sequence.
struct Segment {
    let firstRow: Int
    let rows: Int
    /// The position of the first token in its sequence.
    let position: Int
    let cache: KVCache
    /// What the sequence begins with, if that is more than tokens.
    let input: ModelInput?

    /// What the rows of the sequence are, including those of the segment that are more than tokens.
    var sequence: InputRows { input?.rows ?? cache.rows }
    var hasVisibleRows: Bool { input.map { !$0.rows.visible.isEmpty } ?? false }
}

/// The forward pass of one batch of tokens through all layers of a shape, with activations in scratch memory. A batch has
/// tokens of one or several sequences; the result of a row does not depend on the other sequences.
struct ForwardPass {
    let shape: ModelShape
    let weights: Weights
    let kernels: CPUKernels
    let scratch: Scratch

    var quantizes: Bool { weights.wantsQuantizedActivations }
    var epsilon: Float { Float(shape.normEpsilon) }
    var width: Int { shape.width }

    struct Batch {
        let rows: Int
        let segments: [Segment]
    }

    /// Writes keys, values and states of the batch to the caches; the residual stream remains in scratch memory.
    ///
    /// - Parameters:
    ///   - segments: the parts of `tokens`, in order, each of another cache.
    ///   - states: rows whose residual stream after a layer is copied.
    /// - Returns: false if cancelled.
    func run(
        _ tokens: UnsafeBufferPointer<TokenID>, segments: [Segment], states: inout [RowState], isCancelled: () -> Bool
    ) -> Bool {
        let batch = Batch(rows: tokens.count, segments: segments)
        findVisibleRows(segments)
        for segment in segments where segment.cache.adapter != nil { scratch.adapted.append(segment) }
        defer { scratch.adapted.removeAll(keepingCapacity: true) }
        embed(tokens, batch)
        for index in shape.layers.indices {
            if isCancelled() { return false }
            layer(index, batch)
            for place in states.indices where states[place].layer == index {
                states[place].values = Array(
                    UnsafeBufferPointer(start: scratch.residual + states[place].row * width, count: width))
            }
        }
        return true
    }

    /// Finds the rows of the batch that see later ones.
    private func findVisibleRows(_ segments: [Segment]) {
        for segment in segments where segment.hasVisibleRows {
            let ends = scratch.visibleEnd + segment.firstRow
            ends.update(repeating: 0, count: segment.rows)
            let all = segment.position..<segment.position + segment.rows
            for range in segment.sequence.visible where range.overlaps(all) {
                precondition(range.clamped(to: all) == range, "the caller divides no range of rows that see each other")
                for row in range { ends[row - segment.position] = Int32(range.upperBound) }
            }
        }
    }

    private func embed(_ tokens: UnsafeBufferPointer<TokenID>, _ batch: Batch) {
        let s = scratch
        if let prediction = weights.tensors.prediction { keepHidden(prediction, batch) }
        var embedding = weights.tensors.embedding
        embedding.scale *= Float(shape.embeddingScale)
        for segment in batch.segments {
            let sequence = segment.sequence
            for index in 0..<segment.rows {
                let row = segment.firstRow + index
                if tokens[row] == InputRows.embedded, let input = segment.input {
                    input.copyVector(of: segment.position + index, to: s.residual + row * width)
                } else {
                    kernels.copyRow(tokens[row], of: embedding, to: s.residual + row * width)
                }
                let position = sequence.position(of: segment.position + index)
                for (table, angles) in zip(weights.rotaries, s.angles) {
                    table.fill(
                        position: position, capacity: segment.cache.capacity, cosine: angles.cosine + row * angles.pairs,
                        sine: angles.sine + row * angles.pairs)
                }
            }
        }
        if let prediction = weights.tensors.prediction { joinHidden(prediction, batch) }
        if let input = weights.tensors.perLayerInput { embedPerLayer(input, tokens, batch) }
        guard shape.isEncoder else { return }
        for segment in batch.segments {
            for index in 0..<segment.rows {
                let row = s.residual + (segment.firstRow + index) * width
                if let positions = weights.tensors.positionEmbedding {
                    kernels.copyRow(Int32(segment.position + index), of: positions, to: s.branch)
                    kernels.addBias(s.branch, to: row, rows: 1, columns: width)
                }
                if let type = weights.tensors.tokenType { kernels.addBias(type, to: row, rows: 1, columns: width) }
            }
        }
        normalizeResidual(weights.tensors.embeddingNorm, batch)
    }

    // MARK: - Prediction heads

    /// Normalises the hidden rows, which are in the place of the residual stream, for ``joinHidden(_:_:)``.
    private func keepHidden(_ prediction: ModelTensors.Prediction, _ batch: Batch) {
        let s = scratch
        s.joined.set(rows: batch.rows, columns: 2 * width)
        for row in 0..<batch.rows {
            kernels.normalizeRow(
                s.residual + row * width, prediction.hiddenNorm, epsilon: epsilon, count: width,
                to: s.joined.x + (2 * row + 1) * width)
        }
    }

    /// Makes the input of the layer from the embeddings in the residual stream, and the hidden rows.
    private func joinHidden(_ prediction: ModelTensors.Prediction, _ batch: Batch) {
        let s = scratch
        for row in 0..<batch.rows {
            kernels.normalizeRow(
                s.residual + row * width, prediction.embeddingNorm, epsilon: epsilon, count: width,
                to: s.joined.x + 2 * row * width)
        }
        if quantizes { kernels.quantize(s.joined.rows) }
        multiply(s.joined, product(prediction.input, into: s.residual))
    }

    // MARK: - Norms

    /// Normalises rows of the residual stream; without a norm, copies them. The result is quantised if the weights need it.
    func normalize(_ rows: UnsafePointer<Float>, _ norm: ModelTensors.Norm?, into output: RowBuffer) {
        if shape.norm == .layer, let norm {
            kernels.layerNormalize(
                rows, norm.weight, bias: norm.bias, epsilon: epsilon, to: output.x, output.rows, quantizes: quantizes)
        } else {
            kernels.normalize(rows, norm?.weight, epsilon: epsilon, to: output.x, output.rows, quantizes: quantizes)
        }
    }

    /// Normalises the residual stream itself.
    private func normalizeResidual(_ norm: ModelTensors.Norm?, _ batch: Batch) {
        guard let norm else { return }
        let s = scratch
        s.normed.set(rows: batch.rows, columns: width)
        if shape.norm == .layer {
            kernels.layerNormalize(
                s.residual, norm.weight, bias: norm.bias, epsilon: epsilon, to: s.residual, s.normed.rows, quantizes: false)
        } else {
            kernels.normalize(
                s.residual, norm.weight, epsilon: epsilon, to: s.residual, s.normed.rows, quantizes: false)
        }
    }

    private func layer(_ index: Int, _ batch: Batch) {
        let s = scratch
        let described = shape.layers[index]
        let tensors = weights.tensors.layers[index]
        if let mixer = tensors.mixer {
            s.normed.set(rows: batch.rows, columns: width)
            normalize(s.residual, tensors.mixerNorm, into: s.normed)
            switch (mixer, described.mixer) {
            case (.attention(let weights), .attention(let a)): attention(a, weights, index, batch, tensors.mixerPostNorm)
            case (.latent(let weights), .latent(let a)): latentAttention(a, weights, index, batch, tensors.mixerPostNorm)
            case (.delta(let weights), .delta(let d)): deltaNet(d, weights, index, batch, tensors.mixerPostNorm)
            case (.mamba(let weights), .mamba(let m)): mamba(m, weights, index, batch, tensors.mixerPostNorm)
            case (.convolution(let weights), .convolution(let taps)):
                convolution(taps, weights, index, batch, tensors.mixerPostNorm)
            // No file can cause this: the tensors of each layer are loaded by its shape.
            default: preconditionFailure("The tensors of a layer are created for its shape.")
            }
        }
        normalizeResidual(tensors.mixerResidualNorm, batch)
        if let feedForward = described.feedForward { self.feedForward(feedForward, tensors, batch) }
        normalizeResidual(tensors.feedForwardResidualNorm, batch)
        if let perLayer = tensors.perLayer { addPerLayer(perLayer, index, batch) }
        if tensors.outputScale != 1 {
            for i in 0..<batch.rows * width { s.residual[i] *= tensors.outputScale }
        }
    }

    /// Computes the logits of some rows of the last batch, at most as many as fit, into the rows of `scratch.logits`.
    ///
    /// - Parameter candidates: the tokens whose logits are computed, in ascending order; the other logits remain unchanged. Nil for all.
    func head(_ rows: ArraySlice<Int>, candidates: [TokenID]?) {
        let s = scratch
        precondition(!shape.isEncoder, "encoders have no memory for logits")
        let (count, vocabulary) = (rows.count, shape.vocabularySize)
        // The rows of different sequences are not adjacent.
        for (index, row) in rows.enumerated() {
            (s.branch + index * width).update(from: s.residual + row * width, count: width)
        }
        normalizeForHead(s.branch, rows: count)
        s.products[0] = product(headMatrix, into: s.logits, stride: vocabulary)
        let (bias, cap) = (weights.tensors.headBias, Float(shape.logitSoftCap))
        guard let candidates else {
            kernels.multiply(s.normed.rows, s.products, count: 1)
            if let bias { kernels.addBias(bias, to: s.logits, rows: count, columns: vocabulary) }
            if cap > 0 { kernels.softCap(s.logits, cap, count: count * vocabulary) }
            return
        }
        kernels.multiply(s.normed.rows, s.products, rows: candidates)
        for row in 0..<count {
            let logits = s.logits + row * vocabulary
            if let bias { for token in candidates { logits[Int(token)] += bias[Int(token)] } }
            if cap > 0 { for token in candidates { logits[Int(token)] = cap * tanh(logits[Int(token)] / cap) } }
        }
    }

    func normalizeForHead(_ rows: UnsafePointer<Float>, rows count: Int) {
        let s = scratch
        s.normed.set(rows: count, columns: width)
        normalize(rows, weights.tensors.outputNorm, into: s.normed)
    }

    private var headMatrix: Matrix {
        var matrix = weights.tensors.head
        matrix.scale *= Float(shape.logitScale)
        return matrix
    }

    // MARK: - Attention

    private func attention(
        _ a: ModelShape.Attention, _ w: ModelTensors.Attention, _ index: Int, _ batch: Batch, _ postNorm: UnsafePointer<Float>?
    ) {
        let s = scratch
        var count = 0
        func add(_ matrix: Matrix?, into target: UnsafeMutablePointer<Float>) {
            guard let matrix else { return }
            s.products[count] = product(matrix, into: target)
            count += 1
        }
        add(w.query, into: s.query)
        add(w.key, into: s.key)
        add(w.value, into: s.value)
        add(w.gate, into: s.mixerGate)
        multiply(s.normed, count: count)
        if a.valuesAreKeys, w.key != nil {
            let columns = a.kvHeads * a.keyDimension
            kernels.copyRows(Strided(s.key, columns), to: Strided(s.value, columns), rows: batch.rows, columns: columns)
        }
        s.attended.set(rows: batch.rows, columns: a.heads * a.valueDimension)
        var rotation = Rotation()
        (rotation.q, rotation.k, rotation.v) = (s.query, w.key == nil ? nil : s.key, s.value)
        (rotation.q_bias, rotation.k_bias, rotation.v_bias) = (w.queryBias, w.keyBias, w.valueBias)
        (rotation.q_norm, rotation.k_norm) = (w.queryNorm, w.keyNorm)
        rotation.q_scale = queryScales(a.temperature, batch)
        rotation.norm = a.headNorm.callValue
        rotation.normalize_values = a.normalizesValues
        (rotation.heads, rotation.kv_heads) = (Int32(a.heads), Int32(a.kvHeads))
        (rotation.head_dim, rotation.value_dim) = (Int32(a.keyDimension), Int32(a.valueDimension))
        if let rotary = a.rotary {
            let angles = s.angles[rotary]
            (rotation.cosine, rotation.sine) = (UnsafePointer(angles.cosine), UnsafePointer(angles.sine))
            (rotation.pairs, rotation.halves) = (Int32(angles.pairs), shape.rotaries[rotary].halves)
        }
        var attention = AttentionCall()
        (attention.q, attention.out, attention.sinks) = (UnsafePointer(s.query), s.attended.x, w.sinks)
        (attention.scale, attention.soft_cap) = (Float(a.scale), Float(a.softCap))
        attention.window = Int32(clamping: a.window ?? 0)
        attention.both_sides = shape.isEncoder
        // Where activations are rounded to 8 bits anyway.
        attention.rounds = quantizes && !shape.isEncoder
        attend(rotation, attention, layer: index, batch)
        if w.gate != nil {
            kernels.multiplySigmoid(s.attended.x, s.mixerGate, rows: batch.rows, columns: a.heads * a.valueDimension)
        }
        if quantizes { kernels.quantize(s.attended.rows) }
        addToResidual(w.output, s.attended, bias: w.outputBias, norm: postNorm, batch)
    }

    /// Rotates queries and keys, stores keys and values, and computes the attention of all segments.
    ///
    /// - Parameters:
    ///   - rotation: the step for the whole batch; the fields of the cache and the segment are filled in here.
    ///   - attention: the same; heads and dimensions are those of the rotation.
    func attend(_ rotation: Rotation, _ attention: AttentionCall, layer: Int, _ batch: Batch) {
        for (index, segment) in batch.segments.enumerated() {
            let (cache, row) = (segment.cache, segment.firstRow)
            let stride = Int32(cache.valueStride(layer: layer))
            let (heads, kvHeads) = (Int(rotation.heads), Int(rotation.kv_heads))
            let (keyWidth, valueWidth) = (Int(rotation.head_dim), Int(rotation.value_dim))
            var r = rotation
            r.q += row * heads * keyWidth
            if r.k != nil { r.k += row * kvHeads * keyWidth }
            r.v += row * kvHeads * valueWidth
            if r.q_scale != nil { r.q_scale += row }
            if r.cosine != nil {
                r.cosine += row * Int(r.pairs)
                r.sine += row * Int(r.pairs)
            }
            let place = cache.place(layer: layer)
            (r.pages, r.key_offset, r.value_offset) = (UnsafePointer(cache.pageTable), place.keys, place.values)
            (r.value_stride, r.position) = (stride, Int32(segment.position))
            r.bytes = cache.format == .int8
            (r.rows, r.epsilon) = (Int32(segment.rows), epsilon)
            scratch.rotations[index] = r

            var a = attention
            a.q += row * heads * keyWidth
            a.out += row * heads * valueWidth
            (a.pages, a.key_offset, a.value_offset) = (r.pages, r.key_offset, r.value_offset)
            a.partial = cache.partial
            a.bytes = r.bytes
            (a.heads, a.kv_heads, a.head_dim, a.value_dim) = (r.heads, r.kv_heads, r.head_dim, r.value_dim)
            a.value_stride = stride
            (a.rows, a.length) = (r.rows, r.position + r.rows)
            if segment.hasVisibleRows { a.visible_end = UnsafePointer(scratch.visibleEnd + row) }
            scratch.attentions[index] = a
        }
        kernels.rotateAndStore(scratch.rotations, count: batch.segments.count)
        kernels.attend(scratch.attentions, count: batch.segments.count)
    }

    /// The factors of queries, which depend on the position.
    func queryScales(_ temperature: ModelShape.Temperature?, _ batch: Batch) -> UnsafePointer<Float>? {
        guard let temperature else { return nil }
        for segment in batch.segments {
            let sequence = segment.sequence
            for index in 0..<segment.rows {
                let step = Double(Int(sequence.position(of: segment.position + index).time) / temperature.length)
                scratch.queryScale[segment.firstRow + index] = Float(1 + temperature.beta * log(1 + step))
            }
        }
        return UnsafePointer(scratch.queryScale)
    }

    // MARK: - Per-layer embeddings (Gemma 4)

    private func embedPerLayer(
        _ input: ModelTensors.PerLayerInput, _ tokens: UnsafeBufferPointer<TokenID>, _ batch: Batch
    ) {
        let s = scratch
        let one = shape.perLayerWidth
        let all = one * shape.layers.count
        s.normed.set(rows: batch.rows, columns: width)
        kernels.normalize(s.residual, nil, epsilon: epsilon, to: s.normed.x, s.normed.rows, quantizes: quantizes)
        var projection = input.projection
        projection.scale /= Float(width).squareRoot()
        multiply(s.normed, product(projection, into: s.perLayer))
        var embedding = input.embedding
        embedding.scale *= Float(one).squareRoot()
        for row in 0..<batch.rows {
            // A vector in the place of a token has the embedding of the padding token.
            kernels.copyRow(max(0, tokens[row]), of: embedding, to: s.perLayerRow)
            for layer in shape.layers.indices {
                let vector = s.perLayer + row * all + layer * one
                kernels.normalizeRow(vector, input.norm, epsilon: epsilon, count: one, to: vector)
                for i in 0..<one { vector[i] = (vector[i] + s.perLayerRow[layer * one + i]) * Float(0.5).squareRoot() }
            }
        }
    }

    private func addPerLayer(_ w: ModelTensors.PerLayer, _ index: Int, _ batch: Batch) {
        let s = scratch
        let (rows, one) = (batch.rows, shape.perLayerWidth)
        s.normed.set(rows: batch.rows, columns: width)
        kernels.normalize(s.residual, nil, epsilon: epsilon, to: s.normed.x, s.normed.rows, quantizes: quantizes)
        s.gated.set(rows: batch.rows, columns: one)
        multiply(s.normed, product(w.gate, into: s.gated.x))
        // The vectors of this layer take the place of `up` in the gated activation.
        kernels.copyRows(
            Strided(s.perLayer + index * one, one * shape.layers.count), to: Strided(s.part, one), rows: rows, columns: one)
        kernels.activate(.gelu, s.gated.x, up: s.part, gateBias: nil, upBias: nil, s.gated.rows, quantizes: quantizes)
        multiply(s.gated, product(w.projection, into: s.branch))
        kernels.addToResidual(
            s.branch, bias: nil, norm: w.norm, epsilon: epsilon, scale: 1, to: s.residual, rows: rows, columns: width)
    }
}
