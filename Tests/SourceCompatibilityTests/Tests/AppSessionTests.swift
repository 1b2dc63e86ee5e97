import Foundation
import FoundationModels
import Testing

/// Sessions with models of the app, so that no test depends on generated text.
@Suite("Sessions of an app")
struct AppSessionTests {
    // MARK: Creation

    @Test("[A2] a session without instructions starts with an empty transcript, and records prompt and response")
    func blank() async throws {
        let session = KitchenSessions().blank(on: EchoModel())
        #expect(session.transcript.isEmpty)
        let response = try await session.respond(to: "two boiled eggs")
        #expect(response.content == "two boiled eggs")
        #expect(kinds(of: session.transcript) == ["prompt", "response"])
        #expect(session.transcript.prompts.first?.plainText == "two boiled eggs")
        #expect(session.transcript.responses.first?.plainText == "two boiled eggs")
    }

    @Test("[A2] instructions as text, as a value and from a builder are the first transcript entry")
    func instructions() async throws {
        let kitchen = KitchenSessions(allergies: ["nuts", "milk"])
        let teacher = kitchen.teacher(on: EchoModel())
        try await teacher.respond(to: "go")
        #expect(instructionLines(in: teacher.transcript) == ["You are a patient cooking teacher."])

        let critic = kitchen.critic(on: EchoModel(), Instructions("You judge recipes."))
        try await critic.respond(to: "go")
        #expect(instructionLines(in: critic.transcript) == ["You judge recipes."])

        let none = kitchen.critic(on: EchoModel(), nil)
        try await none.respond(to: "go")
        #expect(kinds(of: none.transcript) == ["prompt", "response"])

        let planner = kitchen.planner(on: ScriptedModel([.text("ok")]))
        try await planner.respond(to: "go")
        #expect(
            instructionLines(in: planner.transcript)
                == ["You plan a week of dinners.", "Never use nuts.", "Never use milk."])
    }

    @Test("[A2] a session with the system model has its instructions in the transcript before the first request")
    func systemModelSessions() throws {
        let kitchen = KitchenSessions(isMetric: false, allergies: ["nuts"], houseRules: "Be tidy.")
        #expect(kitchen.blank().transcript.isEmpty)
        #expect(kitchen.tagger().transcript.isEmpty)
        let expected: [(LanguageModelSession, [String])] = [
            (kitchen.teacher(), ["You are a patient cooking teacher. Explain one step at a time."]),
            (kitchen.teacher(speaking: "Danish"), ["You are a patient cooking teacher. Answer in Danish."]),
            (kitchen.critic(), ["You judge recipes in one honest sentence."]),
            (kitchen.planner(), ["You plan a week of dinners.", "Give weights in ounces.", "Never use nuts."]),
            (kitchen.shopper(noting: "Buy little."), ["Buy little."]),
            (kitchen.shopperWithList(["tea"]), ["Write the shopping list. Look into the pantry first.", "tea"]),
            (kitchen.quick(), ["Suggest dishes that take at most fifteen minutes."]),
            (kitchen.rewriter(), ["Rewrite the reader's recipe in plain words."]),
            (try kitchen.houseKeeper(), ["Be tidy.", "Ask before you throw anything away."]),
        ]
        for (session, lines) in expected {
            #expect(instructionLines(in: session.transcript) == lines)
            #expect(session.transcript.count == 1)
        }
        #expect(kitchen.continued(from: SampleTranscripts.text).transcript == SampleTranscripts.text)
    }

    @Test("[A2] a session with only tools has an instructions entry that lists them")
    func toolsAlone() async throws {
        let session = LanguageModelSession(model: ScriptedModel([.text("ok")]), tools: [PantryTool()])
        try await session.respond(to: "go")
        guard case .instructions(let entry)? = session.transcript.first else {
            Issue.record("no instructions entry")
            return
        }
        #expect(entry.segments.isEmpty)
        #expect(entry.toolDefinitions.map(\.name) == ["lookUpPantry"])
        #expect(entry.toolDefinitions.first?.description == PantryTool().description)
    }

    @Test("[A8] an error in the instructions builder is thrown by the initializer")
    func throwingBuilder() throws {
        #expect(throws: KitchenProblem.houseRulesMissing) { try KitchenSessions().houseKeeper(on: EchoModel()) }
        #expect(throws: KitchenProblem.houseRulesMissing) { try KitchenSessions().houseKeeper() }
        #expect(throws: Never.self) { try KitchenSessions(houseRules: "Be tidy.").houseKeeper(on: EchoModel()) }
    }

    @Test("[A2] the model can be chosen at run time")
    func existentialModel() async throws {
        let session = KitchenSessions().teacher(onDevice: false, otherwise: EchoModel(prefix: "well "))
        #expect(try await session.respond(to: "yes").content == "well yes")
    }

    @Test("[A2] a session continues from a transcript, and the model receives all of it")
    func continued() async throws {
        let model = ScriptedModel([.text("Another one.")])
        let session = KitchenSessions().continued(on: model, from: SampleTranscripts.text)
        #expect(session.transcript == SampleTranscripts.text)
        try await session.respond(to: "And snow?")
        let request = try #require(await model.script.requests.first)
        #expect(kinds(of: request.transcript) == ["instructions", "prompt", "response", "prompt"])
        #expect(request.transcript.map(\.id).dropLast() == ["i-1", "p-1", "r-1"])
        #expect(session.transcript.count == 5)
    }

    // MARK: Requests

    @Test("[A3] text, prompt value and builder make the same request")
    func promptForms() async throws {
        for form in 0..<3 {
            let session = LanguageModelSession(model: EchoModel())
            let requests = NoteRequests(session: session)
            switch form {
            case 0: _ = try await session.respond(to: "Summarize these notes.\na\nb")
            case 1: _ = try await requests.summary(of: Prompt("Summarize these notes.\na\nb"))
            default: _ = try await requests.summary(of: ["a", "b"], for: nil)
            }
            let prompt = try #require(session.transcript.prompts.first)
            #expect(lines(of: prompt.segments) == ["Summarize these notes.", "a", "b"])
            #expect(prompt.responseFormat == nil)
        }
    }

    @Test("[A2] a response can be ignored; the session keeps both turns")
    func discarded() async throws {
        let session = LanguageModelSession(model: EchoModel())
        try await NoteRequests(session: session).remember("Ada has a cat.")
        #expect(kinds(of: session.transcript) == ["prompt", "response", "prompt", "response"])
        #expect(session.transcript.prompts.last?.plainText == "Remember this too: Ada has a cat.")
    }

    @Test("[A3] a response contains only the entries of its own request")
    func transcriptEntries() async throws {
        let session = LanguageModelSession(model: EchoModel())
        try await session.respond(to: "one")
        let second = try await session.respond(to: "two")
        #expect(second.transcriptEntries.last == session.transcript.last)
        #expect(!second.transcriptEntries.contains { $0.id == session.transcript[0].id })
    }

    static let summaryJSON = #"{"title": "Trip", "tasks": ["pack", "book"]}"#

    @Test("[B1] typed responses with three forms of prompts, with the older and the newer functions")
    func typedForms() async throws {
        let expected = NoteSummary(title: "Trip", tasks: ["pack", "book"])
        let session = LanguageModelSession(model: FormEchoModel(json: Self.summaryJSON))
        let older = NoteRequests(session: session)
        #expect(try await older.outline(of: "a note") == expected)
        #expect(try await older.outline(of: Prompt("a note")) == expected)
        #expect(try await older.outline(of: ["a", "b"]) == expected)
        #expect(try await older.inferredOutline(of: "a note") == expected)
        let newer = AnnotatedNoteRequests(session: session)
        #expect(try await newer.outline(of: "a note").content == expected)
        #expect(try await newer.outline(of: Prompt("a note")) == expected)
        #expect(try await newer.outline(of: ["a", "b"]) == expected)

        let prompts = session.transcript.prompts
        #expect(prompts.count == 7)
        #expect(prompts.allSatisfy { $0.responseFormat?.name == "NoteSummary" })
        // Whether the schema is in the prompt is recorded; the default is true.
        #expect(prompts.map(\.contextOptions.includeSchemaInPrompt) == [true, false, true, true, false, true, true])
        #expect(prompts.filter { $0.metadata["requestID"] != nil }.count == 1)
    }

    @Test("[B1] numbers, Booleans and arrays as responses")
    func simpleTypes() async throws {
        func requests(_ json: String) -> NoteRequests {
            NoteRequests(session: LanguageModelSession(model: FormEchoModel(json: json)))
        }
        #expect(try await requests("3").numberOfTasks(in: "note") == 3)
        #expect(try await requests("true").isUrgent("note"))
        #expect(
            try await requests("[\(Self.summaryJSON), \(Self.summaryJSON)]").outlines(of: "note").map(\.title) == [
                "Trip", "Trip",
            ])
    }

    @Test("[B5] responses with a schema, with three forms of prompts, older and newer functions")
    func schemaForms() async throws {
        let schema = NoteSummary.generationSchema
        let session = LanguageModelSession(model: FormEchoModel(json: Self.summaryJSON))
        let older = NoteRequests(session: session)
        let newer = AnnotatedNoteRequests(session: session)
        let contents = [
            try await older.content(of: "a note", like: schema),
            try await older.content(of: Prompt("a note"), like: schema),
            try await older.content(of: ["a", "b"], like: schema),
            try await newer.content(of: "a note", like: schema),
            try await newer.content(of: Prompt("a note"), like: schema),
            try await newer.content(of: ["a", "b"], like: schema),
        ]
        for content in contents {
            #expect(content.isComplete)
            #expect(ContentInspector.keys(of: content) == ["title", "tasks"])
            #expect(try content.value([String].self, forProperty: "tasks") == ["pack", "book"])
        }
        #expect(session.transcript.prompts.allSatisfy { $0.responseFormat?.name == "NoteSummary" })
    }

    @Test("[B1] a typed request passes a schema to the model, a text request does not")
    func schemaInRequest() async throws {
        let model = ScriptedModel([.text(Self.summaryJSON)], [.text("plain")])
        let session = LanguageModelSession(model: model)
        try await session.respond(to: "form", generating: NoteSummary.self)
        try await session.respond(to: "text")
        let requests = await model.script.requests
        try #require(requests.count == 2)
        let schema = try #require(requests[0].schema)
        #expect(try JSON(encoding: schema) == JSON(encoding: NoteSummary.generationSchema))
        #expect(requests[1].schema == nil)
        #expect(requests[0].id != requests[1].id)
    }

    // MARK: Options

    @Test("[A6] options are passed to the model and the transcript, with older and newer names")
    func options() async throws {
        let model = ScriptedModel(Script([[.text("ok")]], encore: true))
        let session = LanguageModelSession(model: model)
        for style in NoteStyle.allCases {
            try await session.respond(to: "go", options: style.options)
        }
        try await session.respond(to: "go", options: NoteSampling.short)
        let sent = await model.script.requests.map(\.generationOptions)
        #expect(sent.map(\.temperature) == [nil, 0.7, 2, nil, nil, nil])
        #expect(sent.map(\.maximumResponseTokens) == [nil, 400, nil, nil, nil, 60])
        #expect(
            sent.map(NoteSampling.label) == [
                "greedy", "top 40", "model's own", "p 0.9, seed 20250915", "model's own", "top 20, seed 7",
            ])
        #expect(session.transcript.prompts.map(\.options) == sent)
    }

    @Test("[A6] an option set with one name can be read with the other")
    func optionNames() {
        var options = GenerationOptions(sampling: .greedy)
        #expect(options.samplingMode == .greedy)
        options.samplingMode = .random(top: 3)
        #expect(options.sampling == .random(top: 3))
        #expect(options == GenerationOptions(samplingMode: .random(top: 3)))
        #expect(options != GenerationOptions(samplingMode: .random(top: 4)))
        #expect(
            GenerationOptions.SamplingMode.random(probabilityThreshold: 0.5).kind == .randomProbabilityThreshold(0.5, seed: nil))
        let warmer = NoteSampling.warmer(than: NoteSampling.exact)
        #expect(warmer.temperature == 0.75)
        #expect(NoteSampling.label(of: warmer.toolCallingMode) == "tools allowed")
        #expect(NoteSampling.label(of: NoteSampling.exact.toolCallingMode) == "tools as the model likes")
        #expect(NoteSampling.exact.samplingMode == .greedy)
    }

    @Test("context options and metadata of a request are passed to the model and its prompt entry")
    func contextAndMetadata() async throws {
        let model = ScriptedModel([.text("ok")])
        let session = LanguageModelSession(model: model)
        _ = try await AnnotatedNoteRequests(session: session, requestID: "n-7").reasonedSummary(of: "note")
        let request = try #require(await model.script.requests.first)
        #expect(request.contextOptions.reasoningLevel == .moderate)
        #expect(try request.metadata["requestID"]?.value(String.self) == "n-7")
        #expect(try request.metadata["tags"]?.value([String].self) == ["notes", "work"])
        let prompt = try #require(session.transcript.prompts.first)
        #expect(prompt.contextOptions.reasoningLevel == .moderate)
        #expect(try prompt.metadata["attempt"]?.value(Int.self) == 1)
    }

    // MARK: State

    @Test("[A4] a second concurrent request is an error and does not affect the first one", .timeLimit(.minutes(1)))
    func oneAtATime() async throws {
        let gate = Gate()
        let model = ScriptedModel([.text("first"), .wait(gate), .text(" done")], [.text("second")])
        let session = LanguageModelSession(model: model)
        #expect(!session.isResponding)
        async let first = session.respond(to: "one").content
        #expect(try await eventually { await gate.arrivals == 1 })
        #expect(session.isResponding)
        #expect(try await LetterWriter(session: session).write(about: "tea") == nil)

        let refused = await failure { try await session.respond(to: "two") }
        #expect(refused as? LanguageModelSession.Error == .concurrentRequests)
        #expect((refused as? LanguageModelSession.GenerationError).map(AdviceDesk.name) == "concurrentRequests")
        let streamed = await failure { try await session.streamResponse(to: "two").collect() }
        #expect(streamed as? LanguageModelSession.Error == .concurrentRequests)

        await gate.open()
        #expect(try await first == "first done")
        #expect(!session.isResponding)
        #expect(try await session.respond(to: "three").content == "second")
        #expect(kinds(of: session.transcript) == ["prompt", "response", "prompt", "response"])
    }

    @MainActor
    @Test("[A4] isResponding is observable", .timeLimit(.minutes(1)))
    func activityIsObservable() async throws {
        let gate = Gate()
        let session = LanguageModelSession(model: ScriptedModel([.wait(gate), .text("ok")]))
        let monitor = SessionMonitor(session: session)
        #expect(monitor.status == "ready")
        var changes = monitor.changeOfActivity().makeAsyncIterator()
        async let answer = session.respond(to: "go").content
        #expect(await changes.next() != nil)
        #expect(try await eventually { session.isResponding })
        #expect(monitor.status == "writing")
        await gate.open()
        #expect(try await answer == "ok")
        #expect(monitor.bubbles.count == 2)
    }

    @Test("[A7] prewarming passes the transcript so far to the model")
    func prewarm() async throws {
        let model = ScriptedModel([.text("ok")])
        let session = LanguageModelSession(model: model, instructions: "Be brief.")
        session.prewarm()
        session.prewarm(promptPrefix: Prompt("Write a letter about "))
        #expect(try await eventually { await model.script.prewarmed.count == 2 })
        for transcript in await model.script.prewarmed {
            #expect(instructionLines(in: transcript) == ["Be brief."])
        }
        #expect(session.transcript.prompts.isEmpty)
    }

    @Test("usage: a response has its own usage, the session has the sum")
    func usage() async throws {
        let model = ScriptedModel(
            [.text("a"), .text("b"), .usage(input: 10, cached: 4, output: 2)],
            [.text("c"), .usage(input: 20, cached: 12, output: 1)])
        let session = LanguageModelSession(model: model)
        let first = try await session.respond(to: "one")
        #expect(first.usage.input.totalTokenCount == 10)
        #expect(first.usage.input.cachedTokenCount == 4)
        #expect(first.usage.output.totalTokenCount == 2)
        let second = try await session.respond(to: "two")
        #expect(second.usage.input.totalTokenCount == 20)
        #expect(session.usage.input.totalTokenCount == 30)
        #expect(session.usage.input.cachedTokenCount == 16)
        #expect(session.usage.output.totalTokenCount == 3)
    }

    @Test("usage: if the model reports no totals, the token counts of its texts are summed")
    func usageOfTexts() async throws {
        let session = LanguageModelSession(model: ScriptedModel([.reasoning("hm"), .text("a"), .text("b")]))
        let response = try await session.respond(to: "one")
        #expect(response.usage.output.totalTokenCount == 3)
        #expect(response.usage.output.reasoningTokenCount == 1)
    }

    @Test("all requests of a session with one configuration use one executor")
    func executors() async throws {
        let model = ScriptedModel([.text("a")], [.text("b")])
        let session = LanguageModelSession(model: model)
        try await session.respond(to: "one")
        try await session.respond(to: "two")
        #expect(await model.script.executors == 1)
    }

    @Test("reasoning, metadata and replaced text are in the transcript")
    func events() async throws {
        let model = ScriptedModel([
            .reasoning("Let me "), .reasoning("think."), .signature(Data([7])),
            .text("draft"), .replaceText("final"), .metadata(["modelID": "m-1"]),
        ])
        let session = LanguageModelSession(model: model)
        let response = try await session.respond(to: "go")
        #expect(response.content == "final")
        #expect(kinds(of: session.transcript) == ["prompt", "reasoning", "response"])
        guard case .reasoning(let reasoning) = session.transcript[1] else { return }
        #expect(lines(of: reasoning.segments) == ["Let me think."])
        #expect(reasoning.signature == Data([7]))
        #expect(try session.transcript.responses.first?.metadata["modelID"]?.value(String.self) == "m-1")
    }

    // MARK: Idioms

    @Test("[A2] separate sessions run concurrently")
    func sideBySide() async throws {
        let answers = try await Idioms.answers(to: ["a", "b", "c"]) { LanguageModelSession(model: EchoModel(prefix: "> ")) }
        #expect(answers == ["a": "> a", "b": "> b", "c": "> c"])
        #expect(try await Idioms.pair(on: EchoModel()) == ("left", "right"))
    }

    @Test("streams, transcripts and responses can be used as ordinary Swift values")
    func idioms() async throws {
        let idioms = Idioms(session: LanguageModelSession(model: EchoModel(), instructions: "Chat."))
        let lengths = try await idioms.lengths("one two three")
        #expect(lengths == lengths.sorted() && lengths.last == 13)
        #expect(try await idioms.multiline("Ada") == "Write a greeting.\nIt is for Ada.")
        #expect(try await idioms.joined("a-b".split(separator: "-")) == "Join: a b")
        let response = try await idioms.session.respond(to: "so far")
        let next = try await idioms.next(after: response)
        #expect(next.split(whereSeparator: \.isWhitespace) == ["Go", "on", "from", "here:", "so", "far"])
        #expect(idioms.firstQuestion()?.id == idioms.session.transcript[1].id)
        #expect(kinds(of: idioms.firstAndLast().transcript) == ["instructions", "response"])
        #expect(kinds(of: idioms.shortened(to: 2, on: EchoModel()).transcript) == ["prompt", "response"])

        let form = LanguageModelSession(model: FormEchoModel(json: Self.summaryJSON))
        #expect(try await Idioms.onMainActor(form).content.title == "Trip")
    }

    @Test("[A3] reading a stream can be stopped early")
    func leftEarly() async throws {
        let session = LanguageModelSession(model: EchoModel())
        let sentence = try #require(try await Idioms(session: session).firstSentence("It rains. It pours. It stops."))
        #expect(sentence.hasPrefix("It rains."))
    }
}
