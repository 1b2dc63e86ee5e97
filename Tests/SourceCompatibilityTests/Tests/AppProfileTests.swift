import Foundation
import FoundationModels
import Testing

@Suite("Profiles of an app")
struct AppProfileTests {
    @Test("a tool changes the stage of the session, with other instructions, tools and options")
    func stages() async throws {
        let model = ScriptedModel([AppToolTests.call("chooseHotel", #"{"hotel": "Ritz"}"#)], [.text("Pay now.")])
        let session = BookingSessions.booking(on: model)
        #expect(session.properties.bookingStage == .searching)
        #expect(try await session.respond(to: "A hotel!").content == "Pay now.")
        #expect(session.properties.bookingStage == .paying)
        #expect(BookingSessions.guests(of: session) == ["Ada"])
        #expect(session.transcript.toolOutputs.first.map { lines(of: $0.segments) } == ["Ritz it is, for 1."])

        let requests = await model.script.requests
        try #require(requests.count == 2)
        #expect(requests.map { $0.enabledToolDefinitions.map(\.name) } == [["chooseHotel"], ["pay"]])
        #expect(requests.map(\.generationOptions.temperature) == [0.9, 0])
        #expect(requests.map(\.generationOptions.samplingMode) == [nil, .greedy])
        #expect(requests.map(\.generationOptions.maximumResponseTokens) == [nil, 50])
        #expect(
            instructionLines(in: requests[0].transcript) == [
                "You book hotels.", "No smoking.", "The room has to be quiet.", "The room has to be clean.",
                "There are no guests yet.",
            ])
        #expect(instructionLines(in: requests[1].transcript) == ["You take payments."])
        #expect(kinds(of: session.transcript) == ["instructions", "prompt", "toolCalls", "toolOutput", "response"])
        #expect(instructionLines(in: session.transcript) == ["You take payments."])
    }

    @Test("options of a request override those of the profile; inner modifiers override outer ones")
    func precedence() async throws {
        let model = ScriptedModel([.text("a")], [.text("b")])
        let session = LanguageModelSession(profile: PoliteProfile(base: BookingProfile(model: model)))
        try await session.respond(to: "one")
        try await session.respond(to: "two", options: GenerationOptions(temperature: 0.5))
        #expect(await model.script.requests.map(\.generationOptions.temperature) == [0.9, 0.5])
    }

    @Test("a history transform changes the request, not the stored transcript")
    func historyTransform() async throws {
        let model = ScriptedModel([.text("a")], [.text("b")])
        let session = BookingSessions.polite(on: model, history: SampleTranscripts.text.history)
        try await session.respond(to: "one")
        try await session.respond(to: "two")
        let requests = await model.script.requests
        try #require(requests.count == 2)
        for request in requests {
            #expect(kinds(of: request.transcript) == ["instructions", "response", "prompt"])
        }
        #expect(requests[1].transcript.prompts.map(\.plainText) == ["two"])
        #expect(session.transcript.prompts.map(\.plainText) == ["A book about rain?", "one", "two"])
        #expect(session.transcript.responses.map(\.plainText) == ["Try “Drops”.", "a", "b"])
    }

    @Test("a custom modifier is used like those of the framework")
    func ownModifier() async throws {
        let model = ScriptedModel([.text("a")])
        let profile = BookingProfile(model: model).remembering(1)
        let session = LanguageModelSession(profile: profile, history: SampleTranscripts.text.history)
        try await session.respond(to: "one")
        let request = try #require(await model.script.requests.first)
        #expect(kinds(of: request.transcript) == ["instructions", "prompt"])
    }

    @Test("callbacks are called in the order of the events of a turn")
    func callbacks() async throws {
        let model = ScriptedModel(
            [.reasoning("hm"), AppToolTests.call("getWeather", #"{"city": "Oslo"}"#)], [.text("Cold.")])
        let log = EventLog()
        let session = LanguageModelSession(profile: ObservedProfile(model: model, tools: [WeatherTool()], log: log))
        try await session.respond(to: "Oslo?")
        let events = await log.events
        let expected = ["activate", "prompt", "reasoning", "call:getWeather", "output:true", "response:1"]
        let positions = try expected.map { try #require(events.firstIndex(of: $0), "\($0) in \(events)") }
        #expect(positions == positions.sorted(), "\(events)")
        // Both callbacks for prompts are called, with and without the prompt as argument.
        #expect(events.contains("prompt:1"))
        #expect(events.filter { $0 == "response:1" }.count == 1)
        #expect(!events.contains("deactivate"))
        #expect(await model.script.requests.map(\.contextOptions.reasoningLevel) == [.light, .light])
    }

    @Test("callbacks report when profiles are activated and deactivated")
    func activation() async throws {
        let model = ScriptedModel([.text("a")], [.text("b")], [.text("c")])
        let log = EventLog()
        let session = LanguageModelSession(profile: ShiftProfile(model: model, log: log))
        try await session.respond(to: "one")
        try await session.respond(to: "two")
        session.properties.isNight = true
        try await session.respond(to: "three")
        #expect(await log.events == ["day on", "day prompt", "day prompt", "day off", "night on", "night prompt"])
        #expect(
            await model.script.requests.map { instructionLines(in: $0.transcript) } == [
                ["Speak up."], ["Speak up."], ["Whisper."],
            ])
    }

    @Test("a callback that throws ends the request before the model is called")
    func throwingCallback() async throws {
        let model = ScriptedModel([.text("fine")])
        let session = LanguageModelSession(profile: GuardedProfile(model: model, word: "password"))
        let error = await failure { try await session.respond(to: "the password, please") }
        #expect(error as? GuardedProfile.Forbidden == GuardedProfile.Forbidden(word: "password"))
        #expect(await model.script.requests.isEmpty)
        #expect(!session.isResponding)
        #expect(try await session.respond(to: "hello").content == "fine")
    }

    @Test("[D4] a profile can trim the stored history before every request")
    func trimmed() async throws {
        let model = ScriptedModel(Script([[.text("ok")]], encore: true))
        let session = LanguageModelSession(profile: TrimmedProfile(model: model, limit: 3))
        for number in 1...4 { try await session.respond(to: "\(number)") }
        let requests = await model.script.requests
        #expect(requests.map(\.transcript.history.count) == [1, 3, 3, 3])
        #expect(requests.last?.transcript.prompts.map(\.plainText) == ["3", "4"])
        #expect(session.transcript.history.count == 4)
    }

    // MARK: Dynamic instructions and properties

    @Test("dynamic instructions are evaluated again for every request")
    func dynamicInstructions() async throws {
        let model = ScriptedModel([.text("a")], [.text("b")])
        let session = BookingSessions.rules([HouseRule(id: 1, text: "No pets."), HouseRule(id: 2, text: "No noise.")], on: model)
        try await session.respond(to: "one")
        BookingSessions.invite("Ben", to: session)
        try await session.respond(to: "two")
        let rules = [
            "You book hotels.", "No pets.", "No noise.", "The room has to be quiet.", "The room has to be clean.",
            "Rules are rules.",
        ]
        let requests = await model.script.requests
        try #require(requests.count == 2)
        #expect(instructionLines(in: requests[0].transcript) == rules + ["There are no guests yet."])
        #expect(instructionLines(in: requests[1].transcript) == rules + ["The guests are:", "Ben"])
        #expect(kinds(of: requests[1].transcript) == ["instructions", "prompt", "response", "prompt"])
    }

    @MainActor
    @Test("type-erased instructions")
    func erased() async throws {
        let strict = BookingSessions.erased(true, on: ScriptedModel([.text("ok")]))
        try await strict.respond(to: "go")
        #expect(instructionLines(in: strict.transcript)?.contains("Rules are rules.") == true)
    }

    @Test("properties have their default value, belong to one session, and keep their values")
    func properties() {
        let first = LanguageModelSession(model: EchoModel()), second = LanguageModelSession(model: EchoModel())
        #expect(first.properties.guests.isEmpty && first.properties.discount == nil)
        BookingSessions.invite("Ada", to: first)
        BookingSessions.invite("Ben", to: first)
        #expect(first.properties.guests == ["Ada", "Ben"])
        #expect(first.properties.discount == 0.1)
        #expect(second.properties.guests.isEmpty && second.properties.discount == nil)
    }

    @Test("the history is a session property")
    func historyProperty() async throws {
        let session = LanguageModelSession(model: EchoModel(), instructions: "Chat.")
        try await session.respond(to: "one")
        try await session.respond(to: "two")
        #expect(session.properties.history.map(\.id) == session.transcript.history.map(\.id))
        session.properties.history = session.properties.history.suffix(2)
        #expect(session.transcript.prompts.map(\.plainText) == ["two"])
        #expect(instructionLines(in: session.transcript) == ["Chat."])
    }
}
