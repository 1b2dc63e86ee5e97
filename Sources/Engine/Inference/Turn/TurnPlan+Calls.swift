internal import Foundation
internal import Grammar
internal import JSON

/// Calls of tools in the format that the model was trained for.
extension TurnPlan {
    /// The part of a call that is being generated.
    enum CallPart {
        case name([(tool: ChatTool, tokens: [TokenID])])
        /// All arguments, as a JSON object, with the text that follows them.
        case object(after: String)
        /// Which argument is next.
        case argument([(property: ChatTool.Property?, tokens: [TokenID])])
        /// The value of an argument.
        case value(ChatTool.Property, isText: Bool, choices: [(text: String, tokens: [TokenID])])
        /// Whether another call follows: by the separator of calls, or by another trigger.
        case separator(next: [TokenID])
        case trigger
    }

    /// The calls of a turn.
    struct CallState {
        var calls: [ChatToolCall] = []
        /// The number of tokens before the trigger of the first call.
        var start: Int

        // The current call.
        var tool: ChatTool?
        var identifier = ""
        var members: [JSONValue.Member] = []
        /// Arguments that have not been written yet, in formats that write them separately.
        var open: [ChatTool.Property] = []
    }

    /// The maximum number of tokens of white space between two calls.
    private static let maximumSpaces = 4

    // MARK: - The beginning of a call

    /// The first step of a call that must be made; nil if none must.
    mutating func requiredCall() -> TurnStep? {
        guard chat.tools.mustCall, let format = chat.toolFormat, !tools.isEmpty else { return nil }
        let start = count
        write(format.trigger)
        return name(CallState(start: start), format, format.beforeName)
    }

    /// Makes a phase end where the model begins a call: at a special token anywhere, at text only at the beginning, because an
    /// answer may contain any text.
    func callTriggers(_ format: ToolFormat, in phase: inout TurnPhase) {
        if let token = vocabulary.specialToken(format.trigger) {
            phase.stopTokens.insert(token)
        } else if format.isHeader {
            phase.stopStrings.append(format.trigger)
        } else if !format.beginsAsJSON {
            phase.openings.append(format.trigger)
        }
        if format.arguments == .json { phase.callableTools = tools.map(\.name) }
    }

    /// The first step of the call that a text ended with; nil if it ended in another way.
    mutating func call(_ end: PhaseEnd) throws -> TurnStep? {
        guard let format = chat.toolFormat, !tools.isEmpty else { return nil }
        if let tool = tools.first(where: { $0.name == end.calledTool }) {
            // The call continues in the trained format.
            let calls = CallState(start: count)
            write(format.trigger)
            return try arguments(of: tool, calls, format, format.beforeName)
        }
        guard isTrigger(end, format) else { return nil }
        let calls = CallState(start: count)
        write(format.trigger)
        return self.name(calls, format, format.beforeName)
    }

    private func isTrigger(_ end: PhaseEnd, _ format: ToolFormat) -> Bool {
        if let text = end.stopString, text == format.trigger || text == String(format.trigger.drop(while: \.isWhitespace)) {
            return true
        }
        return end.stopToken.map { $0 == vocabulary.specialToken(format.trigger) } ?? false
    }

    // MARK: - The parts of a call

    func callPhase(_ kind: TurnPhase.Kind) -> TurnPhase {
        // Calls with other arguments than the model wrote must not be made: an endless one fills the context, which is an error.
        var phase = TurnPhase(kind: kind, output: .call)
        phase.maximumTokens = leftForCalls
        return phase
    }

    /// The name of the next call.
    mutating func name(_ calls: CallState, _ format: ToolFormat, _ before: String) -> TurnStep {
        write(before)
        // One name may begin like another one: the text after it tells them apart.
        let after = format.afterName.prefix { String($0) != ToolFormat.identifierMark }
        let options = tools.map { (tool: $0, tokens: vocabulary.encode($0.name + after)) }
        state = .call(calls, .name(options))
        return step(callPhase(.choice(options.map(\.tokens))))
    }

    /// The arguments of a call of a tool whose name has not been written.
    mutating func arguments(
        of tool: ChatTool, _ calls: CallState, _ format: ToolFormat, _ before: String
    ) throws -> TurnStep {
        var calls = calls
        calls.identifier = makeIdentifier()
        calls.tool = tool
        calls.members = []
        write(before)
        write(tool.name + marked(format.afterName, calls))
        if case .json = format.arguments {
            let after = textAfterArguments(format)
            guard let grammar = chat.grammar(tool, nil, after) else { return finish(.endOfTurn) }
            state = .call(calls, .object(after: after))
            return step(callPhase(.constrained(grammar)))
        }
        calls.open = tool.properties
        return argument(&calls, format)
    }

    func marked(_ text: String, _ calls: CallState) -> String {
        text.replacing(ToolFormat.identifierMark, with: calls.identifier)
    }

    /// The text between the arguments and the next control token, which belongs to their grammar: the token with which a model was
    /// trained to end a call, such as `"}}` and a line break, has the end of the arguments and the text after it.
    private func textAfterArguments(_ format: ToolFormat) -> String {
        let text = format.afterArguments
        if let identifier = text.range(of: ToolFormat.identifierMark) {
            // The word with an identifier is encoded as a whole.
            return String(text[..<(text[..<identifier.lowerBound].lastIndex(of: " ") ?? text.startIndex)])
        }
        guard let mark = format.endMark, vocabulary.specialToken(mark) != nil, let place = text.range(of: mark) else {
            return text
        }
        return String(text[..<place.lowerBound])
    }

    mutating func next(
        after part: CallPart, _ end: PhaseEnd, _ calls: inout CallState, _ format: ToolFormat
    ) throws -> TurnStep {
        if end.reason == .grammarLimit { throw GenerationFailure.grammarTooComplex }
        if request.endsAtLimit, end.shortenedAt != nil || [.contextFull, .maximumTokens].contains(end.reason) {
            // After a call that is complete, the limit leaves out no more than another one.
            switch part {
            case .separator, .trigger: return finish(.endOfTurn)
            default: return finish(end.reason == .contextFull ? .contextFull : .maximumTokens)
            }
        }
        if end.reason == .contextFull || end.shortenedAt != nil {
            if let tool = calls.tool {
                throw GenerationFailure.argumentTooLong(
                    tool: tool.name, argument: argument(in: part, end), contextSize: chat.contextSize)
            }
            // The calls that are complete are made.
            return finish(calls.calls.isEmpty ? .contextFull : .endOfTurn)
        }
        switch part {
        case .name(let options):
            guard let chosen = options.first(where: { $0.tokens == end.tokens })?.tool else { return finish(end.reason) }
            return try arguments(of: chosen, calls, format, "")
        case .object(let after):
            keep(end)
            guard case .object(let members) = try parsed(String(end.text.dropLast(after.count))) else {
                return finish(.endOfTurn)
            }
            calls.members = members
            return try afterArguments(&calls, format, writtenText: after)
        case .argument(let choices):
            guard let chosen = choices.first(where: { $0.tokens == end.tokens }), let property = chosen.property else {
                // The ending is part of the text after the arguments.
                return try afterArguments(&calls, format)
            }
            keep(end)
            calls.open.removeFirst((calls.open.firstIndex { $0.name == property.name } ?? -1) + 1)
            return try value(property, &calls, format)
        case .value(let property, let isText, let choices):
            keep(end)
            if !isText {
                calls.members.append(.init(property.name, try parsed(end.text)))
                write(format.arguments.closing)
            } else if let choice = choices.first(where: { $0.tokens == end.tokens }) {
                calls.members.append(.init(property.name, .string(choice.text)))
            } else {
                calls.members.append(.init(property.name, .string(end.text)))
                write(format.arguments.afterText)
            }
            return calls.open.isEmpty ? try afterArguments(&calls, format) : argument(&calls, format)
        case .separator(let next):
            keep(end)
            guard end.tokens == next else { return finish(.endOfTurn) }
            return name(calls, format, "")
        case .trigger:
            if let tool = tools.first(where: { $0.name == end.calledTool }) {
                // The white space before it belongs to what the format replaces.
                write((format.beforeName.hasPrefix("\n") ? "\n" : "") + format.trigger)
                return try arguments(of: tool, calls, format, format.beforeName)
            }
            guard isTrigger(end, format) else { return finish(.endOfTurn) }
            keep(end)
            write(format.trigger)
            return name(calls, format, format.beforeName)
        }
    }

    /// The argument that was being written when there was no more room.
    func argument(in part: CallPart, _ end: PhaseEnd) -> String? {
        switch part {
        case .value(let property, _, _): property.name
        case .object: DocumentCursor.member(at: end.shortenedAt ?? .max, of: end.text)
        default: nil
        }
    }

    func parsed(_ text: String) throws -> JSONValue {
        do { return try JSONParser.parse(text.trimmingCharacters(in: .whitespaces)) } catch {
            throw GenerationFailure.grammarTooComplex  // the grammar has been abandoned
        }
    }

    // MARK: - After a call

    /// - Parameter writtenText: the beginning of the text after the arguments that the turn has already.
    mutating func afterArguments(
        _ calls: inout CallState, _ format: ToolFormat, writtenText: String = ""
    ) throws -> TurnStep {
        guard let tool = calls.tool else { return finish(.endOfTurn) }
        write(marked(String(format.afterArguments.dropFirst(writtenText.count)), calls))
        let call = ChatToolCall(id: calls.identifier, name: tool.name, arguments: .object(calls.members))
        // A repeated call indicates that the model has no further calls to make.
        if !chat.tools.repeatable.contains(call.name),
            (chat.tools.madeCalls + calls.calls).contains(where: {
                $0.name == call.name && $0.arguments.isEqual(to: call.arguments)
            })
        {
            return leaveOutCall(calls)
        }
        report(call)
        calls.calls.append(call)
        calls.tool = nil
        guard format.allowsSeveral, calls.calls.count < chat.tools.maximumCalls, !hasReachedLimit else {
            return finish(.endOfTurn)
        }
        if let between = format.betweenCalls {
            // The list either continues or ends; nothing else can follow.
            let next = vocabulary.encode(between)
            state = .call(calls, .separator(next: next))
            return step(callPhase(.choice([next, vocabulary.encode(format.end)])))
        }
        // After a call a turn goes on with another call or ends. White space may come before the next trigger; the first token of
        // anything else ends the turn and is not part of it, like the token of an end of turn.
        var phase = callPhase(.free)
        phase.endsWithText = true
        callTriggers(format, in: &phase)
        let beginnings = [format.trigger] + phase.callableTools.map { ToolFormat.plainBeginning(of: $0) }
        let longest = Self.maximumSpaces + (beginnings.map { vocabulary.encodePlain($0).count }.max() ?? 0)
        phase.maximumTokens = min(longest, leftForCalls ?? .max)
        state = .call(calls, .trigger)
        return step(phase)
    }
}
