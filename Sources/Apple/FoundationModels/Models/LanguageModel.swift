public import Foundation
internal import Grammar
public import UniformTypeIdentifiers

/// A model that sessions can use: the built-in model, a file, a server, or one of your own.
///
/// A model declares its capabilities and its executor's configuration; the executor processes the requests.
public protocol LanguageModel: Sendable {
    /// The type that processes the model's requests.
    associatedtype Executor: LanguageModelExecutor where Self == Self.Executor.Model

    /// The model's capabilities. A request that requires others is rejected before it reaches the executor.
    var capabilities: LanguageModelCapabilities { get }
    /// The configuration that identifies an executor: a session keeps one executor for each distinct configuration.
    var executorConfiguration: Self.Executor.Configuration { get }

    /// Whether the model reads attached data of a type. A request with data of another type is rejected before it reaches the executor.
    ///
    /// - Throws: An error that the request then throws.
    nonisolated(nonsending) func supportsDataAttachmentType(_ type: UTType) async throws -> Bool
    /// Whether entries of data of a type may be part of the model's output. A request whose model sends another type fails.
    ///
    /// - Throws: An error that the request then throws.
    nonisolated(nonsending) func supportsDataEntryType(_ type: UTType) async throws -> Bool
}

extension LanguageModel {
    /// False: the model reads no attached data.
    public nonisolated(nonsending) func supportsDataAttachmentType(_ type: UTType) async throws -> Bool { false }
    /// False: the model generates no entries of data.
    public nonisolated(nonsending) func supportsDataEntryType(_ type: UTType) async throws -> Bool { false }
}

/// The capabilities of a model.
public struct LanguageModelCapabilities: Sendable {
    private let capabilities: Set<Capability>

    /// Creates a set of exactly these capabilities.
    public init(_ capabilities: [LanguageModelCapabilities.Capability]) { self.capabilities = Set(capabilities) }

    /// Whether the model has a capability.
    public func contains(_ capability: LanguageModelCapabilities.Capability) -> Bool { capabilities.contains(capability) }

    /// An optional capability of a model.
    public struct Capability: Sendable, Hashable {
        let name: String

        /// Processes pictures.
        public static var vision: LanguageModelCapabilities.Capability { Capability(name: "vision") }
        /// Generates responses that conform to a schema.
        public static var guidedGeneration: LanguageModelCapabilities.Capability { Capability(name: "guided generation") }
        /// Reasons before it responds.
        public static var reasoning: LanguageModelCapabilities.Capability { Capability(name: "reasoning") }
        /// Calls tools.
        public static var toolCalling: LanguageModelCapabilities.Capability { Capability(name: "tool calling") }
    }
}

/// Processes the requests of a model. An executor lives as long as the session that created it, and may keep state
/// between requests.
public protocol LanguageModelExecutor: Sendable {
    /// The values from which an executor is created, such as the model's location and how to access it.
    associatedtype Configuration: Hashable, Sendable
    /// The model whose requests the executor processes.
    associatedtype Model: LanguageModel

    /// Prepares for a request that begins with this transcript. This is a hint: an implementation may do nothing.
    func prewarm(model: Self.Model, transcript: Transcript)

    /// Creates an executor. A session calls this once for each configuration, at its first request or earlier.
    ///
    /// - Throws: An error that the request then throws.
    init(configuration: Self.Configuration) throws

    /// Processes one request: sends the model's output as it is generated, and returns at its end.
    ///
    /// The function also returns after tool calls. The session then runs the tools and sends another request with the
    /// extended transcript.
    /// - Throws: ``LanguageModelError``, or `CancellationError` when the task is cancelled.
    nonisolated(nonsending) func respond(
        to request: LanguageModelExecutorGenerationRequest, model: Self.Model,
        streamingInto channel: LanguageModelExecutorGenerationChannel) async throws
}

extension LanguageModelExecutor {
    /// Does nothing.
    public func prewarm(model: Self.Model, transcript: Transcript) {}
}

/// A request from a session to an executor.
public struct LanguageModelExecutorGenerationRequest: Sendable {
    /// A unique id for each request, including those that follow tool calls.
    public var id: UUID
    /// The conversation; its last entry is the one to respond to.
    public var transcript: Transcript
    /// The tools that the model may call in this request.
    public var enabledToolDefinitions: [Transcript.ToolDefinition]
    /// The schema of the response; nil for text.
    public var schema: GenerationSchema?
    /// Options for generating the response, combined with those of the session's profile.
    public var generationOptions: GenerationOptions
    /// Whether the prompt includes the schema, and the level of reasoning.
    public var contextOptions: ContextOptions
    /// Metadata from the caller.
    public var metadata: [String: GeneratedContent]
    /// A format that schemas cannot express; it replaces `schema`.
    package var format: ResponseFormat?

    /// Creates a request. Sessions do this; a program needs it only to test executors or to call them directly.
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

extension LanguageModelCapabilities {
    /// - Throws: ``LanguageModelError/unsupportedCapability(_:)`` if the request requires a capability that the model
    ///   does not have.
    func check(_ request: LanguageModelExecutorGenerationRequest) throws {
        func need(_ capability: Capability, _ reason: String) throws {
            if !contains(capability) {
                throw LanguageModelError.unsupportedCapability(
                    .init(capability: capability, debugDescription: "The model lacks a required capability: \(reason)."))
            }
        }
        if request.schema != nil { try need(.guidedGeneration, "guided generation") }
        if !request.enabledToolDefinitions.isEmpty { try need(.toolCalling, "tool calling") }
        if request.contextOptions.reasoningLevel != nil { try need(.reasoning, "reasoning") }
        let hasPictures = request.transcript.contains { entry in
            let segments: [Transcript.Segment] =
                switch entry {
                case .instructions(let entry): entry.segments
                case .prompt(let entry): entry.segments
                case .toolOutput(let entry): entry.segments
                default: []
                }
            return segments.contains { segment in
                if case .attachment(let attachment) = segment, case .image = attachment.content { true } else { false }
            }
        }
        if hasPictures { try need(.vision, "image input") }
    }
}

extension LanguageModelExecutorGenerationRequest {
    /// Whether the response is a value that conforms to a schema, and not a text.
    package var generatesValue: Bool {
        if case .schema? = format?.source { return true }
        return schema != nil
    }
}

extension LanguageModel {
    /// - Throws: ``LanguageModelError/unsupportedTranscriptContent(_:)`` with an entry of data that the model sends and does not
    ///   support.
    func check(_ entry: Transcript.DataEntry) async throws {
        guard try await !supportsDataEntryType(entry.contentType) else { return }
        throw LanguageModelError.unsupportedTranscriptContent(
            .init(
                unsupportedContent: [.data(entry)],
                debugDescription:
                    "The model sent an entry of data of the type \(entry.contentType.identifier), which it does not support."))
    }

    /// - Throws: ``LanguageModelError/unsupportedTranscriptContent(_:)`` if a request has attached data that the model does not read.
    func checkAttachments(of request: LanguageModelExecutorGenerationRequest) async throws {
        for entry in request.transcript {
            for case .attachment(let attachment) in entry.segments {
                guard case .data(let data) = attachment.content else { continue }
                guard try await supportsDataAttachmentType(data.contentType) else {
                    throw LanguageModelError.unsupportedTranscriptContent(
                        .init(
                            unsupportedContent: [entry],
                            debugDescription: "The model does not read attached data of the type \(data.contentType.identifier).")
                    )
                }
            }
        }
    }
}
