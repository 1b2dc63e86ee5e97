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
}
