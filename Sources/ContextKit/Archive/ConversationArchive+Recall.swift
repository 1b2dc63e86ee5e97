import Foundation
import GRDB

extension ConversationArchive {
    /// The numbers of the turns that share rare words with a text, the best first.
    ///
    /// - Parameters:
    ///   - count: How many turns the conversation has.
    ///   - known: Turns that are in the context already.
    ///   - policy: How much of the text a turn has to contain.
    func turns(
        like text: String, in conversation: String, of count: Int, except known: Set<Int>, policy: RecallPolicy
    ) throws -> [Int] {
        let words = SearchText.words(of: text)
        let isLookingBack = SearchText.looksBack(text)
        let threshold = isLookingBack ? policy.threshold : policy.strictThreshold
        let fewestWords = isLookingBack ? 1 : policy.strictWordCount
        guard !words.isEmpty, count > known.count else { return [] }
        let rarest = max(4, min(count / 8, Self.mostRows))
        var total = 0.0
        var scores: [Int: (weight: Double, words: Int)] = [:]
        try read { database in
            guard let first = try Self.firstRow(database, conversation) else { return }
            for word in words {
                // No more rows than a rare word has: what a question costs does not grow with the conversation.
                let rows = try Int64.fetchAll(
                    database,
                    sql: """
                        SELECT rowid FROM turn_text WHERE turn_text MATCH ? AND rowid BETWEEN ? AND ?
                        ORDER BY rowid DESC LIMIT ?
                        """,
                    arguments: ["\"\(word)\"", first, first + Int64(count), rarest + 1])
                // BM25's inverse document frequency.
                let weight = log(1 + (Double(max(0, count - rows.count)) + 0.5) / (Double(rows.count) + 0.5))
                total += weight
                // What stands everywhere tells nothing apart.
                guard rows.count <= rarest else { continue }
                for number in rows.map({ Int($0 - first) }) where !known.contains(number) {
                    let score = scores[number] ?? (0, 0)
                    scores[number] = (score.weight + weight, score.words + 1)
                }
            }
        }
        var best = scores.filter { $0.value.weight >= threshold * total && $0.value.words >= fewestWords }
            .sorted { $0.value.weight == $1.value.weight ? $0.key > $1.key : $0.value.weight > $1.value.weight }
            .map(\.key)
        if !isLookingBack {
            // A question that was asked before says nothing about the user, and neither does the same request.
            let asked = Set(words)
            let prompts = try turns(Array(best.prefix(20)), of: conversation).mapValues(\.prompt)
            best = best.filter { number in
                guard let prompt = prompts[number], !prompt.contains(where: { "?？؟".contains($0) }) else { return false }
                return Set(SearchText.words(of: prompt)).subtracting(asked).count >= 2
            }
        }
        return Array(best.prefix(max(0, policy.greatestCount)))
    }

    private static let mostRows = 200

    /// Turns by their numbers.
    func turns(_ numbers: [Int], of conversation: String) throws -> [Int: Turn] {
        guard !numbers.isEmpty else { return [:] }
        let list = numbers.map(String.init).joined(separator: ",")
        let turns = try read { try Self.turns($0, conversation, "number IN (\(list)) AND entries IS NOT NULL") }
        return Dictionary(turns.map { ($0.number, $0) }) { first, _ in first }
    }
}
