import FoundationModels

extension Conversation {
    /// Keeps a fact in the context at any time, word for word. It survives every compaction. Tools may call this, too.
    ///
    /// - Throws: ``ConversationError/promptTooLarge(_:)`` if instructions and facts would fill more than half of the window.
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
            // At the beginning it costs nothing to put it into the head at once; later it stands in front of prompts until the
            // next compaction, so that what is computed already can be used.
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
        let request = Request(prompt: prompt, schema: nil, options: GenerationOptions())
        if let plan = try await plan(for: request) { return plan.recall }
        return try await recall(for: request, in: Array(transcript)).recall
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
    }

    /// A prompt with what it needs in front of it; nil if not even the prompt fits. Nothing changes.
    ///
    /// What an earlier prompt had in front of it stays for one more turn, which may ask on, unless room is needed. When it leaves,
    /// only what follows it is computed again.
    func plan(for request: Request) async throws -> Plan? {
        // All turns but the last, then the last one, too.
        var older: [Turn]?
        if live.dropLast().contains(where: \.hasRecalled) { older = live.dropLast().map(\.withoutBlock) + live.suffix(1) }
        let first = try await plan(for: request, with: older)
        guard live.last?.hasRecalled == true else { return first }
        let wanted = policy.recall?.tokens(contextSize: model.contextSize, evidence: first?.recall.evidence ?? 0) ?? 0
        if let recall = first?.recall, !recall.isNeeded || recall.budget >= wanted || !recall.hasShortage { return first }
        return try await plan(for: request, with: live.map(\.withoutBlock))
    }

    private func plan(for request: Request, with turns: [Turn]?) async throws -> Plan? {
        var entries = Array(transcript)
        if let turns {
            var draft = self.draft()
            draft.turns = turns
            entries = draft.entries
        }
        let (recall, text) = try await recall(for: request, in: entries)
        guard try await fits(text, request, behind: entries) else { return nil }
        return Plan(recall: recall, text: text, entries: entries, turns: turns)
    }

    /// The prompt with what it needs in front of it: facts that are not in the head yet, and earlier turns as far as there is room
    /// behind these entries.
    func recall(for request: Request, in entries: [Transcript.Entry]) async throws -> (recall: Recall, text: String) {
        let plain = withNewFacts(request.prompt)
        var recall = Recall(prompt: request.prompt, evidence: 0, isNeeded: false, items: [], budget: 0, tokens: 0)
        guard let policy = policy.recall, live.count < nextNumber else { return (recall, plain) }
        let known = Set(live.map(\.number))
        var found: [ScoredTurn] = []
        do {
            found = try await policy.search.turns(
                for: request.prompt, in: id, of: archive, count: nextNumber, except: known
            ).filter { (0..<nextNumber).contains($0.number) && !known.contains($0.number) }
        } catch let error as CancellationError {
            throw error
        } catch {
            // The prompt can do without.
            recall.problem = "\(error)"
        }
        recall.evidence = found.map(\.evidence).max() ?? 0
        recall.isNeeded = !found.isEmpty && recall.evidence >= policy.minimumEvidence
        guard recall.isNeeded else {
            recall.items = found.prefix(3).map { Recall.Item(turn: $0.number, match: $0, outcome: .weak, text: "") }
            return (recall, plain)
        }
        let used = try await count(entries + [request.entry(plain)])
        let free = model.contextSize - reserve(request) - used
        recall.budget = max(0, min(free, policy.tokens(contextSize: model.contextSize, evidence: recall.evidence)))
        found = Array(found.prefix(Self.maximumMatches))
        let neighbours = found.flatMap { match in
            (match.number - policy.neighbours.clamped(to: 0...8))...(match.number + policy.neighbours.clamped(to: 0...8))
        }.filter { (0..<nextNumber).contains($0) && !known.contains($0) }
        let stored: (turns: [Int: Turn], damage: [ConversationArchive.Damage])
        do { stored = try archive.turns(of: id, numbers: Set(neighbours)) } catch {
            recall.problem = "\(error)"
            return (recall, plain)
        }
        note(stored.damage)
        let block = RecallBlock(
            found: found, turns: stored.turns, damaged: Set(stored.damage.compactMap(\.turn)), policy: policy,
            words: Set(RecallQuery(request.prompt).words.filter { !$0.isDate }.map(\.text)),
            count: { [model] in try await model.tokenCount(of: $0) })
        recall.items = try await block.items(within: recall.budget)
        // Counts of parts are not exactly that of the whole: what is too much leaves, the least important first.
        while let last = recall.items.lastIndex(where: { !$0.text.isEmpty }) {
            let text = RecallBlock.text(recall.items) + plain
            let whole = try await count(entries + [request.entry(text)])
            recall.tokens = whole - used
            if recall.tokens <= recall.budget { return (recall, text) }
            recall.items[last].outcome = .noRoom
            recall.items[last].text = ""
        }
        recall.tokens = 0
        return (recall, plain)
    }

    /// Matches that are looked at for one prompt.
    private static let maximumMatches = 40

    /// Facts that were pinned since the last compaction stand in front of each prompt until the next one.
    func withNewFacts(_ prompt: String) -> String {
        let facts = context.pinned.dropFirst(context.pinnedInHead)
        return facts.isEmpty ? prompt : "Remember:\n" + facts.map { "- \($0)" }.joined(separator: "\n") + "\n\n" + prompt
    }
}
