// Llama and its descendants (LLaMA, arXiv:2302.13971; grouped queries, arXiv:2305.13245): pre-norms, SwiGLU, rotary
// embedding of adjacent pairs. Files contain query and key rows permuted accordingly.

internal import Foundation

extension ModelFamily {
    /// Llama, Mistral 7B and Nemo, Mixtral, SmolLM2 and many fine-tunes.
    static func llama(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.base()
        let attention = try r.requiredAttention(halves: false)
        shape.rotaries = [try r.rotary(dimensions: attention[0].keyDimension, halves: false)]
        let dense = try r.dense(activation: .silu)
        // Qwen and other files specify the width of experts, llama and Granite files do not.
        let hasOwnWidth = try r.perLayer("expert_feed_forward_length", in: 0...(1 << 20)) != nil
        let experts = try r.experts(
            activation: .silu,
            widthKey: hasOwnWidth || r.architecture.hasPrefix("qwen") ? "expert_feed_forward_length" : "feed_forward_length")
        let windows = try r.windows()
        shape.pooling = try r.pooling()
        for layer in 0..<r.layers {
            var attention = attention[layer]
            attention.window = windows[layer]
            shape.layers.append(
                ModelShape.Layer(
                    mixer: .attention(attention),
                    feedForward: ModelShape.FeedForward(
                        dense: experts == nil ? dense[layer] : nil, experts: experts)))
        }
        return shape
    }

    /// Ministral 3 and Mistral Small 3: as llama, with queries scaled by a factor that increases with the position.
    static func mistral3(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try llama(r)
        if case .yarn(let factor, let original, _, _) = shape.rotaries[0].scaling {
            shape.rotaries[0].scaling = .yarn(
                factor: factor, originalContext: original, fast: try r.number("rope.scaling.yarn_beta_fast") ?? 32,
                slow: try r.number("rope.scaling.yarn_beta_slow") ?? 1)
            let multiplier = try r.number("rope.scaling.yarn_log_multiplier") ?? 0
            shape.rotaries[0].magnitude /= 1 + 0.1 * multiplier * log(max(1, factor))
        }
        guard let beta = try r.number("attention.temperature_scale"), beta != 0 else { return shape }
        let length = try r.integer("rope.scaling.original_context_length", in: 1...(1 << 24)) ?? shape.contextLength
        shape.changeAttention { $0.temperature = ModelShape.Temperature(beta: beta, length: length) }
        return shape
    }

    /// SmolLM 3: every fourth layer has no position embedding (NoPE, arXiv:2305.19466).
    static func smollm3(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try llama(r)
        shape.changeAttention { attention, layer in if (layer + 1) % 4 == 0 { attention.rotary = nil } }
        return shape
    }

    /// Granite 3 and 4 without recurrent layers: scales of embeddings, residuals, attention and logits; the MoE models
    /// have a shared expert.
    static func granite(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try llama(r)
        try graniteScales(&shape, r)
        // `finetuned` is false in models without rotary position embedding.
        if r.architecture == "granite", try r.bool("rope.scaling.finetuned") == false {
            shape.changeAttention { $0.rotary = nil }
        }
        if let shared = try r.integer("expert_shared_feed_forward_length", in: 0...(1 << 20)), shared > 0 {
            for layer in shape.layers.indices where shape.layers[layer].feedForward?.experts != nil {
                shape.layers[layer].feedForward?.dense = ModelShape.Dense(width: shared, activation: .silu, suffix: "_shexp")
            }
        }
        return shape
    }

    static func graniteScales(_ shape: inout ModelShape, _ r: ShapeReader) throws(ModelError) {
        shape.embeddingScale = try r.number("embedding_scale").flatMap { $0 == 0 ? nil : $0 } ?? 1
        shape.residualScale = try r.number("residual_scale").flatMap { $0 == 0 ? nil : $0 } ?? 1
        if let scale = try r.number("attention.scale"), scale != 0 { shape.changeAttention { $0.scale = scale } }
        shape.logitScale = 1 / (try r.number("logit_scale").flatMap { $0 == 0 ? nil : $0 } ?? 1)
    }

    /// Granite 4 hybrids: Mamba-2 and attention layers, each followed by a dense feed-forward network or experts.
    static func graniteHybrid(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.base()
        let attention = try r.attention(halves: false)
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
            if let experts, r.hasTensor("ffn_gate_inp.weight", layer: layer) {
                feedForward.experts = experts
                feedForward.dense =
                    shared > 0 ? ModelShape.Dense(width: shared, activation: .silu, suffix: "_shexp") : nil
            }
            shape.layers.append(ModelShape.Layer(mixer: mixer, feedForward: feedForward))
        }
        try graniteScales(&shape, r)
        return shape
    }

    /// MiniCPM: the same scales as Granite, with default values if the file has none.
    static func minicpm(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try llama(r)
        shape.embeddingScale = try r.number("embedding_scale") ?? 12
        shape.residualScale = try r.number("residual_scale") ?? 1.4 / Double(r.layers).squareRoot()
        shape.logitScale = 1 / (try r.number("logit_scale") ?? 256 / Double(r.width))
        return shape
    }
}

extension ShapeReader {
    func mamba() throws(ModelError) -> ModelShape.Mamba {
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

extension ModelShape {
    /// Changes the attention of every attention layer.
    mutating func changeAttention(_ change: (inout Attention) -> Void) { changeAttention { attention, _ in change(&attention) } }

    mutating func changeAttention(_ change: (inout Attention, Int) -> Void) {
        for index in layers.indices {
            guard case .attention(var attention)? = layers[index].mixer else { continue }
            change(&attention, index)
            layers[index].mixer = .attention(attention)
        }
    }
}
