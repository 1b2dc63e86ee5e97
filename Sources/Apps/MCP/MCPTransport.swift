internal import JSON

/// How messages get to a server and back.
protocol MCPTransport: Sendable {
    /// Sends a request and waits for its answer. If the task is cancelled, the server is told.
    ///
    /// - Parameters:
    ///   - headers: of HTTP, for servers that route by them.
    ///   - patience: the longest time until the answer; nil for the server's.
    /// - Throws: ``MCPFailure`` for an error of the server, ``MCPError``, or `CancellationError`.
    func request(_ method: String, _ params: JSONValue, headers: [String: String], patience: Duration?) async throws -> JSONValue
    /// Sends a message that has no answer.
    func notify(_ method: String, _ params: JSONValue) async throws
    /// Asks for notifications, for as long as the connection lasts. Does nothing where that is not possible.
    func listen(_ params: JSONValue) async
    /// From now on the server is spoken to in a revision.
    func use(_ revision: String) async
    func close() async
}

extension MCPTransport {
    func listen(_ params: JSONValue) async {}
}

/// A server of 2025 does not know the session any more.
struct MCPSessionGone: Error {}

/// What both transports know of a server, and tell of it.
struct MCPPeer: Sendable {
    /// The name for people.
    let name: String
    /// The longest time between a request and its answer, or the last progress of it.
    let patience: Duration
    /// Called for messages that answer no request; the result, if there is one, answers those that are requests.
    let receive: @Sendable (_ method: String, _ params: JSONValue) -> Void
}
