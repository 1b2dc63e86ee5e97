import FoundationModels

extension Conversation {
    /// Keeps a fact in the context at any time, word for word. It survives every compaction. Tools may call this, too.
    ///
    /// - Throws: ``ConversationError/promptTooLarge(_:)`` if instructions and facts would fill more than half of the
    ///   window.
    public func pin(_ fact: String) async throws {
        try await exclusively {
            func head(_ pinned: [String]) -> [Transcript.Entry] {
                let now = draft()
                return ContextDraft(
                    instructions: now.instructions, tools: now.tools, pinned: pinned, carried: "", turns: []
                ).entries
            }
            // Tools of one round run side by side: another one may pin something while this one counts.
            var known: [String]
            repeat {
                known = context.pinned
                if known.contains(fact) { return }
                let with = try await count(head(known + [fact]))
                let fixed = try await count(head(known))
                guard with <= model.contextSize / 2 else {
                    throw ConversationError.promptTooLarge(
                        .init(
                            contextSize: model.contextSize / 2, fixedTokens: fixed, promptTokens: with - fixed,
                            responseReserve: 0))
                }
            } while known != context.pinned
            context.pinned.append(fact)
            // At the beginning it costs nothing to put it into the head at once; later it stands in front of prompts
            // until the next compaction, so that what is computed already can be used.
            if live.isEmpty, !isAnswering {
                context.pinnedInHead = context.pinned.count
                changeHead()
            }
            saveContext()
        }
    }

    /// Does not keep a fact any longer.
    public func unpin(_ fact: String) async {
        await exclusively {
            guard let place = context.pinned.firstIndex(of: fact) else { return }
            context.pinned.remove(at: place)
            if place < context.pinnedInHead {
                context.pinnedInHead -= 1
                changeHead()
            }
            saveContext()
        }
    }

    /// What a prompt would bring back if it were asked now, and why. Turns that are in the context are not among it.
    public func recall(for prompt: String) async throws -> Recall {
        try await plan(for: Request(prompt: prompt, schema: nil, options: GenerationOptions())).recall
    }

    /// How a prompt is going to be asked.
    struct Plan {
        var recall: Recall
        /// The prompt with what stands in front of it.
        var text: String
        /// What stands before it.
        var entries: [Transcript.Entry]
        /// The turns of the context, if what other prompts had in front of them leaves; nil if all stays as it is.
        var turns: [Turn]?
        /// Tokens of the request, and what it would have without earlier turns in front of the prompt.
        var tokens: Int
        var plainTokens: Int
        /// Whether the response has its room.
        var fits = true
    }

    /// A prompt with what it needs in front of it: facts that are not in the head yet, and earlier turns. Nothing
    /// changes.
    ///
    /// What an earlier prompt had in front of it stays for one more turn, which may ask on, unless room is needed. When
    /// it leaves, only what follows it is computed again.
    func plan(for request: Request) async throws -> Plan {
        let (recall, found) = try await search(request.prompt)
        // All turns but the last, then the last one, too.
        var older: [Turn]?
        if live.dropLast().contains(where: \.hasRecalled) { older = live.dropLast().map(\.withoutBlock) + live.suffix(1) }
        let first = try await plan(for: request, recall, found, with: older)
        guard live.last?.hasRecalled == true else { return first }
        let wanted = policy.recall?.tokens(contextSize: model.contextSize, evidence: recall.evidence) ?? 0
        if first.fits, !recall.isNeeded || first.recall.budget >= wanted || !first.recall.hasShortage { return first }
        return try await plan(for: request, recall, found, with: live.map(\.withoutBlock))
    }

    /// Looks for the turns that a prompt has to do with.
    private func search(_ prompt: String) async throws -> (recall: Recall, found: [ScoredTurn]) {
        var recall = Recall(prompt: prompt, evidence: 0, isNeeded: false, items: [], budget: 0, tokens: 0)
        guard let policy = policy.recall, live.count < nextNumber else { return (recall, []) }
        let known = Set(live.map(\.number))
        var found: [ScoredTurn] = []
        do {
            found = try await policy.search.turns(for: prompt, in: id, of: archive, count: nextNumber, except: known)
                .filter { (0..<nextNumber).contains($0.number) && !known.contains($0.number) }
        } catch let error as CancellationError {
            throw error
        } catch {
            // The prompt can do without.
            recall.problem = "\(error)"
        }
        recall.evidence = found.map(\.evidence).max() ?? 0
        recall.isNeeded = !found.isEmpty && recall.evidence >= policy.minimumEvidence
        if !recall.isNeeded {
            recall.items = found.prefix(3).map { Recall.Item(turn: $0.number, match: $0, outcome: .weak, text: "") }
        }
        return (recall, found)
    }

    /// - Parameter turns: The turns of the context; nil for those that the session has.
    private func plan(
        for request: Request, _ recall: Recall, _ found: [ScoredTurn], with turns: [Turn]?
    ) async throws -> Plan {
        var entries = Array(transcript)
        if let turns {
            var draft = self.draft()
            draft.turns = turns
            entries = draft.entries
        }
        let plain = withNewFacts(request.prompt)
        let tokens = try await count(entries + [request.entry(plain)])
        var plan = Plan(recall: recall, text: plain, entries: entries, turns: turns, tokens: tokens, plainTokens: tokens)
        if recall.isNeeded, let policy = policy.recall { try await fill(&plan, request, found, policy) }
        plan.fits = plan.tokens + reserve(request) <= model.contextSize
        return plan
    }

    /// Puts earlier turns in front of the prompt, as far as there is room.
    private func fill(_ plan: inout Plan, _ request: Request, _ found: [ScoredTurn], _ policy: RecallPolicy) async throws {
        let free = model.contextSize - reserve(request) - plan.plainTokens
        let wanted = policy.tokens(contextSize: model.contextSize, evidence: plan.recall.evidence)
        plan.recall.budget = max(0, min(free, wanted))
        let found = Array(found.prefix(Self.maximumMatches))
        let known = Set(live.map(\.number))
        let numbers = found.flatMap { ($0.number - policy.reach)...($0.number + policy.reach) }
            .filter { (0..<nextNumber).contains($0) && !known.contains($0) }
        let stored: (turns: [Int: Turn], damage: [ConversationArchive.Damage])
        do { stored = try archive.turns(of: id, numbers: Set(numbers)) } catch {
            plan.recall.problem = "\(error)"
            return
        }
        note(stored.damage)
        let block = RecallBlock(
            found: found, turns: stored.turns, damaged: Set(stored.damage.compactMap(\.turn)), policy: policy,
            words: Set(RecallQuery(request.prompt).words.filter { !$0.isDate }.map(\.text)),
            count: { [model] in try await model.tokenCount(of: $0) })
        plan.recall.items = try await block.items(within: plan.recall.budget)
        // Counts of parts are not exactly that of the whole: what is too much leaves, the least important first.
        while let last = plan.recall.items.lastIndex(where: { !$0.text.isEmpty }) {
            let text = RecallBlock.text(plan.recall.items) + plan.text
            let tokens = try await count(plan.entries + [request.entry(text)])
            if tokens - plan.plainTokens <= plan.recall.budget {
                (plan.text, plan.tokens, plan.recall.tokens) = (text, tokens, tokens - plan.plainTokens)
                return
            }
            plan.recall.items[last].outcome = .noRoom
            plan.recall.items[last].text = ""
        }
    }

    /// Matches that are looked at for one prompt.
    private static let maximumMatches = 40

    /// Facts that were pinned since the last compaction stand in front of each prompt until the next one.
    func withNewFacts(_ prompt: String) -> String {
        let facts = context.pinned.dropFirst(context.pinnedInHead)
        return facts.isEmpty ? prompt : "Remember:\n" + facts.map { "- \($0)" }.joined(separator: "\n") + "\n\n" + prompt
    }
}
