internal import Synchronization

/// A first-in, first-out lock that lets one request at a time use a sequence. A request waits without blocking a
/// thread; the wait ends if its task is cancelled.
final class SequenceLock: Sendable {
    private struct State {
        var isHeld = false
        var waiting: [(id: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        var count = 0
    }

    private let state = Mutex(State())

    /// - Throws: `CancellationError` if the task is cancelled while it waits; the lock is then not held.
    func acquire() async throws {
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

    func release() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            if state.waiting.isEmpty {
                state.isHeld = false
                return nil
            }
            return state.waiting.removeFirst().continuation
        }
        next?.resume(returning: true)
    }
}
