import Foundation

/// Judges by the words of a prompt whether it needs something from before.
struct RecallGate {
    /// What the archive knows of a word of the prompt.
    struct Term {
        var word: RecallQuery.Word
        /// Its inverse document frequency.
        var weight: Double
        /// Turns that have it, in the context or not.
        var turnCount: Int
        /// Whether a turn in the context, or one of the newest, has it: that is what is being talked about.
        var isInContext: Bool
    }

    /// Turns that count as what is being talked about, whether or not a small window still has them.
    static func recentTurns(of count: Int) -> Int { min(40, count / 8) }

    let terms: [Term]
    let turnCount: Int
    let query: RecallQuery
    /// Whether some turns have all words at once, or one of the context or the newest has.
    let areTermsTogether: Bool

    /// How sure it is that a prompt needs something from before, from 0 to 1, by a turn that has some of its words.
    ///
    /// A logistic function of four things: the weight of rare words that the turn has (those in the context count less, since what
    /// they are about is there), whether some of them stand in a question, whether the prompt speaks of a name that the archive
    /// knows, and how many words it has: long prompts share a rare word with some turn by chance. The coefficients were fitted to
    /// questions about generated conversations (`context-bench recall`) and to everyday talk of people; the constant and the weight
    /// of a question were then set by hand, between what ordinary turns recall needlessly and what questions miss (BENCHMARKS.md).
    func evidence(_ matched: [Int]) -> Double {
        let hasName = terms.contains { $0.word.isName && $0.turnCount > 0 }
        let hasAll = terms.count > 1 && matched.count == terms.count
        let found = Set(matched.map { terms[$0].word.text })
        let hasDate = matched.contains { terms[$0].word.isDate }
        let isAsked = query.sentences.contains { $0.isQuestion && (hasDate || !$0.words.isDisjoint(with: found)) }
        // A statement that the turn has word for word needs nothing from it.
        let repeated = query.sentences.filter { $0.isStatement && $0.words.count > 2 && $0.words.isSubset(of: found) }
            .reduce(into: Set<String>()) { $0.formUnion($1.words) }
        // “What is my street called?”, “my street's name”: each word may be frequent, but hardly a turn has them all.
        let isRareTogether = hasAll && terms.count < 4 && query.sentences.count == 1 && !areTermsTogether
        // Words that are not that rare say enough in a date, in a question about somebody, and where one turn has all words of a
        // question.
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
