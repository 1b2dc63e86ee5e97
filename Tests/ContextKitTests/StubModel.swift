import ContextKit
import Foundation
import FoundationModels
import TokenCounts
import FoundationModelsTesting
import Synchronization

/// A model that counts words as tokens, returns the text of a closure and enforces its window like a real model.
struct StubModel: TokenCounting {
    final class Brain: Sendable, Hashable {
        let answer: @Sendable (Transcript) async throws -> String
        let requests = Mutex<[Transcript]>([])
        let contextSize: Int

        init(contextSize: Int, _ answer: @escaping @Sendable (Transcript) async throws -> String) {
            self.contextSize = contextSize
            self.answer = answer
        }

        static func == (a: Brain, b: Brain) -> Bool { a === b }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    let brain: Brain

    init(contextSize: Int, _ answer: @escaping @Sendable (Transcript) async throws -> String = { _ in "Yes." }) {
        brain = Brain(contextSize: contextSize, answer)
    }

    var contextSize: Int { brain.contextSize }
    var requests: [Transcript] { brain.requests.withLock { $0 } }
    var capabilities: LanguageModelCapabilities {
        LanguageModelCapabilities([.guidedGeneration, .toolCalling, .reasoning, .vision])
    }
    var executorConfiguration: Executor.Configuration { .init(brain: brain) }

    nonisolated(nonsending) func tokenCount(for transcriptEntries: some Collection<Transcript.Entry>) async throws -> Int {
        Self.count(transcriptEntries)
    }

    /// The number of words, plus four for each entry.
    static func count(_ entries: some Collection<Transcript.Entry>) -> Int {
        entries.reduce(0) { $0 + 4 + $1.description.split(whereSeparator: \.isWhitespace).count }
    }

    struct Executor: LanguageModelExecutor {
        typealias Model = StubModel
        struct Configuration: Hashable, Sendable { let brain: Brain }
        private let brain: Brain

        init(configuration: Configuration) { brain = configuration.brain }

        nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: StubModel,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            brain.requests.withLock { $0.append(request.transcript) }
            let read = StubModel.count(request.transcript)
            func check(_ count: Int) throws {
                if count > brain.contextSize {
                    throw LanguageModelError.contextSizeExceeded(
                        .init(contextSize: brain.contextSize, tokenCount: count, debugDescription: "full"))
                }
            }
            try check(read)
            var written = 4
            for word in try await brain.answer(request.transcript).split(separator: " ", omittingEmptySubsequences: false) {
                written += 1
                try check(read + written)
                await channel.send(.response(action: .appendText(written == 5 ? String(word) : " \(word)", tokenCount: 1)))
            }
        }
    }
}

extension Transcript {
    /// All entries as one text.
    var wholeText: String { map(\.description).joined(separator: "\n") }

    var lastPrompt: String {
        for entry in reversed() { if case .prompt(let prompt) = entry { return prompt.description } }
        return ""
    }
}

/// A scripted model with a window.
struct Counting: TokenCounting {
    let base: ScriptedLanguageModel

    var contextSize: Int { 1_000 }
    var capabilities: LanguageModelCapabilities { base.capabilities }
    var executorConfiguration: Executor.Configuration { .init(base: base.executorConfiguration, model: base) }

    nonisolated(nonsending) func tokenCount(for transcriptEntries: some Collection<Transcript.Entry>) async throws -> Int {
        StubModel.count(transcriptEntries)
    }

    struct Executor: LanguageModelExecutor {
        typealias Model = Counting
        struct Configuration: Hashable, Sendable {
            let base: ScriptedLanguageModel.Executor.Configuration
            let model: ScriptedLanguageModel
            static func == (a: Self, b: Self) -> Bool { a.base == b.base }
            func hash(into hasher: inout Hasher) { hasher.combine(base) }
        }
        private let base: ScriptedLanguageModel.Executor

        init(configuration: Configuration) { base = .init(configuration: configuration.base) }

        nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: Counting,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            try await base.respond(to: request, model: model.base, streamingInto: channel)
        }
    }
}
