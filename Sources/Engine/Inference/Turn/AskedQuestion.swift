/// A ``TurnQuestion`` with the tokens that are processed for it.
final class AskedQuestion {
    /// All tokens of the branch. The last token of the question is not processed: nothing follows it.
    let tokens: [TokenID]
    /// The number of tokens of the prompt, with which other questions may begin.
    let promptCount: Int
    var isAsked = false
    private let asked: [TokenID]
    private var sum = 0.0
    private var rows = 0

    init(_ question: TurnQuestion) {
        tokens = question.prompt + question.tokens.dropLast()
        promptCount = question.prompt.count
        asked = question.tokens
    }

    /// The position of the first token after which logits are needed.
    var position: Int { promptCount - 1 }
    var wanted: WantedLogits { .last(asked.count) }

    /// The answer, once all logits have been taken.
    var value: Double? { rows == asked.count ? sum : nil }

    func take(_ logits: HostLogits) {
        guard rows < asked.count else { return }
        sum += logits.logProbability(of: asked[rows])
        rows += 1
    }
}
