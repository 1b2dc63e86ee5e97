extension ModelFamily {
    /// gpt-oss (arXiv:2508.10925): attention sinks, windows in even layers, experts with biases and a clamped SwiGLU.
    static func gptOSS(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.base()
        let attention = try r.requiredAttention()
        shape.rotaries = [try r.rotary(dimensions: attention[0].keyDimension, halves: true)]
        let windows = try r.windows(period: 2)
        guard var experts = try r.experts(activation: .swigluOAI) else { throw .missing("\(r.architecture).expert_count") }
        experts.gating = .softmaxOfChosen
        experts.normalizes = false
        for layer in 0..<r.layers {
            var attention = attention[layer]
            attention.hasSinks = true
            attention.window = windows[layer]
            shape.layers.append(
                ModelShape.Layer(
                    mixer: .attention(attention),
                    feedForward: ModelShape.FeedForward(norm: .postAttentionNorm, experts: experts)))
        }
        var windowed = shape.rotaries[0]
        windowed.base = try r.number("rope.freq_base_swa") ?? windowed.base
        shape.rotateWindows(windowed)
        return shape
    }
}
