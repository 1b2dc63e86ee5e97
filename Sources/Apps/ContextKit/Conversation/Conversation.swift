internal import Waiting
public import Foundation
public import FoundationModels
import Logging
public import TokenCounts

/// A conversation of unlimited length. Its context is kept within the model's window, and all of its turns are kept in
/// an archive.
///
/// ```swift
/// let conversation = try await Conversation(instructions: "You are a patient teacher.")
/// let answer = try await conversation.respond(to: "What is a monad?")
/// ```
///
/// When the context reaches a share of the window, a ``ContextPolicy`` makes it smaller. This is done after an answer
/// rather than before the next prompt. Evicted turns are recalled when a prompt needs them.
public actor Conversation {
    /// The conversation's identifier in the archive.
    public nonisolated let id: String
    /// The instructions of the model.
    public nonisolated let instructions: String
    nonisolated let archive: ConversationArchive
    private nonisolated let executor: DatabaseExecutor
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    nonisolated let tools: [any Tool]

    /// The model that answers.
    public internal(set) var model: any TokenCounting
    /// How the context is kept within the window.
    public nonisolated let policy: ContextPolicy
    /// Facts that are always in the context, verbatim.
    public var pinned: [String] { state.context.pinned }
    /// The last prompt in the archive if it has no answer, because the program ended while it was being answered; nil
    /// otherwise.
    public var unanswered: String? { state.unanswered }
    /// The last failure to write to the archive; nil after a successful write. Unwritten data is written with the next
    /// turn.
    public internal(set) var archiveProblem: ConversationError? {
        didSet {
            if let archiveProblem {
                Logger.contextKit.warning("A conversation is not saved: \(archiveProblem.localizedDescription)")
            }
        }
    }
    /// Why new turns could not be prepared for searches by their meaning, such as an embedding model that cannot be read; nil if they
    /// were. Turns that are not prepared are found by their words.
    public private(set) var searchProblem: String?
    /// The parts of the archive that could not be read. The conversation continues without them.
    public var damage: [ConversationArchive.Damage] { state.damage }
    /// The result of recall for the last prompt; nil before the first prompt.
    public internal(set) var lastRecall: Recall?

    /// Everything that changes, except for the session and what is in the archive.
    var state: ConversationState
    private(set) var session: LanguageModelSession
    /// The task that reads the model's computations, which the first request waits for.
    var restoring: Task<Void, Never>?
    /// The task that prepares new turns for searches.
    private var preparing: Task<Void, Never>?
    /// Number of entries of the session's transcript that belong to the head or to recorded turns.
    private(set) var recordedCount: Int
    /// Held by the task that has exclusive access to the conversation.
    nonisolated let lock = AsyncLock()
    /// Identifies a period of exclusive access.
    final class Section: Sendable {}
    /// The current period of exclusive access.
    var section: Section?
    /// The periods that the current task is part of: a tool may pin facts in the conversation that waits for the tool.
    @TaskLocal static var sections: [Section] = []
    let onCompaction: @Sendable (Compaction) -> Void
    /// Overrides the current date, for tests and benchmarks that replay earlier conversations.
    @TaskLocal package static var today: Date?

    /// Starts a new conversation, or continues one of the archive.
    ///
    /// - Parameters:
    ///   - instructions: The instructions of the model; nil for those in the archive, if any.
    ///   - id: The identifier of the conversation. If the archive contains it, it is continued.
    ///   - archive: Where turns are stored; nil for an archive in memory.
    ///   - onCompaction: Called after each compaction.
    /// - Throws: ``ConversationError/archive(_:)``, or the errors of counting tokens.
    public init(
        model: some TokenCounting = SystemLanguageModel.default, tools: [any Tool] = [], instructions: String? = nil,
        policy: ContextPolicy = .standard, archive: ConversationArchive? = nil, id: String = UUID().uuidString,
        onCompaction: @escaping @Sendable (Compaction) -> Void = { _ in }
    ) async throws {
        let archive = try archive ?? ConversationArchive()
        let definitions = tools.map { Transcript.ToolDefinition(tool: $0) }
        let expected = model.contextSize / 32
        let reserve = policy.reserve(contextSize: model.contextSize, limit: nil)
        let executor = DatabaseExecutor()
        state = try await executor.run {
            try archive.repairRevision(of: id)
            var stored = try archive.context(of: id)
            let new = ConversationState(
                instructions: instructions ?? "", tools: definitions, expectedPrompt: expected, reserve: reserve)
            if stored == nil {
                // Another program may have begun the same conversation at the same moment.
                try archive.begin(id, new.context)
                stored = try archive.context(of: id)
            }
            guard let stored else { return new }
            return ConversationState(
                stored, since: try archive.turns(of: id, from: stored.context.next), instructions: instructions,
                tools: definitions, expectedPrompt: expected, reserve: reserve)
        }
        self.executor = executor
        self.id = id
        self.model = model
        self.tools = tools
        self.instructions = state.context.instructions
        self.policy = policy
        self.archive = archive
        self.onCompaction = onCompaction
        let entries = state.draft().entries
        session = Self.session(model, tools, entries)
        recordedCount = entries.count
        // New instructions are stored, so that they are those of the next program too.
        if state.isContextUnsaved, !archive.isReadOnly { saveContext() }
        // The window of this model may be smaller than that of the last one.
        if try await count(session.transcript) > threshold { await compactNow(.modelChange) }
    }

    // MARK: - Requests

    /// The current context: all entries that the model sees.
    public var transcript: Transcript { session.transcript }

    /// Loads the model and processes the part of the next request that is already known, or reads it from the file that
    /// ``saveKVCache()`` wrote.
    public func prewarm() {
        prepareSearch()
        guard let file = archive.cacheFile(of: id), FileManager.default.fileExists(atPath: file.path),
            let store = model as? any KVCacheSaving
        else { return session.prewarm() }
        restoring = Task {
            // Without a usable file, everything is computed.
            do { _ = try await store.restoreKVCache(from: file) } catch {
                Logger.contextKit.info("The model's computations of a conversation cannot be read: \(error)")
            }
            session.prewarm()
        }
    }

    /// Writes everything that could not be written before, for example because the disk was full. All turns are written as soon as
    /// they are answered; call this before a program ends if ``archiveProblem`` is not nil.
    ///
    /// - Throws: ``ConversationError/archive(_:)`` if it still cannot be written.
    public func save() async throws {
        try await exclusively {
            // A compaction after the last answer may not have begun yet; it would change what is written.
            await compactIfDue()
            try saveUnsaved()
        }
    }

    /// Writes what the model has computed for the current context to a file beside the archive, so that a later process
    /// that continues the conversation and calls ``prewarm()`` starts sooner. The file takes some 30 KB for each token with
    /// the default model; the oldest files of an archive are removed when they exceed 1 GB.
    ///
    /// Calls ``save()`` first. Does nothing else for archives in memory, and for models that do not run in this process.
    /// - Throws: ``ConversationError/archive(_:)`` if the file cannot be written. The conversation itself is not affected.
    public func saveKVCache() async throws {
        try await save()
        guard let file = archive.cacheFile(of: id), let store = model as? any KVCacheSaving else { return }
        // A file that is being read must not be replaced by one with less.
        await restoring?.value
        do {
            try archive.makeRoomForCacheFile()
            try await store.saveKVCache(for: session.transcript, to: file)
        } catch {
            throw ConversationError.archive(.init(error))
        }
    }

    // MARK: - Search

    /// Prepares new turns for searches, in the background.
    func prepareSearch() {
        guard let search = policy.recall?.search else { return }
        // A detached task is not part of the request that has exclusive access.
        preparing = Task.detached(executorPreference: executor, priority: .background) {
            [archive, id, previous = preparing, weak self] in
            await previous?.value
            do {
                try await search.prepare(id, of: archive)
                await self?.prepared(problem: nil)
            } catch {
                // The next answer tries again.
                Logger.contextKit.warning("New turns are not prepared for searches by their meaning: \(error)")
                await self?.prepared(problem: "\(error)")
            }
        }
    }

    private func prepared(problem: String?) { searchProblem = problem }

    /// Waits until all answered turns can be found by their meaning. Requests do not need this.
    public func waitForSearch() async { await preparing?.value }

    // MARK: - Exclusive access

    /// Runs a closure with exclusive access to the conversation. Requests, compactions and changes of pinned facts are
    /// serialized.
    ///
    /// - Parameter place: The place in the queue, if it has been reserved.
    /// - Throws: `CancellationError` if the task is cancelled while it waits for access, or the closure's error.
    func exclusively<Result: Sendable>(
        _ place: AsyncLock.Place? = nil, _ body: () async throws -> Result
    ) async throws -> Result {
        // A tool may wait for this task. While tools run, the request itself changes nothing.
        if hasExclusiveAccess || isRunningTools {
            if let place { lock.giveUp(place) }
            return try await body()
        }
        try await lock.acquire(place ?? lock.reserve())
        defer {
            section = nil
            lock.release()
        }
        let mine = Section()
        section = mine
        return try await Self.$sections.withValue(Self.sections + [mine]) {
            // A change of the context that the operation did not write, for example because it failed.
            defer { if state.isContextUnsaved, archiveProblem == nil, !archive.isReadOnly { saveContext() } }
            return try await body()
        }
    }

    /// Whether tools of the current request are running: no outputs follow their calls in the session until all have
    /// returned.
    var isRunningTools: Bool {
        guard isAnswering, session.isResponding else { return false }
        // The model may have written text or reasoning after its calls.
        let last = session.transcript.last {
            switch $0 {
            case .reasoning, .response: false
            default: true
            }
        }
        if case .toolCalls? = last { return true } else { return false }
    }

    /// Whether the current task is part of the operation that has exclusive access. A task that was created there and
    /// outlives the operation is not.
    var hasExclusiveAccess: Bool { section.map { mine in Self.sections.contains { $0 === mine } } ?? false }

    /// Whether a request is being answered.
    var isAnswering: Bool { state.inFlight != nil }

    // MARK: - The session

    /// Creates a new session with the current context. The keys and values of the prefix that it has in common with the
    /// previous session are reused.
    func rebuild() {
        let entries = state.draft().entries
        session = Self.session(model, tools, entries)
        recordedCount = entries.count
        state.didUpdateSession()
    }

    /// Updates the session after a change of the context. A running request keeps its session.
    func updateSession() { if state.isSessionOutdated, state.inFlight == nil { rebuild() } }

    /// The entries of the session belong to recorded turns.
    func didRecordEntries() { recordedCount = session.transcript.count }

    /// The entries that were added to the session since it was created or since the last turn was recorded.
    var newEntries: [Transcript.Entry] { Array(session.transcript.dropFirst(recordedCount)) }

    private static func session(
        _ model: some TokenCounting, _ tools: [any Tool], _ entries: [Transcript.Entry]
    ) -> LanguageModelSession {
        let session = LanguageModelSession(model: model, tools: tools, transcript: Transcript(entries: entries))
        // The conversation decides what to keep after an error: the results of tools that have run must not be removed.
        session.transcriptErrorHandlingPolicy = .preserveTranscript
        return session
    }
}

extension Int {
    /// A share of a number of tokens, limited to the range from 0 to this number.
    func share(_ share: Double) -> Int {
        let part = Double(self) * share
        return part.isNaN || part <= 0 ? 0 : part >= Double(self) ? self : Int(part)
    }

    func clamped(to range: ClosedRange<Int>) -> Int { Swift.min(Swift.max(self, range.lowerBound), range.upperBound) }
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}

extension Error {
    /// Whether the error reports that a request exceeded the window.
    var isOverflow: Bool {
        if let error = self as? LanguageModelError, case .contextSizeExceeded = error { true } else { false }
    }
}
