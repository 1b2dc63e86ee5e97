public import Foundation
internal import Inference
public import Observation

/// The language model of this machine: a GGUF file that runs on the CPU, without network or account.
///
/// `FM_MODEL` names the file; without it, the default model that `fm model pull` installs is used.
public final class SystemLanguageModel: Sendable, Observable {
    /// Whether the model can be used.
    @frozen public enum Availability: Equatable, Sendable {
        /// Requests can be made.
        case available
        /// Requests fail, for this reason.
        case unavailable(SystemLanguageModel.Availability.UnavailableReason)

        /// Why the model cannot be used.
        public enum UnavailableReason: Equatable, Sendable, Hashable {
            /// The machine cannot run it. Not reported on Linux.
            case deviceNotEligible
            /// It is switched off. Not reported on Linux.
            case appleIntelligenceNotEnabled
            /// The model's file is not installed.
            case modelNotReady
        }
    }

    /// What a model is used for.
    public struct UseCase: Sendable, Equatable {
        let name: String

        /// Anything.
        public static let general = SystemLanguageModel.UseCase(name: "general")
        /// Tags for a text: topics, emotions, actions, objects.
        public static let contentTagging = SystemLanguageModel.UseCase(name: "contentTagging")
    }

    /// What is not safe to ask or to say.
    public struct Guardrails: Sendable {
        let isPermissive: Bool

        /// Prompts and responses are checked.
        public static let `default` = SystemLanguageModel.Guardrails(isPermissive: false)
        /// Text may be transformed whatever it says. Structured responses are checked all the same.
        public static let permissiveContentTransformations = SystemLanguageModel.Guardrails(isPermissive: true)
    }

    /// Which model of a family this is.
    public struct Variant: Sendable, Hashable {
        /// The name to show to people.
        public let displayName: String

        /// A model of Apple's, for programs that compare: it does not run here.
        public static var core3: SystemLanguageModel.Variant { Variant(displayName: "AFM 3 Core") }
        /// A larger model of Apple's, for programs that compare: it does not run here.
        public static var coreAdvanced3: SystemLanguageModel.Variant { Variant(displayName: "AFM 3 Core Advanced") }
    }

    private static let shared = SystemLanguageModel()

    /// The model for general use.
    public static var `default`: SystemLanguageModel { shared }

    private let useCase: UseCase
    private let guardrails: Guardrails
    private let adapter: String?

    /// A model for one use. Nothing is loaded before the first request; all share the file in memory.
    public convenience init(
        useCase: SystemLanguageModel.UseCase = .general, guardrails: SystemLanguageModel.Guardrails = Guardrails.default
    ) {
        self.init(useCase, guardrails)
    }

    init(_ useCase: UseCase = .general, _ guardrails: Guardrails = .default, adapter: String? = nil) {
        self.useCase = useCase
        self.guardrails = guardrails
        self.adapter = adapter
    }

    /// Whether requests can be made. Looked up anew each time: a model may be installed while the program runs.
    public var availability: SystemLanguageModel.Availability {
        FileManager.default.isReadableFile(atPath: ModelStore.systemModelPath) ? .available : .unavailable(.modelNotReady)
    }

    /// Whether requests can be made; ``availability`` says why not.
    public var isAvailable: Bool { availability == .available }

    public var capabilities: LanguageModelCapabilities { localModel.capabilities }

    /// Tokens that a session's instructions, prompts and responses may have together.
    public var contextSize: Int { localModel.contextSize }

    /// The name in the model's file.
    public var variant: SystemLanguageModel.Variant { Variant(displayName: localModel.description.name) }

    /// The languages that the model was trained for.
    public var supportedLanguages: Set<Locale.Language> { localModel.description.languages }

    /// Whether the model knows the language of a locale, whatever its region.
    public func supportsLocale(_ locale: Locale = Locale.current) -> Bool {
        let supportedLanguages = supportedLanguages
        return supportedLanguages.isEmpty || supportedLanguages.contains { $0.languageCode == locale.language.languageCode }
    }

    package var localModel: LocalModel {
        LocalModel(
            path: ModelStore.systemModelPath, greatestContext: 4096, adapter: adapter, isTagging: useCase == .contentTagging,
            checksText: !guardrails.isPermissive)
    }
}

extension SystemLanguageModel {
    // Tokens are counted as they would be processed: with what the chat template puts around them.

    /// Tokens that a prompt adds to a conversation.
    public nonisolated(nonsending) func tokenCount(for prompt: some PromptRepresentable) async throws -> Int {
        let segments = prompt.promptRepresentation.parts.segments
        return try await localModel.tokenCount(prompt: Transcript.Prompt(segments: segments))
    }

    /// Tokens that instructions take.
    public nonisolated(nonsending) func tokenCount(for instructions: Instructions) async throws -> Int {
        let entry = Transcript.Instructions(segments: instructions.parts.segments, toolDefinitions: [])
        return try await localModel.tokenCount([.instructions(entry)])
    }

    /// Tokens that the definitions of tools add to instructions.
    public nonisolated(nonsending) func tokenCount(for tools: [any Tool]) async throws -> Int {
        let definitions = tools.map { Transcript.ToolDefinition(tool: $0) }
        // Beside a text: line breaks at the beginning of instructions are other tokens.
        let text = [Transcript.Segment.text(.init(content: "x"))]
        let with = Transcript.Instructions(segments: text, toolDefinitions: definitions)
        let without = Transcript.Instructions(segments: text, toolDefinitions: [])
        let model = localModel
        return try await model.tokenCount([.instructions(with)]) - model.tokenCount([.instructions(without)])
    }

    /// Tokens that a schema adds to a prompt.
    public nonisolated(nonsending) func tokenCount(for schema: GenerationSchema) async throws -> Int {
        // Beside a text, as schemas always are: line breaks at the beginning of a prompt are other tokens.
        let text = [Transcript.Segment.text(.init(content: "x"))]
        let with = Transcript.Prompt(segments: text, responseFormat: .init(schema: schema))
        let model = localModel
        return try await model.tokenCount(prompt: with) - model.tokenCount(prompt: Transcript.Prompt(segments: text))
    }

    /// Tokens of a conversation: what a request that ends with it processes.
    public nonisolated(nonsending) func tokenCount(
        for transcriptEntries: some Collection<Transcript.Entry>
    ) async throws -> Int {
        try await localModel.tokenCount(Array(transcriptEntries))
    }
}

extension SystemLanguageModel {
    /// Why the system model cannot answer.
    public enum Error: LocalizedError, CustomDebugStringConvertible {
        /// Its file is missing or cannot be used.
        case assetsUnavailable(SystemLanguageModel.Error.AssetsUnavailable)

        /// What is wrong with the file, and what to do about it.
        public struct AssetsUnavailable: Sendable {
            /// What went wrong, in a sentence for developers.
            public var debugDescription: String
            /// For errors that a program makes itself, as in tests.
            public init(debugDescription: String) { self.debugDescription = debugDescription }
        }

        public var debugDescription: String {
            switch self {
            case .assetsUnavailable(let payload): payload.debugDescription
            }
        }

        public var errorDescription: String? { debugDescription }
    }
}

extension SystemLanguageModel: HasLocalModel {}

extension SystemLanguageModel: LanguageModel {
    public var executorConfiguration: SystemLanguageModel.Executor.Configuration {
        Executor.Configuration(model: localModel)
    }

    /// Runs the system model.
    public struct Executor: LanguageModelExecutor {
        /// The model whose requests it answers.
        public typealias Model = SystemLanguageModel

        /// The file and how it is used.
        public struct Configuration: Hashable, Sendable {
            let model: LocalModel
        }

        private let executor: LocalModelExecutor

        /// Called by sessions; the file is loaded when the first request or a prewarming needs it.
        public init(configuration: SystemLanguageModel.Executor.Configuration) {
            executor = LocalModelExecutor(configuration.model)
        }

        public func prewarm(model: SystemLanguageModel.Executor.Model, transcript: Transcript) {
            executor.prewarm(transcript)
        }

        public nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: SystemLanguageModel,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            try await executor.respond(to: request, channel)
        }
    }
}
