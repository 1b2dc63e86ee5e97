import FoundationModels
import ModelPrompts

/// The contents of a context while compaction steps change it.
public struct ContextDraft: Sendable {
    /// The instructions of the conversation.
    public let instructions: String
    /// Definitions of the tools.
    let tools: [Transcript.ToolDefinition]
    /// Facts that are always in the context, verbatim.
    public let pinned: [String]
    /// The text carried over from turns that are no longer in the context.
    public var carried: String
    /// The turns that the model sees, oldest first.
    public var turns: [Turn]
    /// Turns that steps have evicted, oldest first.
    public internal(set) var evicted: [Turn] = []
    /// Number of turns that stay in the context but lost their tool exchanges.
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
    /// The identifiers of the segment with pinned facts and of the entry with carried text: anybody may write the same texts.
    static let pinnedID = "pinned"
    static let carriedID = "carried"

    /// Instructions and pinned facts, as the first entry. Nothing that the user or a tool said is in it: the model would follow it.
    var head: [Transcript.Entry] {
        var segments: [Transcript.Segment] = instructions.isEmpty ? [] : [.text(.init(content: instructions))]
        if !pinned.isEmpty {
            let facts = Self.pinnedHeading + pinned.map { "- \($0)" }.joined(separator: "\n")
            segments.append(.text(.init(id: Self.pinnedID, content: facts)))
        }
        if segments.isEmpty, tools.isEmpty { return [] }
        return [.instructions(.init(id: "context", segments: segments, toolDefinitions: tools))]
    }

    /// The head, and the carried text as a message of the user with an answer: templates require that both take turns.
    var beginning: [Transcript.Entry] {
        if carried.isEmpty { return head }
        return head + [
            .prompt(.init(id: Self.carriedID, segments: [.text(.init(content: ModelPrompts.carriedHeading + carried))])),
            .response(
                .init(id: Self.carriedID + " answer", assetIDs: [], segments: [.text(.init(content: ModelPrompts.carriedAnswer))])
            ),
        ]
    }

    /// All entries of the context, for the transcript of a session.
    var entries: [Transcript.Entry] { beginning + turns.flatMap(\.entries) }

    /// Removes turns from the context. They stay in the archive, where recall finds them.
    public mutating func evict(where isEvicted: (Turn) -> Bool) {
        evicted = (evicted + turns.filter(isEvicted)).sorted { $0.number < $1.number }
        turns.removeAll(where: isEvicted)
    }

    /// Applies steps and returns the descriptions of their errors. A step that fails leaves the draft unchanged.
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

    /// Keeps as many of the newest turns as fit into a limit for the whole context. Notable sentences of the others are
    /// carried over.
    mutating func cut(to limit: Int, _ tools: CompactionStep.Tools) async -> [String] {
        // A context whose tokens cannot be counted is treated as too large.
        let whole = (try? await tools.tokenCount(entries)) ?? .max
        guard whole > limit else { return [] }
        let known = Set(evicted.map(\.number))
        let fixed = (try? await tools.tokenCount(beginning)) ?? 0  // see above
        let kept = (try? await tools.newestTurns(of: self, within: max(0, limit - fixed))) ?? 0  // see above
        let numbers = Set(turns.dropLast(kept).map(\.number))
        evict { numbers.contains($0.number) }
        var rest = self
        rest.evicted.removeAll { known.contains($0.number) }
        let problems = await rest.apply([.notableSentences()], tools)
        carried = rest.carried
        return problems
    }
}
