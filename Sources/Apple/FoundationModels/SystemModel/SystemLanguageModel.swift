public import Foundation
internal import Inference
internal import InstalledModels
public import Observation

/// The language model of this machine: a GGUF file that runs on the CPU, without a network connection or an account.
///
/// `FM_MODEL` selects the model, by its name in the catalogue or by the path of a file. Without it, the model chosen
/// with `fm model use` is used, or else the default model, or else the largest installed one.
public final class SystemLanguageModel: Sendable, Observable {
    /// Whether the model can be used.
    @frozen public enum Availability: Equatable, Sendable {
        /// Requests can be made.
        case available
        /// Requests fail, for this reason.
        case unavailable(SystemLanguageModel.Availability.UnavailableReason)

        /// Why the model cannot be used.
        public enum UnavailableReason: Equatable, Sendable, Hashable {
            /// The machine cannot run the model. Not reported on Linux.
            case deviceNotEligible
            /// The model is disabled. Not reported on Linux.
            case appleIntelligenceNotEnabled
            /// The model's file is not installed, or it is damaged or not complete.
            case modelNotReady
        }
    }

    /// The use of a model.
    public struct UseCase: Sendable, Equatable {
        let name: String

        /// Any use.
        public static let general = SystemLanguageModel.UseCase(name: "general")
        /// Tagging of texts with topics, emotions, actions, and objects. If an adapter for tagging was
        /// installed with the model, it is used.
        public static let contentTagging = SystemLanguageModel.UseCase(name: "contentTagging")
    }

    /// The safety checks of prompts and responses.
    public struct Guardrails: Sendable {
        package let isPermissive: Bool
        /// See ``LocalModel/checksValues``.
        package var checksValues = true

        /// Prompts and responses are checked.
        public static let `default` = SystemLanguageModel.Guardrails(isPermissive: false)
        /// Prompts and text responses are not checked. Requests for structured responses are checked nevertheless.
        public static let permissiveContentTransformations = SystemLanguageModel.Guardrails(isPermissive: true)
        /// Nothing is checked: for commands that choose schemas for themselves, which their users neither see nor chose.
        package static let unchecked = SystemLanguageModel.Guardrails(isPermissive: true, checksValues: false)
    }

    /// A model within a family.
    public struct Variant: Sendable, Hashable {
        /// The name to display.
        public let displayName: String

        /// A model by Apple, for programs that compare variants; it does not run here.
        public static var core3: SystemLanguageModel.Variant { Variant(displayName: "AFM 3 Core") }
        /// A larger model by Apple, for programs that compare variants; it does not run here.
        public static var coreAdvanced3: SystemLanguageModel.Variant { Variant(displayName: "AFM 3 Core Advanced") }
    }

    private static let shared = SystemLanguageModel()

    /// The model for general use.
    public static var `default`: SystemLanguageModel { shared }

    private let configuration: LocalModel
    /// Whether the file is the default of this machine, which is looked up at each use: it may be installed while the program runs.
    private let usesDefaultFile: Bool

    /// Creates a model for a use. The file is loaded at the first request, and all models share it in memory.
    public convenience init(
        useCase: SystemLanguageModel.UseCase = .general, guardrails: SystemLanguageModel.Guardrails = Guardrails.default
    ) {
        self.init(file: nil, useCase: useCase, guardrails: guardrails)
    }

    /// Creates a model with a file, and with settings that Apple's initializers do not have.
    ///
    /// - Parameters:
    ///   - file: The path of the GGUF file; nil for the default of this machine.
    ///   - adapter: The path of a low-rank adapter; nil for none but that of the model.
    ///   - usesInstalledAdapter: Whether the adapter is used that was installed with the model.
    ///   - contextSize: The maximum number of tokens of a conversation; nil for 4,096.
    ///   - cacheBits: The number of bits of each element of keys and values, 8 or 16; nil for the setting of the environment.
    package init(
        file: String?, adapter: String? = nil, usesInstalledAdapter: Bool = true, contextSize: Int? = nil, cacheBits: Int? = nil,
        useCase: SystemLanguageModel.UseCase = .general, guardrails: SystemLanguageModel.Guardrails = .default
    ) {
        var model = LocalModel(
            path: file ?? "", maximumContext: contextSize ?? 4096, adapter: adapter,
            usesInstalledAdapter: usesInstalledAdapter, isTagging: useCase == .contentTagging,
            checksText: !guardrails.isPermissive, cacheBits: cacheBits)
        model.checksValues = guardrails.checksValues
        configuration = model
        usesDefaultFile = file == nil
    }

    /// Whether requests can be made. Checked on each access: a model may be installed while the program runs. A file is examined once:
    /// whether it is a model that runs here, and has all of its tensors.
    public var availability: SystemLanguageModel.Availability {
        localModel.description.isUsable ? .available : .unavailable(.modelNotReady)
    }

    /// Whether requests can be made; ``availability`` contains the reason if not.
    public var isAvailable: Bool { availability == .available }

    public var capabilities: LanguageModelCapabilities { localModel.capabilities }

    /// The maximum number of tokens for a session's instructions, prompts and responses together.
    public var contextSize: Int { localModel.contextSize }

    /// The variant with the name in the model's file.
    public var variant: SystemLanguageModel.Variant { Variant(displayName: localModel.description.name) }

    /// The languages that the model was trained for. The current language and that of the environment (`LC_ALL`,
    /// `LC_MESSAGES`, `LANG`) are also listed with their region if they are among them.
    public var supportedLanguages: Set<Locale.Language> { localModel.description.languages.withRegions(of: .user) }

    /// Whether the model supports the language of a locale, regardless of its region.
    public func supportsLocale(_ locale: Locale = Locale.current) -> Bool {
        let supportedLanguages = supportedLanguages
        return supportedLanguages.isEmpty || supportedLanguages.contains { $0.languageCode == locale.language.languageCode }
    }

    package var localModel: LocalModel {
        guard usesDefaultFile else { return configuration }
        var model = configuration
        model.path = ModelStore.defaultModelPath
        return model
    }
}

extension SystemLanguageModel {
    // Tokens are counted as they are processed, including those of the chat template.

    /// The number of tokens that a prompt adds to a conversation.
    public nonisolated(nonsending) func tokenCount(for prompt: some PromptRepresentable) async throws -> Int {
        let segments = prompt.promptRepresentation.parts.segments
        return try await localModel.tokenCount(prompt: Transcript.Prompt(segments: segments))
    }

    /// The number of tokens in instructions.
    public nonisolated(nonsending) func tokenCount(for instructions: Instructions) async throws -> Int {
        let entry = Transcript.Instructions(segments: instructions.parts.segments, toolDefinitions: [])
        return try await localModel.tokenCount([.instructions(entry)])
    }

    /// The number of tokens that tool definitions add to instructions.
    public nonisolated(nonsending) func tokenCount(for tools: [any Tool]) async throws -> Int {
        let definitions = tools.map { Transcript.ToolDefinition(tool: $0) }
        // Counted after a text: line breaks at the beginning of instructions have different tokens.
        let text = [Transcript.Segment.text(.init(content: "x"))]
        let with = Transcript.Instructions(segments: text, toolDefinitions: definitions)
        let without = Transcript.Instructions(segments: text, toolDefinitions: [])
        let model = localModel
        return try await model.tokenCount([.instructions(with)]) - model.tokenCount([.instructions(without)])
    }

    /// The number of tokens that a schema adds to a prompt.
    public nonisolated(nonsending) func tokenCount(for schema: GenerationSchema) async throws -> Int {
        // Counted after a text, as in all prompts: line breaks at the beginning of a prompt have different tokens.
        let text = [Transcript.Segment.text(.init(content: "x"))]
        let with = Transcript.Prompt(segments: text, responseFormat: .init(schema: schema))
        let model = localModel
        return try await model.tokenCount(prompt: with) - model.tokenCount(prompt: Transcript.Prompt(segments: text))
    }

    /// The number of tokens in a conversation: those that a request processes if the conversation ends with these
    /// entries.
    public nonisolated(nonsending) func tokenCount(
        for transcriptEntries: some Collection<Transcript.Entry>
    ) async throws -> Int {
        try await localModel.tokenCount(Array(transcriptEntries))
    }
}

extension SystemLanguageModel {
    /// An error of the system model.
    public enum Error: LocalizedError, CustomDebugStringConvertible {
        /// The model's file is missing or cannot be used.
        case assetsUnavailable(SystemLanguageModel.Error.AssetsUnavailable)

        /// Details of the problem with the file, and its solution.
        public struct AssetsUnavailable: Sendable {
            /// A description of the error for developers.
            public var debugDescription: String
            /// Creates details for an error that a program constructs itself, for example in tests.
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
        /// The model whose requests the executor processes.
        public typealias Model = SystemLanguageModel

        /// The file and how it is used.
        public struct Configuration: Hashable, Sendable {
            let model: LocalModel
        }

        private let executor: LocalModelExecutor

        /// Creates an executor. Sessions call this; the file is loaded by the first request or prewarm.
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
