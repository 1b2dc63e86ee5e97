// Encoders: every token attends to those before and after it, and the outputs for all tokens become one vector.

extension ModelFamily {
    /// BERT (arXiv:1810.04805) and its descendants MiniLM, BGE, E5, GTE: learned positions, layer norms after the branches.
    static func bert(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try encoder(r)
        guard let positions = r.file.tensors[TensorName.positionEmbedding.weight]?.shape.last, positions >= 1 else {
            throw .missing("tensor \(TensorName.positionEmbedding.weight)")
        }
        guard positions >= shape.contextLength else {
            throw .invalid(
                field: "the shape of tensor \(TensorName.positionEmbedding.weight)",
                reason: "has \(positions) positions, fewer than \(r.architecture).context_length, \(shape.contextLength)")
        }
        shape.positionCount = positions
        shape.layers = try layers(r, activation: .exactGelu, isGated: false, rotary: nil)
        return shape
    }

    /// Nomic Embed 1 and 1.5 (arXiv:2402.01613): as BERT, with rotary positions and SwiGLU, without biases.
    static func nomicBert(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try encoder(r)
        shape.layers = try layers(r, activation: .silu, isGated: true, rotary: 0)
        shape.rotaries = [try r.rotary(dimensions: try headDimension(r), halves: true)]
        return shape
    }

    /// ModernBERT (arXiv:2412.13663): norms before the branches, GEGLU, a window in two of three layers.
    static func modernBert(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try encoder(r)
        shape.hasTokenTypes = false
        shape.outputNorm = .outputNorm
        // Heads with other parts, or with several labels, are not read.
        shape.hasClassifier =
            r.file.tensors[TensorName.classifierOutput.weight]?.elementCount == shape.width
            && r.ifPresent(.classifier) != nil && r.ifPresent(.classifierNorm) != nil
        let dimension = try headDimension(r)
        var windowed = try r.rotary(dimensions: dimension, halves: true)
        shape.rotaries = [windowed]
        windowed.base = try r.number("rope.freq_base_swa") ?? windowed.base
        shape.layers = try layers(r, activation: .exactGelu, isGated: true, rotary: 0)
        let windows = try r.windows(period: 3, denseFirst: true)
        shape.changeAttention { attention, layer in attention.window = windows[layer] }
        shape.rotateWindows(windowed)
        for layer in shape.layers.indices {
            shape.layers[layer].mixerNorm = layer == 0 ? nil : .attentionNorm
            shape.layers[layer].mixerResidualNorm = nil
            shape.layers[layer].feedForward?.norm = .feedForwardNorm
            shape.layers[layer].feedForward?.residualNorm = nil
        }
        return shape
    }

    /// EmbeddingGemma (arXiv:2509.20354): as Gemma 3, with attention to both sides and two projections of the result.
    static func gemmaEmbedding(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try gemma3(r)
        shape.isEncoder = true
        shape.pooling = try r.pooling(default: .mean)
        for name in [TensorName.projection2, .projection3] {
            guard let tensor = r.file.tensors[name.weight] else { continue }
            guard tensor.shape.count == 2, (1...(1 << 16)).contains(tensor.shape[1]) else {
                throw .invalid(field: "the shape of tensor \(name.weight)", reason: "is \(tensor.shape)")
            }
            shape.projections.append(ModelShape.Projection(name: name, width: tensor.shape[1]))
        }
        return shape
    }

    // MARK: - Parts

    private static func encoder(_ r: ShapeReader) throws(ModelError) -> ModelShape {
        var shape = try r.base(epsilonKey: "attention.layer_norm_epsilon")
        shape.norm = .layer
        shape.isEncoder = true
        shape.outputNorm = nil
        shape.embeddingNorm = .embeddingNorm
        shape.hasTokenTypes = r.ifPresent(.tokenTypes) != nil
        shape.pooling = try r.pooling(default: .mean)
        return shape
    }

    private static func headDimension(_ r: ShapeReader) throws(ModelError) -> Int {
        try r.requiredAttention()[0].keyDimension
    }

    private static func layers(
        _ r: ShapeReader, activation: ModelShape.Activation, isGated: Bool, rotary: Int?
    ) throws(ModelError) -> [ModelShape.Layer] {
        let dense = try r.dense(activation: activation, isGated: isGated)
        return try r.requiredAttention(rotary: rotary).enumerated().map { layer, attention in
            ModelShape.Layer(
                mixer: .attention(attention), mixerNorm: nil, mixerResidualNorm: .attentionOutputNorm,
                feedForward: ModelShape.FeedForward(
                    norm: nil, residualNorm: .layerOutputNorm, dense: dense[layer]))
        }
    }
}
