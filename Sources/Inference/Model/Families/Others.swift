// Families with a single architecture.

internal import Foundation

extension ModelFamily {
    /// Phi-3, 3.5, 4 and 4-mini (arXiv:2404.14219): fused projections, which the loader splits; some rotate only a part
    /// of each head.
    static func phi3(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try llama(r)
        shape.rotaries[0].halves = true
        // The window is as long as the original context, which conversations do not exceed here.
        shape.changeAttention { $0.window = nil }
        return shape
    }

    /// OLMo 2 and 3 (arXiv:2501.00656): norms after the branches only; the queries and keys of all heads are normalised
    /// together.
    static func olmo2(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try llama(r)
        shape.rotaries[0].halves = true
        var windowed = shape.rotaries[0]
        windowed.scaling = .none
        windowed.magnitude = 1
        shape.rotaries.append(windowed)
        let windows = try r.windows(period: 4)
        shape.changeAttention { attention, layer in
            attention.headNorm = .whole
            attention.window = windows[layer]
            attention.rotary = windows[layer] == nil ? 0 : 1
        }
        for layer in shape.layers.indices {
            shape.layers[layer].mixerNorm = nil
            shape.layers[layer].mixerPostNorm = "post_attention_norm.weight"
            shape.layers[layer].feedForward?.norm = nil
            shape.layers[layer].feedForward?.postNorm = "post_ffw_norm.weight"
        }
        return shape
    }

    /// gpt-oss (arXiv:2508.10925): attention sinks, windows in even layers, experts with biases and a clamped SwiGLU.
    static func gptOSS(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.base()
        let attention = try r.requiredAttention(halves: true)
        shape.rotaries = [try r.rotary(dimensions: attention[0].keyDimension, halves: true)]
        var windowed = shape.rotaries[0]
        windowed.base = try r.number("rope.freq_base_swa") ?? windowed.base
        shape.rotaries.append(windowed)
        let windows = try r.windows(period: 2)
        guard var experts = try r.experts(activation: .swigluOAI) else { throw .missing("\(r.architecture).expert_count") }
        experts.gating = .softmaxOfChosen
        experts.normalizes = false
        for layer in 0..<r.layers {
            var attention = attention[layer]
            attention.hasSinks = true
            attention.window = windows[layer]
            attention.rotary = windows[layer] == nil ? 0 : 1
            shape.layers.append(
                ModelShape.Layer(
                    mixer: .attention(attention),
                    feedForward: ModelShape.FeedForward(norm: "post_attention_norm.weight", experts: experts)))
        }
        return shape
    }

    /// LFM 2 and 2.5: gated short convolutions between attention layers.
    static func lfm2(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.base()
        let attention = try r.attention(halves: true)
        let dimension = attention.compactMap(\.self).first?.keyDimension ?? 0
        shape.rotaries = [try r.rotary(dimensions: dimension, halves: true)]
        // Older files use the usual name of the output norm.
        shape.outputNorm = r.file.tensors["token_embd_norm.weight"] == nil ? "output_norm.weight" : "token_embd_norm.weight"
        let width = try r.required("shortconv.l_cache", in: 2...16)
        let dense = try r.dense(activation: .silu)
        let experts = try r.experts(activation: .silu, readsRouting: true)
        let leading = try r.integer("leading_dense_block_count", in: 0...1024) ?? 0
        let window = try r.integer("attention.sliding_window", in: 0...(1 << 24)) ?? 0
        for layer in 0..<r.layers {
            var mixer = ModelShape.Mixer.convolution(width: width)
            if var attention = attention[layer] {
                attention.headNorm = .heads
                attention.window = window > 0 ? window : nil
                mixer = .attention(attention)
            }
            let usesExperts = experts != nil && layer >= leading
            shape.layers.append(
                ModelShape.Layer(
                    mixer: mixer,
                    feedForward: ModelShape.FeedForward(
                        dense: usesExperts ? nil : dense[layer], experts: usesExperts ? experts : nil)))
        }
        return shape
    }

    /// DeepSeek-V2 and models of the same architecture, such as GLM-4.7-Flash: latent attention, routed and shared
    /// experts.
    static func deepseek2(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.base()
        let heads = try r.heads()
        let kvRank = try r.required("attention.kv_lora_rank", in: 1...4096)
        let rotaryDimension = try r.required("rope.dimension_count", in: 2...1024)
        // In files without absorbed projections, the usual keys contain the head sizes.
        let isAbsorbed = try r.integer("attention.key_length_mla") ?? 0 > 0
        let keyLength = try r.required("attention.key_length" + (isAbsorbed ? "_mla" : ""), in: 1...1024)
        let valueLength = try r.required("attention.value_length" + (isAbsorbed ? "_mla" : ""), in: 1...1024)
        guard keyLength > rotaryDimension else {
            throw .invalid(
                field: "\(r.architecture).attention.key_length_mla",
                reason: "is \(keyLength), not more than the \(rotaryDimension) rotated dimensions")
        }
        var rotary = try r.rotary(dimensions: rotaryDimension, halves: false)
        var scale = 1 / Double(keyLength).squareRoot()
        if case .yarn(let factor, _, _, _) = rotary.scaling {
            // The file contains a tenth of the multiplier. The attention temperature applies to scores, not to rotary
            // embeddings.
            let attentionFactor = try r.number("rope.scaling.attn_factor") ?? 1
            let written = try r.number("rope.scaling.yarn_log_multiplier")
            if written != nil { rotary.magnitude = attentionFactor }
            let multiplier = written.map { $0 / 0.1 } ?? 1
            let magnitude = attentionFactor * (1 + 0.1 * multiplier * log(factor))
            scale *= magnitude * magnitude
        }
        shape.rotaries = [rotary]
        let leading = try r.integer("leading_dense_block_count", in: 0...1024) ?? 0
        let dense = try r.dense(activation: .silu)
        var experts = try r.experts(activation: .silu, normalizes: false, readsRouting: true)
        // GLM-4.7-Flash files do not specify the gating function; the model is identified by its vocabulary size.
        if try r.integer("expert_gating_func", in: 0...4) ?? 0 == 0, r.vocabularySize == 154_880 {
            experts?.gating = .sigmoid
        }
        let shared = try r.integer("expert_shared_count", in: 0...64) ?? 0
        let queryRank = try r.integer("attention.q_lora_rank", in: 0...8192) ?? 0
        for layer in 0..<r.layers {
            guard heads[layer] > 0 else {
                throw .invalid(field: "\(r.architecture).attention.head_count", reason: "is 0")
            }
            let attention = ModelShape.LatentAttention(
                heads: heads[layer], queryRank: queryRank == 0 || r.hasTensor("attn_q.weight", layer: layer) ? nil : queryRank,
                kvRank: kvRank,
                plainDimension: keyLength - rotaryDimension, rotaryDimension: rotaryDimension, valueDimension: valueLength,
                scale: scale, rotary: 0)
            var feedForward = ModelShape.FeedForward(dense: dense[layer])
            if let experts, layer >= leading {
                feedForward.experts = experts
                feedForward.dense =
                    shared > 0
                    ? ModelShape.Dense(width: experts.width * shared, activation: .silu, suffix: "_shexp") : nil
            }
            shape.layers.append(ModelShape.Layer(mixer: .latent(attention), feedForward: feedForward))
        }
        return shape
    }

    /// GLM-4 (0414): norms before and after each branch; only a part of each head is rotated.
    static func glm4(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try llama(r)
        for layer in shape.layers.indices {
            shape.layers[layer].mixerPostNorm = "post_attention_norm.weight"
            shape.layers[layer].feedForward?.postNorm = "post_ffw_norm.weight"
        }
        return shape
    }

    /// EXAONE 4: norms after the branches and of each head; in the large model most layers have windowed attention, and
    /// only those have rotary embedding.
    static func exaone4(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try olmo2(r)
        let isLarge = r.layers == 64
        let windows = try isLarge ? r.windows(period: 4, window: 4096) : Array(repeating: nil, count: r.layers)
        shape.changeAttention { attention, layer in
            attention.headNorm = .heads
            attention.window = windows[layer]
            attention.rotary = isLarge && windows[layer] == nil ? nil : 0
        }
        return shape
    }

    /// Hunyuan: each head is normalised after rotation.
    static func hunyuan(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try llama(r)
        shape.rotaries[0].halves = true
        if let alpha = try r.number("rope.scaling.alpha"), alpha > 0 {
            let dimensions = Double(shape.rotaries[0].dimensions)
            shape.rotaries[0].base *= pow(alpha, dimensions / (dimensions - 2))
        }
        shape.changeAttention { $0.headNorm = .rotatedHeads }
        return shape
    }

    /// ERNIE 4.5: as llama, ignoring the bias of the attention output, which the reference implementation does not use
    /// either.
    static func ernie45(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try llama(r)
        shape.ignoredTensors = ["attn_output.bias"]
        return shape
    }

    /// OLMoE (arXiv:2409.02060): the queries and keys of all heads are normalised together; the routing weights are not
    /// normalised.
    static func olmoe(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try llama(r)
        shape.rotaries[0].halves = true
        shape.changeAttention { $0.headNorm = .whole }
        for layer in shape.layers.indices { shape.layers[layer].feedForward?.experts?.normalizes = false }
        return shape
    }

    /// Seed-OSS: the norm before the feed-forward network has another name.
    static func seedOSS(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try llama(r)
        shape.rotaries[0].halves = true
        for layer in shape.layers.indices { shape.layers[layer].feedForward?.norm = "post_attention_norm.weight" }
        return shape
    }
}
