public import FoundationModels
internal import Inference

/// Settings of sampling that Apple's options do not have: penalties of repetition, and a minimum probability.
///
/// ```swift
/// var options = GenerationOptions(temperature: 0.8)
/// options.samplingAdjustments = SamplingAdjustments(frequencyPenalty: 0.5, minP: 0.05)
/// let answer = try await session.respond(to: "Write a poem.", options: options)
/// ```
///
/// They apply to models that run on this machine: the system model and ``GGUFLanguageModel``. Without them an answer is drawn from the
/// model's own distribution; only the repetition penalty of the model's configuration applies, and not with `.greedy`. All penalties
/// read the tokens of the response, not those of the prompt. In structured responses they apply to the words of values.
public struct SamplingAdjustments: Sendable, Hashable {
    /// Divides positive logits of the last 64 tokens and multiplies negative ones (arXiv:1909.05858, section 4.1): 1 changes nothing,
    /// 1.1 is usual. Nil for the value of the model's configuration.
    public var repetitionPenalty: Double?
    /// Subtracted from the logits of the last 64 tokens: 0 changes nothing.
    public var presencePenalty: Double
    /// Subtracted from the logits of the last 64 tokens for each time that they occur there: 0 changes nothing.
    public var frequencyPenalty: Double
    /// Tokens with less than this share of the most probable token's probability are not drawn: 0 changes nothing, 0.05 is usual.
    public var minP: Double
    /// How much a token loses that would continue a repetition of earlier text of the response (the DRY sampler of other engines); nil
    /// for nothing.
    public var dry: DRY?

    /// “Don't repeat yourself”: a token that would continue a repetition of n tokens loses `multiplier · base ^ (n − allowedLength)` of
    /// its logit. Repetitions end at line breaks, colons, quotation marks and asterisks.
    public struct DRY: Sendable, Hashable {
        /// 0 changes nothing, 0.8 is usual.
        public var multiplier: Double
        /// How fast the penalty grows with the length of the repetition.
        public var base: Double
        /// The number of tokens that may be repeated freely.
        public var allowedLength: Int

        /// Creates the settings with the usual values of other engines.
        public init(multiplier: Double = 0.8, base: Double = 1.75, allowedLength: Int = 2) {
            self.multiplier = multiplier
            self.base = base
            self.allowedLength = allowedLength
        }
    }

    /// Creates settings that change nothing but what is given.
    public init(
        repetitionPenalty: Double? = nil, presencePenalty: Double = 0, frequencyPenalty: Double = 0, minP: Double = 0,
        dry: DRY? = nil
    ) {
        self.repetitionPenalty = repetitionPenalty
        self.presencePenalty = presencePenalty
        self.frequencyPenalty = frequencyPenalty
        self.minP = minP
        self.dry = dry
    }
}

extension GenerationOptions {
    /// Settings that Apple's options do not have; nil for the model's own distribution. Values outside of their range are moved into it.
    public var samplingAdjustments: SamplingAdjustments? {
        get {
            penalties.map { penalties in
                SamplingAdjustments(
                    repetitionPenalty: penalties.repetition, presencePenalty: penalties.presence,
                    frequencyPenalty: penalties.frequency, minP: penalties.minP,
                    dry: penalties.dry == 0
                        ? nil
                        : .init(multiplier: penalties.dry, base: penalties.dryBase, allowedLength: penalties.dryAllowedLength))
            }
        }
        set {
            penalties = newValue.map { new in
                /// A value within a range; the lower bound for what is not a number.
                func limited(_ value: Double, _ range: ClosedRange<Double>) -> Double {
                    value > range.lowerBound ? min(value, range.upperBound) : range.lowerBound
                }
                var made = SamplingPenalties(repetition: new.repetitionPenalty.map { limited($0, 0.01...10) })
                made.presence = limited(new.presencePenalty, -2...2)
                made.frequency = limited(new.frequencyPenalty, -2...2)
                made.minP = limited(new.minP, 0...1)
                if let dry = new.dry {
                    made.dry = limited(dry.multiplier, 0...10)
                    made.dryBase = limited(dry.base, 1...10)
                    made.dryAllowedLength = max(1, dry.allowedLength)
                }
                return made
            }
        }
    }
}
