import ArgumentParser
import ContextKit
import Foundation
import FoundationModels
import FoundationModelsGGUF
import Synchronization

/// Replays long conversations with scripted responses, and then lets a model answer questions about them.
struct RecallAnswers: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "answers", abstract: "Lets a model answer questions about long conversations, by what is recalled.")

    @Option(help: "The model that answers, a GGUF file.") var model: String
    @Option(help: "Conversations, as for recall --file.") var file: String
    @Option(help: "Size of the context window in tokens.") var window = 4096
    @Option(help: "The number of questions of each conversation.") var count = 34
    @Option(help: "The number of questions of another conversation, whose answers were never said in this one.") var unsaid = 14
    @Flag(help: "Put the whole conversation into the context; needs a large --window.") var whole = false
    @Option(help: "The first conversation to use, from 0.") var from = 0

    @Option(help: "The maximum share of the window for recalled text (default: the product's).") var share: Double?
    @Option(help: "Leave out what is not worth its tokens (default: the product's).") var gain: Double?

    private struct Line: Encodable {
        let question: String, kind: String, isSaid: Bool, known: String?, answer: String
        /// Whether all that was said of it is in the request, and the tokens that were recalled.
        let isFound: Bool, tokens: Int
        let report: String
    }

    func run() async throws {
        let talks = try JSONDecoder().decode([Talk].self, from: Data(contentsOf: URL(filePath: file)))
        let answering = GGUFLanguageModel(url: URL(filePath: model), contextSize: window, checksText: false)
        for (index, talk) in talks.enumerated().dropFirst(from) {
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }  // the system removes what is left
            let archive = folder.appendingPathComponent("conversations.sqlite")
            if !whole { try await replay(talk, answering, archive) }
            let other = talks[(index + 1) % talks.count]
            for (questions, isSaid) in [(Self.some(count, of: talk), true), (Self.some(unsaid, of: other), false)] {
                for question in questions {
                    let (answer, context, recall) = try await answer(question.text, talk, answering, archive)
                    let line = Line(
                        question: question.text, kind: question.kind, isSaid: isSaid, known: isSaid ? question.answer : nil,
                        answer: answer, isFound: isSaid && question.evidence.allSatisfy { context.contains($0) },
                        tokens: recall?.tokens ?? 0, report: recall?.report ?? "")
                    print(String(decoding: try JSONEncoder().encode(line), as: UTF8.self))
                    fflush(nil)
                }
            }
        }
    }

    /// Some of the questions in the user's words, evenly chosen.
    private static func some(_ count: Int, of talk: Talk) -> [Talk.Question] {
        let all = talk.questions.filter { $0.kind.hasPrefix("by the user") }
        return (0..<min(count, all.count)).map { all[$0 * all.count / min(count, all.count)] }
    }

    private static let instructions = "You are talking with a friend."

    private func replay(_ talk: Talk, _ answering: GGUFLanguageModel, _ archive: URL) async throws {
        let replay = ReplayModel(answering)
        let conversation = try await Conversation(
            model: replay, instructions: Self.instructions, archive: ConversationArchive(url: archive), id: "talk")
        for turn in talk.turns {
            replay.script.reply.withLock { $0 = turn.response }
            replay.script.prompt.withLock { $0 = turn.prompt }
            try await Conversation.$today.withValue(turn.date) { _ = try await conversation.respond(to: turn.prompt) }
            await conversation.waitForSearch()
        }
    }

    private func answer(
        _ question: String, _ talk: Talk, _ answering: GGUFLanguageModel, _ archive: URL
    ) async throws -> (answer: String, context: String, recall: Recall?) {
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 60)
        if whole {
            func text(_ text: String) -> [Transcript.Segment] { [.text(.init(content: text))] }
            var entries: [Transcript.Entry] = [.instructions(.init(segments: text(Self.instructions), toolDefinitions: []))]
            for turn in talk.turns {
                entries += [.prompt(.init(segments: text(turn.prompt))), .response(.init(segments: text(turn.response)))]
            }
            // What does not fit even this window is left out at the beginning.
            while try await answering.tokenCount(for: entries) + 200 > window { entries.removeSubrange(1..<3) }
            let answer = try await LanguageModelSession(model: answering, transcript: Transcript(entries: entries))
                .respond(to: question, options: options).content
            return (answer, entries.map(\.description).joined(separator: "\n"), nil)
        }
        let copy = archive.deletingLastPathComponent().appendingPathComponent("copy.sqlite")
        try RecallBench.copy(archive, to: copy)
        var policy = ContextPolicy.standard
        if let share { policy.recall?.share = share }
        if let gain { policy.recall?.minimumGain = gain }
        let conversation = try await Conversation(
            model: answering, policy: policy, archive: ConversationArchive(url: copy), id: "talk")
        let date = talk.turns.last?.date ?? Date()
        let answer = try await Conversation.$today.withValue(date) {
            try await conversation.respond(to: question, options: options).content
        }
        let context = await conversation.transcript.dropLast().map(\.description).joined(separator: "\n")
        return (answer, context, await conversation.lastRecall)
    }
}
