import FoundationModels

/// What goes to the archive, and what comes from it when another program goes on with the same conversation.
extension Conversation {
    /// Contexts of other programs that are taken over in a row before it is given up.
    private static let maximumRounds = 100

    /// Writes what could not be written before.
    func saveUnsaved() throws {
        while let turn = unsaved.first {
            // What recall put in front of the prompt was said before.
            try archive.answer(turn.withoutRecalled, in: id)
            unsaved.removeFirst()
        }
        for _ in 0..<Self.maximumRounds where isContextUnsaved {
            if let saved = try archive.save(context, unsavedRecords, revision: revision, in: id) {
                revision = saved
                storedPins = context.pinned
                isContextUnsaved = false
                unsavedRecords = []
            } else {
                // Another program has made its own context: it is taken over, and what was pinned or unpinned here is
                // done to it.
                try adoptStored()
            }
        }
        if isContextUnsaved { throw ConversationError.archive(.init("other programs change the conversation all the time.")) }
        archiveProblem = nil
    }

    func saveContext() {
        // A turn that is being answered, here or elsewhere, is not in the context yet.
        context.next = min(inFlight ?? nextNumber, awaited.min() ?? nextNumber)
        context.kept = live.filter { $0.number < context.next }.map {
            .init(
                number: $0.number, prompt: $0.prompt, date: $0.date, entries: Transcript(entries: $0.withoutBlock.entries))
        }
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
        guard state.lastTurn >= nextNumber || !awaited.isEmpty else { return }
        try adoptTurns(from: nextNumber)
    }

    /// The context as the archive has it, with the turns since.
    private func adoptStored() throws {
        guard let stored = try archive.context(of: id) else {
            throw ConversationError.archive(.init("the conversation is no longer in the archive."))
        }
        note(stored.damage.map { [$0] } ?? [])
        let (added, removed) = (
            context.pinned.filter { !storedPins.contains($0) }, storedPins.filter { !context.pinned.contains($0) }
        )
        let instructions = context.instructions
        (context, revision, storedPins) = (stored.context, stored.revision, stored.context.pinned)
        context.instructions = instructions
        for fact in removed {
            guard let place = context.pinned.firstIndex(of: fact) else { continue }
            context.pinned.remove(at: place)
            if place < context.pinnedInHead { context.pinnedInHead -= 1 }
        }
        context.pinned += added.filter { !context.pinned.contains($0) }
        isContextUnsaved = context.pinned != storedPins
        unsavedRecords = []
        // Turns as this program has seen them, which its cache knows, rather than as they are stored.
        let seen = Dictionary(live.map { ($0.number, $0) }) { first, _ in first }
        var turns = context.kept.map { kept in
            let turn = Turn(number: kept.number, prompt: kept.prompt, date: kept.date, entries: Array(kept.entries))
            return seen[kept.number].flatMap { $0.withoutBlock.entries == turn.entries ? $0 : nil } ?? turn
        }
        let isUnsaved = Set(unsaved.map(\.number))
        turns += live.filter { turn in
            (turn.number >= context.next || isUnsaved.contains(turn.number)) && !turns.contains { $0.number == turn.number }
        }
        live = turns
        try adoptTurns(from: context.next)
        changeHead()
    }

    /// Turns of other programs: those from a number on, and those that were not answered before.
    private func adoptTurns(from number: Int) throws {
        let found = try archive.turns(of: id, from: min(number, awaited.min() ?? number))
        note(found.damage)
        let known = Set(live.map(\.number))
        let wanted = found.turns.filter { ($0.number >= number || awaited.contains($0.number)) && $0.number != inFlight }
        let added = wanted.filter { !$0.entries.isEmpty && !known.contains($0.number) }
        nextNumber = max(nextNumber, found.last + 1)
        let answered = Set(found.turns.filter { !$0.entries.isEmpty }.map(\.number))
        awaited = awaited.subtracting(answered).union(wanted.filter(\.entries.isEmpty).map(\.number))
        // One that is not answered for some turns was asked by a program that has ended.
        awaited = awaited.filter { $0 >= nextNumber - 8 }
        if added.isEmpty { return }
        live = (live + added).sorted { $0.number < $1.number }
        changeHead()
    }

    /// Remembers what cannot be read, once.
    func note(_ found: [ConversationArchive.Damage]) {
        damage += found.filter { !damage.contains($0) }
    }
}
