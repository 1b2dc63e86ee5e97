internal import JSON

/// Calls of models that were not trained to make any.
///
/// Small models do not reliably answer the question which tool to use, but they predict well which messages people write to which
/// recipient. So the message is scored: its probability as a message to each tool, or to an assistant without tools (a noisy channel,
/// arXiv:2108.04106). The calls are then a list that a grammar constrains.
extension TurnPlan {
    /// The recipients that have been asked about, and the most probable of them.
    struct RecipientChoice {
        var next = 0
        var best: (tool: ChatTool?, score: Double)?
    }

    /// Asks for whom the message is; nil if the model was trained to call tools, or must not call any.
    mutating func chooseRecipient() -> TurnStep? {
        let recipients = chat.tools.recipients
        if recipients.isEmpty { return nil }
        if recipients.count == 1, let tool = recipients[0].tool { return callList([tool]) }
        if chat.tools.message.isEmpty { return chat.tools.mustCall ? callList(recipients.compactMap(\.tool)) : nil }
        return ask(RecipientChoice())
    }

    private mutating func ask(_ choice: RecipientChoice) -> TurnStep {
        state = .recipient(choice)
        let question = TurnQuestion(
            prompt: chat.tools.recipients[choice.next].prompt, tokens: chat.tools.message)
        return step(TurnPhase(kind: .question(question), output: .call))
    }

    mutating func next(after choice: RecipientChoice, _ end: PhaseEnd) -> TurnStep {
        var choice = choice
        if end.logValue > choice.best?.score ?? -.infinity {
            choice.best = (chat.tools.recipients[choice.next].tool, end.logValue)
        }
        choice.next += 1
        if choice.next < chat.tools.recipients.count { return ask(choice) }
        return choice.best?.tool.map { callList([$0]) } ?? answer()
    }

    private mutating func callList(_ tools: [ChatTool]) -> TurnStep {
        guard let grammar = chat.callList(tools, chat.tools.maximumCalls) else { return answer() }
        state = .callList(tools)
        return step(callPhase(.constrained(grammar)))
    }

    /// Reads the calls that have been written.
    mutating func calls(of tools: [ChatTool], _ end: PhaseEnd) throws -> TurnStep {
        keep(end)
        if end.reason == .grammarLimit { throw GenerationFailure.grammarTooComplex }
        // Calls that were shortened would be calls with other arguments.
        if request.endsAtLimit, end.reason != .endOfTurn || end.shortenedAt != nil {
            return finish(end.reason == .endOfTurn ? .maximumTokens : end.reason)
        }
        let value: JSONValue = end.reason == .endOfTurn && end.shortenedAt == nil ? try parsed(end.text) : .null
        let calls: [JSONValue]
        switch value {
        case .array(let several): calls = several
        case .object: calls = [value]  // one call at most is no list
        default:
            throw GenerationFailure.argumentTooLong(
                tool: tools.first?.name ?? "", argument: nil, contextSize: chat.contextSize)
        }
        var made: [ChatToolCall] = []
        for call in calls {
            guard case .string(let name)? = call["name"], let arguments = call["arguments"] else { continue }
            // A small model may write the same call several times.
            if !chat.tools.repeatable.contains(name),
                made.contains(where: { $0.name == name && $0.arguments == arguments })
            {
                continue
            }
            made.append(ChatToolCall(id: makeIdentifier(), name: name, arguments: arguments))
        }
        for call in made { report(call) }
        return finish(.endOfTurn)
    }
}
