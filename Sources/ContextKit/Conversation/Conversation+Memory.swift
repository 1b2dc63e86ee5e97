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

    /// The earlier turns that a prompt would bring back, best first. Turns that are in the context are not among them.
    public func recall(for prompt: String) throws -> [Turn] {
        let found = try matches(for: prompt)
        let turns = try archive.turns(found, of: id)
        return found.compactMap { turns[$0] }
    }

    /// The numbers of those turns.
    private func matches(for prompt: String) throws -> [Int] {
        guard let recall = policy.recall, live.count < nextNumber else { return [] }
        return try archive.turns(
            like: prompt, in: id, of: nextNumber, except: Set(live.map(\.number)), policy: recall)
    }

    /// The prompt with what it needs in front of it: facts that are not in the head yet, and earlier turns.
    func recalled(_ prompt: String) async throws -> String {
        let text = withNewFacts(prompt)
        guard let recall = policy.recall else { return text }
        let known = Set(live.map(\.number))
        // An archive that cannot be read is found out when the turn is written: the prompt can do without.
        let found = (try? matches(for: prompt)) ?? []
        guard !found.isEmpty else { return text }
        // Neighbours often have the other half of what was said.
        var wanted: [Int] = []
        for number in found + found.flatMap({ [$0 + 1, $0 - 1] })
        where number >= 0 && number < nextNumber && !known.contains(number) && !wanted.contains(number) {
            wanted.append(number)
        }
        let turns = try archive.turns(wanted, of: id)
        // In small windows a share would not hold a single turn.
        let limit = min(max(model.contextSize.share(recall.share), 96), model.contextSize / 4)
        var chosen: [Int] = []
        for number in wanted where turns[number] != nil {
            let candidate = (chosen + [number]).sorted().compactMap { turns[$0] }
            if try await model.tokenCount(of: Self.block(candidate)) <= limit {
                chosen.append(number)
            }
        }
        // The best match alone is too long: the sentences in it that have the words.
        if chosen.isEmpty, let best = found.first.flatMap({ turns[$0] }) {
            let words = Set(SearchText.words(of: prompt))
            let sentences = TextUnits.sentences(of: best.text).filter {
                !words.isDisjoint(with: SearchText.words(of: String($0)))
            }
            var block = ""
            for sentence in sentences {
                let more = block + sentence
                guard try await model.tokenCount(of: more) <= limit else { break }
                block = more
            }
            return block.isEmpty ? text : "From earlier:\n\(block)\n\n\(text)"
        }
        return chosen.isEmpty ? text : Self.block(chosen.sorted().compactMap { turns[$0] }) + "\n\n" + text
    }

    /// Facts that were pinned since the last compaction stand in front of each prompt until the next one.
    func withNewFacts(_ prompt: String) -> String {
        let facts = context.pinned.dropFirst(context.pinnedInHead)
        return facts.isEmpty ? prompt : "Remember:\n" + facts.map { "- \($0)" }.joined(separator: "\n") + "\n\n" + prompt
    }

    private static func block(_ turns: [Turn]) -> String {
        "From earlier:\n" + turns.map(\.text).joined(separator: "\n")
    }
}
