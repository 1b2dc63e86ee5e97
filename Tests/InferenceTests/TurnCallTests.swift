import Grammar
import JSON
import Synchronization
import Testing

@testable import Inference

/// What follows each phase of a turn with calls.
@Suite struct TurnCallTests {
    /// The grammar of an argument of `get_weather`.
    private func grammar(_ argument: String, _ chat: ChatTurn) throws -> PendingGrammar? {
        let tool = try TurnTestTools.weather()
        return chat.grammar(tool, tool.properties.first { $0.name == argument }, "")
    }

    // MARK: Calls

    @Test func callAfterText() throws {
        let chat = try TurnTestTools.chat(TurnTestTemplate.hermes)
        var turn = TestTurn(chat: chat)
        let first = try #require(turn.step.phase)
        #expect(first.output == .answer && !first.endsWithText && first.maximumTokens == 50)
        let trigger = try #require(TurnTestBytes.special("<tool_call>"))
        #expect(first.stopTokens == [trigger] && first.stopStrings.isEmpty && first.openings.isEmpty)
        #expect(first.callableTools == ["get_weather", "send_mail"])
        try turn.writes("Sure. ", until: "<tool_call>")
        turn.expectWritten("Sure. " + HermesCall.opening)
        #expect(turn.step.phase?.options == [HermesCall.named, #"send_mail", "arguments":"#])
        try turn.chooses(HermesCall.named)
        turn.expectWritten("Sure. " + HermesCall.begun)
        let arguments = try #require(turn.step.phase)
        let grammar = chat.grammar(try TurnTestTools.weather(), nil, "}\n")
        #expect(arguments.grammar === grammar)
        #expect(arguments.output == .call)
        // The limit of the request is for the answer.
        #expect(arguments.maximumTokens == nil)
        #expect(turn.calls.isEmpty)
        try turn.fills(#" {"place": "Rome"}"#)
        turn.expectWritten("Sure. " + HermesCall.whole(#" {"place": "Rome"}"#))
        let call = ChatToolCall(id: "id", name: "get_weather", arguments: .object([.init("place", .string("Rome"))]))
        #expect(turn.calls == [call])
        let last = try #require(turn.step.phase)
        // White space, and then another call or the end: anything else is not generated.
        #expect(last.output == .call && last.endsWithText && last.stopTokens == [trigger] && last.stopStrings.isEmpty)
        try turn.writes("\nDone")
        turn.expectEnd()
        turn.expectWritten("Sure. " + HermesCall.whole(#" {"place": "Rome"}"#))
        #expect(turn.calls == [call])
    }

    /// The token with which a trained model ends a call has the end of a text, of the arguments and of the call.
    @Test func callsEndWithOneToken() throws {
        var texts: [[UInt8]?] = (UInt8.min...UInt8.max).map { [$0] }
        let end = TokenID(texts.count)
        texts.append(Array("\"}}\n".utf8))
        let vocabulary = TokenVocabulary(texts: texts, endTokens: [])
        var chat = try TurnTestTools.chat(TurnTestTemplate.hermes)
        chat.grammar = { tool, _, after in
            let source = GrammarSource.framed(before: " ", schema: tool.parameters, after: after)
            return (try? Grammar(source, vocabulary: vocabulary, options: GrammarOptions(isSpaced: true))).map {
                PendingGrammar($0)
            }
        }
        var turn = TestTurn(chat: chat)
        try turn.writes("", until: "<tool_call>")
        try turn.chooses(HermesCall.named)
        let grammar = try #require(try turn.step.phase?.grammar?.value)
        var matcher = grammar.matcher()
        let isAccepted = matcher.advance(#" {"place": "Rome"#.utf8) && matcher.advance(token: end)
        #expect(isAccepted && matcher.isAtEnd)
        let tokens = TurnTestBytes.plain(#" {"place": "Rome"#) + [end]
        try turn.ends(PhaseEnd(reason: .endOfTurn, tokens: tokens, text: " {\"place\": \"Rome\"}}\n"))
        #expect(turn.calls.map(\.arguments.text) == [#"{"place":"Rome"}"#])
        // All that the call still lacks.
        #expect(turn.written == TurnTestBytes.encode(HermesCall.begun) + tokens + TurnTestBytes.encode("</tool_call>"))
    }

    /// Vocabularies without a control token for it have the trigger as text.
    @Test func triggerInText() throws {
        let chat = try TurnTestTools.chat("tools <function name=")
        var turn = TestTurn(chat: chat)
        let first = try #require(turn.step.phase)
        #expect(first.openings == ["<function name=\""] && first.stopStrings.isEmpty && first.stopTokens.isEmpty)
        try turn.writes("\n", until: "<function name=\"")
        turn.expectWritten("\n<function name=\"")
        #expect(turn.step.phase?.options == ["get_weather\">", "send_mail\">"])

        // Where calls are JSON objects, only the name of a tool tells them from an answer.
        let json = try #require(TestTurn(chat: try TurnTestTools.chat(TurnTestTemplate.single)).step.phase)
        #expect(json.openings.isEmpty && json.stopStrings.isEmpty && json.callableTools == ["get_weather", "send_mail"])
    }

    @Test func callsThatBeginAsJSON() throws {
        let chat = try TurnTestTools.chat(TurnTestTemplate.hermes)
        var turn = TestTurn(chat: chat)
        try turn.ends(PhaseEnd(reason: .stopString, calledTool: "send_mail"))
        turn.expectWritten(#"<tool_call>\#n{"name": "send_mail", "arguments":"#)
        try turn.fills(#" {"to": "a@b.c"}"#)
        #expect(turn.calls.map(\.arguments.text) == [#"{"to":"a@b.c"}"#])
        var other = TestTurn(chat: chat)
        try other.ends(PhaseEnd(reason: .stopString, calledTool: "read_mail"))
        other.expectEnd(.stopString)
    }

    @Test func furtherCallsThatBeginAsJSON() throws {
        var turn = try HermesCall.turn()
        try turn.fills(#" {"place": "Rome"}"#)
        let phase = try #require(turn.step.phase)
        #expect(phase.callableTools == ["get_weather", "send_mail"] && phase.endsWithText)
        // Room for four tokens of white space and the longest beginning, here one token for each byte.
        #expect(phase.maximumTokens == 4 + #"{"name": "get_weather""#.utf8.count)
        try turn.ends(PhaseEnd(reason: .stopString, calledTool: "send_mail"))
        let first = HermesCall.whole(#" {"place": "Rome"}"#)
        turn.expectWritten(first + "\n<tool_call>\n{\"name\": \"send_mail\", \"arguments\":")
        try turn.fills(#" {"to": "a@b.c"}"#)
        #expect(turn.calls.map(\.name) == ["get_weather", "send_mail"])
    }

    @Test(arguments: [("Rome", 1), ("Vienna", 2)])
    func equalCallsAreNotRepeated(place: String, count: Int) throws {
        var turn = try HermesCall.turn()
        try turn.fills(#" {"place": "Rome"}"#)
        try turn.writes("\n", until: "<tool_call>")
        turn.expectWritten(HermesCall.whole(#" {"place": "Rome"}"#) + "\n" + HermesCall.opening)
        try turn.chooses(HermesCall.named)
        try turn.fills(#" {"place": "\#(place)"}"#)
        let calls = [#"{"place":"Rome"}"#, #"{"place":"Vienna"}"#].prefix(count)
        #expect(turn.calls.map(\.arguments.text) == Array(calls))
        if count == 1 { turn.expectEnd() } else { try turn.writes("") }
        turn.expectEnd()
    }

    @Test(arguments: [("Rome", 0), ("Vienna", 1)])
    func callsThatWereMadeBeforeAreNotRepeated(place: String, count: Int) throws {
        let made = ChatToolCall(id: "0", name: "get_weather", arguments: .object([.init("place", .string("Rome"))]))
        var turn = try HermesCall.turn { $0.tools.madeCalls = [made] }
        try turn.fills(#" {"place": "\#(place)"}"#)
        #expect(turn.calls.count == count)
        // The prompt has the result, so that the model answers, in the same place and without another call.
        let trigger = try #require(TurnTestBytes.special("<tool_call>"))
        #expect(turn.step.phase?.isFree == true && turn.step.phase?.output == (count == 0 ? .answer : .call))
        #expect(turn.step.phase?.bannedTokens == (count == 0 ? [trigger] : []))
        guard count == 0 else { return }
        turn.expectWritten("")
        #expect(turn.step.phase?.callableTools.isEmpty == true && turn.step.phase?.stopTokens.isEmpty == true)
        try turn.writes("It is warm.")
        turn.expectEnd()
        turn.expectWritten("It is warm.")
    }

    /// Where the model has said something, that is its answer.
    @Test func aCallThatWasMadeBeforeEndsAText() throws {
        var chat = try TurnTestTools.chat(TurnTestTemplate.hermes)
        chat.tools.madeCalls = [ChatToolCall(id: "0", name: "get_weather", arguments: .object([.init("place", .string("Rome"))]))]
        var turn = TestTurn(chat: chat)
        try turn.writes("It is warm. ", until: "<tool_call>")
        try turn.chooses(HermesCall.named)
        try turn.fills(#" {"place": "Rome"}"#)
        turn.expectEnd()
        #expect(turn.calls.isEmpty)
    }

    /// After reasoning, the limit of the answer does not count a call that is not made; a guided answer remains guided.
    @Test func answersInsteadOfCallsThatWereMadeBefore() throws {
        let grammar = try TurnTestTools.grammar(.schema(try JSONParser.parse(#"{"type": "integer"}"#)))
        var request = TurnTestBytes.request
        request.tokens = TurnTestBytes.encode("Why?<think>\n")
        request.grammar = grammar
        var chat = try TurnTestTools.chat(TurnTestTemplate.hermes)
        chat.thinkingFormat = ThinkingFormat(template: "<think>")
        chat.tools.madeCalls = [ChatToolCall(id: "0", name: "get_weather", arguments: .object([.init("place", .string("Rome"))]))]
        let close = try #require(TurnTestBytes.special("</think>"))
        var turn = TestTurn(request, chat: chat)
        try turn.ends(PhaseEnd(reason: .stopString, tokens: TurnTestBytes.plain("Hm"), stopToken: close, generatedTokens: 20))
        try turn.writes("\n", until: "<tool_call>")
        try turn.chooses(HermesCall.named)
        try turn.fills(#" {"place": "Rome"}"#)
        turn.expectWritten("Hm</think>")
        #expect(turn.step.phase?.grammar === grammar && turn.step.phase?.maximumTokens == 30)
    }

    @Test func aTurnHasEightCallsAtMost() throws {
        var turn = try HermesCall.turn()
        for index in 1..<8 {
            try turn.fills(#" {"place": "\#(index)"}"#)
            try turn.writes("", until: "<tool_call>")
            try turn.chooses(HermesCall.named)
        }
        try turn.fills(#" {"place": "8"}"#)
        turn.expectEnd()
        #expect(turn.calls.count == 8)
    }

    @Test func requiredCall() throws {
        var chat = try TurnTestTools.chat(TurnTestTemplate.hermes)
        chat.tools.mustCall = true
        let turn = TestTurn(chat: chat)
        turn.expectWritten(HermesCall.opening)
        #expect(turn.step.phase?.options == [HermesCall.named, #"send_mail", "arguments":"#])
        chat.tools.callable = []
        let other = TestTurn(chat: chat)
        other.expectWritten("")
        #expect(other.step.phase?.output == .answer)
    }

    /// A choice ends with the first complete option, so none may begin another one.
    @Test(arguments: [
        TurnTestTemplate.hermes, TurnTestTemplate.tagged, TurnTestTemplate.marked, TurnTestTemplate.mistral,
        TurnTestTemplate.list, TurnTestTemplate.python, TurnTestTemplate.single,
    ])
    func namesThatBeginOtherNames(template: String) throws {
        let nothing = #"{"type": "object", "properties": {}}"#
        var chat = try TurnTestTools.chat(
            template, ["get", "get_all", "get_all_names"].map { try TurnTestTools.tool($0, nothing) })
        chat.tools.mustCall = true
        guard case .choice(let options)? = TestTurn(chat: chat).step.phase?.kind else {
            Issue.record("there is no choice")
            return
        }
        #expect(options.count == 3)
        for option in options { #expect(options.filter { option.starts(with: $0) } == [option]) }
    }

    // MARK: Formats

    @Test func taggedArguments() throws {
        let chat = try TurnTestTools.chat(TurnTestTemplate.tagged)
        var turn = TestTurn(chat: chat)
        let first = try #require(turn.step.phase)
        #expect(first.stopTokens.count == 1 && first.callableTools.isEmpty)
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
        let days = try grammar("days", chat)
        #expect(turn.step.phase?.grammar === days)
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
        let nothing = try TurnTestTools.tool("stop", #"{"type": "object"}"#)
        let payment = try TurnTestTools.tool(
            "pay",
            """
            {"type": "object", "required": ["code", "kind"], "properties": {
              "code": {"type": "string", "minLength": 2}, "kind": {"const": "card"}}}
            """)
        var chat = try TurnTestTools.chat(TurnTestTemplate.tagged, [nothing, payment])
        chat.tools.mustCall = true
        var stop = TestTurn(chat: chat)
        try stop.chooses("stop>\n")
        #expect(stop.step.phase?.options == ["</"])
        try stop.chooses("</")
        stop.expectWritten("<tool_call>\n<function=stop>\n</function>\n</tool_call>")
        #expect(stop.calls.map(\.arguments.text) == ["{}"])

        var pay = TestTurn(chat: chat)
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
        var turn = TestTurn(chat: try TurnTestTools.chat(TurnTestTemplate.marked))
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
        var turn = TestTurn(
            chat: try TurnTestTools.chat(TurnTestTemplate.mistral),
            makeIdentifier: { identifiers.withLock { $0.popLast() ?? "third" } })
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
        var turn = TestTurn(
            chat: try TurnTestTools.chat(TurnTestTemplate.list),
            makeIdentifier: { identifiers.withLock { $0.popLast() ?? "third" } })
        try turn.writes("", until: "[TOOL_CALLS]")
        turn.expectWritten("[TOOL_CALLS][{\"name\": \"")
        try turn.chooses(HermesCall.named)
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
        let chat = try TurnTestTools.chat(TurnTestTemplate.python)
        var turn = TestTurn(chat: chat)
        try turn.writes("", until: "<|tool_call_start|>")
        turn.expectWritten("<|tool_call_start|>[")
        #expect(turn.step.phase?.options == ["get_weather(", "send_mail("])
        try turn.chooses("get_weather(")
        #expect(turn.step.phase?.options == ["day=", "place="])
        try turn.chooses("place=")
        let place = try grammar("place", chat)
        #expect(turn.step.phase?.grammar === place)
        try turn.fills(#""Rome""#)
        #expect(turn.step.phase?.options == [", units=", ", days=", ")"])
        try turn.chooses(", units=")
        let units = try grammar("units", chat)
        #expect(turn.step.phase?.grammar === units)
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
        var turn = TestTurn(chat: try TurnTestTools.chat(TurnTestTemplate.single))
        try turn.ends(PhaseEnd(reason: .stopString, calledTool: "get_weather"))
        turn.expectWritten(#"{"name": "get_weather", "parameters":"#)
        try turn.fills(#" {"place": "Rome"}"#)
        turn.expectEnd()
        turn.expectWritten(#"{"name": "get_weather", "parameters": {"place": "Rome"}}"#)
        #expect(turn.calls.count == 1)
    }

    /// Calls that the model begins as JSON are followed by others if it writes the trigger, like all calls.
    @Test func furtherCallsAfterOneThatBeganAsJSON() throws {
        var turn = TestTurn(chat: try TurnTestTools.chat(TurnTestTemplate.hermes))
        try turn.ends(PhaseEnd(reason: .stopString, tokens: TurnTestBytes.plain("Sure.\n"), calledTool: "get_weather"))
        turn.expectWritten("Sure.\n" + HermesCall.begun)
        try turn.fills(#" {"day": "today", "place": "Rome"}"#)
        try turn.writes("\n", until: "<tool_call>")
        try turn.chooses(HermesCall.named)
        try turn.fills(#" {"place": "Vienna"}"#)
        try turn.writes("")
        turn.expectEnd()
        let first = HermesCall.whole(#" {"day": "today", "place": "Rome"}"#)
        turn.expectWritten("Sure.\n" + first + "\n" + HermesCall.whole(#" {"place": "Vienna"}"#))
        #expect(turn.calls.map(\.arguments.text) == [#"{"day":"today","place":"Rome"}"#, #"{"place":"Vienna"}"#])
    }

    @Test func argumentsKeepTheTokensOfTheModel() throws {
        var turn = try HermesCall.turn()
        try turn.fills(#" {"day": "today", "place": "<think>"}"#, tokens: [401, 402])
        #expect(
            turn.written == TurnTestBytes.encode(HermesCall.begun) + [401, 402] + TurnTestBytes.encode("</tool_call>"))
        #expect(turn.calls.map(\.arguments.text) == [#"{"day":"today","place":"<think>"}"#])
    }
}
