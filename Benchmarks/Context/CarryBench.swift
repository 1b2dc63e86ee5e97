import ArgumentParser
import ContextKit
import Foundation
import FoundationModels
import FoundationModelsGGUF
import Synchronization

/// Replays long conversations with scripted answers and the policy `.summarizing`, whose notes the model selects, and looks for facts
/// in the notes at the end.
struct CarryBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "carry", abstract: "Measures the notes that the model carries over from long conversations.")

    @Option(help: "A GGUF file.") var model: String
    @Option(help: "Size of the context window in tokens.") var window = 4096
    @Option(help: "Conversations: [{id, turns: [{user, assistant}], facts: [{fact, regex}]}].") var file: String
    @Flag(help: "Print the notes, and the facts that are not in them.") var shows = false

    private struct Talk: Decodable {
        struct Turn: Decodable { let user: String, assistant: String }
        struct Fact: Decodable { let fact: String, regex: String }
        let id: String, turns: [Turn], facts: [Fact]
    }

    func run() async throws {
        let talks = try JSONDecoder().decode([Talk].self, from: Data(contentsOf: URL(filePath: file)))
        let tokens = GGUFLanguageModel(url: URL(filePath: model), contextSize: window, checksText: false)
        for talk in talks {
            let instructions = "You are a friendly assistant."
            let replay = ReplayModel(tokens) { $0 != instructions }
            let compactions = Mutex<[Compaction]>([])
            let conversation = try await Conversation(
                model: replay, instructions: instructions, policy: .summarizing,
                onCompaction: { record in compactions.withLock { $0.append(record) } })
            for turn in talk.turns {
                replay.script.reply.withLock { $0 = turn.assistant }
                replay.script.prompt.withLock { $0 = turn.user }
                _ = try await conversation.respond(to: turn.user)
            }
            await conversation.compact()
            let records = compactions.withLock { $0 }
            let notes = records.last?.carried ?? ""
            // Some of the newest turns are still there.
            let context = await conversation.transcript.map(\.description).joined(separator: "\n")
            func count(_ text: String) throws -> Int {
                try talk.facts.count { try Regex($0.regex).firstMatch(in: text) != nil }
            }
            print(
                "\(talk.id): \(try count(notes)) of \(talk.facts.count) facts in the notes, \(try count(context)) in the context; "
                    + "\(records.count) compactions, \(notes.split(separator: " ").count) words")
            for record in records { if let problem = record.problem { print("  problem: \(problem)") } }
            guard shows else { continue }
            print(notes)
            for fact in talk.facts where try Regex(fact.regex).firstMatch(in: notes) == nil { print("  missing: \(fact.fact)") }
        }
    }
}
