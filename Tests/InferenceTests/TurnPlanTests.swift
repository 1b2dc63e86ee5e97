import Grammar
import JSON
import Testing

@testable import Inference

/// What follows each phase of a turn with an answer, reasoning or a guided value.
@Suite struct TurnPlanTests {
    // MARK: Answers

    @Test(arguments: [StopReason.endOfTurn, .maximumTokens, .loop, .contextFull, .stopString])
    func text(reason: StopReason) throws {
        var request = TurnTestBytes.request
        request.stopStrings = ["END"]
        request.stopTokens = [7]
        request.bannedTokens = [8]
        request.bannedFirstTokens = [9]
        var turn = TestTurn(request)
        let phase = try #require(turn.step.phase)
        #expect(phase.isFree && phase.output == .answer)
        #expect(phase.maximumTokens == 50)
        #expect(phase.stopStrings == ["END"])
        #expect(phase.stopTokens == [7])
        #expect(phase.bannedTokens == [8])
        #expect(phase.bannedFirstTokens == [9])
        #expect(phase.detectsLoops && !phase.trimsStart && !phase.endsWithText)
        #expect(phase.callableTools.isEmpty && phase.firstStopToken == nil)
        turn.expectWritten("")
        try turn.ends(PhaseEnd(reason: reason, tokens: TurnTestBytes.plain("Hello")))
        turn.expectEnd(reason)
        turn.expectWritten("Hello")
        #expect(turn.calls.isEmpty)
    }

    @Test func stopStringsEndAnAnswerThatCouldHaveBeenACall() throws {
        var request = TurnTestBytes.request
        request.stopStrings = ["END"]
        var turn = TestTurn(request, chat: try TurnTestTools.chat(TurnTestTemplate.hermes))
        try turn.writes("It is ", until: "END")
        turn.expectEnd(.stopString)
        turn.expectWritten("It is ")
    }

    @Test func toolsInThePromptThatMustNotBeCalled() throws {
        let trigger = try #require(TurnTestBytes.special("<tool_call>"))
        var request = TurnTestBytes.request
        request.bannedTokens = [8]
        request.bannedFirstTokens = [9]
        var chat = try TurnTestTools.chat(TurnTestTemplate.hermes)
        chat.tools.callable = []
        let phase = try #require(TestTurn(request, chat: chat).step.phase)
        #expect(phase.bannedTokens == [8, trigger])
        // An answer may begin with a block of code or a JSON object.
        #expect(phase.bannedFirstTokens == [9])
        #expect(phase.stopStrings.isEmpty && phase.stopTokens.isEmpty && phase.callableTools.isEmpty)
        chat.tools.areInPrompt = false
        let other = try #require(TestTurn(request, chat: chat).step.phase)
        #expect(other.bannedTokens == [8])
        #expect(other.bannedFirstTokens == [9])
    }

    // MARK: Reasoning

    @Test(arguments: ["<think>", "<think>\n", "<think>\n\n"])
    func reasoningThatThePromptBegins(ending: String) throws {
        let close = try #require(TurnTestBytes.special("</think>"))
        var request = TurnTestBytes.request
        request.tokens = TurnTestBytes.encode("Why?" + ending)
        var chat = ChatTurn()
        chat.thinkingFormat = ThinkingFormat(template: "<think>")
        var turn = TestTurn(request, chat: chat)
        let thought = try #require(turn.step.phase)
        #expect(thought.isFree && thought.output == .thought)
        #expect(thought.trimsStart && thought.detectsLoops && thought.maximumTokens == 50)
        #expect(thought.stopTokens == [close])
        turn.expectWritten("")

        var long = turn
        try long.ends(PhaseEnd(reason: .maximumTokens, tokens: TurnTestBytes.plain("Hm"), generatedTokens: 50))
        long.expectEnd(.maximumTokens)
        long.expectWritten("Hm")

        var longer = turn
        try longer.ends(PhaseEnd(reason: .stopString, stopToken: close, generatedTokens: 60))
        #expect(longer.step.phase?.maximumTokens == 1)

        try turn.ends(PhaseEnd(reason: .stopString, tokens: TurnTestBytes.plain("Hm"), stopToken: close, generatedTokens: 20))
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
        var chat = try TurnTestTools.chat(TurnTestTemplate.hermes)
        chat.thinkingFormat = ThinkingFormat(template: "<think>")
        var turn = TestTurn(chat: chat)
        #expect(turn.step.phase?.output == .answer)
        try turn.writes("", until: "<think>")
        turn.expectWritten("<think>")
        #expect(turn.step.phase?.output == .thought)
        try turn.writes("Hm", until: "</think>")
        turn.expectWritten("<think>Hm</think>")
        #expect(turn.step.phase?.output == .answer && turn.step.phase?.firstStopToken == nil)
        try turn.writes("\n", until: "<tool_call>")
        turn.expectWritten("<think>Hm</think>\n" + HermesCall.opening)
        try turn.chooses(HermesCall.named)
    }

    @Test func reasoningBetweenMarksOfSeveralTokens() throws {
        var request = TurnTestBytes.request
        request.tokens = TurnTestBytes.plain("Why?[THINK]")
        var chat = ChatTurn()
        chat.thinkingFormat = ThinkingFormat(template: "[THINK]")
        var turn = TestTurn(request, chat: chat)
        #expect(turn.step.phase?.output == .thought)
        try turn.writes("Hm", until: "[/THINK]")
        turn.expectWritten("Hm[/THINK]")
        #expect(turn.step.phase?.output == .answer)
        // Where the model decides, it can only do so with one token.
        #expect(TestTurn(chat: chat).step.phase?.firstStopToken == nil)
    }

    @Test(arguments: ["", "<think>\n\n</think>\n\n", "<think></think>", "<think></think>\n"])
    func reasoningThatThePromptEnds(ending: String) throws {
        var request = TurnTestBytes.request
        request.tokens = TurnTestBytes.encode("Why?" + ending)
        var chat = ChatTurn()
        chat.thinkingFormat = ThinkingFormat(template: "<think>")
        #expect(TestTurn(request, chat: chat).step.phase?.output == .answer)
    }

    @Test func requiredCallAfterReasoning() throws {
        var request = TurnTestBytes.request
        request.tokens = TurnTestBytes.encode("Why?<think>\n")
        var chat = try TurnTestTools.chat(TurnTestTemplate.hermes)
        chat.thinkingFormat = ThinkingFormat(template: "<think>")
        chat.tools.mustCall = true
        var turn = TestTurn(request, chat: chat)
        #expect(turn.step.phase?.output == .thought)
        try turn.writes("Hm", until: "</think>")
        turn.expectWritten("Hm</think>" + HermesCall.opening)
        #expect(turn.step.phase?.options == [HermesCall.named, #"send_mail", "arguments":"#])
    }

    // MARK: Guided answers

    private func guided() throws -> (request: GenerationRequest, grammar: PendingGrammar) {
        let grammar = try TurnTestTools.grammar(.schema(try JSONParser.parse(#"{"type": "integer"}"#)))
        var request = TurnTestBytes.request
        request.grammar = grammar
        request.stopStrings = ["9"]
        return (request, grammar)
    }

    @Test func guidedAnswer() throws {
        let (request, grammar) = try guided()
        var turn = TestTurn(request)
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
        let chat = try TurnTestTools.chat(TurnTestTemplate.hermes)
        var turn = TestTurn(request, chat: chat)
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

        var calling = TestTurn(request, chat: chat)
        try calling.writes("\n", until: "<tool_call>")
        calling.expectWritten(HermesCall.opening)
        try calling.chooses(HermesCall.named)
        try calling.fills(#" {"place": "Rome"}"#)
        #expect(calling.calls.count == 1)
    }
}
