import FoundationModels
import Testing

@testable import ContextKit

/// Tests the transitions of a conversation's state, without a model, an archive or a task.
struct ConversationStateTests {
    private static func turn(_ number: Int, _ answer: String? = "Yes.") -> Turn {
        let entries: [Transcript.Entry] = [
            .prompt(.init(segments: [.text(.init(content: "Prompt \(number)."))])),
            .response(.init(assetIDs: [], segments: [.text(.init(content: answer ?? ""))])),
        ]
        return Turn(number: number, prompt: "Prompt \(number).", date: nil, entries: answer == nil ? [] : entries)
    }

    private static func state() -> ConversationState {
        ConversationState(instructions: "Be brief.", tools: [], expectedPrompt: 10, reserve: 20)
    }

    /// Answers a turn, or leaves it without an answer.
    private static func answer(_ state: inout ConversationState, _ text: String = "Yes.") {
        let number = state.begin()
        state.add(turn(number, text))
        state.end()
    }

    @Test("[D4] a turn is added to the context and to what must be written; it leaves the latter once it is written")
    func turns() {
        var state = Self.state()
        Self.answer(&state)
        let number = state.begin()
        #expect(number == 1 && state.inFlight == 1 && state.nextNumber == 2)
        // A turn that is being answered is not in the context that is written: another program may read it.
        #expect(state.contextToSave.next == 1 && state.contextToSave.kept.map(\.number) == [0])
        state.add(Self.turn(1))
        state.end()
        #expect(state.turns.map(\.number) == [0, 1] && state.unsavedTurns.map(\.number) == [0, 1])
        // The session has the new entries already.
        #expect(!state.isSessionOutdated)
        state.savedTurn()
        #expect(state.unsavedTurns.map(\.number) == [1] && state.contextToSave.next == 2)
    }

    @Test("[D4] facts are put into the head at the beginning, later in front of prompts until a compaction")
    func pins() {
        var state = Self.state()
        state.pin("One.")
        #expect(state.isSessionOutdated && state.draft().pinned == ["One."] && state.newFacts == nil)
        state.didUpdateSession()
        Self.answer(&state)
        state.pin("Two.")
        #expect(!state.isSessionOutdated && state.draft().pinned == ["One."])
        #expect(state.newFacts == "Remember:\n- Two.\n")
        var draft = state.draft(pinnedInHead: state.context.pinned.count)
        draft.evict { _ in true }
        state.compacted(draft)
        #expect(state.isSessionOutdated && state.draft().pinned == ["One.", "Two."] && state.newFacts == nil)
        #expect(state.turns.isEmpty)
        let removed = [state.unpin("One."), state.unpin("One.")]
        #expect(removed == [true, false] && state.draft().pinned == ["Two."])
    }

    @Test("[D4] contexts of two programs are merged: facts that one removed stay removed, those of both are kept")
    func mergedPins() {
        var written = ConversationArchive.Context()
        (written.instructions, written.pinned, written.pinnedInHead, written.next) = ("Old.", ["A", "B"], 2, 0)
        let nothing = ConversationArchive.StoredTurns(turns: [], damage: [], last: -1)
        var state = ConversationState(
            .init(context: written, revision: 1, damage: nil), since: nothing, instructions: "New.", tools: [],
            expectedPrompt: 10, reserve: 20)
        #expect(state.context.instructions == "New." && state.context.pinned == ["A", "B"])
        _ = state.unpin("A")
        state.pin("C")
        // The other program has added D and carries a text.
        written.pinned.append("D")
        written.carried = "Earlier."
        state.merge(.init(context: written, revision: 2, damage: nil))
        #expect(state.context.pinned == ["B", "D", "C"] && state.context.pinnedInHead == 1)
        #expect(state.context.carried == "Earlier." && state.context.instructions == "New." && state.revision == 2)
        // The merged facts must be written again.
        #expect(state.isContextUnsaved)
        state.saved(state.contextToSave, revision: 3)
        #expect(!state.isContextUnsaved && state.revision == 3)
        // Merging what was written last changes nothing.
        state.merge(.init(context: state.contextToSave, revision: 3, damage: nil))
        #expect(state.context.pinned == ["B", "D", "C"] && !state.isContextUnsaved)
    }

    @Test("[D4] turns of other programs are added in order, once; unsaved turns survive the context of another program")
    func mergedTurns() {
        var state = Self.state()
        Self.answer(&state)
        state.savedTurn()
        Self.answer(&state)
        // Turn 2 is being answered by another program, turn 3 has been.
        let found = ConversationArchive.StoredTurns(turns: [Self.turn(2, nil), Self.turn(3)], damage: [], last: 3)
        state.merge(found, from: 2)
        #expect(state.turns.map(\.number) == [0, 1, 3] && state.nextNumber == 4 && state.unansweredNumbers == [2])
        #expect(state.isSessionOutdated && state.contextToSave.next == 2 && state.firstToRead(from: 4) == 2)
        state.merge(.init(turns: [Self.turn(2), Self.turn(3)], damage: [], last: 3), from: 4)
        #expect(state.turns.map(\.number) == [0, 1, 2, 3] && state.unansweredNumbers.isEmpty && state.contextToSave.next == 4)

        // The other program compacts the conversation without turn 1, which is not written yet.
        var context = ConversationArchive.Context()
        (context.carried, context.next) = ("Earlier.", 4)
        context.kept = [.init(number: 3, prompt: "Prompt 3.", date: nil, entries: Transcript(entries: Self.turn(3).entries))]
        state.merge(.init(context: context, revision: 5, damage: nil))
        #expect(state.turns.map(\.number) == [1, 3] && state.context.carried == "Earlier.")
    }

    @Test("[D4] a turn whose program has ended is waited for only a few turns")
    func abandonedTurns() {
        var state = Self.state()
        state.merge(.init(turns: [Self.turn(0, nil), Self.turn(1)], damage: [], last: 1), from: 0)
        #expect(state.unansweredNumbers == [0] && state.contextToSave.next == 0)
        for _ in 0..<10 { Self.answer(&state) }
        state.merge(.init(turns: [], damage: [], last: 11), from: 12)
        #expect(state.unansweredNumbers.isEmpty && state.contextToSave.next == 12)
    }

    @Test("[D4] the expected prompt follows large prompts immediately and small ones slowly; one exception fades quickly")
    func expectedPrompt() {
        var state = Self.state()
        state.expect(promptTokens: 100, reserve: 30, contextSize: 4096)
        #expect(state.expectedPrompt == 100 && state.lastReserve == 30)
        state.expect(promptTokens: 10, reserve: 30, contextSize: 4096)
        #expect(state.expectedPrompt == 75)
        state.expect(promptTokens: 4000, reserve: 30, contextSize: 4096)
        state.expect(promptTokens: 10, reserve: 30, contextSize: 4096)
        #expect(state.expectedPrompt == 768)
    }

    @Test("[D9] damage is listed once; an unanswered last prompt is reported until the next turn begins")
    func damage() {
        let context = ConversationArchive.Context()
        let problem = ConversationArchive.Damage(turn: 1, reason: "its checksum is wrong")
        var state = ConversationState(
            .init(context: context, revision: 0, damage: nil),
            since: .init(turns: [Self.turn(0), Self.turn(2, nil)], damage: [problem], last: 2), instructions: nil, tools: [],
            expectedPrompt: 10, reserve: 20)
        #expect(state.unanswered == "Prompt 2." && state.damage == [problem] && state.turns.map(\.number) == [0])
        state.note([problem])
        #expect(state.damage == [problem])
        _ = state.begin()
        #expect(state.unanswered == nil)
    }
}
