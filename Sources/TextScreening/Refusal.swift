/// Recognises texts in which a model declines a request, by their beginning: "I'm sorry, but I can't assist with that."
package enum RefusalText {
    /// A text is a refusal if a sentence among its first three begins with one of these, after an apology.
    private static let declining = [
        "i can't", "i cannot", "i can not", "i won't", "i will not", "i'm not able to", "i am not able to", "i'm unable to",
        "i am unable to", "i must decline", "i have to decline", "i'm not comfortable", "i am not comfortable", "i refuse to",
        "i do not feel comfortable", "i don't feel comfortable", "as an ai language model, i can", "as an ai assistant, i can",
        "as an ai, i can", "as a responsible ai", "we can't", "we cannot",
    ]
    /// What a model declines to do, so that "I can't wait" and "I cannot see the attachment" are not refusals.
    private static let actions = [
        "assist", "help", "provide", "fulfil", "fulfill", "comply", "support", "engage", "create", "generate", "write", "do that",
        "answer that", "give you", "give instructions", "offer", "share", "discuss", "participate", "promote", "encourage",
        "respond to",
        "process this", "process that", "advise", "condone", "continue with", "complete this", "complete that", "recommend",
    ]
    private static let apologies = [
        "i'm sorry, but ", "i'm sorry, ", "i am sorry, but ", "i am sorry, ", "sorry, but ", "sorry, ", "i apologize, but ",
        "i apologise, but ", "unfortunately, ",
    ]
    private static let bare = ["i'm sorry, but i can't", "i must decline", "i have to decline", "i refuse to"]
    private static let maximumLength = 400

    /// Whether a text is a refusal.
    package static func isRefusal(_ text: some StringProtocol) -> Bool {
        let start = text.prefix(maximumLength).lowercased().replacing("’", with: "'").drop { !$0.isLetter }
        for sentence in start.split(maxSplits: 3, whereSeparator: { ".!?\n".contains($0) }).prefix(3) {
            var sentence = sentence.drop { !$0.isLetter }
            for apology in apologies where sentence.hasPrefix(apology) {
                sentence = sentence.dropFirst(apology.count)
                break
            }
            guard let beginning = declining.first(where: { sentence.hasPrefix($0) }) else { continue }
            let rest = sentence.dropFirst(beginning.count)
            if actions.contains(where: { rest.prefix(60).contains($0) }) { return true }
        }
        return bare.contains { start.hasPrefix($0) } && start.count < 60
    }
}
