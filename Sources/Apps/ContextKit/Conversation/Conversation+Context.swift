import Foundation
import FoundationModels
public import TokenCounts

/// Counting the context, and keeping it within the window.
extension Conversation {
    /// Size of the window in tokens.
    public var contextSize: Int { model.contextSize }

    /// Number of tokens of the current context.
    public func tokenCount() async throws -> Int { try await count(session.transcript) }

    func count(_ entries: some Collection<Transcript.Entry>) async throws -> Int {
        try await model.tokenCount(ofContext: entries)
    }

    var threshold: Int {
        policy.threshold(
            contextSize: model.contextSize, reserve: state.lastReserve, promptTokens: state.expectedPrompt)
    }

    /// Tokens of the context without recalled turns and new facts in front of prompts, which are removed anyway.
    private func tokensWithoutRecall() async throws -> Int {
        var lasting = state.draft()
        lasting.turns = lasting.turns.map(\.withOriginalPrompt)
        return try await count(lasting.entries)
    }

    func reserve(_ request: Request) -> Int {
        policy.reserve(contextSize: model.contextSize, limit: request.options.maximumResponseTokens)
    }

    /// Makes the context smaller now. Does nothing if it is called by a tool of the current request.
    public func compact() async {
        if hasExclusiveAccess || isRunningTools { return }
        // A cancelled task changes nothing.
        try? await exclusively { await compactNow(.requested) }
    }

    /// Makes the context smaller if a request has ended since the last check, and if it is larger than the threshold.
    func compactIfDue() async {
        guard state.isCompactionDue else { return }
        if let tokens = try? await tokensWithoutRecall(),  // if counting fails, the next request reports it
            tokens > threshold
        {
            await compactNow(.threshold)
        }
        state.isCompactionDue = Task.isCancelled
    }

    /// Continues with another model. If the context is too large for its window, it is made smaller.
    ///
    /// - Throws: The errors of counting with the new model. The conversation then keeps the old model.
    public func use(_ model: some TokenCounting) async throws {
        if hasExclusiveAccess || isRunningTools { throw LanguageModelSession.Error.concurrentRequests }
        try await exclusively {
            let tokens = try await model.tokenCount(ofContext: session.transcript)
            self.model = model
            rebuild()
            if tokens > threshold { await compactNow(.modelChange) }
        }
    }

    /// Never throws. In the worst case the context has only the instructions and pinned facts. If the task is
    /// cancelled, nothing changes.
    func compactNow(_ reason: Compaction.Reason) async {
        let start = ContinuousClock.now
        let before = try? await count(session.transcript)  // only for the record
        let isEmergency = reason == .overflow
        let tools = CompactionStep.Tools(model: model, contextSize: model.contextSize, isEmergency: isEmergency)
        // New facts move to the head, since everything after the head is computed again anyway.
        var draft = state.draft(pinnedInHead: state.context.pinned.count)
        draft.turns = draft.turns.map(\.withOriginalPrompt)
        var problems = await draft.apply(policy.steps, tools)
        // Independently of the steps, a compacted context must leave half of the window free, and two thirds after an
        // overflow.
        problems += await draft.cut(to: model.contextSize / (isEmergency ? 3 : 2), tools)
        if Task.isCancelled { return }
        state.compacted(draft)
        rebuild()
        let after = try? await count(session.transcript)  // only for the record
        let record = Compaction(
            date: Date(), reason: reason, tokensBefore: before ?? 0, tokensAfter: after ?? 0,
            evictedTurns: draft.evicted.map(\.number), droppedToolExchanges: draft.droppedToolExchanges,
            carried: draft.carried, seconds: start.duration(to: .now).seconds,
            problem: problems.isEmpty ? nil : problems.joined(separator: "\n"))
        state.contextChanged(by: record)
        saveContext()
        ConversationTrace.record(record)
        // Tasks created by the callback are not part of this operation: they must wait for exclusive access.
        Self.$sections.withValue([]) { onCompaction(record) }
        session.prewarm()
    }
}
