/// How a response is generated. Nil leaves the choice to the model.
public struct GenerationOptions: Sendable, Equatable {
    /// How the next token is chosen.
    public struct SamplingMode: Sendable, Equatable {
        /// The mode in a form that executors can read.
        public enum Kind: Sendable, Equatable {
            /// Always the most probable token.
            case greedy
            /// One of so many most probable tokens; a seed of nil is a new one each time.
            case randomTopK(_: Int, seed: UInt64?)
            /// One of the most probable tokens that together reach this probability; a seed of nil is a new one each time.
            case randomProbabilityThreshold(_: Double, seed: UInt64?)
        }

        /// What executors read.
        public let kind: Kind

        /// Always the most probable token: the same prompt gives the same response.
        public static var greedy: SamplingMode { SamplingMode(kind: .greedy) }

        /// One of the `k` most probable tokens. The same seed gives the same response.
        public static func random(top k: Int, seed: UInt64? = nil) -> SamplingMode {
            SamplingMode(kind: .randomTopK(k, seed: seed))
        }

        /// One of the most probable tokens that together reach this probability. The same seed gives the same response.
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
    /// How the next token is chosen.
    public var samplingMode: SamplingMode?
    /// 0 (the most probable) to 2 (the freest choice among plausible tokens).
    public var temperature: Double?
    /// Tokens after which the response is cut. A text then simply ends; a structure is brought to its end in time.
    public var maximumResponseTokens: Int?
    /// Whether the model may, must or must not call tools; nil is allowed.
    public var toolCallingMode: ToolCallingMode?

    /// Whether a model calls tools.
    public struct ToolCallingMode: Sendable, Equatable {
        /// The mode in a form that executors can read.
        public enum Kind: Sendable, Equatable, Hashable {
            /// The model decides.
            case allowed
            /// The model has to call a tool.
            case required
            /// The model does not see the tools.
            case disallowed
        }

        /// What executors read.
        public var kind: Kind
        /// The model decides.
        public static let allowed = ToolCallingMode(kind: .allowed)
        /// The model calls tools again and again, until one throws, the mode changes, the same calls give
        /// the same three times in a row, or there were sixteen rounds.
        public static let required = ToolCallingMode(kind: .required)
        /// The model does not see the tools.
        public static let disallowed = ToolCallingMode(kind: .disallowed)
    }

    /// What is nil is left to the model, and so are tool calls.
    public init(samplingMode: SamplingMode? = nil, temperature: Double? = nil, maximumResponseTokens: Int? = nil) {
        self.samplingMode = samplingMode
        self.temperature = temperature
        self.maximumResponseTokens = maximumResponseTokens
    }

    /// What is nil is left to the model.
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
