internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import JSON
internal import NIOCore

/// A request on its way through the server, and what is known of its client.
struct Exchange: Sendable {
    let request: Request
    /// What the path has in the places of `{…}`.
    let parameters: [String: String]
    /// Identifies the request in logs and in the reply.
    let id: String
    /// The name of the client's key; its address if it has none.
    let client: String
    /// The name of the client's key; empty if it has none. Responses and conversations belong to it.
    let owner: String
    var channel: (any Channel)?
    let style: APIStyle
    let reader: RequestBodyReader

    func body() async throws -> JSONValue { try await reader.json(of: request) }

    /// - Throws: ``RequestError``
    func parameter(_ name: String) throws -> String {
        guard let text = parameters[name], let decoded = text.removingPercentEncoding, !decoded.isEmpty else {
            throw RequestError(404, code: "not_found", "There is nothing at this address.")
        }
        return decoded
    }
}

/// The form of errors and headers of a family of clients.
enum APIStyle: Sendable {
    case openAI, anthropic, ollama
    /// OpenAI's, with what clients of System One read.
    case decisions

    func body(of error: RequestError) -> JSONValue {
        switch self {
        case .openAI: return .object([.init("error", error.object)])
        case .ollama: return .object([.init("error", .string(error.message))])
        case .decisions:
            var error = error
            let place = error.details.first { $0.name == "place" }?.value
            error.details.removeAll { $0.name == "place" }
            let detail: JSONValue =
                place.map { place in
                    .array([
                        .object([
                            .init("loc", place), .init("msg", .string(error.message)),
                            .init("type", .string(error.code ?? error.type)),
                        ])
                    ])
                } ?? .string(error.message)
            return .object([.init("error", error.object), .init("detail", detail)])
        case .anthropic:
            let type =
                switch error.status {
                case 401: "authentication_error"
                case 403: "permission_error"
                case 404: "not_found_error"
                case 413: "request_too_large"
                case 429: "rate_limit_error"
                case 503, 529: "overloaded_error"
                case 500...: "api_error"
                default: "invalid_request_error"
                }
            // Agents look for these words, and make the conversation shorter.
            let numbers = error.details.compactMap(\.value.integer)
            let message =
                error.code == "context_length_exceeded" && numbers.count == 2
                ? "prompt is too long: \(numbers[0]) tokens > \(numbers[1]) maximum" : error.message
            let members: [JSONValue.Member] =
                [.init("type", .string(type)), .init("message", .string(message))]
                + (error.param.map { [.init("param", .string($0))] } ?? [])
            return .object([.init("type", .string("error")), .init("error", .object(members))])
        }
    }
}

extension Exchange {
    /// Does work that is of no use to anybody when the client has gone away.
    func whileConnected<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let work = Task { try await body() }
        let connection = if let channel { await ClientConnection.of(channel) } else { ClientConnection?.none }
        let action = connection?.whenGone { work.cancel() }
        defer { if let action { connection?.removeAction(action) } }
        return try await withTaskCancellationHandler {
            try await work.value
        } onCancel: {
            work.cancel()
        }
    }

    /// A reply that may be large: a client that does not read it is cut.
    func large(_ value: JSONValue, stall: Duration) -> Response {
        var headers = HTTPFields()
        headers[.contentType] = "application/json"
        let bytes = value.bytes
        let channel = channel
        let body = ResponseBody(contentLength: bytes.count) { writer in
            let watch = WriteWatch(channel, maximumTime: stall)
            var output = writer
            for start in stride(from: 0, to: bytes.count, by: 1 << 16) {
                let part = ByteBuffer(bytes: bytes[start..<min(start + 1 << 16, bytes.count)])
                try await watch.during { try await output.write(part) }
            }
            try await output.finish(nil)
        }
        return Response(status: .ok, headers: headers, body: body)
    }
}

extension Response {
    static func json(_ value: JSONValue, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) -> Response {
        var headers = headers
        headers[.contentType] = "application/json"
        return Response(status: status, headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: value.bytes)))
    }

    static func error(_ error: RequestError, _ style: APIStyle) -> Response {
        var headers = HTTPFields()
        if let seconds = error.retryAfter { headers[.retryAfter] = "\(seconds)" }
        if error.status == 401 { headers[.wwwAuthenticate] = "Bearer" }
        // Clients of OpenAI's try faults again, which cost the same again and end in the same way.
        if error.status == 500 { headers[.shouldRetry] = "false" }
        return json(style.body(of: error), status: .init(code: error.status), headers: headers)
    }
}

extension HTTPField.Name {
    // Names of letters and dashes, which are always valid.
    private static func known(_ name: String) -> HTTPField.Name { HTTPField.Name(name) ?? .contentType }

    static let requestID = known("x-request-id")
    static let shouldRetry = known("x-should-retry")
    static let apiKey = known("x-api-key")
    static let accelBuffering = known("x-accel-buffering")
    static let furtherHost = known("host")
    static let fetchSite = known("sec-fetch-site")
    static let privateNetworkRequest = known("access-control-request-private-network")
    static let privateNetworkAllowed = known("access-control-allow-private-network")
    static let skipped = known("x-fm-skipped")
}
