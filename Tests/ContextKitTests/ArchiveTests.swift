import Foundation
import FoundationModels
import GRDB
import Synchronization
import Testing

@testable import ContextKit

/// Conversations that outlive programs, full disks and damaged files.
struct ArchiveTests {
    private static func folder() throws -> URL {
        let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
    }

    @Test("[D4] a conversation that is opened again goes on with nothing lost") func reopened() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // leftovers are the system's
        let file = folder.appending(path: "talk.sqlite")
        let model = StubModel(contextSize: 300)
        var transcript = Transcript()
        do {
            let conversation = try await Conversation(
                model: model, instructions: "Be brief.", archive: ConversationArchive(url: file), id: "a")
            try await conversation.pin("The code is 4711.")
            for turn in 0..<50 { try await conversation.respond(to: "Message \(turn) of subject\(turn).") }
            await conversation.compact()
            try await conversation.respond(to: "After the compaction.")
            transcript = await conversation.transcript
        }
        let again = try await Conversation(model: model, archive: ConversationArchive(url: file), id: "a")
        #expect(again.instructions == "Be brief.")
        #expect(await again.transcript.map(\.description) == transcript.map(\.description))
        #expect(await again.pinned == ["The code is 4711."])
        #expect(await again.unanswered == nil)
        try await again.respond(to: "Go on.")
        #expect(try again.archive.turns(of: "a").map(\.number) == Array(0..<52))
        #expect(try again.archive.conversations().map(\.title) == ["Message 0 of subject0."])
        #expect(try again.archive.conversations().first?.turnCount == 52)
    }

    @Test("[D4] a prompt that was never answered is known when the conversation is opened again") func unanswered() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // leftovers are the system's
        let file = folder.appending(path: "talk.sqlite")
        let model = StubModel(contextSize: 300)
        let conversation = try await Conversation(model: model, archive: ConversationArchive(url: file), id: "a")
        try await conversation.respond(to: "One.")
        // As a program leaves it that ends while the model answers.
        try conversation.archive.ask("Two.", number: 1, in: "a")
        let again = try await Conversation(model: model, archive: ConversationArchive(url: file), id: "a")
        #expect(await again.unanswered == "Two.")
        try await again.respond(to: "Three.")
        #expect(await again.unanswered == nil)
        #expect(await again.live.map(\.prompt) == ["One.", "Three."])
    }

    @Test("[D4] a full disk: the answer is given, nothing is lost, and it is saved once there is room") func fullDisk()
        async throws
    {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // leftovers are the system's
        let file = folder.appending(path: "talk.sqlite")
        let long = (0..<3_000).map { "w\($0)" }.joined(separator: " ")
        let model = StubModel(contextSize: 20_000) { _ in long }
        let archive = try ConversationArchive(url: file, greatestPageCount: 40)
        let conversation = try await Conversation(model: model, archive: archive, id: "a")
        var answered = 0
        var refused = 0
        for turn in 0..<12 {
            do {
                try await conversation.respond(to: "Message \(turn)")
                answered += 1
            } catch ConversationError.archive {
                refused += 1
            }
        }
        #expect(answered > 0 && refused > 0)
        #expect(await conversation.archiveProblem != nil)
        #expect(await conversation.live.count == answered)
        // Room again.
        try await archive.database.write { try $0.execute(sql: "PRAGMA max_page_count = 100000") }
        try await conversation.respond(to: "Now there is room.")
        #expect(await conversation.archiveProblem == nil)
        let again = try await Conversation(model: model, archive: ConversationArchive(url: file), id: "a")
        #expect(await again.live.count == answered + 1)
    }

    @Test("files that are no archives are errors") func damaged() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // leftovers are the system's
        let file = folder.appending(path: "noise.sqlite")
        try Data((0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }).write(to: file)
        #expect(throws: ConversationError.self) { try ConversationArchive(url: file) }
        #expect(throws: ConversationError.self) { try ConversationArchive(url: URL(filePath: "/proc/nowhere/talk.sqlite")) }
    }
}
