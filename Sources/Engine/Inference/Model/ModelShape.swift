/// The shape of a decoder or encoder, read from a file: its layers, their structure, and their tensors.
///
/// One forward pass (``NeuralModel``) computes any shape; for each architecture, a function creates the shape from
/// metadata (``ModelFamily``). All values are validated: sizes are positive and bounded, indices are valid.
package struct ModelShape: Sendable, Equatable {
    package var architecture: String
    /// `general.name`, or the architecture where the file has no name.
    package var name: String
    /// Width of the residual stream (n_embd).
    package var width: Int
    package var vocabularySize: Int
    /// The number of positions that the model was trained for.
    package var contextLength: Int
    package var normEpsilon: Double
    /// The factor of token embeddings.
    package var embeddingScale = 1.0
    /// The factor of each branch's output before it is added to the residual stream.
    package var residualScale = 1.0
    /// The factor of logits.
    package var logitScale = 1.0
    /// The cap of logits, which become `cap·tanh(logit/cap)`; 0 for none.
    package var logitSoftCap = 0.0
    /// The norm before the output head; nil for none.
    package var outputNorm: TensorName? = .outputNorm
    /// The norm of the residual stream: `mixerNorm`, `residualNorm`, `outputNorm` and so on.
    package var norm = Norm.rms
    /// Whether every token attends to those after it too. Such a model computes embeddings and generates no text.
    package var isEncoder = false
    /// The number of rows of `position_embd.weight`, which is added to the token embeddings; 0 for none.
    package var positionCount = 0
    /// Whether the first row of `token_types.weight` is added to the token embeddings.
    package var hasTokenTypes = false
    /// The norm of the embeddings; nil for none.
    package var embeddingNorm: TensorName?
    /// How the outputs for the tokens of a text become one vector; nil for models that only generate text.
    package var pooling: Pooling?
    /// The matrices that the pooled vector is multiplied by, in order.
    package var projections: [Projection] = []
    /// Whether the pooled vector becomes a score: the model reads a question and a text together.
    package var hasClassifier = false
    /// The number of elements of a text's vector.
    package var embeddingWidth: Int { projections.last?.width ?? width }
    /// The rotary embeddings, which layers refer to by index.
    package var rotaries: [Rotary] = []
    package var layers: [Layer] = []
    /// The width of per-layer token embeddings (Gemma 4); 0 for none.
    package var perLayerWidth = 0
    /// Whether files contain a bias of the attention's output that the model does not use.
    package var ignoresOutputBias = false

    /// Rotary position embedding (RoFormer, arXiv:2104.09864).
    package struct Rotary: Sendable, Equatable {
        /// The number of rotated dimensions of a head.
        package var dimensions: Int
        package var base: Double
        package var scaling = Scaling.none
        /// The factor of sine and cosine.
        package var magnitude = 1.0
        /// Whether rotated pairs are (i, i + half) rather than (2i, 2i + 1).
        package var halves: Bool
        /// Whether the blended pairs of ``Scaling/yarn(factor:originalContext:fast:slow:)`` begin and end at whole numbers.
        package var roundsBlend = true
        /// The tensor with divisors of each pair's frequency.
        package var factors: TensorName?
        /// The tensor that is used instead for contexts larger than `originalContext`.
        package var longFactors: TensorName?
        package var originalContext = 0
        /// The pairs that are rotated by each coordinate of a position; nil if all are by the first one.
        package var sections: Sections?
    }

    /// How pairs are divided among the coordinates of positions (multimodal rotary embedding, arXiv:2409.12191). Text has equal
    /// coordinates.
    package struct Sections: Sendable, Equatable {
        package var time: Int
        package var height: Int
        package var width: Int
        /// Whether successive pairs have different coordinates, so that each coordinate has high and low frequencies.
        package var isInterleaved = false

        package func axis(ofPair pair: Int) -> RowPosition.Axis {
            if isInterleaved {
                if pair % 3 == 1, pair < 3 * height { return .height }
                return pair % 3 == 2 && pair < 3 * width ? .width : .time
            }
            if (time..<time + height).contains(pair) { return .height }
            return (time + height..<time + height + width).contains(pair) ? .width : .time
        }
    }

    /// The scaling of positions for contexts longer than the original training length.
    package enum Scaling: Sendable, Equatable {
        case none
        /// Positions are divided by the factor (arXiv:2306.15595).
        case linear(factor: Double)
        /// Interpolation of low frequencies only (arXiv:2309.00071).
        case yarn(factor: Double, originalContext: Int, fast: Double, slow: Double)
    }

    package enum Norm: Sendable, Equatable {
        /// Division by the root mean square (arXiv:1910.07467).
        case rms
        /// Subtraction of the mean, and division by the standard deviation (arXiv:1607.06450).
        case layer
    }

    /// The vector of a text: the mean of its tokens' outputs, or the output of the first (`[CLS]`) or last token.
    package enum Pooling: Sendable, Equatable { case mean, first, last }

    package struct Projection: Sendable, Equatable {
        package var name: TensorName
        /// The number of elements of the result.
        package var width: Int
    }

    package struct Layer: Sendable, Equatable {
        package var mixer: Mixer?
        /// The norm before the mixer; nil for none.
        package var mixerNorm: TensorName? = .attentionNorm
        /// The norm of the mixer's output before it is added to the residual stream; nil for none.
        package var mixerPostNorm: TensorName?
        /// The norm of the residual stream after the mixer's output has been added; nil for none.
        package var mixerResidualNorm: TensorName?
        package var feedForward: FeedForward?
        /// A tensor with a single factor of the layer's output.
        package var outputScale: TensorName?
    }

    /// The part of a layer that combines information of several positions.
    package enum Mixer: Sendable, Equatable {
        case attention(Attention)
        case latent(LatentAttention)
        case delta(DeltaNet)
        case mamba(Mamba)
        case convolution(width: Int)
    }

    package struct Attention: Sendable, Equatable {
        package var heads: Int
        package var kvHeads: Int
        package var keyDimension: Int
        package var valueDimension: Int
        /// The factor of scores.
        package var scale: Double
        /// An index into `rotaries`; nil for no position embedding.
        package var rotary: Int?
        /// The number of positions that each token attends to, including its own; nil for all. In an encoder, half of them
        /// are on each side.
        package var window: Int?
        package var softCap = 0.0
        package var headNorm = HeadNorm.none
        package var hasSinks = false
        /// Whether values are divided by their root mean square (Gemma 4).
        package var normalizesValues = false
        /// Whether the query projection also computes a gate for each head's output (Qwen 3.5).
        package var isGated = false
        /// The index of the layer whose keys and values this layer uses; nil if it has its own.
        package var sharedLayer: Int?
        /// Whether the key projection also provides the values (Gemma 4's large models).
        package var valuesAreKeys = false
        /// Queries at position p are multiplied by `1 + beta·ln(1 + ⌊p / length⌋)`.
        package var temperature: Temperature?
    }

    package struct Temperature: Sendable, Equatable {
        package var beta: Double
        package var length: Int
    }

    /// The normalisation of queries and keys: none, each head before rotation, each head after rotation, or all heads
    /// together.
    package enum HeadNorm: Sendable, Equatable { case none, heads, rotatedHeads, whole }

    /// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434) in its absorbed form: one KV head that consists of
    /// the latent and the rotated part of the key.
    package struct LatentAttention: Sendable, Equatable {
        package var heads: Int
        /// The rank of the queries' latent; nil for a direct projection.
        package var queryRank: Int?
        package var kvRank: Int
        /// The numbers of dimensions of a key without and with rotation.
        package var plainDimension: Int
        package var rotaryDimension: Int
        package var valueDimension: Int
        package var scale: Double
        package var rotary: Int
        package var temperature: Temperature?
    }

    /// A gated delta net (arXiv:2412.06464).
    package struct DeltaNet: Sendable, Equatable {
        package var keyHeads: Int
        package var valueHeads: Int
        package var keyDimension: Int
        package var valueDimension: Int
        package var convolution: Int
        /// Whether value head h uses key head h mod keyHeads.
        package var isTiled: Bool
        /// Whether the tensor `ssm_ba` contains both β and α, grouped by key head.
        package var hasFusedGates: Bool
        package var mixedWidth: Int { 2 * keyHeads * keyDimension + valueHeads * valueDimension }
        package var valueWidth: Int { valueHeads * valueDimension }
    }

    /// Mamba-2 (arXiv:2405.21060).
    package struct Mamba: Sendable, Equatable {
        package var inner: Int
        package var heads: Int
        package var groups: Int
        package var stateSize: Int
        package var convolution: Int
        package var mixedWidth: Int { inner + 2 * groups * stateSize }
        package var inputWidth: Int { inner + mixedWidth + heads }
    }

    package enum Activation: Sendable, Equatable {
        case silu
        /// The tanh approximation.
        case gelu
        /// With the error function.
        case exactGelu
        case reluSquared, swigluOAI
    }

    package struct FeedForward: Sendable, Equatable {
        package var norm: TensorName? = .feedForwardNorm
        package var postNorm: TensorName?
        /// The norm of the residual stream after the output has been added; nil for none.
        package var residualNorm: TensorName?
        package var dense: Dense?
        package var experts: Experts?
    }

    package struct Dense: Sendable, Equatable {
        package var width: Int
        package var activation: Activation
        /// If false, the activation is applied to `up`.
        package var isGated = true
        /// Whether it is the shared expert beside routed ones, whose tensors have other names.
        package var isShared = false
        /// A gate vector: the output is multiplied by the sigmoid of its dot product with the input.
        package var outputGate: TensorName?
        package var postNorm: TensorName?
    }

    /// A mixture of experts (arXiv:1701.06538).
    package struct Experts: Sendable, Equatable {
        package var count: Int
        package var used: Int
        package var width: Int
        package var activation: Activation
        package var isGated = true
        package var gating = Gating.softmax
        /// Whether the weights of the chosen experts are normalised to a sum of 1.
        package var normalizes = true
        package var scale = 1.0
        package var groups = 1
        package var usedGroups = 1
        /// A separate norm of the experts' input; nil for the norm of the feed-forward network.
        package var norm: TensorName?
        package var postNorm: TensorName?
        /// The tensor whose scale multiplies the router's input, which is normalised and divided by √width (Gemma 4).
        package var routerScale: TensorName?
    }

    package enum Gating: Sendable, Equatable { case softmax, sigmoid, softmaxOfChosen }

    /// Whether any layer has a recurrent state, which cannot be truncated to an earlier position.
    package var isRecurrent: Bool {
        layers.contains { layer in
            switch layer.mixer {
            case .delta, .mamba, .convolution: true
            case .attention, .latent, nil: false
            }
        }
    }

    package init(file: GGUFFile) throws(ModelError) {
        self = try ModelFamily.shape(of: file)
    }

    /// - Throws: ``ModelError/unsupported(field:value:supported:)`` for encoders, which have no output head.
    package func checkGeneratesText() throws(ModelError) {
        guard isEncoder else { return }
        throw .unsupported(
            field: "general.architecture", value: architecture,
            supported: "models that generate text; this one computes embeddings")
    }

    init(architecture: String, name: String, width: Int, vocabularySize: Int, contextLength: Int, normEpsilon: Double) {
        self.architecture = architecture
        self.name = name
        self.width = width
        self.vocabularySize = vocabularySize
        self.contextLength = contextLength
        self.normEpsilon = normEpsilon
    }
}
