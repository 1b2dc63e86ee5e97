public import Foundation

/// A model that sessions can use: the built-in one, a file, a server, or one of your own.
///
/// A model says what it can do and how its executor is configured; the executor does the work.
public protocol LanguageModel: Sendable {
    /// What answers the model's requests.
    associatedtype Executor: LanguageModelExecutor where Self == Self.Executor.Model

    /// What the model can do. A request that needs more is refused before the executor sees it.
    var capabilities: LanguageModelCapabilities { get }
    /// What tells executors apart: a session keeps one for each distinct configuration.
    var executorConfiguration: Self.Executor.Configuration { get }
}

/// What a model can do.
public struct LanguageModelCapabilities: Sendable {
    private let capabilities: Set<Capability>

    /// The capabilities of a model that can do this and nothing else.
    public init(_ capabilities: [LanguageModelCapabilities.Capability]) { self.capabilities = Set(capabilities) }

    /// Whether the model can do it.
    public func contains(_ capability: LanguageModelCapabilities.Capability) -> Bool { capabilities.contains(capability) }

    /// Something that not every model can do.
    public struct Capability: Sendable, Hashable {
        let name: String

        /// Reads pictures.
        public static var vision: LanguageModelCapabilities.Capability { Capability(name: "vision") }
        /// Can be held to a schema.
        public static var guidedGeneration: LanguageModelCapabilities.Capability { Capability(name: "guided generation") }
        /// Thinks before it answers.
        public static var reasoning: LanguageModelCapabilities.Capability { Capability(name: "reasoning") }
        /// Calls tools.
        public static var toolCalling: LanguageModelCapabilities.Capability { Capability(name: "tool calling") }
    }
}

/// What answers the requests of a model. It lives as long as the session that made it, and may keep state between requests.
public protocol LanguageModelExecutor: Sendable {
    /// What the executor is made from: where its model is, and how it is reached.
    associatedtype Configuration: Hashable, Sendable
    /// The model whose requests it answers.
    associatedtype Model: LanguageModel

    /// Gets ready for a request that begins like this transcript. A hint: it may do nothing.
    func prewarm(model: Self.Model, transcript: Transcript)

    /// Called once for each configuration, at a session's first request or before it.
    ///
    /// - Throws: what the request then throws.
    init(configuration: Self.Configuration) throws

    /// Answers one request: sends what the model says, as it says it, and returns at the end.
    ///
    /// After tool calls it returns too; the session runs the tools and asks again with the longer transcript.
    /// - Throws: ``LanguageModelError``, or `CancellationError` when the task is cancelled.
    nonisolated(nonsending) func respond(
        to request: LanguageModelExecutorGenerationRequest, model: Self.Model,
        streamingInto channel: LanguageModelExecutorGenerationChannel) async throws
}

extension LanguageModelExecutor {
    /// Does nothing.
    public func prewarm(model: Self.Model, transcript: Transcript) {}
}

/// What a session asks an executor.
public struct LanguageModelExecutorGenerationRequest: Sendable {
    /// New for each call, also for those that follow tool calls.
    public var id: UUID
    /// The conversation; what is to be answered comes last.
    public var transcript: Transcript
    /// The tools that the model may call now.
    public var enabledToolDefinitions: [Transcript.ToolDefinition]
    /// What the response must be; nil for text.
    public var schema: GenerationSchema?
    /// How the response is generated, with what the session's profile says.
    public var generationOptions: GenerationOptions
    /// What the prompt contains besides what was asked, and how long the model is to think.
    public var contextOptions: ContextOptions
    /// What the caller passed on.
    public var metadata: [String: GeneratedContent]
    /// A format that schemas cannot say; takes the place of `schema`.
    package var format: ResponseFormat?

    /// Made by sessions; a program needs it to test executors, or to ask them itself.
    public init(
        id: UUID, transcript: Transcript, enabledTools: [Transcript.ToolDefinition], schema: GenerationSchema? = nil,
        generationOptions: GenerationOptions, contextOptions: ContextOptions,
        metadata: [String: any ConvertibleToGeneratedContent]
    ) {
        self.id = id
        self.transcript = transcript
        enabledToolDefinitions = enabledTools
        self.schema = schema
        self.generationOptions = generationOptions
        self.contextOptions = contextOptions
        self.metadata = metadata.mapValues(\.generatedContent)
    }
}
