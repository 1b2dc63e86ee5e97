// Gemma (arXiv:2403.08295, 2408.00118, 2503.19786): scaled embeddings, GELU; from Gemma 2 on, norms before and after
// each branch. The "+1" of its norms is already included in the file's weights.

internal import Foundation

extension ModelFamily {
    static func gemma(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try llama(r)
        shape.rotaries[0].halves = true
        shape.embeddingScale = Double(r.width).squareRoot()
        for layer in shape.layers.indices { shape.layers[layer].feedForward?.dense?.activation = .gelu }
        return shape
    }

    /// Gemma 2: every other layer has windowed attention; scores and logits are soft-capped.
    static func gemma2(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try withPreAndPostNorms(r, period: 2, window: 4096)
        let cap = try r.number("attn_logit_softcapping") ?? 50
        shape.changeAttention { $0.softCap = cap }
        shape.logitSoftCap = try r.number("final_logit_softcapping") ?? 30
        // The largest model scales attention scores by the width of the residual stream.
        if r.layers == 46 { shape.scaleByWidth(r.width) }
        return shape
    }

    /// Gemma 3: five of six layers have windowed attention and a different rotary base; heads are normalised.
    static func gemma3(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try withPreAndPostNorms(r, period: 6, window: nil)
        var windowed = shape.rotaries[0]
        windowed.base = try r.number("rope.freq_base_swa") ?? 10_000
        windowed.scaling = .none
        windowed.magnitude = 1
        shape.rotaries.append(windowed)
        shape.changeAttention { attention in
            attention.headNorm = .heads
            if attention.window != nil { attention.rotary = 1 }
        }
        shape.logitSoftCap = try r.number("final_logit_softcapping") ?? 0
        if r.layers == 62 { shape.scaleByWidth(r.width) }
        return shape
    }

    private static func withPreAndPostNorms(_ r: ShapeReader, period: Int, window: Int?) throws(ModelError) -> ModelShape {
        var shape = try gemma(r)
        let windows = try r.windows(period: period, window: window)
        shape.changeAttention { attention, layer in attention.window = windows[layer] }
        for layer in shape.layers.indices {
            shape.layers[layer].mixerPostNorm = "post_attention_norm.weight"
            shape.layers[layer].feedForward?.postNorm = "post_ffw_norm.weight"
        }
        return shape
    }

    /// Gemma 4: heads of two sizes, layers that share keys and values, per-layer embeddings, or experts.
    static func gemma4(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.base()
        shape.embeddingScale = Double(r.width).squareRoot()
        shape.logitSoftCap = try r.number("final_logit_softcapping") ?? 30
        shape.perLayerWidth = try r.integer("embedding_length_per_layer_input", in: 0...(1 << 16)) ?? 0
        let attention = try r.requiredAttention(halves: true)
        let windowedDimension = try r.integer("attention.key_length_swa", in: 1...1024) ?? attention[0].keyDimension
        var full = try r.rotary(dimensions: attention[0].keyDimension, halves: true)
        full.factors = r.file.tensors["rope_freqs.weight"] == nil ? nil : "rope_freqs.weight"
        let windowed = ModelShape.Rotary(
            dimensions: try r.integer("rope.dimension_count_swa", in: 0...1024) ?? windowedDimension,
            base: try r.number("rope.freq_base_swa") ?? 10_000, halves: true)
        shape.rotaries = [full, windowed]
        guard let flags = try r.flags("attention.sliding_window_pattern") else {
            throw .missing("\(r.architecture).attention.sliding_window_pattern")
        }
        let window = try r.required("attention.sliding_window")
        let shared = try r.integer("attention.shared_kv_layers", in: 0...r.layers - 1) ?? 0
        let firstShared = r.layers - shared
        let dense = try r.dense(activation: .gelu)
        let experts = try r.experts(activation: .gelu)
        for layer in 0..<r.layers {
            var attention = attention[layer]
            attention.scale = 1
            attention.headNorm = .heads
            attention.normalizesValues = true
            attention.valuesAreKeys = !r.hasTensor("attn_v.weight", layer: layer)
            if flags[layer] {
                attention.window = window
                attention.rotary = 1
                attention.keyDimension = windowedDimension
            }
            attention.valueDimension = attention.keyDimension
            if layer >= firstShared {
                let owner = firstShared - (flags[layer] ? 2 : 1)
                guard owner >= 0, flags[owner] == flags[layer] else {
                    throw .invalid(
                        field: "\(r.architecture).attention.shared_kv_layers",
                        reason: "is \(shared), but layer \(layer) has no layer of the same kind to share with")
                }
                attention.sharedLayer = owner
            }
            var feedForward = ModelShape.FeedForward(postNorm: "post_ffw_norm.weight", dense: dense[layer])
            if var experts, r.hasTensor("ffn_gate_inp.weight", layer: layer) {
                experts.norm = "pre_ffw_norm_2.weight"
                experts.postNorm = "post_ffw_norm_2.weight"
                experts.routerScale = "ffn_gate_inp.scale"
                feedForward.experts = experts
                feedForward.dense?.postNorm = "post_ffw_norm_1.weight"
            }
            shape.layers.append(
                ModelShape.Layer(
                    mixer: .attention(attention), mixerPostNorm: "post_attention_norm.weight", feedForward: feedForward,
                    outputScale: r.hasTensor("layer_output_scale.weight", layer: layer) ? "layer_output_scale.weight" : nil))
        }
        return shape
    }
}

extension ModelShape {
    fileprivate mutating func scaleByWidth(_ width: Int) {
        changeAttention { $0.scale = 1 / (Double(width) / Double($0.heads)).squareRoot() }
    }
}
