import Foundation
import FoundationModels
import TextSearch

/// The text in front of a prompt: earlier turns with their dates, within a token budget.
struct RecallBlock {
    static let heading = "Said earlier in this conversation:"
    static let footing = "Said now:"

    /// The results of the search, best first.
    let found: [ScoredTurn]
    /// The turns of the results, and their neighbours.
    let turns: [Int: Turn]
    /// Numbers of turns that cannot be read.
    let damaged: Set<Int>
    let policy: RecallPolicy
    /// Words of the prompt, used to select sentences of a long turn.
    let words: Set<String>
    /// Returns the number of tokens of a text.
    let count: (String) async throws -> Int

    /// Selects the turns that fit into the budget: first the matches, best first, then their neighbours. A turn that
    /// does not fit is shortened to the sentences that contain words of the prompt.
    func items(within limit: Int) async throws -> [Recall.Item] {
        var items: [Recall.Item] = []
        // The sum of the counts of the parts is a few tokens higher than the count of the whole.
        var left = limit - (try await count("\(Self.heading)\n\n\(Self.footing)\n"))
        let best = found.first?.score ?? 0
        var seen: Set<Int> = []
        func add(_ number: Int, _ match: ScoredTurn?) async throws {
            guard seen.insert(number).inserted else { return }
            var item = Recall.Item(turn: number, date: turns[number]?.date, match: match, outcome: .overBudget, text: "")
            if damaged.contains(number) {
                item.outcome = .damaged
                items.append(item)
                return
            }
            guard let turn = turns[number] else { return }
            if let match, match.score < policy.minimumShareOfBest * best {
                item.outcome = .weak
            } else {
                // Limits a long turn to a part of the budget, so that others fit as well. If it has no shorter form, it
                // may use the whole budget.
                let fair = found.count > 1 ? max(limit / 3, 48) : left
                let forms: [(outcome: Recall.Item.Outcome, text: String, limit: Int)] = [
                    (.recalled, turn.text, fair), (.shortened, shortened(turn), left),
                    (.recalled, match == nil ? "" : turn.text, left), (.shortened, match == nil ? "" : beginning(turn), left),
                ]
                for form in forms where !form.text.isEmpty {
                    // The line with the date is counted for each turn, although turns of one day share it.
                    let tokens = try await count("\(Self.line(turn.date))\n\(form.text)\n")
                    guard tokens <= min(form.limit, left) else { continue }
                    (item.outcome, item.text) = (form.outcome, form.text)
                    left -= tokens
                    break
                }
            }
            items.append(item)
        }
        for match in found { try await add(match.number, match) }
        let matched = items.filter { !$0.text.isEmpty }.map(\.turn)
        for distance in 1..<(policy.reach + 1) {
            for number in matched.flatMap({ [$0 + distance, $0 - distance] }) where turns[number] != nil {
                try await add(number, nil)
            }
        }
        return items
    }

    /// The sentences of a turn that contain words of the prompt.
    private func shortened(_ turn: Turn) -> String {
        TextUnits.sentences(of: turn.text).filter { sentence in
            SearchText.words(of: String(sentence), limit: .max).contains { word in
                words.contains(word) || words.contains { Self.isSameStem($0, word) }
            }
        }.map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }.joined(separator: " … ")
    }

    /// Whether two words differ only in a short ending. This approximates the stemming of the index.
    private static func isSameStem(_ one: String, _ other: String) -> Bool {
        let common = zip(one, other).prefix { $0 == $1 }.count
        return common >= 4 && max(one.count, other.count) - common <= 3
    }

    /// The first sentences of a turn, for turns that match by their date only.
    private func beginning(_ turn: Turn) -> String { TextUnits.sentences(of: turn.text).prefix(3).joined() }

    /// The items as a text, in chronological order.
    static func text(_ items: [Recall.Item]) -> String {
        var lines = [heading]
        var day: String?
        for item in items.filter({ !$0.text.isEmpty }).sorted(by: { $0.turn < $1.turn }) {
            let line = line(item.date)
            if line != day { lines.append(line) }
            day = line
            lines.append(item.text)
        }
        return lines.joined(separator: "\n") + "\n\n\(footing)\n"
    }

    /// The line in front of the turns of a day.
    private static func line(_ date: Date?) -> String { date.map { "[\(day($0))]" } ?? "[before]" }

    /// A formatted date, independent of the locale of the machine.
    static func day(_ date: Date) -> String {
        date.formatted(Date.FormatStyle(locale: Locale(identifier: "en_GB")).day().month(.wide).year())
    }
}
