/// Proposes the next tokens of a text that repeats parts of itself or of its prompt: those that followed the last occurrence
/// of the latest tokens (prompt lookup; Saxena 2023, and LLMA, arXiv:2304.04487).
///
/// Proposals cost time if they are wrong, so their length follows their success, and after failures there are none for a
/// while. Takes constant time per token.
struct LookupDraft {
    /// The number of latest tokens that must occur earlier.
    private static let key = 3
    private static let minimumLength = 3
    private static let maximumLength = 15
    private static let slots = 1 << 13
    /// Failures after which pauses, of 2 to the power of failures, grow no longer.
    private static let maximumFailures = 6

    private var tokens: [TokenID]
    /// For each hash of `key` tokens, the position after their last occurrence. Later occurrences replace others.
    private var positions: [Int32]
    private var length = LookupDraft.minimumLength
    /// Successive failures, and the number of tokens without proposals that is left.
    private var failures = 0
    private var pause = 0

    /// - Parameter prompt: the tokens before the response.
    init(prompt: [TokenID]) {
        tokens = []
        tokens.reserveCapacity(prompt.count + 4_096)
        positions = [Int32](repeating: -1, count: Self.slots)
        for token in prompt { append(token) }
    }

    mutating func append(_ token: TokenID) {
        // The slot of the previous tokens is set only now: a proposal for them must not find themselves.
        if tokens.count >= Self.key { positions[slot] = Int32(tokens.count) }
        tokens.append(token)
        pause = max(0, pause - 1)
    }

    /// The hash of the latest tokens.
    private var slot: Int {
        var hash: UInt64 = 0
        for token in tokens[(tokens.count - Self.key)...] {
            hash = (hash ^ UInt64(UInt32(bitPattern: token))) &* 0x9E37_79B9_7F4A_7C15
        }
        return Int(hash >> 51)
    }

    /// Appends a proposal of at most `maximum` tokens to `target`. Returns their number, often 0.
    func propose(maximum: Int, into target: inout [TokenID]) -> Int {
        guard pause == 0, maximum > 0, tokens.count >= Self.key else { return 0 }
        let next = Int(positions[slot])
        guard next >= Self.key, tokens[(next - Self.key)..<next] == tokens.suffix(Self.key) else { return 0 }
        let count = min(length, maximum, tokens.count - next)
        target.append(contentsOf: tokens[next..<next + count])
        return count
    }

    /// Adapts to the result of a proposal.
    mutating func learn(accepted: Int, of proposed: Int) {
        if accepted == 0 {
            failures = min(failures + 1, Self.maximumFailures)
            length = Self.minimumLength
            pause = 1 << failures
        } else {
            failures = 0
            length = accepted == proposed ? min(2 * length, Self.maximumLength) : max(Self.minimumLength, accepted)
        }
    }
}

/// The proposed tokens of a decoding, which are processed before it is known whether they become part of the response.
struct Proposal {
    /// Nil if nothing is proposed.
    private var draft: LookupDraft?
    private var tokens: [TokenID] = []
    /// The number of proposed tokens that have become part of the response.
    private(set) var accepted = 0
    /// Whether the response differs from the proposal, so that later rows of logits are meaningless.
    private(set) var isRejected = false

    /// - Parameter prompt: the tokens before the response; nil to propose nothing.
    init(prompt: [TokenID]?) { draft = prompt.map { LookupDraft(prompt: $0) } }

    /// Ends the last proposal: its rows have been taken.
    mutating func finish() {
        if tokens.isEmpty { return }
        draft?.learn(accepted: accepted, of: tokens.count)
        tokens.removeAll(keepingCapacity: true)
        (accepted, isRejected) = (0, false)
    }

    /// Appends a proposal of at most `maximum` tokens to `target`. Returns their number.
    mutating func propose(maximum: Int, into target: inout [TokenID], _ usage: inout GenerationUsage) -> Int {
        let count = draft?.propose(maximum: maximum, into: &tokens) ?? 0
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
}
