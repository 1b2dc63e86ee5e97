/// Reports the probability of each token of a text after those before it.
final class PromptScoringWork: SequenceWork {
    let prompt: ModelInput
    let wantsPromptLogits = true
    private let tokens: [TokenID]
    private let top: Int
    private(set) var scores: [TokenScore] = []
    private var isAsked = false

    /// - Parameters:
    ///   - tokens: at least one; the first one has no probability, because nothing is before it.
    ///   - top: the number of most probable tokens to report for each.
    init(_ tokens: [TokenID], top: Int) {
        prompt = ModelInput(Array(tokens.prefix(1)))
        (self.tokens, self.top) = (tokens, top)
    }

    func next(_ tokens: inout [TokenID], draft: DraftBudget) -> WantedLogits? {
        guard !isAsked, self.tokens.count > 2 else { return nil }
        isAsked = true
        // The logits after the last token are not those of a token of the text.
        tokens += self.tokens[1..<(self.tokens.count - 1)]
        return .first(tokens.count)
    }

    func take(_ logits: UnsafeMutableBufferPointer<Float>) {
        let place = scores.count + 1
        guard place < tokens.count, let row = RowScores(logits, top: top) else { return }
        scores.append(row.score(of: tokens[place]))
    }
}
