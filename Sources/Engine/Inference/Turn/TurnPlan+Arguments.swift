/// The arguments of calls.
extension TurnPlan {
    /// The next argument, for formats that write arguments separately.
    ///
    /// Required arguments come in declaration order; before each, the model may write optional arguments declared before it.
    mutating func argument(_ calls: inout CallState, _ format: ToolFormat) -> TurnStep {
        let style = format.arguments
        let nextRequired = calls.open.firstIndex { $0.isRequired }
        let separator = calls.members.isEmpty ? "" : style.separator
        var choices: [(property: ChatTool.Property?, tokens: [TokenID])] = []
        if !calls.open.isEmpty {
            choices = calls.open[...(nextRequired ?? calls.open.count - 1)].map {
                ($0, vocabulary.encode(separator + style.opening($0.name)))
            }
        }
        if nextRequired == nil { choices.append((nil, vocabulary.encode(style.ending))) }
        state = .call(calls, .argument(choices))
        return step(callPhase(.choice(choices.map(\.tokens))))
    }

    mutating func value(
        _ property: ChatTool.Property, _ calls: inout CallState, _ format: ToolFormat
    ) throws -> TurnStep {
        let style = format.arguments
        if !property.isText || style == .python {
            guard let tool = calls.tool, let grammar = chat.grammar(tool, property, "") else {
                return finish(.endOfTurn)
            }
            state = .call(calls, .value(property, isText: false, choices: []))
            return step(callPhase(.constrained(grammar)))
        }
        // A string with choices is one of them; any other string ends at the closing delimiter.
        write(style.textOpen)
        let choices = (property.choices ?? []).map {
            (text: $0, tokens: vocabulary.encodePlain($0) + vocabulary.encode(style.afterText))
        }
        state = .call(calls, .value(property, isText: true, choices: choices))
        if !choices.isEmpty { return step(callPhase(.choice(choices.map(\.tokens)))) }
        var phase = callPhase(.free)
        phase.stopStrings = [style.textClose]
        if let token = vocabulary.specialToken(style.textClose) { phase.stopTokens = [token] }
        return step(phase)
    }
}
