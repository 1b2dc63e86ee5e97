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
        try await plan(for: Request(prompt: prompt, schema: nil, options: GenerationOptions())).recall
    }

    /// How a request will be sent.
    struct Plan {
        var recall: Recall
        /// The prompt, including the text in front of it.
        var text: String
        /// The entries before the prompt.
        var entries: [Transcript.Entry]
        /// The turns of the context after removing recalled turns from earlier prompts; nil if the context does not
        /// change.
        var turns: [Turn]?
        /// Tokens of the request, and tokens that it would have without recalled turns in front of the prompt.
        var tokens: Int
        var plainTokens: Int
        /// Whether the reserved tokens for the response are available.
        var fits = true
    }

    /// Plans a request: puts facts that are not in the head yet, and earlier turns, in front of the prompt. Does not
    /// change the conversation.
    ///
    /// Turns recalled for a prompt stay for one more turn, because the user may ask a follow-up question, unless the
    /// space is needed. When they are removed, only the entries after them are computed again.
    func plan(for request: Request) async throws -> Plan {
        let (recall, found) = try await search(request.prompt)
        // First without the recalled turns of all prompts but the last. If that is not enough, without any.
        var older: [Turn]?
        if state.turns.dropLast().contains(where: \.hasRecalled) {
            older = state.turns.dropLast().map(\.withoutRecalledTurns) + state.turns.suffix(1)
        }
        let first = try await plan(for: request, recall, found, with: older)
        guard state.turns.last?.hasRecalled == true else { return first }
        let wanted = policy.recall?.tokens(contextSize: model.contextSize, evidence: recall.evidence) ?? 0
        if first.fits, !recall.isNeeded || first.recall.budget >= wanted || !first.recall.isBudgetExhausted { return first }
        return try await plan(for: request, recall, found, with: state.turns.map(\.withoutRecalledTurns))
    }

    /// Searches the archive for turns that are relevant for a prompt.
    private func search(_ prompt: String) async throws -> (recall: Recall, found: [ScoredTurn]) {
        var recall = Recall(prompt: prompt, evidence: 0, isNeeded: false, items: [], budget: 0, tokens: 0)
        guard let policy = policy.recall, state.turns.count < state.nextNumber else { return (recall, []) }
        let known = Set(state.turns.map(\.number))
        var found: [ScoredTurn] = []
        do {
            found = try await policy.search.turns(for: prompt, in: id, of: archive, count: state.nextNumber, except: known)
                .filter { (0..<state.nextNumber).contains($0.number) && !known.contains($0.number) }
        } catch let error as CancellationError {
            throw error
        } catch {
            // The request continues without recall.
            recall.problem = "\(error)"
        }
        recall.evidence = found.map(\.evidence).max() ?? 0
        recall.isNeeded = !found.isEmpty && recall.evidence >= policy.minimumEvidence
        if !recall.isNeeded {
            recall.items = found.prefix(3).map {
                Recall.Item(turn: $0.number, side: $0.side, match: $0, outcome: .weak, text: "")
            }
        }
        return (recall, found)
    }

    /// - Parameter turns: The turns of the context; nil for those of the current session.
    private func plan(
        for request: Request, _ recall: Recall, _ found: [ScoredTurn], with turns: [Turn]?
    ) async throws -> Plan {
        var entries = Array(transcript)
        if let turns {
            var draft = state.draft()
            draft.turns = turns
            entries = draft.entries
        }
        let plain = state.withNewFacts(request.prompt)
        let tokens = try await count(entries + [request.entry(plain)])
        var plan = Plan(recall: recall, text: plain, entries: entries, turns: turns, tokens: tokens, plainTokens: tokens)
        if recall.isNeeded, let policy = policy.recall { try await fill(&plan, request, found, policy) }
        plan.fits = plan.tokens + reserve(request) <= model.contextSize
        return plan
    }

    /// Puts earlier turns in front of the prompt, as far as they fit.
    private func fill(_ plan: inout Plan, _ request: Request, _ found: [ScoredTurn], _ policy: RecallPolicy) async throws {
        let free = model.contextSize - reserve(request) - plan.plainTokens
        plan.recall.budget = max(0, min(free, policy.tokens(contextSize: model.contextSize, evidence: plan.recall.evidence)))
        let found = Array(found.prefix(Self.maximumMatches))
        let stored: (turns: [Int: Turn], damage: [ConversationArchive.Damage])
        do { stored = try archive.turns(of: id, numbers: Set(found.map(\.number))) } catch {
            plan.recall.problem = "\(error)"
            return
        }
        state.note(stored.damage)
        let block = RecallBlock(
            found: found, turns: stored.turns, damaged: Set(stored.damage.compactMap(\.turn)), policy: policy,
            words: Set(RecallQuery(request.prompt).words.filter { !$0.isDate }.map(\.text)),
            count: { [model] in try await model.tokenCount(of: $0) })
        plan.recall.items = try await block.items(within: plan.recall.budget)
        // The counts of the parts differ slightly from the count of the whole. If the whole is too large, the least
        // important turns are removed.
        while let last = plan.recall.items.lastIndex(where: { !$0.text.isEmpty }) {
            let text = RecallBlock.text(plan.recall.items) + plan.text
            let tokens = try await count(plan.entries + [request.entry(text)])
            if tokens - plan.plainTokens <= plan.recall.budget {
                (plan.text, plan.tokens, plan.recall.tokens) = (text, tokens, tokens - plan.plainTokens)
                return
            }
            plan.recall.items[last].outcome = .overBudget
            plan.recall.items[last].text = ""
        }
    }

    /// Maximum number of matches considered for one prompt.
    private static let maximumMatches = 120
}
