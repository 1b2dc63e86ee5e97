public import Foundation

extension LanguageModelSession {
    /// Why a request failed, in the words of the framework's first version. The transcript stays readable after each of them.
    ///
    /// What is thrown is also a ``LanguageModelError`` or its like, see there.
    @available(*, deprecated, message: "Catch LanguageModelError instead.")
    public enum GenerationError: Swift.Error, LocalizedError {
        /// The conversation does not fit the context window any more.
        case exceededContextWindowSize(Context)
        /// The model is missing or cannot be used.
        case assetsUnavailable(Context)
        /// The prompt or the response is not safe.
        case guardrailViolation(Context)
        /// The response cannot be held to the schema: it is not valid, not supported, or nothing satisfies it.
        case unsupportedGuide(Context)
        /// The model does not know the language.
        case unsupportedLanguageOrLocale(Context)
        /// What the model generated is not what was asked for.
        case decodingFailure(Context)
        /// The model has had too many requests.
        case rateLimited(Context)
        /// The session is still answering another request.
        case concurrentRequests(Context)
        /// The model does not want to answer.
        case refusal(Refusal, Context)

        /// What went wrong, for developers.
        public struct Context: Sendable {
            /// What went wrong, in a sentence for developers.
            public let debugDescription: String
            /// For errors that a program makes itself, as in tests.
            public init(debugDescription: String) { self.debugDescription = debugDescription }
        }

        /// The model's own words about why it does not answer.
        public struct Refusal: Sendable {
            private let source: RefusalExplanation

            /// A refusal at the end of a conversation; asked why, the system model explains it.
            public init(transcriptEntries: [Transcript.Entry]) { source = .conversation(transcriptEntries) }

            init(source: RefusalExplanation) { self.source = source }

            /// Why, in the model's words.
            public nonisolated(nonsending) var explanation: LanguageModelSession.Response<String> {
                get async throws { try await source.stream.collect() }
            }

            /// Why, in the model's words, as they are written.
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
            case .guardrailViolation: "The prompt or the response is not safe."
            case .unsupportedGuide: "The response cannot be held to this schema."
            case .unsupportedLanguageOrLocale: "The model does not know this language."
            case .decodingFailure: "The model's output could not be used."
            case .rateLimited: "There were too many requests."
            case .concurrentRequests: "The session is still answering another request."
            case .refusal: "The model does not want to answer."
            }
        }

        public var recoverySuggestion: String? {
            switch self {
            case .exceededContextWindowSize: "Start a new session with a shorter transcript, or ask for less at a time."
            case .assetsUnavailable: "Fetch the model with “fm model pull”, or set FM_MODEL to a GGUF file."
            case .guardrailViolation: "Ask in other words."
            case .unsupportedGuide: "Change the part of the schema that the description names."
            case .unsupportedLanguageOrLocale: "Ask in a language that the model supports."
            case .decodingFailure: "Ask again, or allow a longer response."
            case .rateLimited: "Wait a little before the next request."
            case .concurrentRequests: "Wait until isResponding is false, or use a second session."
            case .refusal: "Ask in other words; the refusal explains itself."
            }
        }
    }
}
