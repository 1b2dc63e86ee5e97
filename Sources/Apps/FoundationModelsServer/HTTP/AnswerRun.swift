internal import NIOCore
internal import Synchronization

/// The answers to one request while they are generated, in a task of their own that ends when the client goes away.
final class AnswerRun: Sendable {
    enum Event: Sendable {
        case begin(answer: Int, promptTokens: Int)
        case output(answer: Int, TurnOutput)
        case end(answer: Int, TurnFinish)
        /// Nothing has happened for a while: the connection should not look dead.
        case ping
    }

    let events: AsyncThrowingStream<Event, any Error>
    private let task: Task<Void, Never>
    private let ticker: Task<Void, Never>

    /// The time between two pings: what clients and proxies wait for is longer.
    private static let pingInterval = Duration.seconds(15)

    /// - Parameter generate: passes the events on; throws ``RequestError`` or `CancellationError`.
    init(_ channel: (any Channel)?, _ generate: @escaping @Sendable (@escaping @Sendable (Event) -> Void) async throws -> Void) {
        let (events, continuation) = AsyncThrowingStream<Event, any Error>.makeStream()
        self.events = events
        let work = Task {
            do {
                try await generate { continuation.yield($0) }
                continuation.finish()
            } catch {
                continuation.finish(throwing: error)
            }
        }
        task = Task {
            let connection = if let channel { await ClientConnection.of(channel) } else { ClientConnection?.none }
            let action = connection?.whenGone { work.cancel() }
            await withTaskCancellationHandler {
                await work.value
            } onCancel: {
                work.cancel()
            }
            if let action { connection?.removeAction(action) }
        }
        ticker = Task {
            while true {
                do { try await Task.sleep(for: Self.pingInterval) } catch { return }
                continuation.yield(.ping)
            }
        }
        continuation.onTermination = { [ticker] _ in ticker.cancel() }
    }

    func cancel() { task.cancel() }

    deinit {
        task.cancel()
        ticker.cancel()
    }
}
