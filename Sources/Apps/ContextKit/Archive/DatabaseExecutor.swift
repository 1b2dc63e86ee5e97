import Dispatch

/// Runs a conversation, whose archive waits for disks, locks and servers, on threads that may wait: those of Swift's tasks are as many
/// as there are cores, and two that wait would stop all tasks of a small machine.
final class DatabaseExecutor: SerialExecutor, TaskExecutor {
    private let queue = DispatchQueue(label: "ContextKit.Conversation")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async {
            job.runSynchronously(isolatedTo: self.asUnownedSerialExecutor(), taskExecutor: self.asUnownedTaskExecutor())
        }
    }

    /// Runs a closure that may wait for a database.
    func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result(catching: body)) }
        }
    }
}
