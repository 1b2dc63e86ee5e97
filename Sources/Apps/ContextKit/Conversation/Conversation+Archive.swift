import FoundationModels

/// Writing to the archive, and reading the changes of other programs that continue the same conversation.
extension Conversation {
    /// Maximum number of times that a context changed by another program is merged before saving fails.
    private static let maximumRounds = 100

    /// Writes all turns and contexts that have not been written yet.
    func saveUnsaved() throws {
        do { try writeUnsaved() } catch ConversationError.archive(let failure) where failure.isFull {
            // Files that only save time make room for the conversation.
            guard archive.removeCacheFiles() else { throw ConversationError.archive(failure) }
            try writeUnsaved()
        }
        archiveProblem = nil
    }

    private func writeUnsaved() throws {
        let hasNewTurns = !state.unsavedTurns.isEmpty
        while let turn = state.unsavedTurns.first {
            // Recalled turns in front of the prompt are already in the archive.
            try archive.recordAnswer(turn.withOriginalPrompt, in: id)
            state.savedTurn()
        }
        if hasNewTurns { prepareSearch() }
        for _ in 0..<Self.maximumRounds where state.isContextUnsaved {
            let context = state.contextToSave
            if let revision = try archive.save(context, state.unsavedRecords, revision: state.revision, in: id) {
                state.saved(context, revision: revision)
            } else {
                // Another program has written a context.
                try adoptStored()
            }
        }
        if state.isContextUnsaved { throw ConversationError.archive(.init("other programs keep changing the conversation.")) }
    }

    /// Writes the context after a change. The archive still has the turns and an older context: if writing fails, it is
    /// repeated with the next turn.
    func saveContext() {
        do { try saveUnsaved() } catch { archiveProblem = ConversationError(archive: error) }
    }

    /// Merges the changes of other programs.
    func refresh() throws {
        guard let stored = try archive.state(of: id) else { throw Self.missing }
        if stored.revision != state.revision { try adoptStored() }
        guard stored.lastTurn >= state.nextNumber || !state.unansweredNumbers.isEmpty else { return }
        try adoptTurns(from: state.nextNumber)
    }

    /// Adopts the context from the archive, with the turns that followed.
    private func adoptStored() throws {
        try archive.repairRevision(of: id)
        guard let stored = try archive.context(of: id) else { throw Self.missing }
        state.merge(stored)
        try adoptTurns(from: stored.context.next)
    }

    /// Adopts the turns of other programs.
    private func adoptTurns(from number: Int) throws {
        state.merge(try archive.turns(of: id, from: state.firstToRead(from: number)), from: number)
        updateSession()
    }

    private static var missing: ConversationError { .archive(.init("the conversation is no longer in the archive.")) }
}
