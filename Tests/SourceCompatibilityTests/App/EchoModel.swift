import Foundation
import FoundationModels

/// A model for previews that repeats the prompt word by word.
struct EchoModel: LanguageModel {
    var name = "echo"
    var prefix = ""

    var capabilities: LanguageModelCapabilities {
        LanguageModelCapabilities([])
    }

    var executorConfiguration: Executor.Configuration {
        Executor.Configuration(name: name)
    }

    struct Executor: LanguageModelExecutor {
        struct Configuration: Hashable, Sendable {
            var name: String
        }

        private let name: String

        init(configuration: Configuration) {
            name = configuration.name
        }

        func respond(
            to request: LanguageModelExecutorGenerationRequest,
            model: EchoModel,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            let words = (model.prefix + Self.lastPrompt(in: request.transcript)).split(separator: " ")
            for (index, word) in words.prefix(request.generationOptions.maximumResponseTokens ?? .max).enumerated() {
                try Task.checkCancellation()
                let text = index == 0 ? String(word) : " " + word
                await channel.send(.response(action: .appendText(text, tokenCount: 1)))
            }
            await channel.send(
                .response(
                    action: .updateUsage(
                        input: .init(totalTokenCount: words.count + 1, cachedTokenCount: 0),
                        output: .init(totalTokenCount: words.count, reasoningTokenCount: 0))))
            await channel.send(.response(action: .updateMetadata(["modelID": name])))
        }

        private static func lastPrompt(in transcript: Transcript) -> String {
            guard case .prompt(let prompt)? = transcript.last else { return "" }
            return prompt.segments.map { segment in
                if case .text(let text) = segment { text.content } else { "" }
            }
            .joined(separator: " ")
        }
    }
}

/// A model that responds to every structured request with the same JSON, for previews of a filled-in screen.
struct FormEchoModel: LanguageModel {
    let json: String

    var capabilities: LanguageModelCapabilities { .init([.guidedGeneration]) }
    var executorConfiguration: Executor.Configuration { .init() }

    struct Executor: LanguageModelExecutor {
        struct Configuration: Hashable {}

        init(configuration: Configuration) throws {}

        func prewarm(model: FormEchoModel, transcript: Transcript) {}

        nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: FormEchoModel,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            guard request.schema != nil else {
                throw LanguageModelError.unsupportedTranscriptContent(
                    .init(unsupportedContent: Array(request.transcript), debugDescription: "Only forms are filled in."))
            }
            // In parts, as a server sends them.
            var rest = Substring(model.json)
            while !rest.isEmpty {
                let piece = rest.prefix(7)
                rest = rest.dropFirst(7)
                await channel.send(.response(entryID: "form", action: .appendText(String(piece), tokenCount: 2)))
            }
        }
    }
}
