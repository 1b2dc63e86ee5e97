import Foundation
import FoundationModels
import Testing

@Suite("Streams in an app")
struct AppStreamingTests {
    static let story: [ScriptedModel.Step] = [.text("Once"), .text(" upon"), .text(" a time")]

    @Test("[A3] snapshots of text grow, and the last one is the whole text")
    func textGrows() async throws {
        let session = LanguageModelSession(model: ScriptedModel(Self.story))
        let snapshots = try await StoryStreams(session: session).tell(Prompt("go"))
        #expect(snapshots.last == "Once upon a time")
        for (earlier, later) in zip(snapshots, snapshots.dropFirst()) {
            #expect(later.hasPrefix(earlier))
        }
        #expect(session.transcript.responses.first?.plainText == "Once upon a time")
    }

    @Test("[A3] all forms of text streaming give the same text as respond")
    func textForms() async throws {
        func streams() -> StoryStreams {
            StoryStreams(session: LanguageModelSession(model: ScriptedModel(Self.story)))
        }
        var last = ""
        try await streams().tell(about: "rain") { last = $0 }
        #expect(last == "Once upon a time")
        #expect(try await streams().tell(about: ["rain", "snow"]) == "Once upon a time")
        let first = try #require(try await streams().firstWords("rain"))
        #expect("Once upon a time".hasPrefix(first) && !first.isEmpty)
        var lines: [String] = []
        for try await line in streams().lines(about: "rain") { lines.append(line) }
        #expect(lines.last == "Once upon a time")
        let costs = try await streams().costs("rain")
        #expect(costs == costs.sorted() && costs.last == 3)
    }

    @Test("[A3] a snapshot is available before the model has finished", .timeLimit(.minutes(1)))
    func snapshotBeforeTheEnd() async throws {
        let gate = Gate()
        let session = LanguageModelSession(model: ScriptedModel([.text("early"), .wait(gate), .text(" late")]))
        var seen: [String] = []
        for try await snapshot in session.streamResponse(to: "go") {
            if seen.isEmpty {
                #expect(session.isResponding)
                await gate.open()
            }
            seen.append(snapshot.content)
        }
        #expect(seen.first == "early")
        #expect(seen.last == "early late")
    }

    @Test("[B7] a stream can be collected after it was read")
    func collectAfterwards() async throws {
        let session = LanguageModelSession(model: FormEchoModel(json: Self.outlineJSON))
        let outline = try await StoryStreams(session: session).outline("a story")
        #expect(outline == Self.outline)
        #expect(kinds(of: session.transcript) == ["prompt", "response"])
    }

    static let outline = StoryOutline(
        title: "Rain",
        chapters: [.init(heading: "Clouds", pages: 3), .init(heading: "Drops", pages: 12), .init(heading: "Sun", pages: 7)])

    static let outlineJSON = outline.generatedContent.jsonString

    /// A model that emits the outline up to the end of its first chapter, and the rest when the gate is open.
    static func model(waitingAt gate: Gate) throws -> ScriptedModel {
        let end = try #require(outlineJSON.firstIndex(of: "}"))
        return ScriptedModel([
            .text(String(outlineJSON[...end])), .wait(gate), .text(String(outlineJSON[outlineJSON.index(after: end)...])),
        ])
    }

    @Test("[B7] fields become available in order, and a list only grows", .timeLimit(.minutes(1)))
    func typedSnapshots() async throws {
        let gate = Gate()
        let session = LanguageModelSession(model: try Self.model(waitingAt: gate))
        var headings: [[String]] = []
        var titles: [String] = []
        for try await snapshot in session.streamResponse(to: "go", generating: StoryOutline.self) {
            if let title = snapshot.content.title { titles.append(title) }
            let chapters = snapshot.content.chapters ?? []
            if !chapters.isEmpty { #expect(snapshot.content.title == "Rain") }
            headings.append(chapters.map { $0.heading ?? "" })
            // The first chapter is available before the others are generated.
            if headings.last == ["Clouds"] { await gate.open() }
        }
        #expect(titles.allSatisfy { "Rain".hasPrefix($0) })
        for (earlier, later) in zip(headings, headings.dropFirst()) {
            #expect(earlier.count <= later.count)
            for (before, after) in zip(earlier, later) {
                #expect(after.hasPrefix(before))
            }
        }
        #expect(headings.last == ["Clouds", "Drops", "Sun"])
    }

    @Test("[B7] raw content is not complete before the end of the stream", .timeLimit(.minutes(1)))
    func rawContent() async throws {
        let gate = Gate()
        let session = LanguageModelSession(model: try Self.model(waitingAt: gate))
        let stream = session.streamResponse(to: "go", generating: StoryOutline.self)
        var complete: [Bool] = []
        for try await snapshot in stream {
            complete.append(snapshot.rawContent.isComplete)
            await gate.open()
        }
        let response = try await stream.collect()
        #expect(response.rawContent.isComplete)
        #expect(complete.first == false)
        #expect(response.content == Self.outline)
    }

    @Test("[B7] a value and the elements of its list keep their identity during streaming", .timeLimit(.minutes(1)))
    func identities() async throws {
        let gate = Gate()
        let session = LanguageModelSession(model: try Self.model(waitingAt: gate))
        var values: Set<GenerationID> = []
        var rows: [[GenerationID]] = []
        for try await snapshot in session.streamResponse(to: "go", generating: StoryOutline.self) {
            values.insert(snapshot.content.id)
            rows.append(snapshot.content.chapters?.map(\.id) ?? [])
            if rows.last?.count == 1 { await gate.open() }
        }
        #expect(values.count == 1)
        let final = try #require(rows.last)
        #expect(Set(final).count == 3)
        for row in rows {
            #expect(row == Array(final.prefix(row.count)))
        }
    }

    @Test("[B7] streams with a schema")
    func schemaStream() async throws {
        let session = LanguageModelSession(model: FormEchoModel(json: Self.outlineJSON))
        let streams = StoryStreams(session: session)
        let schema = StoryOutline.generationSchema
        let partial = try await streams.content("go", like: schema)
        #expect(partial.dropLast().allSatisfy { !$0.isComplete })
        #expect(try partial.last?.value(String.self, forProperty: "title") == "Rain")
        let whole = try await streams.content(Prompt("go"), like: schema)
        #expect(try StoryOutline(whole) == Self.outline)
        let collected = try await streams.content(of: ["go"], like: schema)
        #expect(try StoryOutline(collected) == Self.outline)
        #expect(try await streams.headings(Prompt("go")).last == ["Clouds", "Drops", "Sun"])
        #expect(try await streams.outline(of: ["go"]) == Self.outline)
    }

    @Test("[B7] one field by its key path, and forwarding snapshots of a Sendable type")
    func keyPaths() async throws {
        let session = LanguageModelSession(model: FormEchoModel(json: Self.outlineJSON))
        let stream = session.streamResponse(to: "go", generating: StoryOutline.self)
        #expect(try await StreamHelpers.last(of: \.title, in: stream) == "Rain")
        let again = session.streamResponse(to: "go", generating: StoryOutline.self)
        #expect(try await StreamHelpers.identities(in: again).count == 1)
        var last: StoryOutline.PartiallyGenerated?
        for try await partial in StreamHelpers.relay("go", as: StoryOutline.self, from: session) { last = partial }
        #expect(last?.chapters?.last?.pages == 7)
        var shown = 0
        let outline = try await session.respond(to: "go", generating: StoryOutline.self) { _ in shown += 1 }
        #expect(outline == Self.outline)
        #expect(shown > 0)
    }

    @Test("[B7] snapshots of an enum with payloads are partial values of its cases")
    func enumStream() async throws {
        let json = Activity.call(person: "Ben", minutes: 12).generatedContent.jsonString
        let session = LanguageModelSession(model: FormEchoModel(json: json))
        let seen = try await Journal(session: session).watchActivity(in: "go")
        #expect(seen.last == "call Ben 12")
        #expect(seen.allSatisfy { $0.hasPrefix("call") })
    }

    // MARK: In view models

    @MainActor
    @Test("[B7] a view model shows text while it is generated")
    func chatViewModel() async throws {
        let model = ChatViewModel(session: LanguageModelSession(model: ScriptedModel(Self.story)))
        #expect(model.canSend)
        model.send("go")
        await model.finish()
        #expect(model.reply == "Once upon a time")
        #expect(model.snapshots > 0)
        #expect(model.failure == nil)
        #expect(!model.isBusy && model.canSend)
    }

    @MainActor
    @Test("[B7] a view model fills in a form whose rows keep their identity")
    func recipeViewModel() async throws {
        let recipe = Recipe(
            name: "Soup", servings: 2, isVegan: true,
            ingredients: [.init(name: "Leek", grams: 200), .init(name: "Salt", grams: nil)], method: .boil)
        let json = recipe.generatedContent.jsonString
        let model = RecipeViewModel(session: LanguageModelSession(model: FormEchoModel(json: json)))
        await model.write(about: "soup")
        #expect(model.error == nil)
        #expect(model.finished == recipe)
        #expect(model.rows.map(\.title) == ["Leek", "Salt"])
        let final = model.rows.map(\.id)
        #expect(model.rowIDs.allSatisfy { $0 == Array(final.prefix($0.count)) })
        try await model.writeAtOnce(about: "soup")
        #expect(model.finished == recipe)
    }

    // MARK: Cancelled and failed streams

    @MainActor
    @Test("[B7] a cancelled stream keeps the partial response, and the session remains usable", .timeLimit(.minutes(1)))
    func cancelled() async throws {
        let gate = Gate()
        let script = ScriptedModel([.text("half a"), .wait(gate), .text(" story")], [.text("again")])
        let session = LanguageModelSession(model: script)
        let model = ChatViewModel(session: session)
        model.send("go")
        #expect(try await eventually { model.reply == "half a" })
        model.stop()
        await model.finish()
        #expect(try await eventually { !session.isResponding })
        #expect(model.reply == "half a")
        #expect(kinds(of: session.transcript) == ["prompt", "response"])
        #expect(session.transcript.responses.last?.plainText == "half a")
        #expect(try await session.respond(to: "once more").content == "again")
    }

    @Test("[B7] a failed stream keeps the partial response and throws")
    func broken() async throws {
        let timeout = LanguageModelError.timeout(.init(debugDescription: "too slow"))
        let session = LanguageModelSession(model: ScriptedModel([.text("half"), .failure(timeout)]), instructions: "Tell.")
        var seen = ""
        do {
            for try await snapshot in session.streamResponse(to: "go") { seen = snapshot.content }
            Issue.record("the stream did not fail")
        } catch LanguageModelError.timeout(let details) {
            #expect(details.debugDescription == "too slow")
        }
        #expect("half".hasPrefix(seen))
        #expect(kinds(of: session.transcript) == ["instructions", "prompt", "response"])
        #expect(session.transcript.responses.last?.plainText == "half")
        #expect(!session.isResponding)
    }

    @Test("[B7] a stream that fails before its first token reverts the prompt")
    func brokenAtOnce() async throws {
        let timeout = LanguageModelError.timeout(.init(debugDescription: "too slow"))
        let session = LanguageModelSession(model: ScriptedModel([.failure(timeout)], [.text("ok")]), instructions: "Tell.")
        let error = await failure { try await session.streamResponse(to: "go").collect() }
        #expect(error is LanguageModelError)
        #expect(session.transcript.prompts.isEmpty && session.transcript.responses.isEmpty)
        #expect(try await session.respond(to: "go").content == "ok")
        #expect(kinds(of: session.transcript) == ["instructions", "prompt", "response"])
    }

    @Test("the policy of a session determines which entries remain after an error", arguments: [true, false])
    func policy(keeps: Bool) async throws {
        let timeout = LanguageModelError.timeout(.init(debugDescription: "too slow"))
        let session = LanguageModelSession(model: ScriptedModel([.text("half"), .failure(timeout)]))
        ConversationEditor(session: session).keepTracesOfFailures(keeps)
        let error = await failure { try await session.streamResponse(to: "go").collect() }
        #expect(error is LanguageModelError)
        #expect(kinds(of: session.transcript).first == (keeps ? "prompt" : nil))
        #expect(session.transcript.isEmpty == !keeps)
    }

    @Test("a newer request for a suggestion cancels the older one", .timeLimit(.minutes(1)))
    func newerWins() async throws {
        let gate = Gate()
        let model = ScriptedModel([.wait(gate), .text("old")], [.text("new")])
        let suggestions = LiveSuggestions { LanguageModelSession(model: model) }
        let old = Task { try await suggestions.suggestion(for: "o") }
        #expect(try await eventually { await gate.arrivals == 1 })
        #expect(try await suggestions.suggestion(for: "ol") == "new")
        await #expect(throws: (any Error).self) { try await old.value }
    }
}
