/// Recognises texts in which a model declines a request, by their beginning: "I'm sorry, but I can't assist with that."
package enum RefusalText {
    private static let declining = [
        "i can't", "i cannot", "i can not", "i won't", "i will not", "i'm not able", "i am not able", "i'm unable",
        "i am unable", "i must decline", "i have to decline", "i refuse", "i'm not comfortable", "i am not comfortable",
        "we can't", "we cannot",
    ]
    /// What only a model that declines cannot do.
    private static let actions = [
        "assist", "help with", "help you with", "fulfil", "comply", "provide", "engage in", "promote", "encourage", "condone",
        "advise on", "respond to", "continue with this", "continue with that", "process this", "process that", "do that",
    ]
    /// What people cannot do either: these count after an apology, or with an object such as "that request".
    private static let ambiguous = [
        "create", "generate", "write", "offer", "support", "give you", "answer", "discuss", "help", "share",
    ]
    private static let objects = ["that", "this", "such", "your request"]
    private static let apologies = [
        "i'm sorry", "i am sorry", "sorry", "i apologize", "i apologise", "unfortunately", "as an ai", "as a language model",
        "as a responsible",
    ]
    /// Words that say nothing about the meaning.
    private static let fillers: Set<Substring> = [
        "really", "very", "so", "deeply", "but", "afraid", "currently", "to", "directly", "just",
    ]
    private static let maximumLength = 400
    private static let maximumSentences = 3

    /// Whether a text is a refusal.
    package static func isRefusal(_ text: some StringProtocol) -> Bool {
        let start = text.prefix(maximumLength).lowercased().replacing("’", with: "'")
        var hasApology = false
        for sentence in start.split(whereSeparator: { ".!?\n".contains($0) }).prefix(maximumSentences) {
            let words = sentence.split { !$0.isLetter && $0 != "'" && $0 != "-" }.filter { !fillers.contains($0) }
            var rest = words.joined(separator: " ")[...]
            // "As an AI language model I cannot": what precedes the first person belongs to the apology.
            for apology in apologies where rest.hasPrefix(apology) {
                hasApology = true
                rest = rest.dropFirst(apology.count).drop { $0 == " " }
                if apology.hasPrefix("as a"), let range = rest.firstRange(of: " i ") ?? rest.firstRange(of: " i'm ") {
                    rest = rest[range.lowerBound...].dropFirst()
                }
                break
            }
            if rest.hasPrefix("i'm i ") { rest = rest.dropFirst(4) }  // I'm afraid I …
            guard let beginning = declining.first(where: { rest.hasPrefix($0) }) else { continue }
            if beginning.contains("decline") { return true }
            let action = rest.dropFirst(beginning.count).drop { $0 == " " }
            if actions.contains(where: { action.hasPrefix($0) }) { return true }
            guard let verb = ambiguous.first(where: { action.hasPrefix($0) }) else { continue }
            let object = action.dropFirst(verb.count).drop { $0 == " " }
            // "I can't help my brother" is not what a model says.
            if ["my", "our", "him", "her"].contains(where: { object.hasPrefix($0) }) { continue }
            if hasApology || objects.contains(where: { object.hasPrefix($0) }) { return true }
        }
        return false
    }
}
