public import FoundationModels

extension Conversation {
    /// An answer while it is generated. Each snapshot has everything generated so far; a reader that is slower than the model gets the
    /// newest one.
    ///
    /// One task iterates over the snapshots. Cancelling it, or releasing the stream, stops the generation.
    public struct ResponseStream<Content: Generable & Sendable>: AsyncSequence, Sendable {
        /// An answer that is not complete yet, or the complete one.
        public struct Snapshot {
            /// The content generated so far.
            public var content: Content.PartiallyGenerated
            /// The same content as generated content.
            public var rawContent: GeneratedContent
            /// The entries that the request has added to the transcript so far.
            public var transcriptEntries: ArraySlice<Transcript.Entry>
            /// The tokens used by the request; complete in the last snapshot.
            public var usage: LanguageModelSession.Usage
            /// 1, or 2 after the window was exceeded and the answer was started again.
            public var attempt: Int
        }

        let snapshots: AsyncThrowingStream<PartialAnswer, any Error>
        let answer: Task<LanguageModelSession.Response<Content>, any Error>

        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: snapshots.makeAsyncIterator()) }

        /// Waits for the complete response, also after an iteration.
        ///
        /// - Throws: The errors of the request.
        public func collect() async throws -> LanguageModelSession.Response<Content> {
            try await withTaskCancellationHandler {
                try await answer.value
            } onCancel: {
                answer.cancel()
            }
        }

        /// Returns the snapshots of a stream.
        public struct AsyncIterator: AsyncIteratorProtocol {
            var base: AsyncThrowingStream<PartialAnswer, any Error>.Iterator

            public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> Snapshot? {
                guard let next = try await base.next(isolation: actor) else { return nil }
                return Snapshot(
                    content: try Content.PartiallyGenerated(next.content), rawContent: next.content,
                    transcriptEntries: next.entries, usage: next.usage, attempt: next.attempt)
            }
        }
    }

    /// What a stream passes on. Its reader makes the value, which need not be sendable.
    struct PartialAnswer: Sendable {
        var content: GeneratedContent
        var entries: ArraySlice<Transcript.Entry>
        var usage: LanguageModelSession.Usage
        var attempt: Int
    }
}

extension Conversation.ResponseStream.Snapshot: Sendable where Content.PartiallyGenerated: Sendable {}
