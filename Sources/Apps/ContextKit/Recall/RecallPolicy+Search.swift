/// The steps of a recall, for conversations in an archive.
extension RecallPolicy {
    /// Searches for what a prompt needs.
    ///
    /// - Parameters:
    ///   - count: Number of turns of the conversation.
    ///   - known: The numbers of the turns that are in the context.
    /// - Returns: What is known before anything is chosen, and the results, best first.
    /// - Throws: `CancellationError`. Another error of the search is the problem of the recall: the request goes on without it.
    nonisolated(nonsending) func find(
        for prompt: String, in conversation: String, of archive: ConversationArchive, count: Int, except known: Set<Int>
    ) async throws -> (recall: Recall, matches: [ScoredTurn]) {
        var recall = Recall(prompt: prompt, evidence: 0, isNeeded: false, items: [], budget: 0, tokens: 0)
        var matches: [ScoredTurn] = []
        do {
            matches = try await search.turns(for: prompt, in: conversation, of: archive, count: count, except: known)
                .filter { (0..<count).contains($0.number) && !known.contains($0.number) }
        } catch let error as CancellationError {
            throw error
        } catch {
            recall.problem = "\(error)"
        }
        recall.evidence = matches.map(\.evidence).max() ?? 0
        recall.isNeeded = !matches.isEmpty && recall.evidence >= minimumEvidence
        if !recall.isNeeded {
            recall.items = matches.prefix(3).map {
                Recall.Item(turn: $0.number, side: $0.side, match: $0, outcome: .weak, text: "")
            }
        }
        return (recall, Array(matches.prefix(Self.maximumMatches)))
    }

    /// Maximum number of results considered for one prompt.
    private static let maximumMatches = 120

    /// Chooses what fits.
    ///
    /// - Parameters:
    ///   - recall: Receives what was chosen, and its tokens.
    ///   - budget: The maximum number of tokens.
    ///   - turns: The turns of the results, and those that cannot be read.
    ///   - count: The number of tokens of a part of the text.
    ///   - added: The number of tokens that a whole text in front of the prompt adds to the request.
    /// - Returns: The text in front of the prompt; nil if nothing was chosen.
    nonisolated(nonsending) func fill(
        _ recall: inout Recall, within budget: Int, from matches: [ScoredTurn],
        _ turns: (turns: [Int: Turn], damage: [ConversationArchive.Damage]),
        count: @escaping (String) async throws -> Int, added: (String) async throws -> Int
    ) async throws -> String? {
        recall.budget = max(0, budget)
        let block = RecallBlock(
            matches: matches, turns: turns.turns, damaged: Set(turns.damage.compactMap(\.turn)), policy: self,
            words: Set(RecallQuery(recall.prompt).words.filter { !$0.isDate }.map(\.text)), count: count)
        recall.items = try await block.items(within: recall.budget)
        // The counts of the parts differ slightly from the count of the whole. If the whole is too large, the least
        // important turns are removed.
        while let last = recall.items.lastIndex(where: { !$0.text.isEmpty }) {
            let text = RecallBlock.text(recall.items)
            let tokens = try await added(text)
            if tokens <= recall.budget {
                recall.tokens = tokens
                return text
            }
            recall.items[last].outcome = .overBudget
            recall.items[last].text = ""
        }
        return nil
    }
}
