/// Proposes tokens with the prediction head of a model: see ``PredictionHead``.
///
/// The head sees the residual streams of the tokens that were processed for this text, so not those of a beginning that was in memory.
final class HeadDraft: DraftSource {
    private let head: PredictionHead
    private let cache: KVCache
    /// The tokens of the text.
    private var tokens: [TokenID]
    /// The position in the text of the first row in the head's cache.
    private var start = 0
    /// The residual streams of the rows after those in the cache, `[][width]`, which wait for their next tokens to be known.
    private var waiting: [Float] = []
    /// How often the first, second, … token of a proposal was right.
    private var estimates = [0.7, 0.6, 0.5, 0.5].map { DraftEstimate($0) }
    /// The number of times that it seemed best to propose nothing.
    private var silence = 0
    /// After that many times one token is proposed nevertheless, so that estimates recover.
    private static let maximumSilence = 16

    /// - Parameters:
    ///   - prompt: the tokens before the response.
    ///   - capacity: the maximum number of tokens of the text.
    init(_ head: PredictionHead, prompt: [TokenID], capacity: Int) throws(ModelError) {
        self.head = head
        cache = try head.makeCache(capacity: capacity)
        tokens = prompt
        tokens.reserveCapacity(capacity)
    }

    let wantsHiddenRows = true

    /// The rows in the cache, by their positions in the text.
    private var end: Int { start + cache.tokens.count }

    func append(_ token: TokenID) { tokens.append(token) }

    func keep(_ count: Int) {
        guard count < tokens.count else { return }
        tokens.removeLast(tokens.count - count)
        // A row that was processed belongs to the token after it too.
        forget(from: max(start, end < count ? count : count - 1))
    }

    func take(_ hidden: UnsafePointer<Float>, rows: Int, position: Int) {
        if position > end + waiting.count / head.width {
            forget(from: start)
            start = position
        } else {
            forget(from: max(start, position))
        }
        if position < start { start = position }
        waiting.append(contentsOf: UnsafeBufferPointer(start: hidden, count: rows * head.width))
        process()
    }

    /// Removes the rows from a position on.
    private func forget(from position: Int) {
        let rows = position - end
        if rows >= 0 {
            waiting.removeLast(max(0, waiting.count - rows * head.width))
        } else {
            waiting.removeAll(keepingCapacity: true)
            cache.rewind(to: position - start)
        }
    }

    /// Processes the waiting rows whose next tokens are known. Returns their number.
    @discardableResult private func process() -> Int {
        let count = min(waiting.count / head.width, tokens.count - 1 - end)
        guard count > 0 else { return 0 }
        guard head.process(waiting, tokens[end + 1...end + count], cache) else {
            // Without memory for the rows nothing is proposed.
            forget(from: start)
            return 0
        }
        waiting.removeFirst(count * head.width)
        return count
    }

    func propose(_ budget: DraftBudget, into target: inout [TokenID]) -> Int {
        // The rows of proposals that were not right are after those whose next tokens are known.
        guard process() > 0, end == tokens.count - 1 else { return 0 }
        waiting.removeAll(keepingCapacity: true)
        let known = cache.tokens.count
        var count = bestLength(budget)
        silence = count == 0 ? silence + 1 : 0
        if silence > Self.maximumSilence, budget.maximum > 0 { (silence, count) = (0, 1) }
        var proposed = 0
        while proposed < count {
            let token = head.bestToken
            target.append(token)
            proposed += 1
            if proposed < count, !head.continue(with: token, cache) { break }
        }
        cache.rewind(to: known, keepsPages: true)
        return proposed
    }

    /// The number of tokens with the most expected tokens for the time, compared with one token without a proposal.
    private func bestLength(_ budget: DraftBudget) -> Int {
        var best = (value: 1.0, count: 0)
        var (expected, probability) = (1.0, 1.0)
        for offset in 0..<budget.maximum {
            probability *= estimates[min(offset, estimates.count - 1)].probability
            expected += probability
            let value = expected / (1 + (budget.cost + head.cost) * Double(offset + 1))
            if value > best.value { best = (value, offset + 1) }
        }
        return best.count
    }

    func learn(accepted: Int, of proposed: Int) {
        for offset in 0..<min(accepted + 1, proposed) {
            estimates[min(offset, estimates.count - 1)].learn(offset < accepted)
        }
    }
}
