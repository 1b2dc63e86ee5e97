import ArgumentParser
import ContextKit
import Embeddings
import Foundation
import FoundationModels
import FoundationModelsGGUF
import Synchronization

/// Replays long conversations of two friends through a `Conversation` with scripted responses, and then asks questions
/// about them. Measures whether the sentences that answer a question are in the context of the model.
struct RecallBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recall",
        abstract: "Measures recall of messages that are no longer in the context window.")

    @Option(help: "A GGUF file, for its tokenizer and chat template.") var model: String
    @Option(help: "Size of the context window in tokens.") var window = 4096
    @Option(help: "Number of conversations.") var conversations = 10
    @Option(help: "Number of exchanges of each conversation.") var exchanges = 300
    @Option(help: "Seed of the generated conversations.") var seed: UInt64 = 1
    @Option(
        help: "The data set: first and second were used to tune recall; of third, only the totals were seen during tuning.")
    var stories = Stories.third
    @Flag(help: "Print questions whose evidence is missing, and ordinary turns with recalled text.") var shows = false
    @Option(
        help:
            "Read conversations from this JSON file instead: [{exchanges: [{prompt, response}], questions: [{asked, asked_by_user, category, evidence: [{exchange, side, text}]}]}]."
    )
    var file: String?
    @Option(help: "Write what the search knows of each prompt to this file, to train the models of recall.")
    var features: String?
    @Option(
        help:
            "With --file, prompts that need nothing of the conversations, lines of JSON: {prompt}. Each conversation is asked some of them."
    )
    var unrelated: String?
    @Option(help: "With --file, more questions: a list for each conversation.") var more: String?
    @Option(help: "The maximum share of the window for recalled text (default: the product's).") var share: Double?
    @Option(help: "The minimum evidence for recall (default: the product's).") var evidence: Double?
    @Option(help: "The minimum gain of a recalled token (default: the product's).") var gain: Double?
    @Flag(help: "Search by words only.") var words = false
    @Flag(help: "Rank by the search alone.") var unranked = false
    @Option(help: "The file of another ranker, made by Training/Ranker/train.") var ranker: String?

    enum Stories: String, ExpressibleByArgument {
        case first, second, third

        var data: RecallStories {
            switch self {
            case .first: .first
            case .second: .second
            case .third: .third
            }
        }
    }

    func run() async throws {
        let tokens = GGUFLanguageModel(url: URL(filePath: model), contextSize: window, checksText: false)
        var talks: [Talk] = []
        if let file {
            talks = try JSONDecoder().decode([Talk].self, from: Data(contentsOf: URL(filePath: file)))
            if let more {
                let asked = try JSONDecoder().decode([[Talk.Asked]].self, from: Data(contentsOf: URL(filePath: more)))
                for (index, questions) in asked.enumerated() where talks.indices.contains(index) {
                    talks[index].questions += questions.flatMap(Talk.questions)
                }
            }
        } else {
            talks = (0..<conversations).map { Talk.generated(stories.data, number: $0, seed: seed, exchanges: exchanges) }
        }
        var total = Result()
        if let unrelated {
            struct Line: Decodable { let prompt: String }
            let prompts = try String(contentsOfFile: unrelated, encoding: .utf8).split(separator: "\n").map {
                try JSONDecoder().decode(Line.self, from: Data($0.utf8)).prompt
            }
            for index in talks.indices {
                let own = prompts.indices.filter { $0 % talks.count == index }.prefix(Self.unrelatedPrompts)
                talks[index].questions += own.map { Talk.Question(kind: Self.unrelatedKind, text: prompts[$0], places: []) }
            }
        }
        let recorder = Recorder()
        for (number, talk) in talks.enumerated() { total.add(try await replay(talk, number, tokens, recorder)) }
        if let features {
            let lines = try recorder.lines.withLock { try $0.map { try JSONEncoder().encode($0) } }
            try Data(lines.joined(separator: [0x0A])).write(to: URL(filePath: features))
        }
        print("window \(window), \(talks.count) conversations, \(total.turns) exchanges")
        for (kind, counts) in total.found.sorted(by: { $0.key < $1.key }) {
            print(
                String(
                    format: "  %-14@ evidence in the context for %4d of %4d questions: %5.1f %%", kind as NSString, counts.found,
                    counts.asked, 100 * Double(counts.found) / Double(max(1, counts.asked))))
        }
        let found = total.found.values.reduce(0) { $0 + $1.found }
        let asked = total.found.values.reduce(0) { $0 + $1.asked }
        print(
            String(
                format: "  all            evidence in the context for %4d of %4d questions: %5.1f %%", found, asked,
                100 * Double(found) / Double(max(1, asked))))
        print(
            String(
                format:
                    "  recall added text to %d of %d ordinary turns: %.1f %%, %d tokens each; %d tokens recalled per question",
                total.opened, total.turns, 100 * Double(total.opened) / Double(max(1, total.turns)),
                total.needlessTokens / max(1, total.opened), total.recalledTokens / max(1, asked)))
        print(
            String(
                format:
                    "  compactions %d in ordinary turns, %d in questions, %d of all while the user waits; recomputed %.2f per message token",
                total.compactions, total.compactionsInQuestions, total.compactionsBefore,
                Double(total.again) / Double(max(1, total.said))))
        if total.unrelated > 0 {
            print(
                String(
                    format: "  recall added text to %d of %d unrelated prompts: %.1f %%, %d tokens each", total.unrelatedOpened,
                    total.unrelated, 100 * Double(total.unrelatedOpened) / Double(total.unrelated),
                    total.unrelatedTokens / max(1, total.unrelatedOpened)))
        }
        for (reason, count) in total.misses.sorted(by: { $0.value > $1.value }) { print("  missed: \(reason): \(count)") }
        func median(_ values: [Double]) -> Double { values.isEmpty ? 0 : values.sorted()[values.count / 2] }
        print(
            String(
                format: "  an ordinary turn without the model, median: %.1f ms in the first tenth, %.1f ms in the last",
                median(total.firstTimes), median(total.lastTimes)))
    }

    private static let unrelatedKind = "unrelated"
    private static let unrelatedPrompts = 40
    /// For features, the number of exchanges after which questions are asked, and the age of the answers that are asked for.
    private static let checkpoint = 40
    private static let minimumAge = 25

    private struct Result {
        var turns = 0, opened = 0, compactions = 0, compactionsInQuestions = 0, compactionsBefore = 0
        var again = 0, said = 0, recalledTokens = 0, needlessTokens = 0
        var found: [String: (found: Int, asked: Int)] = [:]
        var misses: [String: Int] = [:]
        var unrelated = 0, unrelatedOpened = 0, unrelatedTokens = 0
        /// Times in milliseconds of the first and the last tenth of the exchanges.
        var firstTimes: [Double] = [], lastTimes: [Double] = []

        mutating func add(_ other: Result) {
            (turns, opened, compactions) = (turns + other.turns, opened + other.opened, compactions + other.compactions)
            compactionsInQuestions += other.compactionsInQuestions
            compactionsBefore += other.compactionsBefore
            needlessTokens += other.needlessTokens
            (again, said, recalledTokens) = (again + other.again, said + other.said, recalledTokens + other.recalledTokens)
            firstTimes += other.firstTimes
            lastTimes += other.lastTimes
            unrelated += other.unrelated
            unrelatedOpened += other.unrelatedOpened
            unrelatedTokens += other.unrelatedTokens
            misses.merge(other.misses, uniquingKeysWith: +)
            for (kind, counts) in other.found {
                let before = found[kind] ?? (0, 0)
                found[kind] = (before.found + counts.found, before.asked + counts.asked)
            }
        }
    }

    private func replay(_ talk: Talk, _ number: Int, _ tokens: GGUFLanguageModel, _ recorder: Recorder) async throws -> Result {
        var result = Result()
        let model = ReplayModel(tokens)
        let compactions = Mutex<[Compaction]>([])
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes what is left
        let file = folder.appendingPathComponent("conversations.sqlite")
        let conversation = try await Conversation(
            model: model, instructions: "You are talking with a friend.", policy: contextPolicy(recorder),
            archive: ConversationArchive(url: file), id: "talk",
            onCompaction: { record in compactions.withLock { $0.append(record) } })
        var times: [Double] = []
        for turn in talk.turns {
            let start = ContinuousClock.now
            model.script.reply.withLock { $0 = turn.response }
            model.script.prompt.withLock { $0 = turn.prompt }
            try await Conversation.$today.withValue(turn.date) { _ = try await conversation.respond(to: turn.prompt) }
            if features != nil {
                recorder.record(number, "exchange", turn.prompt, [], "")
                // Questions are asked at different lengths, or length would tell them from exchanges.
                if result.turns % Self.checkpoint == Self.checkpoint / 2 {
                    let known = result.turns - Self.minimumAge
                    let open = talk.questions.filter { question in question.places.allSatisfy { $0.turn < known } }
                    var ignored = Result()
                    try await ask(open, talk, number, file, recorder, &ignored, tokens)
                }
            }
            times.append(start.duration(to: .now).milliseconds)
            await conversation.waitForSearch()
            result.turns += 1
            if let asked = model.script.lastPrompt, asked != turn.prompt {
                result.opened += 1
                result.needlessTokens += await conversation.lastRecall?.tokens ?? 0
                if shows { print("  recalled for: \(turn.prompt)") }
            }
        }
        let tenth = max(1, times.count / 10)
        result.firstTimes = Array(times.prefix(tenth))
        result.lastTimes = Array(times.suffix(tenth))
        (result.again, result.said) = model.script.work.withLock { $0 }
        let ordinary = compactions.withLock { $0 }
        result.compactions = ordinary.count
        result.compactionsBefore = ordinary.count { $0.reason != .threshold }
        try await ask(talk.questions, talk, number, file, recorder, &result, tokens)
        return result
    }

    /// Asks questions, each on a copy of the archive, as if it were the next prompt.
    private func ask(
        _ questions: [Talk.Question], _ talk: Talk, _ number: Int, _ file: URL, _ recorder: Recorder,
        _ result: inout Result, _ tokens: GGUFLanguageModel
    ) async throws {
        let compactions = Mutex<[Compaction.Reason]>([])
        let copy = file.deletingLastPathComponent().appendingPathComponent("copy.sqlite")
        for question in questions {
            try Self.copy(file, to: copy)
            let asking = ReplayModel(tokens)
            asking.script.reply.withLock { $0 = "Let me think about that." }
            let asked = try await Conversation(
                model: asking, policy: contextPolicy(recorder), archive: ConversationArchive(url: copy), id: "talk",
                onCompaction: { record in compactions.withLock { $0.append(record.reason) } })
            let date = talk.turns.last?.date ?? Date()
            try await Conversation.$today.withValue(date) { _ = try await asked.respond(to: question.text) }
            let context = asking.script.lastContext
            if features != nil { recorder.record(number, question.kind, question.text, question.places, context) }
            let recall = await asked.lastRecall
            if question.kind == Self.unrelatedKind {
                result.unrelated += 1
                if recall?.recalledItems.isEmpty == false {
                    result.unrelatedOpened += 1
                    result.unrelatedTokens += recall?.tokens ?? 0
                }
                continue
            }
            let isFound = question.evidence.allSatisfy { context.contains($0) }
            var counts = result.found[question.kind] ?? (0, 0)
            counts.asked += 1
            if isFound { counts.found += 1 }
            result.found[question.kind] = counts
            result.recalledTokens += recall?.tokens ?? 0
            if !isFound {
                result.misses[recall.map { Self.reason($0, question, context) } ?? "nothing evicted", default: 0] += 1
            }
            if shows, !isFound {
                print("  missing (\(question.kind)): \(question.text)\n    \(question.evidence.filter { !context.contains($0) })")
            }
        }
        let reasons = compactions.withLock { $0 }
        result.compactionsInQuestions += reasons.count
        result.compactionsBefore += reasons.count { $0 != .threshold }
    }

    /// Copies an archive.
    static func copy(_ file: URL, to copy: URL) throws {
        for name in ["", "-wal", "-shm"] {
            let (from, to) = (URL(filePath: file.path + name), URL(filePath: copy.path + name))
            if FileManager.default.fileExists(atPath: to.path) { try FileManager.default.removeItem(at: to) }
            if FileManager.default.fileExists(atPath: from.path) { try FileManager.default.copyItem(at: from, to: to) }
        }
    }

    private func contextPolicy(_ recorder: Recorder) -> ContextPolicy {
        var policy = ContextPolicy.standard
        var search = words ? HybridSearch(model: nil) : HybridSearch()
        if unranked { search = HybridSearch(model: GGUFEmbeddingModel.default, reranker: nil) }
        if let ranker {
            search = HybridSearch(model: GGUFEmbeddingModel.default, reranker: Reranker(file: URL(filePath: ranker)))
        }
        if features != nil { search.observer = { features, found in recorder.seen.withLock { $0 = (features, found) } } }
        policy.recall?.search = search
        if let share { policy.recall?.share = share }
        if let evidence { policy.recall?.minimumEvidence = evidence }
        if let gain { policy.recall?.minimumGain = gain }
        return policy
    }

    /// Why the evidence is not in the context.
    private static func reason(_ recall: Recall, _ question: Talk.Question, _ context: String) -> String {
        if !recall.isNeeded { return "not recognised as a question about what was said" }
        let missing = question.places.filter { !context.contains($0.text) }
        let items = missing.map { place in
            recall.items.first { $0.turn == place.turn && ($0.side == nil || $0.side == place.side) }
        }
        if items.contains(where: { $0 == nil }) { return "not found" }
        if items.contains(where: { $0?.outcome == .weak }) { return "not worth its tokens" }
        if items.contains(where: { $0?.outcome == .overBudget }) { return "no room" }
        return "cut"
    }

    /// What the search knows of a prompt, to train ``RecallModel``.
    private struct Line: Encodable {
        struct Candidate: Encodable {
            var turn: Int, side: ScoredTurn.Side, words: [Double], meaning: [Double], pairs: [Double], isEvidence: Bool
        }
        var talk: Int, kind: String, prompt: String, isQuestion: Bool, words: [Double], meaning: [Double], pairs: [Double]
        /// The number of utterances that answer the question and are neither in the context nor among the candidates.
        var missing: Int
        var candidates: [Candidate]
    }

    private final class Recorder: Sendable {
        let seen = Mutex<(features: RecallModel.PromptFeatures, found: [Utterance])?>(nil)
        let lines = Mutex<[Line]>([])

        func record(_ talk: Int, _ kind: String, _ prompt: String, _ places: [Talk.Place], _ context: String) {
            guard let (features, found) = seen.withLock({ $0.take() }) else { return }
            let open = places.filter { !context.contains($0.text) }
            let candidates = found.map { utterance in
                let known = utterance.features(best: found[0])
                return Line.Candidate(
                    turn: utterance.turn, side: utterance.side, words: known.words, meaning: known.meaning, pairs: known.pairs,
                    isEvidence: open.contains { $0.turn == utterance.turn && $0.side == utterance.side })
            }
            let missing = open.count { place in !found.contains { $0.turn == place.turn && $0.side == place.side } }
            let line = Line(
                talk: talk, kind: kind, prompt: prompt, isQuestion: !places.isEmpty, words: features.words,
                meaning: features.meaning, pairs: features.pairs, missing: missing, candidates: candidates)
            lines.withLock { $0.append(line) }
        }
    }
}
