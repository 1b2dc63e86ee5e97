import Foundation
import FoundationModels
import ModelPrompts

/// Summarizes turns in temporary sessions.
struct Summarizer {
    let tools: CompactionStep.Tools
    /// Maximum number of tokens of the summary.
    let limit: Int
    let instructions: String?
    let maximumRequests: Int

    struct EmptySummary: Error {}
    struct TooManyRequests: Error {}

    /// Writes the summary in several requests if the turns do not fit into the window together. Each request includes
    /// the previous summary.
    func summary(of turns: [Turn], after previous: String) async throws -> String {
        var summary = previous
        var rest = turns[...]
        var requests = 0
        while !rest.isEmpty {
            requests += 1
            if requests > maximumRequests { throw TooManyRequests() }
            var count = rest.count
            while count > 1, try await !fits(prompt(rest.prefix(count).map(\.text).joined(separator: "\n"), summary)) {
                count = count / 2
            }
            summary = try await write(rest.prefix(count).map(\.text).joined(separator: "\n"), after: summary)
            rest = rest.dropFirst(count)
        }
        return summary
    }

    private func prompt(_ said: String, _ summary: String) -> String {
        ModelPrompts.notes(on: said, after: summary, words: max(10, limit / 2))
    }

    private func entries(_ prompt: String) -> [Transcript.Entry] {
        let instructions = instructions ?? ModelPrompts.notesInstructions
        return [
            .instructions(.init(segments: [.text(.init(content: instructions))], toolDefinitions: [])),
            .prompt(.init(segments: [.text(.init(content: prompt))])),
        ]
    }

    private func fits(_ prompt: String) async throws -> Bool {
        try await tools.tokenCount(entries(prompt)) + limit <= tools.contextSize
    }

    private func write(_ said: String, after previous: String) async throws -> String {
        var said = said
        // A single turn that is larger than the window is cut at its end. The archive keeps all of it.
        while try await !fits(prompt(said, previous)), said.count > 100 { said = String(said.prefix(said.count * 3 / 4)) }
        let session = LanguageModelSession(model: tools.model, instructions: instructions ?? ModelPrompts.notesInstructions)
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: limit)
        let summary = try await session.respond(to: prompt(said, previous), options: options).content
            .trimmingCharacters(in: .whitespacesAndNewlines)
        guard !summary.isEmpty else { throw EmptySummary() }
        return summary
    }
}
