import Testing

@testable import Inference

/// Calls that do not fit.
@Suite struct TurnCallErrorTests {
    private func tooLong(_ argument: String?) -> GenerationFailure {
        .argumentTooLong(tool: "get_weather", argument: argument, contextSize: 4_096)
    }

    @Test func argumentsThatDoNotFit() throws {
        let turn = try HermesCall.turn()
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
        var turn = TestTurn(chat: try TurnTestTools.chat(TurnTestTemplate.tagged))
        try turn.writes("", until: "<tool_call>")
        try turn.chooses("get_weather>\n")
        try turn.chooses("<parameter=place>\n")
        let inPlace = turn
        #expect(throws: tooLong("place")) {
            var turn = inPlace
            try turn.ends(PhaseEnd(reason: .contextFull, tokens: TurnTestBytes.plain("Ro"), text: "Ro"))
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
        var turn = TestTurn(chat: try TurnTestTools.chat(TurnTestTemplate.hermes))
        try turn.writes("", until: "<tool_call>")
        #expect(turn.plan.failure(needed: 9, available: 2) == .budgetTooSmall(needed: 9, available: 2))
        try turn.ends(PhaseEnd(reason: .contextFull, tokens: TurnTestBytes.plain("get_w"), text: "get_w"))
        turn.expectEnd(.contextFull)
        #expect(turn.calls.isEmpty)
    }
}
