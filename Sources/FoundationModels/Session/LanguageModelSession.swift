public import Observation
internal import Synchronization

/// A conversation with a model: it remembers what was said, and answers one request at a time.
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
        /// Someone else changed the transcript during a request.
        var wasMutated = false
        /// The request was cancelled and is about to end; the next one waits for that.
        var isEnding = false
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
        var waiters = 0
        /// What the last request had recorded when it failed, if it is not in the transcript.
        var discarded: [Transcript.Entry] = []
        /// The profile that was active in the last request, and what it wants to hear when another one is.
        var activeProfile: ActiveProfile?
    }

    struct ActiveProfile: @unchecked Sendable {  // Called by one request at a time.
        let identity: String
        let onDeactivate: [@isolated(any) () async -> Void]
    }

    let state: Mutex<State>
    let behavior: SessionBehavior
    let executors = ExecutorStore()
    private let propertyValues = SessionPropertyValues()
    private let registrar = ObservationRegistrar()

    init(behavior: SessionBehavior, transcript: Transcript) {
        self.behavior = behavior
        state = Mutex(State(transcript: transcript))
        propertyValues.belong(to: self)
    }

    /// Everything said so far. Readable at any time, also after an error; it may be changed between requests.
    public var transcript: Transcript {
        get {
            registrar.access(self, keyPath: \.transcript)
            return state.withLock { $0.transcript }
        }
        set { setTranscript(isOwnRequest: false) { $0 = newValue } }
    }

    /// Whether a request is being answered.
    public var isResponding: Bool {
        registrar.access(self, keyPath: \.isResponding)
        return state.withLock { $0.isResponding }
    }

    /// What all requests of this session have cost.
    public var usage: Usage {
        registrar.access(self, keyPath: \.usage)
        return state.withLock { $0.usage }
    }

    /// What becomes of the transcript when a request fails. Nil keeps a response that had begun, and takes back a prompt that
    /// nothing was said to; after a tool's error everything of the request is taken back.
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

    /// The values that this session's profiles, instructions and tools share.
    public var properties: SessionPropertyValues { propertyValues }

    func setHistory(_ history: Transcript.HistoryView, isOwnRequest: Bool) {
        setTranscript(isOwnRequest: isOwnRequest) { $0.history = history }
    }

    /// Changes the transcript, unless a request is running that is not the one that wants it.
    private func setTranscript(isOwnRequest: Bool, _ change: (inout Transcript) -> Void) {
        update { state in
            // A setter cannot throw: the request that is disturbed does.
            if state.isResponding, !isOwnRequest { state.wasMutated = true } else { change(&state.transcript) }
        }
    }

    /// Changes state and tells observers of everything that a request may change.
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

/// What becomes of a session's transcript when a request fails.
public struct TranscriptErrorHandlingPolicy: Sendable {
    let keepsEntries: Bool

    /// The transcript is as it was before the request.
    public static let revertTranscript = TranscriptErrorHandlingPolicy(keepsEntries: false)
    /// What was recorded stays; the last entry may be partial.
    public static let preserveTranscript = TranscriptErrorHandlingPolicy(keepsEntries: true)
}
