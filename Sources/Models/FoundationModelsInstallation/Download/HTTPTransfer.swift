internal import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// One request, whose response is passed on in the parts in which it arrives.
///
/// The variables `https_proxy`, `http_proxy` and `no_proxy` name proxies: on Linux, Foundation's requests are made by libcurl.
final class HTTPTransfer: NSObject, URLSessionDataDelegate, Sendable {
    private struct State {
        var response: HTTPURLResponse?
        /// What the receiver threw.
        var problem: (any Error)?
        var isCancelled = false
        var continuation: CheckedContinuation<Void, any Error>?
    }

    private let receive: @Sendable (HTTPURLResponse, Data) throws -> Void
    private let state = Mutex(State())

    private init(_ receive: @escaping @Sendable (HTTPURLResponse, Data) throws -> Void) { self.receive = receive }

    /// - Parameter receive: Called for each part of the body, one after the other. If it throws, the transfer ends.
    /// - Returns: The response.
    /// - Throws: What `receive` throws; ``HTTPFailure`` if there was no response, or it was cut; or `CancellationError`.
    static func run(
        _ request: URLRequest, receive: @escaping @Sendable (HTTPURLResponse, Data) throws -> Void
    ) async throws -> HTTPURLResponse {
        let transfer = HTTPTransfer(receive)
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        let session = URLSession(configuration: configuration, delegate: transfer, delegateQueue: nil)
        // The session keeps its delegate until it is invalidated.
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: request)
        do {
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let isCancelled = transfer.state.withLock { state in
                        if !state.isCancelled { state.continuation = continuation }
                        return state.isCancelled
                    }
                    if isCancelled { continuation.resume(throwing: CancellationError()) } else { task.resume() }
                }
            } onCancel: {
                // The task may be cancelled before it has begun; its delegate is then not called everywhere.
                let continuation = transfer.state.withLock { state in
                    state.isCancelled = true
                    return state.continuation.take()
                }
                task.cancel()
                continuation?.resume(throwing: CancellationError())
            }
        } catch {
            try Task.checkCancellation()
            let (response, problem) = transfer.state.withLock { ($0.response, $0.problem) }
            if let problem { throw problem }
            // A response with an error status may have been ended here, or have no body that can be read.
            if let response, !isSuccess(response) { return response }
            throw HTTPFailure(error, hasResponse: response != nil)
        }
        let (response, problem) = transfer.state.withLock { ($0.response, $0.problem) }
        if let problem { throw problem }
        guard let response else { throw HTTPFailure(URLError(.badServerResponse), hasResponse: false) }
        return response
    }

    private static func isSuccess(_ response: HTTPURLResponse) -> Bool { (200..<300).contains(response.statusCode) }

    /// A token is for one server only: a request that is redirected to another one does not have it.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        var request = request
        if let from = response.url ?? task.originalRequest?.url, let to = request.url, !from.hasOrigin(of: to) {
            request.setValue(nil, forHTTPHeaderField: "Authorization")
        }
        completionHandler(request)
    }

    /// A request for a password is an answer. Without this, some implementations wait forever.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        state.withLock { $0.response = challenge.failureResponse as? HTTPURLResponse ?? $0.response }
        let isForCertificate = Self.certificateMethods.contains(challenge.protectionSpace.authenticationMethod)
        completionHandler(isForCertificate ? .performDefaultHandling : .cancelAuthenticationChallenge, nil)
    }

    /// The values of Foundation's constants, which are not available on Linux.
    private static let certificateMethods: Set<String> = [
        "NSURLAuthenticationMethodServerTrust", "NSURLAuthenticationMethodClientCertificate",
    ]

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let response = dataTask.response as? HTTPURLResponse
        let goesOn = state.withLock { state in
            state.response = response ?? state.response
            return state.problem == nil && !state.isCancelled
        }
        guard goesOn, let response else { return }
        // The text of an error is not read: it may be endless.
        if !Self.isSuccess(response) { return dataTask.cancel() }
        do { try receive(response, data) } catch {
            state.withLock { $0.problem = error }
            dataTask.cancel()
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let continuation = state.withLock { state in
            state.response = task.response as? HTTPURLResponse ?? state.response
            return state.continuation.take()
        }
        if let error { continuation?.resume(throwing: error) } else { continuation?.resume() }
    }
}

extension URL {
    /// Whether an address has the same scheme, host and port: the same server may see what is for the other address.
    func hasOrigin(of other: URL) -> Bool {
        func port(_ url: URL) -> Int? { url.port ?? ["http": 80, "https": 443][url.scheme?.lowercased() ?? ""] }
        return scheme?.lowercased() == other.scheme?.lowercased() && host?.lowercased() == other.host?.lowercased()
            && port(self) == port(other)
    }
}

/// Why there is no response, or no complete one.
struct HTTPFailure: Error {
    let reason: String
    /// Whether the same request may succeed at once: the connection was made, and lost.
    let isCut: Bool

    init(_ error: any Error, hasResponse: Bool) {
        let code = (error as? URLError)?.code ?? URLError.Code(rawValue: (error as NSError).code)
        isCut = hasResponse || [.networkConnectionLost, .badServerResponse, .timedOut].contains(code)
        reason =
            switch code {
            case .cannotFindHost, .dnsLookupFailed: "the host name was not found; is there a network?"
            case .cannotConnectToHost, .notConnectedToInternet: "the server could not be reached; is there a network?"
            case .timedOut: "the connection timed out"
            case .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate,
                .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid:
                "the server's certificate was not accepted"
            case .httpTooManyRedirects: "the server redirects without end"
            case .unsupportedURL, .badURL: "it is not a web address"
            case .networkConnectionLost, .badServerResponse: "the connection was cut"
            case _ where hasResponse: "the connection was cut"
            default: "the connection failed: \(error.localizedDescription)"
            }
    }

    /// What an error status means.
    ///
    /// - Parameter hasToken: Whether the request had a token of the user.
    static func words(_ status: Int, hasToken: Bool) -> String {
        switch status {
        case 401, 403:
            hasToken
                ? "access was refused: HF_TOKEN is not valid, or its account has not accepted the model's terms"
                : "it is private, or you have to accept its terms: do so on its page, then set HF_TOKEN to an access token"
        case 404: "there is no such file or repository"
        case 429: "too many requests; wait a few minutes, or set HF_TOKEN"
        case 500...: "the server failed (HTTP \(status)); try again later"
        default: "the server rejected the request (HTTP \(status))"
        }
    }
}
