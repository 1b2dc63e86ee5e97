/// Recognises a text that repeats the same tokens endlessly: many copies of one cycle, token by token, in direct succession.
///
/// A text with a refrain, a table of equal cells or a list of equal elements is no loop. The limits are far above what requests ask
/// for, so that only a text that would fill the context is ended. Takes constant time per token. Cycles of any length are found unless
/// each three tokens of the cycle occur several times in it. Nothing is allocated while a text has fewer than 4,096 tokens.
struct LoopDetector {
    /// A text is a loop from this number of tokens on that continue one cycle.
    static let minimumTokens = 1_024
    /// … and from this number of copies of the cycle on.
    static let minimumCopies = 8

    /// A text that has no more tokens left than this is not ended as a loop: its limit ends it soon.
    static let nearLimit = 256

    private static let places = 4_096
    private static let expectedTokens = 4_096

    private var tokens: [TokenID] = []
    /// For a hash of three tokens, the number of tokens up to the end of their last occurrence; 0 for none.
    private var ends = [Int32](repeating: 0, count: LoopDetector.places)
    /// The length of the current cycle; 0 if there is none.
    private var period = 0
    /// The number of last tokens that equal the token one period before.
    private var run = 0

    init() { tokens.reserveCapacity(Self.expectedTokens) }

    /// Appends a token. Returns whether the text is a loop.
    mutating func append(_ token: TokenID) -> Bool {
        tokens.append(token)
        let count = tokens.count
        if period > 0, tokens[count - 1 - period] == token { run += 1 } else { (period, run) = (0, 0) }
        guard count >= 3 else { return false }
        var hash: UInt64 = 0
        for index in count - 3..<count { hash = (hash ^ UInt64(UInt32(bitPattern: tokens[index]))) &* 0x9E37_79B9_7F4A_7C15 }
        let place = Int(hash >> 52)
        let end = Int(ends[place])
        // Other tokens may have the same hash.
        if period == 0, end >= 3, (1...3).allSatisfy({ tokens[end - $0] == tokens[count - $0] }) {
            (period, run) = (count - end, 3)
        }
        ends[place] = Int32(truncatingIfNeeded: count)
        return run >= max(Self.minimumTokens, Self.minimumCopies * period)
    }
}
