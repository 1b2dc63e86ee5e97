extension ShapeReader {
    /// Where a layer normalises: the input of each branch, its output, or both.
    enum Norms { case before, after, beforeAndAfter }

    /// A decoder whose layers are attention and a feed-forward network, which is dense or has experts. Families describe what is special
    /// about theirs.
    ///
    /// - Parameters:
    ///   - halves: whether rotated pairs are (i, i + half) rather than adjacent.
    ///   - windows: the attention window of each layer; nil for what the file says.
    ///   - normalizes: whether the weights of the chosen experts are normalised.
    func decoder(
        halves: Bool, activation: ModelShape.Activation = .silu, headNorm: ModelShape.HeadNorm = .none, norms: Norms = .before,
        feedForwardNorm: TensorName = .feedForwardNorm, windows: [Int?]? = nil, normalizes: Bool = true
    ) throws(ModelError) -> ModelShape {
        var shape = try base()
        let attention = try requiredAttention()
        shape.rotaries = [try rotary(dimensions: attention[0].keyDimension, halves: halves)]
        let dense = try dense(activation: activation)
        // Qwen and other files specify the width of experts, llama and Granite files do not.
        let hasOwnWidth = try perLayer("expert_feed_forward_length", in: 0...(1 << 20)) != nil
        let experts = try experts(
            activation: activation,
            widthKey: hasOwnWidth || architecture.hasPrefix("qwen") ? "expert_feed_forward_length" : "feed_forward_length",
            normalizes: normalizes)
        let windows = if let windows { windows } else { try self.windows() }
        shape.pooling = try pooling()
        let (hasNorms, hasPostNorms) = (norms != .after, norms != .before)
        for layer in 0..<layers {
            var attention = attention[layer]
            attention.window = windows[layer]
            attention.headNorm = headNorm
            shape.layers.append(
                ModelShape.Layer(
                    mixer: .attention(attention), mixerNorm: hasNorms ? .attentionNorm : nil,
                    mixerPostNorm: hasPostNorms ? .postAttentionNorm : nil,
                    feedForward: ModelShape.FeedForward(
                        norm: hasNorms ? feedForwardNorm : nil, postNorm: hasPostNorms ? .postFeedForwardNorm : nil,
                        dense: experts == nil ? dense[layer] : nil, experts: experts)))
        }
        return shape
    }

    /// The factor of attention scores that some files specify.
    func attentionScale() throws(ModelError) -> Double? { try number("attention.scale").flatMap { $0 == 0 ? nil : $0 } }
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

    /// Gives the layers with windows a rotary embedding of their own.
    mutating func rotateWindows(_ rotary: Rotary) {
        let index = rotaries.count
        rotaries.append(rotary)
        changeAttention { if $0.window != nil { $0.rotary = index } }
    }

    /// Adds a shared expert to the layers with experts.
    mutating func addSharedExpert(width: Int, outputGate: TensorName? = nil) {
        for layer in layers.indices where layers[layer].feedForward?.experts != nil {
            layers[layer].feedForward?.dense = Dense(width: width, activation: .silu, isShared: true, outputGate: outputGate)
        }
    }
}

extension ModelShape.Rotary {
    /// Without the scaling for long contexts, which windows do not need.
    var unscaled: ModelShape.Rotary {
        var rotary = self
        (rotary.scaling, rotary.magnitude) = (.none, 1)
        return rotary
    }
}
