import Foundation
import Testing
import UniformTypeIdentifiers

@testable import FoundationModels

/// Data attachments and entries of data (27.2).
struct DataEntryTests {
    private struct Place: DataAttachmentRepresentable, Codable, Equatable {
        var name: String

        static let type = UTType(exportedAs: "com.example.place", conformingTo: .json)

        init(name: String) { self.name = name }
        init(_ attachment: Transcript.DataAttachment) throws {
            self = try JSONDecoder().decode(Self.self, from: attachment.content)
        }

        private var json: Data { Data(#"{"name":"\#(name)"}"#.utf8) }
        var transcriptRepresentation: Transcript.DataAttachment {
            .init(contentType: Self.type, content: json, metadata: GeneratedContent(properties: ["zoom": 3]))
        }
    }

    private struct FoundPlace: DataEntryRepresentable, Codable {
        var name: String

        init(name: String) { self.name = name }
        init(_ entry: Transcript.DataEntry) throws { self = try JSONDecoder().decode(Self.self, from: entry.content) }
        var transcriptRepresentation: Transcript.DataEntry {
            .init(contentType: Place.type, content: Data(#"{"name":"\#(name)"}"#.utf8))
        }
    }

    /// Sends events, and supports only places.
    private struct PlaceModel: LanguageModel {
        var capabilities: LanguageModelCapabilities { LanguageModelCapabilities([]) }
        var executorConfiguration: Executor.Configuration { .init(identifier: identifier) }
        var identifier = ""
        let events: @Sendable (Transcript) -> [LanguageModelExecutorGenerationChannel.Event]

        func supportsDataAttachmentType(_ type: UTType) async throws -> Bool { type.conforms(to: Place.type) }
        func supportsDataEntryType(_ type: UTType) async throws -> Bool { type == Place.type }

        struct Executor: LanguageModelExecutor {
            typealias Model = PlaceModel
            struct Configuration: Hashable, Sendable { var identifier: String }
            init(configuration: Configuration) {}

            nonisolated(nonsending) func respond(
                to request: LanguageModelExecutorGenerationRequest, model: PlaceModel,
                streamingInto channel: LanguageModelExecutorGenerationChannel
            ) async throws {
                for event in model.events(request.transcript) { await channel.send(event) }
            }
        }
    }

    private static func place(_ name: String) -> LanguageModelExecutorGenerationChannel.DataEntry.Action {
        .update(contentType: Place.type, content: Data(#"{"name":"\#(name)"}"#.utf8))
    }

    @Test("[B] attached data reaches a model that reads its type, and no other")
    func attachments() async throws {
        let model = PlaceModel { transcript in
            let names = transcript.flatMap(\.segments).compactMap { segment -> String? in
                guard case .attachment(let attachment) = segment, case .data(let data) = attachment.content else { return nil }
                return (try? Place(data))?.name  // the test fails below
            }
            return [.response(action: .appendText(names.joined(separator: ","), tokenCount: 1))]
        }
        let prompt = Prompt {
            "Where is it?"
            Attachment(Place(name: "Faro")).label("place")
        }
        let session = LanguageModelSession(model: model)
        #expect(try await session.respond(to: prompt).content == "Faro")
        struct Note: DataAttachmentRepresentable {
            init() {}
            init(_ attachment: Transcript.DataAttachment) throws {}
            var transcriptRepresentation: Transcript.DataAttachment { .init(contentType: .png, content: Data()) }
        }
        await #expect {
            try await LanguageModelSession(model: model).respond(to: Prompt { Attachment(Note()) })
        } throws: { error in
            if case LanguageModelError.unsupportedTranscriptContent = error { true } else { false }
        }
    }

    @Test("[B] entries of data are appended, replaced by their ids, and survive a saved transcript")
    func entries() async throws {
        let model = PlaceModel { _ in
            [
                .data(action: Self.place("Faro")), .data(entryID: "b", action: Self.place("Evora")),
                .response(action: .appendText("Done.", tokenCount: 1)), .data(entryID: "b", action: Self.place("Elvas")),
            ]
        }
        let session = LanguageModelSession(model: model)
        for _ in 0..<2 { #expect(try await session.respond(to: "Go").content == "Done.") }
        func places(_ transcript: Transcript) throws -> [String] {
            try transcript.compactMap { entry in
                if case .data(let data) = entry { try FoundPlace(data).name } else { nil }
            }
        }
        // The second request appends one entry, and replaces the one with an id.
        #expect(try places(session.transcript) == ["Faro", "Elvas", "Faro"])
        #expect(Set(session.transcript.map(\.id)).count == session.transcript.count)
        let saved = try JSONEncoder().encode(
            Transcript(
                entries: Array(session.transcript) + [
                    .prompt(.init(segments: [.attachment(.init(content: .data(Place(name: "x").transcriptRepresentation)))]))
                ]))
        let restored = try JSONDecoder().decode(Transcript.self, from: saved)
        #expect(try places(restored) == ["Faro", "Elvas", "Faro"])
        #expect(try FoundPlace(FoundPlace(name: "Beja").transcriptRepresentation).name == "Beja")
        guard case .prompt(let prompt)? = restored.last, case .attachment(let attachment)? = prompt.segments.first,
            case .data(let data) = attachment.content
        else {
            Issue.record("The attachment is lost.")
            return
        }
        #expect(try Place(data) == Place(name: "x") && data.metadata.value(Int.self, forProperty: "zoom") == 3)
        let broken = String(decoding: saved, as: UTF8.self).replacing(#""data":{"#, with: #""nothing":{"#)
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Transcript.self, from: Data(broken.utf8)) }
    }

    @Test("[B] a model that sends data of a type that it does not support fails")
    func unsupported() async throws {
        let model = PlaceModel { _ in [.data(action: .update(contentType: .png, content: Data([1])))] }
        let session = LanguageModelSession(model: model)
        await #expect {
            try await session.respond(to: "Go")
        } throws: { error in
            if case LanguageModelError.unsupportedTranscriptContent = error { true } else { false }
        }
        #expect(!session.transcript.contains { if case .data = $0 { true } else { false } })
    }

    @Test("unsupported data is refused when it is sent: the error has the entry, and nothing that follows becomes visible")
    func refused() async throws {
        let model = PlaceModel { _ in
            [
                .data(entryID: "good", action: Self.place("Faro")),
                .data(entryID: "bad", action: .update(contentType: .png, content: Data([1, 2]))),
                .response(action: .appendText("Look.", tokenCount: 1)),
                .data(action: .update(contentType: .gif, content: Data())),
            ]
        }
        let session = LanguageModelSession(model: model)
        session.transcriptErrorHandlingPolicy = .preserveTranscript
        var snapshots: [String] = []
        do {
            for try await snapshot in session.streamResponse(to: "Go") { snapshots.append(snapshot.content) }
            Issue.record("no error")
        } catch LanguageModelError.unsupportedTranscriptContent(let context) {
            #expect(
                context.unsupportedContent == [.data(.init(id: "bad", contentType: .png, content: Data([1, 2])))])
            #expect(context.debugDescription.contains("public.png"))
        }
        #expect(snapshots.isEmpty)
        #expect(session.transcript.count == 1)
    }

    @Test("reasoning with the id of an entry of the transcript changes that entry")
    func knownReasoning() async throws {
        let model = PlaceModel { _ in
            [
                .reasoning(entryID: "r", action: .updateSignature(Data([7]), tokenCount: 0)),
                .response(action: .appendText("Yes.", tokenCount: 1)),
            ]
        }
        let session = LanguageModelSession(
            model: model,
            transcript: Transcript(entries: [
                .prompt(.init(segments: [.text(.init(content: "Hm?"))])),
                .reasoning(.init(id: "r", segments: [.text(.init(content: "I think."))])),
                .response(.init(assetIDs: [], segments: [.text(.init(content: "No."))])),
            ]))
        _ = try await session.respond(to: "Sure?")
        let thoughts = session.transcript.compactMap { entry -> Transcript.Reasoning? in
            if case .reasoning(let reasoning) = entry { reasoning } else { nil }
        }
        #expect(thoughts.count == 1 && thoughts[0].signature == Data([7]) && thoughts[0].segments.modelText == "I think.")
    }

    @Test("the first snapshot of a guided stream has something in it")
    func firstSnapshot() async throws {
        let model = GuidedModel()
        let session = LanguageModelSession(model: model)
        var first: GeneratedContent?
        let schema = try GenerationSchema(
            root: DynamicGenerationSchema(name: "P", properties: [.init(name: "name", schema: .init(type: String.self))]),
            dependencies: [])
        for try await snapshot in session.streamResponse(to: "Go", schema: schema) { first = first ?? snapshot.rawContent }
        #expect(first?.jsonString.contains("name") == true)
    }

    private struct GuidedModel: LanguageModel {
        var capabilities: LanguageModelCapabilities { LanguageModelCapabilities([.guidedGeneration]) }
        var executorConfiguration: Executor.Configuration { .init() }

        struct Executor: LanguageModelExecutor {
            typealias Model = GuidedModel
            struct Configuration: Hashable, Sendable {}
            init(configuration: Configuration) {}

            nonisolated(nonsending) func respond(
                to request: LanguageModelExecutorGenerationRequest, model: GuidedModel,
                streamingInto channel: LanguageModelExecutorGenerationChannel
            ) async throws {
                for part in ["{", "\"na", "me\":", " \"A", "da\"}"] {
                    await channel.send(.response(action: .appendText(part, tokenCount: 1)))
                    await Task.yield()
                }
            }
        }
    }
}
