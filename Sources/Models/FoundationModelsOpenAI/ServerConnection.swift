internal import AsyncHTTPClient
internal import Foundation
internal import FoundationModels
internal import JSON
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import Synchronization

/// A connection to a server: sends requests and receives responses as server-sent events. The sessions of a model share it.
final class ServerConnection: Sendable, Hashable {
    let server: OpenAILanguageModel.Server
    private let client: HTTPClient
    /// The parameters that the server has rejected for this model, which others replace.
    let rejectedParameters = Mutex<Set<String>>([])
    /// What the server offers for counting tokens; nil before it was found out.
    let tokenizer = Mutex<ServerTokenizer?>(nil)

    /// The maximum length of a line in bytes; longer lines cannot be events of this protocol.
    private static let maximumLineLength = 4 << 20
    private static let maximumErrorLength = 64 << 10

    init(server: OpenAILanguageModel.Server) {
        self.server = server
        let (seconds, attoseconds) = server.timeout.components
        let readTimeout = TimeAmount.seconds(min(seconds, 86_400)) + .nanoseconds(attoseconds / 1_000_000_000)
        var configuration = HTTPClient.Configuration(timeout: .init(connect: .seconds(10), read: readTimeout))
        configuration.redirectConfiguration = .disallow
        // An unreachable server is reported immediately, without retries.
        configuration.connectionPool.retryConnectionEstablishment = false
        // Requests of many sessions run at the same time: the server decides how many it answers.
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = .max
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    // Connections to the same server do the same.
    static func == (a: ServerConnection, b: ServerConnection) -> Bool { a.server == b.server }
    func hash(into hasher: inout Hasher) { hasher.combine(server) }

    deinit {
        // A client must be shut down. Requests retain the connection, so none is running here.
        client.shutdown { _ in }
    }

    /// Sends a request for a response and calls `receive` with the data of each event.
    ///
    /// - Throws: ``LanguageModelError``, ``OpenAILanguageModel/ServerError``, or `CancellationError`.
    func stream(_ body: JSONValue, receive: (_ data: [UInt8]) throws -> Void) async throws {
        try await post(body, to: Self.address(of: server.url, path: "/chat/completions"), accept: "text/event-stream") {
            response in
            guard response.status == .ok else { throw try await failure(response) }
            var lines = EventLines(maximumLineLength: Self.maximumLineLength)
            for try await buffer in response.body {
                for data in try lines.append(buffer.readableBytesView) { try receive(data) }
            }
            // Some servers do not end their last line.
            for data in try lines.append([UInt8(ascii: "\n")]) { try receive(data) }
        }
    }

    /// Sends a request to a path beside the API, which not all servers have.
    ///
    /// - Parameter path: A path of the server, or of the folder in which the API is.
    /// - Returns: The status, and the JSON of the response; nil if it is none.
    /// - Throws: ``LanguageModelError``, ``OpenAILanguageModel/ServerError``, or `CancellationError`.
    func json(_ body: JSONValue, to path: String) async throws -> (status: Int, body: JSONValue?) {
        try await post(body, to: Self.address(of: server.url, path: path, isBesideAPI: true), accept: "application/json") {
            response in
            var text: [UInt8] = []
            for try await buffer in response.body {
                text.append(contentsOf: buffer.readableBytesView)
                guard text.count <= Self.maximumLineLength else {
                    throw OpenAILanguageModel.ServerError.invalidResponse(
                        reason: "it has more than \(Self.maximumLineLength) bytes")
                }
            }
            // Servers without the path may respond with a page.
            return (Int(response.status.code), try? JSONParser.parse(text))
        }
    }

    private func post<Value>(
        _ body: JSONValue, to address: String?, accept: String, _ read: (HTTPClientResponse) async throws -> Value
    ) async throws -> Value {
        guard let address else { throw OpenAILanguageModel.ServerError.invalidURL(server.url) }
        // Errors name the server without a query, which may have a key.
        let base = server.url.prefix { $0 != "?" && $0 != "#" }.description
        var request = HTTPClientRequest(url: address)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "Accept", value: accept)
        for (name, value) in server.headers { request.headers.replaceOrAdd(name: name, value: value) }
        request.body = .bytes(ByteBuffer(bytes: body.bytes))
        do {
            return try await read(try await client.execute(request, deadline: .distantFuture))
        } catch let error as HTTPClientError {
            switch error {
            case .readTimeout, .connectTimeout, .deadlineExceeded, .writeTimeout:
                throw LanguageModelError.timeout(
                    .init(debugDescription: "The server at \(base) did not respond within \(server.timeout)."))
            case .cancelled: throw CancellationError()
            default: throw OpenAILanguageModel.ServerError.unreachable(url: base, reason: error.description)
            }
        } catch let error as NIOConnectionError {
            throw OpenAILanguageModel.ServerError.unreachable(url: base, reason: "\(error)")
        } catch let error as IOError {
            throw OpenAILanguageModel.ServerError.unreachable(url: base, reason: "\(error)")
        }
    }

    /// The address of requests: the path is appended to that of the base URL, whose query stays at the end. Nil if the base URL is not
    /// one of HTTP with a host.
    ///
    /// - Parameter isBesideAPI: Whether the path replaces `/v1` at the end of the base URL.
    static func address(of base: String, path: String, isBesideAPI: Bool = false) -> String? {
        guard var parts = URLComponents(string: base), parts.scheme == "http" || parts.scheme == "https",
            parts.host?.isEmpty == false
        else { return nil }
        var folder = parts.percentEncodedPath
        if folder.hasSuffix("/") { folder.removeLast() }
        if isBesideAPI, folder.hasSuffix("/v1") { folder.removeLast(3) }
        parts.percentEncodedPath = folder + path
        parts.fragment = nil
        return parts.string
    }

    private func failure(_ response: HTTPClientResponse) async throws -> any Error {
        var text: [UInt8] = []
        for try await buffer in response.body {
            text.append(contentsOf: buffer.readableBytesView.prefix(Self.maximumErrorLength - text.count))
            if text.count >= Self.maximumErrorLength { break }
        }
        // Some servers do not send errors as JSON.
        let body = (try? JSONParser.parse(text)) ?? .string(String(decoding: text, as: UTF8.self))
        let failure = ServerFailure(
            status: Int(response.status.code), body: body, retryAfter: response.headers.first(name: "Retry-After"))
        return failure.unsupportedParameter.map { UnsupportedParameter(name: $0, error: failure.error) } ?? failure.error
    }
}

/// The server does not support a parameter of the request.
struct UnsupportedParameter: Error {
    let name: String
    let error: any Error
}

/// Splits a stream into the data of server-sent events
/// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
package struct EventLines {
    let maximumLineLength: Int
    private var line: [UInt8] = []

    package init(maximumLineLength: Int) { self.maximumLineLength = maximumLineLength }

    package mutating func append(_ bytes: some Collection<UInt8>) throws -> [[UInt8]] {
        var events: [[UInt8]] = []
        var rest = bytes[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            try add(rest[..<end])
            rest = rest[rest.index(after: end)...]
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            if line.starts(with: "data:".utf8) {
                let data = line.dropFirst(5)
                let event = data.first == UInt8(ascii: " ") ? data.dropFirst() : data
                // Events without data are ignored; servers send them to keep the connection open.
                if !event.isEmpty { events.append(Array(event)) }
            }
            line.removeAll(keepingCapacity: true)
        }
        try add(rest)
        return events
    }

    private mutating func add(_ part: some Collection<UInt8>) throws {
        guard line.count + part.count <= maximumLineLength else {
            throw OpenAILanguageModel.ServerError.invalidResponse(reason: "a line has more than \(maximumLineLength) bytes")
        }
        line.append(contentsOf: part)
    }
}

/// Converts an HTTP error response to an error of a session.
struct ServerFailure {
    let status: Int
    let body: JSONValue
    let retryAfter: String?

    private var reason: String {
        let error = body["error"]
        return String(
            (error?["message"]?.string ?? error?.string ?? body["message"]?.string ?? body.string ?? body.text).prefix(500))
    }

    /// A field of the error object, which some servers send as the whole body.
    private func field(_ name: String) -> JSONValue? { body["error"]?[name] ?? body[name] }

    private func integer(_ name: String) -> Int? {
        if case .number(let number)? = field(name) { number.integer } else { nil }
    }

    /// Whether the prompt and the response do not fit the context: `context_length_exceeded` of OpenAI,
    /// `exceed_context_size_error` of llama-server, the parameter `input_tokens` of vLLM. Older versions of vLLM have only
    /// the message to tell this error from others of the same type.
    private var isOverflow: Bool {
        field("code")?.string == "context_length_exceeded" || field("type")?.string == "exceed_context_size_error"
            || field("param")?.string == "input_tokens"
            || field("type")?.string == "BadRequestError" && reason.hasPrefix("This model's maximum context length is")
    }

    /// The name of a parameter that the server does not support for this model.
    var unsupportedParameter: String? {
        if status == 400, field("code")?.string == "unsupported_parameter" { return field("param")?.string }
        // llama-cpp-python and others say which formats they know instead of `json_schema`.
        let isFormat = reason.contains("response_format") && reason.contains("json_object")
        return isFormat && [400, 422, 500].contains(status) ? "response_format" : nil
    }

    var error: any Error {
        switch status {
        case 429:
            let seconds = retryAfter.flatMap { TimeInterval($0) }
            return LanguageModelError.rateLimited(
                .init(resetDate: seconds.map { Date(timeIntervalSinceNow: $0) }, debugDescription: reason))
        case 401, 403: return OpenAILanguageModel.ServerError.unauthorized(reason: reason)
        case 408, 504: return LanguageModelError.timeout(.init(debugDescription: reason))
        case _ where isOverflow:
            // Servers that send no numbers as fields have them in the message: the context size, then the request's size.
            let numbers = reason.split { !$0.isNumber }.compactMap { Int($0) }.filter { $0 > 15 }
            return LanguageModelError.contextSizeExceeded(
                .init(
                    contextSize: integer("n_ctx") ?? numbers.first ?? 0,
                    tokenCount: integer("n_prompt_tokens") ?? numbers.dropFirst().first ?? 0, debugDescription: reason))
        case _ where field("code")?.string == "content_filter":
            return LanguageModelError.guardrailViolation(.init(debugDescription: reason))
        default: return OpenAILanguageModel.ServerError.failed(status: status, reason: reason)
        }
    }
}
