public import Foundation
public import FoundationModels

/// A language model on a server that speaks OpenAI's chat completions: vLLM, llama-server, Ollama, or a commercial one.
///
/// ```swift
/// let model = OpenAILanguageModel(name: "qwen3-8b", url: "http://localhost:8000/v1")
/// let session = LanguageModelSession(model: model, tools: [Weather()])
/// ```
///
/// Programs written for the system model use it without another change: text, streaming, values held to schemas, tools.
/// Protocol: https://platform.openai.com/docs/api-reference/chat
public struct OpenAILanguageModel: LanguageModel {
    /// What a server is told with each request, and how it is reached.
    struct Server: Hashable, Sendable {
        var model: String
        /// Ends in `/v1` as a rule; `/chat/completions` is added.
        var url: String
        var headers: [String: String]
        var timeout: Duration
    }

    let server: Server
    public let capabilities: LanguageModelCapabilities

    /// - Parameters:
    ///   - name: What the server calls the model.
    ///   - url: Where the server's API begins, such as `http://localhost:8000/v1`.
    ///   - apiKey: Sent as a bearer token.
    ///   - headers: Sent with each request.
    ///   - capabilities: What the model can do.
    ///   - timeout: How long the server may take to say the next thing.
    public init(
        name: String, url: String, apiKey: String? = nil, headers: [String: String] = [:],
        capabilities: LanguageModelCapabilities = .init([.guidedGeneration, .toolCalling]), timeout: Duration = .seconds(120)
    ) {
        var headers = headers
        if let apiKey { headers["Authorization"] = "Bearer \(apiKey)" }
        server = Server(model: name, url: url, headers: headers, timeout: timeout)
        self.capabilities = capabilities
    }

    public var executorConfiguration: Executor.Configuration { Executor.Configuration(server: server) }

    /// Has this model answer wherever the program asks `PrivateCloudComputeLanguageModel`, which is available from then on.
    ///
    /// - Parameters:
    ///   - contextSize: Tokens that the server takes at most.
    ///   - languages: The languages that the model knows.
    public func answerForPrivateCloudCompute(
        contextSize: Int = 32_768, languages: Set<Locale.Language> = [Locale.Language(identifier: "en")]
    ) {
        PrivateCloudComputeLanguageModel.substitute = .init(model: self, contextSize: contextSize, languages: languages)
    }

    /// Why a server did not answer, where ``LanguageModelError`` has no word for it.
    public enum ServerError: LocalizedError, Equatable {
        /// The address is none.
        case invalidURL(String)
        /// The server cannot be reached.
        case unreachable(url: String, reason: String)
        /// The key is not accepted.
        case unauthorized(reason: String)
        /// The server refuses the request or fails.
        case failed(status: Int, reason: String)
        /// What the server says is not the protocol.
        case invalidResponse(reason: String)

        public var errorDescription: String? {
            switch self {
            case .invalidURL(let url): "“\(url)” is not the address of a server."
            case .unreachable(let url, let reason): "The server at \(url) cannot be reached: \(reason)"
            case .unauthorized(let reason): "The server does not accept the key: \(reason)"
            case .failed(let status, let reason): "The server answered with status \(status): \(reason)"
            case .invalidResponse(let reason): "The server's answer cannot be understood: \(reason)"
            }
        }
    }

    /// Talks to the server.
    public struct Executor: LanguageModelExecutor {
        /// The model whose requests it answers.
        public typealias Model = OpenAILanguageModel

        /// The server and how it is reached.
        public struct Configuration: Hashable, Sendable {
            let server: Server
        }

        private let server: Server
        private let connection: ServerConnection

        /// Called by sessions; the server is not spoken to before the first request.
        public init(configuration: Configuration) {
            server = configuration.server
            connection = ServerConnection(server: server)
        }

        /// - Throws: ``LanguageModelError``, ``OpenAILanguageModel/ServerError``, or `CancellationError`.
        public nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: OpenAILanguageModel,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            let body = try RequestTranslator(model: server.model).body(for: request)
            var translator = EventTranslator()
            try await connection.stream(body) { data in
                for event in try translator.events(for: data) { channel.emit(event) }
            }
            for event in try translator.finish() { channel.emit(event) }
        }
    }
}
