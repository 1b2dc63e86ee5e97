internal import Synchronization

/// Shares the output of a running request between the task that generates it and the reader of its stream, which it
/// notifies about changes.
final class ResponseProgress: Sendable {
    private struct State {
        var output: ResponseOutput
        var result: Result<ResponseOutput.Finished, any Error>?
        /// When the first event of the model arrived.
        var firstEvent: ContinuousClock.Instant?
    }

    private let state: Mutex<State>
    let changes: AsyncThrowingStream<Void, any Error>
    private let changesContinuation: AsyncThrowingStream<Void, any Error>.Continuation

    init(schemaName: String?) {
        state = Mutex(State(output: ResponseOutput(schemaName: schemaName)))
        (changes, changesContinuation) = AsyncThrowingStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Runs the request in a task. The task is cancelled when the reading task is cancelled, or when the last
    /// reference to the returned value is released.
    func run(_ body: @escaping @Sendable (ResponseProgress) async throws -> ResponseOutput.Finished) -> RunningRequest {
        let task = Task {
            do { self.finish(.success(try await body(self))) } catch { self.finish(.failure(error)) }
        }
        changesContinuation.onTermination = { reason in
            if case .cancelled = reason { task.cancel() }
        }
        return RunningRequest(task: task)
    }

    func finish(_ result: Result<ResponseOutput.Finished, any Error>) {
        state.withLock { $0.result = result }
        switch result {
        case .success:
            changesContinuation.yield()
            changesContinuation.finish()
        case .failure(let error): changesContinuation.finish(throwing: error)
        }
    }

    func result() throws -> ResponseOutput.Finished {
        guard let result = state.withLock({ $0.result }) else { throw CancellationError() }
        return try result.get()
    }

    func current() -> ResponseOutput.Current {
        state.withLock { state in
            if case .success(let finished)? = state.result { ResponseOutput.Current(finished) } else { state.output.current }
        }
    }

    /// Applies an event of the model and notifies the reader if the output has changed.
    func receive(_ event: LanguageModelExecutorGenerationChannel.Event) {
        let changed = state.withLock { state in
            if state.firstEvent == nil { state.firstEvent = .now }
            return state.output.apply(event)
        }
        if changed { changesContinuation.yield() }
    }

    /// Reads or changes the output. Does not notify the reader.
    func withOutput<Result, Failure>(
        _ body: (inout ResponseOutput) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try state.withLock { state throws(Failure) in try body(&state.output) }
    }

    /// When the first event of the model arrived.
    var firstEvent: ContinuousClock.Instant? { state.withLock { $0.firstEvent } }
}
