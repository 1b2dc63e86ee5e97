/// A ``TurnQuestion`` with the tokens that are processed for it.
final class AskedQuestion {
    /// All tokens of the branch.
    let tokens: [TokenID]
    /// The position of the first token after which logits are needed.
    let position: Int
    let wanted: WantedLogits
    /// Whether other turns ask after the same prompt.
    let isKept: Bool
    /// The number of tokens before those of the question.
    let contextCount: Int
    var isAsked = false
    private let question: TurnQuestion
    private var sum = 0.0
    private var rows = 0

    /// - Parameter context: the tokens before those of the question; not empty.
    init(_ question: TurnQuestion, after context: ArraySlice<TokenID>) {
        self.question = question
        contextCount = context.count
        switch question.value {
        case .odds(let one, let other):
            tokens = context + question.tokens
            position = tokens.count - 1
            wanted = .candidates([min(one, other), max(one, other)])
        case .probability:
            // The last token is not processed: nothing follows it.
            tokens = context + question.tokens.dropLast()
            position = context.count - 1
            wanted = .last(question.tokens.count)
        }
        if case .prompt = question.context { isKept = true } else { isKept = false }
    }

    /// The answer, once all logits have been taken.
    var value: Double? {
        switch question.value {
        case .odds: rows == 1 ? sum : nil
        case .probability: rows == question.tokens.count ? sum : nil
        }
    }

    func take(_ logits: HostLogits) {
        switch question.value {
        case .odds(let one, let other): sum = Double(logits[Int(one)]) - Double(logits[Int(other)])
        case .probability:
            guard rows < question.tokens.count else { return }
            sum += logits.logProbability(of: question.tokens[rows])
        }
        rows += 1
    }
}
