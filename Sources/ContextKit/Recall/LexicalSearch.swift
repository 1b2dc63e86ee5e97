import Foundation
import FoundationModels
import TextSearch

/// Ranks turns by the words, names, numbers and dates that they share with a prompt (BM25: Robertson and Zaragoza,
/// doi:10.1561/1500000019).
///
/// The cost of a search has an upper bound that does not depend on the length of the conversation: for each word, only
/// the newest turns that contain it are considered.
public struct LexicalSearch: TurnSearch {
    /// Creates a search with the usual constants.
    public init() {}

    /// If more turns than this contain all words of a prompt, the prompt is not about one of them.
    private static let fewTurns = 2
    /// Maximum number of turns considered for one word.
    private static let maximumRows = 2_000
    /// Maximum number of turns whose lengths are read.
    private static let maximumCandidates = 100
    private static let k1 = 1.2
    private static let b = 0.75

    public nonisolated(nonsending) func turns(
        for prompt: String, in conversation: String, of archive: ConversationArchive, count: Int, except known: Set<Int>
    ) async throws -> [ScoredTurn] {
        let query = RecallQuery(prompt)
        guard !query.words.isEmpty, count > known.count else { return [] }
        let found = try archive.store.turns(
            with: query.words.map(\.text), in: conversation, count: count, limit: Self.maximumRows)
        var turns: [Int: [Int]] = [:]  // for each turn, the indices of its words in `terms`
        var terms: [RecallGate.Term] = []
        let recent = count - RecallGate.recentTurns(of: count)
        for (word, rows) in zip(query.words, found) {
            // If there are more rows than the limit, the frequency is extrapolated from those that were read.
            var frequency = rows.count
            if rows.count == Self.maximumRows, let newest = rows.first, let oldest = rows.last {
                frequency = min(count, rows.count * count / max(1, newest - oldest + 1))
            }
            let weight = SearchText.weight(count: frequency, total: count)
            var isInContext = false
            for number in rows {
                if known.contains(number) || number >= recent { isInContext = true }
                turns[number, default: []].append(terms.count)
            }
            terms.append(
                RecallGate.Term(word: word, weight: weight, turnCount: frequency, isInContext: isInContext))
        }
        let all = turns.filter { $0.value.count == terms.count }.keys
        let isTogether = all.count > Self.fewTurns || all.contains { known.contains($0) || $0 >= recent }
        // Only the best by the sum of the words' weights. The length of a turn changes its rank little.
        let candidates = turns.compactMap { (number, matched) -> Candidate? in
            if known.contains(number) { return nil }
            return Candidate(number: number, terms: matched, sum: matched.reduce(0) { $0 + terms[$1].weight })
        }.sorted { $0.sum == $1.sum ? $0.number > $1.number : $0.sum > $1.sum }.prefix(Self.maximumCandidates)
        let numbers = candidates.map(\.number)
        // If they cannot be read, turns are ranked without them: the words were found.
        let lengths = ((try? archive.store.wordCounts(of: numbers, in: conversation)) ?? [:])
            .mapValues { $0.clamped(to: 0...1_000_000) }
        let average = lengths.isEmpty ? 1 : Double(lengths.values.reduce(0, +)) / Double(lengths.count)
        let gate = RecallGate(terms: terms, turnCount: count, query: query, areTermsTogether: isTogether)
        return candidates.map { candidate in
            let length = Double(lengths[candidate.number] ?? Int(average)) / max(1, average)
            let factor = (Self.k1 + 1) / (1 + Self.k1 * (1 - Self.b + Self.b * length))
            return ScoredTurn(
                number: candidate.number, score: candidate.sum * factor, evidence: gate.evidence(candidate.terms),
                matches: candidate.terms.map { terms[$0].word.shown }.withoutRepetitions)
        }.sorted { $0.score == $1.score ? $0.number > $1.number : $0.score > $1.score }
    }

    private struct Candidate {
        let number: Int
        /// Indices of the turn's words in the list of terms.
        let terms: [Int]
        let sum: Double
    }
}

extension [String] {
    /// The elements without duplicates, in order of first occurrence.
    fileprivate var withoutRepetitions: [String] {
        var seen: Set<String> = []
        return filter { seen.insert($0).inserted }
    }
}
