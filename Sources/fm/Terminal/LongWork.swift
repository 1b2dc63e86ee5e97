import AsyncLocks

/// Computations that take long, on a thread of their own, which Ctrl-C ends.
enum LongWork {
    /// - Parameters:
    ///   - line: Removed from the terminal at the end, before anything is said of an error.
    ///   - body: Receives a function that throws `CancellationError` after Ctrl-C.
    static func run<Value: Sendable>(
        showing line: ProgressLine? = nil,
        _ body: @escaping @Sendable (_ check: @Sendable () throws -> Void) throws -> Value
    ) async throws -> Value {
        let work = Task { try await onAnotherThread(cancellable: body) }
        let interrupt = Interrupt { work.cancel() }
        defer {
            interrupt.stop()
            line?.end()
        }
        return try await work.value
    }

    /// Whether the function of ``run(showing:_:)`` throws: it does so only after Ctrl-C.
    static func isCancelled(_ check: () throws -> Void) -> Bool { (try? check()) == nil }
}
