import Foundation
import FoundationModels
import TokenCounts
import ModelPrompts

/// Writes the summaries of a long document, or answers to another task, each in a separate session.
struct SummaryWriter {
    let model: any TokenCounting
    let instructions: String
    /// Maximum number of tokens of a summary.
    let limit: Int
    /// What to do with the text; nil for a summary.
    var task: String?
    var notice: (@Sendable (LongDocument.Notice) -> Void)?

    /// The length is asked for in words, so that the summary is seldom cut.
    private func prompt(_ text: String, after summary: String) -> String {
        let words = max(10, limit / 2)
        if let task {
            return ModelPrompts.task(task, about: text, after: summary, words: words)
        }
        return ModelPrompts.summary(of: text, after: summary, words: words)
    }

    /// The number of tokens of text that fit into a request.
    ///
    /// - Throws: ``LongDocumentError/windowTooSmall(contextSize:needed:)``.
    func room(carrying carried: Int, atLeast least: Int) async throws -> Int {
        let fixed = try await model.tokenCount(for: [
            .instructions(.init(segments: [.text(.init(content: instructions))], toolDefinitions: [])),
            .prompt(.init(segments: [.text(.init(content: prompt("x", after: "x")))])),
        ])
        // Joined texts may have a few more tokens than the sum of the parts.
        let needed = fixed + limit + carried + 8
        guard model.contextSize - needed >= max(32, least) else {
            throw LongDocumentError.windowTooSmall(contextSize: model.contextSize, needed: needed + max(32, least))
        }
        return model.contextSize - needed
    }

    func summary(of text: String, after carried: String) async throws -> String {
        let session = LanguageModelSession(model: model, instructions: instructions)
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: limit)
        let response = try await session.respond(to: prompt(text, after: carried), options: options)
        notice?(.answered(response.usage))
        return SummaryText.endingWithSentence(response.content)
    }

    /// Merges neighbouring summaries, so that their number stays small however long the document is.
    ///
    /// - Parameter isLast: Whether to merge until one is left.
    func reduce(_ state: inout Checkpoint, room: Int, isLast: Bool) async throws {
        let group = max(2, room / (max(1, limit) + 4))
        while state.parts.count > 1 {
            let parts = state.parts
            let level = parts.last?.level ?? 0
            var first = parts.lastIndex { $0.level > level }.map { $0 + 1 } ?? 0
            if isLast {
                // Merges from the end: the newest summaries have the lowest levels.
                first = max(0, parts.count - group)
            } else if parts.count - first < group {
                return
            }
            first = max(first, parts.count - group)
            let text = parts[first...].map(\.text).joined(separator: "\n\n")
            let highest = parts[first...].map(\.level).max() ?? level
            var merged = ""
            do { merged = try await summary(of: text, after: "") } catch {
                try state.leaveOut(text, chunk: nil, error, notice)
            }
            // If the model returns nothing, the longest of the summaries is kept.
            if merged.isEmpty { merged = parts[first...].map(\.text).max { $0.count < $1.count } ?? "" }
            state.parts.replaceSubrange(first..., with: [.init(level: highest + 1, text: merged)])
        }
    }
}

/// Texts that a model may have been stopped in.
enum SummaryText {
    /// The text up to the end of its last whole sentence; all of it if it has none.
    static func endingWithSentence(_ text: String) -> String {
        let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
        let ends: Set<Character> = [".", "!", "?", "…", "。", "！", "？", "”", "\"", ")"]
        guard let last = trimmed.last, !ends.contains(last) else { return trimmed }
        var end: String.Index?
        for index in trimmed.indices where ".!?。！？".contains(trimmed[index]) {
            let next = trimmed.index(after: index)
            // Not the point of a number or of an abbreviation inside a name.
            if next < trimmed.endIndex, !trimmed[next].isWhitespace, trimmed[index].isASCII { continue }
            end = next
        }
        return end.map { String(trimmed[..<$0]) } ?? trimmed
    }
}
