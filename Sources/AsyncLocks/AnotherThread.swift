internal import Dispatch

/// Runs a function that computes or waits for long on a thread of its own, so that it does not block the threads of tasks, of which
/// there are as many as cores.
public func onAnotherThread<Value: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
    try await withCheckedContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(returning: Result(catching: body)) }
    }.get()
}
