internal import CKernels  // structures of calls

/// Attention over a latent that all heads share (multi-head latent attention, arXiv:2405.04434).
extension ForwardPass {
    func latentAttention(
        _ a: ModelShape.LatentAttention, _ w: ModelTensors.LatentAttention, _ index: Int, _ batch: Batch,
        _ postNorm: UnsafePointer<Float>?
    ) {
        let s = scratch
        let rows = batch.rows
        let (plain, rotated, rank, heads) = (a.plainDimension, a.rotaryDimension, a.kvRank, a.heads)
        let (headWidth, keyWidth) = (plain + rotated, rank + rotated)
        // Queries, through a low-rank latent if the model has one; and the shared latent of keys and values.
        let plainQuery = s.mixerGate
        if let down = w.queryDown {
            s.latent.set(rows: batch.rows, columns: Int(down.rows))
            multiply(s.normed, product(down, into: s.latent.x), product(w.keyValueDown, into: s.value))
            kernels.normalize(
                s.latent.x, w.queryDownNorm, epsilon: epsilon, to: s.latent.x, s.latent.rows, quantizes: quantizes)
            multiply(s.latent, product(w.query, into: plainQuery))
        } else {
            multiply(s.normed, product(w.query, into: plainQuery), product(w.keyValueDown, into: s.value))
        }
        for row in 0..<batch.rows {
            let latent = s.value + row * keyWidth
            let key = s.key + row * keyWidth
            kernels.normalizeRow(latent, w.keyValueNorm, epsilon: epsilon, count: rank, to: key)
            (key + rank).update(from: latent + rank, count: rotated)
            // The values are the latents; they overwrite rows that have been read already.
            (s.value + row * rank).update(from: key, count: rank)
        }
        // Absorbed queries: the plain part of each query, multiplied by its head's key projection.
        s.heads.set(rows: heads * batch.rows, columns: plain)
        for head in 0..<heads {
            kernels.copyRows(
                Strided(plainQuery + head * headWidth, heads * headWidth),
                to: Strided(s.heads.x + head * batch.rows * plain, plain), rows: rows, columns: plain)
        }
        multiplyHeads(w.keyUp, into: s.query, offset: keyWidth, stride: heads * keyWidth, batch)
        for head in 0..<heads {
            kernels.copyRows(
                Strided(plainQuery + head * headWidth + plain, heads * headWidth),
                to: Strided(s.query + head * keyWidth + rank, heads * keyWidth), rows: rows, columns: rotated)
        }
        let angles = s.angles[a.rotary]
        var rotation = Rotation()
        (rotation.q, rotation.k, rotation.v) = (s.query, s.key, s.value)
        rotation.q_scale = queryScales(a.temperature, batch)
        (rotation.cosine, rotation.sine) = (UnsafePointer(angles.cosine), UnsafePointer(angles.sine))
        (rotation.heads, rotation.kv_heads) = (Int32(heads), 1)
        (rotation.head_dim, rotation.value_dim) = (Int32(keyWidth), Int32(rank))
        (rotation.pairs, rotation.first) = (Int32(angles.pairs), Int32(rank))
        rotation.halves = shape.rotaries[a.rotary].halves
        var attention = AttentionCall()
        (attention.q, attention.out, attention.scale) = (UnsafePointer(s.query), s.mixerGate, Float(a.scale))
        attention.rounds = quantizes
        attend(rotation, attention, layer: index, batch)
        s.heads.set(rows: heads * batch.rows, columns: rank)
        for head in 0..<heads {
            kernels.copyRows(
                Strided(s.mixerGate + head * rank, heads * rank), to: Strided(s.heads.x + head * batch.rows * rank, rank),
                rows: rows, columns: rank)
        }
        s.attended.set(rows: batch.rows, columns: heads * a.valueDimension)
        multiplyHeads(w.valueUp, into: s.attended.x, offset: a.valueDimension, stride: heads * a.valueDimension, batch)
        if quantizes { kernels.quantize(s.attended.rows) }
        addToResidual(w.output, s.attended, bias: nil, norm: postNorm, batch)
    }

    /// Computes one product per head, with the rows of `scratch.heads`, which are ordered by head.
    private func multiplyHeads(
        _ matrices: [Matrix], into y: UnsafeMutablePointer<Float>, offset: Int, stride: Int, _ batch: Batch
    ) {
        let s = scratch
        if quantizes { kernels.quantize(s.heads.rows) }
        for (head, matrix) in matrices.enumerated() {
            s.expertRows[head] = s.heads.slice(from: head * batch.rows, count: batch.rows)
            s.products[head] = product(matrix, into: y + head * offset, stride: stride)
            s.products[head].activations = UnsafePointer(s.expertRows + head)
        }
        kernels.multiply(s.heads.rows, s.products, count: matrices.count)
    }
}
