import Foundation
import FoundationModels
import GRDB
import Synchronization
import TestSupport
import Testing

@testable import ContextKit

#if PostgreSQL
import FoundationModelsPostgreSQL
#endif

/// Tests that conversations survive the end of a program, full disks and damaged files.
struct ArchiveTests {
    private static func folder() throws -> URL {
        let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
    }

    /// An archive in a file, or in a schema of the name of the file's folder.
    private static func archive(_ file: URL, _ database: TestDatabase) throws -> ConversationArchive {
        #if PostgreSQL
        if let server = database.server {
            return try ConversationArchive(postgreSQL: server, schema: file.deletingLastPathComponent().lastPathComponent)
        }
        #endif
        return try ConversationArchive(url: file)
    }

    @Test(
        "[D8] a conversation is copied to another archive, and deleted with everything that belongs to it",
        arguments: TestDatabase.available)
    func copiedAndDeleted(database: TestDatabase) async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let memory = try ConversationArchive()
        let conversation = try await Conversation(
            model: StubModel(contextSize: 300), instructions: "Be brief.", archive: memory, id: "a")
        try await conversation.pin("The code is 4711.")
        try await conversation.respond(to: "My parrot is called Quillon.")
        for turn in 0..<30 { try await conversation.respond(to: "Message \(turn) of subject\(turn).") }
        let archive = try Self.archive(folder.appending(path: "talk.sqlite"), database)
        try memory.copy("a", to: archive, as: "b")
        #expect(throws: ConversationError.self) { try memory.copy("a", to: archive, as: "b") }
        #expect(throws: ConversationError.self) { try memory.copy("none", to: archive, as: "c") }
        #expect(try archive.conversations().map(\.id) == ["b"])
        let model = StubModel(contextSize: 300)
        let copy = try await Conversation(model: model, archive: archive, id: "b")
        #expect(await copy.transcript.wholeText == conversation.transcript.wholeText)
        #expect(await copy.pinned == ["The code is 4711."])
        try await copy.respond(to: "What is my parrot called?")
        #expect(model.requests.last?.lastPrompt.contains("Quillon") == true)
        let other = try await Conversation(model: model, archive: archive, id: "other")
        try await other.respond(to: "My canary is called Ozymandias.")
        try archive.delete("b")
        try archive.delete("b")
        #expect(try archive.conversations().map(\.id) == ["other"] && archive.turns(of: "b").isEmpty)
        await #expect(throws: ConversationError.self) { try await copy.respond(to: "Are you there?") }
        let again = try await Conversation(model: model, archive: archive, id: "b")
        #expect(await again.pinned.isEmpty && again.instructions.isEmpty)
        #expect(try archive.store.turns(with: ["canari", "canary"], in: "other", count: 5, limit: 5).contains([0]))
    }

    @Test(
        "[D4] an answer whose commit is in doubt is written again; another answer is refused", arguments: TestDatabase.available)
    func writtenAgain(database: TestDatabase) throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let archive = try Self.archive(folder.appending(path: "talk.sqlite"), database)
        try archive.begin("a", .init())
        func turn(_ text: String) -> Turn {
            let response = Transcript.Response(id: "1", assetIDs: [], segments: [.text(.init(id: "2", content: text))])
            return Turn(number: 0, prompt: "Who is Halcyon?", date: Date(), entries: [.response(response)])
        }
        let first = turn("A bird.")
        #expect(try archive.recordPrompt(first.prompt, number: 0, date: first.date, in: "a"))
        for _ in 0..<2 { try archive.recordAnswer(first, in: "a") }
        #expect(throws: ConversationError.self) { try archive.recordAnswer(turn("A myth."), in: "a") }
        #expect(try archive.turns(of: "a").map(\.response) == ["A bird."])
        #expect(try archive.store.turns(with: ["halcyon"], in: "a", count: 5, limit: 5) == [[0]])
        guard let store = archive.store as? SQLiteArchiveStore else { return }
        // The words are in the index once.
        let count = try store.database.write { database in
            try database.execute(sql: "CREATE VIRTUAL TABLE temp.word USING fts5vocab(main, turn_text, row)")
            return try Int.fetchOne(database, sql: "SELECT cnt FROM temp.word WHERE term = 'halcyon'")
        }
        #expect(count == 1)
    }

    /// What differs from a turn whose words can be removed: nothing, its text is damaged, or its words were made differently.
    @Test(
        "[D8] a deletion removes the words of one conversation, and builds the index of the others again only after damage",
        arguments: [nil, "checksum = 1", "text_checksum = NULL"])
    func deletedWords(change: String?) throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = folder.appending(path: "talk.sqlite")
        let archive = try ConversationArchive(url: file)
        let store = try #require(archive.store as? SQLiteArchiveStore)
        for name in ["a", "b"] {
            try archive.begin(name, .init())
            for number in 0..<20 {
                let prompt = "Prompt \(number) of \(name == "a" ? "zebrafish" : "others")."
                #expect(try archive.recordPrompt(prompt, number: number, date: Date(), in: name))
                let value = GeneratedContent(properties: ["zeta": "one", "alpha": number])
                let response = Transcript.Response(
                    assetIDs: [],
                    segments: [
                        .text(.init(content: "Answer \(number).")), .structure(.init(schemaName: "Value", content: value)),
                    ])
                try archive.recordAnswer(
                    Turn(number: number, prompt: prompt, date: Date(), entries: [.response(response)]), in: name)
            }
        }
        try store.database.write { database in
            // A row that is lost when the index is built again.
            try database.execute(
                sql: "INSERT INTO turn_text (rowid, text) SELECT (number << 32) + 1000, 'marker' FROM conversation WHERE id = 'b'"
            )
            if let change { try database.execute(sql: "UPDATE turn SET \(change) WHERE conversation = 'a' AND number = 3") }
        }
        func found(_ word: String, _ name: String) throws -> Int {
            try archive.store.turns(with: [word], in: name, count: 2_000, limit: 50)[0].count
        }
        func isInIndex(_ word: String) throws -> Bool {
            try store.database.read { database in
                try Int.fetchOne(
                    database, sql: "SELECT count(*) FROM turn_text_data WHERE instr(block, CAST(? AS BLOB))", arguments: [word])
            } != 0
        }
        #expect(try isInIndex("zebrafish") && found("zebrafish", "a") == 20)
        try archive.delete("a")
        #expect(try !isInIndex("zebrafish") && isInIndex("prompt") && found("others", "b") == 20 && found("answer", "b") == 20)
        #expect(try found("marker", "b") == (change == nil ? 1 : 0))
        // What a rebuild has indexed can be removed as well.
        try archive.delete("b")
        let rows = try store.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM turn_text_docsize") }
        #expect(try rows == 0 && !isInIndex("prompt"))
    }

    @Test("[D4] a conversation that is opened again continues without any loss", arguments: TestDatabase.available) func reopened(
        database: TestDatabase
    ) async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = folder.appending(path: "talk.sqlite")
        let model = StubModel(contextSize: 300)
        var transcript = Transcript()
        do {
            let conversation = try await Conversation(
                model: model, instructions: "Be brief.", archive: Self.archive(file, database), id: "a")
            try await conversation.pin("The code is 4711.")
            for turn in 0..<50 { try await conversation.respond(to: "Message \(turn) of subject\(turn).") }
            await conversation.compact()
            try await conversation.respond(to: "After the compaction.")
            transcript = await conversation.transcript
        }
        let again = try await Conversation(model: model, archive: Self.archive(file, database), id: "a")
        #expect(again.instructions == "Be brief.")
        #expect(await again.transcript.map(\.description) == transcript.map(\.description))
        #expect(await again.pinned == ["The code is 4711."])
        #expect(await again.unanswered == nil)
        try await again.respond(to: "Go on.")
        #expect(try again.archive.turns(of: "a").map(\.number) == Array(0..<52))
        #expect(try again.archive.conversations().map(\.title) == ["Message 0 of subject0."])
        #expect(try again.archive.conversations().first?.turnCount == 52)
    }

    @Test("[D4] an unanswered prompt is reported when the conversation is opened again", arguments: TestDatabase.available)
    func unanswered(database: TestDatabase) async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = folder.appending(path: "talk.sqlite")
        let model = StubModel(contextSize: 300)
        let conversation = try await Conversation(model: model, archive: Self.archive(file, database), id: "a")
        try await conversation.respond(to: "One.")
        // The state that a program leaves if it ends while the model answers.
        #expect(try conversation.archive.recordPrompt("Two.", number: 1, date: nil, in: "a"))
        let again = try await Conversation(model: model, archive: Self.archive(file, database), id: "a")
        #expect(await again.unanswered == "Two.")
        try await again.respond(to: "Three.")
        #expect(await again.unanswered == nil)
        #expect(await again.state.turns.map(\.prompt) == ["One.", "Three."])
    }

    @Test("[D4] on a full disk the answer is returned, and it is saved when space is available again") func fullDisk()
        async throws
    {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = folder.appending(path: "talk.sqlite")
        let long = (0..<3_000).map { "w\($0)" }.joined(separator: " ")
        let model = StubModel(contextSize: 20_000) { _ in long }
        let store = try SQLiteArchiveStore(url: file, isReadOnly: false, maximumPageCount: 40)
        let archive = ConversationArchive(store: store)
        let conversation = try await Conversation(model: model, archive: archive, id: "a")
        var answered = 0
        var unsaved = 0
        var refused = 0
        for turn in 0..<12 {
            do {
                try await conversation.respond(to: "Message \(turn)")
                answered += 1
                // Another program can read every returned answer from the file.
                let stored = try ConversationArchive(url: file).turns(of: "a")
                #expect(stored.filter { !$0.response.isEmpty }.count == answered)
            } catch ConversationError.unsaved {
                answered += 1
                unsaved += 1
            } catch ConversationError.archive {
                refused += 1
            }
        }
        #expect(answered > 0 && unsaved == 1 && refused > 0)
        #expect(await conversation.archiveProblem != nil)
        #expect(await conversation.state.turns.count == answered)
        // Space is available again.
        try await store.database.write { try $0.execute(sql: "PRAGMA max_page_count = 100000") }
        try await conversation.respond(to: "Now there is room.")
        #expect(await conversation.archiveProblem == nil)
        let again = try await Conversation(model: model, archive: ConversationArchive(url: file), id: "a")
        #expect(await again.state.turns.count == answered + 1)
    }

    @Test("opening a file that is not an archive throws an error") func damaged() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = folder.appending(path: "noise.sqlite")
        try Data((0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }).write(to: file)
        #expect(throws: ConversationError.self) { try ConversationArchive(url: file) }
        #expect(throws: ConversationError.self) { try ConversationArchive(url: URL(filePath: "/proc/nowhere/talk.sqlite")) }
    }

    /// A conversation of 40 turns, most of which have left the window; turn 3 is about a boat.
    private static func talk(in folder: URL) async throws -> URL {
        let file = folder.appending(path: "talk.sqlite")
        let conversation = try await Conversation(
            model: StubModel(contextSize: 300), instructions: "Be brief.", archive: ConversationArchive(url: file), id: "a")
        try await conversation.pin("The code is 4711.")
        for turn in 0..<40 {
            try await conversation.respond(
                to: turn == 3 ? "The boat of my uncle is called Tern Rock." : "Message \(turn) of subject\(turn).")
        }
        // The check of the context after the last answer could still have the file open.
        _ = try await conversation.report()
        await conversation.waitForSearch()
        try (conversation.archive.store as? SQLiteArchiveStore)?.database.close()
        return file
    }

    private static func change(_ file: URL, _ sql: String) throws {
        try DatabaseQueue(path: file.path).write { try $0.execute(sql: sql) }
    }

    @Test(
        "[D4] a damaged turn is reported and left out; all others stay usable, and so do prompts that would recall it",
        arguments: [
            "UPDATE turn SET entries = X'00FF' WHERE number = 3",
            // One bit of a letter.
            "UPDATE turn SET prompt = CAST(replace(CAST(prompt AS TEXT), 'Tern', 'Uern') AS BLOB) WHERE number = 3",
            "UPDATE turn SET entries = CAST(replace(CAST(entries AS TEXT), 'Yes', 'Yer') AS BLOB) WHERE number = 3",
            "UPDATE turn SET prompt = 7.5 WHERE number = 3",
        ])
    func damagedTurn(sql: String) async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = try await Self.talk(in: folder)
        try Self.change(file, sql)
        let archive = try ConversationArchive(url: file)
        #expect(try archive.turns(of: "a").map(\.number) == (0..<40).filter { $0 != 3 })
        #expect(try archive.damage(in: "a").map(\.turn) == [3])
        let again = try await Conversation(model: StubModel(contextSize: 300), archive: archive, id: "a")
        try await again.respond(to: "What is the boat of my uncle called?")
        let recall = try #require(await again.lastRecall)
        #expect(recall.isNeeded && recall.items.contains { $0.turn == 3 && $0.outcome == .damaged })
        #expect(await again.damage.contains { $0.turn == 3 })
        try await again.respond(to: "And what was subject17 about?")
        #expect(await again.lastRecall?.recalledItems.contains { $0.turn == 17 } == true)
    }

    @Test("[D4] a damaged context is rebuilt from the turns and the second copy of pinned facts and instructions")
    func damagedContext()
        async throws
    {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = try await Self.talk(in: folder)
        try Self.change(file, "UPDATE conversation SET context = CAST(replace(CAST(context AS TEXT), 'Yes', 'Yer') AS BLOB)")
        var again = try await Conversation(model: StubModel(contextSize: 300), archive: ConversationArchive(url: file), id: "a")
        #expect(await again.damage.map(\.turn) == [nil])
        #expect(again.instructions == "Be brief.")
        #expect(await again.pinned == ["The code is 4711."])
        try await again.respond(to: "Go on.")
        #expect(try again.archive.turns(of: "a").map(\.number) == Array(0..<41))
        // Damages both copies and sets an invalid number.
        try Self.change(file, "UPDATE conversation SET context = X'7B', head = 'x', revision = -1")
        again = try await Conversation(
            model: StubModel(contextSize: 300), instructions: "Be brief.", archive: ConversationArchive(url: file), id: "a")
        #expect(await again.damage.count == 1)
        try await again.respond(to: "Go on.")
        #expect(try again.archive.turns(of: "a").map(\.number) == Array(0..<42))
    }

    @Test("[D4] an archive opened for reading does not change, and a prompt throws an error that states the reason")
    func readOnly() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = try await Self.talk(in: folder)
        let before = try Data(contentsOf: file)
        let archive = try ConversationArchive(url: file, isReadOnly: true)
        #expect(archive.isReadOnly)
        #expect(try archive.conversations().map(\.turnCount) == [40])
        #expect(try archive.turns(of: "a").count == 40)
        let conversation = try await Conversation(model: StubModel(contextSize: 300), archive: archive, id: "a")
        #expect(try await conversation.recall(for: "What is the boat of my uncle called?").recalledItems.map(\.turn).contains(3))
        await #expect(throws: ConversationError.self) { try await conversation.respond(to: "Go on.") }
        #expect(try Data(contentsOf: file) == before)
        #expect(throws: ConversationError.self) { try ConversationArchive(url: folder.appending(path: "none"), isReadOnly: true) }
    }

    @Test(
        "[D4] two programs continue one conversation: each sees the other's turns, and none is lost",
        arguments: TestDatabase.available) func twoPrograms(database: TestDatabase)
        async throws
    {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = folder.appending(path: "talk.sqlite")
        let model = StubModel(contextSize: 400)
        let one = try await Conversation(model: model, archive: Self.archive(file, database), id: "a")
        let two = try await Conversation(model: model, archive: Self.archive(file, database), id: "a")
        for round in 0..<60 {
            try await one.respond(to: "One says \(round) about subject\(round).")
            try await two.respond(to: "Two says \(round) about topic\(round).")
            #expect(await two.transcript.wholeText.contains("One says \(round) about"))
        }
        try await one.pin("The code is 4711.")
        try await two.respond(to: "What is the code?")
        #expect(await two.pinned == ["The code is 4711."])
        #expect(await two.transcript.wholeText.contains("4711"))
        // Both concurrently, several times.
        try await withThrowingTaskGroup(of: Void.self) { group in
            for conversation in [one, two] {
                group.addTask { for round in 0..<20 { try await conversation.respond(to: "At once \(round).") } }
            }
            try await group.waitForAll()
        }
        let turns = try one.archive.turns(of: "a")
        #expect(turns.count == 161 && turns.map(\.number) == Array(0..<161))
        #expect(turns.allSatisfy { !$0.response.isEmpty })
        #expect(await one.archiveProblem == nil)
        try await one.respond(to: "The end.")
        try await two.respond(to: "Really.")
        #expect(await two.transcript.wholeText.contains("The end."))
    }

    @Test("[D4] the write-ahead log of an archive stays small, so that a small disk holds many turns")
    func smallLog() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = folder.appending(path: "talk.sqlite")
        let conversation = try await Conversation(
            model: StubModel(contextSize: 4_000), archive: ConversationArchive(url: file), id: "a")
        for turn in 0..<200 {
            try await conversation.respond(to: "Message \(turn) of subject\(turn).")
            let size = try FileManager.default.attributesOfItem(atPath: file.path + "-wal")[.size] as? Int
            #expect(size ?? 0 < 400_000)
        }
    }

    @Test(
        "[D4] invalid numbers in the file do not end the program",
        arguments: [
            "UPDATE turn SET number = 9223372036854775807 WHERE number = 39",
            "UPDATE turn SET number = -5 WHERE number = 3", "UPDATE turn SET number = 'abc' WHERE number = 3",
            "UPDATE turn SET words = 9223372036854775807", "UPDATE turn SET asked = 9e999", "UPDATE turn SET asked = 'never'",
            "UPDATE conversation SET revision = 9223372036854775807", "UPDATE conversation SET revision = 'abc'",
            "UPDATE conversation SET revision = 1.5", "UPDATE conversation SET created = 9e999, title = X'FF'",
            "UPDATE conversation SET context = CAST(replace(CAST(context AS TEXT), '\"next\":', '\"next\":9223372036854775') AS BLOB), "
                + "context_checksum = NULL",
        ])
    func invalidNumbers(sql: String) async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = try await Self.talk(in: folder)
        try Self.change(file, sql)
        let archive = try ConversationArchive(url: file)
        #expect(try archive.conversations().count == 1)
        let again = try await Conversation(model: StubModel(contextSize: 300), archive: archive, id: "a")
        for turn in 0..<30 { try await again.respond(to: "Go on with subject\(turn), please.") }
        try await again.pin("The door is green.")
        #expect(await again.archiveProblem == nil)
        #expect(try archive.turns(of: "a").count >= 68)
    }

    @Test(
        "[D4] a damaged index is rebuilt: turns are kept and found",
        arguments: [
            "UPDATE turn_text_data SET block = X'FFFFFFFFFFFFFFFF'",
            // Keeps the record of the index's structure: turns can be added, but searches fail.
            "UPDATE turn_text_data SET block = X'FFFFFFFFFFFFFFFF' WHERE id > 10",
            "DELETE FROM turn_text_config", "DELETE FROM turn_text_data",
        ])
    func damagedIndex(sql: String) async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = try await Self.talk(in: folder)
        try Self.change(file, sql)
        let again = try await Conversation(model: StubModel(contextSize: 300), archive: ConversationArchive(url: file), id: "a")
        for turn in 0..<20 { try await again.respond(to: "More of matter\(turn).") }
        #expect(await again.archiveProblem == nil)
        #expect(try again.archive.turns(of: "a").map(\.number) == Array(0..<60))
        // A request would make room for what it needs.
        await again.compact()
        let recall = try await again.recall(for: "What is the boat of my uncle called?")
        #expect(recall.problem == nil)
        #expect(recall.recalledItems.map(\.turn).contains(3), "\(recall.items.map { ($0.turn, $0.outcome) }) \(recall.budget)")
        let later = try await again.recall(for: "What about matter2?")
        #expect(later.items.map(\.turn).contains(42))
    }

    @Test("[D4] a conversation that has used the maximum turn number throws an error instead of retrying endlessly")
    func noNumbersLeft() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = try await Self.talk(in: folder)
        try Self.change(
            file,
            """
            UPDATE turn SET number = \(ConversationArchive.maximumNumber) WHERE number = 38;
            UPDATE turn SET number = \(ConversationArchive.maximumNumber + 1) WHERE number = 39;
            """)
        let again = try await Conversation(model: StubModel(contextSize: 300), archive: ConversationArchive(url: file), id: "a")
        await #expect(throws: ConversationError.self) { try await again.respond(to: "Go on.") }
        // The checksums of the two renumbered turns do not match any more.
        #expect(try again.archive.turns(of: "a").map(\.number) == Array(0..<38))
    }

    @Test(
        "[D4] a turn that another program is answering survives compactions by either program; pins of both are kept",
        arguments: TestDatabase.available)
    func inFlightElsewhere(database: TestDatabase)
        async throws
    {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = folder.appending(path: "talk.sqlite")
        let (asked, release) = (AsyncStream<Void>.makeStream(), AsyncStream<Void>.makeStream())
        let slow = StubModel(contextSize: 400) { transcript in
            if transcript.lastPrompt.contains("Slow") {
                asked.continuation.yield()
                for await _ in release.stream { break }
            }
            return "Yes."
        }
        let one = try await Conversation(model: slow, archive: Self.archive(file, database), id: "a")
        try await one.respond(to: "Begin.")
        try await one.pin("The code is 4711.")
        let answer = Task { try await one.respond(to: "Slow question about Halcyon.") }
        for await _ in asked.stream { break }
        // Opens, prompts, pins and compacts while the first program answers.
        let two = try await Conversation(model: StubModel(contextSize: 400), archive: Self.archive(file, database), id: "a")
        #expect(await two.unanswered == "Slow question about Halcyon.")
        try await two.respond(to: "Quick one.")
        await two.unpin("The code is 4711.")
        try await two.pin("The door is green.")
        await two.compact()
        release.continuation.yield()
        _ = try await answer.value
        try await two.respond(to: "What now?")
        #expect(await two.state.turns.map(\.number) == [0, 1, 2, 3])
        try await one.pin("The roof is red.")
        try await one.respond(to: "And now?")
        #expect(await one.state.turns.map(\.number) == [0, 1, 2, 3, 4])
        #expect(await one.pinned == ["The door is green.", "The roof is red."])
        #expect(try one.archive.turns(of: "a").allSatisfy { !$0.response.isEmpty })
    }
}
