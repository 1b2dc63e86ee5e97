import FoundationModels

/// Writing to the archive, and merging changes of other programs that continue the same conversation.
extension Conversation {
    /// Maximum number of times that a context changed by another program is merged before saving fails.
    private static let maximumRounds = 100

    /// Writes all turns and contexts that have not been written yet.
    func saveUnsaved() throws {
        while let turn = unsaved.first {
            // Recalled turns in front of the prompt are already in the archive.
            try archive.recordAnswer(turn.withOriginalPrompt, in: id)
            unsaved.removeFirst()
        }
        for _ in 0..<Self.maximumRounds where isContextUnsaved {
            if let saved = try archive.save(context, unsavedRecords, revision: revision, in: id) {
                revision = saved
                storedPins = context.pinned
                isContextUnsaved = false
                unsavedRecords = []
            } else {
                // Another program has written a context. It is adopted, and the facts pinned or unpinned here are
                // merged into it.
                try adoptStored()
            }
        }
        if isContextUnsaved { throw ConversationError.archive(.init("other programs keep changing the conversation.")) }
        archiveProblem = nil
    }

    func saveContext() {
        // A turn that is being answered, here or by another program, is not in the context yet.
        context.next = min(inFlight ?? nextNumber, unansweredNumbers.min() ?? nextNumber)
        context.kept = contextTurns.filter { $0.number < context.next }.map {
            .init(
                number: $0.number, prompt: $0.prompt, date: $0.date, entries: Transcript(entries: $0.withoutRecalledTurns.entries)
            )
        }
        isContextUnsaved = true
        // The archive still has the turns and an older context. If writing fails, it is repeated with the next turn.
        do { try saveUnsaved() } catch { archiveProblem = ConversationError(archive: error) }
    }

    /// Merges the changes of other programs.
    func refresh() throws {
        guard let state = try archive.state(of: id) else {
            throw ConversationError.archive(.init("the conversation is no longer in the archive."))
        }
        if state.revision != revision { try adoptStored() }
        guard state.lastTurn >= nextNumber || !unansweredNumbers.isEmpty else { return }
        try adoptTurns(from: nextNumber)
    }

    /// Adopts the context from the archive, with the turns that followed.
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
        // Prefers the turns as this program has them, whose keys and values are cached, to the stored ones.
        let seen = Dictionary(contextTurns.map { ($0.number, $0) }) { first, _ in first }
        var turns = context.kept.map { kept in
            let turn = Turn(number: kept.number, prompt: kept.prompt, date: kept.date, entries: Array(kept.entries))
            return seen[kept.number].flatMap { $0.withoutRecalledTurns.entries == turn.entries ? $0 : nil } ?? turn
        }
        let isUnsaved = Set(unsaved.map(\.number))
        turns += contextTurns.filter { turn in
            (turn.number >= context.next || isUnsaved.contains(turn.number)) && !turns.contains { $0.number == turn.number }
        }
        contextTurns = turns
        try adoptTurns(from: context.next)
        updateSessionAfterPinning()
    }

    /// Adds turns of other programs: those with this number or a higher one, and those that had no answer before.
    private func adoptTurns(from number: Int) throws {
        let found = try archive.turns(of: id, from: min(number, unansweredNumbers.min() ?? number))
        note(found.damage)
        let known = Set(contextTurns.map(\.number))
        let wanted = found.turns.filter {
            ($0.number >= number || unansweredNumbers.contains($0.number)) && $0.number != inFlight
        }
        let added = wanted.filter { !$0.entries.isEmpty && !known.contains($0.number) }
        nextNumber = max(nextNumber, found.last + 1)
        let answered = Set(found.turns.filter { !$0.entries.isEmpty }.map(\.number))
        unansweredNumbers = unansweredNumbers.subtracting(answered).union(wanted.filter(\.entries.isEmpty).map(\.number))
        // The program that was answering an older turn has probably ended.
        unansweredNumbers = unansweredNumbers.filter { $0 >= nextNumber - 8 }
        if added.isEmpty { return }
        contextTurns = (contextTurns + added).sorted { $0.number < $1.number }
        updateSessionAfterPinning()
    }

    /// Adds damage to the list, without duplicates.
    func note(_ found: [ConversationArchive.Damage]) {
        damage += found.filter { !damage.contains($0) }
    }
}
