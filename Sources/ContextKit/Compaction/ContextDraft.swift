import FoundationModels

/// What a session is to see: compaction steps change it until it fits.
public struct ContextDraft: Sendable {
    /// What the model is told before the conversation.
    public let instructions: String
    /// Definitions of the tools.
    let tools: [Transcript.ToolDefinition]
    /// Facts that are always there, word for word.
    public let pinned: [String]
    /// What is carried over from turns that are not in the context any more.
    public var carried: String
    /// The turns that the model sees, oldest first.
    public var turns: [Turn]
    /// Turns that steps have taken out, oldest first.
    public internal(set) var evicted: [Turn] = []
    /// Tool exchanges that steps have taken out of turns that stay.
    public internal(set) var droppedToolExchanges = 0

    init(
        instructions: String, tools: [Transcript.ToolDefinition], pinned: [String], carried: String, turns: [Turn]
    ) {
        self.instructions = instructions
        self.tools = tools
        self.pinned = pinned
        self.carried = carried
        self.turns = turns
    }

    static let pinnedHeading = "Always remember:\n"
    static let carriedHeading = "Earlier in this conversation:\n"

    /// Instructions, pinned facts and what is carried, as the first entry.
    var head: [Transcript.Entry] {
        var parts: [String] = instructions.isEmpty ? [] : [instructions]
        if !pinned.isEmpty { parts.append(Self.pinnedHeading + pinned.map { "- \($0)" }.joined(separator: "\n")) }
        if !carried.isEmpty { parts.append(Self.carriedHeading + carried) }
        if parts.isEmpty, tools.isEmpty { return [] }
        let segments = parts.map { Transcript.Segment.text(.init(content: $0)) }
        return [.instructions(.init(id: "context", segments: segments, toolDefinitions: tools))]
    }

    /// All of it, as a session takes it.
    var entries: [Transcript.Entry] { head + turns.flatMap(\.entries) }

    /// Takes turns out of the context. They stay in the archive, where recall finds them.
    public mutating func evict(where isEvicted: (Turn) -> Bool) {
        evicted = (evicted + turns.filter(isEvicted)).sorted { $0.number < $1.number }
        turns.removeAll(where: isEvicted)
    }

    /// Applies steps; what went wrong in them is returned, and leaves the draft as it was before the step.
    mutating func apply(_ steps: [CompactionStep], _ tools: CompactionStep.Tools) async -> [String] {
        var problems: [String] = []
        for step in steps {
            var next = self
            do {
                try await step.apply(&next, tools)
                self = next
            } catch let problem as CompactionProblem {
                self = next
                problems.append(problem.reason)
            } catch {
                problems.append("The step “\(step.name)” failed: \(error)")
            }
        }
        return problems
    }

    /// Keeps only so many of the newest turns that the whole has no more tokens than the limit; sentences of the others are
    /// carried.
    mutating func cut(to limit: Int, _ tools: CompactionStep.Tools) async -> [String] {
        // What cannot be counted is not kept.
        let whole = (try? await tools.tokenCount(entries)) ?? .max
        guard whole > limit else { return [] }
        let known = Set(evicted.map(\.number))
        let fixed = (try? await tools.tokenCount(head)) ?? 0  // as above
        let kept = (try? await tools.newestTurns(of: self, within: max(0, limit - fixed))) ?? 0  // as above
        let numbers = Set(turns.dropLast(kept).map(\.number))
        evict { numbers.contains($0.number) }
        var rest = self
        rest.evicted.removeAll { known.contains($0.number) }
        let problems = await rest.apply([.notableSentences()], tools)
        carried = rest.carried
        return problems
    }
}
