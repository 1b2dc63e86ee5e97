import Foundation
import FoundationModels
import Testing

@Suite("Errors in an app")
struct AppErrorTests {
    /// Each error of the newer type with its name in the older type, if it has one.
    static let names: [(LanguageModelError, String?)] = zip(
        ConciergeDesk.samples,
        [
            "exceededContextWindowSize", "rateLimited", "guardrailViolation", "refusal", nil, nil, "unsupportedGuide",
            "unsupportedLanguageOrLocale", nil,
        ]
    ).map { ($0, $1) }

    @Test("[G] an error of a model can be caught by its newer and its older type", arguments: names.indices)
    func bothFamilies(index: Int) async throws {
        let (thrown, olderName) = Self.names[index]
        let session = LanguageModelSession(model: ScriptedModel([.failure(thrown)], [.text("fine again")]))
        let error = try #require(await failure { try await session.respond(to: "go") })

        let newer = try #require(error as? LanguageModelError)
        #expect(ConciergeDesk.name(of: newer) == ConciergeDesk.name(of: thrown))
        #expect(ConciergeDesk.advice(for: newer) == ConciergeDesk.advice(for: thrown))
        let older = error as? LanguageModelSession.GenerationError
        #expect(older.map(AdviceDesk.name) == olderName)
        if let older {
            #expect(AdviceDesk.debugDescription(of: older) == Self.debugDescription(of: thrown))
        }

        // Nothing was generated before the error, so the transcript is reverted.
        #expect(session.transcript.isEmpty)
        #expect(!session.isResponding)
        #expect(try await session.respond(to: "go").content == "fine again")
    }

    static func debugDescription(of error: LanguageModelError) -> String {
        switch error {
        case .contextSizeExceeded(let details): details.debugDescription
        case .rateLimited(let details): details.debugDescription
        case .guardrailViolation(let details): details.debugDescription
        case .refusal(let details): details.debugDescription
        case .unsupportedGenerationGuide(let details): details.debugDescription
        case .unsupportedLanguageOrLocale(let details): details.debugDescription
        default: ""
        }
    }

    @Test("[G] catch clauses for the errors of the first release work")
    func olderClauses() async throws {
        func ask(_ error: LanguageModelError) async throws -> AdviceDesk.Outcome {
            try await AdviceDesk(session: LanguageModelSession(model: ScriptedModel([.failure(error)]))).ask("go")
        }
        #expect(try await ask(ConciergeDesk.samples[0]) == .startOver("too long"))
        #expect(try await ask(ConciergeDesk.samples[2]) == .sorry("Let us talk about something else."))
        #expect(try await ask(ConciergeDesk.samples[7]) == .sorry("I do not speak that language yet."))
        // Other errors are thrown to the caller.
        let timeout = await failure { try await ask(ConciergeDesk.samples[8]) }
        #expect(timeout is LanguageModelError)
        let brief = AdviceDesk(session: LanguageModelSession(model: ScriptedModel([.failure(ConciergeDesk.samples[1])])))
        #expect(await brief.askBriefly("go") == "rateLimited")
    }

    @Test("[G] catch clauses for the errors of the second release work")
    func newerClauses() async throws {
        func ask(_ error: any Error) async -> ConciergeDesk.Outcome {
            await ConciergeDesk(session: LanguageModelSession(model: ScriptedModel([.failure(error)]))).ask("go")
        }
        #expect(await ask(ConciergeDesk.samples[0]) == .tooLong(by: 904))
        let date = Date(timeIntervalSince1970: 1_000)
        #expect(await ask(LanguageModelError.rateLimited(.init(resetDate: date, debugDescription: ""))) == .later(date))
        #expect(await ask(ConciergeDesk.samples[8]) == .other("timeout"))
    }

    @Test("[E2] a refusal has an explanation, as a response and as a stream")
    func refusal() async throws {
        let session = LanguageModelSession(model: ScriptedModel([.failure(ConciergeDesk.samples[3])]))
        let error = try #require(await failure { try await session.respond(to: "go") })
        guard case .refusal(let refusal) = error as? LanguageModelError else {
            Issue.record("not a refusal: \(error)")
            return
        }
        #expect(try await refusal.explanation.content == "I would rather not.")
        #expect(try await refusal.explanationStream.collect().content == "I would rather not.")
        let desk = ConciergeDesk(session: LanguageModelSession(model: ScriptedModel([.failure(ConciergeDesk.samples[3])])))
        #expect(await desk.ask("go") == .refused("I would rather not."))
    }

    @Test("[G] missing assets")
    func assets() async throws {
        let missing = SystemLanguageModel.Error.assetsUnavailable(.init(debugDescription: "no file"))
        let session = LanguageModelSession(model: ScriptedModel([.failure(missing)], [.failure(missing)]))
        #expect(await ConciergeDesk(session: session).plan("go") == .unavailable)
        let error = await failure { try await session.respond(to: "go") }
        #expect((error as? LanguageModelSession.GenerationError).map(AdviceDesk.name) == "assetsUnavailable")
    }

    struct Offline: Error, Equatable { let host: String }

    @Test("an error type of the model is thrown unchanged")
    func ownError() async throws {
        let session = LanguageModelSession(model: ScriptedModel([.failure(Offline(host: "shelf"))]))
        let error = await failure { try await session.respond(to: "go") }
        #expect(error as? Offline == Offline(host: "shelf"))
    }

    @Test(
        "[B9] a truncated structured response is an error with the text so far, with both error types",
        arguments: [
            #"{"title": "Trip", "tasks": ["pa"#, #"{"title": "Trip"}"#, "",
        ])
    func cutShort(json: String) async throws {
        let session = LanguageModelSession(model: ScriptedModel([.text(json)], [.text("ok")]))
        let error = try #require(await failure { try await session.respond(to: "go", generating: NoteSummary.self) })
        #expect((error as? GeneratedContent.ParsingError)?.rawContent == json)
        #expect((error as? LanguageModelSession.GenerationError).map(AdviceDesk.name) == "decodingFailure")
        #expect(!session.isResponding)
        #expect(try await session.respond(to: "go").content == "ok")
    }

    @Test("[B9] the same in a stream whose previous snapshots are valid")
    func cutShortStream() async throws {
        let json = #"{"title": "Trip", "tasks": ["pack", "#
        let session = LanguageModelSession(model: ScriptedModel([.text(json)]))
        var last: NoteSummary.PartiallyGenerated?
        let error = await failure {
            for try await snapshot in session.streamResponse(to: "go", generating: NoteSummary.self) { last = snapshot.content }
        }
        #expect(error is GeneratedContent.ParsingError)
        #expect(last?.title == "Trip")
        #expect(last?.tasks?.first == "pack")
    }

    // MARK: Capabilities

    @Test("a request that needs a missing capability is an error before the model is called")
    func capabilities() async throws {
        func missing(
            _ capabilities: [LanguageModelCapabilities.Capability], tools: [any Tool] = [],
            _ request: (LanguageModelSession) async throws -> Void
        ) async throws -> LanguageModelCapabilities.Capability? {
            let model = ScriptedModel(Script([[.text("ok")]], encore: true), capabilities: capabilities)
            let session = LanguageModelSession(model: model, tools: tools)
            let error = await failure { try await request(session) }
            #expect(await model.script.requests.isEmpty)
            guard case .unsupportedCapability(let details) = error as? LanguageModelError else { return nil }
            return details.capability
        }
        let picture = try Self.picture()
        defer { try? FileManager.default.removeItem(at: picture) }
        #expect(
            try await missing([.toolCalling, .reasoning, .vision]) {
                try await $0.respond(to: "go", generating: NoteSummary.self)
            } == .guidedGeneration)
        #expect(
            try await missing([.guidedGeneration, .reasoning, .vision], tools: [PantryTool()]) {
                try await $0.respond(to: "go")
            } == .toolCalling)
        #expect(
            try await missing([.guidedGeneration, .toolCalling, .vision]) {
                try await $0.respond(to: "go", contextOptions: ContextOptions(reasoningLevel: .deep))
            } == .reasoning)
        #expect(
            try await missing([.guidedGeneration, .toolCalling, .reasoning]) {
                try await $0.respond { Attachment(imageURL: picture) }
            } == .vision)
    }

    /// An image of one pixel.
    static func picture() throws -> URL {
        let base64 =
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).png")
        try #require(Data(base64Encoded: base64)).write(to: url)
        return url
    }

    // MARK: Recovery

    static let overflow = LanguageModelError.contextSizeExceeded(
        .init(contextSize: 10, tokenCount: 12, debugDescription: "full"))

    @Test("[D4] after a context overflow, one retry with the first and the last entry")
    func condensedRetry() async throws {
        let model = ScriptedModel([.text("A")], [.text("B")], [.failure(Self.overflow)], [.text("C")])
        let chat = LongChat(LanguageModelSession(model: model, instructions: "Chat.")) {
            LanguageModelSession(model: model, transcript: $0)
        }
        #expect(try await chat.send("one") == "A")
        #expect(try await chat.send("two") == "B")
        #expect(try await chat.send("three") == "C")
        #expect(await chat.restarts == 1)
        let last = try #require(await model.script.requests.last)
        #expect(kinds(of: last.transcript) == ["instructions", "response", "prompt"])
        #expect(last.transcript.responses.first?.plainText == "B")
        #expect(await kinds(of: chat.session.transcript) == ["instructions", "response", "prompt", "response"])
    }

    @Test("[D4] a prompt that does not fit into an empty session fails after one retry")
    func noEndlessRetry() async throws {
        let model = ScriptedModel(Script([[.failure(Self.overflow)]], encore: true))
        let chat = LongChat(LanguageModelSession(model: model)) { LanguageModelSession(model: model, transcript: $0) }
        let error = await failure { try await chat.send("far too long") }
        #expect(error is LanguageModelError)
        #expect(await model.script.requests.count == 2)
    }

    @Test("[D3] after a context overflow the transcript is unchanged")
    func transcriptAfterOverflow() async throws {
        let model = ScriptedModel([.text("A")], [.failure(Self.overflow)])
        let session = LanguageModelSession(model: model, instructions: "Chat.")
        try await session.respond(to: "one")
        let before = session.transcript
        let error = await failure { try await session.respond(to: "two") }
        #expect(error is LanguageModelSession.GenerationError)
        #expect(session.transcript == before)
    }

    @Test("condensing keeps the first and the last entry, also of short transcripts")
    func condensing() {
        #expect(LongChat.condensed(SampleTranscripts.text).map(\.id) == ["i-1", "r-1"])
        #expect(LongChat.condensed(Transcript(entries: SampleTranscripts.text.prefix(1))).map(\.id) == ["i-1"])
        #expect(LongChat.condensed(Transcript()).isEmpty)
    }
}
