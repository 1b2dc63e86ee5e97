/// Computes the logarithm of the probability of a continuation, and those of tokens that may come after it.
final class ScoringWork: SequenceWork {
    let prompt: ModelInput
    let wantsPromptLogits = false
    /// The last token of the prompt, and the continuation.
    private let scored: [TokenID]
    private let candidates: [TokenID]
    private var row = -1
    private(set) var logProbability = 0.0
    /// Of each candidate, as the token after the continuation.
    private(set) var candidateLogProbabilities: [Double] = []

    /// - Parameters:
    ///   - prompt: at least one token.
    ///   - candidates: none, if only the continuation is of interest.
    init(of continuation: [TokenID], after prompt: [TokenID], candidates: [TokenID] = []) {
        self.prompt = ModelInput(prompt.dropLast())
        scored = prompt.suffix(1) + continuation
        self.candidates = candidates
    }

    /// The rows whose logits are needed. Nothing has to be known after the last token unless there are candidates for what follows it.
    private var rowCount: Int { candidates.isEmpty ? scored.count - 1 : scored.count }

    func next(_ tokens: inout [TokenID], draft: DraftBudget) -> WantedLogits? {
        guard row < 0 else { return nil }
        row = 0
        tokens += candidates.isEmpty ? scored.dropLast() : scored[...]
        return .first(rowCount)
    }

    func take(_ logits: UnsafeMutableBufferPointer<Float>) {
        row += 1
        if row < scored.count {
            logProbability += logits.logProbability(of: scored[row])
        } else {
            candidateLogProbabilities = logits.logProbabilities(of: candidates)
        }
    }
}
