public import Foundation
public import FoundationModels

/// A chat that does not end: the window is kept free, nothing that was said is lost.
///
/// ```swift
/// let conversation = try await Conversation(instructions: "You are a patient teacher.")
/// let answer = try await conversation.respond(to: "What is a monad?")
/// ```
///
/// Every turn goes to an archive. When the context reaches a share of the window it is made smaller by a ``ContextPolicy``,
/// after the answer and not before the next question; turns that left it come back when a prompt needs them.
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
    public var policy: ContextPolicy
    /// Facts that are in the context at any time, word for word.
    public var pinned: [String] { context.pinned }
    /// The prompt that was being answered when the program ended; nil if there is none.
    public internal(set) var unanswered: String?
    /// The last failure to write to the archive. What was not written is written with the next turn.
    public internal(set) var archiveProblem: ConversationError?

    var context: ConversationArchive.Context
    /// The turns in the context, oldest first.
    var live: [Turn]
    var unsaved: [Turn] = []
    var nextNumber: Int
    private(set) var session: LanguageModelSession
    /// Entries of the session's transcript that belong to the head or to turns.
    private var recordedCount: Int
    private var isAnswering = false
    /// The compaction that is under way, which the next request waits for.
    private var upkeep: Task<Void, Never>?
    private let onCompaction: @Sendable (Compaction) -> Void

    /// Begins a conversation, or goes on with one of the archive.
    ///
    /// - Parameters:
    ///   - id: The name of a conversation; if the archive has it, it goes on where it stopped.
    ///   - archive: Where turns are kept; nil for an archive in memory.
    ///   - onCompaction: Told about each compaction.
    /// - Throws: ``ConversationError/archive(_:)``.
    public init(
        model: some WindowedLanguageModel = SystemLanguageModel.default, tools: [any Tool] = [], instructions: String = "",
        policy: ContextPolicy = .standard, archive: ConversationArchive? = nil, id: String = UUID().uuidString,
        onCompaction: @escaping @Sendable (Compaction) -> Void = { _ in }
    ) async throws {
        let archive = try archive ?? ConversationArchive()
        var context = ConversationArchive.Context()
        var live: [Turn] = []
        if let known = try archive.context(of: id) {
            context = known
            live = context.kept.map { Turn(number: $0.number, prompt: $0.prompt, entries: Array($0.entries)) }
            let since = try archive.turns(of: id, from: context.next)
            live += since.filter { !$0.entries.isEmpty }
            nextNumber = (since.last?.number).map { $0 + 1 } ?? context.next
            if let last = since.last, last.entries.isEmpty { unanswered = last.prompt }
        } else {
            try archive.begin(id)
            nextNumber = 0
        }
        self.id = id
        self.model = model
        self.tools = tools
        self.instructions = instructions
        self.policy = policy
        self.archive = archive
        self.context = context
        self.live = live
        self.onCompaction = onCompaction
        let draft = ContextDraft(
            instructions: instructions, tools: tools.map { Transcript.ToolDefinition(tool: $0) },
            pinned: Array(context.pinned.prefix(context.pinnedInHead)), carried: context.carried, turns: live)
        session = LanguageModelSession(model: model, tools: tools, transcript: Transcript(entries: draft.entries))
        recordedCount = draft.entries.count
        // The window of this model may be smaller than that of the last one.
        if try await count(session.transcript) > threshold { await compact(.modelChange) }
    }

    // MARK: - Asking

    /// What the model sees: everything that is in the context.
    public var transcript: Transcript { session.transcript }

    /// Loads the model and computes what the next request begins with.
    public func prewarm() { session.prewarm() }

    /// Answers a prompt.
    ///
    /// - Throws: ``ConversationError``, or what the session throws; the window running over is not among it unless the response
    ///   alone is longer than what a compacted context leaves free.
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
        guard !isAnswering else { throw ConversationError.busy }
        isAnswering = true
        defer { isAnswering = false }
        await upkeep?.value
        upkeep = nil
        try saveUnsaved()
        let asked = try await prepare(prompt, schema, options)
        let number = nextNumber
        try archive.ask(prompt, number: number, in: id)
        unanswered = nil
        nextNumber += 1
        let result: Result
        do {
            result = try await operation(session, asked, 1)
        } catch let error where error.isOverflow {
            // What was generated is no answer. Once more, in the smallest context there is; a second time it is the response
            // that is too long.
            rebuild()
            await compact(.overflow)
            do {
                result = try await operation(session, try await recalled(prompt), 2)
            } catch {
                keepPartial(prompt, number)
                throw error
            }
        } catch {
            keepPartial(prompt, number)
            throw error
        }
        record(prompt, number)
        let tokens = try? await count(session.transcript)  // the answer counts more than knowing how full the window is
        if let tokens, tokens > threshold {
            upkeep = Task { await self.compact(.threshold) }
        }
        return result
    }

    /// The entries that the session has got since it was made, or since the last turn.
    private var newEntries: [Transcript.Entry] { Array(session.transcript.dropFirst(recordedCount)) }

    private func record(_ prompt: String, _ number: Int) {
        let turn = Turn(number: number, prompt: prompt, entries: newEntries)
        live.append(turn)
        unsaved.append(turn)
        recordedCount = session.transcript.count
        // The answer is there, whether or not it can be written: that is tried again before the next prompt.
        do { try saveUnsaved() } catch { archiveProblem = error as? ConversationError }
    }

    /// After an error: what was said so far stays if the session keeps it, else the prompt is as if never asked.
    private func keepPartial(_ prompt: String, _ number: Int) {
        if newEntries.isEmpty {
            // Should this fail, the prompt stays marked as unanswered.
            do { try archive.forget(turn: number, in: id) } catch { archiveProblem = error as? ConversationError }
        } else {
            record(prompt, number)
        }
    }

    private func saveUnsaved() throws {
        while let turn = unsaved.first {
            try archive.answer(turn, in: id)
            unsaved.removeFirst()
        }
        archiveProblem = nil
    }

    // MARK: - The window

    /// Tokens of the window.
    public var contextSize: Int { model.contextSize }

    /// Tokens of the context now.
    public func tokenCount() async throws -> Int { try await count(session.transcript) }

    func count(_ entries: some Collection<Transcript.Entry>) async throws -> Int {
        try await model.tokenCount(for: entries)
    }

    private var threshold: Int { Int(Double(model.contextSize) * policy.threshold) }

    /// Makes room for a prompt, and puts in front of it what it needs from earlier turns.
    private func prepare(_ prompt: String, _ schema: GenerationSchema?, _ options: GenerationOptions) async throws -> String {
        let size = model.contextSize
        let reserve = policy.reserve(contextSize: size, limit: options.maximumResponseTokens)
        let format = schema.map { Transcript.ResponseFormat(schema: $0) }
        func entry(_ text: String) -> Transcript.Entry {
            .prompt(.init(segments: [.text(.init(content: text))], options: options, responseFormat: format))
        }
        var asked = try await recalled(prompt)
        if try await count(Array(session.transcript) + [entry(asked)]) + reserve <= size { return asked }
        // What cannot fit at all is said before anything is given up for it.
        var clean = draft()
        clean.turns = []
        clean.carried = ""
        let fixed = try await count(clean.entries)
        let least = try await count(clean.entries + [entry(withNewFacts(prompt))])
        guard least + reserve <= size else {
            throw ConversationError.promptTooLarge(
                .init(contextSize: size, fixedTokens: fixed, promptTokens: least - fixed, responseReserve: reserve))
        }
        await compact(.beforeRequest)
        asked = try await recalled(prompt)
        if try await count(Array(session.transcript) + [entry(asked)]) + reserve <= size { return asked }
        asked = withNewFacts(prompt)
        if try await count(Array(session.transcript) + [entry(asked)]) + reserve <= size { return asked }
        // A prompt of nearly the whole window: nothing else has room.
        var bare = draft()
        bare.evict { _ in true }
        let carried = bare.carried
        if try await count(bare.entries + [entry(asked)]) + reserve > size { bare.carried = "" }
        adopt(bare)
        defer { context.carried = carried }  // it comes back with the next compaction
        return asked
    }

    /// The turns, and everything before them, as a session takes them.
    func draft() -> ContextDraft {
        ContextDraft(
            instructions: instructions, tools: tools.map { Transcript.ToolDefinition(tool: $0) },
            pinned: Array(context.pinned.prefix(context.pinnedInHead)), carried: context.carried, turns: live)
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
        session = LanguageModelSession(model: model, tools: tools, transcript: Transcript(entries: entries))
        recordedCount = entries.count
    }

    /// Makes the context smaller now.
    public func compact() async throws {
        guard !isAnswering else { throw ConversationError.busy }
        await upkeep?.value
        await compact(.requested)
    }

    /// Goes on with another model. If its window is smaller, the context is made smaller first.
    public func use(_ model: some WindowedLanguageModel) async throws {
        guard !isAnswering else { throw ConversationError.busy }
        await upkeep?.value
        self.model = model
        rebuild()
        if try await count(session.transcript) > threshold { await compact(.modelChange) }
    }

    /// Never fails: the worst that can happen is a context with nothing but the instructions and pinned facts.
    func compact(_ reason: Compaction.Reason) async {
        let start = ContinuousClock.now
        let before = try? await count(session.transcript)  // for the record only
        // New facts move to the head: everything after them is computed again anyway.
        context.pinnedInHead = context.pinned.count
        var draft = self.draft()
        draft.turns = draft.turns.map(\.withoutRecalled)
        var problems: [String] = []
        let isEmergency = reason == .overflow
        let tools = CompactionStep.Tools(model: model, contextSize: model.contextSize, isEmergency: isEmergency)
        for step in policy.steps {
            var next = draft
            do {
                try await step.apply(&next, tools)
                draft = next
            } catch let problem as CompactionProblem {
                draft = next
                problems.append(problem.reason)
            } catch {
                problems.append("The step “\(step.name)” failed: \(error)")
            }
        }
        // Whatever the steps left: a compacted context has to leave half of the window, or an emergency is not over.
        let limit = model.contextSize / (isEmergency ? 3 : 2)
        if let tokens = try? await count(draft.entries), tokens > limit {
            let head = (try? await count(draft.head)) ?? 0
            if let kept = try? await tools.newestTurns(of: draft, within: max(0, limit - head)) {
                let numbers = Set(draft.turns.dropLast(kept).map(\.number))
                draft.evict { numbers.contains($0.number) }
            } else {
                draft.evict { _ in true }
            }
        }
        adopt(draft)
        let after = try? await count(session.transcript)  // for the record only
        let record = Compaction(
            date: Date(), reason: reason, tokensBefore: before ?? 0, tokensAfter: after ?? 0,
            evictedTurns: draft.evicted.map(\.number), droppedToolExchanges: draft.droppedToolExchanges,
            carried: draft.carried, seconds: start.duration(to: .now).seconds,
            problem: problems.isEmpty ? nil : problems.joined(separator: "\n"))
        saveContext(record)
        CompactionTrace.record(record)
        onCompaction(record)
        session.prewarm()
    }

    func saveContext(_ record: Compaction?) {
        context.kept = live.map { .init(number: $0.number, prompt: $0.prompt, entries: Transcript(entries: $0.entries)) }
        context.next = nextNumber
        do {
            try saveUnsaved()
            try archive.save(context, record, in: id)
        } catch {
            // The archive has the turns and an older context: nothing is lost but the work of this compaction.
            archiveProblem = error as? ConversationError
        }
    }
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}

extension Error {
    /// Whether a request ran over the window, in either of the framework's words.
    var isOverflow: Bool {
        if let error = self as? LanguageModelError, case .contextSizeExceeded = error { return true }
        if let error = self as? LanguageModelSession.GenerationError, case .exceededContextWindowSize = error { return true }
        return false
    }
}
