internal import AsyncLocks
public import Embeddings
import Foundation
import FoundationModels
internal import TextSearch

/// Ranks turns by the words that they share with a prompt and by the similarity of their meaning, so that a question in other
/// words finds them.
///
/// The vectors of turns are computed in the background and stored in the archive. Without an embedding model (`fm model pull
/// embedder`), and for turns without vectors, this is the same as ``LexicalSearch``.
public struct HybridSearch: TurnSearch {
    private let model: any EmbeddingModel
    private let lexical = LexicalSearch()

    /// Creates a search with the default embedding model, or another one.
    public init(model: any EmbeddingModel = GGUFEmbeddingModel.default) { self.model = model }

    /// Whether the model can be used. A file that is missing is not an error.
    private var isAvailable: Bool { (model as? GGUFEmbeddingModel)?.isAvailable ?? true }

    // MARK: - Indexing

    /// Turns whose vectors are computed together.
    private static let batchTurns = 32
    /// The maximum number of parts of a turn that have vectors of their own.
    private static let maximumParts = 48

    public nonisolated(nonsending) func prepare(_ conversation: String, of archive: ConversationArchive) async throws {
        guard isAvailable, !archive.isReadOnly else { return }
        try await archive.vectors.lock.acquire()
        defer { archive.vectors.lock.release() }
        let info = try await model.info()
        let last = try archive.state(of: conversation)?.lastTurn ?? 0
        let first = archive.vectors.firstUnprepared(in: conversation, model: info.identifier)
        while true {
            try Task.checkCancellation()
            let turns = try archive.turnsWithoutVectors(
                in: conversation, model: info.identifier, from: first, limit: Self.batchTurns)
            if turns.isEmpty {
                // The newest turns may be answered later by another program.
                return archive.vectors.setFirstUnprepared(
                    last - ConversationState.maximumAgeOfUnanswered, in: conversation, model: info.identifier)
            }
            let parts = turns.map { Self.parts(of: $0.text) }
            let vectors = try await model.checkedVectors(
                of: parts.flatMap(\.self), as: .document, dimension: info.dimension)
            var next = 0
            var records: [(turn: Int, vectors: Data)] = []
            for (turn, parts) in zip(turns, parts) {
                let data = vectors[next..<next + parts.count].reduce(into: Data()) {
                    $0.append(contentsOf: VectorTable.encoded($1))
                }
                records.append((turn.number, data))
                next += parts.count
            }
            try archive.writable().addVectors(records, in: conversation, model: info.identifier)
        }
    }

    /// The sentences of a turn, without questions, which ask for something and do not say it; of a long turn, groups of
    /// sentences.
    private static func parts(of text: String) -> [String] {
        let all = TextUnits.sentences(of: text).map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }.filter { !$0.isEmpty }
        let statements = all.filter { !isQuestion($0) }
        let sentences = statements.isEmpty ? all : statements
        let size = (sentences.count + maximumParts - 1) / maximumParts
        guard size > 1 else { return sentences }
        return stride(from: 0, to: sentences.count, by: size).map {
            sentences[$0..<min($0 + size, sentences.count)].joined(separator: " ")
        }
    }

    // MARK: - Search

    /// The number of turns that the search by meaning adds.
    private static let depth = 12

    public nonisolated(nonsending) func turns(
        for prompt: String, in conversation: String, of archive: ConversationArchive, count: Int, except known: Set<Int>
    ) async throws -> [ScoredTurn] {
        let byWords = try await lexical.turns(for: prompt, in: conversation, of: archive, count: count, except: known)
        guard isAvailable, count > known.count else { return byWords }
        let nearest: Nearest?
        do {
            nearest = try await self.nearest(to: prompt, in: conversation, of: archive, count: count, except: known)
        } catch let error as CancellationError {
            throw error
        } catch {
            // A model that cannot be used must not hide what was found by words.
            nearest = nil
        }
        guard let nearest, !nearest.turns.isEmpty else { return byWords }
        return Self.fused(byWords, nearest.turns, evidence: nearest.evidence)
    }

    private struct Nearest {
        /// Numbers of turns and their cosines, best first.
        var turns: [(key: Int, value: Double)]
        var evidence: Double
    }

    /// The turns that are most similar to a prompt.
    private nonisolated(nonsending) func nearest(
        to prompt: String, in conversation: String, of archive: ConversationArchive, count: Int, except known: Set<Int>
    ) async throws -> Nearest? {
        let info = try await model.info()
        let queries = Self.queries(in: prompt)
        let vectors = try await model.checkedVectors(of: queries, as: .query, dimension: info.dimension)
        let table = try archive.vectors.table(of: conversation, in: archive, info)
        guard table.count > 0 else { return nil }
        // The best part of each turn, for any sentence of the prompt.
        var best: [Int: Double] = [:]
        for vector in vectors {
            for (key, cosine) in table.nearest(to: vector, count: (Self.depth + known.count) * 4) {
                let turn = Int(key >> 8)
                best[turn] = max(best[turn] ?? 0, Double(cosine))
            }
        }
        let recent = count - RecallGate.recentTurns(of: count)
        let nearest = best.filter { !known.contains($0.key) && $0.key < count }
            .sorted { $0.value == $1.value ? $0.key > $1.key : $0.value > $1.value }.prefix(Self.depth)
        guard let top = nearest.first else { return nil }
        let inContext = best.filter { known.contains($0.key) || $0.key >= recent }.map(\.value).max() ?? 0
        let gate = MeaningGate(
            question: Self.isQuestion(prompt) ? PersonWords(queries.joined(separator: " ")) : nil, best: top.value,
            inContext: inContext,
            similar: nearest.count { $0.value > MeaningGate.similarShare * top.value })
        return Nearest(turns: Array(nearest), evidence: gate.evidence)
    }

    /// Joins both rankings. Turns that were found by meaning only have the evidence of the gate, if they are as near as the
    /// best one.
    private static func fused(
        _ byWords: [ScoredTurn], _ nearest: [(key: Int, value: Double)], evidence: Double
    ) -> [ScoredTurn] {
        let turns = Dictionary(byWords.map { ($0.number, $0) }) { first, _ in first }
        let ranking = RankFusion.fused([byWords.map { ($0.number, 1) }, nearest.map { ($0.key, 1) }])
        return ranking.map { number, score in
            var turn = turns[number] ?? ScoredTurn(number: number, score: 0, evidence: 0, matches: ["meaning"])
            turn.score = score * 100
            if number == nearest.first?.key { turn.evidence = max(turn.evidence, evidence) }
            return turn
        }
    }

    /// The questions of a prompt, which say what is wanted; all of it if there are none.
    private static func queries(in prompt: String) -> [String] {
        let sentences = TextUnits.sentences(of: prompt).map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
        let questions = sentences.filter { isQuestion($0) }.suffix(3)
        return questions.isEmpty ? [prompt] : Array(questions)
    }

    private static func isQuestion(_ text: String) -> Bool {
        text.unicodeScalars.contains { $0 == "?" || $0 == "？" || $0 == "؟" }
    }
}
