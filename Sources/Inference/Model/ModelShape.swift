/// The shape of a decoder, read from a file: which layers it has, how each is built, and the names of its tensors.
///
/// One forward pass (``DecoderModel``) runs any shape; a family of models is a function that makes one from metadata
/// (``ModelFamily``). Nothing here is unchecked: sizes are positive and bounded, indices are valid.
package struct ModelShape: Sendable, Equatable {
    package var architecture: String
    /// `general.name`, or the architecture where the file has no name.
    package var name: String
    /// Width of the residual stream (n_embd).
    package var width: Int
    package var vocabularySize: Int
    /// Positions the model was trained for.
    package var contextLength: Int
    package var normEpsilon: Double
    /// Multiplies token embeddings.
    package var embeddingScale = 1.0
    /// Multiplies what each branch adds to the residual stream.
    package var residualScale = 1.0
    /// Multiplies logits.
    package var logitScale = 1.0
    /// Logits become `cap·tanh(logit/cap)`; 0 for none.
    package var logitSoftCap = 0.0
    /// The norm before the output head.
    package var outputNorm = "output_norm.weight"
    /// The kinds of rotary positions that layers refer to.
    package var rotaries: [Rotary] = []
    package var layers: [Layer] = []
    /// Width of the vectors that each token has for each layer (Gemma 4); 0 for none.
    package var perLayerWidth = 0
    /// Tensors of layers that files have and the model does not use.
    package var ignoredTensors: [String] = []

    /// Rotary position embedding (RoFormer, arXiv:2104.09864).
    package struct Rotary: Sendable, Equatable {
        /// Dimensions of a head that are rotated.
        package var dimensions: Int
        package var base: Double
        package var scaling = Scaling.none
        /// Multiplies sine and cosine.
        package var magnitude = 1.0
        /// Rotated pairs are (i, i + half) rather than (2i, 2i + 1).
        package var halves: Bool
        /// A tensor that divides each pair's frequency.
        package var factors: String?
        /// The tensor that is used instead for windows beyond `originalContext`.
        package var longFactors: String?
        package var originalContext = 0
    }

    /// How positions beyond the original training length are brought into range.
    package enum Scaling: Sendable, Equatable {
        case none
        /// Positions divided by the factor (arXiv:2306.15595).
        case linear(factor: Double)
        /// Interpolation of low frequencies only (arXiv:2309.00071).
        case yarn(factor: Double, originalContext: Int, fast: Double, slow: Double)
    }

    package struct Layer: Sendable, Equatable {
        package var mixer: Mixer?
        /// The norm before the mixer; nil for none.
        package var mixerNorm: String? = "attn_norm.weight"
        /// The norm of the mixer's output before it is added; nil for none.
        package var mixerPostNorm: String?
        package var feedForward: FeedForward?
        /// A tensor of one number that multiplies the layer's output.
        package var outputScale: String?
    }

    /// What moves information between positions.
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
        /// Multiplies scores.
        package var scale: Double
        /// Index into `rotaries`; nil for no positions.
        package var rotary: Int?
        /// Positions each token sees, its own included; nil for all.
        package var window: Int?
        package var softCap = 0.0
        package var headNorm = HeadNorm.none
        package var hasSinks = false
        /// Values are divided by their root mean square (Gemma 4).
        package var normalizesValues = false
        /// The query projection also gives a gate for each head's output (Qwen 3.5).
        package var isGated = false
        /// The layer whose keys and values are used instead of own ones.
        package var sharedLayer: Int?
        /// Values are the key projection (Gemma 4's large models).
        package var valuesAreKeys = false
        /// Queries at position p are multiplied by `1 + beta·ln(1 + ⌊p / length⌋)`.
        package var temperature: Temperature?
    }

    package struct Temperature: Sendable, Equatable {
        package var beta: Double
        package var length: Int
    }

    /// Where queries and keys are normalised.
    package enum HeadNorm: Sendable, Equatable { case none, heads, rotatedHeads, whole }

    /// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434) in its absorbed form: one KV head that holds the latent and
    /// the rotated part of the key.
    package struct LatentAttention: Sendable, Equatable {
        package var heads: Int
        /// Rank of the queries' latent; nil for a plain projection.
        package var queryRank: Int?
        package var kvRank: Int
        /// Dimensions of a key without and with rotation.
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
        /// Value head h belongs to key head h mod keyHeads.
        package var isTiled: Bool
        /// `ssm_ba` holds both β and α, for each key head those of its value heads.
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

    package enum Activation: Sendable, Equatable { case silu, gelu, reluSquared, swigluOAI }

    package struct FeedForward: Sendable, Equatable {
        package var norm: String? = "ffn_norm.weight"
        package var postNorm: String?
        package var dense: Dense?
        package var experts: Experts?
    }

    package struct Dense: Sendable, Equatable {
        package var width: Int
        package var activation: Activation
        /// Without a gate, the activation is applied to `up`.
        package var isGated = true
        /// Behind `ffn_gate`, `ffn_up`, `ffn_down`: `_shexp` for an expert that every token goes to.
        package var suffix = ""
        /// A vector whose product with the input, through a sigmoid, multiplies the output.
        package var outputGate: String?
        package var postNorm: String?
    }

    /// A mixture of experts (arXiv:1701.06538).
    package struct Experts: Sendable, Equatable {
        package var count: Int
        package var used: Int
        package var width: Int
        package var activation: Activation
        package var isGated = true
        package var gating = Gating.softmax
        /// Weights of the chosen experts add up to 1.
        package var normalizes = true
        package var scale = 1.0
        package var groups = 1
        package var usedGroups = 1
        /// A norm of their own input, instead of the feed-forward's.
        package var norm: String?
        package var postNorm: String?
        /// A tensor that scales the router's input, which is normalised and divided by √width (Gemma 4).
        package var routerScale: String?
    }

    package enum Gating: Sendable, Equatable { case softmax, sigmoid, softmaxOfChosen }

    /// Whether some layer keeps a state that cannot be cut back to an earlier position.
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

    init(architecture: String, name: String, width: Int, vocabularySize: Int, contextLength: Int, normEpsilon: Double) {
        self.architecture = architecture
        self.name = name
        self.width = width
        self.vocabularySize = vocabularySize
        self.contextLength = contextLength
        self.normEpsilon = normEpsilon
    }
}
