// Granite and MiniCPM: as llama, with factors of embeddings, branches, scores and logits.

extension ModelFamily {
    /// Granite 3 and 4 without recurrent layers; the MoE models have a shared expert.
    static func granite(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.decoder(halves: false)
        try addGraniteScales(&shape, r)
        // `finetuned` is false in models without rotary position embedding.
        if r.architecture == "granite", try r.bool("rope.scaling.finetuned") == false {
            shape.changeAttention { $0.rotary = nil }
        }
        if let shared = try r.integer("expert_shared_feed_forward_length", in: 0...(1 << 20)), shared > 0 {
            shape.addSharedExpert(width: shared)
        }
        return shape
    }

    private static func addGraniteScales(_ shape: inout ModelShape, _ r: ShapeReader) throws(ModelError) {
        shape.embeddingScale = try r.number("embedding_scale").flatMap { $0 == 0 ? nil : $0 } ?? 1
        shape.residualScale = try r.number("residual_scale").flatMap { $0 == 0 ? nil : $0 } ?? 1
        if let scale = try r.attentionScale() { shape.changeAttention { $0.scale = scale } }
        shape.logitScale = 1 / (try r.number("logit_scale").flatMap { $0 == 0 ? nil : $0 } ?? 1)
    }

    /// Granite 4 hybrids: Mamba-2 and attention layers, each followed by a dense feed-forward network or experts.
    static func graniteHybrid(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.base()
        let attention = try r.attention()
        let dimension = attention.compactMap(\.self).first?.keyDimension ?? 0
        shape.rotaries = [try r.rotary(dimensions: dimension, halves: false)]
        let hasPositions = try r.bool("rope.scaling.finetuned") != false
        let mamba = try r.mamba()
        let dense = try r.dense(activation: .silu)
        let experts = try r.experts(activation: .silu, widthKey: "feed_forward_length")
        let shared = try r.integer("expert_shared_feed_forward_length", in: 0...(1 << 20)) ?? 0
        for layer in 0..<r.layers {
            var mixer = ModelShape.Mixer.mamba(mamba)
            if var attention = attention[layer] {
                if !hasPositions { attention.rotary = nil }
                mixer = .attention(attention)
            }
            var feedForward = ModelShape.FeedForward(dense: dense[layer])
            if let experts, r.hasTensor(.router, layer: layer) {
                feedForward.experts = experts
                feedForward.dense = shared > 0 ? ModelShape.Dense(width: shared, activation: .silu, isShared: true) : nil
            }
            shape.layers.append(ModelShape.Layer(mixer: mixer, feedForward: feedForward))
        }
        try addGraniteScales(&shape, r)
        return shape
    }

    /// MiniCPM: the same factors, with default values if the file has none.
    static func minicpm(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.decoder(halves: false)
        shape.embeddingScale = try r.number("embedding_scale") ?? 12
        shape.residualScale = try r.number("residual_scale") ?? 1.4 / Double(r.layers).squareRoot()
        shape.logitScale = 1 / (try r.number("logit_scale") ?? 256 / Double(r.width))
        return shape
    }
}

extension ShapeReader {
    fileprivate func mamba() throws(ModelError) -> ModelShape.Mamba {
        let mamba = ModelShape.Mamba(
            inner: try required("ssm.inner_size", in: 1...(1 << 18)), heads: try required("ssm.time_step_rank", in: 1...4096),
            groups: try required("ssm.group_count", in: 1...1024), stateSize: try required("ssm.state_size", in: 1...1024),
            convolution: try required("ssm.conv_kernel", in: 2...16))
        guard mamba.inner % mamba.heads == 0, mamba.heads % mamba.groups == 0 else {
            throw .invalid(
                field: "\(architecture).ssm.time_step_rank",
                reason: "is \(mamba.heads), for \(mamba.inner) channels in \(mamba.groups) groups")
        }
        return mamba
    }
}
