public import Foundation

/// An error of a model request.
///
/// Errors of requests can be cast both to this type (or a related one) and to
/// ``LanguageModelSession/GenerationError``: a program may catch either.
public enum LanguageModelError: LocalizedError, CustomDebugStringConvertible {
    /// The conversation exceeds the context window.
    case contextSizeExceeded(ContextSizeExceeded)
    /// The model has received too many requests.
    case rateLimited(RateLimited)
    /// The prompt or the response is unsafe.
    case guardrailViolation(GuardrailViolation)
    /// The model refuses to respond.
    case refusal(Refusal)
    /// The model does not support a capability that the request requires.
    case unsupportedCapability(UnsupportedCapability)
    /// The transcript contains entries that the model cannot process.
    case unsupportedTranscriptContent(UnsupportedTranscriptContent)
    /// The schema cannot constrain the response.
    case unsupportedGenerationGuide(UnsupportedGenerationGuide)
    /// The model does not support the language.
    case unsupportedLanguageOrLocale(UnsupportedLanguageOrLocale)
    /// The response took too long.
    case timeout(Timeout)

    /// Details of an exceeded context window.
    public struct ContextSizeExceeded: Sendable {
        /// The size of the context window, in tokens.
        public var contextSize: Int
        /// The number of tokens in the request.
        public var tokenCount: Int
        /// A description of the error for developers.
        public var debugDescription: String
        /// Additional values from the executor, for programs that support them.
        public var metadata: [String: any Sendable]

        /// For executors that throw it; both counts are in tokens.
        public init(contextSize: Int, tokenCount: Int, debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.contextSize = contextSize
            self.tokenCount = tokenCount
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// Details of a rate limit.
    public struct RateLimited: Sendable {
        /// When requests are accepted again, if known.
        public var resetDate: Date?
        /// A description of the error for developers.
        public var debugDescription: String
        /// Additional values from the executor, for programs that support them.
        public var metadata: [String: any Sendable]

        /// Creates details, for executors; the date is nil if they do not know when to retry.
        public init(resetDate: Date?, debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.resetDate = resetDate
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// Details of unsafe content.
    public struct GuardrailViolation: Sendable {
        /// A description of the error for developers.
        public var debugDescription: String
        /// Additional values from the executor, for programs that support them.
        public var metadata: [String: any Sendable]

        /// Creates details, for executors that check prompts or responses.
        public init(debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// A refusal, with the model's explanation.
    public struct Refusal: Sendable {
        /// A description of the error for developers.
        public var debugDescription: String
        /// Additional values from the executor, for programs that support them.
        public var metadata: [String: any Sendable]
        let source: RefusalExplanation

        /// Creates a refusal whose explanation is already available, so that no model generates it.
        public init(explanation: String, debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.init(source: .text(explanation), debugDescription: debugDescription, metadata: metadata)
        }

        init(source: RefusalExplanation, debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.source = source
            self.debugDescription = debugDescription
            self.metadata = metadata
        }

        /// The model's explanation of the refusal.
        public nonisolated(nonsending) var explanation: LanguageModelSession.Response<String> {
            get async throws { try await source.stream.collect() }
        }

        /// The model's explanation of the refusal, as a stream.
        public var explanationStream: LanguageModelSession.ResponseStream<String> { source.stream }
    }

    /// Details of a missing capability.
    public struct UnsupportedCapability: Sendable {
        /// The required capability.
        public var capability: LanguageModelCapabilities.Capability
        /// A description of the error for developers.
        public var debugDescription: String
        /// Additional values from the executor, for programs that support them.
        public var metadata: [String: any Sendable]

        /// Creates details. Sessions do this before a request reaches the executor; executors may throw the error too.
        public init(
            capability: LanguageModelCapabilities.Capability, debugDescription: String, metadata: [String: any Sendable] = [:]
        ) {
            self.capability = capability
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// Details of entries that the model cannot process.
    public struct UnsupportedTranscriptContent: Sendable {
        /// The entries that the model cannot process.
        public var unsupportedContent: [Transcript.Entry]
        /// A description of the error for developers.
        public var debugDescription: String
        /// Additional values from the executor, for programs that support them.
        public var metadata: [String: any Sendable]

        /// Creates details, for executors; a program may remove these entries from the transcript.
        public init(
            unsupportedContent: [Transcript.Entry], debugDescription: String, metadata: [String: any Sendable] = [:]
        ) {
            self.unsupportedContent = unsupportedContent
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// Details of a schema that cannot constrain a response.
    public struct UnsupportedGenerationGuide: Sendable {
        /// The name of the schema; nil if unknown.
        public var schemaName: String?
        /// A description of the error for developers.
        public var debugDescription: String
        /// Additional values from the executor, for programs that support them.
        public var metadata: [String: any Sendable]

        /// Creates details, for executors; the description states the cause.
        public init(schemaName: String?, debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.schemaName = schemaName
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// Details of an unsupported language.
    public struct UnsupportedLanguageOrLocale: Sendable {
        /// The detected language of the prompt.
        public var languageCode: Locale.LanguageCode
        /// A description of the error for developers.
        public var debugDescription: String
        /// Additional values from the executor, for programs that support them.
        public var metadata: [String: any Sendable]

        /// Creates details, for executors that check the language of the prompt.
        public init(languageCode: Locale.LanguageCode, debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.languageCode = languageCode
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// Details of a timeout.
    public struct Timeout: Sendable {
        /// A description of the error for developers.
        public var debugDescription: String
        /// Additional values from the executor, for programs that support them.
        public var metadata: [String: any Sendable]

        /// Creates details, for executors that wait for another service, such as a server.
        public init(debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// A description of the error for developers.
    public var debugDescription: String {
        switch self {
        case .contextSizeExceeded(let payload): payload.debugDescription
        case .rateLimited(let payload): payload.debugDescription
        case .guardrailViolation(let payload): payload.debugDescription
        case .refusal(let payload): payload.debugDescription
        case .unsupportedCapability(let payload): payload.debugDescription
        case .unsupportedTranscriptContent(let payload): payload.debugDescription
        case .unsupportedGenerationGuide(let payload): payload.debugDescription
        case .unsupportedLanguageOrLocale(let payload): payload.debugDescription
        case .timeout(let payload): payload.debugDescription
        }
    }

    public var errorDescription: String? { debugDescription }
}

extension LanguageModelSession {
    /// An error of a session, independent of the model.
    public enum Error: LocalizedError, CustomDebugStringConvertible, Equatable, Hashable {
        /// The session is still processing another request.
        case concurrentRequests
        /// The transcript was changed during the request.
        case transcriptMutationWhileResponding

        public var debugDescription: String {
            switch self {
            case .concurrentRequests: "This session is still processing another request; it processes one at a time."
            case .transcriptMutationWhileResponding: "The session's transcript was changed during a request."
            }
        }

        public var errorDescription: String? { debugDescription }
    }

    /// The failure of a tool call.
    public struct ToolCallError: Swift.Error, LocalizedError {
        /// The tool that was called; if no tool has the called name, a placeholder with that name.
        public var tool: any Tool
        /// The error that the tool threw.
        public var underlyingError: any Swift.Error

        /// Creates an error. Sessions do this; a program needs it only in tests.
        public init(tool: any Tool, underlyingError: any Swift.Error) {
            self.tool = tool
            self.underlyingError = underlyingError
        }

        public var errorDescription: String? {
            "The tool “\(tool.name)” failed: \((underlyingError as? any LocalizedError)?.errorDescription ?? "\(underlyingError)")"
        }
    }
}

/// The source of a refusal's explanation.
enum RefusalExplanation: Sendable {
    /// The text is already available.
    case text(String)
    /// A model generates the text from the conversation that it refused.
    case conversation([Transcript.Entry])

    var stream: LanguageModelSession.ResponseStream<String> {
        switch self {
        case .text(let text): LanguageModelSession.ResponseStream(text: text)
        case .conversation(let entries):
            LanguageModelSession(transcript: Transcript(entries: entries)).streamResponse(
                to: "Explain in one sentence why you did not answer that.",
                options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 80))
        }
    }
}
