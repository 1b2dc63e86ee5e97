import Foundation
import FoundationModels

/// The text that stands in front of a prompt: earlier turns with their dates, within a number of tokens.
struct RecallBlock {
    static let heading = "Said earlier in this conversation:"
    static let footing = "Said now:"

    /// What the search found, the best first.
    let found: [ScoredTurn]
    /// Those turns and their neighbours.
    let turns: [Int: Turn]
    /// Numbers of turns that cannot be read.
    let damaged: Set<Int>
    let policy: RecallPolicy
    /// Words of the prompt, by which sentences of a long turn are chosen.
    let words: Set<String>
    /// Tokens of a text.
    let count: (String) async throws -> Int

    /// Chooses what fits into a number of tokens: matches first, the best first, then their neighbours. What does not fit whole is
    /// shortened to the sentences that have words of the prompt.
    func items(within limit: Int) async throws -> [Recall.Item] {
        var items: [Recall.Item] = []
        // Counts of parts add up to a few tokens more than that of the whole.
        var left = limit - (try await count("\(Self.heading)\n\n\(Self.footing)\n"))
        let best = found.first?.score ?? 0
        var seen: Set<Int> = []
        func add(_ number: Int, _ match: ScoredTurn?) async throws {
            guard seen.insert(number).inserted else { return }
            var item = Recall.Item(turn: number, date: turns[number]?.date, match: match, outcome: .noRoom, text: "")
            if damaged.contains(number) {
                item.outcome = .damaged
                items.append(item)
                return
            }
            guard let turn = turns[number] else { return }
            if let match, match.score < policy.minimumShareOfBest * best {
                item.outcome = .weak
            } else {
                // One long turn must not take the room of all others, unless nothing shorter says what was asked for.
                let fair = found.count > 1 ? max(limit / 3, 48) : left
                let forms: [(outcome: Recall.Item.Outcome, text: String, limit: Int)] = [
                    (.brought, turn.text, fair), (.shortened, shortened(turn), left),
                    (.brought, match == nil ? "" : turn.text, left), (.shortened, match == nil ? "" : beginning(turn), left),
                ]
                for form in forms where !form.text.isEmpty {
                    // The date's line is counted with each turn, though turns of one day share it.
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

    /// The sentences of a turn that have words of the prompt.
    private func shortened(_ turn: Turn) -> String {
        TextUnits.sentences(of: turn.text).filter { sentence in
            SearchText.words(of: String(sentence), limit: .max).contains { word in
                words.contains(word) || words.contains { Self.isSameStem($0, word) }
            }
        }.map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }.joined(separator: " … ")
    }

    /// Whether two words differ in a short ending only, which is how the index finds most of what is not the same word.
    private static func isSameStem(_ one: String, _ other: String) -> Bool {
        let common = zip(one, other).prefix { $0 == $1 }.count
        return common >= 4 && max(one.count, other.count) - common <= 3
    }

    /// The first sentences of a turn that was found by its date.
    private func beginning(_ turn: Turn) -> String { TextUnits.sentences(of: turn.text).prefix(3).joined() }

    /// The items as a text, in the order in which they were said.
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

    /// What stands before the turns of a day.
    private static func line(_ date: Date?) -> String { date.map { "[\(day($0))]" } ?? "[before]" }

    /// A day in words, the same on every machine.
    static func day(_ date: Date) -> String {
        date.formatted(Date.FormatStyle(locale: Locale(identifier: "en_GB")).day().month(.wide).year())
    }
}
