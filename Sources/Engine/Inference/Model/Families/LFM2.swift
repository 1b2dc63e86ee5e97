extension ModelFamily {
    /// LFM 2 and 2.5: gated short convolutions between attention layers.
    static func lfm2(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.base()
        let attention = try r.attention()
        let dimension = attention.compactMap(\.self).first?.keyDimension ?? 0
        shape.rotaries = [try r.rotary(dimensions: dimension, halves: true)]
        // Older files use the usual name of the output norm.
        shape.outputNorm = r.ifPresent(.embeddingNorm) ?? .outputNorm
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
}
