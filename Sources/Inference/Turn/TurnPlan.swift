internal import Foundation
internal import Grammar
internal import JSON

/// What happens next in a model's turn.
struct TurnStep {
    /// All tokens of the turn so far, which replace those that it had.
    var written: [TokenID]
    /// What the last phase made certain.
    var events: [TurnEvent] = []
    /// The next phase; nil if the turn ends, for `reason`.
    var phase: TurnPhase?
    var reason = StopReason.endOfTurn
}

/// The functions of a tokenizer that a plan needs.
struct TurnVocabulary: Sendable {
    /// The tokens of text in which control tokens count.
    var encode: @Sendable (String) -> [TokenID]
    /// The tokens of text in which they do not.
    var encodePlain: @Sendable (String) -> [TokenID]
    /// The control token with a name.
    var specialToken: @Sendable (String) -> TokenID?
}

extension TurnVocabulary {
    init(_ tokenizer: Tokenizer) {
        encode = { tokenizer.encode([.template($0)]) }
        encodePlain = { tokenizer.encode([.user($0)]) }
        specialToken = { tokenizer.vocabulary.specialToken(named: $0) }
    }
}

/// The tools of a turn.
package struct TurnTools: Sendable {
    /// The tools that may be called in this turn; calls of all others are prevented.
    package var callable: [ChatTool] = []
    /// Whether the prompt describes tools, callable in this turn or not.
    package var areInPrompt = false
    /// Whether the model must call a tool.
    package var mustCall = false
    /// Whether the turn has calls only: it ends where the model begins an answer.
    package var onlyCalls = false
    /// The names of tools that may be called again with the same arguments.
    package var repeatable: Set<String> = []
    /// Calls that have been made for the same prompt, which are not made again.
    package var madeCalls: [ChatToolCall] = []

    package init() {}
}

/// What a turn in the chat format of a model may contain besides the answer.
struct ChatTurn: Sendable {
    var tools = TurnTools()
    var toolFormat: ToolFormat?
    var thinkingFormat: ThinkingFormat?
    /// See ``ModelDefaults``.
    var minimumOptionalArgumentLogOdds: Double?
    var minimumNextCallLogOdds: Double?
    var minimumCallProbability: Double?
    /// The context size, for errors.
    var contextSize = 0
    /// The grammar of all arguments of a tool, or of one of them, compiled when a call needs it.
    var grammar: @Sendable (ChatTool, ChatTool.Property?) throws -> Grammar? = { _, _ in nil }
}

/// Decides what follows each phase of a turn: reasoning, the answer, calls of tools in the format that the model was trained
/// for.
///
/// A value without I/O: it is told how a phase ended and says which phase is next. Text is unconstrained until the model
/// begins a call. From there on each part is constrained: the name of one of the tools, arguments that the tool's schema
/// accepts, and the delimiters between them.
struct TurnPlan {
    private enum State {
        case thought
        /// Whether the model begins a call before a guided answer.
        case decision
        case answer
        case call(CallState, CallPart)
    }

    /// The part of a call that is being generated.
    private enum CallPart {
        case name([ChatTool])
        /// All arguments, as a JSON object.
        case object
        /// Whether an optional argument was mentioned by the user.
        case mention(JSONValue.Member)
        /// Which argument is next.
        case argument([(property: ChatTool.Property?, tokens: [TokenID])])
        /// The value of an argument.
        case value(ChatTool.Property, isText: Bool, choices: [(text: String, tokens: [TokenID])])
        /// Whether another call follows: by comparison, by the separator of calls, or by another trigger.
        case comparison
        case separator(next: [TokenID])
        case trigger
    }

    /// The calls of a turn.
    private struct CallState {
        var calls: [ChatToolCall] = []
        /// The number of tokens before the trigger of the first call.
        var start: Int
        /// Whether the model began that call as JSON, without the trigger.
        var isPlain: Bool

        // The current call.
        var tool: ChatTool?
        var identifier = ""
        var argumentsStart = 0
        var members: [JSONValue.Member] = []
        /// Arguments that have not been written yet, in formats that write them separately.
        var open: [ChatTool.Property] = []
        /// Arguments of which it has not been decided whether the user mentioned them, and the tokens of all.
        var undecided: [JSONValue.Member] = []
        var allMembers: [TokenID] = []
        var memberCount = 0
    }

    private let request: GenerationRequest
    private let chat: ChatTurn
    private let vocabulary: TurnVocabulary
    private let makeIdentifier: @Sendable () -> String
    private var state = State.answer
    private var written: [TokenID] = []
    private var events: [TurnEvent] = []
    private var generatedTokens = 0
    private var hasThought = false
    private var tools: [ChatTool] { chat.tools.callable }

    /// The maximum number of calls in one turn.
    private static let maximumCalls = 8
    /// The maximum number of tokens of white space between two calls.
    private static let maximumSpaces = 4

    init(
        _ request: GenerationRequest, _ chat: ChatTurn = ChatTurn(), _ vocabulary: TurnVocabulary,
        makeIdentifier: @escaping @Sendable () -> String = ToolFormat.identifier
    ) {
        self.request = request
        self.chat = chat
        self.vocabulary = vocabulary
        self.makeIdentifier = makeIdentifier
    }

    /// The first phase of the turn.
    mutating func begin() -> TurnStep {
        if let thinking = chat.thinkingFormat, isInside(thinking) { return thought(thinking) }
        return requiredCall() ?? answer()
    }

    /// The first step of a call that must be made; nil if none must.
    private mutating func requiredCall() -> TurnStep? {
        guard chat.tools.mustCall, let format = chat.toolFormat, !tools.isEmpty else { return nil }
        let start = written.count
        write(format.trigger)
        return name(CallState(start: start, isPlain: false), format, format.beforeName)
    }

    /// The step after a phase.
    ///
    /// - Throws: ``GenerationFailure/argumentTooLong(tool:argument:contextSize:)``, or ``SchemaError`` of a tool's arguments.
    mutating func next(after end: PhaseEnd) throws -> TurnStep {
        generatedTokens = end.generatedTokens
        switch state {
        case .thought:
            written += end.tokens
            // An answer follows the reasoning also where the model ends its turn instead of the reasoning, or never ends it.
            guard [.stopString, .endOfTurn, .loop].contains(end.reason), let thinking = chat.thinkingFormat else {
                return finish(end.reason)
            }
            written += vocabulary.encode(thinking.close)
            hasThought = true
            return requiredCall() ?? answer()
        case .decision:
            if let call = try call(end) { return call }
            return chat.tools.onlyCalls ? finish(.endOfTurn) : constrainedAnswer()
        case .answer: return try afterAnswer(end)
        case .call(var calls, let part):
            guard let format = chat.toolFormat else { return finish(end.reason) }
            return try next(after: part, end, &calls, format)
        }
    }

    /// The error if a phase cannot begin because its shortest text does not fit.
    func failure(needed: Int, available: Int) -> GenerationFailure {
        guard case .call(let calls, let part) = state, let tool = calls.tool else {
            return .budgetTooSmall(needed: needed, available: available)
        }
        var argument: String?
        if case .value(let property, _, _) = part { argument = property.name }
        return .argumentTooLong(tool: tool.name, argument: argument, contextSize: chat.contextSize)
    }

    // MARK: - Steps

    private mutating func step(_ phase: TurnPhase?, _ reason: StopReason = .endOfTurn) -> TurnStep {
        defer { events = [] }
        return TurnStep(written: written, events: events, phase: phase, reason: reason)
    }

    private mutating func finish(_ reason: StopReason) -> TurnStep { step(nil, reason) }

    private mutating func write(_ text: String) { if !text.isEmpty { written += vocabulary.encode(text) } }

    /// The rest of the request's limit, which applies to reasoning and answer.
    private var left: Int? { request.maximumTokens.map { hasThought ? max(1, $0 - generatedTokens) : $0 } }

    // MARK: - Reasoning and answer

    /// Whether the prompt ends with the opening delimiter of reasoning, and white space.
    private func isInside(_ format: ThinkingFormat) -> Bool {
        let open = vocabulary.encode(format.open.trimmingCharacters(in: .whitespacesAndNewlines))
        // Line breaks may follow it, each a token or two in one.
        let spaces = Set(["\n", "\n\n", " "].flatMap { vocabulary.encode($0) })
        let tail = request.tokens.suffix(open.count + 2)
        return (0...2).contains { count in
            tail.dropLast(count).suffix(open.count).elementsEqual(open) && tail.suffix(count).allSatisfy(spaces.contains)
        }
    }

    private mutating func thought(_ format: ThinkingFormat) -> TurnStep {
        state = .thought
        var phase = TurnPhase(kind: .free, output: .thought)
        phase.maximumTokens = request.maximumTokens
        phase.trimsStart = true
        phase.detectsLoops = request.detectsLoops
        let close = vocabulary.encode(format.close)
        if close.count == 1 { phase.stopTokens = Set(close) } else { phase.stopStrings = [format.close] }
        return step(phase)
    }

    private mutating func answer() -> TurnStep {
        let format = tools.isEmpty ? nil : chat.toolFormat
        if request.grammar != nil, format == nil { return constrainedAnswer() }
        var phase = TurnPhase(kind: .free)
        phase.maximumTokens = left
        phase.stopStrings = request.stopStrings
        phase.stopTokens = request.stopTokens
        phase.bannedTokens = request.bannedTokens
        // Where a turn has calls only, the model may make none.
        if !chat.tools.onlyCalls { phase.bannedFirstTokens = request.bannedFirstTokens }
        phase.detectsLoops = request.detectsLoops
        // Line breaks between the reasoning and the answer belong to neither.
        phase.trimsStart = hasThought
        if let format {
            callTriggers(format, in: &phase)
            if !chat.tools.onlyCalls, request.grammar == nil, let minimum = chat.minimumCallProbability {
                let fences = firstTokens(ToolFormat.fences)
                phase.callTokens = (callTokens(format).union(fences).sorted(), fences, minimum)
            }
        } else if let format = chat.toolFormat, chat.tools.areInPrompt {
            // Tools that must not be called now must not be called in the answer text either.
            if let token = vocabulary.specialToken(format.trigger) { phase.bannedTokens.append(token) }
        }
        if request.grammar != nil || chat.tools.onlyCalls {
            state = .decision
            phase.output = .call
            phase.endsWithText = true
            return step(phase)
        }
        state = .answer
        // The model decides whether it begins with reasoning.
        if !hasThought, let thinking = chat.thinkingFormat {
            let open = vocabulary.encode(thinking.open.trimmingCharacters(in: .whitespacesAndNewlines))
            if open.count == 1 { phase.firstStopToken = open.first }
        }
        return step(phase)
    }

    /// Makes a phase end where the model begins a call: at a special token anywhere, at text only at the beginning, because an
    /// answer may contain any text.
    private func callTriggers(_ format: ToolFormat, in phase: inout TurnPhase) {
        if let token = vocabulary.specialToken(format.trigger) {
            phase.stopTokens.insert(token)
        } else if format.isHeader {
            phase.stopStrings.append(format.trigger)
        } else if !format.beginsAsJSON {
            phase.openings.append(format.trigger)
        }
        if format.arguments == .json { phase.callableTools = tools.map(\.name) }
    }

    /// The tokens with which calls begin, in the trained format or as JSON.
    private func callTokens(_ format: ToolFormat) -> Set<TokenID> {
        let special = vocabulary.specialToken(format.trigger).map { [$0] } ?? []
        return firstTokens([format.trigger] + ToolFormat.plainOpenings).union(special)
    }

    private func firstTokens(_ texts: [String]) -> Set<TokenID> { Set(texts.compactMap { vocabulary.encodePlain($0).first }) }

    private mutating func constrainedAnswer() -> TurnStep {
        state = .answer
        var phase = TurnPhase(kind: request.grammar.map { .constrained($0) } ?? .free)
        phase.maximumTokens = left
        phase.stopStrings = request.stopStrings
        phase.detectsLoops = request.detectsLoops
        return step(phase)
    }

    private mutating func afterAnswer(_ end: PhaseEnd) throws -> TurnStep {
        written += end.tokens
        if end.wantsCall || end.calledTool != nil { return try call(end) ?? finish(end.reason) }
        guard end.reason == .stopString else { return finish(end.reason) }
        if let thinking = chat.thinkingFormat, let token = end.stopToken, end.tokens.isEmpty, !hasThought,
            vocabulary.encode(thinking.open.trimmingCharacters(in: .whitespacesAndNewlines)) == [token]
        {
            written.append(token)
            return thought(thinking)
        }
        return try call(end) ?? finish(.stopString)
    }

    /// The first step of the call that a text ended with; nil if it ended in another way.
    private mutating func call(_ end: PhaseEnd) throws -> TurnStep? {
        guard let format = chat.toolFormat, !tools.isEmpty else { return nil }
        if let tool = tools.first(where: { $0.name == end.calledTool }) {
            // The call continues in the trained format.
            let calls = CallState(start: written.count, isPlain: true)
            write(format.trigger)
            return try arguments(of: tool, calls, format, format.beforeName)
        }
        guard end.wantsCall || isTrigger(end, format) else { return nil }
        let calls = CallState(start: written.count, isPlain: end.wantsCall)
        write(format.trigger)
        return self.name(calls, format, format.beforeName)
    }

    private func isTrigger(_ end: PhaseEnd, _ format: ToolFormat) -> Bool {
        if let text = end.stopString, text == format.trigger || text == String(format.trigger.drop(while: \.isWhitespace)) {
            return true
        }
        return end.stopToken.map { $0 == vocabulary.specialToken(format.trigger) } ?? false
    }

    // MARK: - Calls

    private func callPhase(_ kind: TurnPhase.Kind) -> TurnPhase {
        // Calls with other arguments than the model wrote must not be made: an endless one fills the context, which is an error.
        TurnPhase(kind: kind, output: .call)
    }

    /// The name of the next call.
    private mutating func name(_ calls: CallState, _ format: ToolFormat, _ before: String) -> TurnStep {
        write(before)
        // One name may begin like another one: the text after it tells them apart.
        let after = format.afterName.prefix { String($0) != ToolFormat.identifierMark }
        let options = tools.map { vocabulary.encode($0.name + after) }
        state = .call(calls, .name(tools))
        return step(callPhase(.choice(options)))
    }

    /// The arguments of a call of a tool whose name has not been written.
    private mutating func arguments(
        of tool: ChatTool, _ calls: CallState, _ format: ToolFormat, _ before: String
    ) throws -> TurnStep {
        var calls = calls
        calls.identifier = makeIdentifier()
        calls.tool = tool
        calls.members = []
        write(before)
        write(tool.name + marked(format.afterName, calls))
        calls.argumentsStart = written.count
        if case .json = format.arguments {
            guard let grammar = try chat.grammar(tool, nil) else { return finish(.endOfTurn) }
            state = .call(calls, .object)
            return step(callPhase(.constrained(grammar)))
        }
        calls.open = tool.properties
        return argument(&calls, format)
    }

    private func marked(_ text: String, _ calls: CallState) -> String {
        text.replacing(ToolFormat.identifierMark, with: calls.identifier)
    }

    private mutating func next(
        after part: CallPart, _ end: PhaseEnd, _ calls: inout CallState, _ format: ToolFormat
    ) throws -> TurnStep {
        if end.reason == .grammarLimit { throw GenerationFailure.grammarTooComplex }
        if end.reason == .contextFull || end.shortenedAt != nil {
            if let tool = calls.tool {
                throw GenerationFailure.argumentTooLong(
                    tool: tool.name, argument: argument(in: part, end), contextSize: chat.contextSize)
            }
            // The calls that are complete are made.
            return finish(calls.calls.isEmpty ? .contextFull : .endOfTurn)
        }
        switch part {
        case .name(let tools):
            let chosen = tools.first { tool in
                vocabulary.encode(tool.name + format.afterName.prefix { String($0) != ToolFormat.identifierMark }) == end.tokens
            }
            guard let chosen else { return finish(end.reason) }
            return try arguments(of: chosen, calls, format, "")
        case .object:
            written += end.tokens
            guard case .object(let members) = try parsed(end.text), let tool = calls.tool else { return finish(.endOfTurn) }
            guard chat.minimumOptionalArgumentLogOdds != nil, !tool.droppableArguments.isDisjoint(with: members.map(\.name))
            else {
                calls.members = members
                return try afterArguments(&calls, format)
            }
            calls.undecided = members
            calls.memberCount = members.count
            calls.allMembers = end.tokens
            return try mention(&calls, format)
        case .mention(let member):
            if end.logOdds >= chat.minimumOptionalArgumentLogOdds ?? -.infinity { calls.members.append(member) }
            return try mention(&calls, format)
        case .argument(let choices):
            guard let chosen = choices.first(where: { $0.tokens == end.tokens }), let property = chosen.property else {
                // The ending is part of the text after the arguments.
                return try afterArguments(&calls, format)
            }
            written += end.tokens
            calls.open.removeFirst((calls.open.firstIndex { $0.name == property.name } ?? -1) + 1)
            return try value(property, &calls, format)
        case .value(let property, let isText, let choices):
            written += end.tokens
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
        case .comparison:
            written = afterCalls
            guard end.logOdds > chat.minimumNextCallLogOdds ?? 0 else { return finish(.endOfTurn) }
            write("\n" + format.trigger)
            return name(calls, format, format.beforeName)
        case .separator(let next):
            written += end.tokens
            guard end.tokens == next else { return finish(.endOfTurn) }
            return name(calls, format, "")
        case .trigger:
            guard isTrigger(end, format) else { return finish(.endOfTurn) }
            written += end.tokens
            write(format.trigger)
            return name(calls, format, format.beforeName)
        }
    }

    /// The argument that was being written when there was no more room.
    private func argument(in part: CallPart, _ end: PhaseEnd) -> String? {
        switch part {
        case .value(let property, _, _): property.name
        case .object: DocumentCursor.member(at: end.shortenedAt ?? .max, of: end.text)
        default: nil
        }
    }

    // MARK: - Arguments

    /// Asks whether the user mentioned the next optional argument.
    ///
    /// Small models fill in all arguments of a tool. Their probabilities still distinguish them: the odds of an argument
    /// that the user mentioned, versus the end of the list, are far higher.
    private mutating func mention(_ calls: inout CallState, _ format: ToolFormat) throws -> TurnStep {
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
            written = Array(written[..<calls.argumentsStart] + a[..<common])
            state = .call(calls, .mention(member))
            return step(callPhase(.comparison(a[common], against: b[common])))
        }
        written.removeLast(written.count - calls.argumentsStart)
        written +=
            calls.members.count == calls.memberCount
            ? calls.allMembers : vocabulary.encodePlain(" " + JSONValue.object(calls.members).spacedText)
        return try afterArguments(&calls, format)
    }

    /// The next argument, for formats that write arguments separately.
    ///
    /// Required arguments come in declaration order; before each, the model may write optional arguments declared before it.
    private mutating func argument(_ calls: inout CallState, _ format: ToolFormat) -> TurnStep {
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

    private mutating func value(
        _ property: ChatTool.Property, _ calls: inout CallState, _ format: ToolFormat
    ) throws -> TurnStep {
        let style = format.arguments
        if !property.isText || style == .python {
            guard let tool = calls.tool, let grammar = try chat.grammar(tool, property) else {
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

    private func parsed(_ text: String) throws -> JSONValue {
        do { return try JSONParser.parse(text.trimmingCharacters(in: .whitespaces)) } catch {
            throw GenerationFailure.grammarTooComplex  // the grammar has been abandoned
        }
    }

    // MARK: - After a call

    /// The tokens of the turn up to the end of the last call.
    private var afterCalls: [TokenID] = []

    private mutating func afterArguments(_ calls: inout CallState, _ format: ToolFormat) throws -> TurnStep {
        guard let tool = calls.tool else { return finish(.endOfTurn) }
        write(marked(format.afterArguments, calls))
        let call = ChatToolCall(id: calls.identifier, name: tool.name, arguments: .object(calls.members))
        // A repeated call indicates that the model has no further calls to make.
        if !chat.tools.repeatable.contains(call.name),
            (chat.tools.madeCalls + calls.calls).contains(where: {
                $0.name == call.name && $0.arguments.isEqual(to: call.arguments)
            })
        {
            return finish(.endOfTurn)
        }
        events.append(.call(call))
        calls.calls.append(call)
        calls.tool = nil
        guard format.allowsSeveral, calls.calls.count < Self.maximumCalls else { return finish(.endOfTurn) }
        if let between = format.betweenCalls {
            // The list either continues or ends; nothing else can follow.
            let next = vocabulary.encode(between)
            state = .call(calls, .separator(next: next))
            return step(callPhase(.choice([next, vocabulary.encode(format.end)])))
        }
        if calls.isPlain, chat.minimumNextCallLogOdds != nil { return comparison(calls, format) }
        // After a call a turn goes on with another call or ends. White space may come before the next trigger; the first token of
        // anything else ends the turn and is not part of it, like the token of an end of turn.
        var phase = callPhase(.free)
        phase.maximumTokens = Self.maximumSpaces + vocabulary.encodePlain(format.trigger).count
        phase.endsWithText = true
        callTriggers(format, in: &phase)
        phase.callableTools = []
        state = .call(calls, .trigger)
        return step(phase)
    }

    /// Compares another call with the end of the calls, for a model that writes calls as a block of JSON: one more object
    /// versus the end of the block.
    ///
    /// Such models seldom generate the second call by themselves, but its odds are far higher where another call is
    /// needed.
    private mutating func comparison(_ calls: CallState, _ format: ToolFormat) -> TurnStep {
        afterCalls = written
        let objects = calls.calls.map { call in
            JSONValue.object([.init("name", .string(call.name)), .init("arguments", call.arguments)]).prettyText + "\n"
        }
        let block = "```json\n" + objects.joined()
        let (a, b) = (vocabulary.encodePlain(block + "{"), vocabulary.encodePlain(block + "```"))
        let common = zip(a, b).prefix { $0 == $1 }.count
        guard common < a.count, common < b.count else { return finish(.endOfTurn) }
        written = Array(written[..<calls.start] + a[..<common])
        state = .call(calls, .comparison)
        return step(callPhase(.comparison(a[common], against: b[common])))
    }
}
