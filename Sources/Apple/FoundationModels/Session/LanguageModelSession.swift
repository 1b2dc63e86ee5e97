internal import Waiting
public import Observation
internal import Synchronization

/// A conversation with a model: it stores the transcript and processes one request at a time.
///
/// ```swift
/// let session = LanguageModelSession(instructions: "Answer in one sentence.")
/// let answer = try await session.respond(to: "What is a monad?")
/// print(answer.content)
/// ```
public final class LanguageModelSession: Observable, @unchecked Sendable {  // All state is in `state`, a mutex.
    struct State {
        var transcript: Transcript
        var isResponding = false
        var usage = Usage.zero
        var policy: TranscriptErrorHandlingPolicy?
        /// The transcript was changed during a request by other code than the request.
        var wasMutated = false
        /// Requests are numbered; the last one that was started is the running one until it ends.
        var requestCount = 0
        var running = 0
        /// The running request was cancelled and is about to end; the next request waits for its end.
        var isEnding = false
        /// A request is already waiting for that end.
        var hasSuccessor = false
        /// The running request waits for its tools, which may wait for another request.
        var isRunningTools = false
        /// The entries that the last request recorded before it failed, if they were removed from the transcript.
        var discarded: [Transcript.Entry] = []
        /// The output of the running request. What the model has generated in the current round is not in `transcript` yet.
        var progress: ResponseProgress?
        /// The active profile of the last request, with the callbacks to call when another profile becomes active.
        var activeProfile: ActiveProfile?
    }

    struct ActiveProfile: @unchecked Sendable {  // Called by one request at a time.
        let identity: String
        let onDeactivate: [@isolated(any) () async -> Void]
    }

    let state: Mutex<State>
    /// Held by the running request.
    let requests = AsyncLock()
    let behavior: SessionBehavior
    let executors = ExecutorStore()
    private let propertyValues = SessionPropertyValues()
    private let registrar = ObservationRegistrar()

    init(behavior: SessionBehavior, transcript: Transcript) {
        self.behavior = behavior
        state = Mutex(State(transcript: transcript))
        propertyValues.attach(to: self)
    }

    /// The entries of the session, including the response that is being generated. The transcript can be read at any time, also
    /// after an error, and changed between requests.
    public var transcript: Transcript {
        get {
            registrar.access(self, keyPath: \.transcript)
            return state.withLock { state in
                guard let live = state.progress?.withOutput({ $0.liveEntries }), !live.isEmpty else { return state.transcript }
                var transcript = state.transcript
                transcript.append(contentsOf: live)
                return transcript
            }
        }
        set { setTranscript(isOwnRequest: false) { $0 = newValue } }
    }

    /// Whether a request is in progress.
    public var isResponding: Bool {
        registrar.access(self, keyPath: \.isResponding)
        return state.withLock { $0.isResponding }
    }

    /// The token usage of all requests of this session.
    public var usage: Usage {
        registrar.access(self, keyPath: \.usage)
        return state.withLock { $0.usage }
    }

    /// How a failed request affects the transcript. With nil, a partial text is kept and a prompt without one is removed;
    /// after a tool's error, a guardrail violation, a refusal or the failure of a request for a value, all entries of the
    /// request are removed.
    public var transcriptErrorHandlingPolicy: TranscriptErrorHandlingPolicy? {
        get {
            registrar.access(self, keyPath: \.transcriptErrorHandlingPolicy)
            return state.withLock { $0.policy }
        }
        set {
            registrar.withMutation(of: self, keyPath: \.transcriptErrorHandlingPolicy) {
                state.withLock { $0.policy = newValue }
            }
        }
    }

    /// Values shared by the session's profiles, instructions and tools.
    public var properties: SessionPropertyValues { propertyValues }

    func setHistory(_ history: Transcript.HistoryView, isOwnRequest: Bool) {
        setTranscript(isOwnRequest: isOwnRequest) { $0.history = history }
    }

    /// Changes the transcript, unless another request than the caller's is in progress.
    private func setTranscript(isOwnRequest: Bool, _ change: (inout Transcript) -> Void) {
        update { state in
            // A setter cannot throw, so the running request throws the error.
            if state.isResponding, !isOwnRequest { state.wasMutated = true } else { change(&state.transcript) }
        }
    }

    /// Notifies observers that the response of the running request has grown.
    func notifyOfResponse() { registrar.withMutation(of: self, keyPath: \.transcript) {} }

    /// Changes the state and notifies observers of all properties that a request may change.
    func update<Result>(_ change: (inout State) throws -> Result) rethrows -> Result {
        try registrar.withMutation(of: self, keyPath: \.transcript) {
            try registrar.withMutation(of: self, keyPath: \.isResponding) {
                try registrar.withMutation(of: self, keyPath: \.usage) {
                    try state.withLock { state in try change(&state) }
                }
            }
        }
    }
}

/// How a failed request affects the session's transcript.
public struct TranscriptErrorHandlingPolicy: Sendable {
    let keepsEntries: Bool

    /// Restores the transcript to its state before the request.
    public static let revertTranscript = TranscriptErrorHandlingPolicy(keepsEntries: false)
    /// Keeps the recorded entries; the last entry may be partial.
    public static let preserveTranscript = TranscriptErrorHandlingPolicy(keepsEntries: true)
}
