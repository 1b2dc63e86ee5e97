internal import Synchronization

extension LanguageModelSession {
    /// A stream of snapshots of a response. Each snapshot contains everything generated so far; a slow reader skips
    /// snapshots but loses no text. The first one is sent when there is something in it.
    ///
    /// Several tasks may read one stream. Cancelling the last task that iterates, or releasing the stream, stops the generation
    /// within one token. A stream whose iteration was left may be read again, until the next request of the session: that one ends
    /// it.
    public struct ResponseStream<Content>: AsyncSequence where Content: Generable {
        public typealias Element = LanguageModelSession.ResponseStream<Content>.Snapshot

        /// A partial or complete response.
        public struct Snapshot {
            /// The content generated so far.
            public var content: Content.PartiallyGenerated
            /// The same content as generated content; complete in the last snapshot.
            public var rawContent: GeneratedContent
            /// The entries that this request has added to the transcript so far.
            public var transcriptEntries: ArraySlice<Transcript.Entry>
            /// The token usage of the request so far; complete in the last snapshot.
            public var usage: LanguageModelSession.Usage
        }

        private let progress: ResponseProgress
        private let value: ResponseValue<Content>
        private let request: RunningRequest

        init(progress: ResponseProgress, value: ResponseValue<Content>, request: RunningRequest) {
            self.progress = progress
            self.value = value
            self.request = request
        }

        public func makeAsyncIterator() -> LanguageModelSession.ResponseStream<Content>.AsyncIterator {
            AsyncIterator(progress: progress, request: request)
        }

        /// Waits for the complete response. It may also be called after an iteration.
        public nonisolated(nonsending) func collect() async throws -> sending LanguageModelSession.Response<Content> {
            for try await _ in self {}
            return try Response(try progress.result(), value)
        }

        public struct AsyncIterator: AsyncIteratorProtocol {
            public typealias Element = LanguageModelSession.ResponseStream<Content>.Snapshot

            private let progress: ResponseProgress
            private let request: RunningRequest
            /// Another notification may arrive after the last snapshot has been returned.
            private var isComplete = false
            private var changes: ResponseProgress.Changes.Iterator
            private let reader: Int

            fileprivate init(progress: ResponseProgress, request: RunningRequest) {
                self.progress = progress
                self.request = request
                let (changes, reader) = progress.changes()
                (self.changes, self.reader) = (changes.makeAsyncIterator(), reader)
            }

            public mutating func next(
                isolation actor: isolated (any Actor)? = #isolation
            ) async throws -> LanguageModelSession.ResponseStream<Content>.Snapshot? {
                while !isComplete, try await nextChange(isolation: actor) {
                    let now = progress.current()
                    isComplete = now.isComplete
                    if let snapshot = try Self.snapshot(now) { return snapshot }
                }
                try Task.checkCancellation()
                return nil
            }

            /// Returns false after the last change. Cancelling the task cancels the request immediately, so that the next request
            /// of the session waits for its end.
            private mutating func nextChange(isolation actor: isolated (any Actor)?) async throws -> Bool {
                let (progress, reader) = (progress, reader)
                return try await withTaskCancellationHandler {
                    try await changes.next(isolation: actor) != nil
                } onCancel: {
                    progress.cancel(reader: reader)
                }
            }

            /// Nil if there is no content yet from which a snapshot can be created.
            private static func snapshot(_ now: ResponseOutput.Current) throws -> Snapshot? {
                guard let raw = now.content, now.isComplete || !raw.isEmptyContainer else { return nil }
                do {
                    return Snapshot(
                        content: try Content.PartiallyGenerated(raw), rawContent: raw, transcriptEntries: now.entries,
                        usage: now.usage)
                } catch {
                    // Partial content may not be convertible yet, such as the first letters of a case's name.
                    if now.isComplete { throw _SessionFailure.wrapping(error) }
                    return nil
                }
            }
        }
    }
}

extension LanguageModelSession.ResponseStream where Content == String {
    /// Creates the stream of a text that is already available.
    init(text: String) {
        let progress = ResponseProgress(schemaName: nil)
        progress.finish(.success(.init(content: text.generatedContent, entries: [], usage: .zero)))
        self.init(progress: progress, value: ResponseValue(), request: RunningRequest(task: nil))
    }
}

extension LanguageModelSession.Response {
    init(_ finished: ResponseOutput.Finished, _ value: ResponseValue<Content>) throws {
        do {
            content = try value.take(from: finished.content)
        } catch {
            throw _SessionFailure.wrapping(error)
        }
        rawContent = finished.content
        transcriptEntries = finished.entries
        usage = finished.usage
    }
}

/// The value of a response. A request makes it when it ends, so that a response that is not a value of the type is an error of
/// the request; the reader of the response takes it.
final class ResponseValue<Content: Generable>: Sendable {
    private let made = Mutex<Content?>(nil)

    func make(from content: GeneratedContent) throws {
        try made.withLock { $0 = try Content(content) }
    }

    /// A value need not be sendable, so that only one reader can have it; others have one of their own.
    func take(from content: GeneratedContent) throws -> sending Content {
        try made.withLock { $0.take() } ?? Content(content)
    }
}

/// Owned by a stream and its iterators, but not by the request itself: when it is released, the request is cancelled.
final class RunningRequest: Sendable {
    private let task: Task<Void, Never>?
    init(task: Task<Void, Never>?) { self.task = task }
    deinit { task?.cancel() }
}
