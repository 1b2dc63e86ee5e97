// Qwen 2 and later (arXiv:2407.10671, 2505.09388): a rotated pair consists of elements from both halves of a head.

extension ModelFamily {
    /// Qwen 2 and 2.5: biases of queries, keys and values, which are loaded if the file contains them.
    static func qwen2(_ r: ShapeReader) throws(ModelError) -> ModelShape { try r.decoder(halves: true) }

    /// Qwen 3, also with experts: each query and key head is normalised.
    static func qwen3(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.decoder(halves: true, headNorm: .heads)
        shape.rotaries[0].sections?.isInterleaved = true
        return shape
    }

    /// Qwen 2 with experts: a gated shared expert; the routing weights are not normalised.
    static func qwen2moe(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.decoder(halves: true, normalizes: false)
        let shared = try r.required("expert_shared_feed_forward_length", in: 1...(1 << 20))
        shape.addSharedExpert(width: shared, outputGate: .sharedOutputGate)
        return shape
    }

    /// Qwen3-Next and Qwen 3.5: three gated delta net layers, then one gated attention layer, repeated.
    static func qwen35(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.base()
        let attention = try r.requiredAttention()
        shape.rotaries = [try r.rotary(dimensions: attention[0].keyDimension, halves: true)]
        shape.rotaries[0].sections?.isInterleaved = true
        let inner = try r.required("ssm.inner_size", in: 1...(1 << 18))
        let valueHeads = try r.required("ssm.time_step_rank", in: 1...1024)
        let keyDimension = try r.required("ssm.state_size", in: 1...1024)
        let keyHeads = try r.required("ssm.group_count", in: 1...1024)
        guard inner % valueHeads == 0, valueHeads % keyHeads == 0 else {
            throw .invalid(
                field: "\(r.architecture).ssm.time_step_rank",
                reason: "is \(valueHeads), for \(keyHeads) key heads and \(inner) channels")
        }
        let delta = ModelShape.DeltaNet(
            keyHeads: keyHeads, valueHeads: valueHeads, keyDimension: keyDimension, valueDimension: inner / valueHeads,
            convolution: try r.required("ssm.conv_kernel", in: 2...16), isTiled: r.architecture != "qwen3next",
            hasFusedGates: r.architecture == "qwen3next")
        let interval = try r.integer("full_attention_interval", in: 1...1024) ?? 4
        let recurrent = try r.flags("attention.recurrent_layers") ?? (0..<r.layers).map { ($0 + 1) % interval != 0 }
        let experts = try r.experts(activation: .silu)
        let dense = try experts == nil ? r.dense(activation: .silu) : []
        let shared = try r.perLayer("expert_shared_feed_forward_length", in: 0...(1 << 20))?.max()
        for layer in 0..<r.layers {
            var attention = attention[layer]
            attention.headNorm = .heads
            attention.isGated = true
            var feedForward = ModelShape.FeedForward(norm: .postAttentionNorm)
            if let experts {
                feedForward.experts = experts
                feedForward.dense = ModelShape.Dense(
                    width: shared ?? experts.width, activation: .silu, isShared: true, outputGate: .sharedOutputGate)
            } else {
                feedForward.dense = dense[layer]
            }
            shape.layers.append(
                ModelShape.Layer(mixer: recurrent[layer] ? .delta(delta) : .attention(attention), feedForward: feedForward))
        }
        return shape
    }
}
