internal import Synchronization

extension LanguageModelSession {
    /// A response as it grows. Each snapshot holds everything so far; a slow reader skips snapshots, never text.
    ///
    /// Cancelling the task that iterates, or dropping the stream, ends the generation within one token.
    public struct ResponseStream<Content>: AsyncSequence where Content: Generable {
        public typealias Element = Snapshot

        public struct Snapshot {
            public var content: Content.PartiallyGenerated
            public var rawContent: GeneratedContent
            /// The entries this request has added to the transcript.
            public var transcriptEntries: ArraySlice<Transcript.Entry>
            /// What the request has cost; complete in the last snapshot.
            public var usage: Usage
        }

        let source: StreamSource
        let request: RunningRequest

        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(source: source, request: request)
        }

        /// Waits for the whole response. May follow an iteration.
        public nonisolated(nonsending) func collect() async throws -> sending Response<Content> {
            for try await _ in self {}
            let finished = try source.result()
            return Response(
                content: try Content(finished.rawContent), rawContent: finished.rawContent,
                transcriptEntries: finished.entries, usage: finished.usage)
        }

        public struct AsyncIterator: AsyncIteratorProtocol {
            public typealias Element = Snapshot

            init(source: StreamSource, request: RunningRequest) {
                self.source = source
                self.request = request
                bell = source.bell.makeAsyncIterator()
            }

            let source: StreamSource
            let request: RunningRequest
            /// The bell may ring once more after the last snapshot has been seen.
            private var isComplete = false
            private var bell: AsyncThrowingStream<Void, any Error>.Iterator

            public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> Snapshot? {
                guard !isComplete, try await bell.next(isolation: actor) != nil else {
                    try Task.checkCancellation()
                    return nil
                }
                let (text, entries, usage): (String, ArraySlice<Transcript.Entry>, Usage)
                (text, isComplete, entries, usage) = source.current()
                let raw = GeneratedContent(kind: .string(text), isComplete: isComplete)
                return Snapshot(
                    content: try Content.PartiallyGenerated(raw), rawContent: raw, transcriptEntries: entries, usage: usage)
            }
        }
    }
}

/// Where a running request leaves its text, and a bell that wakes the reader.
final class StreamSource: Sendable {
    struct Finished: Sendable {
        var rawContent: GeneratedContent
        var entries: ArraySlice<Transcript.Entry>
        var usage: LanguageModelSession.Usage
    }

    private struct State {
        var text = ""
        var finished: Finished?
    }

    private let state = Mutex(State())
    let bell: AsyncThrowingStream<Void, any Error>
    private let ring: AsyncThrowingStream<Void, any Error>.Continuation

    init() { (bell, ring) = AsyncThrowingStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    /// Runs the request. It ends early when the reading task is cancelled, or when the last reader drops what is returned.
    func run(_ body: @escaping @Sendable (StreamSource) async throws -> Finished) -> RunningRequest {
        let ring = self.ring
        let task = Task {
            do {
                let finished = try await body(self)
                self.state.withLock { $0.finished = finished }
                ring.yield()
                ring.finish()
            } catch {
                ring.finish(throwing: error)
            }
        }
        ring.onTermination = { reason in
            if case .cancelled = reason { task.cancel() }
        }
        return RunningRequest(task: task)
    }

    func append(_ text: String) {
        state.withLock { $0.text += text }
        ring.yield()
    }

    func current() -> (text: String, isComplete: Bool, entries: ArraySlice<Transcript.Entry>, usage: LanguageModelSession.Usage) {
        state.withLock { ($0.text, $0.finished != nil, $0.finished?.entries ?? [], $0.finished?.usage ?? .zero) }
    }

    func result() throws -> Finished {
        try state.withLock { state in
            guard let finished = state.finished else { throw CancellationError() }
            return finished
        }
    }
}

/// Held by a stream and its iterators, but not by the request itself: when they are gone, the request is cancelled.
final class RunningRequest: Sendable {
    private let task: Task<Void, Never>
    init(task: Task<Void, Never>) { self.task = task }
    deinit { task.cancel() }
}
