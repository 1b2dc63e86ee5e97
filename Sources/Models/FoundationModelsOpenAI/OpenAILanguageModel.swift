public import Foundation
public import FoundationModels
internal import Synchronization
public import TokenCounts

/// A language model on a server with OpenAI's chat completions API: vLLM, llama-server, Ollama, or a commercial
/// service.
///
/// ```swift
/// let model = OpenAILanguageModel(name: "qwen3-8b", url: "http://localhost:8000/v1", contextSize: 32_768)
/// let session = LanguageModelSession(model: model, tools: [Weather()])
/// ```
///
/// Programs written for the system model can use it without other changes: text, streaming, structured responses,
/// tools. Protocol: https://platform.openai.com/docs/api-reference/chat
///
/// Tokens are counted by the tokenizer of the server if it offers one: vLLM (`/tokenize`), llama-server (`/apply-template` and
/// `/tokenize`), and, for the texts of a request, llama-cpp-python (`/extras/tokenize/count`). For other servers, and while a server does
/// not respond, `TokenEstimate` gives an upper estimate. What a server reports after a response (`prompt_tokens`) is the usage of the
/// response; it changes no estimate.
public struct OpenAILanguageModel: TokenCounting {
    /// The address of a server and the parameters of each request.
    struct Server: Hashable, Sendable {
        var model: String
        /// The base URL, usually ending in `/v1`; `/chat/completions` is appended to its path.
        var url: String
        var headers: [String: String]
        var timeout: Duration
    }

    private let connection: ServerConnection
    public let capabilities: LanguageModelCapabilities
    public let contextSize: Int

    /// - Parameters:
    ///   - name: The name of the model on the server.
    ///   - url: The base URL of the server's API, such as `http://localhost:8000/v1`.
    ///   - apiKey: The API key, sent as a bearer token.
    ///   - headers: Additional HTTP headers of each request.
    ///   - capabilities: The capabilities of the model.
    ///   - timeout: The maximum time without data from the server, before and during a response.
    ///   - contextSize: The maximum number of tokens of a request and its response together. Servers do not report it: state it if it is
    ///     larger or smaller than 4,096. Conversations and search results are planned by it.
    public init(
        name: String, url: String, apiKey: String? = nil, headers: [String: String] = [:],
        capabilities: LanguageModelCapabilities = .init([.guidedGeneration, .toolCalling]), timeout: Duration = .seconds(120),
        contextSize: Int = 4096
    ) {
        var headers = headers
        if let apiKey { headers["Authorization"] = "Bearer \(apiKey)" }
        connection = ServerConnection(server: Server(model: name, url: url, headers: headers, timeout: timeout))
        self.capabilities = capabilities
        self.contextSize = contextSize
    }

    public var executorConfiguration: Executor.Configuration { Executor.Configuration(connection: connection) }

    /// The number of tokens that the server counts, or an upper estimate. A few tokens too many are counted if the entries do not end with
    /// a prompt.
    ///
    /// - Throws: `CancellationError`, or `LanguageModelError` if an image cannot be read.
    public nonisolated(nonsending) func tokenCount(
        for transcriptEntries: some Collection<Transcript.Entry>
    ) async throws -> Int {
        try await connection.tokenCount(of: Transcript(entries: transcriptEntries))
    }

    /// Uses this model for all requests to `PrivateCloudComputeLanguageModel`, which is available after this call.
    ///
    /// - Parameters:
    ///   - contextSize: The maximum number of tokens that the server accepts.
    ///   - languages: The languages that the model supports.
    public func answerForPrivateCloudCompute(
        contextSize: Int = 32_768, languages: Set<Locale.Language> = [Locale.Language(identifier: "en")]
    ) {
        PrivateCloudComputeLanguageModel.substitute = .init(model: self, contextSize: contextSize, languages: languages)
    }

    /// An error of a server or its connection that `LanguageModelError` has no case for.
    public enum ServerError: LocalizedError, Equatable {
        /// The URL of the server is not an HTTP or HTTPS URL with a host.
        case invalidURL(String)
        /// The connection to the server failed.
        case unreachable(url: String, reason: String)
        /// The server rejected the API key (HTTP status 401 or 403).
        case unauthorized(reason: String)
        /// The server responded with another HTTP error status.
        case failed(status: Int, reason: String)
        /// The response does not conform to the protocol.
        case invalidResponse(reason: String)

        public var errorDescription: String? {
            switch self {
            case .invalidURL(let url): "“\(url)” is not a valid server URL."
            case .unreachable(let url, let reason): "The server at \(url) cannot be reached: \(reason)"
            case .unauthorized(let reason): "The server rejected the API key: \(reason)"
            case .failed(let status, let reason): "The server responded with status \(status): \(reason)"
            case .invalidResponse(let reason): "The response of the server is invalid: \(reason)"
            }
        }
    }

    /// Sends the requests of sessions to the server.
    public struct Executor: LanguageModelExecutor {
        /// The model that this executor runs.
        public typealias Model = OpenAILanguageModel

        /// The address of the server and the parameters of each request.
        public struct Configuration: Hashable, Sendable {
            let connection: ServerConnection
        }

        private let connection: ServerConnection

        /// Called by sessions. The first connection to the server is made by the first request.
        public init(configuration: Configuration) { connection = configuration.connection }

        /// - Throws: `LanguageModelError`, ``OpenAILanguageModel/ServerError``, or `CancellationError`.
        public nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: OpenAILanguageModel,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            var requests = RequestTranslator(model: connection.server.model)
            for name in connection.rejectedParameters.withLock({ $0 }) { _ = requests.replace(parameter: name) }
            var translator = EventTranslator(isGuided: request.schema != nil)
            while true {
                do {
                    try await connection.stream(try requests.body(for: request)) { data in
                        for event in try translator.events(for: data) { channel.emit(event) }
                    }
                    break
                } catch let rejection as UnsupportedParameter {
                    guard requests.replace(parameter: rejection.name) else { throw rejection.error }
                    connection.rejectedParameters.withLock { _ = $0.insert(rejection.name) }
                }
            }
            for event in try translator.finish() { channel.emit(event) }
        }
    }
}
