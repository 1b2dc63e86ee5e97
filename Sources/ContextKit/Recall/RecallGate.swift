import Foundation

/// Estimates from the words of a prompt whether it refers to earlier turns.
struct RecallGate {
    /// A word of the prompt, with statistics from the archive.
    struct Term {
        var word: RecallQuery.Word
        /// Its inverse document frequency.
        var weight: Double
        /// Number of turns that contain it, in the context or not.
        var turnCount: Int
        /// Whether it occurs in a turn of the context or in one of the newest turns, which means that it belongs to the
        /// current topic.
        var isInContext: Bool
    }

    /// Number of newest turns that count as the current topic, whether or not they are still in a small window.
    static func recentTurns(of count: Int) -> Int { min(40, count / 8) }

    let terms: [Term]
    let turnCount: Int
    let query: RecallQuery
    /// Whether several turns contain all words of the prompt, or one does that is in the context or among the newest.
    let areTermsTogether: Bool

    /// The likelihood, from 0 to 1, that the prompt needs an earlier turn, judged by the words that one turn shares
    /// with it.
    ///
    /// A logistic function of four features: the weight of the rare words that the turn contains (words that also occur
    /// in the context count less, since their topic is already there), whether some of them occur in a question,
    /// whether the prompt contains a name that occurs in the archive, and the number of words of the prompt, because
    /// long prompts share a rare word with some turn by chance. The coefficients were fitted to questions about
    /// generated conversations (`context-bench recall`) and to everyday conversations; the constant and the weight of a
    /// question were then set by hand, as a compromise between unnecessary recalls and missed questions
    /// (BENCHMARKS.md).
    ///
    /// - Parameter matched: Indices in ``terms`` of the words that the turn contains.
    func evidence(_ matched: [Int]) -> Double {
        let hasName = terms.contains { $0.word.isName && $0.turnCount > 0 }
        let hasAll = terms.count > 1 && matched.count == terms.count
        let found = Set(matched.map { terms[$0].word.text })
        let hasDate = matched.contains { terms[$0].word.isDate }
        let isAsked = query.sentences.contains { $0.isQuestion && (hasDate || !$0.words.isDisjoint(with: found)) }
        // A statement that the turn contains verbatim needs nothing from it.
        let repeated = query.sentences.filter { $0.isStatement && $0.words.count > 2 && $0.words.isSubset(of: found) }
            .reduce(into: Set<String>()) { $0.formUnion($1.words) }
        // “What is my street called?”, “my street's name”: each word may be frequent, but few turns contain all of
        // them.
        let isRareTogether = hasAll && terms.count < 4 && query.sentences.count == 1 && !areTermsTogether
        // More frequent words are sufficient evidence in dates, in a question that contains a name, and if one turn
        // contains all words of a question.
        let share = isRareTogether ? 1 : isAsked && hasName ? 0.25 : isAsked && hasAll ? 0.05 : 0.02
        var weight = 0.0
        for term in matched.map({ terms[$0] }) where !repeated.contains(term.word.text) {
            guard Double(term.turnCount) <= max(3, Double(turnCount) * (term.word.isDate ? 0.25 : share)) else { continue }
            weight += term.isInContext && !isRareTogether ? 0.3 * term.weight : term.weight
        }
        weight /= log(1 + 2 * Double(max(1, turnCount)))
        let length = terms.count { !$0.word.isDate && !$0.word.isNumber }
        var sum: Double = 7.8 * weight.squareRoot() - 0.6 * Double(min(length, 20)) - 9
        if isAsked { sum += 2.5 }
        if isRareTogether { sum += 1 }
        if hasName { sum += 2.4 }
        if hasName, isAsked { sum += 2 }
        return 1 / (1 + exp(-sum))
    }
}
