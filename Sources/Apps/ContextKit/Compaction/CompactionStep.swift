public import FoundationModels
public import TokenCounts

/// One way to make a context smaller. Steps are applied in order, each to the result of the previous one.
///
/// ```swift
/// var policy = ContextPolicy.standard
/// policy.steps = [.dropToolExchanges(), .recentTurns(share: 0.25), .summary()]
/// ```
public struct CompactionStep: Sendable {
    /// The name of the step in messages about errors.
    public let name: String
    let apply: @Sendable (inout ContextDraft, Tools) async throws -> Void

    /// What a step may use.
    public struct Tools: Sendable {
        /// The model of the conversation.
        public let model: any TokenCounting
        /// Maximum number of tokens of the whole context.
        public let contextSize: Int
        /// Whether the context has exceeded the window and must become as small as possible.
        public let isEmergency: Bool

        /// The exact number of tokens of the entries.
        public func tokenCount(_ entries: [Transcript.Entry]) async throws -> Int {
            try await model.tokenCount(ofContext: entries)
        }

        /// The number of newest turns that together have at most this many tokens.
        func newestTurns(of draft: ContextDraft, within tokens: Int) async throws -> Int {
            let all = draft.beginning + draft.turns.flatMap(\.entries)
            let whole = try await tokenCount(all)
            // Finds the smallest number of oldest turns without which the rest is small enough. Token counts increase
            // with the number of entries, so a binary search finds it.
            var (fewest, most) = (0, draft.turns.count)
            while fewest < most {
                let middle = (fewest + most) / 2
                let before = try await tokenCount(draft.beginning + draft.turns[..<middle].flatMap(\.entries))
                if whole - before <= tokens { most = middle } else { fewest = middle + 1 }
            }
            return draft.turns.count - fewest
        }
    }

    /// Creates a custom step.
    ///
    /// - Parameter apply: Changes the draft. If it throws, the draft stays as it was before the step.
    public init(name: String, apply: @escaping @Sendable (inout ContextDraft, Tools) async throws -> Void) {
        self.name = name
        self.apply = apply
    }

    /// Evicts all turns: the next request begins with the instructions, pinned facts and carried text.
    public static var reset: CompactionStep {
        CompactionStep(name: "reset") { draft, _ in draft.evict { _ in true } }
    }

    /// Keeps the newest turns that together have at most this share of the window; half of it after an overflow.
    public static func recentTurns(share: Double) -> CompactionStep {
        CompactionStep(name: "recent turns") { draft, tools in
            let share = tools.isEmergency ? share / 2 : share
            let kept = try await tools.newestTurns(of: draft, within: tools.contextSize.share(share))
            let first = draft.turns.count - kept
            let numbers = Set(draft.turns[..<first].map(\.number))
            draft.evict { numbers.contains($0.number) }
        }
    }

    /// Keeps this many of the newest turns.
    public static func lastTurns(_ count: Int) -> CompactionStep {
        CompactionStep(name: "last turns") { draft, _ in
            let numbers = Set(draft.turns.suffix(max(0, count)).map(\.number))
            draft.evict { !numbers.contains($0.number) }
        }
    }

    /// Keeps the turns that a function selects, such as the first and the last.
    public static func condensed(_ isKept: @escaping @Sendable ([Turn]) -> [Turn]) -> CompactionStep {
        CompactionStep(name: "condensed") { draft, _ in
            let numbers = Set(isKept(draft.turns).map(\.number))
            draft.evict { !numbers.contains($0.number) }
        }
    }

    /// Removes finished tool calls and their outputs from all turns but the last ones. The responses contain the
    /// conclusions.
    public static func dropToolExchanges(keepingLast count: Int = 1) -> CompactionStep {
        CompactionStep(name: "tool exchanges") { draft, _ in
            for index in draft.turns.indices.dropLast(max(0, count)) where draft.turns[index].usesTools {
                draft.turns[index] = draft.turns[index].withoutTools
                draft.droppedToolExchanges += 1
            }
        }
    }

    /// Carries over a summary of the evicted turns and of the previous summary.
    ///
    /// The model selects what the user said and will still matter, sentence by sentence, with a short request for each of at most 48
    /// sentences. With instructions, and where it has no guided generation, it writes the summary in a separate session.
    ///
    /// - Parameters:
    ///   - share: The share of the window that the summary may take.
    ///   - instructions: The instructions of a session that writes the summary; nil for what works best with the model.
    ///   - maximumRequests: The maximum number of requests to a model that writes the summary, each of which fills at most the window.
    ///     If the turns need more, or if the model fails or returns nothing, notable sentences are carried over instead.
    public static func summary(
        share: Double = 0.08, instructions: String? = nil, maximumRequests: Int = 8
    ) -> CompactionStep {
        CompactionStep(name: "summary") { draft, tools in
            let limit = max(24, tools.contextSize.share(share))
            do {
                if instructions == nil, let judge = try SentenceJudge(model: tools.model) {
                    draft.carried = try await NotableSentences(limit: limit, tools: tools, judge: judge)
                        .carried(draft.evicted, after: draft.carried)
                    return
                }
                let summarizer = Summarizer(
                    tools: tools, limit: limit, instructions: instructions, maximumRequests: maximumRequests)
                draft.carried = try await summarizer.summary(of: draft.evicted, after: draft.carried)
            } catch {
                try await CompactionStep.notableSentences(share: share).apply(&draft, tools)
                throw CompactionProblem(reason: "The summary failed, notable sentences are carried instead: \(error)")
            }
        }
    }

    /// Carries over the sentences of the evicted turns that have names, numbers or decisions. Uses no model.
    public static func notableSentences(share: Double = 0.08) -> CompactionStep {
        CompactionStep(name: "notable sentences") { draft, tools in
            let limit = max(24, tools.contextSize.share(share))
            draft.carried = try await NotableSentences(limit: limit, tools: tools).carried(draft.evicted, after: draft.carried)
        }
    }
}

/// An error in a step that has used a fallback. The changed draft is kept.
struct CompactionProblem: Error {
    let reason: String
}
