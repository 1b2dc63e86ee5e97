import Embeddings
import Foundation
import FoundationModels
import TextSearch

/// What a ranker has read of turns, and how well it fits a prompt.
///
/// Turns are read in the background, once; the archive keeps what was read. A prompt is then compared with hundreds of turns in some
/// milliseconds.
struct TurnRanking: Sendable {
    private let reranker: Reranker
    /// The name of what was read in the archive. The number counts the ways in which turns are read.
    private let table: String

    /// nil if the ranker cannot be used.
    nonisolated(nonsending) init?(_ reranker: Reranker?) async throws {
        guard let reranker, let identifier = try await reranker.identifier() else { return nil }
        (self.reranker, table) = (reranker, "\(identifier)#2")
    }

    // MARK: - Reading

    /// Turns that are read together.
    private static let batchTurns = 32

    /// Reads the turns that were not read yet.
    nonisolated(nonsending) func prepare(_ conversation: String, of archive: ConversationArchive) async throws {
        let first = archive.vectors.firstUnprepared(in: conversation, model: table)
        while true {
            try Task.checkCancellation()
            let turns = try archive.turnsWithoutVectors(in: conversation, model: table, from: first, limit: Self.batchTurns)
            if turns.isEmpty {
                let last = try archive.state(of: conversation)?.lastTurn ?? 0
                return archive.vectors.setFirstUnprepared(
                    last - ConversationState.maximumAgeOfUnanswered, in: conversation, model: table)
            }
            // What a user says is often an answer.
            let before = try archive.turns(of: conversation, numbers: Set(turns.map { $0.number - 1 })).turns
            let texts = try await reranker.prepared(turns.flatMap { Self.candidates($0, after: before[$0.number - 1]) })
            var records: [(turn: Int, vectors: Data)] = []
            for (index, turn) in turns.enumerated() {
                let asks = try await reranker.prepared(question: Self.question(turn.prompt)).refersBack
                records.append((turn.number, Self.encoded(asks, texts[2 * index], texts[2 * index + 1])))
            }
            try archive.writable().addVectors(records, in: conversation, model: table)
        }
    }

    /// Both sides of a turn, each with what was said before it.
    private static func candidates(_ turn: Turn, after before: Turn?) -> [Reranker.Candidate] {
        let (user, model) = (Utterance.Side.user, Utterance.Side.model)
        return [
            .init(user.label + turn.text(of: user), context: before.map { model.label + $0.response } ?? ""),
            .init(model.label + turn.text(of: model), context: user.label + turn.prompt),
        ]
    }

    private static func question(_ prompt: String) -> String { Utterance.Side.user.label + prompt }

    /// What was read of a turn.
    private struct Record {
        /// The likelihood that its prompt asks for something that was said earlier.
        var asks: Double
        var sides: [Reranker.PreparedText]
    }

    /// The likelihood, the number of bytes of the user's side, and both sides.
    private static func encoded(_ asks: Double, _ user: Reranker.PreparedText, _ model: Reranker.PreparedText) -> Data {
        let numbers = [Float(asks).bitPattern, UInt32(user.data.count)].map(\.littleEndian)
        return numbers.withUnsafeBytes { Data($0) } + user.data + model.data
    }

    /// nil if the data is damaged.
    private static func decoded(_ data: Data) -> Record? {
        guard data.count >= 8 else { return nil }
        let numbers = data.withUnsafeBytes { bytes in
            [0, 4].map { UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: $0, as: UInt32.self)) }
        }
        let (asks, size) = (Double(Float(bitPattern: numbers[0])), Int(numbers[1]))
        guard size <= data.count - 8, (0...1).contains(asks) else { return nil }
        return Record(
            asks: asks,
            sides: [.init(data: data.dropFirst(8).prefix(size)), .init(data: data.dropFirst(8 + size))])
    }

    // MARK: - Comparing

    /// Compares a prompt with turns; nil if fewer than half of them were read.
    nonisolated(nonsending) func logits(
        of prompt: String, with turns: [Int], in conversation: String, of archive: ConversationArchive
    ) async throws -> TurnLogits? {
        let read = try archive.vectors(of: turns, in: conversation, model: table).compactMapValues(Self.decoded)
        guard !read.isEmpty, read.count * 2 >= turns.count else { return nil }
        let records = read.sorted { $0.key < $1.key }
        let question = try await reranker.prepared(question: Self.question(prompt))
        return TurnLogits(
            turns: records.map(\.key), scores: reranker.scores(of: records.flatMap(\.value.sides), for: question),
            prompt: question.refersBack, prompts: records.map(\.value.asks))
    }
}

/// How likely the sides of turns are what a prompt needs, as logits.
struct TurnLogits: Sendable {
    private var sides: [Int: [Double]] = [:]
    private let mean: Double
    private let deviation: Double
    private let count: Int
    let largest: Double
    private let least: Double
    /// The logit that the prompt asks for something that was said earlier, judged by the prompt alone, and the mean of the same of the
    /// prompts of the turns: some people ask much.
    private let prompt: Double
    private let meanPrompt: Double
    /// The mean of ordinary prompts of the training authors, which counts as much as this number of turns.
    private static let usualPrompt = -4.7
    private static let usualPrompts = 8.0

    /// - Parameters:
    ///   - scores: of the user's and the model's side of each turn.
    ///   - prompt: of the prompt alone.
    ///   - prompts: the same of the prompts of the turns.
    init?(turns: [Int], scores: [Double], prompt: Double, prompts: [Double]) {
        // A side that says nothing has the score 0.
        let logits = scores.map { $0 > 0 ? logOdds($0) : nil }
        let known = logits.compactMap(\.self)
        guard let largest = known.max(), let least = known.min() else { return nil }
        (self.largest, self.least, count) = (largest, least, known.count)
        self.prompt = logOdds(prompt)
        meanPrompt =
            (prompts.reduce(0) { $0 + logOdds($1) } + Self.usualPrompt * Self.usualPrompts)
            / (Double(prompts.count) + Self.usualPrompts)
        let mean = known.reduce(0, +) / Double(known.count)
        self.mean = mean
        deviation = (known.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(known.count)).squareRoot()
        for (index, turn) in turns.enumerated() { sides[turn] = logits[2 * index..<2 * index + 2].map { $0 ?? least } }
    }

    /// Turns that were not read yet are like the mean of the others.
    func logit(of turn: Int, _ side: Utterance.Side) -> Double { sides[turn]?[side == .user ? 0 : 1] ?? mean }

    /// The larger one of both sides.
    func logit(of turn: Int) -> Double { sides[turn]?.max() ?? mean }

    /// What the need for recall is told: the largest logit of turns that are not part of the current topic, how it stands out, what it is
    /// above that of the current topic, the logit of the prompt alone, and what that is above the mean of the conversation.
    func features(isRecent: (Int) -> Bool) -> [Double] {
        var older: [Double] = []
        var recent = -Double.infinity
        for (turn, logits) in sides {
            if isRecent(turn) { recent = max(recent, logits.max() ?? recent) } else { older += logits }
        }
        older.sort(by: >)
        guard let first = older.first else { return [least, 0, 0, 0, prompt, prompt - meanPrompt] }
        // Less what is expected of the largest of as many.
        let distinction = (first - mean) / max(0.05, deviation) - (2 * log(Double(max(2, count)))).squareRoot()
        return [
            first, first - older[min(5, older.count - 1)], distinction, recent.isFinite ? first - recent : 0, prompt,
            prompt - meanPrompt,
        ]
    }
}
