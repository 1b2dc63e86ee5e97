public import Foundation

extension LanguageModelSession {
    /// An error of a request, in the types of the framework's first version. The transcript stays readable after each
    /// of them.
    ///
    /// Thrown errors can be cast both to this type and to ``LanguageModelError`` or a related type; see there.
    @available(*, deprecated, message: "Catch LanguageModelError instead.")
    public enum GenerationError: Swift.Error, LocalizedError {
        /// The conversation exceeds the context window.
        case exceededContextWindowSize(Context)
        /// The model is missing or cannot be used.
        case assetsUnavailable(Context)
        /// The prompt or the response is unsafe.
        case guardrailViolation(Context)
        /// The schema cannot constrain the response: it is invalid, unsupported, or unsatisfiable.
        case unsupportedGuide(Context)
        /// The model does not support the language.
        case unsupportedLanguageOrLocale(Context)
        /// The generated content cannot be converted to the requested type.
        case decodingFailure(Context)
        /// The model has received too many requests.
        case rateLimited(Context)
        /// The session is still processing another request.
        case concurrentRequests(Context)
        /// The model refuses to respond.
        case refusal(Refusal, Context)

        /// Details of the error.
        public struct Context: Sendable {
            /// A description of the error for developers.
            public let debugDescription: String
            /// Creates details for an error that a program constructs itself, for example in tests.
            public init(debugDescription: String) { self.debugDescription = debugDescription }
        }

        /// A refusal, with the model's explanation.
        public struct Refusal: Sendable {
            private let source: RefusalExplanation

            /// Creates a refusal at the end of a conversation. The system model generates its explanation on request.
            public init(transcriptEntries: [Transcript.Entry]) { source = .conversation(transcriptEntries) }

            init(source: RefusalExplanation) { self.source = source }

            /// The model's explanation of the refusal.
            public nonisolated(nonsending) var explanation: LanguageModelSession.Response<String> {
                get async throws { try await source.stream.collect() }
            }

            /// The model's explanation of the refusal, as a stream.
            public var explanationStream: LanguageModelSession.ResponseStream<String> { source.stream }
        }

        private var context: Context {
            switch self {
            case .exceededContextWindowSize(let context), .assetsUnavailable(let context), .guardrailViolation(let context),
                .unsupportedGuide(let context), .unsupportedLanguageOrLocale(let context), .decodingFailure(let context),
                .rateLimited(let context), .concurrentRequests(let context), .refusal(_, let context):
                context
            }
        }

        public var errorDescription: String? { context.debugDescription }

        public var failureReason: String? {
            switch self {
            case .exceededContextWindowSize: "The session's context window is full."
            case .assetsUnavailable: "The model is not available."
            case .guardrailViolation: "The prompt or the response is unsafe."
            case .unsupportedGuide: "The schema cannot constrain the response."
            case .unsupportedLanguageOrLocale: "The model does not support this language."
            case .decodingFailure: "The model's output could not be used."
            case .rateLimited: "There were too many requests."
            case .concurrentRequests: "The session is still processing another request."
            case .refusal: "The model refuses to respond."
            }
        }

        public var recoverySuggestion: String? {
            switch self {
            case .exceededContextWindowSize: "Start a new session with a shorter transcript, or request less at a time."
            case .assetsUnavailable:
                "Check the model's availability before a request. Without a model, install one, or use a GGUF file or a server instead."
            case .guardrailViolation: "Rephrase the prompt."
            case .unsupportedGuide: "Change the part of the schema that the description names."
            case .unsupportedLanguageOrLocale: "Use a language that the model supports."
            case .decodingFailure: "Retry the request, or allow a longer response."
            case .rateLimited: "Wait before the next request."
            case .concurrentRequests: "Wait until isResponding is false, or use a second session."
            case .refusal: "Rephrase the prompt; see the refusal's explanation."
            }
        }
    }
}
