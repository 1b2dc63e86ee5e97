internal import Synchronization

/// Collects the output of a running request and notifies the reader of the stream about changes.
///
/// Text and values are parsed incrementally: taking a snapshot never parses the response again.
final class ResponseProgress: Sendable {
    /// The current state of a response.
    struct Current {
        var content: GeneratedContent?
        var isComplete: Bool
        var entries: ArraySlice<Transcript.Entry>
        var usage: LanguageModelSession.Usage
    }

    /// A complete response.
    struct Finished: Sendable {
        var content: GeneratedContent
        var entries: ArraySlice<Transcript.Entry>
        var usage: LanguageModelSession.Usage
    }

    private struct State {
        var assembler = ResponseAssembler()
        var text = ""
        /// Parses structured responses; nil for text.
        var reader: ContentReader?
        /// Why the response is not valid JSON.
        var failure: ContentReader.Failure?
        var entries: [Transcript.Entry] = []
        var usage = LanguageModelSession.Usage.zero
        var result: Result<Finished, any Error>?
        /// When the first event of the model arrived.
        var firstEvent: ContinuousClock.Instant?

        mutating func restart(isStructured: Bool) {
            text = ""
            failure = nil
            reader = isStructured ? ContentReader(assignsIDs: true) : nil
        }

        mutating func append(_ more: String) {
            text += more
            guard failure == nil else { return }
            do { try reader?.append(more) } catch { failure = error }
        }

        var totalUsage: LanguageModelSession.Usage {
            var total = usage
            if !assembler.isEmpty { total.add(assembler.usage) }
            return total
        }
    }

    private let state = Mutex(State())
    /// The name of the response's schema; nil for text.
    private let schemaName: String?
    let changes: AsyncThrowingStream<Void, any Error>
    private let changesContinuation: AsyncThrowingStream<Void, any Error>.Continuation

    init(schemaName: String?) {
        self.schemaName = schemaName
        (changes, changesContinuation) = AsyncThrowingStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Runs the request in a task. The task is cancelled when the reading task is cancelled, or when the last
    /// reference to the returned value is released.
    func run(_ body: @escaping @Sendable (ResponseProgress) async throws -> Finished) -> RunningRequest {
        let task = Task {
            do { self.finish(.success(try await body(self))) } catch { self.finish(.failure(error)) }
        }
        changesContinuation.onTermination = { reason in
            if case .cancelled = reason { task.cancel() }
        }
        return RunningRequest(task: task)
    }

    func finish(_ result: Result<Finished, any Error>) {
        state.withLock { $0.result = result }
        switch result {
        case .success:
            changesContinuation.yield()
            changesContinuation.finish()
        case .failure(let error): changesContinuation.finish(throwing: error)
        }
    }

    func result() throws -> Finished {
        guard let result = state.withLock({ $0.result }) else { throw CancellationError() }
        return try result.get()
    }

    func current() -> Current {
        state.withLock { state in
            if case .success(let finished)? = state.result {
                return Current(content: finished.content, isComplete: true, entries: finished.entries, usage: finished.usage)
            }
            let text = state.text.isEmpty ? nil : GeneratedContent(storage: .string(state.text))
            let content = state.reader == nil ? text : state.reader?.content
            return Current(
                // Even a closed value is not complete before the request has ended.
                content: content.map { GeneratedContent(storage: $0.storage, id: $0.id, isComplete: false) },
                isComplete: false, entries: state.entries[...], usage: state.totalUsage)
        }
    }

    // MARK: - Events of the model

    /// Records an entry that the model did not generate: the prompt or a tool's output.
    func record(_ entry: Transcript.Entry) { state.withLock { $0.entries.append(entry) } }

    /// Begins one model request of this session request.
    func beginRound() {
        state.withLock { state in
            state.assembler = ResponseAssembler()
            state.restart(isStructured: schemaName != nil)
        }
    }

    func receive(_ event: LanguageModelExecutorGenerationChannel.Event) {
        let changed = state.withLock { state in
            if state.firstEvent == nil { state.firstEvent = .now }
            switch state.assembler.apply(event) {
            case .none: return false
            case .appended(let text): state.append(text)
            case .replaced:
                state.restart(isStructured: schemaName != nil)
                state.append(state.assembler.text)
            }
            return true
        }
        if changed { changesContinuation.yield() }
    }

    /// Ends the round and returns the entries that the model generated in it.
    ///
    /// - Parameter usedIDs: The ids of the transcript's entries, which new entries must not have.
    /// - Throws: ``GeneratedContent/ParsingError`` if a structured response is not a complete JSON value.
    func endRound(usedIDs: Set<String>) throws -> [Transcript.Entry] {
        try state.withLock { state in
            state.assembler.replaceIDs(in: usedIDs)
            var structure: (String, GeneratedContent)?
            if let schemaName, !state.assembler.hasToolCalls {
                structure = (schemaName, try Self.value(&state))
            }
            let made = try state.assembler.transcriptEntries(structure: structure)
            state.entries += made
            state.usage.add(state.assembler.usage)
            state.assembler = ResponseAssembler()
            return made
        }
    }

    private static func value(_ state: inout State) throws -> GeneratedContent {
        do {
            if let failure = state.failure { throw failure }
            if let value = try state.reader?.finished() { return value }
            throw ContentReader.Failure(reason: state.text.isEmpty ? "it is empty" : "it is truncated")
        } catch let failure as ContentReader.Failure {
            throw GeneratedContent.ParsingError(
                rawContent: state.text, underlyingError: failure,
                debugDescription: "The response is not valid JSON: \(failure.reason).")
        }
    }

    /// When the first event of the model arrived.
    var firstEvent: ContinuousClock.Instant? { state.withLock { $0.firstEvent } }

    /// The entries of an interrupted response, and whether it contains text.
    func partialEntries(usedIDs: Set<String>) -> (entries: [Transcript.Entry], hasText: Bool) {
        state.withLock { state in
            state.assembler.replaceIDs(in: usedIDs)
            return (state.assembler.partialEntries, !state.assembler.text.isEmpty)
        }
    }

    /// The prompt, and the entries of the completed rounds.
    var recorded: [Transcript.Entry] { state.withLock { $0.entries } }

    /// The response, its entries, and the total usage of the request.
    func finished() -> Finished {
        state.withLock { state in
            let content: GeneratedContent
            if schemaName != nil, let value = state.reader?.content {
                content = value
            } else {
                content = state.text.generatedContent
            }
            return Finished(content: content, entries: state.entries[...], usage: state.usage)
        }
    }
}
