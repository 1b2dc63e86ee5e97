package import Grammar
internal import Synchronization
internal import Waiting

/// A grammar that is compiled while the model computes: a turn begins without it, and waits for it only where its first token is chosen.
package typealias PendingGrammar = Pending<Grammar>

/// A value that is computed on another thread, or its error.
package final class Pending<Value: Sendable>: Sendable {
    private struct State {
        var result: Result<Value, any Error>?
        var waiting: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    /// A value that is there.
    package init(_ value: Value) { state.withLock { $0.result = .success(value) } }

    /// Begins to compute a value in a task of its own. `compute` must not block the thread.
    package init(_ compute: @escaping @Sendable () async throws -> Value) {
        Task.detached {
            do {
                let value = try await compute()
                self.finish(.success(value))
            } catch {
                self.finish(.failure(error))
            }
        }
    }

    /// Begins to compute a value on a thread that leaves the cores to the model.
    init(onAnotherThread compute: @escaping @Sendable () throws -> Value) {
        runInBackground { self.finish(Result { try compute() }) }
    }

    private func finish(_ result: Result<Value, any Error>) {
        let waiting = state.withLock { state in
            state.result = result
            defer { state.waiting = [] }
            return state.waiting
        }
        for body in waiting { body() }
    }

    /// The value, or nil while it is being computed.
    ///
    /// - Throws: the error of the computation, such as ``SchemaError``.
    var value: Value? { get throws { try state.withLock { $0.result }?.get() } }

    var isReady: Bool { state.withLock { $0.result != nil } }

    /// Calls `body` once the value or its error is there: now, or on another thread.
    func whenReady(_ body: @escaping @Sendable () -> Void) {
        let isReady = state.withLock { state in
            if state.result == nil { state.waiting.append(body) }
            return state.result != nil
        }
        if isReady { body() }
    }
}
