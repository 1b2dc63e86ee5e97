import ContextKit
import Foundation
import FoundationModels
import TokenCounts
import FoundationModelsGGUF
import Synchronization

/// A model with scripted responses that simulates a KV cache and counts recomputed tokens.
struct ReplayModel: TokenCounting {
    final class Script: Sendable, Hashable {
        let reply = Mutex("")
        /// The transcript of the last request, including its response.
        let seen = Mutex<[Transcript.Entry]>([])
        /// The current message of the user.
        let prompt = Mutex("")
        /// The number of recomputed tokens, and of the tokens of all messages.
        let work = Mutex<(again: Int, said: Int)>((0, 0))

        var lastPrompt: String? {
            seen.withLock { entries in
                for case .prompt(let prompt) in entries.reversed() { return prompt.text }
                return nil
            }
        }
        var lastContext: String {
            // Without the response to the last question.
            seen.withLock { $0.dropLast().map(\.description).joined(separator: "\n") }
        }

        static func == (a: Script, b: Script) -> Bool { a === b }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    let script = Script()
    let tokens: GGUFLanguageModel
    /// The instructions of requests that ``tokens`` answers itself, instead of the script, such as those for summaries.
    let isAnswered: @Sendable (String) -> Bool

    init(_ tokens: GGUFLanguageModel, answering isAnswered: @escaping @Sendable (String) -> Bool = { _ in false }) {
        self.tokens = tokens
        self.isAnswered = isAnswered
    }

    var contextSize: Int { tokens.contextSize }
    var capabilities: LanguageModelCapabilities { tokens.capabilities }
    var executorConfiguration: Executor.Configuration { .init(script: script, tokens: tokens) }

    /// The number of tokens of a text, without the tokens that the chat template adds.
    nonisolated(nonsending) func tokenCount(of text: String) async throws -> Int {
        func count(_ text: String) async throws -> Int {
            try await tokens.tokenCount(for: [.prompt(.init(segments: [.text(.init(content: text))]))])
        }
        return try await count(text) - count("")
    }

    nonisolated(nonsending) func tokenCount(for transcriptEntries: some Collection<Transcript.Entry>) async throws -> Int {
        try await tokens.tokenCount(for: transcriptEntries)
    }

    struct Executor: LanguageModelExecutor {
        typealias Model = ReplayModel
        struct Configuration: Hashable, Sendable {
            let script: Script
            let tokens: GGUFLanguageModel
            static func == (a: Self, b: Self) -> Bool { a.script == b.script }
            func hash(into hasher: inout Hasher) { hasher.combine(script) }
        }
        private let configuration: Configuration

        init(configuration: Configuration) { self.configuration = configuration }

        nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: ReplayModel,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            let (script, tokens) = (configuration.script, configuration.tokens)
            let entries = Array(request.transcript)
            if case .instructions(let instructions)? = entries.first, case .prompt(let prompt)? = entries.last,
                model.isAnswered(instructions.text)
            {
                let session = LanguageModelSession(model: tokens, transcript: Transcript(entries: entries.dropLast()))
                var answer = ""
                if let schema = request.schema {
                    let response = try await session.respond(
                        to: Prompt(prompt.text), schema: schema, includeSchemaInPrompt: false, options: request.generationOptions)
                    answer = response.content.jsonString
                } else {
                    answer = try await session.respond(to: prompt.text, options: request.generationOptions).content
                }
                return await channel.send(.response(action: .appendText(answer, tokenCount: 0)))
            }
            let reply = script.reply.withLock { $0 }
            let before = script.seen.withLock { $0 }
            var common = 0
            while common < min(before.count, entries.count), before[common].description == entries[common].description {
                common += 1
            }
            let input = try await tokens.tokenCount(for: entries)
            let cached = common == 0 ? 0 : try await tokens.tokenCount(for: Array(entries[..<common]))
            let output = try await model.tokenCount(of: reply)
            // The prompt without recalled text: recalled text was processed before and counts as recomputed.
            let prompt = script.prompt.withLock { $0 }
            let earlier = Array(entries.dropLast())
            let plain = Transcript.Entry.prompt(.init(segments: [.text(.init(content: prompt))]))
            let new =
                try await tokens.tokenCount(for: earlier + [plain]) - (earlier.isEmpty ? 0 : tokens.tokenCount(for: earlier))
            script.work.withLock { $0 = ($0.again + max(0, input - cached - new), $0.said + new + output) }
            script.seen.withLock { $0 = entries + [.response(.init(segments: [.text(.init(content: reply))]))] }
            await channel.send(.response(action: .appendText(reply, tokenCount: output)))
        }
    }
}

extension Transcript.Instructions {
    fileprivate var text: String {
        segments.map { if case .text(let text) = $0 { text.content } else { "" } }.joined()
    }
}

extension Transcript.Prompt {
    var text: String {
        segments.map { if case .text(let text) = $0 { text.content } else { "" } }.joined()
    }
}
