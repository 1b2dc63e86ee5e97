import Foundation
import FoundationModels
import Testing

/// Tests with the small model of the package. They check only whether responses are valid, not their text.
@Suite(
    "An app with the default model", .serialized,
    .enabled(if: SystemLanguageModel.default.isAvailable, "the default model is not installed"))
struct AppDefaultModelTests {
    static func greedy(_ tokens: Int) -> GenerationOptions {
        GenerationOptions(samplingMode: .greedy, maximumResponseTokens: tokens)
    }

    @Test("[A1] the model is available according to all availability APIs")
    func availability() {
        #expect(SuggestionFeature.isVisible)
        #expect(SuggestionFeature.status == ModelStatus(.available))
        let facts = ModelFacts.facts(about: .default)
        #expect(Int(facts["window"] ?? "").map { $0 > 0 } == true)
        #expect(facts["forms"] == "yes" && facts["tools"] == "yes")
        #expect(facts["variant"]?.isEmpty == false)
    }

    @Test("[A3][A6] a response within its token limit is in the transcript; greedy sampling is deterministic")
    func text() async throws {
        let options = Self.greedy(16)
        let session = LanguageModelSession(instructions: "You name colours.")
        let response = try await session.respond(to: "Name a colour.", options: options)
        #expect(!response.content.isEmpty)
        #expect(response.usage.output.totalTokenCount <= 16)
        #expect(kinds(of: session.transcript) == ["instructions", "prompt", "response"])
        #expect(session.transcript.responses.first?.plainText == response.content)
        let again = try await LanguageModelSession(instructions: "You name colours.").respond(
            to: "Name a colour.", options: options)
        #expect(again.content == response.content)
        let cut = try await LanguageModelSession(instructions: "You name colours.").respond(
            to: "Name a colour.", options: Self.greedy(2))
        #expect(response.content.hasPrefix(cut.content))
    }

    @Test("[A3] the last snapshot equals the response of a request without streaming")
    func stream() async throws {
        let expected = try await LanguageModelSession().respond(to: "Count to ten.", options: Self.greedy(24)).content
        let stream = LanguageModelSession().streamResponse(to: "Count to ten.", options: Self.greedy(24))
        var last = ""
        for try await snapshot in stream {
            #expect(snapshot.content.hasPrefix(last))
            last = snapshot.content
        }
        #expect(last == expected)
        #expect(try await stream.collect().content == expected)
    }

    @Test("[B2][B3] a typed response satisfies its guides")
    func guided() async throws {
        for prompt in ["Plan an errand.", "Buy 500 nails, priority nine, from shelf Z99!"] {
            let plan = try await LanguageModelSession().respond(
                to: prompt, generating: ErrandPlan.self, options: Self.greedy(120)
            ).content
            #expect(["home", "work"].contains(plan.place))
            #expect((1...3).contains(plan.priority))
            #expect(plan.minutes.count == 2 && plan.minutes.allSatisfy { (0...9).contains($0) })
            #expect(try #/[A-C][0-9]/#.wholeMatch(in: plan.shelf) != nil)
        }
    }

    @Test("[B2] choices, numbers and lists as responses")
    func simpleTypes() async throws {
        let mood = try await LanguageModelSession().respond(
            to: "I slept badly.", generating: Mood.self, options: Self.greedy(12)
        ).content
        #expect(Mood.allCases.contains(mood))
        let content = try await LanguageModelSession().respond(
            to: "Three numbers.", schema: MenuForms.numbers(), options: Self.greedy(100)
        ).content
        #expect((1...3).contains(try content.value([GeneratedContent].self).count))
    }

    @Test("[B5] the response conforms to a schema created at run time")
    func dynamic() async throws {
        let dishes = ["leek soup", "rye bread"]
        let filler = FormFiller(session: LanguageModelSession())
        let chosen = try await filler.dishes("A big pizza, please.", from: dishes, options: Self.greedy(160))
        #expect(chosen.count == 2)
        #expect(chosen.allSatisfy { dishes.contains($0) })
    }

    @Test("[B7] the last snapshot of a typed stream equals the response, and available fields remain available")
    func typedStream() async throws {
        let stream = LanguageModelSession().streamResponse(
            to: "Plan an errand.", generating: ErrandPlan.self, options: Self.greedy(120))
        var places: [String] = []
        var fields = 0
        for try await snapshot in stream {
            let partial = snapshot.content
            let count = [partial.place != nil, partial.priority != nil, partial.minutes != nil, partial.shelf != nil]
                .filter { $0 }.count
            #expect(count >= fields)
            fields = count
            if let place = partial.place { places.append(place) }
        }
        let plan = try await stream.collect().content
        #expect(fields == 4)
        #expect(places.last == plan.place)
        #expect(places.allSatisfy { plan.place.hasPrefix($0) })
    }

    @Test("[B9] a structured response truncated by the token limit is an error, not a partial value")
    func cutShort() async throws {
        let session = LanguageModelSession()
        let error = await failure {
            try await session.respond(to: "A trip.", generating: TripPlan.self, options: Self.greedy(6))
        }
        #expect((error as? LanguageModelSession.GenerationError).map(AdviceDesk.name) == "decodingFailure")
        #expect(error is GeneratedContent.ParsingError)
        #expect(!session.isResponding)
        #expect(
            try await session.respond(to: "Mood?", generating: Mood.self, options: Self.greedy(12)).content.generatedContent
                .isComplete)
    }

    @Test("[A4] isResponding is true during a request, and a second request is an error", .timeLimit(.minutes(2)))
    func oneAtATime() async throws {
        let session = LanguageModelSession()
        // The element count of the list makes the response long enough.
        let schema = try GenerationSchema(
            root: DynamicGenerationSchema(
                arrayOf: DynamicGenerationSchema(type: ErrandPlan.self), minimumElements: 12, maximumElements: 12),
            dependencies: [])
        let running = Task {
            try await session.respond(to: "Twelve errands.", schema: schema, options: Self.greedy(1_000)).content
        }
        #expect(try await eventually { session.isResponding })
        let error = await failure { try await session.respond(to: "Me too!") }
        #expect(error as? LanguageModelSession.Error == .concurrentRequests)
        let plans = try await running.value.value([ErrandPlan].self)
        #expect(plans.count == 12 && plans.allSatisfy { (1...3).contains($0.priority) })
        #expect(!session.isResponding)
        #expect(kinds(of: session.transcript) == ["prompt", "response"])
    }

    @Test("[B7] a session is usable after a cancelled request", .timeLimit(.minutes(1)))
    func cancelled() async throws {
        let session = LanguageModelSession()
        let running = Task { try await session.respond(to: "Tell a long story.", options: Self.greedy(400)).content }
        #expect(try await eventually { session.isResponding })
        running.cancel()
        _ = await running.result
        #expect(try await eventually { !session.isResponding })
        #expect(
            try await session.respond(to: "Mood?", generating: Mood.self, options: Self.greedy(12)).content.generatedContent
                .isComplete)
    }

    @Test("[D2] token counts before a request: each part counts, and longer parts count more")
    func counting() async throws {
        let check = PreflightCheck()
        let session = LanguageModelSession(instructions: "Be brief.")
        let short = try await check.check(session, adding: "Hello")
        let long = try await check.check(session, adding: String(repeating: "Hello, how are you? ", count: 50))
        #expect(short.used > 0 && long.used > short.used + 100)
        #expect(short.fits)
        #expect(short.limit == Int(Double(SystemLanguageModel.default.contextSize) * 0.85))

        let cost = try await check.cost(
            instructions: Instructions("Be brief."), tools: [WeatherTool(), TimerTool()],
            schema: TripPlan.generationSchema, prompt: Prompt("Hello"))
        #expect(cost.count == 4 && cost.values.allSatisfy { $0 > 0 })
        let oneTool = try await check.model.tokenCount(for: [WeatherTool()])
        #expect(oneTool < cost["tools"] ?? 0)
        let history = try await check.cost(of: Array(SampleTranscripts.text))
        #expect(try await check.cost(of: Array(SampleTranscripts.text.prefix(1))) < history)
        #expect(try await check.model.tokenCount(for: SampleTranscripts.text) == history)
    }

    @Test("[D2] slices, lists and builders are counted as well")
    func countingForms() async throws {
        let session = LanguageModelSession(transcript: SampleTranscripts.text)
        let counts = try await Idioms(session: session).counts(by: .default)
        #expect(counts.count == 4 && counts.allSatisfy { $0 > 0 })
        #expect(try await counts[0] < SystemLanguageModel.default.tokenCount(for: session.transcript))
    }

    @Test("[D3] a prompt that exceeds the context window is an error, and the transcript is unchanged", .timeLimit(.minutes(2)))
    func overflow() async throws {
        let session = LanguageModelSession(instructions: "Be brief.")
        let size = SystemLanguageModel.default.contextSize
        let prompt = String(repeating: "one two three four five six seven ", count: size / 6)
        #expect(try await SystemLanguageModel.default.tokenCount(for: prompt) > size)
        let before = session.transcript
        let error = try #require(await failure { try await session.respond(to: prompt, options: Self.greedy(4)) })
        #expect((error as? LanguageModelSession.GenerationError).map(AdviceDesk.name) == "exceededContextWindowSize")
        guard case .contextSizeExceeded(let details) = error as? LanguageModelError else {
            Issue.record("not a context size error: \(error)")
            return
        }
        #expect(details.contextSize == size && details.tokenCount > size)
        #expect(session.transcript.responses.isEmpty)
        #expect(instructionLines(in: session.transcript) == instructionLines(in: before))
        #expect(!session.isResponding)
    }

    @Test("[A9] the content tagging use case generates a structure with tags")
    func tagging() async throws {
        let tags = try await Tagger().tags(of: "We baked bread and were happy.", options: Self.greedy(200))
        // Each list has what the guides ask for, and at least one says something.
        let all = tags.topics + tags.emotions + tags.actions + tags.objects
        #expect(all.contains { !$0.isEmpty } && all.allSatisfy { $0.count < 200 }, "\(tags)")
    }

    @Test("[F1] English is supported in different regions")
    func languages() {
        #expect(ModelLanguages.codes.contains("en"))
        #expect(ModelLanguages.listsCurrentLanguage == ModelLanguages.canAnswerHere)
        for identifier in ["en_US", "en_GB", "en_AU", "en_NZ"] {
            #expect(ModelLanguages.canAnswer(in: Locale(identifier: identifier)), "\(identifier)")
        }
        #expect(!ModelLanguages.canAnswer(in: Locale(identifier: "tlh")))
        #expect(ModelLanguages.contains(Locale.Language(identifier: "en")))
    }

    @Test("[C1] typed responses are valid in sessions with tools")
    func toolsAndForms() async throws {
        let session = LanguageModelSession(tools: [WeatherTool()], instructions: "Be brief.")
        let options = GenerationOptions(
            samplingMode: .greedy, maximumResponseTokens: 120, toolCallingMode: .disallowed)
        let plan = try await session.respond(to: "An errand.", generating: ErrandPlan.self, options: options).content
        #expect((1...3).contains(plan.priority))
        #expect(session.transcript.toolCalls.isEmpty)
    }
}
