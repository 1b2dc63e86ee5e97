internal import Grammar

/// What only one kind of phase has.
enum PhaseState {
    case free(FreeState)
    case constrained(ConstrainedState)
    case choice(options: [[TokenID]])
    case comparison
}

struct FreeState {
    /// Nil if loops are not ended.
    var loops: LoopDetector?
    /// A token that is taken instead of a sampled one.
    var replacement: TokenID?
}

struct ConstrainedState {
    var decoder: GrammarCursor
    let chooser: TokenChooser
    let limit: Int
    /// The step whose logits are being computed.
    var step: GrammarCursor.Step?
    /// Nil if loops are not ended.
    var loops: LoopDetector?
    /// Whether the value was closed because it was a loop.
    var endedLoop = false
}
