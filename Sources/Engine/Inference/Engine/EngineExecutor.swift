internal import Dispatch

/// Runs an engine's work on a dedicated dispatch queue, so that generation never blocks a thread of the cooperative
/// pool.
final class EngineExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "FoundationModels.engine", qos: .userInitiated)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    /// Runs work on the queue that is not part of the actor: loading, and reading and writing files.
    func run<Success: Sendable>(_ body: @escaping @Sendable () throws -> Success) async throws -> Success {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try body() }) }
        }
    }

    /// Loads a model: work that ends early if the task is cancelled.
    ///
    /// - Parameter load: receives a function that says whether it was cancelled, for which it throws ``ModelError/cancelled``.
    /// - Throws: `CancellationError` instead of that.
    func load<Success: Sendable>(
        _ load: @escaping @Sendable (_ isCancelled: @escaping @Sendable () -> Bool) throws -> Success
    ) async throws -> Success {
        let signals = RequestSignals()
        do {
            return try await withTaskCancellationHandler {
                try await run { try load { signals.isCancelled } }
            } onCancel: {
                signals.cancel()
            }
        } catch ModelError.cancelled {
            throw CancellationError()
        }
    }
}
