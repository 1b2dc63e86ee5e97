import Foundation
import TextSearch

extension Turn {
    /// What one side of the turn said.
    func text(of side: ScoredTurn.Side) -> String {
        switch side {
        case .user: prompt
        case .model: modelText
        }
    }
}

extension ScoredTurn.Side {
    /// What stands before the words of a side where turns are quoted.
    var label: String {
        switch self {
        case .user: "User: "
        case .model: "Assistant: "
        }
    }
}

/// One side of a turn as the result of a search.
package struct Utterance: Sendable {
    package typealias Side = ScoredTurn.Side

    package let turn: Int
    package let side: Side
    /// Whether nothing was said.
    let isEmpty: Bool
    /// The number of words.
    let length: Int
    /// Whether it only asks, and says nothing.
    private let isQuestion: Bool
    /// The indices of the words of the prompt that it contains.
    private let terms: [Int]
    /// The largest cosine of a sentence, and the cosine of the whole; 0 without vectors.
    let sentence: Double
    let whole: Double
    let hasVectors: Bool
    /// The logit that it answers the prompt, of a model that compares both, and what the best one has more; nil without a model.
    var pair: (logit: Double, behindBest: Double)?
    /// The score by words (BM25).
    private(set) var wordScore = 0.0
    private var otherTerms = 0.0
    private var other: (sentence: Double, whole: Double) = (0, 0)
    private var age = 0.0

    init(_ turn: Turn, _ side: Side, _ terms: [SearchTerm], _ similarity: Similarity) {
        self.turn = turn.number
        self.side = side
        let text = turn.text(of: side)
        isEmpty = !text.contains { !$0.isWhitespace }
        length = SearchText.wordCount(of: text)
        let said = Set(SearchText.words(of: text, limit: .max, includesCommon: true))
        self.terms = terms.indices.filter { index in
            guard terms[index].contains(turn.number) else { return false }
            let word = terms[index].word
            // The index has the words of both sides, in the forms of its stemmer.
            return word.isDate || said.contains(word.text) || said.contains { Self.isSameStem($0, word.text) }
        }
        let sentences = TextUnits.sentences(of: text)
        isQuestion = !sentences.isEmpty && sentences.allSatisfy { RecallQuery.isQuestion($0) }
        (sentence, whole) = similarity.values(turn.number, side)
        hasVectors = !similarity.isEmpty
    }

    /// Whether two words differ only in a short ending. This approximates the stemming of the index.
    static func isSameStem(_ one: String, _ other: String) -> Bool {
        let common = zip(one, other).prefix { $0 == $1 }.count
        return common >= 4 && max(one.count, other.count) - common <= 3
    }

    mutating func note(other side: Utterance, age: Double) {
        other = (side.sentence, side.whole)
        otherTerms = Double(side.terms.count { !terms.contains($0) })
        self.age = age
    }

    private static let k1 = 1.2
    private static let b = 0.75

    mutating func weigh(_ terms: [SearchTerm], averageLength: Double) {
        let length = Double(length) / max(1, averageLength)
        let factor = (Self.k1 + 1) / (1 + Self.k1 * (1 - Self.b + Self.b * length))
        wordScore = factor * self.terms.reduce(0) { $0 + terms[$1].weight }
    }

    /// Whether it says the same as the prompt, such as “Good morning!” again, and hardly more: the prompt needs nothing from it. With
    /// these limits, a tenth fewer ordinary exchanges of public conversations recall something, and the same evidence is found.
    func isRepeated(by prompt: RecallQuery) -> Bool { whole >= 0.92 || sentence >= 0.97 && length <= prompt.length + 4 }

    /// The order of the results before the model: words and meaning count about as much. On two conversations of other people than
    /// those of the figures, all evidence is among the first 1,000 tokens for 77 % of the questions, by words alone 49 %, by meaning
    /// alone 75 %; divisors of 8 to 16 differ by a percentage point.
    var strength: Double { wordScore * Self.wordShare + (sentence + whole) / 2 }

    /// What the score by words counts beside a cosine.
    static let wordShare = 1.0 / 12

    /// What the model of relevance is told.
    package func features(best: Utterance) -> RecallModel.UtteranceFeatures {
        RecallModel.UtteranceFeatures(
            words: [
                wordScore / 10, (wordScore - best.wordScore) / 10, Double(min(terms.count, 6)), min(otherTerms, 4),
                side == .user ? 1 : 0,
                isQuestion ? 1 : 0, log(1 + Double(length)), age,
            ],
            meaning: hasVectors
                ? [sentence, whole, strength, strength - best.strength, other.sentence, other.whole] : [],
            pairs: pair.map { [$0.logit, $0.behindBest, strength] } ?? [])
    }

    func matches(_ terms: [SearchTerm]) -> [String] {
        var seen: Set<String> = []
        let words = self.terms.map { terms[$0].word.shown }.filter { seen.insert($0).inserted }
        return words.isEmpty ? ["meaning"] : words
    }
}

extension ScoredTurn.Side: CaseIterable {
    public static let allCases: [ScoredTurn.Side] = [.user, .model]
}

/// The texts of one side of a turn that have vectors: all of it, then its sentences; of a long text, groups of sentences.
struct UtteranceParts {
    let texts: [String]

    /// The maximum number of sentences, or groups of them.
    private static let maximumParts = 48

    init(_ text: String) {
        let sentences = TextUnits.sentences(of: text).map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
            .filter { !$0.isEmpty }
        if sentences.isEmpty {
            texts = []
            return
        }
        let size = (sentences.count + Self.maximumParts - 1) / Self.maximumParts
        let groups = stride(from: 0, to: sentences.count, by: size).map {
            sentences[$0..<min($0 + size, sentences.count)].joined(separator: " ")
        }
        texts = groups.count == 1 ? groups : [sentences.joined(separator: " ")] + groups
    }
}

/// The cosines of all utterances of a conversation with a prompt.
struct Similarity {
    /// The largest cosine of a sentence of each utterance, and that of the whole; the index is twice the turn, plus 1 for the model.
    private var sentences: [Float] = []
    private var wholes: [Float] = []

    /// Without vectors.
    init() {}

    /// More turns are not searched by meaning.
    static let maximumTurns = 1 << 22

    init(to queries: [[Float]], in table: VectorTable, count: Int) {
        guard let largest = table.largestKey else { return }
        let count = min(count, VectorMemory.utterance(of: largest) / 2 + 1, Self.maximumTurns)
        guard count > 0 else { return }
        sentences = [Float](repeating: 0, count: 2 * count)
        wholes = sentences
        for query in queries {
            table.forEachCosine(to: query) { key, cosine in
                let place = VectorMemory.utterance(of: key)
                guard sentences.indices.contains(place) else { return }
                if VectorMemory.isWhole(key) {
                    wholes[place] = max(wholes[place], cosine)
                } else {
                    sentences[place] = max(sentences[place], cosine)
                }
            }
        }
        // The only sentence is the whole.
        for place in sentences.indices where sentences[place] == 0 { sentences[place] = wholes[place] }
    }

    var isEmpty: Bool { sentences.isEmpty }
    /// The number of the newest turn with vectors, plus 1.
    var turnCount: Int { sentences.count / 2 }

    /// How far the cosine of a sentence, and of a whole utterance, is above the mean of all. What all have in common, such as names
    /// before each message, raises all cosines.
    func distinction(sentence: Double, whole: Double) -> [Double] {
        [(sentence, sentences), (whole, wholes)].flatMap { Self.distinction($0, in: $1) }
    }

    /// Also in standard deviations, less what is expected of the largest of as many: the best of a long conversation is more similar by
    /// chance.
    private static func distinction(_ value: Double, in all: [Float]) -> [Double] {
        var (count, sum, squares) = (0.0, 0.0, 0.0)
        for cosine in all where cosine != 0 {
            count += 1
            sum += Double(cosine)
            squares += Double(cosine) * Double(cosine)
        }
        guard count > 1 else { return [0, 0] }
        let mean = sum / count
        let deviation = max(1e-3, (squares / count - mean * mean).squareRoot())
        return [value - mean, (value - mean) / deviation - (2 * log(count)).squareRoot()]
    }

    /// The mean of both cosines of a turn's more similar side.
    func strongest(_ turn: Int) -> Double {
        guard sentences.indices.contains(2 * turn + 1) else { return 0 }
        return Double(max(sentences[2 * turn] + wholes[2 * turn], sentences[2 * turn + 1] + wholes[2 * turn + 1])) / 2
    }

    func values(_ turn: Int, _ side: ScoredTurn.Side) -> (sentence: Double, whole: Double) {
        let place = 2 * turn + (side == .model ? 1 : 0)
        return sentences.indices.contains(place) ? (Double(sentences[place]), Double(wholes[place])) : (0, 0)
    }

    /// The largest cosine of a sentence in turns that satisfy a condition.
    func best(where condition: (Int) -> Bool) -> Double {
        var best: Float = 0
        for place in sentences.indices where sentences[place] > best && condition(place / 2) { best = sentences[place] }
        return Double(best)
    }
}
