import FoundationModels
internal import TokenCounts

extension Conversation {
    /// Keeps a fact in the context permanently and verbatim; compaction does not remove it. Tools may call this.
    ///
    /// - Throws: ``ConversationError/promptTooLarge(_:)`` if instructions and facts would take more than half of the
    ///   window.
    public func pin(_ fact: String) async throws {
        try await exclusively {
            // Tools of one round run concurrently: another one may pin a fact while this one counts.
            var known: [String]
            repeat {
                known = state.context.pinned
                if known.contains(fact) { return }
                let counts = try await model.tokenCounts(
                    of: state.head(pinned: known + [fact]), without: state.head(pinned: known))
                guard counts.whole <= model.contextSize / 2 else {
                    throw ConversationError.promptTooLarge(
                        .init(
                            contextSize: model.contextSize / 2, fixedTokens: counts.rest, promptTokens: counts.part,
                            responseReserve: 0))
                }
            } while known != state.context.pinned
            state.pin(fact)
            updateSession()
            state.contextChanged()
            saveContext()
        }
    }

    /// Removes a pinned fact. Does nothing if the fact is not pinned.
    public func unpin(_ fact: String) async {
        guard state.unpin(fact) else { return }
        updateSession()
        state.contextChanged()
        // During another task's operation the archive must not be merged; that operation saves the context at its end.
        if section == nil || hasExclusiveAccess { saveContext() }
    }

    /// Returns the turns that would be recalled for a prompt, and why. Turns in the context are not considered.
    public func recall(for prompt: String) async throws -> Recall {
        try await plan(for: Request(prompt)).recall
    }

    /// How a request will be sent.
    struct Plan {
        var recall: Recall
        /// The prompt, with what is put in front of it.
        var message: Message
        /// The entries before the prompt.
        var entries: [Transcript.Entry]
        /// The turns of the context after removing recalled turns from earlier prompts; nil if the context does not
        /// change.
        var turns: [Turn]?
        /// Tokens of the request, and tokens that it would have without recalled turns in front of the prompt.
        var tokens: Int
        var tokensWithoutRecall: Int
        /// Whether the reserved tokens for the response are available.
        var fits = true
    }

    /// Plans a request: puts facts that are not in the head yet, and earlier turns, in front of the prompt. Does not
    /// change the conversation.
    ///
    /// Turns recalled for a prompt stay for one more turn, because the user may ask a follow-up question, unless the
    /// space is needed. When they are removed, only the entries after them are computed again.
    func plan(for request: Request) async throws -> Plan {
        let (recall, matches) = try await search(request.text)
        // First without the recalled turns of all prompts but the last. If that is not enough, without any.
        var older: [Turn]?
        if state.turns.dropLast().contains(where: \.hasRecalled) {
            older = state.turns.dropLast().map(\.withoutRecalledTurns) + state.turns.suffix(1)
        }
        let first = try await plan(for: request, recall, matches, with: older)
        guard state.turns.last?.hasRecalled == true else { return first }
        let wanted = policy.recall?.tokens(contextSize: model.contextSize, evidence: recall.evidence) ?? 0
        if first.fits, !recall.isNeeded || first.recall.budget >= wanted || !first.recall.isBudgetExhausted { return first }
        return try await plan(for: request, recall, matches, with: state.turns.map(\.withoutRecalledTurns))
    }

    /// Searches the archive for turns that are relevant for a prompt.
    private func search(_ prompt: String) async throws -> (recall: Recall, matches: [ScoredTurn]) {
        guard let policy = policy.recall, state.turns.count < state.nextNumber else {
            return (Recall(prompt: prompt, evidence: 0, isNeeded: false, items: [], budget: 0, tokens: 0), [])
        }
        return try await policy.find(
            for: prompt, in: id, of: archive, count: state.nextNumber, except: Set(state.turns.map(\.number)))
    }

    /// - Parameter turns: The turns of the context; nil for those of the current session.
    private func plan(
        for request: Request, _ recall: Recall, _ matches: [ScoredTurn], with turns: [Turn]?
    ) async throws -> Plan {
        var entries = Array(transcript)
        if let turns {
            var draft = state.draft()
            draft.turns = turns
            entries = draft.entries
        }
        let message = withoutRecall(request)
        let tokens = try await count(entries + [message.entry])
        var plan = Plan(
            recall: recall, message: message, entries: entries, turns: turns, tokens: tokens, tokensWithoutRecall: tokens)
        if recall.isNeeded, let policy = policy.recall { try await fill(&plan, request, matches, policy) }
        plan.fits = plan.tokens + reserve(request) <= model.contextSize
        return plan
    }

    /// Puts earlier turns in front of the prompt, as far as they fit.
    private func fill(_ plan: inout Plan, _ request: Request, _ matches: [ScoredTurn], _ policy: RecallPolicy) async throws {
        let free = model.contextSize - reserve(request) - plan.tokensWithoutRecall
        let stored: (turns: [Int: Turn], damage: [ConversationArchive.Damage])
        do { stored = try archive.turns(of: id, numbers: Set(matches.map(\.number))) } catch {
            plan.recall.problem = "\(error)"
            return
        }
        state.note(stored.damage)
        let (message, entries, before) = (plan.message, plan.entries, plan.tokensWithoutRecall)
        let text = try await policy.fill(
            &plan.recall, within: min(free, policy.tokens(contextSize: model.contextSize, evidence: plan.recall.evidence)),
            from: matches, stored, count: { [model] in try await model.tokenCount(of: $0) },
            added: { text in
                var message = message
                message.recalled = text
                return try await count(entries + [message.entry]) - before
            })
        if let text {
            plan.message.recalled = text
            plan.tokens = before + plan.recall.tokens
        }
    }
}
