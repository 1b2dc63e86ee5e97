internal import CKernels  // structures of calls

/// The packed tensors of a model, as pointers into packed memory.
struct ModelTensors {
    typealias Vector = UnsafePointer<Float>

    /// A norm of the residual stream. Only layer norms have a bias.
    struct Norm {
        var weight: Vector
        var bias: Vector?
    }

    struct Layer {
        var mixerNorm: Norm?
        var mixerPostNorm: Vector?
        var mixerResidualNorm: Norm?
        var mixer: Mixer?
        var feedForwardNorm: Norm?
        var feedForwardPostNorm: Vector?
        var feedForwardResidualNorm: Norm?
        var dense: Dense?
        var experts: Experts?
        var perLayer: PerLayer?
        var outputScale: Float = 1
    }

    enum Mixer {
        case attention(Attention)
        case latent(LatentAttention)
        case delta(DeltaNet)
        case mamba(Mamba)
        case convolution(Convolution)
    }

    struct Attention {
        var query: Matrix
        var gate: Matrix?
        /// Nil if the keys and values of another layer are used.
        var key: Matrix?
        var value: Matrix?
        var output: Matrix
        var queryBias: Vector?
        var keyBias: Vector?
        var valueBias: Vector?
        var outputBias: Vector?
        var queryNorm: Vector?
        var keyNorm: Vector?
        var sinks: Vector?
    }

    struct LatentAttention {
        var queryDown: Matrix?
        var queryDownNorm: Vector?
        var query: Matrix
        var keyValueDown: Matrix
        var keyValueNorm: Vector
        /// For each head, the projections from the plain part of a query to the latent, and from the latent to the
        /// value.
        var keyUp: [Matrix]
        var valueUp: [Matrix]
        var output: Matrix
    }

    struct DeltaNet {
        var mixed: Matrix
        var gate: Matrix
        var beta: Matrix
        var alpha: Matrix
        var convolution: Vector
        var a: Vector
        var dt: Vector
        var norm: Vector
        var output: Matrix
    }

    struct Mamba {
        var input: Matrix
        var convolution: Vector
        var convolutionBias: Vector?
        var a: Vector
        var d: Vector
        var dt: Vector
        var norm: Vector?
        var output: Matrix
    }

    struct Convolution {
        var input: Matrix
        var kernel: Vector
        var output: Matrix
    }

    struct Dense {
        var gate: Matrix?
        var up: Matrix
        var down: Matrix
        var gateBias: Vector?
        var upBias: Vector?
        var downBias: Vector?
        var outputGate: Vector?
        var postNorm: Vector?
    }

    struct Experts {
        var router: Matrix
        var routerBias: Vector?
        var routerNorm: Vector?
        var selectionBias: Vector?
        var norm: Vector?
        var postNorm: Vector?
        var gate: [Matrix]
        var up: [Matrix]
        var down: [Matrix]
        var gateBias: Vector?
        var upBias: Vector?
        var downBias: Vector?
    }

    /// Per-layer embeddings of one layer (Gemma 4).
    struct PerLayer {
        var gate: Matrix
        var projection: Matrix
        var norm: Vector
    }

    /// The tensors that compute the per-layer embeddings of all layers.
    struct PerLayerInput {
        var embedding: Matrix
        var projection: Matrix
        var norm: Vector
    }

    /// The head of a model that reads two texts: output · norm(gelu(matrix · pooled + bias)) + outputBias.
    struct Classifier {
        /// [width][width]
        var matrix: Matrix
        var bias: Vector?
        var norm: Norm
        /// [width]
        var output: Vector
        var outputBias: Vector?
    }

    /// What joins a token's residual stream with the embedding of the next token.
    struct Prediction {
        /// [width][2·width]: first those of the embedding.
        var input: Matrix
        var embeddingNorm: Vector
        var hiddenNorm: Vector
    }

    /// [vocabulary][width]
    var embedding: Matrix
    /// [vocabulary][width]; the embedding matrix if the weights are tied.
    var head: Matrix
    var headBias: Vector?
    var outputNorm: Norm?
    /// [positions][width]
    var positionEmbedding: Matrix?
    /// The embedding of the first token type, `[width]`.
    var tokenType: Vector?
    var embeddingNorm: Norm?
    /// The matrices that pooled vectors are multiplied by, in order.
    var projections: [Matrix] = []
    var classifier: Classifier?
    var perLayerInput: PerLayerInput?
    var layers: [Layer] = []
    /// Nil for a whole model.
    var prediction: Prediction?

    init(_ shape: ModelShape, _ p: inout TensorPacker) throws(ModelError) {
        // The vectors of encoders are compared with each other; logits of language models need more precision.
        p.roundsActivations = shape.isEncoder
        // An encoder has no output head that could share its embeddings.
        embedding = try p.matrix(
            TensorName.tokenEmbedding.weight, rows: shape.vocabularySize, columns: shape.width, isTable: shape.isEncoder)
        head = try p.matrixIfPresent(TensorName.output.weight, rows: shape.vocabularySize, columns: shape.width) ?? embedding
        headBias = try p.vectorIfPresent(TensorName.output.bias, count: shape.vocabularySize)
        outputNorm = try Self.norm(shape.outputNorm, { $0.part($1) }, shape, &p)
        if shape.positionCount > 0 {
            positionEmbedding = try p.matrix(
                TensorName.positionEmbedding.weight, rows: shape.positionCount, columns: shape.width, isTable: true)
        }
        if shape.hasTokenTypes { tokenType = try p.firstRow(TensorName.tokenTypes.weight, columns: shape.width) }
        embeddingNorm = try Self.norm(shape.embeddingNorm, { $0.part($1) }, shape, &p)
        var columns = shape.width
        for projection in shape.projections {
            projections.append(try p.matrix(projection.name.weight, rows: projection.width, columns: columns))
            columns = projection.width
        }
        if shape.hasClassifier {
            classifier = Classifier(
                matrix: try p.matrix(TensorName.classifier.weight, rows: shape.width, columns: shape.width),
                bias: try p.vectorIfPresent(TensorName.classifier.bias, count: shape.width),
                norm: Norm(
                    weight: try p.vector(TensorName.classifierNorm.weight, count: shape.width),
                    bias: try p.vectorIfPresent(TensorName.classifierNorm.bias, count: shape.width)),
                output: try p.vector(TensorName.classifierOutput.weight, count: shape.width),
                outputBias: try p.vectorIfPresent(TensorName.classifierOutput.bias, count: 1))
        } else if shape.isEncoder {
            // The heads of masked language models, and others that are not computed.
            for name in [TensorName.classifier, .classifierNorm, .classifierOutput] {
                p.skip(name.weight)
                p.skip(name.bias)
            }
        }
        if shape.perLayerWidth > 0 {
            let all = shape.perLayerWidth * shape.layers.count
            perLayerInput = PerLayerInput(
                embedding: try p.matrix(TensorName.perLayerEmbedding.weight, rows: shape.vocabularySize, columns: all),
                projection: try p.matrix(TensorName.perLayerModelProjection.weight, rows: all, columns: shape.width),
                norm: try p.vector(TensorName.perLayerProjectionNorm.weight, count: shape.perLayerWidth))
        }
        layers.reserveCapacity(shape.layers.count)
        for (index, layer) in shape.layers.enumerated() {
            let names = LayerNames(index)
            layers.append(try Self.layer(layer, names, shape, &p))
            if shape.ignoresOutputBias { p.skip(names(.attentionOutput, .bias)) }
        }
    }

    /// The tensors of a prediction head; what its layer does not have is that of the model.
    init(predicting shape: ModelShape, layer: Int, after model: ModelTensors, _ p: inout TensorPacker) throws(ModelError) {
        let (names, width) = (LayerNames(layer), shape.width)
        func table(_ name: TensorName, _ p: inout TensorPacker) throws(ModelError) -> Matrix? {
            try p.matrixIfPresent(names(name), rows: shape.vocabularySize, columns: width)
        }
        embedding = try table(.predictionEmbedding, &p) ?? model.embedding
        head = try table(.predictionOutput, &p) ?? model.head
        headBias = model.headBias
        outputNorm =
            try p.vectorIfPresent(names(.predictionOutputNorm), count: width).map { Norm(weight: $0) } ?? model.outputNorm
        prediction = Prediction(
            input: try p.matrix(names(.predictionInput), rows: width, columns: 2 * width),
            embeddingNorm: try p.vector(names(.predictionEmbeddingNorm), count: width),
            hiddenNorm: try p.vector(names(.predictionHiddenNorm), count: width))
        layers = [try Self.layer(shape.layers[0], names, shape, &p)]
    }

    /// A norm of the residual stream. Files may have a bias of a layer norm.
    private static func norm(
        _ name: TensorName?, _ names: (TensorName, TensorName.Part) -> String, _ shape: ModelShape, _ p: inout TensorPacker
    ) throws(ModelError) -> Norm? {
        guard let name else { return nil }
        var norm = Norm(weight: try p.vector(names(name, .weight), count: shape.width))
        if shape.norm == .layer { norm.bias = try p.vectorIfPresent(names(name, .bias), count: shape.width) }
        return norm
    }

    // MARK: - Layers

    private static func layer(
        _ layer: ModelShape.Layer, _ names: LayerNames, _ shape: ModelShape, _ p: inout TensorPacker
    ) throws(ModelError) -> Layer {
        let width = shape.width
        func norm(_ name: TensorName?, _ p: inout TensorPacker) throws(ModelError) -> Norm? {
            try Self.norm(name, names.callAsFunction, shape, &p)
        }
        var result = Layer(
            mixerNorm: try norm(layer.mixerNorm, &p), mixerPostNorm: try norm(layer.mixerPostNorm, &p)?.weight,
            mixerResidualNorm: try norm(layer.mixerResidualNorm, &p), feedForwardNorm: try norm(layer.feedForward?.norm, &p),
            feedForwardPostNorm: try norm(layer.feedForward?.postNorm, &p)?.weight,
            feedForwardResidualNorm: try norm(layer.feedForward?.residualNorm, &p))
        switch layer.mixer {
        case .attention(let attention):
            result.mixer = .attention(try self.attention(attention, names, width, shape.ignoresOutputBias, &p))
        case .latent(let latent): result.mixer = .latent(try self.latent(latent, names, width, &p))
        case .delta(let delta): result.mixer = .delta(try self.delta(delta, names, width, &p))
        case .mamba(let mamba): result.mixer = .mamba(try self.mamba(mamba, names, width, &p))
        case .convolution(let taps):
            result.mixer = .convolution(
                Convolution(
                    input: try p.matrix(names(.convolutionInput), rows: 3 * width, columns: width),
                    kernel: try p.vector(names(.convolution), count: taps * width),
                    output: try p.matrix(names(.convolutionOutput), rows: width, columns: width)))
        case nil: break
        }
        if let dense = layer.feedForward?.dense { result.dense = try self.dense(dense, names, width, &p) }
        if let experts = layer.feedForward?.experts { result.experts = try self.experts(experts, names, width, &p) }
        if shape.perLayerWidth > 0 {
            result.perLayer = PerLayer(
                gate: try p.matrix(names(.perLayerGate), rows: shape.perLayerWidth, columns: width),
                projection: try p.matrix(names(.perLayerProjection), rows: width, columns: shape.perLayerWidth),
                norm: try p.vector(names(.perLayerNorm), count: width))
        }
        if let scale = layer.outputScale { result.outputScale = try p.values(names(scale))?.first ?? 1 }
        return result
    }
}
