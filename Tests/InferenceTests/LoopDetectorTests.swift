import Testing

@testable import Inference

/// When a response is a loop, and what is kept of it.
@Suite struct LoopDetectorTests {
    /// Appends tokens until the detector ends the response; returns its result and the number of tokens so far.
    private func end(_ allowance: LoopAllowance, _ tokens: some Sequence<TokenID>) -> (LoopDetector.Loop, Int)? {
        var detector = LoopDetector(allowance)
        for token in tokens { if let loop = detector.append(token) { return (loop, detector.count) } }
        return nil
    }

    /// Some tokens, and then a period again and again.
    private func loop(_ before: [TokenID], _ period: [TokenID], times: Int) -> [TokenID] {
        before + (0..<times).flatMap { _ in period }
    }

    @Test func repetitionsAreRemoved() throws {
        let (loop, count) = try #require(end(LoopAllowance(), self.loop([9, 8, 7], [1, 2], times: 500)))
        #expect(loop == .init(kept: 5) && count == 5 + 96)
    }

    @Test(arguments: [50, 60, 300]) func asManyAsThePromptAsksFor(wished: Int) throws {
        let allowance = LoopAllowance(repetitions: wished, tokens: 2_048, keepsText: true)
        let (loop, _) = try #require(end(allowance, self.loop([9, 8, 7], [1, 2], times: 500)))
        #expect(loop == .init(kept: 3 + 2 * wished, isComplete: true))
        // A response that ends by itself is not touched.
        #expect(end(allowance, self.loop([9, 8, 7], [1, 2], times: min(wished, 49))) == nil)
    }

    @Test func aNumberThatMeansSomethingElse() throws {
        let allowance = LoopAllowance(repetitions: 800, tokens: 1_024)
        let sentence: [TokenID] = Array(1...20)
        let (loop, count) = try #require(end(allowance, self.loop([9], sentence, times: 200)))
        #expect(loop == .init(kept: 21) && count == 21 + 1_024)
    }

    @Test func aWishWithoutANumber() throws {
        let (loop, count) = try #require(
            end(LoopAllowance(tokens: 2_048, keepsText: true), self.loop([], [1, 2, 3], times: 2_000)))
        #expect(loop == .init(kept: count) && count == 3 + 2_048)
    }

    /// Lines that differ only in their numbers are no period, but nearly all of their tokens repeat.
    @Test func nearlyEqualLines() throws {
        var lines: [TokenID] = []
        for line in 0..<1_000 as Range<TokenID> { lines += Array(1...10) + [100 + TokenID(line.nonzeroBitCount % 2)] }
        #expect(try #require(end(LoopAllowance(), lines)).1 < 500)
        #expect(try #require(end(LoopAllowance(repetitions: 50, tokens: 1_024), lines)).1 == 1_024)
    }
}
