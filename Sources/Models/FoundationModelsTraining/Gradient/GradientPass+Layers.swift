internal import CKernels
internal import Foundation
internal import Inference

/// The passes through one layer.
extension GradientPass {
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
                let factor = Float(1 + temperature.beta * log(1 + Double(Int(batch.positions[row]) / temperature.length)))
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
            batch.prefixes.withUnsafeBufferPointer { prefixes in
                batch.branches.withUnsafeBufferPointer { branches in
                    call.starts = starts.baseAddress
                    if batch.hasBranches { (call.prefixes, call.branches) = (prefixes.baseAddress, branches.baseAddress) }
                    if gradient == nil {
                        ck_training_attend(pool.handle, kernels, &call)
                    } else {
                        ck_training_attend_backward(pool.handle, kernels, &call)
                    }
                }
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
    func forward(_ index: Int, _ batch: TrainingBatch, isAgain: Bool = false) throws(TrainingError) {
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

    func backward(_ index: Int, _ batch: TrainingBatch) throws(TrainingError) {
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
        // Nothing below the first layer with factors needs a gradient.
        applyBackward(
            layer.inputs, low: state.low[..<inputCount], x: state.normed.pointer, rows: rows, dy: din, stride: layer.inputWidth,
            dx: index == firstTrained ? nil : work.wide.pointer)
        if index > firstTrained { addGradient(inputs[index].pointer, layer.mixerNorm, work.wide.pointer) }
    }
}
