package import Grammar
internal import Synchronization

/// A grammar that is compiled while the model computes: a turn begins without it, and waits for it only where its first token is chosen.
package final class PendingGrammar: Sendable {
    private struct State {
        var result: Result<Grammar, any Error>?
        var waiting: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    /// A grammar that is there.
    package init(_ grammar: Grammar) { state.withLock { $0.result = .success(grammar) } }

    /// Begins to compile a grammar in a task of its own. `compile` must not block the thread.
    package init(_ compile: @escaping @Sendable () async throws -> Grammar) {
        Task.detached {
            do {
                let grammar = try await compile()
                self.finish(.success(grammar))
            } catch {
                self.finish(.failure(error))
            }
        }
    }

    private func finish(_ result: Result<Grammar, any Error>) {
        let waiting = state.withLock { state in
            state.result = result
            defer { state.waiting = [] }
            return state.waiting
        }
        for body in waiting { body() }
    }

    /// The grammar, or nil while it is being compiled.
    ///
    /// - Throws: the error of the compilation, such as ``SchemaError``.
    var grammar: Grammar? { get throws { try state.withLock { $0.result }?.get() } }

    var isReady: Bool { state.withLock { $0.result != nil } }

    /// Calls `body` once the grammar or its error is there: now, or on another thread.
    func whenReady(_ body: @escaping @Sendable () -> Void) {
        let isReady = state.withLock { state in
            if state.result == nil { state.waiting.append(body) }
            return state.result != nil
        }
        if isReady { body() }
    }
}
