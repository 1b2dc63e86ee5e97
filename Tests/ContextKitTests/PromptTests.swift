import Foundation
import FoundationModels
import ModelPrompts
import Testing

@testable import ContextKit

/// What a conversation sends: prompts of all forms, values, attachments, and what it puts in front of prompts.
struct PromptTests {
    @Generable struct Book: Equatable {
        var title: String
        var pages: Int
    }

    private struct Missing: Error {}

    private static func lastPrompt(_ transcript: Transcript?) throws -> Transcript.Prompt {
        for entry in (transcript ?? Transcript()).reversed() { if case .prompt(let prompt) = entry { return prompt } }
        throw Missing()
    }

    @Test("prompts are texts, results of builders, and all values that can be part of a prompt") func forms() async throws {
        let model = StubModel(contextSize: 1_000)
        let conversation = try await Conversation(model: model)
        try await conversation.respond(to: "One.")
        try await conversation.respond(to: Prompt("Two."))
        try await conversation.respond(to: ["Three.", "Four."])
        try await conversation.respond {
            "Five."
            for word in ["Six.", "Seven."] { word }
        }
        let stream = conversation.streamResponse { "Eight." }
        var texts: [String] = []
        for try await snapshot in stream { texts.append(snapshot.content) }
        #expect(texts.last == "Yes.")
        #expect(try await stream.collect().content == "Yes.")
        let prompts = ["One.", "Two.", "Three.\nFour.", "Five.\nSix.\nSeven.", "Eight."]
        #expect(model.requests.map(\.lastPrompt) == prompts.map { "(Prompt) \($0)" })
        #expect(try conversation.archive.turns(of: conversation.id).map(\.prompt) == prompts)
        func fail() throws -> String { throw Missing() }
        await #expect(throws: Missing.self) { try await conversation.respond { try fail() } }
        #expect(throws: Missing.self) { try conversation.streamResponse { try fail() } }
        try await conversation.respond(to: "Still there?")
    }

    @Test("values of types and of schemas are answered and streamed, with options of the context and metadata")
    func values() async throws {
        let model = StubModel(contextSize: 1_000) { _ in #"{"title": "Halcyon", "pages": 12}"# }
        let conversation = try await Conversation(model: model)
        let book = Book(title: "Halcyon", pages: 12)
        let inferred: LanguageModelSession.Response<Book> = try await conversation.respond(to: "A book.")
        #expect(inferred.content == book)
        let schema = Book.generationSchema
        let content = try await conversation.respond(to: "A book.", schema: schema, includeSchemaInPrompt: false).content
        #expect(try content.value(Int.self, forProperty: "pages") == 12)
        let built = try await conversation.respond(
            generating: Book.self, contextOptions: ContextOptions(reasoningLevel: .deep), metadata: ["tag": "x"]
        ) { "A book." }
        #expect(built.content == book)
        let prompts = try model.requests.map(Self.lastPrompt)
        #expect(prompts.map(\.contextOptions.includeSchemaInPrompt) == [true, false, true])
        #expect(prompts.allSatisfy { $0.responseFormat != nil } && prompts[2].contextOptions.reasoningLevel == .deep)
        #expect(try prompts[2].metadata["tag"]?.value(String.self) == "x")

        let stream = conversation.streamResponse(to: "A book.", generating: Book.self)
        var last: Book.PartiallyGenerated?
        for try await snapshot in stream {
            #expect(snapshot.attempt == 1 && !snapshot.transcriptEntries.isEmpty)
            last = snapshot.content
        }
        #expect(last?.title == "Halcyon" && last?.pages == 12)
        #expect(try await stream.collect().content == book)
        #expect(
            try await conversation.streamResponse(to: "A book.", schema: schema).collect().content.jsonString
                == content.jsonString)
        #expect(try conversation.archive.turns(of: conversation.id).count == 5)
    }

    @Test("the parts of a prompt are known without a request for them, which would be traced") func parts() {
        let prompt = Prompt {
            "One."
            Attachment(imageURL: URL(filePath: "/a.png")).label("a")
            "Two."
        }
        #expect(Request(prompt).text == "One.\n[image “a”]\nTwo.")
        #expect(Request([String]()).segments.isEmpty)
    }

    @Test("what is reserved for a request includes its schema only if the prompt has it") func countedSchema() async throws {
        let request = Request("A book.", schema: Book.generationSchema, includesSchema: false)
        guard case .prompt(let counted) = Message(request: request).entry else { throw Missing() }
        #expect(counted.contextOptions.includeSchemaInPrompt == false && counted.responseFormat != nil)
        guard case .prompt(let text) = Message(request: Request("A book.")).entry else { throw Missing() }
        #expect(text.contextOptions.includeSchemaInPrompt == nil && text.responseFormat == nil)
    }

    // MARK: - Attachments

    private static func folder() throws -> URL {
        let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
    }

    /// The pictures of prompts, as data.
    private static func pictures(_ entries: some Sequence<Transcript.Entry>) -> [String] {
        entries.flatMap { entry -> [String] in
            guard case .prompt(let prompt) = entry else { return [] }
            return prompt.segments.compactMap { segment in
                guard case .attachment(let attachment) = segment, case .image(let image) = attachment.content else { return nil }
                return image.url?.absoluteString
            }
        }
    }

    @Test("a picture is stored with its turn, and stays when its file is gone") func pictures() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = folder.appending(path: "photo.png")
        let bytes = Data([0x89, 0x50, 0x4E, 0x47]) + Data(repeating: 7, count: 1_000)
        try bytes.write(to: file)
        let expected = ["data:image/png;base64,\(bytes.base64EncodedString())"]
        let (model, archive) = (StubModel(contextSize: 1_000), try ConversationArchive(url: folder.appending(path: "a.sqlite")))
        let conversation = try await Conversation(model: model, archive: archive, id: "a")
        try await conversation.respond(to: "Hello.")
        try await conversation.pin("The code is 4711.")
        try await conversation.respond {
            "What is this?"
            Attachment(imageURL: file).label("photo")
        }
        #expect(model.requests.last?.lastPrompt == "(Prompt) Remember:\n- The code is 4711.\n\nWhat is this?\n[image “photo”]")
        try FileManager.default.removeItem(at: file)
        let turn = try #require(try archive.turns(of: "a").last)
        #expect(turn.prompt == "What is this?\n[image “photo”]" && Self.pictures(turn.entries) == expected)
        // The stored picture is what the model sees from then on, also after a compaction and in another program.
        try await conversation.respond(to: "And now?")
        #expect(Self.pictures(try #require(model.requests.last)) == expected)
        await conversation.compact()
        #expect(await Self.pictures(conversation.transcript) == expected)
        #expect(await !conversation.transcript.wholeText.contains("Remember:"))
        let again = try await Conversation(model: model, archive: archive, id: "a")
        #expect(await Self.pictures(again.transcript) == expected)
    }

    @Test("recall shows a picture by its name, in its place") func recalledPicture() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = folder.appending(path: "photo.jpg")
        try Data([0xFF, 0xD8]).write(to: file)
        let model = StubModel(contextSize: 300)
        let conversation = try await Conversation(model: model, instructions: "You are a companion who answers.")
        try await conversation.respond {
            "My boat is called Tern Rock."
            Attachment(imageURL: file).label("boat")
        }
        for turn in 0..<60 {
            try await conversation.respond(to: "Message number \(turn) about subject\(turn) and nothing else.")
        }
        try await conversation.respond(to: "What is my boat called?")
        let sent = try #require(model.requests.last)
        #expect(sent.lastPrompt.contains("User: My boat is called Tern Rock.\n  [image “boat”]"))
        #expect(Self.pictures(sent).isEmpty)
    }

    @Test("an attachment that cannot be read or stored is refused before anything is sent") func refusedAttachments() async throws
    {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let large = folder.appending(path: "large.png")
        try Data().write(to: large)
        let handle = try FileHandle(forWritingTo: large)
        try handle.truncate(atOffset: 17 << 20)
        try handle.close()
        let model = StubModel(contextSize: 1_000)
        let conversation = try await Conversation(model: model)
        for (file, reason) in [
            (large, "at most 16777216"), (folder.appending(path: "none.png"), "cannot be read"),
            (URL(filePath: "/dev/zero"), "is not a file"),
        ] {
            do {
                try await conversation.respond { Attachment(imageURL: file).label("photo") }
                Issue.record("\(file.path) was accepted")
            } catch ConversationError.attachment(let failure) {
                #expect(failure.label == "photo" && failure.reason.contains(reason))
            }
        }
        #expect(try model.requests.isEmpty && conversation.archive.turns(of: conversation.id).isEmpty)
        try await conversation.respond(to: "Are you there?")
    }

    // MARK: - Added texts

    @Test("what the conversation puts in front of a prompt is removed again by its mark; the same words of the user stay")
    func marks() async throws {
        let added = Message(
            request: Request("Hello."), recalled: ModelPrompts.recallHeading, facts: "Remember:\n- The code is 4711.\n")
        let text = added.segments.plainText
        #expect(text == "\(ModelPrompts.recallHeading)\nRemember:\n- The code is 4711.\n\nHello.")
        // A session joins the texts.
        let entries: [Transcript.Entry] = [.prompt(.init(segments: [.text(.init(content: text))]))]
        let turn = Turn(0, Date(), added, entries)
        #expect(turn.hasRecalled && turn.prompt == "Hello." && turn.entries.map(\.description) == entries.map(\.description))
        #expect(turn.withoutRecalledTurns.entries.map(\.description) == ["(Prompt) Hello."])
        // The archive stores the marks.
        let data = try JSONEncoder().encode(Transcript(entries: turn.entries))
        let stored = Turn(
            number: 0, prompt: "Hello.", date: nil, entries: Array(try JSONDecoder().decode(Transcript.self, from: data)))
        #expect(stored.hasRecalled && stored.withOriginalPrompt.entries.map(\.description) == ["(Prompt) Hello."])
        // The user's own words.
        let typed = Turn(0, Date(), Message(request: Request(text)), entries)
        #expect(
            !typed.hasRecalled && typed.withoutRecalledTurns.entries == entries && typed.withOriginalPrompt.entries == entries)
        let conversation = try await Conversation(model: StubModel(contextSize: 1_000))
        for prompt in [text, "Well.", "Good."] { try await conversation.respond(to: prompt) }
        await conversation.compact()
        #expect(await conversation.transcript.wholeText.contains(text))
        #expect(try conversation.archive.turns(of: conversation.id).first?.prompt == text)
    }

    @Test("facts in front of a prompt are removed also from contexts that an earlier version has stored as one text")
    func earlierVersion() async throws {
        let archive = try ConversationArchive()
        func entries(_ prompt: String) -> Transcript {
            Transcript(entries: [
                .prompt(.init(segments: [.text(.init(content: prompt))])),
                .response(.init(assetIDs: [], segments: [.text(.init(content: "Yes."))])),
            ])
        }
        var context = ConversationArchive.Context()
        (context.pinned, context.next) = (["The code is 4711."], 2)
        context.kept = [
            .init(number: 0, prompt: "Hello.", date: nil, entries: entries("Remember:\n- The code is 4711.\n\nHello.")),
            .init(number: 1, prompt: "Remember:\n- me\n\nPlease.", date: nil, entries: entries("Remember:\n- me\n\nPlease.")),
        ]
        try archive.begin("a", context)
        let conversation = try await Conversation(model: StubModel(contextSize: 1_000), archive: archive, id: "a")
        #expect(await conversation.transcript.first?.description == "(Prompt) Remember:\n- The code is 4711.\n\nHello.")
        try await conversation.respond(to: "Go on.")
        await conversation.compact()
        let prompts = await conversation.transcript.compactMap { if case .prompt = $0 { $0.description } else { nil } }
        #expect(prompts == ["(Prompt) Hello.", "(Prompt) Remember:\n- me\n\nPlease.", "(Prompt) Go on."])
    }
}
