import Testing

@testable import Inference

/// When a text is a loop.
@Suite struct LoopDetectorTests {
    /// The number of tokens after which the detector ends a text; nil if it does not.
    private func end(_ tokens: some Sequence<TokenID>) -> Int? {
        var detector = LoopDetector()
        for (index, token) in tokens.enumerated() where detector.append(token) { return index + 1 }
        return nil
    }

    private func copies(_ before: [TokenID] = [], of cycle: [TokenID], _ count: Int) -> [TokenID] {
        before + (0..<count).flatMap { _ in cycle }
    }

    @Test(arguments: [1, 2, 7, 60, 128])
    func aCycleThatDoesNotEnd(period: Int) throws {
        let cycle = (0..<TokenID(period)).map { $0 * 3 + 1 }
        let count = try #require(end(copies([9_000, 9_001, 9_002], of: cycle, 4_000 / period)))
        #expect(count >= 1_024 && count <= 1_024 + 2 * period + 6)
    }

    /// A long cycle ends after some copies, a cycle with repetitions inside it too.
    @Test func longCycles() throws {
        let paragraph = (0..<400).map { TokenID($0) }
        let count = try #require(end(copies(of: paragraph, 20)))
        #expect(count > 8 * 400 && count < 10 * 400 + 6)
        #expect(self.end(copies(of: [1, 2, 1, 2, 1, 2, 3, 1, 2, 4], 200)) != nil)
    }

    /// What requests ask for: a hundred equal lines, a table of zeros, a refrain, numbers that are counted.
    @Test func repetitionsThatEnd() {
        #expect(end(copies(of: [1, 2, 3, 4, 5, 6, 7, 8, 9], 100) + [10, 11, 12]) == nil)
        #expect(end(copies(of: [1, 2], 500) + [3]) == nil)
        #expect(end(copies(of: (0..<100).map { TokenID($0) }, 8) + [500, 501, 502]) == nil)
        var counted: [TokenID] = []
        for number in 0..<400 { counted += [1, 2, 3] + String(number).utf8.map { TokenID($0) } + [4, 5] }
        #expect(end(counted) == nil)
    }

    /// Tokens with equal hashes are no repetition.
    @Test func randomTokens() {
        var random = SplitMix64(state: 7)
        #expect(end((0..<20_000).map { _ in TokenID(random.next() % 40_000) }) == nil)
        #expect(end((0..<20_000).map { _ in TokenID(random.next() % 2) }) == nil)
    }
}
