internal import CKernels  // structures of calls

/// The packed tensors of a model, as pointers into packed memory.
struct ModelTensors {
    typealias Vector = UnsafePointer<Float>

    /// A norm of the residual stream. Only layer norms have a bias.
    struct Norm {
        var weight: Vector
        var bias: Vector?
    }

    struct Layer {
        var mixerNorm: Norm?
        var mixerPostNorm: Vector?
        var mixerResidualNorm: Norm?
        var mixer: Mixer?
        var feedForwardNorm: Norm?
        var feedForwardPostNorm: Vector?
        var feedForwardResidualNorm: Norm?
        var dense: Dense?
        var experts: Experts?
        var perLayer: PerLayer?
        var outputScale: Float = 1
    }

    enum Mixer {
        case attention(Attention)
        case latent(LatentAttention)
        case delta(DeltaNet)
        case mamba(Mamba)
        case convolution(Convolution)
    }

    struct Attention {
        var query: Matrix
        var gate: Matrix?
        /// Nil if the keys and values of another layer are used.
        var key: Matrix?
        var value: Matrix?
        var output: Matrix
        var queryBias: Vector?
        var keyBias: Vector?
        var valueBias: Vector?
        var outputBias: Vector?
        var queryNorm: Vector?
        var keyNorm: Vector?
        var sinks: Vector?
    }

    struct LatentAttention {
        var queryDown: Matrix?
        var queryDownNorm: Vector?
        var query: Matrix
        var keyValueDown: Matrix
        var keyValueNorm: Vector
        /// For each head, the projections from the plain part of a query to the latent, and from the latent to the
        /// value.
        var keyUp: [Matrix]
        var valueUp: [Matrix]
        var output: Matrix
    }

    struct DeltaNet {
        var mixed: Matrix
        var gate: Matrix
        var beta: Matrix
        var alpha: Matrix
        var convolution: Vector
        var a: Vector
        var dt: Vector
        var norm: Vector
        var output: Matrix
    }

    struct Mamba {
        var input: Matrix
        var convolution: Vector
        var convolutionBias: Vector?
        var a: Vector
        var d: Vector
        var dt: Vector
        var norm: Vector?
        var output: Matrix
    }

    struct Convolution {
        var input: Matrix
        var kernel: Vector
        var output: Matrix
    }

    struct Dense {
        var gate: Matrix?
        var up: Matrix
        var down: Matrix
        var gateBias: Vector?
        var upBias: Vector?
        var downBias: Vector?
        var outputGate: Vector?
        var postNorm: Vector?
    }

    struct Experts {
        var router: Matrix
        var routerBias: Vector?
        var routerNorm: Vector?
        var selectionBias: Vector?
        var norm: Vector?
        var postNorm: Vector?
        var gate: [Matrix]
        var up: [Matrix]
        var down: [Matrix]
        var gateBias: Vector?
        var upBias: Vector?
        var downBias: Vector?
    }

    /// Per-layer embeddings of one layer (Gemma 4).
    struct PerLayer {
        var gate: Matrix
        var projection: Matrix
        var norm: Vector
    }

    /// The tensors that compute the per-layer embeddings of all layers.
    struct PerLayerInput {
        var embedding: Matrix
        var projection: Matrix
        var norm: Vector
    }

    /// [vocabulary][width]
    var embedding: Matrix
    /// [vocabulary][width]; the embedding matrix if the weights are tied.
    var head: Matrix
    var headBias: Vector?
    var outputNorm: Norm?
    /// [positions][width]
    var positionEmbedding: Matrix?
    /// The embedding of the first token type, `[width]`.
    var tokenType: Vector?
    var embeddingNorm: Norm?
    /// The matrices that pooled vectors are multiplied by, in order.
    var projections: [Matrix] = []
    var perLayerInput: PerLayerInput?
    var layers: [Layer] = []

    init(_ shape: ModelShape, _ p: inout TensorPacker) throws(ModelError) {
        // The vectors of encoders are compared with each other; logits of language models need more precision.
        p.roundsActivations = shape.isEncoder
        // An encoder has no output head that could share its embeddings.
        embedding = try p.matrix(
            "token_embd.weight", rows: shape.vocabularySize, columns: shape.width, isTable: shape.isEncoder)
        head = try p.matrixIfPresent("output.weight", rows: shape.vocabularySize, columns: shape.width) ?? embedding
        headBias = try p.vectorIfPresent("output.bias", count: shape.vocabularySize)
        outputNorm = try Self.norm(shape.outputNorm, shape, &p)
        if shape.positionCount > 0 {
            positionEmbedding = try p.matrix(
                "position_embd.weight", rows: shape.positionCount, columns: shape.width, isTable: true)
        }
        if shape.hasTokenTypes { tokenType = try p.firstRow("token_types.weight", columns: shape.width) }
        embeddingNorm = try Self.norm(shape.embeddingNorm, shape, &p)
        var columns = shape.width
        for projection in shape.projections {
            projections.append(try p.matrix(projection.name, rows: projection.width, columns: columns))
            columns = projection.width
        }
        if shape.isEncoder {
            // The classification heads of rerankers and of masked language models.
            for name in ["cls.weight", "cls.bias", "cls.norm.weight", "cls.output.weight", "cls.output.bias"] { p.skip(name) }
        }
        if shape.perLayerWidth > 0 {
            let all = shape.perLayerWidth * shape.layers.count
            perLayerInput = PerLayerInput(
                embedding: try p.matrix("per_layer_token_embd.weight", rows: shape.vocabularySize, columns: all),
                projection: try p.matrix("per_layer_model_proj.weight", rows: all, columns: shape.width),
                norm: try p.vector("per_layer_proj_norm.weight", count: shape.perLayerWidth))
        }
        layers.reserveCapacity(shape.layers.count)
        for (index, layer) in shape.layers.enumerated() {
            layers.append(try Self.layer(layer, "blk.\(index).", shape, &p))
            for name in shape.ignoredTensors { p.skip("blk.\(index).\(name)") }
        }
    }

    /// A norm of the residual stream. The bias of a layer norm, if the file has one, has the suffix `.bias`.
    private static func norm(_ name: String?, _ shape: ModelShape, _ p: inout TensorPacker) throws(ModelError) -> Norm? {
        guard let name else { return nil }
        var norm = Norm(weight: try p.vector(name, count: shape.width))
        if shape.norm == .layer, name.hasSuffix(".weight") {
            norm.bias = try p.vectorIfPresent(name.dropLast("weight".count) + "bias", count: shape.width)
        }
        return norm
    }

    // MARK: - Layers

    private static func layer(
        _ layer: ModelShape.Layer, _ prefix: String, _ shape: ModelShape, _ p: inout TensorPacker
    ) throws(ModelError) -> Layer {
        let width = shape.width
        func norm(_ name: String?, _ p: inout TensorPacker) throws(ModelError) -> Norm? {
            try Self.norm(name.map { prefix + $0 }, shape, &p)
        }
        var result = Layer(
            mixerNorm: try norm(layer.mixerNorm, &p), mixerPostNorm: try norm(layer.mixerPostNorm, &p)?.weight,
            mixerResidualNorm: try norm(layer.mixerResidualNorm, &p), feedForwardNorm: try norm(layer.feedForward?.norm, &p),
            feedForwardPostNorm: try norm(layer.feedForward?.postNorm, &p)?.weight,
            feedForwardResidualNorm: try norm(layer.feedForward?.residualNorm, &p))
        switch layer.mixer {
        case .attention(let attention):
            result.mixer = .attention(try self.attention(attention, prefix, width, shape.ignoredTensors, &p))
        case .latent(let latent): result.mixer = .latent(try self.latent(latent, prefix, width, &p))
        case .delta(let delta): result.mixer = .delta(try self.delta(delta, prefix, width, &p))
        case .mamba(let mamba): result.mixer = .mamba(try self.mamba(mamba, prefix, width, &p))
        case .convolution(let taps):
            result.mixer = .convolution(
                Convolution(
                    input: try p.matrix(prefix + "shortconv.in_proj.weight", rows: 3 * width, columns: width),
                    kernel: try p.vector(prefix + "shortconv.conv.weight", count: taps * width),
                    output: try p.matrix(prefix + "shortconv.out_proj.weight", rows: width, columns: width)))
        case nil: break
        }
        if let dense = layer.feedForward?.dense { result.dense = try self.dense(dense, prefix, width, &p) }
        if let experts = layer.feedForward?.experts { result.experts = try self.experts(experts, prefix, width, &p) }
        if shape.perLayerWidth > 0 {
            result.perLayer = PerLayer(
                gate: try p.matrix(prefix + "inp_gate.weight", rows: shape.perLayerWidth, columns: width),
                projection: try p.matrix(prefix + "proj.weight", rows: width, columns: shape.perLayerWidth),
                norm: try p.vector(prefix + "post_norm.weight", count: width))
        }
        if let scale = layer.outputScale { result.outputScale = try p.values(prefix + scale)?.first ?? 1 }
        return result
    }

    private static func attention(
        _ a: ModelShape.Attention, _ prefix: String, _ width: Int, _ ignored: [String], _ p: inout TensorPacker
    ) throws(ModelError) -> Attention {
        let queryRows = a.heads * a.keyDimension
        let keyRows = a.kvHeads * a.keyDimension
        let valueRows = a.kvHeads * a.valueDimension
        let fused = prefix + "attn_qkv.weight"
        let isFused = p.file.tensors[fused] != nil
        let total = queryRows + keyRows + valueRows
        var query: Matrix
        var gate: Matrix?
        if a.isGated {
            // The rows of each head are its query, then its gate.
            let name = prefix + "attn_q.weight"
            func rows(_ part: Int) -> [Range<Int>] {
                (0..<a.heads).map { (2 * $0 + part) * a.keyDimension..<(2 * $0 + part + 1) * a.keyDimension }
            }
            query = try p.matrix(name, rows: queryRows, columns: width, selection: rows(0), of: 2 * queryRows)
            gate = try p.matrix(name, rows: queryRows, columns: width, selection: rows(1), of: 2 * queryRows)
        } else if isFused {
            query = try p.matrix(fused, rows: queryRows, columns: width, selection: [0..<queryRows], of: total)
        } else {
            query = try p.matrix(prefix + "attn_q.weight", rows: queryRows, columns: width)
        }
        var result = Attention(
            query: query, gate: gate,
            output: try p.matrix(prefix + "attn_output.weight", rows: width, columns: a.heads * a.valueDimension))
        if a.sharedLayer == nil {
            if isFused {
                result.key = try p.matrix(
                    fused, rows: keyRows, columns: width, selection: [queryRows..<queryRows + keyRows], of: total)
                result.value = try p.matrix(
                    fused, rows: valueRows, columns: width, selection: [queryRows + keyRows..<total], of: total)
            } else {
                result.key = try p.matrix(prefix + "attn_k.weight", rows: keyRows, columns: width)
                if !a.valuesAreKeys { result.value = try p.matrix(prefix + "attn_v.weight", rows: valueRows, columns: width) }
            }
        } else {
            // Some files contain projections that a layer with shared keys and values does not use.
            for name in ["attn_k.weight", "attn_v.weight", "attn_k_norm.weight"] { p.skip(prefix + name) }
        }
        if let bias = try p.vectorIfPresent(prefix + "attn_qkv.bias", count: total) {
            (result.queryBias, result.keyBias, result.valueBias) = (bias, bias + queryRows, bias + queryRows + keyRows)
        } else {
            result.queryBias = try p.vectorIfPresent(prefix + "attn_q.bias", count: queryRows)
            result.keyBias = try p.vectorIfPresent(prefix + "attn_k.bias", count: keyRows)
            result.valueBias = try p.vectorIfPresent(prefix + "attn_v.bias", count: valueRows)
        }
        if !ignored.contains("attn_output.bias") {
            result.outputBias = try p.vectorIfPresent(prefix + "attn_output.bias", count: width)
        }
        if a.headNorm != .none {
            let isWhole = a.headNorm == .whole
            result.queryNorm = try p.vector(prefix + "attn_q_norm.weight", count: isWhole ? queryRows : a.keyDimension)
            if a.sharedLayer == nil {
                result.keyNorm = try p.vector(prefix + "attn_k_norm.weight", count: isWhole ? keyRows : a.keyDimension)
            }
        }
        if a.hasSinks { result.sinks = try p.vector(prefix + "attn_sinks.weight", count: a.heads) }
        return result
    }

    private static func latent(
        _ a: ModelShape.LatentAttention, _ prefix: String, _ width: Int, _ p: inout TensorPacker
    ) throws(ModelError) -> LatentAttention {
        let queryRows = a.heads * (a.plainDimension + a.rotaryDimension)
        var keyUp: [Matrix] = []
        var valueUp: [Matrix] = []
        let old = prefix + "attn_kv_b.weight"
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
                        prefix + "attn_k_b.weight", rows: a.kvRank, columns: a.plainDimension, slice: head, slices: a.heads))
            }
            for head in 0..<a.heads {
                valueUp.append(
                    try p.matrix(
                        prefix + "attn_v_b.weight", rows: a.valueDimension, columns: a.kvRank, slice: head, slices: a.heads))
            }
        }
        var queryDown: Matrix?
        var queryDownNorm: Vector?
        let query: Matrix
        if let rank = a.queryRank {
            queryDown = try p.matrix(prefix + "attn_q_a.weight", rows: rank, columns: width)
            queryDownNorm = try p.vector(prefix + "attn_q_a_norm.weight", count: rank)
            query = try p.matrix(prefix + "attn_q_b.weight", rows: queryRows, columns: rank)
        } else {
            query = try p.matrix(prefix + "attn_q.weight", rows: queryRows, columns: width)
        }
        return LatentAttention(
            queryDown: queryDown, queryDownNorm: queryDownNorm, query: query,
            keyValueDown: try p.matrix(
                prefix + "attn_kv_a_mqa.weight", rows: a.kvRank + a.rotaryDimension, columns: width),
            keyValueNorm: try p.vector(prefix + "attn_kv_a_norm.weight", count: a.kvRank), keyUp: keyUp, valueUp: valueUp,
            output: try p.matrix(prefix + "attn_output.weight", rows: width, columns: a.heads * a.valueDimension))
    }

    private static func delta(
        _ d: ModelShape.DeltaNet, _ prefix: String, _ width: Int, _ p: inout TensorPacker
    ) throws(ModelError) -> DeltaNet {
        let beta: Matrix
        let alpha: Matrix
        if d.hasFusedGates {
            // The rows of each key head are β of its value heads, then their α.
            let share = d.valueHeads / d.keyHeads
            func rows(_ part: Int) -> [Range<Int>] {
                (0..<d.keyHeads).map { (2 * $0 + part) * share..<(2 * $0 + part + 1) * share }
            }
            let name = prefix + "ssm_ba.weight"
            beta = try p.matrix(name, rows: d.valueHeads, columns: width, selection: rows(0), of: 2 * d.valueHeads)
            alpha = try p.matrix(name, rows: d.valueHeads, columns: width, selection: rows(1), of: 2 * d.valueHeads)
        } else {
            beta = try p.matrix(prefix + "ssm_beta.weight", rows: d.valueHeads, columns: width)
            alpha = try p.matrix(prefix + "ssm_alpha.weight", rows: d.valueHeads, columns: width)
        }
        let mixed: Matrix
        let gate: Matrix
        let fused = prefix + "ssm_in.weight"
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
            mixed = try p.matrix(prefix + "attn_qkv.weight", rows: d.mixedWidth, columns: width)
            gate = try p.matrix(prefix + "attn_gate.weight", rows: d.valueWidth, columns: width)
        }
        return DeltaNet(
            mixed: mixed, gate: gate, beta: beta, alpha: alpha,
            convolution: try p.vector(prefix + "ssm_conv1d.weight", count: d.convolution * d.mixedWidth),
            a: try p.vector(prefix + "ssm_a", count: d.valueHeads), dt: try p.vector(prefix + "ssm_dt.bias", count: d.valueHeads),
            norm: try p.vector(prefix + "ssm_norm.weight", count: d.valueDimension),
            output: try p.matrix(prefix + "ssm_out.weight", rows: width, columns: d.valueWidth))
    }

    private static func mamba(
        _ m: ModelShape.Mamba, _ prefix: String, _ width: Int, _ p: inout TensorPacker
    ) throws(ModelError) -> Mamba {
        Mamba(
            input: try p.matrix(prefix + "ssm_in.weight", rows: m.inputWidth, columns: width),
            convolution: try p.vector(prefix + "ssm_conv1d.weight", count: m.convolution * m.mixedWidth),
            convolutionBias: try p.vectorIfPresent(prefix + "ssm_conv1d.bias", count: m.mixedWidth),
            a: try p.vector(prefix + "ssm_a", count: m.heads), d: try p.vector(prefix + "ssm_d", count: m.heads),
            dt: try p.vector(prefix + "ssm_dt.bias", count: m.heads),
            norm: try p.vectorIfPresent(prefix + "ssm_norm.weight", count: m.inner),
            output: try p.matrix(prefix + "ssm_out.weight", rows: width, columns: m.inner))
    }

    private static func dense(
        _ d: ModelShape.Dense, _ prefix: String, _ width: Int, _ p: inout TensorPacker
    ) throws(ModelError) -> Dense {
        func name(_ part: String) -> String { prefix + "ffn_" + part + d.suffix }
        var gate: Matrix?
        let up: Matrix
        if d.isGated, p.file.tensors[name("gate") + ".weight"] == nil {
            // One tensor contains the rows of the gate, then those of `up`.
            gate = try p.matrix(name("up") + ".weight", rows: d.width, columns: width, selection: [0..<d.width], of: 2 * d.width)
            up = try p.matrix(
                name("up") + ".weight", rows: d.width, columns: width, selection: [d.width..<2 * d.width], of: 2 * d.width)
        } else {
            if d.isGated { gate = try p.matrix(name("gate") + ".weight", rows: d.width, columns: width) }
            up = try p.matrix(name("up") + ".weight", rows: d.width, columns: width)
        }
        var result = Dense(gate: gate, up: up, down: try p.matrix(name("down") + ".weight", rows: width, columns: d.width))
        result.gateBias = try p.vectorIfPresent(name("gate") + ".bias", count: d.width)
        result.upBias = try p.vectorIfPresent(name("up") + ".bias", count: d.width)
        result.downBias = try p.vectorIfPresent(name("down") + ".bias", count: width)
        if let outputGate = d.outputGate { result.outputGate = try p.vector(prefix + outputGate, count: width) }
        if let norm = d.postNorm { result.postNorm = try p.vector(prefix + norm, count: width) }
        return result
    }

    private static func experts(
        _ e: ModelShape.Experts, _ prefix: String, _ width: Int, _ p: inout TensorPacker
    ) throws(ModelError) -> Experts {
        func all(
            _ part: String, rows: Int, columns: Int, selection: Range<Int>? = nil, of total: Int? = nil, _ p: inout TensorPacker
        ) throws(ModelError) -> [Matrix] {
            var matrices: [Matrix] = []
            matrices.reserveCapacity(e.count)
            for index in 0..<e.count {
                // Old files have a separate tensor for each expert.
                let own = prefix + "ffn_\(part).\(index).weight"
                if p.file.tensors[own] != nil {
                    matrices.append(try p.matrix(own, rows: rows, columns: columns))
                } else {
                    matrices.append(
                        try p.matrix(
                            prefix + "ffn_\(part)_exps.weight", rows: rows, columns: columns, selection: selection.map { [$0] },
                            of: total, slice: index, slices: e.count))
                }
            }
            return matrices
        }
        var gate: [Matrix] = []
        var up: [Matrix] = []
        if e.isGated, p.file.tensors[prefix + "ffn_gate_up_exps.weight"] != nil {
            gate = try all("gate_up", rows: e.width, columns: width, selection: 0..<e.width, of: 2 * e.width, &p)
            up = try all("gate_up", rows: e.width, columns: width, selection: e.width..<2 * e.width, of: 2 * e.width, &p)
        } else {
            if e.isGated { gate = try all("gate", rows: e.width, columns: width, &p) }
            up = try all("up", rows: e.width, columns: width, &p)
        }
        var result = Experts(
            router: try p.matrix(prefix + "ffn_gate_inp.weight", rows: e.count, columns: width), gate: gate, up: up,
            down: try all("down", rows: width, columns: e.width, &p))
        result.routerBias = try p.vectorIfPresent(prefix + "ffn_gate_inp.bias", count: e.count)
        result.selectionBias = try p.vectorIfPresent(prefix + "exp_probs_b.bias", count: e.count)
        result.gateBias = try p.vectorIfPresent(prefix + "ffn_gate_exps.bias", count: e.count * e.width)
        result.upBias = try p.vectorIfPresent(prefix + "ffn_up_exps.bias", count: e.count * e.width)
        result.downBias = try p.vectorIfPresent(prefix + "ffn_down_exps.bias", count: e.count * width)
        if let scale = e.routerScale {
            result.routerNorm = try p.vector(prefix + scale, count: width, times: 1 / Float(width).squareRoot())
        }
        if let norm = e.norm { result.norm = try p.vector(prefix + norm, count: width) }
        if let norm = e.postNorm { result.postNorm = try p.vector(prefix + norm, count: width) }
        return result
    }
}

/// A model's tensors and their memory.
final class Weights {
    let tensors: ModelTensors
    /// One table for each of the shape's rotary embeddings.
    let rotaries: [RotaryTable]
    /// Whether any matrix requires activations quantised to 8 bits.
    let wantsQuantizedActivations: Bool
    /// Whether any matrix has integer scales for 256 columns.
    let hasBlockScales: Bool
    /// The size of the packed weights in bytes.
    var bytes: Int { memory.count }
    /// The number of bytes of matrices that one generated token reads: all except the embedding table, unless it is
    /// also the output head; of experts, only the share in use.
    let bytesPerToken: Int
    /// Whether the packed weights were read from the cache.
    let wasCached: Bool

    private let memory: PackedMemory
    /// Where the matrices come from, by their `identity`.
    let origins: [MatrixOrigin]

    /// - Parameter cache: the cache of packed weights; nil for private memory. Not used with an adapter.
    init(
        file: GGUFFile, shape: ModelShape, pool: WorkerPool, adapter: AdapterFile? = nil, cache: PackedCache? = nil,
        isCancelled: @escaping () -> Bool = { false }
    ) throws(ModelError) {
        try adapter?.check(file)
        let bytes = try Self.check(file, shape, pool, adapter)
        let cached = adapter == nil ? cache?.memory(for: file, bytes: bytes) : nil
        memory = if let cached { cached } else { try PackedMemory(bytes: bytes) }
        wasCached = memory.isFilled
        var packer = TensorPacker(
            file: file, adapter: adapter, pool: pool, base: memory.base, isPacked: memory.isFilled,
            isCancelled: isCancelled)
        tensors = try ModelTensors(shape, &packer)
        origins = packer.origins
        memory.finish()
        wantsQuantizedActivations = packer.hasIntegerMatrices
        hasBlockScales = packer.hasBlockScales
        bytesPerToken = Self.bytesPerToken(shape, tensors)
        func values(_ name: String?) throws(ModelError) -> [Float]? {
            guard let name, let tensor = file.tensors[name] else { return nil }
            return try file.values(of: tensor)
        }
        var rotaries: [RotaryTable] = []
        for rotary in shape.rotaries {
            rotaries.append(
                RotaryTable(rotary, factors: try values(rotary.factors), longFactors: try values(rotary.longFactors)))
        }
        self.rotaries = rotaries
    }

    /// Checks that a file has all tensors of its architecture, with the right shapes, and no others. Returns the bytes of the packed weights.
    @discardableResult
    static func check(_ file: GGUFFile, _ shape: ModelShape, _ pool: WorkerPool, _ adapter: AdapterFile? = nil) throws(ModelError)
        -> Int
    {
        var measuring = TensorPacker(file: file, adapter: adapter, pool: pool)
        _ = try ModelTensors(shape, &measuring)
        try measuring.checkAllUsed(layers: shape.layers.count, architecture: shape.architecture)
        return measuring.bytes
    }

    /// The same for a model that is not loaded.
    static func bytesPerToken(file: GGUFFile, shape: ModelShape, pool: WorkerPool) throws(ModelError) -> Int {
        var measuring = TensorPacker(file: file, adapter: nil, pool: pool)
        return bytesPerToken(shape, try ModelTensors(shape, &measuring))
    }

    private static func bytesPerToken(_ shape: ModelShape, _ tensors: ModelTensors) -> Int {
        func size(_ matrix: Matrix?) -> Int { matrix?.bytes ?? 0 }
        func size(_ matrices: [Matrix]) -> Int { matrices.reduce(0) { $0 + size($1) } }
        var bytes = size(tensors.head) + size(tensors.perLayerInput?.projection)
        for (layer, described) in zip(tensors.layers, shape.layers) {
            switch layer.mixer {
            case .attention(let a): bytes += size([a.query, a.output]) + size(a.gate) + size(a.key) + size(a.value)
            case .latent(let a):
                bytes += size([a.query, a.keyValueDown, a.output]) + size(a.queryDown) + size(a.keyUp) + size(a.valueUp)
            case .delta(let d): bytes += size([d.mixed, d.gate, d.beta, d.alpha, d.output])
            case .mamba(let m): bytes += size([m.input, m.output])
            case .convolution(let c): bytes += size([c.input, c.output])
            case nil: break
            }
            if let dense = layer.dense { bytes += size(dense.gate) + size([dense.up, dense.down]) }
            if let experts = layer.experts, let e = described.feedForward?.experts {
                bytes += size(experts.router) + (size(experts.gate) + size(experts.up) + size(experts.down)) * e.used / e.count
            }
            bytes += size(layer.perLayer?.gate) + size(layer.perLayer?.projection)
        }
        return bytes
    }
}
