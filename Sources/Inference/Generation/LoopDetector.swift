/// Detects that a response has fallen into a loop: it repeats with a fixed period, or it consists almost entirely of
/// sequences of four tokens that occurred recently.
///
/// Takes constant time per token.
struct LoopDetector {
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

    /// The number of tokens so far.
    var count: Int { tokens.count }

    /// Appends a token. If the response is a loop, returns the number of tokens before the first repetition.
    mutating func append(_ token: TokenID) -> Int? {
        tokens.append(token)
        let count = tokens.count
        for period in 1...Self.maximumPeriod where period < count {
            runs[period] = tokens[count - 1 - period] == token ? runs[period] + 1 : 0
            if runs[period] >= max(Self.minimumRun, Self.minimumRepetitions * period) { return count - runs[period] }
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
        return repeated >= Self.maximumRepeated ? max(0, count - Self.window) : nil
    }

    private func key(_ start: Int) -> UInt64 {
        var key: UInt64 = 0
        for index in start..<start + 4 { key = (key ^ UInt64(UInt32(bitPattern: tokens[index]))) &* 0x9E37_79B9_7F4A_7C15 }
        return key
    }
}
