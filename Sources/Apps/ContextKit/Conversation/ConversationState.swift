import FoundationModels

/// The state of a conversation, and how requests, compactions and other programs change it.
///
/// It neither waits nor reads nor writes: ``Conversation`` counts tokens, sends requests and uses the archive, and
/// passes the results to this type. The words that it and its neighbours use:
/// - turn: a prompt and everything that was generated for it; *kept* turns are those that a compaction has left in the context.
/// - head: the first entry of the context, with instructions, tools and pinned facts.
/// - carried text: sentences, or a summary, of turns that left the context. It follows the head as an exchange of its own.
/// - pinned fact: a text that is always in the context; until the next compaction a new one is in front of each prompt.
/// - recalled: put in front of a prompt, because the search considers the turn relevant; removed after one more turn.
/// - evidence: how likely it is that a prompt needs an earlier turn.
/// - draft (`ContextDraft`): the context while compaction changes it. Plan (`Conversation.Plan`): how a request will be sent.
struct ConversationState {
    /// Instructions, pinned facts and carried text.
    private(set) var context: ConversationArchive.Context
    /// The definitions of the tools.
    let tools: [Transcript.ToolDefinition]
    /// The turns in the context, oldest first.
    private(set) var turns: [Turn] = []
    /// The number of the next turn.
    private(set) var nextNumber = 0
    /// The number of the turn that is being answered.
    private(set) var inFlight: Int?
    /// The last prompt in the archive if it has no answer.
    private(set) var unanswered: String?
    /// The parts of the archive that could not be read.
    private(set) var damage: [ConversationArchive.Damage] = []

    /// Whether the context has changed since the session was created from it.
    private(set) var isSessionOutdated = false
    /// Whether the context must be checked against the threshold, and made smaller, before the next request.
    var isCompactionDue = false
    /// The expected number of tokens of the next prompt (a decaying maximum of the previous ones), and the number
    /// reserved for the last response. They determine the threshold for compaction.
    private(set) var expectedPrompt: Int
    private(set) var lastReserve: Int

    /// The revision of the context in the archive. It shows whether another program has changed the context.
    private(set) var revision = 0
    /// Answered turns that have not been written yet.
    private(set) var unsavedTurns: [Turn] = []
    /// Compactions that have not been written yet.
    private(set) var unsavedRecords: [Compaction] = []
    /// Whether the context has not been written.
    private(set) var isContextUnsaved = false
    /// The pinned facts that were last read from or written to the archive.
    private var storedPins: [String] = []
    /// Numbers of turns that are not in the context and that another program may still answer.
    private(set) var unansweredNumbers: Set<Int> = []

    /// A turn without an answer that is older than this many turns is no longer waited for: the program that was
    /// answering it has probably ended.
    static let maximumAgeOfUnanswered = 8

    // MARK: - Beginning

    /// A new conversation.
    init(instructions: String, tools: [Transcript.ToolDefinition], expectedPrompt: Int, reserve: Int) {
        context = .init()
        context.instructions = instructions
        self.tools = tools
        self.expectedPrompt = expectedPrompt
        lastReserve = reserve
    }

    /// Continues a conversation of the archive.
    ///
    /// - Parameters:
    ///   - instructions: The instructions; nil for the stored ones.
    ///   - since: The turns from `stored.context.next` on.
    init(
        _ stored: ConversationArchive.StoredContext, since: ConversationArchive.StoredTurns, instructions: String?,
        tools: [Transcript.ToolDefinition], expectedPrompt: Int, reserve: Int
    ) {
        self.init(
            instructions: instructions ?? stored.context.instructions, tools: tools, expectedPrompt: expectedPrompt,
            reserve: reserve)
        context = stored.context
        context.instructions = instructions ?? stored.context.instructions
        isContextUnsaved = context.instructions != stored.context.instructions
        revision = stored.revision
        storedPins = stored.context.pinned
        note(stored.damage.map { [$0] } ?? [])
        note(since.damage)
        turns = context.keptTurns + since.turns.filter { !$0.entries.isEmpty }
        nextNumber = max(since.last + 1, context.next)
        unansweredNumbers = Set(since.turns.filter(\.entries.isEmpty).map(\.number))
        if let newest = since.turns.last, newest.number == since.last, newest.entries.isEmpty { unanswered = newest.prompt }
    }

    // MARK: - The context

    /// The current context as a draft.
    func draft(pinnedInHead: Int? = nil) -> ContextDraft {
        ContextDraft(
            instructions: context.instructions, tools: tools,
            pinned: Array(context.pinned.prefix(pinnedInHead ?? context.pinnedInHead)), carried: context.carried, turns: turns)
    }

    /// The context with these pinned facts and without carried text and turns.
    func head(pinned: [String]) -> [Transcript.Entry] {
        ContextDraft(instructions: context.instructions, tools: tools, pinned: pinned, carried: "", turns: []).entries
    }

    /// The facts that were pinned since the last compaction, which are put in front of the prompt; nil if there are none. An empty line
    /// follows them.
    var newFacts: String? {
        let facts = context.pinned.dropFirst(context.pinnedInHead)
        return facts.isEmpty ? nil : "Remember:\n" + facts.map { "- \($0)" }.joined(separator: "\n") + "\n"
    }

    /// The session now has the current context.
    mutating func didUpdateSession() { isSessionOutdated = false }

    /// Replaces the turns of the context, for example by turns without recalled ones in front of their prompts.
    mutating func replaceTurns(_ turns: [Turn]) {
        self.turns = turns
        isSessionOutdated = true
    }

    /// Replaces the turns and the carried text of the context by those of a draft.
    mutating func adopt(_ draft: ContextDraft) {
        context.carried = draft.carried
        replaceTurns(draft.turns)
    }

    /// Sets the carried text from the next change of the session on.
    mutating func carryLater(_ text: String) { context.carried = text }

    /// Adopts the result of a compaction, whose head contains all pinned facts.
    mutating func compacted(_ draft: ContextDraft) {
        context.pinnedInHead = context.pinned.count
        adopt(draft)
    }

    /// Updates the expected size of the next request. One exceptional prompt counts for at most a quarter of the window.
    mutating func expect(promptTokens: Int, reserve: Int, contextSize: Int) {
        expectedPrompt = max(promptTokens, min(expectedPrompt, contextSize / 4) * 3 / 4)
        lastReserve = reserve
    }

    // MARK: - Turns

    /// Begins a turn, whose prompt is in the archive, and returns its number.
    mutating func begin() -> Int {
        let number = nextNumber
        unanswered = nil
        nextNumber += 1
        inFlight = number
        return number
    }

    /// Ends the turn that is being answered.
    mutating func end() { inFlight = nil }

    /// Adds the answered turn to the context.
    mutating func add(_ turn: Turn) {
        turns.append(turn)
        unsavedTurns.append(turn)
        // The session refers to files, which may be removed; the turn has what was in them.
        if turn.hasAttachments { isSessionOutdated = true }
    }

    /// The prompt of a turn without an answer was removed from the archive: another program may use its number.
    mutating func removed(_ number: Int) { unansweredNumbers.insert(number) }

    // MARK: - Pinned facts

    /// Adds a fact. At the beginning of a conversation it is put into the head immediately; later it is put in front of
    /// prompts until the next compaction, so that the keys and values of the context remain valid.
    mutating func pin(_ fact: String) {
        context.pinned.append(fact)
        guard turns.isEmpty, inFlight == nil else { return }
        context.pinnedInHead = context.pinned.count
        isSessionOutdated = true
    }

    /// Removes a fact and returns whether it was pinned.
    mutating func unpin(_ fact: String) -> Bool {
        guard let place = context.pinned.firstIndex(of: fact) else { return false }
        context.pinned.remove(at: place)
        if place < context.pinnedInHead {
            context.pinnedInHead -= 1
            isSessionOutdated = true
        }
        return true
    }

    // MARK: - Saving

    /// Marks the context as changed, together with the compaction that changed it, if there was one.
    mutating func contextChanged(by record: Compaction? = nil) {
        unsavedRecords += record.map { [$0] } ?? []
        isContextUnsaved = true
    }

    /// The context to be written. A turn that is being answered, here or by another program, is not in it yet.
    var contextToSave: ConversationArchive.Context {
        var saved = context
        saved.next = min(inFlight ?? nextNumber, unansweredNumbers.min() ?? nextNumber)
        saved.kept = turns.filter { $0.number < saved.next }.map {
            .init(
                number: $0.number, prompt: $0.prompt, date: $0.date, entries: Transcript(entries: $0.withoutRecalledTurns.entries)
            )
        }
        return saved
    }

    /// The first of the unsaved turns was written.
    mutating func savedTurn() { unsavedTurns.removeFirst() }

    /// A context was written.
    mutating func saved(_ written: ConversationArchive.Context, revision: Int) {
        self.revision = revision
        (context.next, context.kept) = (written.next, written.kept)
        storedPins = written.pinned
        isContextUnsaved = false
        unsavedRecords = []
    }

    // MARK: - Changes of other programs

    /// Adds damage to the list, without duplicates.
    mutating func note(_ more: [ConversationArchive.Damage]) { damage += more.filter { !damage.contains($0) } }

    /// Adopts the context that another program has written, and merges the facts pinned and unpinned here into it. The
    /// turns that followed it are added with ``merge(_:from:)``.
    mutating func merge(_ stored: ConversationArchive.StoredContext) {
        note(stored.damage.map { [$0] } ?? [])
        // A context of which nothing can be read is replaced by the one that this program has.
        if !stored.hasHead {
            revision = stored.revision
            isContextUnsaved = true
            return
        }
        let added = context.pinned.filter { !storedPins.contains($0) }
        let removed = storedPins.filter { !context.pinned.contains($0) }
        let instructions = context.instructions
        (context, revision, storedPins) = (stored.context, stored.revision, stored.context.pinned)
        context.instructions = instructions
        for fact in removed { _ = unpin(fact) }
        context.pinned += added.filter { !context.pinned.contains($0) }
        isContextUnsaved = context.pinned != storedPins
        unsavedRecords = []
        // Prefers the turns as this program has them, whose keys and values are cached, to the stored ones.
        let cached = Dictionary(turns.map { ($0.number, $0) }) { first, _ in first }
        let kept = context.keptTurns.map { turn in
            cached[turn.number].flatMap { $0.withoutRecalledTurns.entries == turn.entries ? $0 : nil } ?? turn
        }
        let known = Set(kept.map(\.number))
        let isUnsaved = Set(unsavedTurns.map(\.number))
        let own = turns.filter {
            ($0.number >= context.next || isUnsaved.contains($0.number)) && !known.contains($0.number)
        }
        replaceTurns((kept + own).sorted { $0.number < $1.number })
    }

    /// The first turn to be read from the archive to learn about the turns from this number on: turns that had no answer
    /// before may have one now.
    func firstToRead(from number: Int) -> Int { min(number, unansweredNumbers.min() ?? number) }

    /// Adds turns of other programs: those with this number or a higher one, and those that had no answer before.
    mutating func merge(_ stored: ConversationArchive.StoredTurns, from number: Int) {
        note(stored.damage)
        let known = Set(turns.map(\.number))
        let wanted = stored.turns.filter {
            ($0.number >= number || unansweredNumbers.contains($0.number)) && $0.number != inFlight
        }
        let added = wanted.filter { !$0.entries.isEmpty && !known.contains($0.number) }
        nextNumber = max(nextNumber, stored.last + 1)
        let answered = Set(stored.turns.filter { !$0.entries.isEmpty }.map(\.number))
        unansweredNumbers = unansweredNumbers.subtracting(answered).union(wanted.filter(\.entries.isEmpty).map(\.number))
            .filter { $0 >= nextNumber - Self.maximumAgeOfUnanswered }
        if !added.isEmpty { replaceTurns((turns + added).sorted { $0.number < $1.number }) }
    }
}

extension ConversationArchive.Context {
    /// The turns kept by the last compaction.
    fileprivate var keptTurns: [Turn] {
        kept.map { Turn(number: $0.number, prompt: $0.prompt, date: $0.date, entries: Array($0.entries)) }
    }
}
