/// The logits that the work of a sequence needs of the tokens it has named.
enum WantedLogits {
    /// No logits: the tokens are processed only.
    case processOnly
    /// After each of the last `count` tokens.
    case last(Int)
    /// After the last token, of these tokens only, in ascending order; all other logits are meaningless.
    case candidates([TokenID])
    /// After each of the first `count` tokens.
    case first(Int)
    /// Nothing is to be processed: the work waits, as long as it is ``SequenceWork/isBlocked``.
    case blocked
}

/// A second sequence of the work of a sequence: what is asked beside a turn.
struct WorkBranch: Equatable {
    /// Each branch of the work has another number.
    let number: Int
    /// The number of tokens with which later work may begin, so that their memory is kept.
    let keptTokens: Int
}

/// A computation with a model as a state machine: it names the tokens of its sequence that are to be processed next, and
/// takes the logits. Turns of a model, scoring and prefill are such work; the ``Engine`` runs them.
///
/// The engine makes the sequence contain exactly `prompt`, then calls ``next(_:draft:)`` until it returns nil. It calls
/// ``take(_:)`` after the prompt if `wantsPromptLogits`, and for the logits that `next` asked for. All calls are made on
/// the engine's executor, one at a time.
protocol SequenceWork: AnyObject {
    var prompt: ModelInput { get }
    /// Whether the logits after the prompt are needed. If so, its last token is always computed, also if it is cached.
    var wantsPromptLogits: Bool { get }

    /// Called before the prompt is processed, with the number of its tokens that are cached.
    func begin(cachedTokens: Int)
    /// Appends the tokens to process next to an empty array, which is reused. Returns nil if the work has ended.
    ///
    /// - Parameter draft: limits the tokens that are only a proposal.
    func next(_ tokens: inout [TokenID], draft: DraftBudget) throws -> WantedLogits?
    /// Takes the logits of one row, `[vocabulary]`, which are valid during the call and may be overwritten.
    func take(_ logits: UnsafeMutableBufferPointer<Float>) throws
    /// After ``next(_:draft:)``: the position in the sequence of the tokens that it named. Tokens from there on, which were
    /// rejected proposals or have been withdrawn, are removed first. Nil if none are.
    var position: Int? { get }
    /// The tokens of the sequence in a range before ``position``, for sequences that cannot be truncated anywhere.
    func tokens(in range: Range<Int>) -> ArraySlice<TokenID>
    /// After ``next(_:draft:)``: the branch whose tokens it has named; nil for the sequence itself. The engine makes a new branch contain
    /// the tokens before ``position``, and says with ``begin(cachedTokens:)`` how many of them were in memory.
    var branch: WorkBranch? { get }
    /// What the sequence or branch begins with, as far as that is more than tokens.
    var input: ModelInput { get }
    /// Whether the work waits for something other than the model. Whoever ends that wakes the engine.
    var isBlocked: Bool { get }
    /// The layers after which the residual stream of the prompt's last token is passed to ``takeState(_:layer:)``.
    var stateLayers: [Int] { get }
    /// Takes the residual stream of the prompt's last token after a layer, `[width]`. Called before the logits after the
    /// prompt are taken.
    func takeState(_ state: [Float], layer: Int)
    /// Whether ``takeHidden(_:rows:position:)`` is of use.
    var wantsHiddenRows: Bool { get }
    /// Takes the residual stream after the last layer, `[rows][width]`, of tokens that were processed, from a position of the sequence
    /// or branch on. Called before their logits are taken.
    func takeHidden(_ hidden: UnsafePointer<Float>, rows: Int, position: Int)
}

extension SequenceWork {
    func begin(cachedTokens: Int) {}
    var position: Int? { nil }
    func tokens(in range: Range<Int>) -> ArraySlice<TokenID> { prompt.ids[range] }
    var branch: WorkBranch? { nil }
    var input: ModelInput { prompt }
    var isBlocked: Bool { false }
    var stateLayers: [Int] { [] }
    func takeState(_ state: [Float], layer: Int) {}
    var wantsHiddenRows: Bool { false }
    func takeHidden(_ hidden: UnsafePointer<Float>, rows: Int, position: Int) {}
}

/// The times of a response, for its usage.
struct WorkTimes {
    private var start = ContinuousClock.now
    private var firstLogits: ContinuousClock.Instant?

    /// Ends the time in the queue.
    mutating func begin(_ usage: inout GenerationUsage) {
        let now = ContinuousClock.now
        usage.queueSeconds = (now - start).seconds
        start = now
    }

    mutating func takeLogits(_ usage: inout GenerationUsage) {
        if firstLogits != nil { return }
        let now = ContinuousClock.now
        firstLogits = now
        usage.promptSeconds = (now - start).seconds
    }

    func finish(_ usage: inout GenerationUsage) {
        if let firstLogits { usage.generationSeconds = (.now - firstLogits).seconds }
    }
}
