package import Inference

/// Options for generating a response. Nil selects the model's default.
public struct GenerationOptions: Sendable, Equatable {
    /// How the next token is sampled.
    public struct SamplingMode: Sendable, Equatable {
        /// The mode in a form that executors can read.
        public enum Kind: Sendable, Equatable {
            /// The most probable token.
            case greedy
            /// Samples from the given number of most probable tokens; a nil seed selects a random one for each
            /// request.
            case randomTopK(_: Int, seed: UInt64?)
            /// Samples from the smallest set of most probable tokens whose probabilities add up to this threshold; a
            /// nil seed selects a random one for each request.
            case randomProbabilityThreshold(_: Double, seed: UInt64?)
        }

        /// The mode in a form that executors can read.
        public let kind: Kind

        /// Always selects the most probable token: the same prompt produces the same response.
        public static var greedy: SamplingMode { SamplingMode(kind: .greedy) }

        /// Samples from the `k` most probable tokens. The same seed produces the same response.
        public static func random(top k: Int, seed: UInt64? = nil) -> SamplingMode {
            SamplingMode(kind: .randomTopK(k, seed: seed))
        }

        /// Samples from the smallest set of most probable tokens whose probabilities add up to this threshold. The
        /// same seed produces the same response.
        public static func random(probabilityThreshold: Double, seed: UInt64? = nil) -> SamplingMode {
            SamplingMode(kind: .randomProbabilityThreshold(probabilityThreshold, seed: seed))
        }
    }

    /// The former name of ``samplingMode``.
    @available(*, deprecated, renamed: "samplingMode")
    public var sampling: SamplingMode? {
        get { samplingMode }
        set { samplingMode = newValue }
    }
    /// How the next token is sampled.
    public var samplingMode: SamplingMode?
    /// The sampling temperature, from 0 (always the most probable token) to 2 (the most random).
    public var temperature: Double?
    /// The maximum number of tokens in the response. At the limit, text is truncated; a structured response is
    /// completed before it reaches the limit.
    public var maximumResponseTokens: Int?
    /// Whether the model may, must or must not call tools; nil means allowed.
    public var toolCallingMode: ToolCallingMode?
    /// Penalties of repetition, beside Apple's options: see `SamplingAdjustments` of FoundationModelsGGUF.
    package var penalties: SamplingPenalties?

    /// Whether a model calls tools.
    public struct ToolCallingMode: Sendable, Equatable {
        /// The mode in a form that executors can read.
        public enum Kind: Sendable, Equatable, Hashable {
            /// The model decides.
            case allowed
            /// The model must call a tool.
            case required
            /// The prompt contains no tools.
            case disallowed
        }

        /// The mode in a form that executors can read.
        public var kind: Kind
        /// The model decides.
        public static let allowed = ToolCallingMode(kind: .allowed)
        /// The model calls at least one tool before it answers. After the first calls it may call more of them, and ends with an
        /// answer in words.
        public static let required = ToolCallingMode(kind: .required)
        /// The prompt contains no tools.
        public static let disallowed = ToolCallingMode(kind: .disallowed)
    }

    /// Creates options without a tool calling mode. What is nil is chosen by the model's defaults, and the model decides whether it
    /// calls tools.
    public init(samplingMode: SamplingMode? = nil, temperature: Double? = nil, maximumResponseTokens: Int? = nil) {
        self.samplingMode = samplingMode
        self.temperature = temperature
        self.maximumResponseTokens = maximumResponseTokens
    }

    /// Creates options; nil selects the model's default.
    public init(
        samplingMode: SamplingMode? = nil, temperature: Double? = nil, maximumResponseTokens: Int? = nil,
        toolCallingMode: ToolCallingMode?
    ) {
        self.init(samplingMode: samplingMode, temperature: temperature, maximumResponseTokens: maximumResponseTokens)
        self.toolCallingMode = toolCallingMode
    }

    /// The former spelling of the initializer with `samplingMode`.
    @available(*, deprecated, renamed: "init(samplingMode:temperature:maximumResponseTokens:)")
    public init(sampling: SamplingMode?, temperature: Double? = nil, maximumResponseTokens: Int? = nil) {
        self.init(samplingMode: sampling, temperature: temperature, maximumResponseTokens: maximumResponseTokens)
    }
}

extension GenerationOptions {
    /// These options, with nil values replaced by those of the other.
    func completed(by other: GenerationOptions) -> GenerationOptions {
        var options = GenerationOptions(
            samplingMode: samplingMode ?? other.samplingMode, temperature: temperature ?? other.temperature,
            maximumResponseTokens: maximumResponseTokens ?? other.maximumResponseTokens,
            toolCallingMode: toolCallingMode ?? other.toolCallingMode)
        options.penalties = penalties ?? other.penalties
        return options
    }
}
