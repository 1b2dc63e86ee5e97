internal import CKernels
internal import Foundation

extension ForwardPass {
    // MARK: - Feed-forward

    func feedForward(_ f: ModelShape.FeedForward, _ w: ModelTensors.Layer, _ batch: Batch) {
        let s = scratch
        s.normed.set(rows: batch.rows, columns: width)
        normalize(s.residual, w.feedForwardNorm, into: s.normed)
        if let dense = w.dense, let d = f.dense, w.experts == nil, dense.outputGate == nil, dense.postNorm == nil {
            activateDense(d, dense, batch)
            addBranch(dense.down, s.gated, bias: dense.downBias, norm: w.feedForwardPostNorm, batch)
            return
        }
        // The outputs of several parts are summed up before they are added to the residual stream.
        let rows = Int32(batch.rows)
        memset(s.branch, 0, batch.rows * width * 4)
        if let dense = w.dense, let d = f.dense {
            activateDense(d, dense, batch)
            multiply(s.gated, product(dense.down, into: s.part))
            if let bias = dense.downBias { ck_add_bias(kernels, s.part, bias, rows, Int32(width)) }
            if let gate = dense.outputGate {
                ck_scale_by_gate(s.part, rows, Int32(width), s.normed.x, gate, Int32(width))
            }
            ck_add_branch(handle, kernels, s.part, nil, dense.postNorm, epsilon, 1, s.branch, rows, Int32(width))
        }
        if let experts = w.experts, let e = f.experts {
            runExperts(e, experts, batch)
            ck_add_branch(handle, kernels, s.part, nil, experts.postNorm, epsilon, 1, s.branch, rows, Int32(width))
        }
        ck_add_branch(
            handle, kernels, s.branch, nil, w.feedForwardPostNorm, epsilon, Float(shape.residualScale), s.residual, rows,
            Int32(width))
    }

    private func activateDense(_ d: ModelShape.Dense, _ w: ModelTensors.Dense, _ batch: Batch) {
        let s = scratch
        s.gated.set(rows: batch.rows, columns: d.width)
        if let gate = w.gate {
            multiply(s.normed, product(gate, into: s.gated.x), product(w.up, into: s.up))
            ck_activate(
                handle, kernels, d.activation.kernelValue, s.gated.x, s.up, w.gateBias, w.upBias, &s.gated.rows, quantizes)
        } else {
            multiply(s.normed, product(w.up, into: s.gated.x))
            ck_activate(handle, kernels, d.activation.kernelValue, s.gated.x, nil, w.upBias, nil, &s.gated.rows, quantizes)
        }
    }

    /// Routes each row to its experts and stores the weighted sum in `scratch.part`. The rows of one expert are
    /// computed together, but the result of a row does not depend on the other rows.
    private func runExperts(_ e: ModelShape.Experts, _ w: ModelTensors.Experts, _ batch: Batch) {
        let s = scratch
        let rows = batch.rows
        var routed = s.normed
        if let norm = w.routerNorm {
            s.router.set(rows: rows, columns: width)
            ck_normalize(handle, kernels, s.residual, norm, epsilon, s.router.x, &s.router.rows, quantizes)
            routed = s.router
        }
        if let norm = w.norm {
            ck_normalize(handle, kernels, s.residual, norm, epsilon, s.normed.x, &s.normed.rows, quantizes)
        }
        multiply(routed, product(w.router, into: s.routerLogits))
        var routing = ck_routing(
            experts: Int32(e.count), used: Int32(e.used), groups: Int32(e.groups), used_groups: Int32(e.usedGroups),
            gating: e.gating.kernelValue, normalizes: e.normalizes, scale: Float(e.scale), bias: w.routerBias,
            selection_bias: w.selectionBias)
        ck_route(&routing, s.routerLogits, Int32(rows), s.chosen, s.expertWeights)

        // Sort (row, expert) pairs by expert.
        let pairs = rows * e.used
        for expert in 0...e.count { s.expertStart[expert] = 0 }
        for pair in 0..<pairs { s.expertStart[Int(s.chosen[pair]) + 1] += 1 }
        for expert in 0..<e.count { s.expertStart[expert + 1] += s.expertStart[expert] }
        for pair in 0..<pairs {
            let expert = Int(s.chosen[pair])
            let index = s.expertStart[expert]
            s.expertStart[expert] += 1
            s.place[pair] = index
            s.source[Int(index)] = Int32(pair / e.used)
        }
        func start(_ expert: Int) -> Int { expert == 0 ? 0 : Int(s.expertStart[expert - 1]) }
        func count(_ expert: Int) -> Int { Int(s.expertStart[expert]) - start(expert) }

        s.gathered.set(rows: pairs, columns: width)
        s.expertGate.set(rows: pairs, columns: e.width)
        ck_gather(handle, &s.normed.rows, s.source, &s.gathered.rows, quantizes)
        var products = 0
        for expert in 0..<e.count where count(expert) > 0 {
            s.expertRows[expert] = s.gathered.slice(from: start(expert), count: count(expert))
            let gate = e.isGated ? w.gate[expert] : w.up[expert]
            let offset = start(expert) * e.width
            s.products[products] = product(gate, into: s.expertGate.x + offset)
            s.products[products].activations = UnsafePointer(s.expertRows + expert)
            products += 1
            guard e.isGated else { continue }
            s.products[products] = product(w.up[expert], into: s.expertUp + offset)
            s.products[products].activations = UnsafePointer(s.expertRows + expert)
            products += 1
        }
        ck_matmul(handle, kernels, &s.gathered.rows, s.products, Int32(products))
        func addBias(_ bias: UnsafePointer<Float>?, _ target: UnsafeMutablePointer<Float>, _ columns: Int) {
            guard let bias else { return }
            for expert in 0..<e.count where count(expert) > 0 {
                ck_add_bias(
                    kernels, target + start(expert) * columns, bias + expert * columns, Int32(count(expert)), Int32(columns))
            }
        }
        addBias(e.isGated ? w.gateBias : w.upBias, s.expertGate.x, e.width)
        if e.isGated { addBias(w.upBias, s.expertUp, e.width) }
        ck_activate(
            handle, kernels, e.activation.kernelValue, s.expertGate.x, e.isGated ? UnsafePointer(s.expertUp) : nil, nil, nil,
            &s.expertGate.rows, quantizes)
        products = 0
        for expert in 0..<e.count where count(expert) > 0 {
            s.expertRows[expert] = s.expertGate.slice(from: start(expert), count: count(expert))
            s.products[products] = product(w.down[expert], into: s.expertOutput + start(expert) * width)
            s.products[products].activations = UnsafePointer(s.expertRows + expert)
            products += 1
        }
        ck_matmul(handle, kernels, &s.expertGate.rows, s.products, Int32(products))
        addBias(w.downBias, s.expertOutput, width)
        memset(s.part, 0, rows * width * 4)
        ck_combine(
            handle, s.expertOutput, s.place, s.expertWeights, Int32(rows), Int32(e.used), Int32(width), s.part)
    }
}

extension ModelShape.Activation {
    fileprivate var kernelValue: ck_activation {
        switch self {
        case .silu: CK_SILU
        case .gelu: CK_GELU
        case .exactGelu: CK_GELU_ERF
        case .reluSquared: CK_RELU_SQUARED
        case .swigluOAI: CK_SWIGLU_OAI
        }
    }
}

extension ModelShape.Gating {
    fileprivate var kernelValue: ck_gating {
        switch self {
        case .softmax: CK_GATE_SOFTMAX
        case .sigmoid: CK_GATE_SIGMOID
        case .softmaxOfChosen: CK_GATE_SOFTMAX_CHOSEN
        }
    }
}
