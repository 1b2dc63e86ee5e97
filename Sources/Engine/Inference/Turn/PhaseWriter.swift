/// What a ``PhaseWriter`` needs next.
enum PhaseNeed {
    /// The logits after the last token, and after at most so many proposed tokens.
    case logits(proposals: Int)
    /// The logits after the last token of a few tokens, in ascending order.
    case candidates([TokenID])
    /// Nothing: these tokens come next, whatever the logits are.
    case forced(ArraySlice<TokenID>)
    /// Nothing: this has become of logits that were taken before.
    case step(PhaseStep)
    /// Nothing, as long as the writer waits.
    case nothing
    /// Nothing: the phase has ended.
    case end(PhaseEnd)
}

/// What a ``PhaseWriter`` made of a row of logits.
enum PhaseStep: Sendable {
    /// The row is of no use, or the writer keeps it until it can choose.
    case nothing
    /// The model has chosen this token.
    case token(TokenID, TokenScore?)
    /// These tokens come next, whatever the logits are.
    case forced(ArraySlice<TokenID>)
    /// The model has chosen a token that ends the phase and is not part of it.
    case stop(PhaseEnd)
    /// The phase has ended without another token.
    case end(PhaseEnd)
}

/// Chooses the tokens of one phase of a turn. It knows no sequence, no text and no usage: the ``TurnDriver`` keeps them.
///
/// - Note: `generated` is the number of tokens that the phase has so far.
protocol PhaseWriter: AnyObject {
    func next(generated: Int, _ sampler: Sampler) throws -> PhaseNeed
    /// - Parameter logits: `[vocabulary]`; may be overwritten. After a need of candidates, all others are meaningless.
    func take(_ logits: HostLogits, generated: Int, _ sampler: Sampler) throws -> PhaseStep
    /// Whether the phase ends after a token that ``take(_:generated:_:)`` has chosen; `generated` includes it.
    func end(after token: TokenID, generated: Int) -> PhaseEnd?
    /// Whether it has taken logits and waits for another thread before it can choose.
    var isWaiting: Bool { get }
    /// Calls `body` once it does not wait any longer: now, or on another thread.
    func whenReady(_ body: @escaping @Sendable () -> Void)
}

extension PhaseWriter {
    func end(after token: TokenID, generated: Int) -> PhaseEnd? { nil }
    var isWaiting: Bool { false }
    func whenReady(_ body: @escaping @Sendable () -> Void) { body() }
}
