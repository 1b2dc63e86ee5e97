internal import Synchronization

/// A first-in, first-out lock for tasks. A task waits without blocking a thread; the wait ends if the task is cancelled.
public final class AsyncLock: Sendable {
    private struct State {
        var isHeld = false
        /// Places in the queue; those without a continuation have been reserved, and nobody waits for them yet.
        var waiting: [(id: Int, continuation: CheckedContinuation<Bool, Never>?)] = []
        /// The reserved place that holds the lock before anybody has waited for it.
        var granted: Int?
        var count = 0
    }

    /// A place in the queue of a lock.
    public struct Place: Sendable {
        fileprivate let id: Int
    }

    private let state = Mutex(State())

    /// Creates a lock that is not held.
    public init() {}

    /// Number of tasks that wait for the lock.
    package var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Takes the next place in the queue, without waiting. It must be passed to ``acquire(_:)`` or ``giveUp(_:)``.
    public func reserve() -> Place {
        state.withLock { state in
            state.count += 1
            if state.isHeld {
                state.waiting.append((state.count, nil))
            } else {
                (state.isHeld, state.granted) = (true, state.count)
            }
            return Place(id: state.count)
        }
    }

    /// Waits for the lock. Tasks of one actor get it in the order of their calls, since they stay on the actor.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before it holds the lock.
    public nonisolated(nonsending) func acquire() async throws(CancellationError) { try await acquire(reserve()) }

    /// Waits for the lock at a place in the queue.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before it holds the lock. The place is given up then.
    public nonisolated(nonsending) func acquire(_ place: Place) async throws(CancellationError) {
        let isHeld = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state -> Bool? in
                    if Task.isCancelled { return false }
                    if state.granted == place.id {
                        state.granted = nil
                        return true
                    }
                    guard let index = state.waiting.firstIndex(where: { $0.id == place.id }) else { return false }
                    state.waiting[index].continuation = continuation
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            giveUp(place)
        }
        if isHeld { return }
        giveUp(place)
        throw CancellationError()
    }

    /// Leaves the queue; whoever waits for the place gets a `CancellationError`. Does nothing if the lock has been acquired.
    public func giveUp(_ place: Place) {
        let (waiter, isGranted) = state.withLock { state -> (CheckedContinuation<Bool, Never>?, Bool) in
            if state.granted == place.id {
                state.granted = nil
                return (nil, true)
            }
            let index = state.waiting.firstIndex { $0.id == place.id }
            return (index.flatMap { state.waiting.remove(at: $0).continuation }, false)
        }
        waiter?.resume(returning: false)
        if isGranted { release() }
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
            let first = state.waiting.removeFirst()
            if first.continuation == nil { state.granted = first.id }
            return first.continuation
        }
        next?.resume(returning: true)
    }
}
