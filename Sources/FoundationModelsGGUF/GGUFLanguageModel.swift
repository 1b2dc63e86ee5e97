public import Foundation
public import FoundationModels

/// A language model in a GGUF file, run on this machine's CPU.
///
/// ```swift
/// let model = GGUFLanguageModel(url: URL(filePath: "model.gguf"))
/// let session = LanguageModelSession(model: model, instructions: "Be brief.")
/// ```
///
/// Sessions with the same file share it in memory. A file that cannot be used is an error of the first request.
public struct GGUFLanguageModel: LanguageModel, HasLocalModel {
    package let localModel: LocalModel

    /// - Parameters:
    ///   - url: The file.
    ///   - contextSize: Tokens that a session's instructions, prompts and responses may have together, at most as many as the
    ///     model was trained for. Each takes memory (for a model of 135 million weights 23 KB).
    ///   - checksText: Whether prompts and text responses are checked for safety; structured ones always are.
    public init(url: URL, contextSize: Int = 4096, checksText: Bool = true) {
        localModel = LocalModel(path: url.path, greatestContext: max(1, contextSize), checksText: checksText)
    }

    public var capabilities: LanguageModelCapabilities { localModel.capabilities }

    /// The name in the file.
    public var name: String { localModel.description.name }

    /// Tokens that a session's instructions, prompts and responses may have together.
    public var contextSize: Int { localModel.contextSize }

    /// The languages that the file names; none if they are not known.
    public var supportedLanguages: Set<Locale.Language> { localModel.description.languages }

    /// Tokens of a conversation: what a request that ends with it processes.
    public nonisolated(nonsending) func tokenCount(
        for transcriptEntries: some Collection<Transcript.Entry>
    ) async throws -> Int {
        try await localModel.tokenCount(Array(transcriptEntries))
    }

    public var executorConfiguration: Executor.Configuration { Executor.Configuration(model: localModel) }

    /// Runs the model.
    public struct Executor: LanguageModelExecutor {
        /// The model whose requests it answers.
        public typealias Model = GGUFLanguageModel

        /// The file and how it is used.
        public struct Configuration: Hashable, Sendable {
            let model: LocalModel
        }

        private let executor: LocalModelExecutor

        /// Called by sessions; the file is loaded when the first request or a prewarming needs it.
        public init(configuration: Configuration) { executor = LocalModelExecutor(configuration.model) }

        public func prewarm(model: GGUFLanguageModel, transcript: Transcript) { executor.prewarm(transcript) }

        public nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: GGUFLanguageModel,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            try await executor.respond(to: request, channel)
        }
    }
}
