internal import JSON

/// The arguments of calls.
extension TurnPlan {
    /// Asks whether the user mentioned the next optional argument.
    ///
    /// Small models fill in all arguments of a tool. Their probabilities still distinguish them: the odds of an argument
    /// that the user mentioned, versus the end of the list, are far higher.
    mutating func mention(_ calls: inout CallState, _ format: ToolFormat) throws -> TurnStep {
        guard let tool = calls.tool else { return finish(.endOfTurn) }
        while let member = calls.undecided.first {
            calls.undecided.removeFirst()
            guard tool.droppableArguments.contains(member.name) else {
                calls.members.append(member)
                continue
            }
            let text = " " + JSONValue.object(calls.members).spacedText.dropLast()
            let more = (calls.members.isEmpty ? "" : ", ") + JSONValue.string(member.name).text + ": "
            let (a, b) = (vocabulary.encodePlain(text + more), vocabulary.encodePlain(text + "}"))
            let common = zip(a, b).prefix { $0 == $1 }.count
            guard common < a.count, common < b.count else { continue }
            state = .call(calls, .mention(member))
            return ask(after: calls.argumentsStart, a[..<common], a[common], against: b[common])
        }
        if calls.members.count < calls.memberCount {
            cut(to: calls.argumentsStart)
            write(vocabulary.encodePlain(" " + JSONValue.object(calls.members).spacedText))
        }
        return try afterArguments(&calls, format)
    }

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
            guard let tool = calls.tool, let grammar = chat.grammar(tool, property) else {
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

    /// Asks for the log odds of two tokens as the next one after the first `count` tokens of the turn and those of a question.
    mutating func ask(
        after count: Int, _ tokens: ArraySlice<TokenID>, _ one: TokenID, against other: TokenID
    ) -> TurnStep {
        let question = TurnQuestion(
            context: .turn(count: count), tokens: Array(tokens), value: .odds(one, against: other))
        return step(callPhase(.question(question)))
    }
}
