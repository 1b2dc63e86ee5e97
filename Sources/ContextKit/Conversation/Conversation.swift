public import Foundation
public import FoundationModels

/// A chat that does not end: the window is kept free, nothing that was said is lost.
///
/// ```swift
/// let conversation = try await Conversation(instructions: "You are a patient teacher.")
/// let answer = try await conversation.respond(to: "What is a monad?")
/// ```
///
/// Every turn goes to an archive. When the context reaches a share of the window it is made smaller by a
/// ``ContextPolicy``, after the answer and not before the next question; turns that left it come back when a prompt
/// needs them.
public actor Conversation {
    /// Its name in the archive.
    public nonisolated let id: String
    /// What is told the model before everything else.
    public nonisolated let instructions: String
    nonisolated let archive: ConversationArchive
    nonisolated let tools: [any Tool]

    /// The model that answers.
    public internal(set) var model: any WindowedLanguageModel
    /// How the context is kept within the window.
    public nonisolated let policy: ContextPolicy
    /// Facts that are in the context at any time, word for word.
    public var pinned: [String] { context.pinned }
    /// The prompt that was being answered when the program ended; nil if there is none.
    public internal(set) var unanswered: String?
    /// The last failure to write to the archive. What was not written is written with the next turn.
    public internal(set) var archiveProblem: ConversationError?
    /// What was found in the archive that cannot be read. The conversation goes on without it.
    public internal(set) var damage: [ConversationArchive.Damage] = []
    /// What was done to bring back what the last prompt needed; nil before the first.
    public internal(set) var lastRecall: Recall?

    var context: ConversationArchive.Context
    /// Tells whether another program has changed the context in the archive.
    var revision = 0
    /// The turns in the context, oldest first.
    var live: [Turn]
    var unsaved: [Turn] = []
    var nextNumber: Int
    private(set) var session: LanguageModelSession
    /// Entries of the session's transcript that belong to the head or to turns.
    private var recordedCount: Int
    /// The number of the turn that is being answered.
    private(set) var inFlight: Int?
    /// Compactions that could not be written yet, and whether the context could not.
    var unsavedRecords: [Compaction] = []
    var isContextUnsaved = false
    /// Numbers of turns that are not in the context and that another program may answer yet.
    var awaited: Set<Int> = []
    /// The pinned facts that the archive had last.
    var storedPins: [String] = []
    /// Tokens of the last prompts, the greatest of them fading, and of the room for the last response: what the next
    /// may need.
    private var expectedPrompt: Int
    private var lastReserve: Int
    /// The compaction that is under way, which the next request waits for.
    private(set) var pendingCompaction: Task<Void, Never>?
    /// Whoever changes the conversation does so alone; others wait here.
    private var isTaken = false
    /// A stretch of time in which one task changes a conversation.
    private final class Section: Sendable {}
    /// The present one.
    private var section: Section?
    /// Those that the task is in: tools may pin facts in the conversation that waits for them.
    @TaskLocal private static var sections: [Section] = []
    /// Whether the head has changed during a request.
    private(set) var isHeadOutdated = false
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private let onCompaction: @Sendable (Compaction) -> Void
    /// The present day, for tests and benchmarks that replay what was said on other days.
    @TaskLocal package static var today: Date?

    /// Begins a conversation, or goes on with one of the archive.
    ///
    /// - Parameters:
    ///   - instructions: What is told the model before everything else; nil for what the archive has, if anything.
    ///   - id: The name of a conversation; if the archive has it, it goes on where it stopped.
    ///   - archive: Where turns are kept; nil for an archive in memory.
    ///   - onCompaction: Told about each compaction.
    /// - Throws: ``ConversationError/archive(_:)``.
    public init(
        model: some WindowedLanguageModel = SystemLanguageModel.default, tools: [any Tool] = [], instructions: String? = nil,
        policy: ContextPolicy = .standard, archive: ConversationArchive? = nil, id: String = UUID().uuidString,
        onCompaction: @escaping @Sendable (Compaction) -> Void = { _ in }
    ) async throws {
        let archive = try archive ?? ConversationArchive()
        var context = ConversationArchive.Context()
        var live: [Turn] = []
        try archive.repairRevision(of: id)
        if let stored = try archive.context(of: id) {
            (context, revision) = (stored.context, stored.revision)
            damage = stored.damage.map { [$0] } ?? []
            live = context.kept.map { Turn(number: $0.number, prompt: $0.prompt, date: $0.date, entries: Array($0.entries)) }
            let since = try archive.turns(of: id, from: context.next)
            damage += since.damage
            live += since.turns.filter { !$0.entries.isEmpty }
            nextNumber = max(since.last + 1, context.next)
            // It may be that another program is answering them.
            awaited = Set(since.turns.filter(\.entries.isEmpty).map(\.number))
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
        self.live = live
        self.onCompaction = onCompaction
        expectedPrompt = model.contextSize / 32
        lastReserve = policy.reserve(contextSize: model.contextSize, limit: nil)
        let draft = ContextDraft(
            instructions: context.instructions, tools: tools.map { Transcript.ToolDefinition(tool: $0) },
            pinned: Array(context.pinned.prefix(context.pinnedInHead)), carried: context.carried, turns: live)
        session = Self.session(model, tools, draft.entries)
        recordedCount = draft.entries.count
        // The window of this model may be smaller than that of the last one.
        if try await count(session.transcript) > threshold { await compactNow(.modelChange) }
    }

    // MARK: - Asking

    /// What the model sees: everything that is in the context.
    public var transcript: Transcript { session.transcript }

    /// Loads the model and computes what the next request begins with.
    public func prewarm() { session.prewarm() }

    /// Answers a prompt.
    ///
    /// - Throws: ``ConversationError``, or what the session throws; the window running over is not among it unless the
    ///   response alone is longer than what a compacted context leaves free.
    @discardableResult
    public func respond(
        to prompt: String, options: GenerationOptions = GenerationOptions()
    ) async throws -> LanguageModelSession.Response<String> {
        try await ask(prompt, nil, options) { session, prompt, _ in
            try await session.respond(to: prompt, options: options)
        }
    }

    /// Answers a prompt with a value.
    ///
    /// - Throws: as ``respond(to:options:)``.
    @discardableResult
    public func respond<Content: Generable & Sendable>(
        to prompt: String, generating type: Content.Type, options: GenerationOptions = GenerationOptions()
    ) async throws -> LanguageModelSession.Response<Content> {
        try await ask(prompt, Content.generationSchema, options) { session, prompt, _ in
            try await session.respond(to: prompt, generating: type, options: options)
        }
    }

    /// An answer up to some point.
    public struct Snapshot: Sendable {
        /// What there is of the text.
        public var content: String
        /// What the request has cost; complete in the last snapshot.
        public var usage: LanguageModelSession.Usage
        /// 1, or 2 once the window has run over and the answer has begun anew.
        public var attempt: Int
    }

    /// Answers a prompt piece by piece. Should the window run over during the answer, it begins anew, once.
    public nonisolated func streamResponse(
        to prompt: String, options: GenerationOptions = GenerationOptions()
    ) -> AsyncThrowingStream<Snapshot, any Error> {
        AsyncThrowingStream { continuation in
            let task = Task {
                do {
                    try await self.ask(prompt, nil, options) { session, prompt, attempt in
                        for try await snapshot in session.streamResponse(to: prompt, options: options) {
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
        _ operation: @Sendable (_ session: LanguageModelSession, _ prompt: String, _ attempt: Int) async throws -> sending Result
    ) async throws -> Result {
        // A tool that asks the conversation which waits for it would wait for ever.
        if isInside { throw LanguageModelSession.Error.concurrentRequests }
        await pendingCompaction?.value
        let result = try await exclusively {
            try Task.checkCancellation()
            try saveUnsaved()
            try refresh()
            let request = Request(prompt: prompt, schema: schema, options: options)
            let date = Self.today ?? Date()
            var asked = try await prepare(request)
            try Task.checkCancellation()
            // A program that goes on with the same conversation may have used the number meanwhile.
            while try !archive.ask(prompt, number: nextNumber, date: date, in: id) {
                let taken = nextNumber
                try refresh()
                // Only a damaged file has a turn that cannot be read at a number that is not used.
                guard nextNumber > taken else { throw ConversationError.archive(.init("it has no number for another turn.")) }
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
            let result: Result
            do {
                result = try await attempt(request, asked, operation)
            } catch {
                await settle()
                keepPartial(prompt, number, date, error)
                throw error
            }
            pendingCompaction = Task { await self.compactIfNeeded(.threshold) }
            try record(prompt, number, date)
            return result
        }
        return result
    }

    /// A prompt and how it is to be answered.
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

    /// Asks, and once more if the window runs over. A second time it is the response that is too long.
    private func attempt<Result>(
        _ request: Request, _ asked: String,
        _ operation: @Sendable (LanguageModelSession, String, Int) async throws -> sending Result
    ) async throws -> sending Result {
        do {
            return try await operation(session, asked, 1)
        } catch let error where error.isOverflow {
            await settle()
            // Tools that have run are not run again: what they did may be more than a text.
            if newEntries.contains(where: { if case .toolOutput = $0 { true } else { false } }) { throw error }
            // What was generated is no answer.
            rebuild()
            await compactNow(.overflow)
            try Task.checkCancellation()
        }
        let plain = withNewFacts(request.prompt)
        if try await !fits(plain, request) { try await makeBare(for: plain, request) }
        lastRecall?.leaveOut()
        return try await operation(session, plain, 2)
    }

    /// Waits until the session has come to its end, which takes a token after it was cancelled: only then is its
    /// transcript what it will stay.
    private func settle() async {
        // Not a child of the task, which may be cancelled itself.
        await Task.detached { [session] in
            while session.isResponding { try? await Task.sleep(for: .milliseconds(2)) }  // a cut sleep only asks sooner
        }.value
    }

    /// Does something while nothing else changes the conversation. Requests, compactions and pins come one after the
    /// other.
    func exclusively<Result: Sendable>(_ body: () async throws -> Result) async rethrows -> Result {
        if isInside { return try await body() }
        if isTaken {
            await withCheckedContinuation { waiting.append($0) }
        } else {
            isTaken = true
        }
        // Whoever waits next takes over without a moment in which nobody has it.
        defer {
            section = nil
            if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
        }
        let mine = Section()
        section = mine
        return try await Self.$sections.withValue(Self.sections + [mine]) { try await body() }
    }

    /// Whether the task is part of what changes the conversation now. A task that was made there and outlives it is
    /// not.
    var isInside: Bool { section.map { mine in Self.sections.contains { $0 === mine } } ?? false }

    /// The entries that the session has got since it was made, or since the last turn.
    private var newEntries: [Transcript.Entry] { Array(session.transcript.dropFirst(recordedCount)) }

    private func record(_ prompt: String, _ number: Int, _ date: Date) throws {
        let turn = Turn(number: number, prompt: prompt, date: date, entries: newEntries).encodable
        live.append(turn)
        unsaved.append(turn)
        recordedCount = session.transcript.count
        do { try saveUnsaved() } catch {
            // The answer is there; it is written before the next prompt.
            let problem = ConversationError(archive: error)
            archiveProblem = problem
            // The turn is written before the context.
            guard unsaved.contains(where: { $0.number == number }) else { return }
            var reason = problem.localizedDescription
            if case .archive(let failure) = problem { reason = failure.reason }
            throw ConversationError.unsaved(.init(content: turn.response, reason: reason))
        }
    }

    /// After an error: what was said so far stays, and so does what tools did; else the prompt is as if never asked.
    private func keepPartial(_ prompt: String, _ number: Int, _ date: Date, _ error: any Error) {
        var partial = Turn(number: number, prompt: prompt, date: date, entries: newEntries).encodable
        // A call without its output says nothing.
        while case .toolCalls? = partial.entries.last { partial.entries.removeLast() }
        var isUnsafe = false
        if let error = error as? LanguageModelError, case .guardrailViolation = error { isUnsafe = true }
        if !isUnsafe, partial.saysSomething {
            live.append(partial)
            unsaved.append(partial)
            do { try saveUnsaved() } catch { archiveProblem = ConversationError(archive: error) }
        } else {
            // Should this fail, the prompt stays marked as unanswered.
            do {
                try archive.forget(turn: number, in: id)
                // Another program may use the number.
                awaited.insert(number)
            } catch { archiveProblem = ConversationError(archive: error) }
        }
        rebuild()
    }

    // MARK: - The window

    /// Tokens of the window.
    public var contextSize: Int { model.contextSize }

    /// Tokens of the context now.
    public func tokenCount() async throws -> Int { try await count(session.transcript) }

    func count(_ entries: some Collection<Transcript.Entry>) async throws -> Int {
        // Templates may want at least one message.
        entries.isEmpty ? 0 : try await model.tokenCount(for: entries)
    }

    private var threshold: Int {
        policy.threshold(contextSize: model.contextSize, reserve: lastReserve, promptTokens: expectedPrompt)
    }

    /// Tokens of the context without what recall has put in front of prompts, which leaves by itself.
    private func lastingTokens() async throws -> Int {
        var lasting = draft()
        lasting.turns = lasting.turns.map(\.withoutRecalled)
        return try await count(lasting.entries)
    }

    func reserve(_ request: Request) -> Int {
        policy.reserve(contextSize: model.contextSize, limit: request.options.maximumResponseTokens)
    }

    private func fits(_ prompt: String, _ request: Request) async throws -> Bool {
        try await count(Array(session.transcript) + [request.entry(prompt)]) + reserve(request) <= model.contextSize
    }

    /// Makes room for a prompt, and puts in front of it what it needs from earlier turns.
    private func prepare(_ request: Request) async throws -> String {
        let plan = try await plan(for: request)
        let tokens = try await plan.plainTokens - count(plan.entries)
        expectedPrompt = max(tokens, min(expectedPrompt, model.contextSize / 4) * 3 / 4)
        lastReserve = reserve(request)
        if plan.fits { return follow(plan) }
        // What cannot fit at all is said before anything is given up for it.
        let plain = withNewFacts(request.prompt)
        var clean = draft()
        clean.turns = []
        clean.carried = ""
        let fixed = try await count(clean.entries)
        let least = try await count(clean.entries + [request.entry(plain)])
        guard least + reserve(request) <= model.contextSize else {
            throw ConversationError.promptTooLarge(
                .init(
                    contextSize: model.contextSize, fixedTokens: fixed, promptTokens: least - fixed,
                    responseReserve: reserve(request)))
        }
        await compactNow(.beforeRequest)
        try Task.checkCancellation()
        let second = try await self.plan(for: request)
        if second.fits { return follow(second) }
        lastRecall = second.recall
        try await makeBare(for: plain, request)
        return plain
    }

    /// What a plan asks, with the context as it wants it.
    private func follow(_ plan: Plan) -> String {
        if let turns = plan.turns {
            live = turns
            rebuild()
        }
        lastRecall = plan.recall
        ConversationTrace.record(plan.recall)
        return plan.text
    }

    /// For a prompt of nearly the whole window: no turns, and if need be not what is carried either. That comes back
    /// with the next compaction.
    private func makeBare(for prompt: String, _ request: Request) async throws {
        var bare = draft()
        bare.evict { _ in true }
        let carried = bare.carried
        if try await count(bare.entries + [request.entry(prompt)]) + reserve(request) > model.contextSize { bare.carried = "" }
        adopt(bare)
        context.carried = carried
    }

    /// The turns, and everything before them, as a session takes them.
    func draft(pinnedInHead: Int? = nil) -> ContextDraft {
        ContextDraft(
            instructions: instructions, tools: tools.map { Transcript.ToolDefinition(tool: $0) },
            pinned: Array(context.pinned.prefix(pinnedInHead ?? context.pinnedInHead)), carried: context.carried, turns: live)
    }

    /// Takes a draft over as the context.
    private func adopt(_ draft: ContextDraft) {
        live = draft.turns
        context.carried = draft.carried
        rebuild()
    }

    /// A session anew over what is in the context; the keys and values of what both begin with are used again.
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
        // What is kept after an error is decided here: a prompt whose tools have run is not as if never asked.
        session.transcriptErrorHandlingPolicy = .preserveTranscript
        return session
    }

    /// After pinned facts have changed: a request that is running keeps the session that it has.
    func changeHead() { if inFlight == nil { rebuild() } else { isHeadOutdated = true } }

    /// Whether a request is being answered.
    var isAnswering: Bool { inFlight != nil }

    /// Makes the context smaller now; not from a tool of the request that is being answered.
    public func compact() async {
        if isInside { return }
        await exclusively { await compactNow(.requested) }
    }

    private func compactIfNeeded(_ reason: Compaction.Reason) async {
        await exclusively {
            guard let tokens = try? await lastingTokens(),  // should counting fail, the next request finds out
                tokens > threshold
            else { return }
            await compactNow(reason)
        }
    }

    /// Goes on with another model. If its window is smaller, the context is made smaller first.
    ///
    /// - Throws: what counting with the new model throws; the conversation then stays with the old one.
    public func use(_ model: some WindowedLanguageModel) async throws {
        if isInside { throw LanguageModelSession.Error.concurrentRequests }
        try await exclusively {
            let tokens = session.transcript.isEmpty ? 0 : try await model.tokenCount(for: session.transcript)
            self.model = model
            rebuild()
            if tokens > threshold { await compactNow(.modelChange) }
        }
    }

    /// Never fails: the worst that can happen is a context with nothing but the instructions and pinned facts.
    /// Cancelled, it changes nothing.
    private func compactNow(_ reason: Compaction.Reason) async {
        let start = ContinuousClock.now
        let before = try? await count(session.transcript)  // for the record only
        let isEmergency = reason == .overflow
        let tools = CompactionStep.Tools(model: model, contextSize: model.contextSize, isEmergency: isEmergency)
        // New facts move to the head: everything after them is computed again anyway.
        var draft = self.draft(pinnedInHead: context.pinned.count)
        draft.turns = draft.turns.map(\.withoutRecalled)
        var problems = await draft.apply(policy.steps, tools)
        // Whatever the steps left: a compacted context has to leave half of the window, or an emergency is not over.
        problems += await draft.cut(to: model.contextSize / (isEmergency ? 3 : 2), tools)
        if Task.isCancelled { return }
        context.pinnedInHead = context.pinned.count
        adopt(draft)
        let after = try? await count(session.transcript)  // for the record only
        let record = Compaction(
            date: Date(), reason: reason, tokensBefore: before ?? 0, tokensAfter: after ?? 0,
            evictedTurns: draft.evicted.map(\.number), droppedToolExchanges: draft.droppedToolExchanges,
            carried: draft.carried, seconds: start.duration(to: .now).seconds,
            problem: problems.isEmpty ? nil : problems.joined(separator: "\n"))
        unsavedRecords.append(record)
        saveContext()
        ConversationTrace.record(record)
        // A task that is made there is not part of this: it may wait for its turn.
        Self.$sections.withValue([]) { onCompaction(record) }
        session.prewarm()
    }
}

extension Int {
    /// A share of a number of tokens, between none and all of them.
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
    /// Whether a request ran over the window.
    var isOverflow: Bool {
        if let error = self as? LanguageModelError, case .contextSizeExceeded = error { true } else { false }
    }
}
