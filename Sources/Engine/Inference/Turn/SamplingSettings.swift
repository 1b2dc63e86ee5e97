/// What is added to the logit of a token.
package struct TokenBias: Sendable, Hashable {
    package var token: TokenID
    package var value: Float

    package init(token: TokenID, value: Float) { (self.token, self.value) = (token, value) }
}

/// How the next token is chosen from the logits.
///
/// Steps: (0) biases and penalties, if any, change the logits of some tokens; (1) tokens are ranked by probability;
/// (2) `topK`, `topP` and `minP` remove the tail of the distribution; (3) the temperature is applied to the remaining tokens;
/// (4) one of them is drawn. Because truncation precedes the temperature, a high temperature makes plausible tokens
/// more equally likely, but never allows tokens of the tail.
package struct SamplingSettings: Sendable, Equatable {
    /// 0 selects the most probable token (greedy). The initializer clamps values to 0…2.
    package var temperature: Double
    /// Keep only the `topK` most probable tokens; nil keeps all.
    package var topK: Int?
    /// Keep only the most probable tokens whose probabilities add up to at least `topP`; nil keeps all.
    package var topP: Double?
    /// The same seed, model and prompt give the same tokens. Nil uses a random seed.
    package var seed: UInt64?

    package var penalties: SamplingPenalties
    /// Added to the logits of tokens before everything else, also where a grammar allows only a few tokens. Tokens that the model does not
    /// have are left out.
    package var biases: [TokenBias] = []

    package init(
        temperature: Double = 0.7, topK: Int? = nil, topP: Double? = nil, seed: UInt64? = nil,
        penalties: SamplingPenalties = SamplingPenalties()
    ) {
        self.penalties = penalties
        // NaN compares false with everything, so it becomes 0 (greedy).
        self.temperature = temperature > 0 ? min(temperature, 2) : 0
        self.topK = topK.map { max(1, $0) }
        self.topP = topP.map { $0 > 0 ? min($0, 1) : 0 }
        self.seed = seed
    }

    package static let greedy = SamplingSettings(temperature: 0)

    package var isGreedy: Bool { temperature == 0 || topK == 1 || topP == 0 }
    /// Whether all of `count` tokens can be drawn.
    func keepsAll(of count: Int) -> Bool { topK ?? count >= count && topP ?? 1 >= 1 && penalties.minP <= 0 }
}
