import Grammar
import JSON
import Synchronization
import Testing

@testable import Inference

// MARK: - Support

/// A vocabulary of bytes and some control tokens.
private enum Bytes {
    static let names = [
        "<tool_call>", "<think>", "</think>", "<|tool_call>", "<tool_call|>", "<|\"|>", "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]",
        "<|tool_call_start|>", "<|tool_call_end|>",
    ]

    static let request = GenerationRequest(tokens: plain("Hi"), sampling: .greedy, maximumTokens: 50)

    static let vocabulary = TurnVocabulary(
        encode: { Bytes.encode($0) }, encodePlain: { Bytes.plain($0) }, specialToken: { Bytes.special($0) })

    /// The same for grammars, in which the token 256 ends a document.
    static let grammarVocabulary = TokenVocabulary(
        texts: (UInt8.min...UInt8.max).map { [$0] } + [nil], endTokens: [256])

    static func special(_ name: String) -> TokenID? { names.firstIndex(of: name).map { TokenID(300 + $0) } }

    static func plain(_ text: String) -> [TokenID] { text.utf8.map { TokenID($0) } }

    static func encode(_ text: String) -> [TokenID] {
        var tokens: [TokenID] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.first {
            let name = names.first { rest.starts(with: $0.utf8) }
            tokens.append(name.flatMap { special($0) } ?? TokenID(byte))
            rest = rest.dropFirst(name?.utf8.count ?? 1)
        }
        return tokens
    }

    static func text(_ tokens: [TokenID]) -> String {
        let bytes = tokens.flatMap { token -> [UInt8] in
            if let byte = UInt8(exactly: token) { return [byte] }
            let index = Int(token) - 300
            return Array((names.indices.contains(index) ? names[index] : "?").utf8)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The parts of chat templates by which their formats are recognised.
private enum Template {
    static let hermes = "tools <tool_call>"
    static let tagged = "tools <function="
    static let marked = "tools <|tool_call>"
    static let mistral = "tools [TOOL_CALLS] [CALL_ID] [ARGS]"
    static let list = "tools [TOOL_CALLS]"
    static let python = "tools <|tool_call_start|>"
    static let single = "tools python_tag"
}

private enum Tools {
    static func tool(_ name: String, _ parameters: String) throws -> ChatTool {
        ChatTool(name: name, description: "", parameters: try JSONParser.parse(parameters))
    }

    /// A tool with one required argument, between optional ones.
    static func weather() throws -> ChatTool {
        try tool(
            "get_weather",
            """
            {"type": "object", "required": ["place"], "additionalProperties": false, "properties": {
              "day": {"type": "string"}, "place": {"type": "string"},
              "units": {"type": "string", "enum": ["celsius", "fahrenheit"]}, "days": {"type": "integer"}}}
            """)
    }

    static func mail() throws -> ChatTool {
        try tool(
            "send_mail",
            """
            {"type": "object", "required": ["to"], "additionalProperties": false, "properties": {"to": {"type": "string"}}}
            """)
    }

    static func grammar(_ source: GrammarSource) throws -> Grammar {
        let options = GrammarOptions(isSpaced: true, allowsZeroFraction: false)
        return try Grammar(source, vocabulary: Bytes.grammarVocabulary, options: options)
    }

    /// A turn in the format of a template, with the grammars that a model gives it.
    static func chat(_ template: String, _ tools: [ChatTool]) throws -> ChatTurn {
        var chat = ChatTurn()
        let detected = ToolFormat(template: template) { _ in false }
        let format = try #require(detected)
        chat.toolFormat = format
        chat.tools.callable = tools
        chat.tools.areInPrompt = true
        chat.contextSize = 4_096
        for tool in tools {
            if format.arguments == .json {
                chat.grammars[ChatTurn.key(tool)] = try grammar(.framed(before: " ", schema: tool.parameters, after: ""))
                continue
            }
            for property in tool.properties where !property.isText || format.arguments == .python {
                let key = ChatTurn.key(tool, property)
                chat.grammars[key] = try grammar(.framed(before: "", schema: property.schema, after: ""))
            }
        }
        return chat
    }

    static func chat(_ template: String) throws -> ChatTurn { try chat(template, [try weather(), try mail()]) }
}

extension TurnPhase {
    fileprivate var isFree: Bool { if case .free = kind { true } else { false } }
    fileprivate var grammar: Grammar? { if case .constrained(let grammar) = kind { grammar } else { nil } }
    fileprivate var options: [String]? {
        if case .choice(let options) = kind { options.map { Bytes.text($0) } } else { nil }
    }
    fileprivate var compared: [String]? {
        if case .comparison(let one, let other) = kind { [Bytes.text([one]), Bytes.text([other])] } else { nil }
    }
}

/// A turn whose phases end as a test says.
private struct Turn {
    private(set) var plan: TurnPlan
    private(set) var step: TurnStep
    /// All calls so far.
    private(set) var calls: [ChatToolCall] = []

    init(
        _ request: GenerationRequest = Bytes.request, chat: ChatTurn = ChatTurn(),
        makeIdentifier: @escaping @Sendable () -> String = { "id" }
    ) {
        var plan = TurnPlan(request, chat, Bytes.vocabulary, makeIdentifier: makeIdentifier)
        step = plan.begin()
        self.plan = plan
    }

    mutating func ends(_ end: PhaseEnd) throws {
        step = try plan.next(after: end)
        calls += step.events.compactMap { event -> ChatToolCall? in if case .call(let call) = event { call } else { nil } }
    }

    /// The model writes text: up to a control token or a string that ends the phase, or else to the end of its turn.
    mutating func writes(_ text: String, until mark: String? = nil, location: SourceLocation = #_sourceLocation) throws {
        let phase = try #require(step.phase, sourceLocation: location)
        #expect(phase.isFree, sourceLocation: location)
        var end = PhaseEnd(reason: .endOfTurn, tokens: Bytes.plain(text), text: text)
        if let mark {
            end.reason = .stopString
            end.stopToken = Bytes.special(mark)
            if let token = end.stopToken {
                let isStop = phase.stopTokens.contains(token) || text.isEmpty && phase.firstStopToken == token
                #expect(isStop, "\(mark)", sourceLocation: location)
            } else {
                end.stopString = mark
                #expect(phase.stopStrings.contains(mark), sourceLocation: location)
            }
        }
        try ends(end)
    }

    /// The model chooses an option.
    mutating func chooses(_ text: String, location: SourceLocation = #_sourceLocation) throws {
        let options = try #require(step.phase?.options, sourceLocation: location)
        #expect(options.contains(text), sourceLocation: location)
        #expect(step.phase?.output == .call, sourceLocation: location)
        try ends(PhaseEnd(reason: .endOfTurn, tokens: Bytes.encode(text), text: text))
    }

    /// The model writes text that the grammar of the phase accepts.
    mutating func fills(_ text: String, tokens: [TokenID]? = nil, location: SourceLocation = #_sourceLocation) throws {
        let grammar = try #require(step.phase?.grammar, sourceLocation: location)
        var matcher = grammar.matcher()
        let isAccepted = matcher.advance(text.utf8) && matcher.isComplete
        #expect(isAccepted, "\(text)", sourceLocation: location)
        try ends(PhaseEnd(reason: .endOfTurn, tokens: tokens ?? Bytes.plain(text), text: text))
    }

    /// Two tokens are compared.
    mutating func compares(
        _ one: String, _ other: String, logOdds: Double, location: SourceLocation = #_sourceLocation
    ) throws {
        #expect(step.phase?.compared == [one, other], sourceLocation: location)
        #expect(step.phase?.output == .call, sourceLocation: location)
        try ends(PhaseEnd(reason: .endOfTurn, logOdds: logOdds))
    }

    /// Checks all tokens of the turn.
    func expectWritten(_ text: String, location: SourceLocation = #_sourceLocation) {
        #expect(Bytes.text(step.written) == text, sourceLocation: location)
        #expect(step.written == Bytes.encode(text), sourceLocation: location)
    }

    func expectEnd(_ reason: StopReason = .endOfTurn, location: SourceLocation = #_sourceLocation) {
        let hasEnded = step.phase == nil
        #expect(hasEnded, sourceLocation: location)
        #expect(step.reason == reason, sourceLocation: location)
    }
}

// MARK: - Turns

/// What follows each phase of a turn.
@Suite struct TurnPlanTests {
    // Parts of a call in the Hermes format: up to the name, the name, up to the arguments, all of it.
    private static let opening = "<tool_call>\n{\"name\": \""
    private static let named = #"get_weather", "arguments":"#
    private static let begun = opening + named

    private static func call(_ arguments: String) -> String { begun + arguments + "}\n</tool_call>" }

    /// A turn in which the model has begun a call of `get_weather` in the Hermes format.
    private func turnInArguments(_ change: (inout ChatTurn) -> Void = { _ in }) throws -> Turn {
        var chat = try Tools.chat(Template.hermes)
        change(&chat)
        var turn = Turn(chat: chat)
        try turn.writes("", until: "<tool_call>")
        try turn.chooses(Self.named)
        return turn
    }

    // MARK: Answers

    @Test(arguments: [StopReason.endOfTurn, .maximumTokens, .loop, .contextFull, .stopString])
    func text(reason: StopReason) throws {
        var request = Bytes.request
        request.stopStrings = ["END"]
        request.stopTokens = [7]
        request.bannedTokens = [8]
        request.bannedFirstTokens = [9]
        var turn = Turn(request)
        let phase = try #require(turn.step.phase)
        #expect(phase.isFree && phase.output == .answer)
        #expect(phase.maximumTokens == 50)
        #expect(phase.stopStrings == ["END"])
        #expect(phase.stopTokens == [7])
        #expect(phase.bannedTokens == [8])
        #expect(phase.bannedFirstTokens == [9])
        #expect(phase.detectsLoops && !phase.trimsStart && !phase.endsWithText)
        #expect(phase.callableTools.isEmpty && phase.callTokens?.tokens == nil && phase.firstStopToken == nil)
        turn.expectWritten("")
        try turn.ends(PhaseEnd(reason: reason, tokens: Bytes.plain("Hello")))
        turn.expectEnd(reason)
        turn.expectWritten("Hello")
        #expect(turn.calls.isEmpty)
    }

    @Test func stopStringsEndAnAnswerThatCouldHaveBeenACall() throws {
        var request = Bytes.request
        request.stopStrings = ["END"]
        var turn = Turn(request, chat: try Tools.chat(Template.hermes))
        try turn.writes("It is ", until: "END")
        turn.expectEnd(.stopString)
        turn.expectWritten("It is ")
    }

    @Test func toolsInThePromptThatMustNotBeCalled() throws {
        let trigger = try #require(Bytes.special("<tool_call>"))
        var request = Bytes.request
        request.bannedTokens = [8]
        request.bannedFirstTokens = [9]
        var chat = try Tools.chat(Template.hermes)
        chat.tools.callable = []
        let phase = try #require(Turn(request, chat: chat).step.phase)
        #expect(phase.bannedTokens == [8, trigger])
        #expect(phase.bannedFirstTokens == [9] + Bytes.plain("`{"))
        #expect(phase.stopStrings.isEmpty && phase.stopTokens.isEmpty && phase.callableTools.isEmpty)
        chat.tools.areInPrompt = false
        let other = try #require(Turn(request, chat: chat).step.phase)
        #expect(other.bannedTokens == [8])
        #expect(other.bannedFirstTokens == [9])
    }

    // MARK: Calls

    @Test func callAfterText() throws {
        let chat = try Tools.chat(Template.hermes)
        var turn = Turn(chat: chat)
        let first = try #require(turn.step.phase)
        #expect(first.output == .answer && !first.endsWithText && first.maximumTokens == 50)
        #expect(first.stopStrings.contains("<tool_call>") && first.stopStrings.contains(#"{"name": "send_mail""#))
        #expect(first.callableTools == ["get_weather", "send_mail"])
        #expect(!first.callsNamedTools && first.callTokens?.tokens == nil)
        try turn.writes("Sure. ", until: "<tool_call>")
        turn.expectWritten("Sure. " + Self.opening)
        #expect(turn.step.phase?.options == [Self.named, #"send_mail", "arguments":"#])
        try turn.chooses(Self.named)
        turn.expectWritten("Sure. " + Self.begun)
        let arguments = try #require(turn.step.phase)
        #expect(arguments.grammar === chat.grammars["get_weather"])
        #expect(arguments.output == .call)
        // The limit of the request is for the answer.
        #expect(arguments.maximumTokens == nil)
        #expect(turn.calls.isEmpty)
        try turn.fills(#" {"place": "Rome"}"#)
        turn.expectWritten("Sure. " + Self.call(#" {"place": "Rome"}"#))
        let call = ChatToolCall(id: "id", name: "get_weather", arguments: .object([.init("place", .string("Rome"))]))
        #expect(turn.calls == [call])
        let last = try #require(turn.step.phase)
        #expect(last.output == .call && last.maximumTokens == 4 && last.stopStrings == ["<tool_call>"])
        try turn.writes("")
        turn.expectEnd()
        turn.expectWritten("Sure. " + Self.call(#" {"place": "Rome"}"#))
        #expect(turn.calls == [call])
    }

    /// Vocabularies without a control token for it have the trigger as text.
    @Test func triggerInText() throws {
        var turn = Turn(chat: try Tools.chat(Template.hermes))
        try turn.ends(PhaseEnd(reason: .stopString, tokens: Bytes.plain("Sure. "), stopString: "<tool_call>"))
        turn.expectWritten("Sure. " + Self.opening)
        try turn.chooses(#"send_mail", "arguments":"#)
        try turn.fills(#" {"to": "a@b.c"}"#)
        #expect(turn.calls.map(\.name) == ["send_mail"])
    }

    @Test func callsThatBeginAsJSON() throws {
        let chat = try Tools.chat(Template.hermes)
        for end in [
            PhaseEnd(reason: .stopString, calledTool: "send_mail"),
            PhaseEnd(reason: .stopString, stopString: "```json\n{\"name\": \"send_mail\""),
        ] {
            var turn = Turn(chat: chat)
            try turn.ends(end)
            turn.expectWritten(#"<tool_call>\#n{"name": "send_mail", "arguments":"#)
            try turn.fills(#" {"to": "a@b.c"}"#)
            #expect(turn.calls.map(\.arguments.text) == [#"{"to":"a@b.c"}"#])
        }
        var other = Turn(chat: chat)
        try other.ends(PhaseEnd(reason: .stopString, calledTool: "read_mail"))
        other.expectEnd(.stopString)
    }

    @Test(arguments: [("Rome", 1), ("Vienna", 2)])
    func equalCallsAreNotRepeated(place: String, count: Int) throws {
        var turn = try turnInArguments()
        try turn.fills(#" {"place": "Rome"}"#)
        try turn.writes("\n", until: "<tool_call>")
        turn.expectWritten(Self.call(#" {"place": "Rome"}"#) + "\n" + Self.opening)
        try turn.chooses(Self.named)
        try turn.fills(#" {"place": "\#(place)"}"#)
        let calls = [#"{"place":"Rome"}"#, #"{"place":"Vienna"}"#].prefix(count)
        #expect(turn.calls.map(\.arguments.text) == Array(calls))
        if count == 1 { turn.expectEnd() } else { try turn.writes("") }
        turn.expectEnd()
    }

    @Test(arguments: [("Rome", 0), ("Vienna", 1)])
    func callsThatWereMadeBeforeAreNotRepeated(place: String, count: Int) throws {
        let made = ChatToolCall(id: "0", name: "get_weather", arguments: .object([.init("place", .string("Rome"))]))
        var turn = try turnInArguments { $0.tools.madeCalls = [made] }
        try turn.fills(#" {"place": "\#(place)"}"#)
        #expect(turn.calls.count == count)
        if count == 0 { turn.expectEnd() } else { #expect(turn.step.phase?.isFree == true) }
    }

    @Test func aTurnHasEightCallsAtMost() throws {
        var turn = try turnInArguments()
        for index in 1..<8 {
            try turn.fills(#" {"place": "\#(index)"}"#)
            try turn.writes("", until: "<tool_call>")
            try turn.chooses(Self.named)
        }
        try turn.fills(#" {"place": "8"}"#)
        turn.expectEnd()
        #expect(turn.calls.count == 8)
    }

    @Test func onlyCalls() throws {
        var chat = try Tools.chat(Template.hermes)
        chat.tools.onlyCalls = true
        chat.minimumCallProbability = 0.2
        var turn = Turn(chat: chat)
        let phase = try #require(turn.step.phase)
        #expect(phase.isFree && phase.output == .call && phase.endsWithText)
        #expect(phase.callTokens?.tokens == nil && !phase.callsNamedTools)
        try turn.writes("Hello")
        turn.expectEnd()
        turn.expectWritten("")

        var calling = Turn(chat: chat)
        try calling.writes("\n", until: "<tool_call>")
        calling.expectWritten(Self.opening)
        try calling.chooses(Self.named)
        try calling.fills(#" {"place": "Rome"}"#)
        #expect(calling.calls.count == 1)
    }

    @Test func requiredCall() throws {
        var chat = try Tools.chat(Template.hermes)
        chat.tools.mustCall = true
        let turn = Turn(chat: chat)
        turn.expectWritten(Self.opening)
        #expect(turn.step.phase?.options == [Self.named, #"send_mail", "arguments":"#])
        chat.tools.callable = []
        let other = Turn(chat: chat)
        other.expectWritten("")
        #expect(other.step.phase?.output == .answer)
    }

    @Test func improbableAnswersBecomeCalls() throws {
        let trigger = try #require(Bytes.special("<tool_call>"))
        var chat = try Tools.chat(Template.hermes)
        chat.minimumCallProbability = 0.2
        chat.minimumNextCallLogOdds = 0
        var turn = Turn(chat: chat)
        let phase = try #require(turn.step.phase)
        let tokens = phase.callTokens?.tokens ?? []
        #expect(Set(tokens).isSuperset(of: Bytes.plain("{`") + [trigger]) && tokens == tokens.sorted())
        #expect(phase.callTokens?.minimum == 0.2)
        // A block of code may be an answer.
        #expect(phase.callTokens?.fences == Set(Bytes.plain("`")))
        #expect(phase.callsNamedTools)
        try turn.ends(PhaseEnd(reason: .endOfTurn, wantsCall: true))
        turn.expectWritten(Self.opening)
        try turn.chooses(Self.named)
        try turn.fills(#" {"place": "Rome"}"#)
        #expect(turn.calls.count == 1)
        // The model did not write the trigger, so it would not write the next one either.
        try turn.compares("{", "`", logOdds: -1)
        turn.expectEnd()
    }

    /// A choice ends with the first complete option, so none may begin another one.
    @Test(arguments: [
        Template.hermes, Template.tagged, Template.marked, Template.mistral, Template.list, Template.python, Template.single,
    ])
    func namesThatBeginOtherNames(template: String) throws {
        let nothing = #"{"type": "object", "properties": {}}"#
        var chat = try Tools.chat(template, ["get", "get_all", "get_all_names"].map { try Tools.tool($0, nothing) })
        chat.tools.mustCall = true
        guard case .choice(let options)? = Turn(chat: chat).step.phase?.kind else {
            Issue.record("there is no choice")
            return
        }
        #expect(options.count == 3)
        for option in options { #expect(options.filter { option.starts(with: $0) } == [option]) }
    }

    // MARK: Reasoning

    @Test(arguments: ["<think>", "<think>\n", "<think>\n\n"])
    func reasoningThatThePromptBegins(ending: String) throws {
        let close = try #require(Bytes.special("</think>"))
        var request = Bytes.request
        request.tokens = Bytes.encode("Why?" + ending)
        var chat = ChatTurn()
        chat.thinkingFormat = ThinkingFormat(template: "<think>")
        var turn = Turn(request, chat: chat)
        let thought = try #require(turn.step.phase)
        #expect(thought.isFree && thought.output == .thought)
        #expect(thought.trimsStart && thought.detectsLoops && thought.maximumTokens == 50)
        #expect(thought.stopTokens == [close])
        turn.expectWritten("")

        var long = turn
        try long.ends(PhaseEnd(reason: .maximumTokens, tokens: Bytes.plain("Hm"), generatedTokens: 50))
        long.expectEnd(.maximumTokens)
        long.expectWritten("Hm")

        var longer = turn
        try longer.ends(PhaseEnd(reason: .stopString, stopToken: close, generatedTokens: 60))
        #expect(longer.step.phase?.maximumTokens == 1)

        try turn.ends(PhaseEnd(reason: .stopString, tokens: Bytes.plain("Hm"), stopToken: close, generatedTokens: 20))
        turn.expectWritten("Hm</think>")
        let answer = try #require(turn.step.phase)
        #expect(answer.isFree && answer.output == .answer && answer.trimsStart)
        #expect(answer.maximumTokens == 30)
        #expect(answer.firstStopToken == nil)
        try turn.writes("Yes")
        turn.expectEnd()
        turn.expectWritten("Hm</think>Yes")
    }

    @Test func reasoningThatTheModelBegins() throws {
        var chat = try Tools.chat(Template.hermes)
        chat.thinkingFormat = ThinkingFormat(template: "<think>")
        var turn = Turn(chat: chat)
        #expect(turn.step.phase?.output == .answer)
        try turn.writes("", until: "<think>")
        turn.expectWritten("<think>")
        #expect(turn.step.phase?.output == .thought)
        try turn.writes("Hm", until: "</think>")
        turn.expectWritten("<think>Hm</think>")
        #expect(turn.step.phase?.output == .answer && turn.step.phase?.firstStopToken == nil)
        try turn.writes("\n", until: "<tool_call>")
        turn.expectWritten("<think>Hm</think>\n" + Self.opening)
        try turn.chooses(Self.named)
    }

    @Test func reasoningBetweenMarksOfSeveralTokens() throws {
        var request = Bytes.request
        request.tokens = Bytes.plain("Why?[THINK]")
        var chat = ChatTurn()
        chat.thinkingFormat = ThinkingFormat(template: "[THINK]")
        var turn = Turn(request, chat: chat)
        #expect(turn.step.phase?.output == .thought)
        try turn.writes("Hm", until: "[/THINK]")
        turn.expectWritten("Hm[/THINK]")
        #expect(turn.step.phase?.output == .answer)
        // Where the model decides, it can only do so with one token.
        #expect(Turn(chat: chat).step.phase?.firstStopToken == nil)
    }

    @Test(arguments: ["", "<think>\n\n</think>\n\n", "<think></think>", "<think></think>\n"])
    func reasoningThatThePromptEnds(ending: String) throws {
        var request = Bytes.request
        request.tokens = Bytes.encode("Why?" + ending)
        var chat = ChatTurn()
        chat.thinkingFormat = ThinkingFormat(template: "<think>")
        #expect(Turn(request, chat: chat).step.phase?.output == .answer)
    }

    @Test func requiredCallAfterReasoning() throws {
        var request = Bytes.request
        request.tokens = Bytes.encode("Why?<think>\n")
        var chat = try Tools.chat(Template.hermes)
        chat.thinkingFormat = ThinkingFormat(template: "<think>")
        chat.tools.mustCall = true
        var turn = Turn(request, chat: chat)
        #expect(turn.step.phase?.output == .thought)
        try turn.writes("Hm", until: "</think>")
        turn.expectWritten("Hm</think>" + Self.opening)
        #expect(turn.step.phase?.options == [Self.named, #"send_mail", "arguments":"#])
    }

    // MARK: Guided answers

    private func guided() throws -> (request: GenerationRequest, grammar: Grammar) {
        let grammar = try Tools.grammar(.schema(try JSONParser.parse(#"{"type": "integer"}"#)))
        var request = Bytes.request
        request.grammar = grammar
        request.stopStrings = ["9"]
        return (request, grammar)
    }

    @Test func guidedAnswer() throws {
        let (request, grammar) = try guided()
        var turn = Turn(request)
        let phase = try #require(turn.step.phase)
        #expect(phase.grammar === grammar)
        #expect(phase.output == .answer && phase.maximumTokens == 50 && phase.stopStrings == ["9"])
        #expect(turn.plan.failure(needed: 9, available: 2) == .budgetTooSmall(needed: 9, available: 2))
        try turn.fills("42")
        turn.expectEnd()
        turn.expectWritten("42")
    }

    /// The model first decides whether it calls a tool.
    @Test func guidedAnswerWithTools() throws {
        let (request, grammar) = try guided()
        let chat = try Tools.chat(Template.hermes)
        var turn = Turn(request, chat: chat)
        let decision = try #require(turn.step.phase)
        #expect(decision.isFree && decision.output == .call && decision.endsWithText)
        #expect(decision.callableTools == ["get_weather", "send_mail"])
        try turn.writes("4")
        turn.expectWritten("")
        let answer = try #require(turn.step.phase)
        #expect(answer.grammar === grammar)
        #expect(answer.output == .answer && !answer.endsWithText && answer.maximumTokens == 50)
        try turn.fills("42")
        turn.expectEnd()
        turn.expectWritten("42")

        var calling = Turn(request, chat: chat)
        try calling.writes("\n", until: "<tool_call>")
        calling.expectWritten(Self.opening)
        try calling.chooses(Self.named)
        try calling.fills(#" {"place": "Rome"}"#)
        #expect(calling.calls.count == 1)
    }

    // MARK: Formats

    @Test func taggedArguments() throws {
        let chat = try Tools.chat(Template.tagged)
        var turn = Turn(chat: chat)
        let first = try #require(turn.step.phase)
        #expect(first.stopStrings == ["<tool_call>"] && first.callableTools.isEmpty)
        try turn.writes("", until: "<tool_call>")
        turn.expectWritten("<tool_call>\n<function=")
        #expect(turn.step.phase?.options == ["get_weather>\n", "send_mail>\n"])
        try turn.chooses("get_weather>\n")
        // The required argument, or an optional one before it.
        #expect(turn.step.phase?.options == ["<parameter=day>\n", "<parameter=place>\n"])
        try turn.chooses("<parameter=place>\n")
        let place = try #require(turn.step.phase)
        #expect(place.output == .call && place.stopStrings == ["\n</parameter>\n"] && place.stopTokens.isEmpty)
        try turn.writes("Rome", until: "\n</parameter>\n")
        turn.expectWritten("<tool_call>\n<function=get_weather>\n<parameter=place>\nRome\n</parameter>\n")
        // The argument before it has been left out.
        #expect(turn.step.phase?.options == ["<parameter=units>\n", "<parameter=days>\n", "</"])

        var short = turn
        try short.chooses("</")
        short.expectWritten(
            "<tool_call>\n<function=get_weather>\n<parameter=place>\nRome\n</parameter>\n</function>\n</tool_call>")
        #expect(short.calls.map(\.arguments.text) == [#"{"place":"Rome"}"#])

        try turn.chooses("<parameter=units>\n")
        #expect(turn.step.phase?.options == ["celsius\n</parameter>\n", "fahrenheit\n</parameter>\n"])
        try turn.chooses("celsius\n</parameter>\n")
        try turn.chooses("<parameter=days>\n")
        #expect(turn.step.phase?.grammar === chat.grammars["get_weather days"])
        try turn.fills("3")
        let named = "<tool_call>\n<function=get_weather>\n<parameter=place>\nRome\n</parameter>\n"
        let others = "<parameter=units>\ncelsius\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
        turn.expectWritten(named + others + "</function>\n</tool_call>")
        #expect(turn.calls.map(\.arguments.text) == [#"{"place":"Rome","units":"celsius","days":3}"#])
        try turn.writes("\n", until: "<tool_call>")
        #expect(turn.step.phase?.options == ["get_weather>\n", "send_mail>\n"])
        try turn.chooses("send_mail>\n")
        #expect(turn.step.phase?.options == ["<parameter=to>\n"])
    }

    /// Without arguments there is only the ending; strings with a length are JSON.
    @Test func taggedArgumentsOfOtherKinds() throws {
        let nothing = try Tools.tool("stop", #"{"type": "object"}"#)
        let payment = try Tools.tool(
            "pay",
            """
            {"type": "object", "required": ["code", "kind"], "properties": {
              "code": {"type": "string", "minLength": 2}, "kind": {"const": "card"}}}
            """)
        var chat = try Tools.chat(Template.tagged, [nothing, payment])
        chat.tools.mustCall = true
        var stop = Turn(chat: chat)
        try stop.chooses("stop>\n")
        #expect(stop.step.phase?.options == ["</"])
        try stop.chooses("</")
        stop.expectWritten("<tool_call>\n<function=stop>\n</function>\n</tool_call>")
        #expect(stop.calls.map(\.arguments.text) == ["{}"])

        var pay = Turn(chat: chat)
        try pay.chooses("pay>\n")
        try pay.chooses("<parameter=code>\n")
        try pay.fills(#""ab""#)
        try pay.chooses("<parameter=kind>\n")
        #expect(pay.step.phase?.options == ["card\n</parameter>\n"])
        try pay.chooses("card\n</parameter>\n")
        #expect(pay.calls.map(\.arguments.text) == [#"{"code":"ab","kind":"card"}"#])
    }

    /// Gemma 4.
    @Test func markedArguments() throws {
        var turn = Turn(chat: try Tools.chat(Template.marked))
        try turn.writes("", until: "<|tool_call>")
        turn.expectWritten("<|tool_call>call:")
        #expect(turn.step.phase?.options == ["get_weather{", "send_mail{"])
        try turn.chooses("get_weather{")
        #expect(turn.step.phase?.options == ["day:", "place:"])
        try turn.chooses("place:")
        turn.expectWritten("<|tool_call>call:get_weather{place:<|\"|>")
        try turn.writes("Rome", until: "<|\"|>")
        turn.expectWritten("<|tool_call>call:get_weather{place:<|\"|>Rome<|\"|>")
        #expect(turn.step.phase?.options == [",units:", ",days:", "}"])
        try turn.chooses(",units:")
        #expect(turn.step.phase?.options == ["celsius<|\"|>", "fahrenheit<|\"|>"])
        try turn.chooses("fahrenheit<|\"|>")

        var short = turn
        #expect(short.step.phase?.options == [",days:", "}"])
        try short.chooses("}")
        short.expectWritten("<|tool_call>call:get_weather{place:<|\"|>Rome<|\"|>,units:<|\"|>fahrenheit<|\"|>}<tool_call|>")
        #expect(short.calls.map(\.arguments.text) == [#"{"place":"Rome","units":"fahrenheit"}"#])

        try turn.chooses(",days:")
        try turn.fills("3")
        let first = "<|tool_call>call:get_weather{place:<|\"|>Rome<|\"|>,units:<|\"|>fahrenheit<|\"|>,days:3}<tool_call|>"
        turn.expectWritten(first)
        try turn.writes("", until: "<|tool_call>")
        turn.expectWritten(first + "<|tool_call>call:")
    }

    @Test func mistral() throws {
        let identifiers = Mutex(["second", "first"])
        var turn = Turn(
            chat: try Tools.chat(Template.mistral), makeIdentifier: { identifiers.withLock { $0.popLast() ?? "third" } })
        try turn.writes("", until: "[TOOL_CALLS]")
        turn.expectWritten("[TOOL_CALLS]")
        // The identifier is not part of the choice.
        #expect(turn.step.phase?.options == ["get_weather[CALL_ID]", "send_mail[CALL_ID]"])
        try turn.chooses("get_weather[CALL_ID]")
        turn.expectWritten("[TOOL_CALLS]get_weather[CALL_ID]first[ARGS]")
        try turn.fills(#" {"place": "Rome"}"#)
        try turn.writes("", until: "[TOOL_CALLS]")
        try turn.chooses("send_mail[CALL_ID]")
        try turn.fills(#" {"to": "a@b.c"}"#)
        let first = #"[TOOL_CALLS]get_weather[CALL_ID]first[ARGS] {"place": "Rome"}"#
        turn.expectWritten(first + #"[TOOL_CALLS]send_mail[CALL_ID]second[ARGS] {"to": "a@b.c"}"#)
        #expect(turn.calls.map(\.id) == ["first", "second"])
        #expect(turn.calls.map(\.name) == ["get_weather", "send_mail"])
    }

    /// Older models of Mistral write a list of calls, which continues or ends.
    @Test func listOfCalls() throws {
        let identifiers = Mutex(["second", "first"])
        var turn = Turn(
            chat: try Tools.chat(Template.list), makeIdentifier: { identifiers.withLock { $0.popLast() ?? "third" } })
        try turn.writes("", until: "[TOOL_CALLS]")
        turn.expectWritten("[TOOL_CALLS][{\"name\": \"")
        try turn.chooses(Self.named)
        try turn.fills(#" {"place": "Rome"}"#)
        let first = #"[TOOL_CALLS][{"name": "get_weather", "arguments": {"place": "Rome"}, "id": "first"}"#
        turn.expectWritten(first)
        #expect(turn.step.phase?.options == [", {\"name\": \"", "]"])

        var short = turn
        try short.chooses("]")
        short.expectEnd()
        short.expectWritten(first + "]")

        try turn.chooses(", {\"name\": \"")
        turn.expectWritten(first + ", {\"name\": \"")
        try turn.chooses(#"send_mail", "arguments":"#)
        try turn.fills(#" {"to": "a@b.c"}"#)
        try turn.chooses("]")
        turn.expectEnd()
        turn.expectWritten(first + #", {"name": "send_mail", "arguments": {"to": "a@b.c"}, "id": "second"}]"#)
        #expect(turn.calls.map(\.id) == ["first", "second"])
    }

    @Test func pythonArguments() throws {
        let chat = try Tools.chat(Template.python)
        var turn = Turn(chat: chat)
        try turn.writes("", until: "<|tool_call_start|>")
        turn.expectWritten("<|tool_call_start|>[")
        #expect(turn.step.phase?.options == ["get_weather(", "send_mail("])
        try turn.chooses("get_weather(")
        #expect(turn.step.phase?.options == ["day=", "place="])
        try turn.chooses("place=")
        #expect(turn.step.phase?.grammar === chat.grammars["get_weather place"])
        try turn.fills(#""Rome""#)
        #expect(turn.step.phase?.options == [", units=", ", days=", ")"])
        try turn.chooses(", units=")
        #expect(turn.step.phase?.grammar === chat.grammars["get_weather units"])
        try turn.fills(#""celsius""#)
        try turn.chooses(")")
        let first = #"<|tool_call_start|>[get_weather(place="Rome", units="celsius")"#
        turn.expectWritten(first)
        #expect(turn.step.phase?.options == [", ", "]<|tool_call_end|>"])
        try turn.chooses(", ")
        #expect(turn.step.phase?.options == ["get_weather(", "send_mail("])
        try turn.chooses("send_mail(")
        try turn.chooses("to=")
        try turn.fills(#""a@b.c""#)
        try turn.chooses("]<|tool_call_end|>")
        turn.expectEnd()
        turn.expectWritten(first + #", send_mail(to="a@b.c")]<|tool_call_end|>"#)
        #expect(turn.calls.map(\.arguments.text) == [#"{"place":"Rome","units":"celsius"}"#, #"{"to":"a@b.c"}"#])
    }

    /// Formats without an end of calls have one call.
    @Test func formatWithOneCall() throws {
        var turn = Turn(chat: try Tools.chat(Template.single))
        try turn.writes("", until: "{\"name\": \"")
        turn.expectWritten("{\"name\": \"")
        try turn.chooses(#"get_weather", "parameters":"#)
        try turn.fills(#" {"place": "Rome"}"#)
        turn.expectEnd()
        turn.expectWritten(#"{"name": "get_weather", "parameters": {"place": "Rome"}}"#)
        #expect(turn.calls.count == 1)
    }

    // MARK: Comparisons

    @Test func optionalArgumentsThatTheUserDidNotMention() throws {
        var turn = try turnInArguments { $0.minimumOptionalArgumentLogOdds = 2 }
        try turn.fills(#" {"day": "today", "place": "Rome", "units": "celsius"}"#)
        turn.expectWritten(Self.begun + " {")
        try turn.compares("\"", "}", logOdds: 1.9)
        turn.expectWritten(Self.begun + #" {"place": "Rome""#)
        #expect(turn.calls.isEmpty)

        var none = turn
        try none.compares(",", "}", logOdds: 1.9)
        none.expectWritten(Self.call(#" {"place": "Rome"}"#))
        #expect(none.calls.map(\.arguments.text) == [#"{"place":"Rome"}"#])

        try turn.compares(",", "}", logOdds: 2)
        turn.expectWritten(Self.call(#" {"place": "Rome", "units": "celsius"}"#))
        #expect(turn.calls.map(\.arguments.text) == [#"{"place":"Rome","units":"celsius"}"#])
        #expect(turn.step.phase?.isFree == true)
    }

    /// If none is removed, the tokens of the model remain.
    @Test func optionalArgumentsThatTheUserMentioned() throws {
        var turn = try turnInArguments { $0.minimumOptionalArgumentLogOdds = 2 }
        try turn.fills(#" {"day": "today", "place": "Rome"}"#, tokens: [401, 402])
        try turn.compares("\"", "}", logOdds: 2)
        #expect(turn.step.written == Bytes.encode(Self.begun) + [401, 402] + Bytes.encode("}\n</tool_call>"))
        #expect(turn.calls.map(\.arguments.text) == [#"{"day":"today","place":"Rome"}"#])

        var required = try turnInArguments { $0.minimumOptionalArgumentLogOdds = 2 }
        try required.fills(#" {"place": "Rome"}"#)
        #expect(required.calls.count == 1)

        var others = try turnInArguments()
        try others.fills(#" {"day": "today", "place": "Rome"}"#)
        #expect(others.calls.map(\.arguments.text) == [#"{"day":"today","place":"Rome"}"#])
    }

    @Test func controlTokensInArgumentsStayText() throws {
        var turn = try turnInArguments { $0.minimumOptionalArgumentLogOdds = 2 }
        try turn.fills(#" {"day": "today", "place": "<think>", "units": "celsius"}"#)
        try turn.compares("\"", "}", logOdds: 0)
        #expect(turn.step.written == Bytes.encode(Self.begun) + Bytes.plain(#" {"place": "<think>""#))
        try turn.compares(",", "}", logOdds: 0)
        let arguments = Bytes.plain(#" {"place": "<think>"}"#)
        #expect(turn.step.written == Bytes.encode(Self.begun) + arguments + Bytes.encode("}\n</tool_call>"))
    }

    /// A call as an element of a block of JSON.
    private func element(_ place: String) -> String {
        """
        {
          "name": "get_weather",
          "arguments": {
            "place": "\(place)"
          }
        }

        """
    }

    @Test func anotherCallIsProbableEnough() throws {
        var chat = try Tools.chat(Template.hermes)
        chat.minimumNextCallLogOdds = -3
        var turn = Turn(chat: chat)
        let json = #"{"name": "get_weather""#
        #expect(turn.step.phase?.stopStrings.contains(json) == true)
        try turn.ends(PhaseEnd(reason: .stopString, tokens: Bytes.plain("Sure.\n"), stopString: json))
        turn.expectWritten("Sure.\n" + Self.begun)
        try turn.fills(#" {"place": "Rome"}"#)
        turn.expectWritten("Sure.\n```json\n" + element("Rome"))
        let first = "Sure.\n" + Self.call(#" {"place": "Rome"}"#)

        var short = turn
        try short.compares("{", "`", logOdds: -3)
        short.expectEnd()
        short.expectWritten(first)

        try turn.compares("{", "`", logOdds: -2.9)
        turn.expectWritten(first + "\n" + Self.opening)
        try turn.chooses(Self.named)
        try turn.fills(#" {"place": "Vienna"}"#)
        turn.expectWritten("Sure.\n```json\n" + element("Rome") + element("Vienna"))
        try turn.compares("{", "`", logOdds: -3)
        turn.expectEnd()
        turn.expectWritten(first + "\n" + Self.call(#" {"place": "Vienna"}"#))
        #expect(turn.calls.map(\.arguments.text) == [#"{"place":"Rome"}"#, #"{"place":"Vienna"}"#])

        // A model that writes the trigger also writes the next one.
        var trained = try turnInArguments { $0.minimumNextCallLogOdds = -3 }
        try trained.fills(#" {"place": "Rome"}"#)
        #expect(trained.step.phase?.isFree == true && trained.step.phase?.stopStrings == ["<tool_call>"])
    }

    // MARK: Errors

    private func tooLong(_ argument: String?) -> GenerationFailure {
        .argumentTooLong(tool: "get_weather", argument: argument, contextSize: 4_096)
    }

    @Test func argumentsThatDoNotFit() throws {
        let turn = try turnInArguments()
        #expect(turn.plan.failure(needed: 9, available: 2) == tooLong(nil))
        // The rest of the object was written because it had to end.
        let begun = #" {"day": "to"#
        let shortened = PhaseEnd(reason: .endOfTurn, text: begun + #"", "place": ""}"#, shortenedAt: begun.utf8.count)
        #expect(throws: tooLong("day")) {
            var turn = turn
            try turn.ends(shortened)
        }
        #expect(throws: tooLong("place")) {
            var turn = turn
            try turn.ends(PhaseEnd(reason: .contextFull, text: #" {"day": "today", "place": "Ro"#))
        }
        #expect(throws: tooLong(nil)) {
            var turn = turn
            try turn.ends(PhaseEnd(reason: .contextFull, text: " {"))
        }
        #expect(throws: GenerationFailure.grammarTooComplex) {
            var turn = turn
            try turn.ends(PhaseEnd(reason: .endOfTurn, text: #" {"place": "#))
        }
    }

    @Test func separateArgumentsThatDoNotFit() throws {
        var turn = Turn(chat: try Tools.chat(Template.tagged))
        try turn.writes("", until: "<tool_call>")
        try turn.chooses("get_weather>\n")
        try turn.chooses("<parameter=place>\n")
        let inPlace = turn
        #expect(throws: tooLong("place")) {
            var turn = inPlace
            try turn.ends(PhaseEnd(reason: .contextFull, tokens: Bytes.plain("Ro"), text: "Ro"))
        }
        try turn.writes("Rome", until: "\n</parameter>\n")
        try turn.chooses("<parameter=days>\n")
        #expect(turn.plan.failure(needed: 9, available: 2) == tooLong("days"))
        let inDays = turn
        #expect(throws: tooLong("days")) {
            var turn = inDays
            try turn.ends(PhaseEnd(reason: .endOfTurn, text: "1", shortenedAt: 1))
        }
    }

    @Test func nameThatDoesNotFit() throws {
        var turn = Turn(chat: try Tools.chat(Template.hermes))
        try turn.writes("", until: "<tool_call>")
        #expect(turn.plan.failure(needed: 9, available: 2) == .budgetTooSmall(needed: 9, available: 2))
        try turn.ends(PhaseEnd(reason: .contextFull, tokens: Bytes.plain("get_w"), text: "get_w"))
        turn.expectEnd(.contextFull)
        #expect(turn.calls.isEmpty)
    }
}

// MARK: - Beginnings of calls

/// What a text may become.
@Suite struct CallBeginningTests {
    private static let tools = ["get_weather", "send_mail"]

    private func beginning(
        of text: String, tools: [String] = CallBeginningTests.tools, callsNamedTools: Bool = false
    ) -> CallBeginning {
        CallBeginning(of: Array(text.utf8), tools: tools, callsNamedTools: callsNamedTools)
    }

    @Test(arguments: [
        #"{"name": "get_weather""#, #"{"name":"get_weather""#, "\n {\n\t\"name\"\r\n :\n \"get_weather\"",
        "```json\n{\"name\": \"get_weather\"", "```\n{\n  \"name\": \"get_weather\"", "``` {\"name\": \"get_weather\"",
        #"[{"name": "get_weather""#, "```json\n[\n  {\n    \"name\": \"get_weather\"", #"{{"name": "get_weather""#,
        "```json\n{{\n  \"name\": \"get_weather\"", #"[{{ "name": "get_weather""#, #"{"function": "get_weather""#,
        #"{"tool": "get_weather""#, #"{"tool_name": "get_weather""#,
    ])
    func calls(text: String) {
        #expect(beginning(of: text) == .call(tool: "get_weather"))
        #expect(beginning(of: text + #", "arguments": {}}"#) == .call(tool: "get_weather"))
        let bytes = Array(text.utf8)
        for count in bytes.indices {
            let part = CallBeginning(of: Array(bytes[..<count]), tools: Self.tools, callsNamedTools: false)
            #expect(part == .open, "\(count) bytes")
        }
    }

    @Test(arguments: [
        "Hello", "get_weather", #""get_weather""#, "`get_weather`", "[1, 2]", "{}", "[[{", "{{{", "```swift\nlet a",
        #"{"city": "Rome"}"#, #"{"names": ["get_weather"]}"#, #"{"name": "get"}"#, #"{"name": "get_weathers"}"#, #"{"name": 1}"#,
        #"{"name" "get_weather""#, #"{"function": {"name": "get_weather"}}"#,
    ])
    func otherTexts(text: String) {
        #expect(beginning(of: text) == .text)
        #expect(beginning(of: " \n" + text) == .text)
    }

    /// A name that begins another name.
    @Test func similarNames() {
        let tools = ["get", "get_all"]
        #expect(beginning(of: #"{"name": "get""#, tools: tools) == .call(tool: "get"))
        #expect(beginning(of: #"{"name": "get_all""#, tools: tools) == .call(tool: "get_all"))
        #expect(beginning(of: #"{"name": "get"#, tools: tools) == .open)
    }

    // MARK: Sentences

    @Test(arguments: [
        "To see it, I will call the get_weather function. ", "I call `get_weather`:\n", " \n I call get_weather. Then I answer.",
        "At 3.5 degrees, get_weather helps. ", "I use get_weather! Then send_mail.",
    ])
    func namedTools(text: String) {
        #expect(beginning(of: text, callsNamedTools: true) == .call(tool: "get_weather"))
        #expect(beginning(of: text) == .text)
    }

    @Test(arguments: [
        "It is nice. ", "It is nice.\n", "Nice\n", "Is it nice? Yes", "I know. I call get_weather.", "No\nget_weather",
        "I use get_weather or send_mail. Which one?", "It is my_get_weather or get_weather-now. ",
    ])
    func sentencesAboutNoTool(text: String) {
        #expect(beginning(of: text, callsNamedTools: true) == .text)
    }

    /// A tool may still be named, unless the sentence is long.
    @Test func openSentences() {
        for text in ["It is nice", "It is nice.", "It is 3.5", String(repeating: "word ", count: 39)] {
            #expect(beginning(of: text, callsNamedTools: true) == .open, "\(text)")
            #expect(beginning(of: text) == .text, "\(text)")
        }
        #expect(beginning(of: String(repeating: "word ", count: 40), callsNamedTools: true) == .text)
    }

    /// A name that is a word names the tool only in code.
    @Test func namesThatAreWords() {
        let tools = ["search", "findContact"]
        #expect(beginning(of: "I search for it. ", tools: tools, callsNamedTools: true) == .text)
        #expect(beginning(of: "I use `search` for it. ", tools: tools, callsNamedTools: true) == .call(tool: "search"))
        #expect(beginning(of: "I use findContact for it. ", tools: tools, callsNamedTools: true) == .call(tool: "findContact"))
    }

    /// A name at the end of the text may continue.
    @Test func namesThatAreNotComplete() {
        let tools = ["find_contact", "find_contact_by_id"]
        #expect(beginning(of: "I call find_contact", tools: tools, callsNamedTools: true) == .open)
        #expect(beginning(of: "I call find_contact. ", tools: tools, callsNamedTools: true) == .call(tool: "find_contact"))
        let longer = beginning(of: "I call find_contact_by_id. ", tools: tools, callsNamedTools: true)
        #expect(longer == .call(tool: "find_contact_by_id"))
    }

    // MARK: Texts in parts

    @Test(arguments: 1...4)
    func callsEndATextInAnyParts(size: Int) {
        var matcher = StopMatcher(["END"], callableTools: Self.tools)
        var rest = Substring(#"{"name": "get_weather""#)
        while !rest.isEmpty {
            #expect(matcher.calledTool == nil)
            let (text, stopped) = matcher.append(String(rest.prefix(size)))
            rest = rest.dropFirst(size)
            #expect(text.isEmpty)
            #expect(stopped == rest.isEmpty)
        }
        #expect(matcher.calledTool == "get_weather" && matcher.match == nil)
        let end = matcher.finish()
        #expect(end.isEmpty)
    }

    @Test func textThatDoesNotBecomeACallIsNotLost() {
        var matcher = StopMatcher(["END"], callableTools: Self.tools)
        let first = matcher.append("{\"na").text
        let second = matcher.append("tion\": 1}").text
        // The text is not a call, whatever follows.
        let third = matcher.append(#"{"name": "get_weather""#)
        #expect([first, second, third.text] == ["", "{\"nation\": 1}", #"{"name": "get_weather""#])
        #expect(!third.stopped && matcher.calledTool == nil)

        var short = StopMatcher(["END"], callableTools: Self.tools)
        let held = short.append("```").text
        let end = short.finish()
        #expect(held.isEmpty && end == "```")
    }

    @Test(arguments: ["It is END", "It is END of it", "It is 5. END", "It is 5.\nNo END here. "])
    func stopStringsInASentenceThatCouldNameATool(text: String) throws {
        var matcher = StopMatcher(["END"], callableTools: Self.tools, callsNamedTools: true)
        let (part, stopped) = matcher.append(text)
        let found = stopped ? part : part + matcher.finish()
        let end = try #require(text.firstRange(of: "END"))
        #expect(found == String(text[..<end.lowerBound]))
        #expect(matcher.match == "END")
    }
}

// MARK: - Events

/// Events on their way from the engine to the task of a request.
@Suite struct TurnEventsTests {
    private static func part(_ text: String, token: TokenID = 0) -> GeneratedText {
        var tokens = GeneratedTokens()
        tokens.append(token)
        return GeneratedText(text: text, tokens: tokens)
    }

    /// The events in order; texts of the same kind are joined, calls are not.
    private func script(_ events: [TurnEvent]) -> [String] {
        var lines: [String] = []
        var last = ""
        func add(_ kind: String, _ text: String, joins: Bool = true) {
            if joins, kind == last { lines[lines.count - 1] += text } else { lines.append(kind + ": " + text) }
            last = kind
        }
        for event in events {
            switch event {
            case .text(let part): add("text", part.text)
            case .thought(let part): add("thought", part.text)
            case .call(let call): add("call", call.name, joins: false)
            case .cut(let bytes): add("cut", "\(bytes)", joins: false)
            case .state(let values, _): add("state", "\(values)", joins: false)
            }
        }
        return lines
    }

    @Test func textIsJoinedWhenNobodyReads() async throws {
        let events = TurnEvents()
        for index in 0..<1_000 { events.send(.text(Self.part("\(index) ", token: TokenID(index)))) }
        let received = try await events.next()
        #expect(received.count < 100)
        #expect(script(received) == ["text: " + (0..<1_000).map { "\($0) " }.joined()])
        let tokens = received.flatMap { event -> [TokenID] in if case .text(let part) = event { Array(part.tokens) } else { [] } }
        #expect(tokens == (0..<1_000).map { TokenID($0) })
        // What has been read is not sent again.
        events.send(.text(Self.part("end")))
        let rest = try await events.next()
        #expect(script(rest) == ["text: end"])
    }

    @Test func orderIsKept() async throws {
        let events = TurnEvents()
        var sent: [TurnEvent] = [.state([1, 2], layer: 0)]
        for round in 0..<60 {
            let call = ChatToolCall(id: "\(round)", name: "call\(round)", arguments: .object([]))
            sent += [.thought(Self.part("a\(round)")), .thought(Self.part("b"))]
            sent += [.text(Self.part("c")), .text(Self.part("d\(round)")), .cut(bytes: round), .call(call), .call(call)]
        }
        for event in sent { events.send(event) }
        events.finish(.success(()))
        let received = try await events.next()
        #expect(script(received) == script(sent))
        #expect(script(received).count == 1 + 60 * 5)
        #expect(received.count < sent.count)
        let end = try await events.next()
        #expect(end.isEmpty)
    }

    @Test func errorsFollowTheEventsBeforeThem() async throws {
        let events = TurnEvents()
        events.send(.text(Self.part("a")))
        events.finish(.failure(GenerationFailure.unusableLogits))
        let received = try await events.next()
        #expect(script(received) == ["text: a"])
        await #expect(throws: GenerationFailure.unusableLogits) { _ = try await events.next() }
    }

    @Test(.timeLimit(.minutes(1)))
    func readersWait() async throws {
        let events = TurnEvents()
        for text in ["a", "b"] {
            let reader = Task { try await events.next() }
            for _ in 0..<1_000 { await Task.yield() }
            events.send(.text(Self.part(text)))
            let received = try await reader.value
            #expect(script(received) == ["text: " + text])
        }
        let reader = Task { try await events.next() }
        for _ in 0..<1_000 { await Task.yield() }
        events.finish(.failure(GenerationFailure.unusableLogits))
        await #expect(throws: GenerationFailure.unusableLogits) { _ = try await reader.value }
    }

    @Test(.timeLimit(.minutes(1)))
    func nothingIsLostWhileSomeoneReads() async throws {
        let events = TurnEvents()
        let writer = Task.detached {
            for index in 0..<5_000 {
                events.send(.text(Self.part("\(index) ")))
                if index % 100 == 0 { await Task.yield() }
            }
            events.finish(.success(()))
        }
        var text = ""
        while true {
            let received = try await events.next()
            if received.isEmpty { break }
            for case .text(let part) in received { text += part.text }
        }
        await writer.value
        #expect(text == (0..<5_000).map { "\($0) " }.joined())
    }

    @Test func refusal() {
        let events = TurnEvents()
        #expect(!events.isUnwanted)
        events.refuse()
        #expect(events.isUnwanted)
    }
}
