public import Foundation

extension LanguageModelSession {
    /// Why a request failed. The transcript stays readable after each of them.
    public enum GenerationError: Swift.Error, LocalizedError {
        /// The conversation does not fit the context window any more.
        case exceededContextWindowSize(Context)
        /// The model is missing or cannot be used.
        case assetsUnavailable(Context)
        /// What the model generated is not what was asked for.
        case decodingFailure(Context)
        /// What the response must be cannot be used: it is not valid, not supported, or nothing satisfies it.
        case unsupportedGuide(Context)
        /// The session is still answering another request.
        case concurrentRequests(Context)

        public struct Context: Sendable {
            public let debugDescription: String
            public init(debugDescription: String) { self.debugDescription = debugDescription }
        }

        private var context: Context {
            switch self {
            case .exceededContextWindowSize(let context), .assetsUnavailable(let context), .unsupportedGuide(let context),
                .decodingFailure(let context), .concurrentRequests(let context):
                context
            }
        }

        public var errorDescription: String? { context.debugDescription }

        public var failureReason: String? {
            switch self {
            case .exceededContextWindowSize: "The session's context window is full."
            case .assetsUnavailable: "The model is not available."
            case .decodingFailure: "The model's output could not be used."
            case .unsupportedGuide: "The response cannot be held to this schema."
            case .concurrentRequests: "The session is still answering another request."
            }
        }

        public var recoverySuggestion: String? {
            switch self {
            case .exceededContextWindowSize: "Start a new session with a shorter transcript, or ask for less at a time."
            case .assetsUnavailable: "Fetch the model with “fm model pull”, or set FM_MODEL to a GGUF file."
            case .decodingFailure: "Fetch the model again with “fm model pull”."
            case .unsupportedGuide: "Change the part of the schema that the description names."
            case .concurrentRequests: "Wait until isResponding is false, or use a second session."
            }
        }
    }
}
