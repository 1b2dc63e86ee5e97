/// Proposes the next tokens of a text that repeats parts of itself or of its prompt: those that followed the last occurrence
/// of the latest tokens (prompt lookup; Saxena 2023, and LLMA, arXiv:2304.04487), or those that follow where the text that was
/// copied last was left.
///
/// The more tokens before a proposed one are equal, the more probable it is. These probabilities are estimated while the response is
/// generated, and as many tokens are proposed as give the most tokens for the time. Takes constant time per token.
struct LookupDraft: DraftSource {
    /// The maximum number of latest tokens that are looked up.
    private static let maximumKey = 3
    /// Matches are compared up to this length.
    private static let maximumMatch = 8
    /// The number of tokens that may have been replaced or left out where a copied text is continued.
    private static let maximumGap = 4
    private static let slotBits = 15

    /// A place in the text whose tokens may come next.
    private struct Source {
        var start: Int
        /// The number of equal tokens before it.
        var match: Int
        var isContinuation: Bool

        /// The index of the estimate for the token at `start + offset`.
        func estimate(_ offset: Int) -> Int {
            switch match + offset {
            case ..<2: isContinuation ? 4 : 0
            case 2: isContinuation ? 5 : 1
            case ..<LookupDraft.maximumMatch: 2
            default: 3
            }
        }
    }

    private var tokens: [TokenID]
    /// For each hash of 1 to `maximumKey` tokens, the position after their last occurrence. Later occurrences replace others.
    private var positions: [Int32]
    /// After 1, 2, 3 or more, and 8 or more equal tokens; after 1 and 2 in the continuation of a copied text.
    private var estimates = [0.15, 0.4, 0.75, 0.9, 0.4, 0.6].map { DraftEstimate($0) }
    /// The position after the text that was copied last.
    private var continuation: Int?
    /// The source of the last proposal.
    private var source: Source?
    /// Sources of which nothing was proposed. The next token shows whether it would have been right, so that estimates recover.
    private var watchedOccurrence: Source?
    private var watchedContinuation: Source?

    /// - Parameter prompt: the tokens before the response.
    init(prompt: [TokenID]) {
        tokens = []
        tokens.reserveCapacity(prompt.count + 4_096)
        positions = [Int32](repeating: -1, count: 1 << Self.slotBits)
        for token in prompt { append(token) }
    }

    mutating func append(_ token: TokenID) {
        if let source = watchedOccurrence { estimates[source.estimate(0)].learn(tokens[source.start] == token) }
        if let source = watchedContinuation { estimates[source.estimate(0)].learn(tokens[source.start] == token) }
        (watchedOccurrence, watchedContinuation) = (nil, nil)
        // The slots of the previous tokens are set only now: a proposal for them must not find themselves.
        var hash: UInt64 = 0
        for length in 1...Self.maximumKey where length <= tokens.count { positions[slot(length, &hash)] = Int32(tokens.count) }
        tokens.append(token)
    }

    /// The slot of the latest `length` tokens. `hash` is that of the latest `length - 1`.
    private func slot(_ length: Int, _ hash: inout UInt64) -> Int {
        hash = (hash ^ UInt64(UInt32(bitPattern: tokens[tokens.count - length]))) &* 0x9E37_79B9_7F4A_7C15
        return Int(hash >> (64 - Self.slotBits))
    }

    mutating func propose(_ budget: DraftBudget, into target: inout [TokenID]) -> Int {
        var best = (value: 1.0, count: 0)
        source = nil
        (watchedOccurrence, watchedContinuation) = (latestOccurrence, continuedCopy)
        if let watchedOccurrence {
            best = bestLength(of: watchedOccurrence, budget)
            source = watchedOccurrence
        }
        if let watchedContinuation {
            let found = bestLength(of: watchedContinuation, budget)
            if found.value > best.value { (best, source) = (found, watchedContinuation) }
        }
        guard let source, best.count > 0 else { return 0 }
        (watchedOccurrence, watchedContinuation) = (nil, nil)
        target.append(contentsOf: tokens[source.start..<source.start + best.count])
        return best.count
    }

    private var latestOccurrence: Source? {
        var found: Int?
        var hash: UInt64 = 0
        for length in 1...Self.maximumKey where length <= tokens.count {
            let position = Int(positions[slot(length, &hash)])
            if position >= length, tokens[(position - length)..<position] == tokens.suffix(length) { found = position }
        }
        return found.map { Source(start: $0, match: match(before: $0), isContinuation: false) }
    }

    private var continuedCopy: Source? {
        guard let continuation else { return nil }
        for start in continuation...continuation + Self.maximumGap where start < tokens.count {
            let match = match(before: start)
            if match > 0 { return Source(start: start, match: match, isContinuation: true) }
        }
        return nil
    }

    /// The number of tokens before a position that equal the latest ones.
    private func match(before position: Int) -> Int {
        var count = 0
        while count < min(Self.maximumMatch, position), tokens[position - 1 - count] == tokens[tokens.count - 1 - count] {
            count += 1
        }
        return count
    }

    /// The number of tokens with the most expected tokens for the time, compared with one token without a proposal.
    private func bestLength(of source: Source, _ budget: DraftBudget) -> (value: Double, count: Int) {
        var best = (value: 1.0, count: 0)
        var expected = 1.0
        var probability = 1.0
        for offset in 0..<min(budget.maximum, tokens.count - source.start) {
            // A vector of a picture cannot be generated.
            if tokens[source.start + offset] == InputRows.embedded { break }
            probability *= estimates[source.estimate(offset)].probability
            expected += probability
            let value = expected / (1 + budget.cost * Double(offset + 1))
            if value > best.value { best = (value, offset + 1) }
        }
        return best
    }

    mutating func learn(accepted: Int, of proposed: Int) {
        guard let source else { return }
        for offset in 0..<min(accepted + 1, proposed) { estimates[source.estimate(offset)].learn(offset < accepted) }
        if accepted > 0 { continuation = source.start + accepted }
    }
}
