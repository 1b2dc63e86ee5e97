internal import Synchronization

/// Shares the output of a running request between the task that generates it and the readers of its stream, which it
/// notifies about changes.
final class ResponseProgress: Sendable {
    typealias Changes = AsyncThrowingStream<Void, any Error>

    private struct State {
        var output: ResponseOutput
        /// The readers that iterate over the stream, each with changes of its own.
        var readers: [Int: Changes.Continuation] = [:]
        var readerCount = 0
        var task: Task<Void, Never>?
        var result: Result<ResponseOutput.Finished, any Error>?
        /// When the first event of the model arrived.
        var firstEvent: ContinuousClock.Instant?
    }

    private let state: Mutex<State>
    /// Called after each change, before the reader of the stream can see it.
    private let observer = Mutex<(@Sendable () -> Void)?>(nil)

    init(schemaName: String?) {
        state = Mutex(State(output: ResponseOutput(schemaName: schemaName)))
    }

    /// Notifies a new reader of what there is already, and of all changes from now on.
    ///
    /// - Returns: The changes, and a number of the reader.
    func changes() -> (Changes, reader: Int) {
        let (changes, continuation) = Changes.makeStream(bufferingPolicy: .bufferingNewest(1))
        let (number, result) = state.withLock { state in
            state.readerCount += 1
            if state.result == nil { state.readers[state.readerCount] = continuation }
            return (state.readerCount, state.result)
        }
        continuation.yield()
        switch result {
        case nil: break
        case .success: continuation.finish()
        case .failure(let error): continuation.finish(throwing: error)
        }
        // A reader that stops reading may read the stream again.
        continuation.onTermination = { [weak self] _ in self?.state.withLock { $0.readers[number] = nil } }
        return (changes, number)
    }

    /// The task of a reader was cancelled. The request goes on for other readers.
    func cancel(reader number: Int) {
        let task = state.withLock { state in
            state.readers[number] = nil
            return state.readers.isEmpty ? state.task : nil
        }
        task?.cancel()
    }

    /// Whether all readers have left their iteration before its end, so that only a new iteration would read the rest.
    var isAbandoned: Bool { state.withLock { $0.readerCount > 0 && $0.readers.isEmpty && $0.result == nil } }

    /// Ends the request.
    func cancel() { state.withLock { $0.task }?.cancel() }

    /// Runs the request in a task. The task is cancelled when the last reading task is cancelled, or when the last
    /// reference to the returned value is released.
    func run(_ body: @escaping @Sendable (ResponseProgress) async throws -> ResponseOutput.Finished) -> RunningRequest {
        let task = Task {
            do { self.finish(.success(try await body(self))) } catch { self.finish(.failure(error)) }
        }
        state.withLock { $0.task = task }
        return RunningRequest(task: task)
    }

    func finish(_ result: Result<ResponseOutput.Finished, any Error>) {
        let readers = state.withLock { state in
            state.result = result
            defer { state.readers = [:] }
            return state.readers.values
        }
        for reader in readers {
            switch result {
            case .success:
                reader.yield()
                reader.finish()
            case .failure(let error): reader.finish(throwing: error)
            }
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
        let (changed, readers) = state.withLock { state in
            if state.firstEvent == nil { state.firstEvent = .now }
            return (state.output.apply(event), state.readers)
        }
        guard changed else { return }
        observer.withLock { $0 }?()
        for reader in readers.values { reader.yield() }
    }

    func observe(_ body: @escaping @Sendable () -> Void) { observer.withLock { $0 = body } }

    /// Reads or changes the output. Does not notify the reader.
    func withOutput<Result, Failure>(
        _ body: (inout ResponseOutput) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try state.withLock { state throws(Failure) in try body(&state.output) }
    }

    /// When the first event of the model arrived.
    var firstEvent: ContinuousClock.Instant? { state.withLock { $0.firstEvent } }
}
