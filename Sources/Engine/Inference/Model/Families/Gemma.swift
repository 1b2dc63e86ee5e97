// Gemma (arXiv:2403.08295, 2408.00118, 2503.19786): scaled embeddings, GELU; from Gemma 2 on, norms before and after
// each branch. The "+1" of its norms is already included in the file's weights.

extension ModelFamily {
    static func gemma(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        try scaled(r, r.decoder(halves: true, activation: .gelu))
    }

    /// Gemma 2: every other layer has windowed attention; scores and logits are soft-capped.
    static func gemma2(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        let windows = try r.windows(period: 2, window: 4096)
        var shape = try scaled(
            r, r.decoder(halves: true, activation: .gelu, norms: .beforeAndAfter, windows: windows))
        let cap = try r.number("attn_logit_softcapping") ?? 50
        shape.changeAttention { $0.softCap = cap }
        shape.logitSoftCap = try r.number("final_logit_softcapping") ?? 30
        return shape
    }

    /// Gemma 3: five of six layers have windowed attention and a different rotary base; heads are normalised.
    static func gemma3(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        let windows = try r.windows(period: 6)
        var shape = try scaled(
            r, r.decoder(halves: true, activation: .gelu, headNorm: .heads, norms: .beforeAndAfter, windows: windows))
        var windowed = shape.rotaries[0].unscaled
        windowed.base = try r.number("rope.freq_base_swa") ?? 10_000
        shape.rotateWindows(windowed)
        shape.logitSoftCap = try r.number("final_logit_softcapping") ?? 0
        return shape
    }

    /// The numbers of layers of Gemma 2 27B and Gemma 3 27B, which divide scores by the root of their width for each head, where the
    /// others divide by that of a head's. Files do not say it, and llama.cpp goes by the number of layers too.
    package static let layersOf27B = ["gemma2": 46, "gemma3": 62]

    /// Scales of embeddings and scores.
    private static func scaled(_ r: ShapeReader, _ shape: ModelShape) throws(ModelError) -> ModelShape {
        var shape = shape
        shape.embeddingScale = Double(r.width).squareRoot()
        if let scale = try r.attentionScale() {
            shape.changeAttention { $0.scale = scale }
        } else if r.layers == layersOf27B[r.architecture] {
            shape.changeAttention { $0.scale = 1 / (Double(r.width) / Double($0.heads)).squareRoot() }
        }
        return shape
    }

    /// Gemma 4: heads of two sizes, layers that share keys and values, per-layer embeddings, or experts.
    static func gemma4(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.base()
        shape.embeddingScale = Double(r.width).squareRoot()
        shape.logitSoftCap = try r.number("final_logit_softcapping") ?? 30
        shape.perLayerWidth = try r.integer("embedding_length_per_layer_input", in: 0...(1 << 16)) ?? 0
        let attention = try r.requiredAttention()
        let windowedDimension = try r.integer("attention.key_length_swa", in: 1...1024) ?? attention[0].keyDimension
        var full = try r.rotary(dimensions: attention[0].keyDimension, halves: true)
        full.factors = r.ifPresent(.rotaryFactors)
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
            attention.valuesAreKeys = !r.hasTensor(.value, layer: layer)
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
            var feedForward = ModelShape.FeedForward(postNorm: .postFeedForwardNorm, dense: dense[layer])
            if var experts, r.hasTensor(.router, layer: layer) {
                experts.norm = .preFeedForwardNorm2
                experts.postNorm = .postFeedForwardNorm2
                experts.routerScale = .router
                feedForward.experts = experts
                feedForward.dense?.postNorm = .postFeedForwardNorm1
            }
            shape.layers.append(
                ModelShape.Layer(
                    mixer: .attention(attention), mixerPostNorm: .postAttentionNorm, feedForward: feedForward,
                    outputScale: r.hasTensor(.layerScale, layer: layer) ? .layerScale : nil))
        }
        return shape
    }
}
