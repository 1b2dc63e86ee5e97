import Foundation
import FoundationModels
import TokenCounts
import ModelPrompts
import TextSearch

/// Selects the sentences to carry over: those with names, numbers and decisions. Sentences of the user are preferred to
/// those of the model, and new ones to old ones.
///
/// With a judge, the model is asked of each of the user's sentences whether it will still matter. Small models judge sentences better
/// than they write notes: of ten facts of a conversation of 100 turns for development, notes that the default model wrote had none,
/// because it retold the conversation; the selected sentences have eight in 400 tokens, without the judge six.
struct NotableSentences {
    /// Maximum number of tokens of all selected sentences.
    let limit: Int
    let tools: CompactionStep.Tools
    var judge: SentenceJudge?

    /// The best sentences by words are judged.
    private static let maximumJudged = 48

    private struct Sentence {
        let text: String
        let place: Int
        var score: Double
        /// Who said it; nil for a note of a model.
        var speaker: Utterance.Side?
        var day: String?
    }

    private static let marks: Set<String> = [
        "always", "never", "must", "decided", "decide", "agreed", "prefer", "prefers", "allergic", "remember", "deadline",
        "password", "name", "named", "called", "birthday", "lives", "live", "likes", "hates", "favorite", "favourite", "cost",
        "costs", "budget", "meeting", "because", "changed", "instead", "important",
    ]

    func carried(_ turns: [Turn], after carried: String) async throws -> String {
        var sentences: [Sentence] = []
        var known: Set<String> = []
        var day: String?
        func add(_ text: some StringProtocol, _ speaker: Utterance.Side?, weight: Double, least: Double = 0) {
            let text = text.prefix(400).trimmingCharacters(in: .whitespacesAndNewlines)
            let score = max(least, Self.score(text))
            guard score > 0, !text.isEmpty, known.insert(text.lowercased()).inserted else { return }
            sentences.append(
                Sentence(text: text, place: sentences.count, score: score * weight, speaker: speaker, day: day))
        }
        // Sentences carried before have a minimum score, but a lower weight than new ones, so that they decay.
        for line in carried.split(separator: "\n") {
            if line.hasPrefix("["), line.hasSuffix("]") {
                day = String(line)
                continue
            }
            let speaker = Utterance.Side.allCases.first { line.hasPrefix($0.label) }
            let said = line.dropFirst(speaker?.label.count ?? (line.hasPrefix("- ") ? 2 : 0))
            for sentence in TextUnits.sentences(of: said) { add(sentence, speaker, weight: 0.8, least: 0.2) }
        }
        for turn in turns {
            day = RecallBlock.line(turn.date)
            for sentence in TextUnits.sentences(of: turn.prompt) where !sentence.contains("?") { add(sentence, .user, weight: 1) }
            // What the model said repeats the user, or can be said again.
            if judge == nil { for sentence in TextUnits.sentences(of: turn.response) { add(sentence, .model, weight: 0.4) } }
        }
        if let judge {
            sentences.sort { $0.score > $1.score }
            sentences.removeLast(max(0, sentences.count - Self.maximumJudged))
            for index in sentences.indices {
                if try await judge.willMatter(sentences[index].text) { sentences[index].score += SentenceJudge.weight }
            }
        }
        // Binary search for the number of best sentences that fit.
        let best = sentences.sorted { $0.score == $1.score ? $0.place > $1.place : $0.score > $1.score }
        var fitting = 0
        var tooMany = best.count + 1
        while fitting + 1 < tooMany {
            let middle = (fitting + tooMany) / 2
            if try await tools.model.tokenCount(of: Self.text(best.prefix(middle))) <= limit {
                fitting = middle
            } else {
                tooMany = middle
            }
        }
        return Self.text(best.prefix(fitting))
    }

    /// The sentences in their order, after their speakers and days, as recall shows what was said.
    private static func text(_ sentences: some Sequence<Sentence>) -> String {
        var lines: [String] = []
        var last: Sentence?
        for sentence in sentences.sorted(by: { $0.place < $1.place }) {
            // A line end would begin a line that looks like another speaker's.
            let text = sentence.text.split(whereSeparator: \.isNewline).joined(separator: " ")
            if let day = sentence.day, day != last?.day { lines.append(day) }
            if let speaker = sentence.speaker, speaker == last?.speaker, sentence.day == last?.day, !lines.isEmpty {
                lines[lines.count - 1] += " " + text
            } else {
                lines.append((sentence.speaker?.label ?? "- ") + text)
            }
            last = sentence
        }
        return lines.joined(separator: "\n")
    }

    /// An estimate of how informative a sentence is; 0 if it should not be carried over.
    private static func score(_ sentence: String) -> Double {
        let words = sentence.split { !$0.isLetter && !$0.isNumber && $0 != "'" && $0 != "’" && $0 != "-" }
        // In scripts without spaces neither the number of words nor capital letters mean anything.
        guard words.count > 2 || sentence.unicodeScalars.contains(where: { $0.value > 0x2E80 }) else { return 0 }
        var score = 0.0
        for (index, word) in words.enumerated() {
            if word.contains(where: \.isNumber) { score += 2 }
            if index > 0, word.count > 1, word.first?.isUppercase == true { score += 1 }
            if marks.contains(word.lowercased()) { score += 1.5 }
            if ["my", "i", "i'm", "we", "our"].contains(word.lowercased()) { score += 0.5 }
        }
        return score / Double(max(8, words.count)).squareRoot()
    }
}

/// Asks a model whether a sentence of the user will still matter.
struct SentenceJudge {
    let model: any TokenCounting
    private let schema: GenerationSchema

    /// What “yes” counts beside names and numbers.
    static let weight = 2.0

    /// - Returns: nil for a model that cannot choose between two words.
    init?(model: any TokenCounting) throws {
        guard model.capabilities.contains(.guidedGeneration) else { return nil }
        self.model = model
        schema = try GenerationSchema(root: DynamicGenerationSchema(name: "Answer", anyOf: ["yes", "no"]), dependencies: [])
    }

    func willMatter(_ sentence: String) async throws -> Bool {
        let session = LanguageModelSession(model: model, instructions: ModelPrompts.sentenceInstructions)
        let answer = try await session.respond(
            to: Prompt(ModelPrompts.willMatter(sentence)), schema: schema, includeSchemaInPrompt: false,
            options: GenerationOptions(samplingMode: .greedy))
        return try answer.content.value(String.self) == "yes"
    }
}
