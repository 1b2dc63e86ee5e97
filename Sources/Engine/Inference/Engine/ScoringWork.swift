/// Computes the logarithm of the probability of a continuation.
final class ScoringWork: SequenceWork {
    let prompt: ModelInput
    let wantsPromptLogits = false
    /// The last token of the prompt, and the continuation.
    private let scored: [TokenID]
    private var row = -1
    private(set) var logProbability = 0.0

    init(of continuation: [TokenID], after prompt: [TokenID]) {
        self.prompt = ModelInput(prompt.dropLast())
        scored = prompt.suffix(1) + continuation
    }

    func next(_ tokens: inout [TokenID], draft: DraftBudget) -> WantedLogits? {
        guard row < 0 else { return nil }
        row = 0
        tokens += scored
        return .first(scored.count - 1)
    }

    func take(_ logits: UnsafeMutableBufferPointer<Float>) {
        row += 1
        logProbability += logits.logProbability(of: scored[row])
    }
}
