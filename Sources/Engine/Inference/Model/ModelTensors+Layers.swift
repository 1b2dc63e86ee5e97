internal import CKernels  // structures of calls

/// Reads and packs the tensors of the parts of a layer.
extension ModelTensors {
    static func attention(
        _ a: ModelShape.Attention, _ names: LayerNames, _ width: Int, _ ignoresOutputBias: Bool, _ p: inout TensorPacker
    ) throws(ModelError) -> Attention {
        let queryRows = a.heads * a.keyDimension
        let keyRows = a.kvHeads * a.keyDimension
        let valueRows = a.kvHeads * a.valueDimension
        let fused = names(.queryKeyValue)
        let isFused = p.file.tensors[fused] != nil
        let total = queryRows + keyRows + valueRows
        var query: Matrix
        var gate: Matrix?
        if a.isGated {
            // The rows of each head are its query, then its gate.
            let name = names(.query)
            func rows(_ part: Int) -> [Range<Int>] {
                (0..<a.heads).map { (2 * $0 + part) * a.keyDimension..<(2 * $0 + part + 1) * a.keyDimension }
            }
            query = try p.matrix(name, rows: queryRows, columns: width, selection: rows(0), of: 2 * queryRows)
            gate = try p.matrix(name, rows: queryRows, columns: width, selection: rows(1), of: 2 * queryRows)
        } else if isFused {
            query = try p.matrix(fused, rows: queryRows, columns: width, selection: [0..<queryRows], of: total)
        } else {
            query = try p.matrix(names(.query), rows: queryRows, columns: width)
        }
        var result = Attention(
            query: query, gate: gate,
            output: try p.matrix(names(.attentionOutput), rows: width, columns: a.heads * a.valueDimension))
        if a.sharedLayer == nil {
            if isFused {
                result.key = try p.matrix(
                    fused, rows: keyRows, columns: width, selection: [queryRows..<queryRows + keyRows], of: total)
                result.value = try p.matrix(
                    fused, rows: valueRows, columns: width, selection: [queryRows + keyRows..<total], of: total)
            } else {
                result.key = try p.matrix(names(.key), rows: keyRows, columns: width)
                if !a.valuesAreKeys { result.value = try p.matrix(names(.value), rows: valueRows, columns: width) }
            }
        } else {
            // Some files contain projections that a layer with shared keys and values does not use.
            for name in [TensorName.key, .value, .keyNorm] { p.skip(names(name)) }
        }
        if let bias = try p.vectorIfPresent(names(.queryKeyValue, .bias), count: total) {
            (result.queryBias, result.keyBias, result.valueBias) = (bias, bias + queryRows, bias + queryRows + keyRows)
        } else {
            result.queryBias = try p.vectorIfPresent(names(.query, .bias), count: queryRows)
            result.keyBias = try p.vectorIfPresent(names(.key, .bias), count: keyRows)
            result.valueBias = try p.vectorIfPresent(names(.value, .bias), count: valueRows)
        }
        if !ignoresOutputBias {
            result.outputBias = try p.vectorIfPresent(names(.attentionOutput, .bias), count: width)
        }
        if a.headNorm != .none {
            let isWhole = a.headNorm == .whole
            result.queryNorm = try p.vector(names(.queryNorm), count: isWhole ? queryRows : a.keyDimension)
            if a.sharedLayer == nil {
                result.keyNorm = try p.vector(names(.keyNorm), count: isWhole ? keyRows : a.keyDimension)
            }
        }
        if a.hasSinks { result.sinks = try p.vector(names(.sinks), count: a.heads) }
        return result
    }

    static func latent(
        _ a: ModelShape.LatentAttention, _ names: LayerNames, _ width: Int, _ p: inout TensorPacker
    ) throws(ModelError) -> LatentAttention {
        let queryRows = a.heads * (a.plainDimension + a.rotaryDimension)
        var keyUp: [Matrix] = []
        var valueUp: [Matrix] = []
        let old = names(.keyValueUp)
        if p.file.tensors[old] != nil {
            // One tensor projects the latent to the keys and values of each head: transpose the part of the keys on
            // loading.
            let stride = a.plainDimension + a.valueDimension
            for head in 0..<a.heads {
                keyUp.append(
                    try p.transposed(
                        old, rows: head * stride..<head * stride + a.plainDimension, columns: a.kvRank, of: a.heads * stride))
                valueUp.append(
                    try p.matrix(
                        old, rows: a.valueDimension, columns: a.kvRank,
                        selection: [head * stride + a.plainDimension..<(head + 1) * stride], of: a.heads * stride))
            }
        } else {
            for head in 0..<a.heads {
                keyUp.append(
                    try p.matrix(
                        names(.keyUp), rows: a.kvRank, columns: a.plainDimension, slice: head, slices: a.heads))
            }
            for head in 0..<a.heads {
                valueUp.append(
                    try p.matrix(
                        names(.valueUp), rows: a.valueDimension, columns: a.kvRank, slice: head, slices: a.heads))
            }
        }
        var queryDown: Matrix?
        var queryDownNorm: Vector?
        let query: Matrix
        if let rank = a.queryRank {
            queryDown = try p.matrix(names(.queryDown), rows: rank, columns: width)
            queryDownNorm = try p.vector(names(.queryDownNorm), count: rank)
            query = try p.matrix(names(.queryUp), rows: queryRows, columns: rank)
        } else {
            query = try p.matrix(names(.query), rows: queryRows, columns: width)
        }
        return LatentAttention(
            queryDown: queryDown, queryDownNorm: queryDownNorm, query: query,
            keyValueDown: try p.matrix(
                names(.keyValueDown), rows: a.kvRank + a.rotaryDimension, columns: width),
            keyValueNorm: try p.vector(names(.keyValueNorm), count: a.kvRank), keyUp: keyUp, valueUp: valueUp,
            output: try p.matrix(names(.attentionOutput), rows: width, columns: a.heads * a.valueDimension))
    }

    static func delta(
        _ d: ModelShape.DeltaNet, _ names: LayerNames, _ width: Int, _ p: inout TensorPacker
    ) throws(ModelError) -> DeltaNet {
        let beta: Matrix
        let alpha: Matrix
        if d.hasFusedGates {
            // The rows of each key head are β of its value heads, then their α.
            let share = d.valueHeads / d.keyHeads
            func rows(_ part: Int) -> [Range<Int>] {
                (0..<d.keyHeads).map { (2 * $0 + part) * share..<(2 * $0 + part + 1) * share }
            }
            let name = names(.stateBetaAlpha)
            beta = try p.matrix(name, rows: d.valueHeads, columns: width, selection: rows(0), of: 2 * d.valueHeads)
            alpha = try p.matrix(name, rows: d.valueHeads, columns: width, selection: rows(1), of: 2 * d.valueHeads)
        } else {
            beta = try p.matrix(names(.stateBeta), rows: d.valueHeads, columns: width)
            alpha = try p.matrix(names(.stateAlpha), rows: d.valueHeads, columns: width)
        }
        let mixed: Matrix
        let gate: Matrix
        let fused = names(.stateInput)
        if p.file.tensors[fused] != nil {
            // In older files, the rows of each key head are its query, its key, the values and the gates of its value
            // heads.
            let share = d.valueHeads / d.keyHeads * d.valueDimension
            let stride = 2 * d.keyDimension + 2 * share
            func rows(_ start: Int, _ count: Int) -> [Range<Int>] {
                (0..<d.keyHeads).map { $0 * stride + start..<$0 * stride + start + count }
            }
            let total = d.mixedWidth + d.valueWidth
            mixed = try p.matrix(
                fused, rows: d.mixedWidth, columns: width,
                selection: rows(0, d.keyDimension) + rows(d.keyDimension, d.keyDimension) + rows(2 * d.keyDimension, share),
                of: total)
            gate = try p.matrix(
                fused, rows: d.valueWidth, columns: width, selection: rows(2 * d.keyDimension + share, share), of: total)
        } else {
            mixed = try p.matrix(names(.queryKeyValue), rows: d.mixedWidth, columns: width)
            gate = try p.matrix(names(.attentionGate), rows: d.valueWidth, columns: width)
        }
        return DeltaNet(
            mixed: mixed, gate: gate, beta: beta, alpha: alpha,
            convolution: try p.vector(names(.stateConvolution), count: d.convolution * d.mixedWidth),
            a: try p.vector(names(.stateA, .whole), count: d.valueHeads),
            dt: try p.vector(names(.stateStep, .bias), count: d.valueHeads),
            norm: try p.vector(names(.stateNorm), count: d.valueDimension),
            output: try p.matrix(names(.stateOutput), rows: width, columns: d.valueWidth))
    }

    static func mamba(
        _ m: ModelShape.Mamba, _ names: LayerNames, _ width: Int, _ p: inout TensorPacker
    ) throws(ModelError) -> Mamba {
        Mamba(
            input: try p.matrix(names(.stateInput), rows: m.inputWidth, columns: width),
            convolution: try p.vector(names(.stateConvolution), count: m.convolution * m.mixedWidth),
            convolutionBias: try p.vectorIfPresent(names(.stateConvolution, .bias), count: m.mixedWidth),
            a: try p.vector(names(.stateA, .whole), count: m.heads), d: try p.vector(names(.stateD, .whole), count: m.heads),
            dt: try p.vector(names(.stateStep, .bias), count: m.heads),
            norm: try p.vectorIfPresent(names(.stateNorm), count: m.inner),
            output: try p.matrix(names(.stateOutput), rows: width, columns: m.inner))
    }

    static func dense(
        _ d: ModelShape.Dense, _ names: LayerNames, _ width: Int, _ p: inout TensorPacker
    ) throws(ModelError) -> Dense {
        let (gateName, upName, downName): (TensorName, TensorName, TensorName) =
            d.isShared ? (.sharedGate, .sharedUp, .sharedDown) : (.gate, .up, .down)
        var gate: Matrix?
        let up: Matrix
        if d.isGated, p.file.tensors[names(gateName)] == nil {
            // One tensor contains the rows of the gate, then those of `up`.
            gate = try p.matrix(names(upName), rows: d.width, columns: width, selection: [0..<d.width], of: 2 * d.width)
            up = try p.matrix(
                names(upName), rows: d.width, columns: width, selection: [d.width..<2 * d.width], of: 2 * d.width)
        } else {
            if d.isGated { gate = try p.matrix(names(gateName), rows: d.width, columns: width) }
            up = try p.matrix(names(upName), rows: d.width, columns: width)
        }
        var result = Dense(gate: gate, up: up, down: try p.matrix(names(downName), rows: width, columns: d.width))
        result.gateBias = try p.vectorIfPresent(names(gateName, .bias), count: d.width)
        result.upBias = try p.vectorIfPresent(names(upName, .bias), count: d.width)
        result.downBias = try p.vectorIfPresent(names(downName, .bias), count: width)
        if let outputGate = d.outputGate { result.outputGate = try p.vector(names(outputGate), count: width) }
        if let norm = d.postNorm { result.postNorm = try p.vector(names(norm), count: width) }
        return result
    }

    static func experts(
        _ e: ModelShape.Experts, _ names: LayerNames, _ width: Int, _ p: inout TensorPacker
    ) throws(ModelError) -> Experts {
        func all(
            _ stack: TensorName, _ single: TensorName? = nil, rows: Int, columns: Int, selection: Range<Int>? = nil,
            of total: Int? = nil, _ p: inout TensorPacker
        ) throws(ModelError) -> [Matrix] {
            var matrices: [Matrix] = []
            matrices.reserveCapacity(e.count)
            for index in 0..<e.count {
                // Old files have a separate tensor for each expert.
                if let own = single.map({ names($0, expert: index) }), p.file.tensors[own] != nil {
                    matrices.append(try p.matrix(own, rows: rows, columns: columns))
                } else {
                    matrices.append(
                        try p.matrix(
                            names(stack), rows: rows, columns: columns, selection: selection.map { [$0] },
                            of: total, slice: index, slices: e.count))
                }
            }
            return matrices
        }
        var gate: [Matrix] = []
        var up: [Matrix] = []
        if e.isGated, p.file.tensors[names(.expertGatesAndUps)] != nil {
            gate = try all(.expertGatesAndUps, rows: e.width, columns: width, selection: 0..<e.width, of: 2 * e.width, &p)
            up = try all(.expertGatesAndUps, rows: e.width, columns: width, selection: e.width..<2 * e.width, of: 2 * e.width, &p)
        } else {
            if e.isGated { gate = try all(.expertGates, .gate, rows: e.width, columns: width, &p) }
            up = try all(.expertUps, .up, rows: e.width, columns: width, &p)
        }
        var result = Experts(
            router: try p.matrix(names(.router), rows: e.count, columns: width), gate: gate, up: up,
            down: try all(.expertDowns, .down, rows: width, columns: e.width, &p))
        result.routerBias = try p.vectorIfPresent(names(.router, .bias), count: e.count)
        result.selectionBias = try p.vectorIfPresent(names(.selectionBias, .bias), count: e.count)
        result.gateBias = try p.vectorIfPresent(names(.expertGates, .bias), count: e.count * e.width)
        result.upBias = try p.vectorIfPresent(names(.expertUps, .bias), count: e.count * e.width)
        result.downBias = try p.vectorIfPresent(names(.expertDowns, .bias), count: e.count * width)
        if let scale = e.routerScale {
            result.routerNorm = try p.vector(names(scale, .scale), count: width, times: 1 / Float(width).squareRoot())
        }
        if let norm = e.norm { result.norm = try p.vector(names(norm), count: width) }
        if let norm = e.postNorm { result.postNorm = try p.vector(names(norm), count: width) }
        return result
    }
}
