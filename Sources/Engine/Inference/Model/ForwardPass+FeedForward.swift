internal import CKernels  // structures of calls
internal import Foundation

extension ForwardPass {
    // MARK: - Feed-forward

    func feedForward(_ f: ModelShape.FeedForward, _ w: ModelTensors.Layer, _ batch: Batch) {
        let s = scratch
        s.normed.set(rows: batch.rows, columns: width)
        normalize(s.residual, w.feedForwardNorm, into: s.normed)
        if let dense = w.dense, let d = f.dense, w.experts == nil, dense.outputGate == nil, dense.postNorm == nil {
            activateDense(d, dense, batch)
            addToResidual(dense.down, s.gated, bias: dense.downBias, norm: w.feedForwardPostNorm, batch)
            return
        }
        // The outputs of several parts are summed up before they are added to the residual stream.
        memset(s.branch, 0, batch.rows * width * 4)
        if let dense = w.dense, let d = f.dense {
            activateDense(d, dense, batch)
            multiply(s.gated, product(dense.down, into: s.part))
            if let bias = dense.downBias { kernels.addBias(bias, to: s.part, rows: batch.rows, columns: width) }
            if let gate = dense.outputGate {
                kernels.scaleByGate(
                    s.part, rows: batch.rows, columns: width, input: s.normed.x, vector: gate, width: width)
            }
            addPart(norm: dense.postNorm, batch)
        }
        if let experts = w.experts, let e = f.experts {
            runExperts(e, experts, batch)
            addPart(norm: experts.postNorm, batch)
        }
        kernels.addToResidual(
            s.branch, bias: nil, norm: w.feedForwardPostNorm, epsilon: epsilon, scale: Float(shape.residualScale),
            to: s.residual, rows: batch.rows, columns: width)
    }

    /// Adds the output of one part to the sum.
    private func addPart(norm: UnsafePointer<Float>?, _ batch: Batch) {
        kernels.addToResidual(
            scratch.part, bias: nil, norm: norm, epsilon: epsilon, scale: 1, to: scratch.branch, rows: batch.rows,
            columns: width)
    }

    private func activateDense(_ d: ModelShape.Dense, _ w: ModelTensors.Dense, _ batch: Batch) {
        let s = scratch
        s.gated.set(rows: batch.rows, columns: d.width)
        if let gate = w.gate {
            multiply(s.normed, product(gate, into: s.gated.x), product(w.up, into: s.up))
            kernels.activate(
                d.activation, s.gated.x, up: s.up, gateBias: w.gateBias, upBias: w.upBias, s.gated.rows, quantizes: quantizes)
        } else {
            multiply(s.normed, product(w.up, into: s.gated.x))
            kernels.activate(
                d.activation, s.gated.x, up: nil, gateBias: w.upBias, upBias: nil, s.gated.rows, quantizes: quantizes)
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
            kernels.normalize(s.residual, norm, epsilon: epsilon, to: s.router.x, s.router.rows, quantizes: quantizes)
            routed = s.router
        }
        if let norm = w.norm {
            kernels.normalize(s.residual, norm, epsilon: epsilon, to: s.normed.x, s.normed.rows, quantizes: quantizes)
        }
        multiply(routed, product(w.router, into: s.routerLogits))
        let routing = Routing(
            experts: Int32(e.count), used: Int32(e.used), groups: Int32(e.groups), used_groups: Int32(e.usedGroups),
            gating: e.gating.callValue, normalizes: e.normalizes, scale: Float(e.scale), bias: w.routerBias,
            selection_bias: w.selectionBias)
        kernels.route(routing, s.routerLogits, rows: rows, chosen: s.chosen, weights: s.expertWeights)

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
        kernels.gather(s.normed.rows, s.source, to: s.gathered.rows, quantized: quantizes)
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
        kernels.multiply(s.gathered.rows, s.products, count: products)
        func addBias(_ bias: UnsafePointer<Float>?, _ target: UnsafeMutablePointer<Float>, _ columns: Int) {
            guard let bias else { return }
            for expert in 0..<e.count where count(expert) > 0 {
                kernels.addBias(
                    bias + expert * columns, to: target + start(expert) * columns, rows: count(expert), columns: columns)
            }
        }
        addBias(e.isGated ? w.gateBias : w.upBias, s.expertGate.x, e.width)
        if e.isGated { addBias(w.upBias, s.expertUp, e.width) }
        kernels.activate(
            e.activation, s.expertGate.x, up: e.isGated ? UnsafePointer(s.expertUp) : nil, gateBias: nil, upBias: nil,
            s.expertGate.rows, quantizes: quantizes)
        products = 0
        for expert in 0..<e.count where count(expert) > 0 {
            s.expertRows[expert] = s.expertGate.slice(from: start(expert), count: count(expert))
            s.products[products] = product(w.down[expert], into: s.expertOutput + start(expert) * width)
            s.products[products].activations = UnsafePointer(s.expertRows + expert)
            products += 1
        }
        kernels.multiply(s.expertGate.rows, s.products, count: products)
        addBias(w.downBias, s.expertOutput, width)
        memset(s.part, 0, rows * width * 4)
        kernels.combine(
            s.expertOutput, s.place, s.expertWeights, rows: rows, used: e.used, columns: width, to: s.part)
    }
}
