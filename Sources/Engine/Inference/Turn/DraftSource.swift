/// What proposes the next tokens of a text. The model processes them together with the latest token, before it is known whether it would
/// write them itself; they never change what it writes.
protocol DraftSource {
    /// Whether ``take(_:rows:position:)`` is of use.
    var wantsHiddenRows: Bool { get }
    /// The text goes on with a token.
    mutating func append(_ token: TokenID)
    /// Only the first `count` tokens are still part of the text.
    mutating func keep(_ count: Int)
    /// The residual stream after the last layer, `[rows][width]`, of processed tokens from a position of the text on. Those of proposals
    /// may turn out not to be part of it.
    mutating func take(_ hidden: UnsafePointer<Float>, rows: Int, position: Int)
    /// Appends a proposal to `target`. Returns the number of its tokens, often 0.
    mutating func propose(_ budget: DraftBudget, into target: inout [TokenID]) -> Int
    /// Adapts to the result of the last proposal.
    mutating func learn(accepted: Int, of proposed: Int)
}

extension DraftSource {
    var wantsHiddenRows: Bool { false }
    mutating func keep(_ count: Int) {}
    mutating func take(_ hidden: UnsafePointer<Float>, rows: Int, position: Int) {}
}

/// How many tokens may be proposed, and what they cost.
struct DraftBudget {
    /// The maximum number of proposed tokens.
    var maximum: Int
    /// The time that one more token adds to a pass, relative to the time of a token without proposals.
    var cost: Double

    static let none = DraftBudget(maximum: 0, cost: 1)

    /// The budget of one of the sequences that are processed in the same pass.
    ///
    /// The weights are read once for all rows of a pass, so that another row takes about 8 % of the time of a single one (5 to 12 % were
    /// measured). Every sequence waits for it.
    init(sequences: Int) {
        let row = 0.08
        maximum = max(0, EngineLimits.fewRows / sequences - 1)
        cost = row * Double(sequences) / (1 + row * Double(sequences - 1))
    }

    init(maximum: Int, cost: Double) { (self.maximum, self.cost) = (maximum, cost) }
}

/// How often a proposed token was right. Older results count less.
struct DraftEstimate {
    private var right: Double
    private var all = 4.0

    init(_ expected: Double) { right = expected * all }

    var probability: Double { right / all }

    mutating func learn(_ isRight: Bool) {
        right = right * 0.9 + (isRight ? 1 : 0)
        all = all * 0.9 + 1
    }
}

/// The proposed tokens of a turn, which are processed before it is known whether they become part of the response.
struct Proposal {
    /// Nil if nothing is proposed.
    private var draft: (any DraftSource)?
    private var tokens: [TokenID] = []
    /// The number of proposed tokens that have become part of the response.
    private(set) var accepted = 0
    /// Whether the response differs from the proposal, so that later rows of logits are meaningless.
    private(set) var isRejected = false

    /// - Parameter draft: what proposes tokens; nil to propose nothing.
    init(_ draft: (any DraftSource)?) {
        self.draft = draft
        if draft != nil { tokens.reserveCapacity(EngineLimits.fewRows) }
    }

    /// Ends the last proposal: its rows have been taken.
    mutating func finish() {
        if tokens.isEmpty { return }
        draft?.learn(accepted: accepted, of: tokens.count)
        tokens.removeAll(keepingCapacity: true)
        (accepted, isRejected) = (0, false)
    }

    /// Appends a proposal of at most `maximum` tokens to `target`. Returns their number.
    mutating func propose(
        _ budget: DraftBudget, maximum: Int, into target: inout [TokenID], _ usage: inout GenerationUsage
    ) -> Int {
        let budget = DraftBudget(maximum: min(budget.maximum, maximum), cost: budget.cost)
        let count = draft?.propose(budget, into: &tokens) ?? 0
        target.append(contentsOf: tokens)
        usage.proposedTokens += count
        return count
    }

    /// Compares the next token of the response. Returns whether it is in the sequence already, because it was proposed.
    mutating func contains(_ token: TokenID, _ usage: inout GenerationUsage) -> Bool {
        guard !isRejected, accepted < tokens.count, token == tokens[accepted] else {
            isRejected = !tokens.isEmpty
            return false
        }
        accepted += 1
        usage.acceptedTokens += 1
        return true
    }

    /// Adds a token of the response to the text that later proposals come from.
    mutating func append(_ token: TokenID) { draft?.append(token) }

    /// Only the first `count` tokens are still part of the text.
    mutating func keep(_ count: Int) { draft?.keep(count) }

    var wantsHiddenRows: Bool { draft?.wantsHiddenRows ?? false }

    /// See ``DraftSource/take(_:rows:position:)``.
    mutating func take(_ hidden: UnsafePointer<Float>, rows: Int, position: Int) {
        draft?.take(hidden, rows: rows, position: position)
    }
}
