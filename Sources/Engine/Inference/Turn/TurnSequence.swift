/// The tokens of a turn with those before them, and how many of them the model has processed.
struct TurnSequence {
    /// The tokens of the prompt and of the turn.
    private(set) var tokens: [TokenID]
    /// The number of tokens of the prompt.
    let promptCount: Int
    /// The number of tokens that are in the sequence's memory or that have been named, without proposals that did not become part of
    /// the turn.
    private(set) var valid: Int
    /// The position of the tokens that were named last.
    private(set) var position: Int?

    /// The number of tokens for which there is room without another allocation.
    private static let expectedTokens = 512

    /// - Parameters:
    ///   - tokens: the prompt and the tokens with which the turn begins.
    ///   - valid: the number of them that are processed as the prompt.
    init(_ tokens: [TokenID], promptCount: Int, valid: Int, maximumTokens: Int?) {
        self.tokens = tokens
        self.promptCount = promptCount
        self.valid = valid
        self.tokens.reserveCapacity(tokens.count + max(0, min(maximumTokens ?? .max, Self.expectedTokens)))
    }

    var count: Int { tokens.count }
    /// The number of tokens that have not been named.
    var open: Int { tokens.count - valid }
    /// The tokens of the turn.
    var turn: ArraySlice<TokenID> { tokens[promptCount...] }

    /// Appends a token.
    ///
    /// - Parameter isNamed: whether it has been named already, as a proposal.
    mutating func append(_ token: TokenID, isNamed: Bool = false) {
        tokens.append(token)
        if isNamed { valid += 1 }
    }

    /// Keeps the first `count` tokens of the prompt and the turn.
    mutating func keep(_ count: Int) {
        guard count < tokens.count else { return }
        tokens.removeLast(tokens.count - count)
        valid = min(valid, count)
    }

    /// Names the tokens that have not been named yet, or the last token again if there are none.
    mutating func name(into named: inout [TokenID]) {
        valid = min(valid, tokens.count - 1)
        position = valid
        named += tokens[valid...]
        valid = tokens.count
    }

    /// Makes the sequence end with what is part of the turn.
    mutating func finish() { position = valid }
}
