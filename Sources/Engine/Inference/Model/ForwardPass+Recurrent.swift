internal import CKernels  // structures of calls

/// Layers with a state instead of keys and values.
extension ForwardPass {
    func deltaNet(
        _ d: ModelShape.DeltaNet, _ w: ModelTensors.DeltaNet, _ index: Int, _ batch: Batch, _ postNorm: UnsafePointer<Float>?
    ) {
        let s = scratch
        multiply(
            s.normed, product(w.mixed, into: s.query), product(w.gate, into: s.mixerGate), product(w.beta, into: s.key),
            product(w.alpha, into: s.value))
        s.attended.set(rows: batch.rows, columns: d.valueWidth)
        for segment in batch.segments {
            let row = segment.firstRow
            let mixed = s.query + row * d.mixedWidth
            kernels.convolve(
                Strided(mixed, d.mixedWidth), state: segment.cache.convolution(layer: index), kernel: w.convolution, bias: nil,
                rows: segment.rows, channels: d.mixedWidth, width: d.convolution, silu: true)
            let call = DeltaNetCall(
                mixed: mixed, beta: s.key + row * d.valueHeads, alpha: s.value + row * d.valueHeads, a: w.a, dt: w.dt,
                gate: s.mixerGate + row * d.valueWidth, norm: w.norm, state: segment.cache.state(layer: index),
                out: s.attended.x + row * d.valueWidth, epsilon: epsilon, rows: Int32(segment.rows),
                key_heads: Int32(d.keyHeads), value_heads: Int32(d.valueHeads), key_dim: Int32(d.keyDimension),
                value_dim: Int32(d.valueDimension), tiled: d.isTiled)
            kernels.deltaNet(call)
        }
        if quantizes { kernels.quantize(s.attended.rows) }
        addToResidual(w.output, s.attended, bias: nil, norm: postNorm, batch)
    }

    func mamba(
        _ m: ModelShape.Mamba, _ w: ModelTensors.Mamba, _ index: Int, _ batch: Batch, _ postNorm: UnsafePointer<Float>?
    ) {
        let s = scratch
        multiply(s.normed, product(w.input, into: s.query))
        kernels.copyRows(
            Strided(s.query + m.inner, m.inputWidth), to: Strided(s.mixerGate, m.mixedWidth), rows: batch.rows,
            columns: m.mixedWidth)
        s.attended.set(rows: batch.rows, columns: m.inner)
        for segment in batch.segments {
            let input = s.query + segment.firstRow * m.inputWidth
            let mixed = s.mixerGate + segment.firstRow * m.mixedWidth
            kernels.convolve(
                Strided(mixed, m.mixedWidth), state: segment.cache.convolution(layer: index), kernel: w.convolution,
                bias: w.convolutionBias, rows: segment.rows, channels: m.mixedWidth, width: m.convolution, silu: true)
            let call = MambaCall(
                mixed: mixed, z: input, dt: input + m.inner + m.mixedWidth, dt_bias: w.dt, a: w.a, d: w.d, norm: w.norm,
                state: segment.cache.state(layer: index), out: s.attended.x + segment.firstRow * m.inner, epsilon: epsilon,
                rows: Int32(segment.rows), inner: Int32(m.inner), heads: Int32(m.heads), groups: Int32(m.groups),
                state_size: Int32(m.stateSize), stride: Int32(m.inputWidth))
            kernels.mambaScan(call)
        }
        if quantizes { kernels.quantize(s.attended.rows) }
        addToResidual(w.output, s.attended, bias: nil, norm: postNorm, batch)
    }

    /// A gated short convolution (LFM 2): out = C ⊙ conv(B ⊙ x).
    func convolution(
        _ taps: Int, _ w: ModelTensors.Convolution, _ index: Int, _ batch: Batch, _ postNorm: UnsafePointer<Float>?
    ) {
        let s = scratch
        multiply(s.normed, product(w.input, into: s.query))
        kernels.multiplyElements(
            Strided(s.query, 3 * width), Strided(s.query + 2 * width, 3 * width), to: Strided(s.query, 3 * width),
            rows: batch.rows, columns: width)
        for segment in batch.segments {
            kernels.convolve(
                Strided(s.query + segment.firstRow * 3 * width, 3 * width), state: segment.cache.convolution(layer: index),
                kernel: w.kernel, bias: nil, rows: segment.rows, channels: width, width: taps, silu: false)
        }
        s.attended.set(rows: batch.rows, columns: width)
        kernels.multiplyElements(
            Strided(s.query, 3 * width), Strided(s.query + width, 3 * width), to: Strided(s.attended.x, width),
            rows: batch.rows, columns: width)
        if quantizes { kernels.quantize(s.attended.rows) }
        addToResidual(w.output, s.attended, bias: nil, norm: postNorm, batch)
    }
}
