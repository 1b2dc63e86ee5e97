import Foundation
import FoundationModels
import ModelPrompts
import TextSearch

/// The text in front of a prompt: what was said earlier, with speakers and dates, within a token budget.
struct RecallBlock {
    /// The results of the search, best first.
    let matches: [ScoredTurn]
    /// The turns of the results.
    let turns: [Int: Turn]
    /// Numbers of turns that cannot be read.
    let damaged: Set<Int>
    let policy: RecallPolicy
    /// Words of the prompt, used to select sentences of a long text.
    let words: Set<String>
    /// Returns the number of tokens of a text.
    let count: (String) async throws -> Int

    /// Selects what fits into the budget and is worth its tokens, best first. What does not fit is shortened to the sentences that
    /// contain words of the prompt.
    nonisolated(nonsending) func items(within limit: Int) async throws -> [Recall.Item] {
        var items: [Recall.Item] = []
        // The sum of the counts of the parts is a few tokens higher than the count of the whole.
        var left = limit - (try await count("\(ModelPrompts.recallHeading)\n\n\(ModelPrompts.recallFooting)\n"))
        // The line that counts what is left out must not take the place of what is there.
        if matches.count(where: { $0.score >= Self.likely }) > 1 {
            left -= try await count("\(ModelPrompts.recallOmission(matches.count))\n")
        }
        var texts: Set<String> = []
        var days: Set<String> = []
        for match in matches {
            var item = Recall.Item(
                turn: match.number, side: match.side, date: turns[match.number]?.date, match: match, outcome: .overBudget,
                text: "")
            if damaged.contains(match.number) {
                item.outcome = .damaged
                items.append(item)
                continue
            }
            guard let turn = turns[match.number] else { continue }
            let whole = Self.text(of: turn, match.side)
            // The same words again say nothing new.
            guard texts.insert(whole).inserted else { continue }
            let day = Self.line(turn.date)
            let dayTokens = days.contains(day) ? 0 : try await count("\(day)\n")
            // Limits a long text to a part of the budget, so that others fit as well.
            let fair = matches.count > 1 ? max(limit / 3, 48) : left
            let gain = match.score * match.evidence
            // Shorter forms are made only if the whole does not fit.
            let forms: [(outcome: Recall.Item.Outcome, limit: Int, text: () -> String)] = [
                (.recalled, fair, { whole }), (.shortened, left, { shortened(turn, match.side) }), (.recalled, left, { whole }),
                (.shortened, left, { beginning(turn, match.side) }),
            ]
            for form in forms {
                let text = form.text()
                if text.isEmpty { continue }
                let tokens = try await count("\(text)\n") + dayTokens
                if gain < policy.minimumGain * Double(tokens) {
                    item.outcome = .weak
                    continue
                }
                guard tokens <= min(form.limit, left) else {
                    item.outcome = .overBudget
                    continue
                }
                (item.outcome, item.text) = (form.outcome, text)
                days.insert(day)
                left -= tokens
                break
            }
            items.append(item)
        }
        return items
    }

    /// The sentences of a text that contain words of the prompt.
    private func shortened(_ turn: Turn, _ side: ScoredTurn.Side?) -> String {
        TextUnits.sentences(of: Self.text(of: turn, side)).filter { sentence in
            SearchText.words(of: String(sentence), limit: .max).contains { word in
                words.contains(word) || words.contains { Utterance.isSameStem($0, word) }
            }
        }.map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }.joined(separator: " … ")
    }

    /// The first sentences, for what was found by its date or its meaning only.
    private func beginning(_ turn: Turn, _ side: ScoredTurn.Side?) -> String {
        TextUnits.sentences(of: Self.text(of: turn, side)).prefix(3).joined()
    }

    /// What was said, after its speaker. Before a short answer comes the question that it answers.
    private static func text(of turn: Turn, _ side: ScoredTurn.Side?) -> String {
        switch side {
        case nil: return quoted("User: \(turn.prompt)") + "\n" + quoted("Assistant: \(turn.modelText)")
        case .user: return quoted("User: \(turn.prompt)")
        case .model:
            let question = TextUnits.sentences(of: turn.prompt).last { RecallQuery.isQuestion($0) } ?? ""
            let isIntelligible = SearchText.wordCount(of: turn.modelText) > maximumWordsOfShortAnswers
            let before =
                isIntelligible || question.isEmpty || question.utf8.count > maximumQuestion
                ? "" : quoted("User: … \(question)") + "\n"
            return before + quoted("Assistant: \(turn.modelText)")
        }
    }

    /// A text in which only the first line begins at the margin. What a user, a model or a tool said cannot look like another speaker,
    /// another day or the end of the block.
    private static func quoted(_ text: String) -> String {
        text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).joined(separator: "\n  ")
    }

    /// The maximum number of bytes of a question that is repeated before its answer.
    private static let maximumQuestion = 160
    private static let maximumWordsOfShortAnswers = 8

    /// The relevance from which on more than half of what is found answers a question, in cross-validation.
    private static let likely = 0.3

    /// The items as a text, in chronological order, with the number of likely ones that did not fit. The prompt begins on the next line.
    static func text(_ items: [Recall.Item]) -> String {
        var lines = [ModelPrompts.recallHeading]
        var day: String?
        let shown = items.filter { !$0.text.isEmpty }.sorted {
            $0.turn == $1.turn ? $0.side == .user && $1.side != .user : $0.turn < $1.turn
        }
        for (index, item) in shown.enumerated() {
            let line = line(item.date)
            if line != day { lines.append(line) }
            day = line
            // The question before an answer is not repeated after the prompt that contains it.
            let isContinued = index > 0 && shown[index - 1].turn == item.turn && item.side == .model
            lines.append(isContinued ? withoutQuestion(item.text) : item.text)
        }
        let left = items.count { $0.outcome == .overBudget && ($0.match?.score ?? 0) >= likely }
        if left > 0 { lines.append(ModelPrompts.recallOmission(left)) }
        return lines.joined(separator: "\n") + "\n\n\(ModelPrompts.recallFooting)"
    }

    private static func withoutQuestion(_ text: String) -> String {
        guard text.hasPrefix("User: … "), let start = text.range(of: "\nAssistant: ") else { return text }
        return String(text[text.index(after: start.lowerBound)...])
    }

    /// The line in front of the turns of a day.
    static func line(_ date: Date?) -> String { date.map { "[\(day($0))]" } ?? "[before]" }

    /// A formatted date, independent of the locale of the machine.
    static func day(_ date: Date) -> String {
        date.formatted(Date.FormatStyle(locale: Locale(identifier: "en_GB")).day().month(.wide).year())
    }
}
