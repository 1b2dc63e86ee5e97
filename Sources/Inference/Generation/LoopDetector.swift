/// Detects that a response has fallen into a loop: it repeats with a fixed period, or it consists almost entirely of
/// sequences of four tokens that occurred recently.
///
/// Takes constant time per token.
struct LoopDetector {
    /// Repetition that the prompt asks for.
    private let allowance: LoopAllowance
    /// The longest period that is detected.
    private static let maximumPeriod = 64
    /// The minimum number of repeating tokens for a short period to count as a loop, and the minimum number of
    /// repetitions for a long one.
    private static let minimumRun = 96
    private static let minimumRepetitions = 3
    /// The window in which repeated sequences of four tokens are counted, and the number of repetitions in it that
    /// counts as a loop.
    private static let window = 192
    private static let maximumRepeated = 168

    private var tokens: [TokenID] = []
    /// For each period, the number of last tokens that equal the token one period before.
    private var runs = [Int](repeating: 0, count: LoopDetector.maximumPeriod + 1)
    /// The number of occurrences of each sequence of four tokens in the window.
    private var sequences: [UInt64: Int] = [:]
    /// The number of sequences in the window that repeat another one.
    private var repeated = 0

    init(_ allowance: LoopAllowance = LoopAllowance()) { self.allowance = allowance }

    /// The number of tokens so far.
    var count: Int { tokens.count }

    /// The end of a response in a loop.
    struct Loop: Equatable {
        /// The number of tokens that are kept: those before the first repetition, or those that the prompt asks for.
        var kept: Int
        /// Whether the response has as many repetitions as the prompt asks for.
        var isComplete = false
    }

    /// Appends a token. Returns a loop if the response must end.
    mutating func append(_ token: TokenID) -> Loop? {
        tokens.append(token)
        let count = tokens.count
        var isPeriodic = false
        for period in 1...Self.maximumPeriod where period < count {
            runs[period] = tokens[count - 1 - period] == token ? runs[period] + 1 : 0
            let run = runs[period]
            guard run >= max(Self.minimumRun, Self.minimumRepetitions * period) else { continue }
            isPeriodic = true
            // With the first one, there is one more than those that equal the one before.
            if let wished = allowance.repetitions, run / period + 1 >= wished {
                return Loop(kept: count - run + max(0, wished - 1) * period, isComplete: true)
            }
            if run >= allowance.tokens { return Loop(kept: allowance.keepsText ? count : count - run) }
        }
        if count >= 4 {
            let added = (sequences[key(count - 4)] ?? 0) + 1
            sequences[key(count - 4)] = added
            if added > 1 { repeated += 1 }
        }
        if count > Self.window + 3 {
            let old = key(count - Self.window - 4)
            let left = (sequences[old] ?? 1) - 1
            sequences[old] = left > 0 ? left : nil
            if left > 0 { repeated -= 1 }
        }
        guard repeated >= Self.maximumRepeated, count >= allowance.tokens, !isPeriodic else { return nil }
        return Loop(kept: allowance.keepsText ? count : max(0, count - Self.window))
    }

    private func key(_ start: Int) -> UInt64 {
        var key: UInt64 = 0
        for index in start..<start + 4 { key = (key ^ UInt64(UInt32(bitPattern: tokens[index]))) &* 0x9E37_79B9_7F4A_7C15 }
        return key
    }
}

/// How much repetition is no loop, because the prompt asks for it.
package struct LoopAllowance: Sendable, Equatable {
    /// The number of repetitions that the prompt asks for, after which the text ends; nil if it names none.
    package var repetitions: Int?
    /// The number of repeating tokens that are no loop.
    package var tokens = 0
    /// Whether a loop that has used up its tokens stays, instead of being removed.
    package var keepsText = false

    package init(repetitions: Int? = nil, tokens: Int = 0, keepsText: Bool = false) {
        self.repetitions = repetitions
        self.tokens = tokens
        self.keepsText = keepsText
    }
}
