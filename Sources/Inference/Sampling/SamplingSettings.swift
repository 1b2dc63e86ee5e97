/// How the next token is chosen from the logits.
///
/// Order: (0) the repetition penalty, if any, lowers tokens that occurred lately; (1) tokens are ranked by the model's own probabilities; (2) `topK` or `topP` cuts off the tail; (3) the
/// temperature is applied to what is left; (4) one of these is drawn. Because the cut comes before the temperature, a
/// high temperature makes the choice among plausible tokens freer, but never reaches into the noise of the tail.
package struct SamplingSettings: Sendable, Equatable {
    /// 0 is greedy. Values are clamped to 0…2.
    package var temperature: Double
    /// Keep the `topK` most probable tokens.
    package var topK: Int?
    /// Keep the most probable tokens whose probabilities add up to at least `topP`.
    package var topP: Double?
    /// The same seed, model and prompt give the same tokens. Nil draws a seed.
    package var seed: UInt64?

    /// Divides positive logits of the last 64 tokens, and multiplies negative ones (arXiv:1909.05858, section 4.1).
    /// 1 changes nothing; small models need a little of it, or they fall into loops.
    package var repetitionPenalty: Double

    package init(
        temperature: Double = 0.7, topK: Int? = nil, topP: Double? = nil, seed: UInt64? = nil, repetitionPenalty: Double = 1
    ) {
        self.repetitionPenalty = repetitionPenalty
        // NaN compares false with everything: it becomes the least creative choice, not a trap.
        self.temperature = temperature > 0 ? min(temperature, 2) : 0
        self.topK = topK.map { max(1, $0) }
        self.topP = topP.map { $0 > 0 ? min($0, 1) : 0 }
        self.seed = seed
    }

    package static let greedy = SamplingSettings(temperature: 0)

    var isGreedy: Bool { temperature == 0 || topK == 1 || topP == 0 }
}
