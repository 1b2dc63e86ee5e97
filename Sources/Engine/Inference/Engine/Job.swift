internal import Synchronization

/// Work that is being run.
final class Job {
    let id: Int
    let work: any SequenceWork
    let cache: any SequenceMemory
    var priority: Scheduler.Priority
    let signals: RequestSignals
    let completion: (Result<Void, any Error>) -> Void
    /// The tokens that the work has named, and the number of them that have been processed.
    var tokens: [TokenID] = []
    var processed = 0
    var wanted = WantedLogits.processOnly
    let arrival = ContinuousClock.now
    /// Whether it is being processed.
    var isActive = false
    /// Whether the tokens are those of the prompt.
    var isInPrompt = false
    /// Whether the work waits for something other than the model.
    var isBlocked = false
    /// The branch on which the work is, and its memory.
    var branch: (id: WorkBranch, cache: any SequenceMemory)?
    /// What the sequence or branch begins with; nil if that is only tokens.
    var input: ModelInput? { didSet { if input?.rows.isPlain == true { input = nil } } }
    /// The memory of the sequence or the branch on which the work is.
    var current: any SequenceMemory { branch?.cache ?? cache }
    /// The job whose first `count` tokens this one waits for.
    var source: (id: Int, count: Int)?
    /// The position at which the recurrent states are saved.
    var checkpoint: Int?

    var remaining: Int { tokens.count - processed }

    /// Whether the recurrent states are saved after the next `count` tokens.
    func addsCheckpoint(after count: Int) -> Bool { current.tokens.count + count == checkpoint }

    /// The bytes of the memory that the next `count` tokens need.
    func bytesToReserve(_ count: Int) -> Int {
        current.bytesToReserve(count, withCheckpoint: addsCheckpoint(after: count))
    }

    init(
        id: Int, _ work: any SequenceWork, _ cache: any SequenceMemory, _ priority: Scheduler.Priority, _ signals: RequestSignals,
        _ completion: @escaping (Result<Void, any Error>) -> Void
    ) {
        self.id = id
        self.work = work
        self.cache = cache
        self.priority = priority
        self.signals = signals
        self.completion = completion
        tokens.reserveCapacity(EngineLimits.fewRows)
    }
}

/// What happens to a request while it is processed; set from any thread.
final class RequestSignals: Sendable {
    private let cancelled = Atomic(false)
    private let escalated = Atomic(false)

    var isCancelled: Bool { cancelled.load(ordering: .relaxed) }
    /// Whether a task with a higher priority waits for the request.
    var isEscalated: Bool { escalated.load(ordering: .relaxed) }

    func cancel() { cancelled.store(true, ordering: .relaxed) }
    func escalate() { escalated.store(true, ordering: .relaxed) }
}
