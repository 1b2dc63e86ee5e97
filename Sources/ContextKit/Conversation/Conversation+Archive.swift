import FoundationModels

/// What goes to the archive, and what comes from it when another program goes on with the same conversation.
extension Conversation {
    /// Writes what could not be written before.
    func saveUnsaved() throws {
        while let turn = unsaved.first {
            try archive.answer(turn, in: id)
            unsaved.removeFirst()
        }
        while isContextUnsaved {
            if let saved = try archive.save(context, unsavedRecords, revision: revision, in: id) {
                revision = saved
                isContextUnsaved = false
                unsavedRecords = []
            } else {
                // Another program has made its own context: it is taken over, and what was pinned here is added.
                try adoptStored()
            }
        }
        archiveProblem = nil
    }

    func saveContext() {
        context.kept = live.map {
            .init(number: $0.number, prompt: $0.prompt, date: $0.date, entries: Transcript(entries: $0.entries))
        }
        // A turn that is being answered is not in the context yet.
        context.next = inFlight ?? nextNumber
        isContextUnsaved = true
        // The archive has the turns and an older context: what cannot be written now is written with the next turn.
        do { try saveUnsaved() } catch { archiveProblem = ConversationError(archive: error) }
    }

    /// Takes over what another program has added to the conversation.
    func refresh() throws {
        guard let state = try archive.state(of: id) else {
            throw ConversationError.archive(.init("the conversation is no longer in the archive."))
        }
        if state.revision != revision { try adoptStored() }
        guard state.lastTurn >= nextNumber || !unansweredElsewhere.isEmpty else { return }
        let from = min(nextNumber, unansweredElsewhere.min() ?? nextNumber)
        try adoptTurns(from: from)
    }

    /// The context as the archive has it, with the turns since.
    private func adoptStored() throws {
        guard let stored = try archive.context(of: id) else {
            throw ConversationError.archive(.init("the conversation is no longer in the archive."))
        }
        let mine = context
        context = stored.context
        context.instructions = mine.instructions
        revision = stored.revision
        note(stored.damage.map { [$0] } ?? [])
        let added = isContextUnsaved ? mine.pinned.filter { !context.pinned.contains($0) } : []
        context.pinned += added
        isContextUnsaved = !added.isEmpty
        unsavedRecords = []
        let kept = context.kept.map { Turn(number: $0.number, prompt: $0.prompt, date: $0.date, entries: Array($0.entries)) }
        // Turns as this program has seen them, which its cache knows, rather than as they are stored.
        let seen = Dictionary(live.map { ($0.number, $0) }) { first, _ in first }
        live = kept.map { turn in seen[turn.number].flatMap { $0.withoutRecalled.entries == turn.entries ? $0 : nil } ?? turn }
        live += unsaved.filter { turn in turn.number >= context.next && !live.contains { $0.number == turn.number } }
        for turn in seen.values where turn.number >= context.next && !live.contains(where: { $0.number == turn.number }) {
            live.append(turn)
        }
        try adoptTurns(from: context.next)
    }

    /// Turns of other programs from a number on.
    private func adoptTurns(from number: Int) throws {
        let (turns, damaged) = try archive.turns(of: id, from: number)
        note(damaged)
        let known = Set(live.map(\.number))
        live = (live + turns.filter { !$0.entries.isEmpty && !known.contains($0.number) }).sorted { $0.number < $1.number }
        let last = try archive.state(of: id)?.lastTurn ?? -1
        nextNumber = max(nextNumber, last + 1)
        // One that is not answered for some turns was asked by a program that has ended.
        let unanswered = turns.filter { $0.entries.isEmpty && $0.number != inFlight }.map(\.number)
        unansweredElsewhere = Set(unanswered.filter { $0 >= nextNumber - 8 })
        changeHead()
    }

    /// Remembers what cannot be read, once.
    func note(_ found: [ConversationArchive.Damage]) {
        damage += found.filter { !damage.contains($0) }
    }
}
