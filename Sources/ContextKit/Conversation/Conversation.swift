internal import AsyncLocks
public import Foundation
public import FoundationModels

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
    nonisolated let tools: [any Tool]

    /// The model that answers.
    public internal(set) var model: any WindowedLanguageModel
    /// How the context is kept within the window.
    public nonisolated let policy: ContextPolicy
    /// Facts that are always in the context, verbatim.
    public var pinned: [String] { context.pinned }
    /// The last prompt in the archive if it has no answer, because the program ended while it was being answered; nil
    /// otherwise.
    public internal(set) var unanswered: String?
    /// The last failure to write to the archive; nil after a successful write. Unwritten data is written with the next
    /// turn.
    public internal(set) var archiveProblem: ConversationError?
    /// The parts of the archive that could not be read. The conversation continues without them.
    public internal(set) var damage: [ConversationArchive.Damage] = []
    /// The result of recall for the last prompt; nil before the first prompt.
    public internal(set) var lastRecall: Recall?

    var context: ConversationArchive.Context
    /// The revision of the context in the archive. It shows whether another program has changed the context.
    var revision = 0
    /// The turns in the context, oldest first.
    var contextTurns: [Turn]
    var unsaved: [Turn] = []
    var nextNumber: Int
    private(set) var session: LanguageModelSession
    /// Number of entries of the session's transcript that belong to the head or to recorded turns.
    private var recordedCount: Int
    /// The number of the turn that is being answered.
    private(set) var inFlight: Int?
    /// Compactions that have not been written yet, and whether the context has not been written.
    var unsavedRecords: [Compaction] = []
    var isContextUnsaved = false
    /// Numbers of turns that are not in the context and that another program may still answer.
    var unansweredNumbers: Set<Int> = []
    /// The pinned facts that were last read from or written to the archive.
    var storedPins: [String] = []
    /// The expected number of tokens of the next prompt (a decaying maximum of the previous ones), and the number
    /// reserved for the last response. They determine the threshold for compaction.
    private var expectedPrompt: Int
    private var lastReserve: Int
    /// Whether the context must be checked against the threshold, and made smaller, before the next request.
    private var isCompactionDue = false
    /// Held by the task that has exclusive access to the conversation.
    nonisolated let lock = AsyncLock()
    /// Identifies a period of exclusive access.
    final class Section: Sendable {}
    /// The current period of exclusive access.
    private(set) var section: Section?
    /// The periods that the current task is part of: a tool may pin facts in the conversation that waits for the tool.
    @TaskLocal private static var sections: [Section] = []
    /// Whether the head has changed during a request.
    private(set) var isHeadOutdated = false
    private let onCompaction: @Sendable (Compaction) -> Void
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
        model: some WindowedLanguageModel = SystemLanguageModel.default, tools: [any Tool] = [], instructions: String? = nil,
        policy: ContextPolicy = .standard, archive: ConversationArchive? = nil, id: String = UUID().uuidString,
        onCompaction: @escaping @Sendable (Compaction) -> Void = { _ in }
    ) async throws {
        let archive = try archive ?? ConversationArchive()
        var context = ConversationArchive.Context()
        var contextTurns: [Turn] = []
        try archive.repairRevision(of: id)
        if let stored = try archive.context(of: id) {
            (context, revision) = (stored.context, stored.revision)
            damage = stored.damage.map { [$0] } ?? []
            contextTurns = context.kept.map {
                Turn(number: $0.number, prompt: $0.prompt, date: $0.date, entries: Array($0.entries))
            }
            let since = try archive.turns(of: id, from: context.next)
            damage += since.damage
            contextTurns += since.turns.filter { !$0.entries.isEmpty }
            nextNumber = max(since.last + 1, context.next)
            // Another program may be answering these turns.
            unansweredNumbers = Set(since.turns.filter(\.entries.isEmpty).map(\.number))
            if let newest = since.turns.last, newest.number == since.last, newest.entries.isEmpty { unanswered = newest.prompt }
            context.instructions = instructions ?? context.instructions
        } else {
            context.instructions = instructions ?? ""
            try archive.begin(id, context)
            nextNumber = 0
        }
        self.id = id
        self.model = model
        self.tools = tools
        self.instructions = context.instructions
        self.policy = policy
        self.archive = archive
        self.context = context
        storedPins = context.pinned
        self.contextTurns = contextTurns
        self.onCompaction = onCompaction
        expectedPrompt = model.contextSize / 32
        lastReserve = policy.reserve(contextSize: model.contextSize, limit: nil)
        let draft = ContextDraft(
            instructions: context.instructions, tools: tools.map { Transcript.ToolDefinition(tool: $0) },
            pinned: Array(context.pinned.prefix(context.pinnedInHead)), carried: context.carried, turns: contextTurns)
        session = Self.session(model, tools, draft.entries)
        recordedCount = draft.entries.count
        // The window of this model may be smaller than that of the last one.
        if try await count(session.transcript) > threshold { await compactNow(.modelChange) }
    }

    // MARK: - Requests

    /// The current context: all entries that the model sees.
    public var transcript: Transcript { session.transcript }

    /// Loads the model and processes the part of the next request that is already known.
    public func prewarm() { session.prewarm() }

    /// Answers a prompt. Requests of several tasks are answered in order; the wait ends if the task is cancelled.
    ///
    /// - Throws: ``ConversationError``, or the errors of the session. It throws
    ///   `LanguageModelSession.Error.concurrentRequests` while tools of another request are running, because such a tool
    ///   may be waiting for this request, and
    ///   `LanguageModelError.contextSizeExceeded` only if the response is longer than the space that a compacted
    ///   context leaves, or if tools have already run.
    @discardableResult
    public func respond(
        to prompt: String, options: GenerationOptions = GenerationOptions()
    ) async throws -> LanguageModelSession.Response<String> {
        try await ask(prompt, nil, options) { session, prompt, _, partial in
            try await partial.collect(session.streamResponse(to: prompt, options: options))
        }
    }

    /// Answers a prompt with a structured value.
    ///
    /// - Throws: The same errors as ``respond(to:options:)``.
    @discardableResult
    public func respond<Content: Generable & Sendable>(
        to prompt: String, generating type: Content.Type, options: GenerationOptions = GenerationOptions()
    ) async throws -> LanguageModelSession.Response<Content> {
        try await ask(prompt, Content.generationSchema, options) { session, prompt, _, partial in
            try await partial.collect(session.streamResponse(to: prompt, generating: type, options: options))
        }
    }

    /// A partial answer.
    public struct Snapshot: Sendable {
        /// The text generated so far.
        public var content: String
        /// The tokens used by the request; complete in the last snapshot.
        public var usage: LanguageModelSession.Usage
        /// 1, or 2 after the window was exceeded and the answer was started again.
        public var attempt: Int
    }

    /// Streams the answer to a prompt. If the window is exceeded during the answer, the answer is started again, once.
    public nonisolated func streamResponse(
        to prompt: String, options: GenerationOptions = GenerationOptions()
    ) -> AsyncThrowingStream<Snapshot, any Error> {
        AsyncThrowingStream { continuation in
            let task = Task {
                do {
                    try await self.ask(prompt, nil, options) { session, prompt, attempt, partial in
                        for try await snapshot in session.streamResponse(to: prompt, options: options) {
                            partial.set(snapshot.rawContent)
                            continuation.yield(
                                Snapshot(content: snapshot.content, usage: snapshot.usage, attempt: attempt))
                        }
                    }
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    private func ask<Result: Sendable>(
        _ prompt: String, _ schema: GenerationSchema?, _ options: GenerationOptions,
        _ operation: Operation<Result>
    ) async throws -> Result {
        // A tool that sends a request to the conversation which waits for the tool would cause a deadlock.
        if hasExclusiveAccess || isRunningTools { throw LanguageModelSession.Error.concurrentRequests }
        let result = try await exclusively {
            await compactIfDue()
            try Task.checkCancellation()
            try saveUnsaved()
            try refresh()
            let request = Request(prompt: prompt, schema: schema, options: options)
            let date = Self.today ?? Date()
            var asked = try await prepare(request)
            try Task.checkCancellation()
            // Another program that continues the same conversation may have used the number in the meantime.
            while try !archive.recordPrompt(prompt, number: nextNumber, date: date, in: id) {
                let taken = nextNumber
                try refresh()
                // If no newer turn is found, the file is damaged: the turn with this number cannot be read.
                guard nextNumber > taken else { throw ConversationError.archive(.init("there is no free turn number.")) }
                asked = try await prepare(request)
                try Task.checkCancellation()
            }
            let number = nextNumber
            unanswered = nil
            nextNumber += 1
            inFlight = number
            defer {
                inFlight = nil
                if isHeadOutdated { rebuild() }
            }
            let partial = PartialResponse()
            let result: Result
            do {
                result = try await attempt(request, asked, partial, operation)
            } catch {
                keepPartial(prompt, number, date, partial, error)
                throw error
            }
            isCompactionDue = true
            // Waits until this request has ended, because it is not part of it. If the next request begins earlier, that
            // request makes the context smaller itself.
            Self.$sections.withValue([]) {
                _ = Task { try await self.exclusively { await self.compactIfDue() } }
            }
            try record(prompt, number, date)
            return result
        }
        return result
    }

    /// Sends a request to a session, and stores what has been generated so far.
    private typealias Operation<Result> =
        @Sendable (
            _ session: LanguageModelSession, _ prompt: String, _ attempt: Int, _ partial: PartialResponse
        ) async throws -> sending Result

    /// A prompt and the form of its response.
    struct Request {
        let prompt: String
        let schema: GenerationSchema?
        let options: GenerationOptions

        func entry(_ text: String) -> Transcript.Entry {
            .prompt(
                .init(
                    segments: [.text(.init(content: text))], options: options,
                    responseFormat: schema.map { Transcript.ResponseFormat(schema: $0) }))
        }
    }

    /// Sends a request, and repeats it once if the window is exceeded. The second time the response itself is too long.
    private func attempt<Result>(
        _ request: Request, _ asked: String, _ partial: PartialResponse, _ operation: Operation<Result>
    ) async throws -> sending Result {
        do {
            return try await operation(session, asked, 1, partial)
        } catch let error where error.isOverflow {
            // Tools that have run are not run again, because they may have side effects.
            if newEntries.contains(where: { if case .toolOutput = $0 { true } else { false } }) { throw error }
            partial.set(nil)
            rebuild()
            await compactNow(.overflow)
            try Task.checkCancellation()
        }
        let plain = withNewFacts(request.prompt)
        if try await !fits(plain, request) { try await evictAllTurns(for: plain, request) }
        lastRecall?.discardTexts()
        return try await operation(session, plain, 2, partial)
    }

    /// Runs a closure with exclusive access to the conversation. Requests, compactions and changes of pinned facts are
    /// serialized.
    ///
    /// - Throws: `CancellationError` if the task is cancelled while it waits for access, or the closure's error.
    func exclusively<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result {
        // A tool may wait for this task. While tools run, the request itself changes nothing.
        if hasExclusiveAccess || isRunningTools { return try await body() }
        try await lock.acquire()
        defer {
            section = nil
            lock.release()
        }
        let mine = Section()
        section = mine
        return try await Self.$sections.withValue(Self.sections + [mine]) { try await body() }
    }

    /// Whether tools of the current request are running: no outputs follow their calls in the session until all have
    /// returned.
    var isRunningTools: Bool {
        guard inFlight != nil, session.isResponding else { return false }
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

    /// The entries that were added to the session since it was created or since the last turn was recorded.
    private var newEntries: [Transcript.Entry] { Array(session.transcript.dropFirst(recordedCount)) }

    private func record(_ prompt: String, _ number: Int, _ date: Date) throws {
        let turn = Turn(number: number, prompt: prompt, date: date, entries: newEntries).encodable
        contextTurns.append(turn)
        unsaved.append(turn)
        recordedCount = session.transcript.count
        do { try saveUnsaved() } catch {
            // The answer is available; it is written before the next prompt.
            let problem = ConversationError(archive: error)
            archiveProblem = problem
            // The turn is written before the context: it may be saved even if there was an error.
            guard unsaved.contains(where: { $0.number == number }) else { return }
            var reason = problem.localizedDescription
            if case .archive(let failure) = problem { reason = failure.reason }
            throw ConversationError.unsaved(.init(content: turn.response, reason: reason))
        }
    }

    /// After an error, keeps the text generated so far and the results of tools. If there are none, or after a
    /// guardrail violation, the prompt is removed from the archive.
    private func keepPartial(
        _ prompt: String, _ number: Int, _ date: Date, _ response: PartialResponse, _ error: any Error
    ) {
        var partial = Turn(number: number, prompt: prompt, date: date, entries: newEntries).encodable
        // Calls without outputs are removed.
        while case .toolCalls? = partial.entries.last { partial.entries.removeLast() }
        // A cancelled session that has not ended yet has no entry for the text generated so far.
        if let text = response.text, !text.isEmpty, !partial.entries.contains(where: { $0.isResponse(text) }),
            partial.entries.last.map({ if case .response = $0 { false } else { true } }) ?? true
        {
            partial.entries.append(
                .response(Transcript.Response(assetIDs: [], segments: [.text(.init(content: text))])))
        }
        var isUnsafe = false
        if let error = error as? LanguageModelError, case .guardrailViolation = error { isUnsafe = true }
        if !isUnsafe, partial.hasAnswer {
            contextTurns.append(partial)
            unsaved.append(partial)
            do { try saveUnsaved() } catch { archiveProblem = ConversationError(archive: error) }
        } else {
            // If this fails, the prompt remains marked as unanswered.
            do {
                try archive.removePrompt(turn: number, in: id)
                // Another program may use the number.
                unansweredNumbers.insert(number)
            } catch { archiveProblem = ConversationError(archive: error) }
        }
        rebuild()
    }

    // MARK: - Context

    /// Size of the window in tokens.
    public var contextSize: Int { model.contextSize }

    /// Number of tokens of the current context.
    public func tokenCount() async throws -> Int { try await count(session.transcript) }

    func count(_ entries: some Collection<Transcript.Entry>) async throws -> Int {
        // Some templates require at least one message.
        entries.isEmpty ? 0 : try await model.tokenCount(for: entries)
    }

    private var threshold: Int {
        policy.threshold(contextSize: model.contextSize, reserve: lastReserve, promptTokens: expectedPrompt)
    }

    /// Tokens of the context without recalled turns and new facts in front of prompts, which are removed anyway.
    private func tokensWithoutRecall() async throws -> Int {
        var lasting = draft()
        lasting.turns = lasting.turns.map(\.withOriginalPrompt)
        return try await count(lasting.entries)
    }

    func reserve(_ request: Request) -> Int {
        policy.reserve(contextSize: model.contextSize, limit: request.options.maximumResponseTokens)
    }

    private func fits(_ prompt: String, _ request: Request) async throws -> Bool {
        try await count(Array(session.transcript) + [request.entry(prompt)]) + reserve(request) <= model.contextSize
    }

    /// Makes space for a prompt and returns it with the earlier turns that it needs.
    private func prepare(_ request: Request) async throws -> String {
        // A prompt that does not fit at all is rejected before it is searched for and anything is evicted for it. Nearly
        // all prompts have fewer bytes than the window has tokens.
        if request.prompt.utf8.count > model.contextSize { try await checkFits(request) }
        let plan = try await plan(for: request)
        let tokens = try await plan.plainTokens - count(plan.entries)
        expectedPrompt = max(tokens, min(expectedPrompt, model.contextSize / 4) * 3 / 4)
        lastReserve = reserve(request)
        if plan.fits { return apply(plan) }
        let plain = withNewFacts(request.prompt)
        try await checkFits(request)
        await compactNow(.beforeRequest)
        try Task.checkCancellation()
        let second = try await self.plan(for: request)
        if second.fits { return apply(second) }
        lastRecall = second.recall
        try await evictAllTurns(for: plain, request)
        return plain
    }

    /// - Throws: ``ConversationError/promptTooLarge(_:)`` if the prompt does not fit the window without any turns.
    private func checkFits(_ request: Request) async throws {
        var clean = draft()
        clean.turns = []
        clean.carried = ""
        let fixed = try await count(clean.entries)
        let minimum = try await count(clean.entries + [request.entry(withNewFacts(request.prompt))])
        guard minimum + reserve(request) <= model.contextSize else {
            throw ConversationError.promptTooLarge(
                .init(
                    contextSize: model.contextSize, fixedTokens: fixed, promptTokens: minimum - fixed,
                    responseReserve: reserve(request)))
        }
    }

    /// Applies a plan to the context and returns the text of its prompt.
    private func apply(_ plan: Plan) -> String {
        if let turns = plan.turns {
            contextTurns = turns
            rebuild()
        }
        lastRecall = plan.recall
        ConversationTrace.record(plan.recall)
        return plan.text
    }

    /// For a prompt that takes nearly the whole window: evicts all turns and, if necessary, leaves out the carried text
    /// until the next compaction.
    private func evictAllTurns(for prompt: String, _ request: Request) async throws {
        var bare = draft()
        bare.evict { _ in true }
        let carried = bare.carried
        if try await count(bare.entries + [request.entry(prompt)]) + reserve(request) > model.contextSize { bare.carried = "" }
        adopt(bare)
        context.carried = carried
    }

    /// The current context as a draft.
    func draft(pinnedInHead: Int? = nil) -> ContextDraft {
        ContextDraft(
            instructions: instructions, tools: tools.map { Transcript.ToolDefinition(tool: $0) },
            pinned: Array(context.pinned.prefix(pinnedInHead ?? context.pinnedInHead)), carried: context.carried,
            turns: contextTurns)
    }

    /// Makes a draft the current context.
    private func adopt(_ draft: ContextDraft) {
        contextTurns = draft.turns
        context.carried = draft.carried
        rebuild()
    }

    /// Creates a new session with the current context. The keys and values of the prefix that it has in common with the
    /// previous session are reused.
    func rebuild() {
        let entries = draft().entries
        session = Self.session(model, tools, entries)
        recordedCount = entries.count
        isHeadOutdated = false
    }

    private static func session(
        _ model: some WindowedLanguageModel, _ tools: [any Tool], _ entries: [Transcript.Entry]
    ) -> LanguageModelSession {
        let session = LanguageModelSession(model: model, tools: tools, transcript: Transcript(entries: entries))
        // The conversation decides what to keep after an error: the results of tools that have run must not be removed.
        session.transcriptErrorHandlingPolicy = .preserveTranscript
        return session
    }

    /// Updates the session after a change of pinned facts. A running request keeps its session.
    func updateSessionAfterPinning() { if inFlight == nil { rebuild() } else { isHeadOutdated = true } }

    /// Whether a request is being answered.
    var isAnswering: Bool { inFlight != nil }

    /// Makes the context smaller now. Does nothing if it is called by a tool of the current request.
    public func compact() async {
        if hasExclusiveAccess || isRunningTools { return }
        // A cancelled task changes nothing.
        try? await exclusively { await compactNow(.requested) }
    }

    /// Makes the context smaller if a request has ended since the last check, and if it is larger than the threshold.
    func compactIfDue() async {
        guard isCompactionDue else { return }
        if let tokens = try? await tokensWithoutRecall(),  // if counting fails, the next request reports it
            tokens > threshold
        {
            await compactNow(.threshold)
        }
        isCompactionDue = Task.isCancelled
    }

    /// Continues with another model. If the context is too large for its window, it is made smaller.
    ///
    /// - Throws: The errors of counting with the new model. The conversation then keeps the old model.
    public func use(_ model: some WindowedLanguageModel) async throws {
        if hasExclusiveAccess || isRunningTools { throw LanguageModelSession.Error.concurrentRequests }
        try await exclusively {
            let tokens = session.transcript.isEmpty ? 0 : try await model.tokenCount(for: session.transcript)
            self.model = model
            rebuild()
            if tokens > threshold { await compactNow(.modelChange) }
        }
    }

    /// Never throws. In the worst case the context has only the instructions and pinned facts. If the task is
    /// cancelled, nothing changes.
    private func compactNow(_ reason: Compaction.Reason) async {
        let start = ContinuousClock.now
        let before = try? await count(session.transcript)  // only for the record
        let isEmergency = reason == .overflow
        let tools = CompactionStep.Tools(model: model, contextSize: model.contextSize, isEmergency: isEmergency)
        // New facts move to the head, since everything after the head is computed again anyway.
        var draft = self.draft(pinnedInHead: context.pinned.count)
        draft.turns = draft.turns.map(\.withOriginalPrompt)
        var problems = await draft.apply(policy.steps, tools)
        // Independently of the steps, a compacted context must leave half of the window free, and two thirds after an
        // overflow.
        problems += await draft.cut(to: model.contextSize / (isEmergency ? 3 : 2), tools)
        if Task.isCancelled { return }
        context.pinnedInHead = context.pinned.count
        adopt(draft)
        let after = try? await count(session.transcript)  // only for the record
        let record = Compaction(
            date: Date(), reason: reason, tokensBefore: before ?? 0, tokensAfter: after ?? 0,
            evictedTurns: draft.evicted.map(\.number), droppedToolExchanges: draft.droppedToolExchanges,
            carried: draft.carried, seconds: start.duration(to: .now).seconds,
            problem: problems.isEmpty ? nil : problems.joined(separator: "\n"))
        unsavedRecords.append(record)
        saveContext()
        ConversationTrace.record(record)
        // Tasks created by the callback are not part of this operation: they must wait for exclusive access.
        Self.$sections.withValue([]) { onCompaction(record) }
        session.prewarm()
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
