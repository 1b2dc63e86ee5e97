import Foundation
import FoundationModels
import Testing

@Suite("Prompts and instructions of an app")
struct AppPromptTests {
    static let regular = Customer(name: "Ada", isRegular: true, orders: ["tea"])
    static let stranger = Customer(name: "Ben", isRegular: false)

    @Test("[A8] a prompt has a line for each part, and none for omitted parts")
    func prompts() async throws {
        let full = PromptParts.order(for: Self.regular, tone: .friendly, extras: ["milk", "ice"], voucher: "V-1")
        #expect(
            try await lines(of: full) == [
                "Write an order confirmation.", "The customer is called Ada.", "They come here often.", "They had tea.",
                "Be friendly.", "Use first names.", "Extras:", "milk", "ice", "The voucher is V-1.", "Extra 1 is milk.",
            ])
        let bare = PromptParts.order(for: Self.stranger, tone: .brief, extras: [], voucher: nil)
        #expect(
            try await lines(of: bare) == [
                "Write an order confirmation.", "The customer is called Ben.", "Be brief.", "There are no extras.",
            ])
    }

    @Test("[A8] instructions have a line for each part, and none for omitted parts")
    func instructions() async throws {
        let many = PromptParts.instructions(
            for: Self.regular, rules: ["Be kind.", "Never shout."], locale: Locale(identifier: "de_DE"))
        #expect(
            try await lines(of: many) == [
                "You work in a café.", "You speak with Ada.", "Follow these rules:", "Be kind.", "Never shout.",
                "It matters: Never shout.", "Answer in German.", "Today's menu has two pages.",
            ])
        let none = PromptParts.instructions(for: Self.stranger, rules: [], locale: Locale(identifier: "fr_FR"))
        #expect(
            try await lines(of: none) == [
                "You work in a café.", "You speak with Ben.", "Answer in the customer's language.",
                "Today's menu has two pages.",
            ])
    }

    @Test("[A8] nested builders, arrays and availability conditions")
    func nesting() async throws {
        #expect(try await lines(of: PromptParts.nested()) == ["One.", "Two.", "Three.", "Four.", "Five.", "Six."])
        #expect(try await lines(of: PromptParts.availability()) == ["First.", "Second.", "Third."])
        #expect(try await lines(of: Letter.greeting("Ada")) == ["Dear Ada,", "thank you for your order."])
        #expect(try await lines(of: Letter.greeting(nil)) == ["To whom it may concern,", "thank you for your order."])
        #expect(try await lines(of: Prompt(["a", "b"])) == ["a", "b"])
        #expect(try await lines(of: Self.regular.promptRepresentation).count == 3)
    }

    @Test("[A8] an error in a builder is thrown to the caller")
    func throwing() async throws {
        #expect(throws: CocoaError.self) { try PromptParts.checked("") }
        #expect(try await lines(of: PromptParts.checked("Why?")) == ["Why?", "Answer in one word."])
        let session = LanguageModelSession(model: EchoModel())
        await #expect(throws: CocoaError.self) {
            try await session.respond { try PromptParts.checked("") }
        }
        #expect(session.transcript.isEmpty)
        #expect(!session.isResponding)
    }

    @Test("[A8] values of generable types are included as JSON")
    func values() async throws {
        let said = try await lines(of: PromptParts.examples([]))
        #expect(said.count == 2)
        #expect(said.first == "Here is an order:")
        #expect(try JSON(text: try #require(said.last)) == ["drink": "espresso", "cups": 1])
        let more = try await lines(of: PromptParts.examples([CoffeeOrder(drink: "mocha", cups: 2)])).joined(separator: "\n")
        #expect(more.contains("And here are more:") && more.contains("mocha"))
        let figures = try await lines(of: PromptParts.figures())
        #expect(figures.prefix(4) == ["Add these:", "1", "2.5", "true"])
    }

    @Test("[A8] a custom builder")
    func letter() async throws {
        let letter = Letter {
            Letter.greeting("Ada")
            CoffeeOrder(drink: "tea", cups: 2)
        }
        let session = LanguageModelSession(model: EchoModel())
        _ = try await letter.send(in: session)
        let prompt = try #require(session.transcript.prompts.first)
        #expect(lines(of: prompt.segments).prefix(3) == ["Turn this into a letter:", "Dear Ada,", "thank you for your order."])
    }

    // MARK: Images

    @Test("an image is at its position in the prompt, with its label")
    func pictures() async throws {
        let picture = try AppErrorTests.picture()
        defer { try? FileManager.default.removeItem(at: picture) }
        let model = ScriptedModel(
            [.text("a dot")],
            [.text(#"{"photo": {"attachmentLabel": "photo-2"}, "reason": "sharp"}"#)])
        let session = LanguageModelSession(model: model)
        let desk = PhotoDesk(session: session)
        #expect(try await desk.describe(photoAt: picture) == "a dot")
        #expect(desk.labels().isEmpty)

        let choice = try await desk.choose(from: [picture, picture])
        #expect(choice.photo.attachmentLabel == "photo-2")
        #expect(desk.labels() == ["photo-1", "photo-2"])
        #expect(desk.file(of: choice) == picture)
        let unknown = try PhotoTranscripts.reference(to: "photo-9")
        #expect(unknown.resolved(in: session.transcript) == nil)

        let prompt = try #require(await model.script.requests.last?.transcript.prompts.last)
        #expect(
            lines(of: prompt.segments) == [
                "Which picture is best for the cover?", "Picture 1:", "[attachment]", "Picture 2:", "[attachment]",
            ])
    }

    @Test("[C1] a tool resolves the image that the model refers to")
    func pictureTool() async throws {
        let picture = try AppErrorTests.picture()
        defer { try? FileManager.default.removeItem(at: picture) }
        let model = ScriptedModel(
            [AppToolTests.call("cropPhoto", #"{"photo": {"attachmentLabel": "cat"}}"#, id: "a")],
            [AppToolTests.call("cropPhoto", #"{"photo": {"attachmentLabel": "dog"}}"#, id: "b")],
            [.text("done")])
        let session = LanguageModelSession(model: model, tools: [CropTool()])
        try await session.respond {
            "Crop the cat."
            Attachment(imageURL: picture).label("cat")
        }
        #expect(
            session.transcript.toolOutputs.map { lines(of: $0.segments) }
                == [["Cropped \(picture.lastPathComponent)."], ["There is no picture called dog."]])
    }

    @Test("images in transcripts created in code")
    func pictureTranscripts() throws {
        let picture = try AppErrorTests.picture()
        defer { try? FileManager.default.removeItem(at: picture) }
        let prompt = PhotoTranscripts.prompt(with: picture, label: "dot")
        let transcript = Transcript(entries: [.prompt(prompt)])
        #expect(try PhotoTranscripts.reference(to: "dot").resolved(in: transcript)?.url == picture)
        #expect(TranscriptViewer.line(for: transcript[0]).text == "Look:\n[dot \(picture.lastPathComponent)]")
    }
}
