internal import Waiting
public import Embeddings
import Foundation
import FoundationModels
import Logging
internal import TextSearch

/// Ranks what was said by the words that it shares with a prompt (BM25: Robertson and Zaragoza, doi:10.1561/1500000019) and by
/// the similarity of its meaning, and estimates whether the prompt needs any of it.
///
/// The two sides of a turn are ranked separately. The vectors of turns are computed in the background and stored in the archive.
/// Without an embedding model (`fm model pull embedder`), and for turns without vectors, only words count.
///
/// The work of a search by words has an upper bound that does not depend on the length of the conversation: for each word, only
/// the newest turns that contain it are considered. All vectors are compared.
public struct HybridSearch: TurnSearch {
    private let model: (any EmbeddingModel)?
    private let reranker: Reranker?

    /// Creates a search with the default embedding model, or another one; nil to search by words only.
    ///
    /// What is found is ranked by a `Reranker` of `Embeddings` if there is one for the model.
    public init(model: (any EmbeddingModel)? = GGUFEmbeddingModel.default) {
        self.init(model: model, reranker: (model as? GGUFEmbeddingModel).map { Reranker(model: $0) })
    }

    /// - Parameters:
    ///   - model: The embedding model; nil to search by words only.
    ///   - reranker: What ranks the results; nil to rank by the search alone.
    public init(model: (any EmbeddingModel)?, reranker: Reranker?) { (self.model, self.reranker) = (model, reranker) }

    /// The model if it can be used. A file that is missing is not an error.
    private var availableModel: (any EmbeddingModel)? {
        guard let model else { return nil }
        return (model as? GGUFEmbeddingModel)?.isAvailable ?? true ? model : nil
    }

    /// Receives the features of each search, to train ``RecallModel``.
    package var observer: (@Sendable (RecallModel.PromptFeatures, [Utterance]) -> Void)?

    // MARK: - Indexing

    /// Turns whose vectors are computed together.
    private static let batchTurns = 32

    public nonisolated(nonsending) func prepare(_ conversation: String, of archive: ConversationArchive) async throws {
        guard let model = availableModel, !archive.isReadOnly else { return }
        try await archive.vectors.lock.acquire()
        defer { archive.vectors.lock.release() }
        let info = try await model.info()
        let table = VectorMemory.name(info)
        let last = try archive.state(of: conversation)?.lastTurn ?? 0
        let first = archive.vectors.firstUnprepared(in: conversation, model: table)
        while true {
            try Task.checkCancellation()
            let turns = try archive.turnsWithoutVectors(in: conversation, model: table, from: first, limit: Self.batchTurns)
            if turns.isEmpty {
                // The newest turns may be answered later by another program.
                archive.vectors.setFirstUnprepared(
                    last - ConversationState.maximumAgeOfUnanswered, in: conversation, model: table)
                try await TurnRanking(reranker)?.prepare(conversation, of: archive)
                return
            }
            let parts = turns.map { turn in Utterance.Side.allCases.map { UtteranceParts(turn.text(of: $0)).texts } }
            let vectors = try await model.checkedVectors(
                of: parts.flatMap { $0.flatMap(\.self) }, as: .document, dimension: info.dimension)
            var next = 0
            var records: [(turn: Int, vectors: Data)] = []
            for (turn, sides) in zip(turns, parts) {
                // The number of vectors of the user's side, then all vectors.
                var data = Data([UInt8(sides.first?.count ?? 0)])
                for _ in 0..<sides.reduce(0, { $0 + $1.count }) {
                    data.append(contentsOf: VectorTable.encoded(vectors[next]))
                    next += 1
                }
                records.append((turn.number, data))
            }
            try archive.writable().addVectors(records, in: conversation, model: table)
        }
    }

    // MARK: - Search

    /// Maximum number of turns considered for one word.
    private static let maximumRows = 2_000
    /// Maximum number of turns that are read if something is needed, and to estimate that.
    private static let maximumTurns = 96
    private static let maximumTurnsOfNeed = 24
    /// Below this likelihood the other turns are not read: most prompts need nothing.
    private static let minimumNeed = 0.2
    /// Maximum number of results.
    private static let maximumResults = 120
    /// Maximum number of turns that a ranker compares with the prompt: the strongest ones of the search.
    private static let maximumRanked = 400
    private static let maximumPromptWords = 30

    public nonisolated(nonsending) func turns(
        for prompt: String, in conversation: String, of archive: ConversationArchive, count: Int, except known: Set<Int>
    ) async throws -> [ScoredTurn] {
        let query = RecallQuery(prompt)
        guard count > known.count else { return [] }
        let terms = try terms(of: query, in: conversation, of: archive, count: count)
        var similarity = Similarity()
        do {
            similarity = try await self.similarity(of: query, in: conversation, of: archive, count: count)
        } catch let error as CancellationError {
            throw error
        } catch {
            // A model that cannot be used must not hide what is found by words.
            Logger.contextKit.warning("A conversation is searched by words only: \(error)")
        }
        let isRecent = { known.contains($0) || $0 >= count - Self.recentTurns(of: count) }
        // The number of turns comes from a file: no memory is reserved for turns that cannot be found.
        let last = max(terms.compactMap(\.turns.first).max() ?? -1, similarity.turnCount - 1)
        var sums = [Double](repeating: 0, count: max(0, min(count, last + 1, Similarity.maximumTurns)))
        for term in terms { for turn in term.turns where sums.indices.contains(turn) { sums[turn] += term.weight } }
        // Only the turns that are strongest as a whole are read.
        var strongest = Self.strongest(Self.maximumRanked, sums, similarity, except: known)
        let logits = try await logits(of: query, with: strongest, in: conversation, of: archive)
        if let logits {
            let strengths = strongest.map { turn in
                let strength = sums[turn] * Utterance.wordShare + similarity.strongest(turn)
                return RecallModel.relevance(pair: logits.logit(of: turn), best: logits.largest, strength: strength)
            }
            // A sort is not stable: of equal ones the stronger stay first.
            strongest = strongest.indices.sorted { (strengths[$0], $1) > (strengths[$1], $0) }.map { strongest[$0] }
        }
        strongest.removeLast(max(0, strongest.count - Self.maximumTurns))
        var damaged: Set<Int> = []
        func utterances(of numbers: some Sequence<Int>) throws -> [Utterance] {
            let (turns, damage) = try archive.turns(of: conversation, numbers: Set(numbers))
            damaged.formUnion(damage.compactMap(\.turn))
            var utterances: [Utterance] = []
            for turn in turns.values.sorted(by: { $0.number < $1.number }) {
                let sides = Utterance.Side.allCases.map { Utterance(turn, $0, terms, similarity) }
                for (index, side) in sides.enumerated() where !side.isEmpty && !side.isRepeated(by: query) {
                    var side = side
                    side.note(other: sides[1 - index], age: Double(count - turn.number) / Double(count))
                    side.pair = logits.map { logits in
                        let logit = logits.logit(of: turn.number, side.side)
                        return (logit, logit - logits.largest)
                    }
                    utterances.append(side)
                }
            }
            return utterances
        }
        var left = strongest[...]
        var best: [Utterance] = []
        func readMore(_ count: Int) throws {
            best += try utterances(of: left.prefix(count))
            left = left.dropFirst(count)
            Self.rank(&best, terms)
        }
        while best.isEmpty, !left.isEmpty { try readMore(Self.maximumTurnsOfNeed) }
        // Nobody can tell what a damaged turn said: it is reported.
        if best.isEmpty { return damaged.sorted().map { ScoredTurn(number: $0, score: 1, evidence: 1) } }
        var features = features(query, terms, best, similarity, sums, count, isRecent)
        features.pairs = logits?.features(isRecent: isRecent) ?? []
        let need = RecallModel.need(features)
        if need >= Self.minimumNeed || observer != nil { try readMore(left.count) }
        let first = best[0]
        observer?(features, best)
        let lost = damaged.map { ScoredTurn(number: $0, score: 1, evidence: need) }
        return
            (lost
            + best.map { utterance in
                ScoredTurn(
                    number: utterance.turn, side: utterance.side, score: RecallModel.relevance(utterance.features(best: first)),
                    evidence: need, matches: utterance.matches(terms))
            }).sorted { $0.score == $1.score ? $0.number > $1.number : $0.score > $1.score }
            .prefix(Self.maximumResults).map(\.self)
    }

    /// Weighs utterances and puts the strongest first.
    private static func rank(_ utterances: inout [Utterance], _ terms: [SearchTerm]) {
        let averageLength = utterances.reduce(0) { $0 + Double($1.length) } / Double(max(1, utterances.count))
        for index in utterances.indices { utterances[index].weigh(terms, averageLength: averageLength) }
        utterances.sort { $0.strength == $1.strength ? $0.turn > $1.turn : $0.strength > $1.strength }
    }

    /// What a ranker says of turns; nil without one.
    private nonisolated(nonsending) func logits(
        of query: RecallQuery, with turns: [Int], in conversation: String, of archive: ConversationArchive
    ) async throws -> TurnLogits? {
        do {
            // A ranker reads the beginning of a long prompt; what it wants is in its questions.
            let prompt = query.length > Self.maximumPromptWords ? query.texts.last ?? query.prompt : query.prompt
            return try await TurnRanking(reranker)?.logits(of: prompt, with: turns, in: conversation, of: archive)
        } catch let error as CancellationError {
            throw error
        } catch {
            // A model that cannot be used must not hide what the search has found.
            Logger.contextKit.warning("What was said is not ranked: \(error)")
            return nil
        }
    }

    /// The turns that are strongest as a whole, the strongest first. A turn without common words is found by its meaning only.
    private static func strongest(
        _ limit: Int, _ sums: [Double], _ similarity: Similarity, except known: Set<Int>
    ) -> [Int] {
        var best: [(turn: Int, strength: Double)] = []
        // The newest first, so that of equal ones the newer are kept.
        for turn in sums.indices.reversed() where (sums[turn] > 0 || !similarity.isEmpty) && !known.contains(turn) {
            let strength = sums[turn] * Utterance.wordShare + similarity.strongest(turn)
            if best.count == limit, let last = best.last, strength <= last.strength { continue }
            var (low, high) = (0, best.count)
            while low < high {
                let middle = (low + high) / 2
                if best[middle].strength >= strength { low = middle + 1 } else { high = middle }
            }
            if best.count == limit { best.removeLast() }
            best.insert((turn, strength), at: low)
        }
        return best.map(\.turn)
    }

    /// Number of newest turns that count as the current topic, whether or not they are still in a small window.
    private static func recentTurns(of count: Int) -> Int { min(40, count / 8) }

    /// The words of a prompt with the turns that contain them.
    private func terms(
        of query: RecallQuery, in conversation: String, of archive: ConversationArchive, count: Int
    ) throws -> [SearchTerm] {
        guard !query.words.isEmpty else { return [] }
        let turns = try archive.store.turns(
            with: query.words.map(\.text), in: conversation, count: count, limit: Self.maximumRows)
        return zip(query.words, turns).map { word, turns in
            // If there are more rows than the limit, the frequency is extrapolated from those that were read.
            var frequency = turns.count
            if turns.count == Self.maximumRows, let newest = turns.first, let oldest = turns.last {
                frequency = min(count, turns.count * count / max(1, newest - oldest + 1))
            }
            return SearchTerm(
                word: word, weight: SearchText.weight(count: frequency, total: count), turns: turns)
        }
    }

    /// The similarity of all utterances to a prompt.
    private nonisolated(nonsending) func similarity(
        of query: RecallQuery, in conversation: String, of archive: ConversationArchive, count: Int
    ) async throws -> Similarity {
        guard let model = availableModel else { return Similarity() }
        let info = try await model.info()
        let vectors = try await model.checkedVectors(of: query.texts, as: .query, dimension: info.dimension)
        let table = try archive.vectors.table(of: conversation, in: archive, info)
        return Similarity(to: vectors, in: table, count: count)
    }

    /// What the model of the need for recall is told.
    private func features(
        _ query: RecallQuery, _ terms: [SearchTerm], _ utterances: [Utterance], _ similarity: Similarity, _ sums: [Double],
        _ count: Int, _ isRecent: (Int) -> Bool
    ) -> RecallModel.PromptFeatures {
        func at(_ values: [Double], _ index: Int) -> Double { values.isEmpty ? 0 : values[min(index, values.count - 1)] }
        let termCount = Double(max(1, terms.count))
        let words = utterances.filter { !isRecent($0.turn) }.map(\.wordScore).sorted(by: >)
        var (recentSum, olderSum) = (0.0, 0.0)
        for (turn, sum) in sums.enumerated() {
            if isRecent(turn) { recentSum = max(recentSum, sum) } else { olderSum = max(olderSum, sum) }
        }
        let whole = max(1e-6, terms.reduce(0) { $0 + $1.weight })
        // The weight of a rare word grows with the conversation.
        let unit = log(1 + 2 * Double(max(1, count)))
        var features = RecallModel.PromptFeatures(
            words: [
                Double(min(query.questions.count, 2)),
                Double(query.questions.count) / Double(max(1, query.sentenceCount)),
                log(1 + Double(query.length)), log(1 + Double(terms.count)),
                Double(terms.count { !$0.turns.isEmpty }) / termCount,
                at(words, 0) / unit, (at(words, 0) - at(words, 3)) / unit, (olderSum - recentSum) / unit,
                at(words, 0) / unit / termCount.squareRoot(), olderSum / whole, recentSum / whole,
            ], meaning: [])
        if similarity.isEmpty { return features }
        let older = utterances.filter { !isRecent($0.turn) }
        let sentences = older.map(\.sentence).sorted(by: >)
        let wholes = older.map(\.whole).sorted(by: >)
        let strengths = older.map(\.strength).sorted(by: >)
        features.meaning =
            [
                at(sentences, 0) - at(sentences, 5), at(sentences, 0) - similarity.best(where: isRecent),
                at(wholes, 0) - at(wholes, 5), at(strengths, 0) - at(strengths, 5),
            ] + similarity.distinction(sentence: at(sentences, 0), whole: at(wholes, 0))
        return features
    }
}

/// A word of a prompt, and the turns that contain it.
struct SearchTerm {
    var word: RecallQuery.Word
    /// Its inverse document frequency.
    var weight: Double
    /// The newest turns that contain it, the newest first.
    var turns: [Int]

    func contains(_ turn: Int) -> Bool {
        var (low, high) = (0, turns.count)
        while low < high {
            let middle = (low + high) / 2
            if turns[middle] == turn { return true }
            if turns[middle] > turn { low = middle + 1 } else { high = middle }
        }
        return false
    }
}
