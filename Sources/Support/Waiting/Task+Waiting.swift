internal import Synchronization

extension Task {
    /// The result of a task that others wait for too. If the waiting task is cancelled, its wait ends; the awaited task goes on.
    ///
    /// - Throws: the error of the awaited task, or `CancellationError`.
    public var valueUnlessCancelled: Success {
        get async throws {
            let waiter = Waiter<Success>()
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    waiter.begin(continuation)
                    // Waiting raises the priority of the awaited task to that of the waiting one.
                    _ = Task<Void, Never>.detached(priority: Task<Never, Never>.currentPriority) {
                        waiter.end(await self.result.mapError { $0 as any Error })
                    }
                }
            } onCancel: {
                waiter.end(.failure(Swift.CancellationError()))
            }
        }
    }
}

/// A continuation that is resumed once, by whatever ends the wait first.
private final class Waiter<Value: Sendable>: Sendable {
    private enum State {
        case created, waiting(CheckedContinuation<Value, any Error>)
        /// The wait ended before it began.
        case ended(Result<Value, any Error>?)
    }

    private let state = Mutex(State.created)

    func begin(_ continuation: CheckedContinuation<Value, any Error>) {
        let result = state.withLock { state -> Result<Value, any Error>? in
            if case .ended(let result) = state {
                state = .ended(nil)
                return result
            }
            state = .waiting(continuation)
            return nil
        }
        if let result { continuation.resume(with: result) }
    }

    func end(_ result: Result<Value, any Error>) {
        let continuation = state.withLock { state -> CheckedContinuation<Value, any Error>? in
            switch state {
            case .created:
                state = .ended(result)
                return nil
            case .waiting(let continuation):
                state = .ended(nil)
                return continuation
            case .ended: return nil
            }
        }
        continuation?.resume(with: result)
    }
}
