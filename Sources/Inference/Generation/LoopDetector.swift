/// Notices that a response has fallen into a loop: the same tokens again and again, or hardly anything but sequences that have
/// been there.
///
/// Work per token is constant.
struct LoopDetector {
    /// The longest period that is looked for.
    private static let maximumPeriod = 64
    /// Tokens that repeat before a short period counts as a loop, and repetitions before a long one does.
    private static let minimumRun = 96
    private static let minimumRepetitions = 3
    /// The window in which repeated sequences of four tokens are counted, and how many of them must be repetitions.
    private static let window = 192
    private static let maximumRepeated = 168

    private var tokens: [TokenID] = []
    /// For each period, how many of the last tokens equal the one that many places before.
    private var runs = [Int](repeating: 0, count: LoopDetector.maximumPeriod + 1)
    /// How often each sequence of four tokens is in the window.
    private var sequences: [UInt64: Int] = [:]
    /// How many sequences of the window are not the first of their kind.
    private var repeated = 0

    /// Takes a token. Returns how many tokens of the response stand before the first repetition if it is a loop.
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
