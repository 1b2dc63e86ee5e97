/// CustomExecutor: a custom language model. It answers questions from a glossary and forwards all others to another
/// model.
///
///     swift run CustomExecutor
///     swift run CustomExecutor other.gguf      another model for the other questions
///
/// Sessions use it like any other model: the responses of both sources form one conversation. Each response is printed
/// with its source. The glossary is correct; a small model often is not.

import Foundation
import FoundationModels
import FoundationModelsGGUF

struct GlossaryModel<Fallback: LanguageModel>: LanguageModel {
    /// Explanations by lowercase term.
    var entries: [String: String]
    var fallback: Fallback

    var capabilities: LanguageModelCapabilities { fallback.capabilities }

    var executorConfiguration: Executor.Configuration {
        Executor.Configuration(entries: entries, fallback: fallback.executorConfiguration)
    }

    struct Executor: LanguageModelExecutor {
        typealias Model = GlossaryModel<Fallback>

        struct Configuration: Hashable, Sendable {
            var entries: [String: String]
            var fallback: Fallback.Executor.Configuration
        }

        private let entries: [String: String]
        private let fallback: Fallback.Executor

        init(configuration: Configuration) throws {
            entries = configuration.entries
            fallback = try Fallback.Executor(configuration: configuration.fallback)
        }

        func prewarm(model: Model, transcript: Transcript) {
            fallback.prewarm(model: model.fallback, transcript: transcript)
        }

        nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: Model,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            // The glossary contains texts only; requests with a schema are forwarded to the other model.
            guard request.schema == nil, let text = explanation(for: request.transcript) else {
                return try await fallback.respond(to: request, model: model.fallback, streamingInto: channel)
            }
            await channel.send(.response(action: .updateMetadata(["source": "glossary"])))
            for (index, word) in text.split(separator: " ").enumerated() {
                try Task.checkCancellation()
                let piece = index == 0 ? String(word) : " \(word)"
                await channel.send(.response(action: .appendText(piece, tokenCount: 1)))
            }
        }

        /// The explanation of X if the last prompt is “What is X?”, with or without an article.
        private func explanation(for transcript: Transcript) -> String? {
            guard case .prompt(let prompt)? = transcript.last, case .text(let segment)? = prompt.segments.first,
                let match = segment.content.lowercased().wholeMatch(of: /what (?:is|are) (?:an? |the )?(.+?)\s*\??/)
            else { return nil }
            return entries[String(match.1)]
        }
    }
}

func fail(_ message: String, code: Int32 = 1) -> Never {
    FileHandle.standardError.write(Data("CustomExecutor: \(message)\n".utf8))
    exit(code)
}

func converse(with model: some LanguageModel) async throws {
    let session = LanguageModelSession(model: model, instructions: "Answer in one sentence.")
    for question in ["What is a token?", "What is the capital of France?", "What is a transcript?"] {
        print("\n> \(question)")
        let response = try await session.respond(
            to: question, options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 60))
        var source = "the model"
        if case .response(let entry)? = response.transcriptEntries.last, entry.metadata["source"] != nil {
            source = "the glossary"
        }
        print("\(response.content)\n(from \(source))")
    }
}

let entries = [
    "token": "A piece of text, often part of a word, that a model reads and writes as one.",
    "transcript": "Everything that was said in a session: instructions, prompts, tool calls and responses.",
]
do {
    if let path = CommandLine.arguments.dropFirst().first {
        let model = GGUFLanguageModel(url: URL(filePath: path))
        try await converse(with: GlossaryModel(entries: entries, fallback: model))
    } else {
        guard SystemLanguageModel.default.isAvailable else {
            fail("There is no model. Download it with “fm model pull”, or specify a GGUF file.", code: 3)
        }
        try await converse(with: GlossaryModel(entries: entries, fallback: SystemLanguageModel.default))
    }
} catch SystemLanguageModel.Error.assetsUnavailable(let reason) {
    fail(reason.debugDescription, code: 3)
} catch {
    fail(error.localizedDescription)
}
