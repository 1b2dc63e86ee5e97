/// Changes of the logits by the tokens of the response so far, which make repetition less likely, and a filter of improbable tokens.
/// Nothing of it is on unless the caller or the model's configuration asks for it.
package struct SamplingPenalties: Sendable, Hashable {
    /// Divides positive logits of the last ``window`` tokens, and multiplies negative ones (arXiv:1909.05858, section 4.1). 1 disables
    /// the penalty.
    package var repetition: Double?
    /// Subtracted from the logits of the last ``window`` tokens.
    package var presence = 0.0
    /// Subtracted from the logits of the last ``window`` tokens, for each time that a token occurs there.
    package var frequency = 0.0
    /// Tokens with less than this share of the most probable token's probability cannot be drawn.
    package var minP = 0.0
    /// “Don't repeat yourself”: a token with which the response would continue like an earlier part of it loses
    /// `dry · dryBase ^ (n − dryAllowedLength)` of its logit, if n tokens are already equal. 0 disables it.
    package var dry = 0.0
    package var dryBase = 1.75
    package var dryAllowedLength = 2

    /// The number of last tokens of the response that count for the first three.
    package static let window = 64
    /// The number of last tokens of the response in which DRY looks for repetitions.
    package static let dryWindow = 1_024

    package init(repetition: Double? = nil) { self.repetition = repetition }

    /// Whether logits depend on the tokens of the response.
    var readsTokens: Bool { repetition ?? 1 != 1 || presence != 0 || frequency != 0 || dry != 0 }
}
