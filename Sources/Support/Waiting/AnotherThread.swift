internal import Dispatch
internal import Synchronization

/// Runs a function that computes or waits for long on a thread of its own, so that it does not block the threads of tasks, of which
/// there are as many as cores.
///
/// - Parameter isBackground: whether it leaves the cores to other threads that can use them.
public func onAnotherThread<Value: Sendable, Failure: Error>(
    isBackground: Bool = false, _ body: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
    try await withCheckedContinuation { continuation in
        let run = { @Sendable in continuation.resume(returning: Result(catching: body)) }
        if isBackground { runInBackground(run) } else { DispatchQueue.global().async(execute: run) }
    }.get()
}

/// The same for a computation that ends early if the task is cancelled.
///
/// - Parameter body: Receives a function that throws `CancellationError` once the task is cancelled.
public func onAnotherThread<Value: Sendable>(
    cancellable body: @escaping @Sendable (_ check: @Sendable () throws -> Void) throws -> Value
) async throws -> Value {
    let flag = CancellationFlag()
    return try await withTaskCancellationHandler {
        try await onAnotherThread { try body { if flag.isSet.load(ordering: .relaxed) { throw CancellationError() } } }
    } onCancel: {
        flag.isSet.store(true, ordering: .relaxed)
    }
}

private final class CancellationFlag: Sendable {
    let isSet = Atomic(false)
}

/// The results of a function for the numbers from 0 to less than `count`, computed on all cores at the same time. Blocks the calling
/// thread, which must not be one of those of tasks.
///
/// - Throws: The error for the smallest number.
public func concurrently<Value: Sendable>(_ count: Int, _ body: @Sendable (Int) throws -> Value) throws -> [Value] {
    let results = Mutex([Result<Value, any Error>?](repeating: nil, count: count))
    DispatchQueue.concurrentPerform(iterations: count) { index in
        let result = Result { try body(index) }
        results.withLock { $0[index] = result }
    }
    return try results.withLock { $0 }.compactMap { try $0?.get() }
}
