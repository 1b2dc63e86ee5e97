public import FoundationModels

/// One way to make a context smaller. Steps are applied in order, each to what the one before it left.
///
/// ```swift
/// var policy = ContextPolicy.standard
/// policy.steps = [.dropToolExchanges(), .recentTurns(share: 0.25), .summary()]
/// ```
public struct CompactionStep: Sendable {
    /// What it is called where compactions are shown.
    public let name: String
    let apply: @Sendable (inout ContextDraft, Tools) async throws -> Void

    /// What steps work with.
    public struct Tools: Sendable {
        /// The model of the conversation.
        public let model: any WindowedLanguageModel
        /// Tokens that the whole context may have.
        public let contextSize: Int
        /// Whether the context has to get as small as it can: it ran over.
        public let isEmergency: Bool

        /// Exact tokens of entries.
        public func tokenCount(_ entries: [Transcript.Entry]) async throws -> Int {
            entries.isEmpty ? 0 : try await model.tokenCount(for: entries)
        }

        /// How many of the newest turns have at most so many tokens together.
        func newestTurns(of draft: ContextDraft, within tokens: Int) async throws -> Int {
            let all = draft.head + draft.turns.flatMap(\.entries)
            let whole = try await tokenCount(all)
            // The fewest old turns without which the rest has few enough tokens. Counts grow with entries: halving finds it.
            var (fewest, most) = (0, draft.turns.count)
            while fewest < most {
                let middle = (fewest + most) / 2
                let before = try await tokenCount(draft.head + draft.turns[..<middle].flatMap(\.entries))
                if whole - before <= tokens { most = middle } else { fewest = middle + 1 }
            }
            return draft.turns.count - fewest
        }
    }

    /// A step of one's own.
    ///
    /// - Parameter apply: Changes the draft. An error leaves the draft as it was before the step.
    public init(name: String, apply: @escaping @Sendable (inout ContextDraft, Tools) async throws -> Void) {
        self.name = name
        self.apply = apply
    }

    /// Forgets all turns: the next request begins with the instructions, pinned facts and what is carried.
    public static var reset: CompactionStep {
        CompactionStep(name: "reset") { draft, _ in draft.evict { _ in true } }
    }

    /// Keeps the newest turns that have at most this share of the window together.
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

    /// Keeps the turns that a function chooses, such as the first and the last.
    public static func condensed(_ isKept: @escaping @Sendable ([Turn]) -> [Turn]) -> CompactionStep {
        CompactionStep(name: "condensed") { draft, _ in
            let numbers = Set(isKept(draft.turns).map(\.number))
            draft.evict { !numbers.contains($0.number) }
        }
    }

    /// Takes finished tool calls and their outputs out of all turns but the last ones: what came of them is in the responses.
    public static func dropToolExchanges(keepingLast count: Int = 1) -> CompactionStep {
        CompactionStep(name: "tool exchanges") { draft, _ in
            for index in draft.turns.indices.dropLast(max(0, count)) where draft.turns[index].usesTools {
                draft.turns[index] = draft.turns[index].withoutTools
                draft.droppedToolExchanges += 1
            }
        }
    }

    /// Has the model write a summary of what is evicted, with the summary before it, in a session of its own.
    ///
    /// - Parameters:
    ///   - share: The share of the window that the summary may have.
    ///   - instructions: What the summarising session is told; nil for a text that works with small models.
    ///   - timeLimit: How long it may take. After that, or if the model fails or says nothing, notable sentences are carried.
    public static func summary(
        share: Double = 0.08, instructions: String? = nil, timeLimit: Duration = .seconds(120)
    ) -> CompactionStep {
        CompactionStep(name: "summary") { draft, tools in
            let summarizer = Summarizer(
                tools: tools, limit: max(24, tools.contextSize.share(share)), instructions: instructions,
                timeLimit: timeLimit)
            do {
                draft.carried = try await summarizer.summary(of: draft.evicted, after: draft.carried)
            } catch {
                try await CompactionStep.notableSentences(share: share).apply(&draft, tools)
                throw CompactionProblem(reason: "The summary failed, notable sentences are carried instead: \(error)")
            }
        }
    }

    /// Carries the sentences of what is evicted that have names, numbers or decisions: no model is asked.
    public static func notableSentences(share: Double = 0.08) -> CompactionStep {
        CompactionStep(name: "notable sentences") { draft, tools in
            let limit = max(24, tools.contextSize.share(share))
            draft.carried = try await NotableSentences(limit: limit, tools: tools).carried(draft.evicted, after: draft.carried)
        }
    }
}

/// Something that went wrong in a step that has found another way. The draft is kept.
struct CompactionProblem: Error {
    let reason: String
}
