public import Foundation

/// Why a model did not answer.
///
/// Requests throw errors that are of this family and of ``LanguageModelSession/GenerationError`` at once: a program may catch
/// whichever it knows.
public enum LanguageModelError: LocalizedError, CustomDebugStringConvertible {
    /// The conversation does not fit the context window.
    case contextSizeExceeded(ContextSizeExceeded)
    /// The model has had too many requests.
    case rateLimited(RateLimited)
    /// The prompt or the response is not safe.
    case guardrailViolation(GuardrailViolation)
    /// The model does not want to answer.
    case refusal(Refusal)
    /// The model cannot do what the request needs.
    case unsupportedCapability(UnsupportedCapability)
    /// The transcript contains what the model cannot read.
    case unsupportedTranscriptContent(UnsupportedTranscriptContent)
    /// The response cannot be held to the schema.
    case unsupportedGenerationGuide(UnsupportedGenerationGuide)
    /// The model does not know the language.
    case unsupportedLanguageOrLocale(UnsupportedLanguageOrLocale)
    /// The answer took too long.
    case timeout(Timeout)

    /// By how much the conversation is too long.
    public struct ContextSizeExceeded: Sendable {
        /// Tokens that the context window has room for.
        public var contextSize: Int
        /// Tokens that the request has.
        public var tokenCount: Int
        /// What went wrong, in a sentence for developers.
        public var debugDescription: String
        /// Whatever else the executor says, for programs that know it.
        public var metadata: [String: any Sendable]

        /// For executors that throw it; both counts are in tokens.
        public init(contextSize: Int, tokenCount: Int, debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.contextSize = contextSize
            self.tokenCount = tokenCount
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// When the model can be asked again.
    public struct RateLimited: Sendable {
        /// When requests are answered again, if that is known.
        public var resetDate: Date?
        /// What went wrong, in a sentence for developers.
        public var debugDescription: String
        /// Whatever else the executor says, for programs that know it.
        public var metadata: [String: any Sendable]

        /// For executors that throw it; no date if they do not know when to ask again.
        public init(resetDate: Date?, debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.resetDate = resetDate
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// What was found not to be safe.
    public struct GuardrailViolation: Sendable {
        /// What went wrong, in a sentence for developers.
        public var debugDescription: String
        /// Whatever else the executor says, for programs that know it.
        public var metadata: [String: any Sendable]

        /// For executors that check prompts or responses.
        public init(debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// The model's own words about why it does not answer.
    public struct Refusal: Sendable {
        /// What went wrong, in a sentence for developers.
        public var debugDescription: String
        /// Whatever else the executor says, for programs that know it.
        public var metadata: [String: any Sendable]
        let source: RefusalExplanation

        /// A refusal whose explanation is known: no model is asked for it.
        public init(explanation: String, debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.init(source: .text(explanation), debugDescription: debugDescription, metadata: metadata)
        }

        init(source: RefusalExplanation, debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.source = source
            self.debugDescription = debugDescription
            self.metadata = metadata
        }

        /// Why, in the model's words.
        public nonisolated(nonsending) var explanation: LanguageModelSession.Response<String> {
            get async throws { try await source.stream.collect() }
        }

        /// Why, in the model's words, as they are written.
        public var explanationStream: LanguageModelSession.ResponseStream<String> { source.stream }
    }

    /// What the model cannot do.
    public struct UnsupportedCapability: Sendable {
        /// What the model would need.
        public var capability: LanguageModelCapabilities.Capability
        /// What went wrong, in a sentence for developers.
        public var debugDescription: String
        /// Whatever else the executor says, for programs that know it.
        public var metadata: [String: any Sendable]

        /// Made by sessions before a request reaches the executor; executors may throw it too.
        public init(
            capability: LanguageModelCapabilities.Capability, debugDescription: String, metadata: [String: any Sendable] = [:]
        ) {
            self.capability = capability
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// What the model cannot read.
    public struct UnsupportedTranscriptContent: Sendable {
        /// The entries that the model cannot read.
        public var unsupportedContent: [Transcript.Entry]
        /// What went wrong, in a sentence for developers.
        public var debugDescription: String
        /// Whatever else the executor says, for programs that know it.
        public var metadata: [String: any Sendable]

        /// For executors that throw it; a program may take these entries out of the transcript.
        public init(
            unsupportedContent: [Transcript.Entry], debugDescription: String, metadata: [String: any Sendable] = [:]
        ) {
            self.unsupportedContent = unsupportedContent
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// The schema that a response cannot be held to.
    public struct UnsupportedGenerationGuide: Sendable {
        /// Name of the schema; nil if it is not known.
        public var schemaName: String?
        /// What went wrong, in a sentence for developers.
        public var debugDescription: String
        /// Whatever else the executor says, for programs that know it.
        public var metadata: [String: any Sendable]

        /// For executors that throw it; the description says what is in the way.
        public init(schemaName: String?, debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.schemaName = schemaName
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// The language that the model does not know.
    public struct UnsupportedLanguageOrLocale: Sendable {
        /// The language that the prompt seems to be in.
        public var languageCode: Locale.LanguageCode
        /// What went wrong, in a sentence for developers.
        public var debugDescription: String
        /// Whatever else the executor says, for programs that know it.
        public var metadata: [String: any Sendable]

        /// For executors that look at the prompt's language.
        public init(languageCode: Locale.LanguageCode, debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.languageCode = languageCode
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// What took too long.
    public struct Timeout: Sendable {
        /// What went wrong, in a sentence for developers.
        public var debugDescription: String
        /// Whatever else the executor says, for programs that know it.
        public var metadata: [String: any Sendable]

        /// For executors that wait for something else, such as a server.
        public init(debugDescription: String, metadata: [String: any Sendable] = [:]) {
            self.debugDescription = debugDescription
            self.metadata = metadata
        }
    }

    /// What went wrong, for developers.
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
    /// Why a session did not take a request.
    public enum Error: LocalizedError, CustomDebugStringConvertible, Equatable, Hashable {
        /// It is still answering another one.
        case concurrentRequests
        /// Its transcript was changed meanwhile.
        case transcriptMutationWhileResponding

        public var debugDescription: String {
            switch self {
            case .concurrentRequests: "This session is still answering another request; it takes one at a time."
            case .transcriptMutationWhileResponding: "The session's transcript was changed while it was answering a request."
            }
        }

        public var errorDescription: String? { debugDescription }
    }

    /// A tool that failed.
    public struct ToolCallError: Swift.Error, LocalizedError {
        /// The tool that was called; for a name that no tool has, a stand-in of that name.
        public var tool: any Tool
        /// What the tool threw.
        public var underlyingError: any Swift.Error

        /// Made by sessions; a program needs it in tests only.
        public init(tool: any Tool, underlyingError: any Swift.Error) {
            self.tool = tool
            self.underlyingError = underlyingError
        }

        public var errorDescription: String? {
            "The tool “\(tool.name)” failed: \((underlyingError as? any LocalizedError)?.errorDescription ?? "\(underlyingError)")"
        }
    }
}

/// Where the words of a refusal come from.
enum RefusalExplanation: Sendable {
    /// They are known.
    case text(String)
    /// A model writes them, asked about what it refused.
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
