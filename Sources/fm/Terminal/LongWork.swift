import Waiting

/// Computations that take long, on a thread of their own, which Ctrl-C ends.
enum LongWork {
    /// Runs work of tasks, which Ctrl-C cancels.
    ///
    /// - Parameter message: What to say then.
    /// - Throws: ``CommandFailure`` after Ctrl-C.
    static func untilInterrupted<Value: Sendable>(
        _ message: String = "", _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let work = Task(operation: body)
        let interrupt = Interrupt { work.cancel() }
        defer { interrupt.stop() }
        do { return try await work.value } catch {
            throw interrupt.happened ? CommandFailure(message, code: .interrupted) : error
        }
    }

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
