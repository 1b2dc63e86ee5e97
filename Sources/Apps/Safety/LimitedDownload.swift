internal import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A download that ends as soon as it is larger than its limit, whatever length the server has announced.
final class LimitedDownload: NSObject, URLSessionDataDelegate, Sendable {
    private struct State {
        var data = Data()
        var status: Int?
        var isTooLarge = false
        var isCancelled = false
        var continuation: CheckedContinuation<Void, any Error>?
    }

    private let maximumBytes: Int
    private let state = Mutex(State())

    private init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

    /// - Returns: the data, and the status of the response; no data if it is larger than the limit.
    /// - Throws: an error of Foundation if the server cannot be reached, or `CancellationError`.
    static func data(from url: URL, maximumBytes: Int) async throws -> (data: Data?, status: Int?) {
        let download = LimitedDownload(maximumBytes: maximumBytes)
        let session = URLSession(configuration: .ephemeral, delegate: download, delegateQueue: nil)
        // The session keeps its delegate until it is invalidated.
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: url)
        do {
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let isCancelled = download.state.withLock { state in
                        if !state.isCancelled { state.continuation = continuation }
                        return state.isCancelled
                    }
                    if isCancelled { continuation.resume(throwing: CancellationError()) } else { task.resume() }
                }
            } onCancel: {
                // The task may be cancelled before it has begun; its delegate is then not called everywhere.
                let continuation = download.state.withLock { state in
                    state.isCancelled = true
                    return state.continuation.take()
                }
                task.cancel()
                continuation?.resume(throwing: CancellationError())
            }
        } catch {
            try Task.checkCancellation()
            // A response with an error status has been cancelled here, or has no body that can be read.
            let isAnswer = download.state.withLock { $0.isTooLarge || $0.status.map { $0 != 200 } ?? false }
            if !isAnswer { throw error }
        }
        return download.state.withLock { ($0.isTooLarge ? nil : $0.data, $0.status) }
    }

    /// A request for a password is an answer unless the address contains it. Without this, some implementations wait forever.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        state.withLock { $0.status = (challenge.failureResponse as? HTTPURLResponse)?.statusCode ?? $0.status }
        // Certificates have other names and their usual handling.
        let isForPassword = Self.passwordMethods.contains(challenge.protectionSpace.authenticationMethod)
        let isKnown = challenge.proposedCredential?.hasPassword == true && challenge.previousFailureCount == 0
        completionHandler(isForPassword && !isKnown ? .cancelAuthenticationChallenge : .performDefaultHandling, nil)
    }

    /// The values of Foundation's constants, which are not all available on Linux.
    private static let passwordMethods: Set<String> = [
        "NSURLAuthenticationMethodDefault", "NSURLAuthenticationMethodHTTPBasic", "NSURLAuthenticationMethodHTTPDigest",
        "NSURLAuthenticationMethodHTMLForm", "NSURLAuthenticationMethodNTLM", "NSURLAuthenticationMethodNegotiate",
    ]

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let isTooLarge = state.withLock { state in
            state.status = (dataTask.response as? HTTPURLResponse)?.statusCode ?? state.status
            if state.data.count + data.count > maximumBytes { state.isTooLarge = true }
            if !state.isTooLarge { state.data += data }
            return state.isTooLarge
        }
        if isTooLarge { dataTask.cancel() }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let continuation = state.withLock { state in
            state.status = (task.response as? HTTPURLResponse)?.statusCode ?? state.status
            return state.continuation.take()
        }
        if let error { continuation?.resume(throwing: error) } else { continuation?.resume() }
    }
}
