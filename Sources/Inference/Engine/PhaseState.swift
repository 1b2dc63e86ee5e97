internal import Grammar

/// What only one kind of phase has.
enum PhaseState {
    case free(FreeState)
    case constrained(ConstrainedState)
    case choice(options: [[TokenID]])
    case comparison
}

struct FreeState {
    var loops: LoopDetector
    /// Number of text bytes before each token.
    var offsets: [Int] = []
    var bytes = 0
    /// Earlier answers that begin like this one; text is held back while there are any.
    var repeated: [[TokenID]] = []
    /// For each token of the phase so far, while there are: the next best token, and its probability relative to the best.
    var alternatives: [(token: TokenID, ratio: Float)] = []
    /// A token that is taken instead of a sampled one.
    var replacement: TokenID?
    var avoidances = 0
}

struct ConstrainedState {
    var decoder: ConstrainedDecoder
    let chooser: TokenChooser
    let grammar: Grammar
    let limit: Int
    /// The step whose logits are being computed.
    var step: ConstrainedDecoder.Step?
    var repetition: RepetitionGuard
    /// Recognises loops inside a string.
    var loops = LoopDetector()
    var wasInString = false
    /// Whether a loop has been ended.
    var endedLoop = false
}
