internal import Synchronization

/// A first-in, first-out lock for tasks. A task waits without blocking a thread; the wait ends if the task is cancelled.
public final class AsyncLock: Sendable {
    private struct State {
        var isHeld = false
        var waiting: [(id: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        var count = 0
    }

    private let state = Mutex(State())

    /// Creates a lock that is not held.
    public init() {}

    /// Number of tasks that wait for the lock.
    package var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Waits for the lock. Tasks of one actor get it in the order of their calls, since they stay on the actor.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before it holds the lock.
    public nonisolated(nonsending) func acquire() async throws(CancellationError) {
        let id = state.withLock { state in
            state.count += 1
            return state.count
        }
        let isHeld = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state -> Bool? in
                    if Task.isCancelled { return false }
                    if state.isHeld {
                        state.waiting.append((id, continuation))
                        return nil
                    }
                    state.isHeld = true
                    return true
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiting.firstIndex { $0.id == id }.map { state.waiting.remove(at: $0).continuation }
            }
            waiter?.resume(returning: false)
        }
        if !isHeld { throw CancellationError() }
    }

    /// Takes the lock if it is not held; false otherwise.
    public func tryAcquire() -> Bool {
        state.withLock { state in
            defer { state.isHeld = true }
            return !state.isHeld
        }
    }

    /// Releases the lock. It passes to the task that has waited longest, so that no other task can take it in between.
    public func release() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            precondition(state.isHeld, "A lock that nobody holds is released.")
            if state.waiting.isEmpty {
                state.isHeld = false
                return nil
            }
            return state.waiting.removeFirst().continuation
        }
        next?.resume(returning: true)
    }
}
