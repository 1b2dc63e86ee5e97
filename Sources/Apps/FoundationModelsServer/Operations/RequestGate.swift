internal import Synchronization

/// Lets requests begin in the order of a ``FairQueue``.
final class RequestGate: Sendable {
    private struct State {
        var queue: FairQueue
        /// When the last request has come or ended.
        var lastUse = ContinuousClock.now
        var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]
        /// Requests whose turn came, or that were cancelled, before they waited.
        var early: [Int: Bool] = [:]
    }

    private let state: Mutex<State>
    private let maximumWait: Duration

    /// - Parameter maximumWait: the time after which a request that waits is refused.
    init(slots: Int, limit: Int, maximumWait: Duration) {
        state = Mutex(State(queue: FairQueue(slots: slots, limit: limit)))
        self.maximumWait = maximumWait
    }

    /// How long nothing has been processed.
    var idleTime: Duration { state.withLock { $0.queue.active > 0 ? .zero : .now - $0.lastUse } }

    var load: (active: Int, waiting: Int, slots: Int) {
        state.withLock { ($0.queue.active, $0.queue.waitingCount, $0.queue.slots) }
    }

    /// A place among the requests that are processed; given back once.
    final class Place: Sendable {
        private let gate: RequestGate
        private let client: String
        fileprivate let isOpen = Mutex(true)

        fileprivate init(_ gate: RequestGate, _ client: String) { (self.gate, self.client) = (gate, client) }

        /// - Parameter tokens: the work of the request.
        func leave(tokens: Int) {
            let wasOpen = isOpen.withLock { isOpen in
                defer { isOpen = false }
                return isOpen
            }
            if wasOpen { gate.end(client, tokens) }
        }

        deinit { leave(tokens: 0) }
    }

    /// Waits until the request of a client may begin.
    ///
    /// - Throws: ``RequestError`` if too many wait already, or if it has waited too long; or `CancellationError`.
    func enter(_ client: String) async throws -> Place {
        let id: Int
        let begins: Bool
        do { (id, begins) = try state.withLock { state throws(FairQueue.Full) in try state.queue.add(client) } } catch {
            throw RequestError(
                503, type: "server_error", code: "overloaded",
                "\(error.waiting) requests wait already. Try again later.", retryAfter: 5)
        }
        let place = Place(self, client)
        if begins { return place }
        let timer = Task { [maximumWait] in
            do { try await Task.sleep(for: maximumWait) } catch { return }
            self.give(
                id,
                up: RequestError(
                    503, type: "server_error", code: "overloaded", "The request has waited too long. Try again later.",
                    retryAfter: 10))
        }
        defer { timer.cancel() }
        do {
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let early = state.withLock { state -> Bool? in
                        if let early = state.early.removeValue(forKey: id) { return early }
                        state.waiters[id] = continuation
                        return nil
                    }
                    switch early {
                    case nil: break
                    case true?: continuation.resume()
                    case false?: continuation.resume(throwing: CancellationError())
                    }
                }
            } onCancel: {
                give(id, up: CancellationError())
            }
        } catch {
            place.forget()
            throw error
        }
        return place
    }

    private func give(_ id: Int, up error: any Error) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            guard state.queue.cancel(id) else { return nil }
            let waiter = state.waiters.removeValue(forKey: id)
            if waiter == nil { state.early[id] = false }
            return waiter
        }
        waiter?.resume(throwing: error)
    }

    private func end(_ client: String, _ tokens: Int) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            state.lastUse = .now
            guard let next = state.queue.end(client, tokens: tokens) else { return nil }
            let waiter = state.waiters.removeValue(forKey: next)
            if waiter == nil { state.early[next] = true }
            return waiter
        }
        waiter?.resume()
    }
}

extension RequestGate.Place {
    /// The request never began.
    fileprivate func forget() { isOpen.withLock { $0 = false } }
}
