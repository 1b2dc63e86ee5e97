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
                    download.state.withLock { $0.continuation = continuation }
                    task.resume()
                }
            } onCancel: {
                task.cancel()
            }
        } catch {
            try Task.checkCancellation()
            if !download.state.withLock({ $0.isTooLarge }) { throw error }
        }
        return download.state.withLock { ($0.isTooLarge ? nil : $0.data, $0.status) }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let isTooLarge = state.withLock { state in
            state.status = (dataTask.response as? HTTPURLResponse)?.statusCode
            if state.data.count + data.count > maximumBytes { state.isTooLarge = true }
            if !state.isTooLarge { state.data += data }
            return state.isTooLarge
        }
        if isTooLarge { dataTask.cancel() }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let continuation = state.withLock { state in
            state.status = (task.response as? HTTPURLResponse)?.statusCode
            return state.continuation.take()
        }
        if let error { continuation?.resume(throwing: error) } else { continuation?.resume() }
    }
}
