internal import AsyncHTTPClient
internal import Foundation
internal import FoundationModels
internal import Grammar
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// A connection to a server: sends requests and receives responses as server-sent events.
final class ServerConnection: Sendable {
    private let server: OpenAILanguageModel.Server
    private let client: HTTPClient

    /// The maximum length of a line in bytes; longer lines cannot be events of this protocol.
    private static let greatestLine = 4 << 20
    private static let greatestError = 64 << 10

    init(server: OpenAILanguageModel.Server) {
        self.server = server
        let (seconds, attoseconds) = server.timeout.components
        let patience = TimeAmount.seconds(min(seconds, 86_400)) + .nanoseconds(attoseconds / 1_000_000_000)
        var configuration = HTTPClient.Configuration(timeout: .init(connect: .seconds(10), read: patience))
        configuration.redirectConfiguration = .disallow
        // An unreachable server is reported immediately, without retries.
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    deinit {
        // A client must be shut down. Requests retain the connection, so none is running here.
        client.shutdown { _ in }
    }

    /// Sends a request and calls `receive` with the data of each event.
    ///
    /// - Throws: ``LanguageModelError``, ``OpenAILanguageModel/ServerError``, or `CancellationError`.
    func stream(_ body: JSONValue, receive: (_ data: [UInt8]) throws -> Void) async throws {
        let base = server.url.hasSuffix("/") ? String(server.url.dropLast()) : server.url
        guard let url = URL(string: base), url.scheme == "http" || url.scheme == "https", url.host != nil else {
            throw OpenAILanguageModel.ServerError.invalidURL(server.url)
        }
        var request = HTTPClientRequest(url: base + "/chat/completions")
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "Accept", value: "text/event-stream")
        for (name, value) in server.headers { request.headers.replaceOrAdd(name: name, value: value) }
        request.body = .bytes(ByteBuffer(bytes: body.bytes))
        do {
            let response = try await client.execute(request, deadline: .distantFuture)
            guard response.status == .ok else { throw try await failure(response) }
            var lines = EventLines(greatestLine: Self.greatestLine)
            for try await buffer in response.body {
                for data in try lines.append(buffer.readableBytesView) { try receive(data) }
            }
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

    private func failure(_ response: HTTPClientResponse) async throws -> any Error {
        var text: [UInt8] = []
        for try await buffer in response.body {
            text.append(contentsOf: buffer.readableBytesView.prefix(Self.greatestError - text.count))
            if text.count >= Self.greatestError { break }
        }
        // Some servers do not send errors as JSON.
        let body = (try? JSONParser.parse(text)) ?? .string(String(decoding: text, as: UTF8.self))
        return ServerFailure(
            status: Int(response.status.code), body: body, retryAfter: response.headers.first(name: "Retry-After")
        ).error
    }
}

/// Splits a stream into the data of server-sent events
/// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
struct EventLines {
    let greatestLine: Int
    private var line: [UInt8] = []

    init(greatestLine: Int) { self.greatestLine = greatestLine }

    mutating func append(_ bytes: some Sequence<UInt8>) throws -> [[UInt8]] {
        var events: [[UInt8]] = []
        for byte in bytes {
            guard byte == UInt8(ascii: "\n") else {
                line.append(byte)
                guard line.count <= greatestLine else {
                    throw OpenAILanguageModel.ServerError.invalidResponse(reason: "a line has more than \(greatestLine) bytes")
                }
                continue
            }
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            if line.starts(with: "data:".utf8) {
                let data = line.dropFirst(5)
                let event = data.first == UInt8(ascii: " ") ? data.dropFirst() : data
                // Events without data are ignored; servers send them to keep the connection open.
                if !event.isEmpty { events.append(Array(event)) }
            }
            line.removeAll(keepingCapacity: true)
        }
        return events
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

    var error: any Error {
        let code = body["error"]?["code"]?.string ?? body["error"]?["type"]?.string ?? ""
        switch status {
        case 429:
            let seconds = retryAfter.flatMap { TimeInterval($0) }
            return LanguageModelError.rateLimited(
                .init(resetDate: seconds.map { Date(timeIntervalSinceNow: $0) }, debugDescription: reason))
        case 401, 403: return OpenAILanguageModel.ServerError.unauthorized(reason: reason)
        case 408, 504: return LanguageModelError.timeout(.init(debugDescription: reason))
        case _
        where code == "context_length_exceeded" || reason.contains("maximum context length")
            || reason.contains("exceeds the available context size"):
            // The messages contain the context size first, then the number of requested tokens.
            let numbers = reason.split { !$0.isNumber }.compactMap { Int($0) }.filter { $0 > 15 }
            return LanguageModelError.contextSizeExceeded(
                .init(contextSize: numbers.first ?? 0, tokenCount: numbers.dropFirst().first ?? 0, debugDescription: reason))
        case _ where code == "content_filter":
            return LanguageModelError.guardrailViolation(.init(debugDescription: reason))
        default: return OpenAILanguageModel.ServerError.failed(status: status, reason: reason)
        }
    }
}
