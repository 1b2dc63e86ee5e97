import Foundation
import FoundationModels
import GRDB
import Synchronization
import Testing

@testable import ContextKit

/// Tests that nothing of a conversation is lost when something fails in the middle.
struct SurvivalTests {
    private static func folder() throws -> URL {
        let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
    }

    private static func text(_ name: String, _ turn: Int) -> String {
        "Turn \(turn) of \(name). " + String(repeating: "Some words about \(name) and \(turn). ", count: 8)
    }

    /// A file with three conversations of 40 turns of about 600 bytes.
    private static func filledArchive(in folder: URL) async throws -> URL {
        let file = folder.appending(path: "talk.sqlite")
        let store = try SQLiteArchiveStore(url: file, isReadOnly: false, maximumPageCount: nil)
        let archive = ConversationArchive(store: store)
        for name in ["one", "two", "three"] {
            let conversation = try await Conversation(
                model: StubModel(contextSize: 400), instructions: "Be \(name).", archive: archive, id: name)
            try await conversation.pin("A fact of \(name).")
            for turn in 0..<40 { try await conversation.respond(to: text(name, turn)) }
            try await conversation.save()  // waits for the last compaction
        }
        // Everything is in the file itself.
        _ = try await store.database.writeWithoutTransaction { try $0.checkpoint(.truncate) }
        return file
    }

    /// Overwrites the beginning of each page that contains a text.
    private static func damagePages(of file: URL, with text: String) throws -> Int {
        var bytes = try Data(contentsOf: file)
        let size = Int(bytes[16]) << 8 | Int(bytes[17])
        var count = 0
        // The first page has the definitions of the tables.
        for start in stride(from: size, to: bytes.count, by: size)
        where bytes[start..<start + size].range(of: Data(text.utf8)) != nil {
            bytes.replaceSubrange(start..<start + 64, with: Data(repeating: 0xEE, count: 64))
            count += 1
        }
        try bytes.write(to: file)
        return count
    }

    @Test("[D4] a damaged page of turns costs only its turns, and all conversations continue") func damagedTurns() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = try await Self.filledArchive(in: folder)
        #expect(try Self.damagePages(of: file, with: "Turn 20 of one.") >= 1)

        // Without writing, all other turns can be read.
        let reading = try ConversationArchive(url: file, isReadOnly: true)
        #expect(Set(try reading.conversations().map(\.id)) == ["one", "two", "three"])
        let readable = try reading.turns(of: "one").map(\.number)
        let damaged = try reading.damage(in: "one").compactMap(\.turn)
        #expect(damaged.contains(20) && damaged.count < 20)
        #expect(Set(readable).isDisjoint(with: damaged) && readable.count + damaged.count == 40)

        let archive = try ConversationArchive(url: file)
        #expect(try archive.conversations().count == 3)
        for name in ["one", "two", "three"] {
            let conversation = try await Conversation(model: StubModel(contextSize: 400), archive: archive, id: name)
            #expect(await conversation.pinned == ["A fact of \(name)."])
            try await conversation.respond(to: "One more of \(name).")
            let turns = try archive.turns(of: name)
            #expect(turns.last?.prompt == "One more of \(name)." && turns.last?.number == 40)
            for turn in turns.dropLast() { #expect(turn.prompt == Self.text(name, turn.number)) }
        }
        #expect(try archive.turns(of: "one").map(\.number) == readable + [40])
        #expect(try archive.damage(in: "one").compactMap(\.turn) == damaged)
        #expect(try archive.turns(of: "two").count == 41)
        let found = try await Conversation(model: StubModel(contextSize: 400), archive: archive, id: "two")
        #expect(try await found.recall(for: "What did I say about two and 7?").items.contains { $0.turn == 7 })

        // A conversation that is deleted leaves the tables that were replaced too.
        let text = Data("Turn 7 of two.".utf8)
        #expect(try Data(contentsOf: file).range(of: text) != nil)
        try archive.delete("two")
        #expect(try Data(contentsOf: file).range(of: text) == nil)
        try archive.delete("one")
        #expect(try archive.conversations().map(\.id) == ["three"])
        #expect(try Data(contentsOf: file).range(of: Data("Turn 5 of one.".utf8)) == nil)
    }

    @Test("[D4] damaged pages of contexts: the turns are kept, and the conversations continue with the newest")
    func damagedContexts()
        async throws
    {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = try await Self.filledArchive(in: folder)
        #expect(try Self.damagePages(of: file, with: "A fact of one.") >= 1)
        let archive = try ConversationArchive(url: file)
        #expect(Set(try archive.conversations().map(\.id)) == ["one", "two", "three"])
        let conversation = try await Conversation(model: StubModel(contextSize: 400), archive: archive, id: "one")
        #expect(await !conversation.damage.isEmpty)
        try await conversation.respond(to: "Go on.")
        #expect(try archive.turns(of: "one").map(\.number) == Array(0...40))
        let new = try await Conversation(model: StubModel(contextSize: 400), archive: archive, id: "new")
        try await new.respond(to: "Hello.")
        #expect(try archive.conversations().count == 4)
        for name in ["one", "two"] { try archive.delete(name) }
        #expect(Set(try archive.conversations().map(\.id)) == ["three", "new"])
        #expect(try archive.turns(of: "three").count == 40 && archive.turns(of: "one").isEmpty)
    }

    /// Overwrites the beginning of the last page of tables and indexes.
    private static func damageLastPages(of file: URL, _ names: [String]) throws {
        let roots = try DatabaseQueue(path: file.path).read { database in
            try names.map { name in
                try #require(
                    try Int.fetchOne(database, sql: "SELECT rootpage FROM sqlite_master WHERE name = ?", arguments: [name]))
            }
        }
        var bytes = try Data(contentsOf: file)
        let size = Int(bytes[16]) << 8 | Int(bytes[17])
        for root in roots {
            var start = (root - 1) * size
            // Pages above the leaves end with the number of the last page below.
            while bytes[start] == 2 || bytes[start] == 5 {
                start = (bytes[start + 8..<start + 12].reduce(0) { $0 << 8 | Int($1) } - 1) * size
            }
            bytes.replaceSubrange(start..<start + 64, with: Data(repeating: 0xEE, count: 64))
        }
        try bytes.write(to: file)
    }

    @Test(
        "[D4] whichever page is damaged: all conversations continue, earlier turns are found, and the repair is done once",
        arguments: [
            ["turn"], ["sqlite_autoindex_turn_1"], ["turn_text_data"], ["turn_text_idx"], ["conversation"],
            ["sqlite_autoindex_conversation_1"], ["compaction"], ["turn_vector"], ["sqlite_autoindex_turn_vector_1"],
            ["turn", "conversation", "turn_text_data"],
        ])
    func damagedPages(names: [String]) async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = try await Self.filledArchive(in: folder)
        try Self.damageLastPages(of: file, names)
        func damagedTables() throws -> Int {
            try DatabaseQueue(path: file.path).read {
                try Int.fetchOne($0, sql: "SELECT count(*) FROM sqlite_master WHERE name LIKE 'damaged%'") ?? 0
            }
        }
        var tables: [Int] = []
        for round in 0..<3 {
            let store = try SQLiteArchiveStore(url: file, isReadOnly: false, maximumPageCount: nil)
            let archive = ConversationArchive(store: store)
            #expect(Set(try archive.conversations().map(\.id)).isSuperset(of: ["one", "two", "three"]))
            for name in ["one", "two", "three"] {
                let conversation = try await Conversation(model: StubModel(contextSize: 400), archive: archive, id: name)
                try await conversation.respond(to: "Round \(round) of \(name).")
                await conversation.compact()
                #expect(await conversation.archiveProblem == nil)
                #expect(try archive.turns(of: name).last?.prompt == "Round \(round) of \(name).")
                let found = try await conversation.recall(for: "What did I say about \(name) and 7?")
                #expect(found.problem == nil && found.items.contains { $0.turn == 7 })
            }
            #expect(try archive.turns(of: "two").count >= 20)
            tables.append(try damagedTables())
        }
        #expect(tables[1] == tables[0] && tables[2] == tables[0])
    }

    @Test("[D4] several programs open a new archive and begin the same conversation at the same moment") func openedTogether()
        async throws
    {
        for _ in 0..<20 {
            let folder = try Self.folder()
            defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
            let file = folder.appending(path: "talk.sqlite")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        _ = try await Conversation(
                            model: StubModel(contextSize: 400), archive: ConversationArchive(url: file), id: "same")
                    }
                }
                try await group.waitForAll()
            }
            #expect(try ConversationArchive(url: file).conversations().map(\.id) == ["same"])
        }
    }

    private struct Stopped: Error {}

    @Test("[B7] the window is exceeded during an answer, and the second attempt fails: the text that was shown is kept")
    func secondAttemptFails() async throws {
        let attempts = Mutex(0)
        let model = StubModel(contextSize: 200) { _ in
            let attempt = attempts.withLock { count in
                count += 1
                return count
            }
            if attempt == 1 { return "Yes." }
            if attempt == 2 { return String(repeating: "word ", count: 400) }
            throw Stopped()
        }
        let conversation = try await Conversation(model: model)
        try await conversation.respond(to: "Hello.")
        await #expect(throws: (any Error).self) { try await conversation.respond(to: "Tell me a long story.") }
        #expect(attempts.withLock { $0 } == 3)
        let turns = try conversation.archive.turns(of: conversation.id)
        #expect(turns.map(\.prompt) == ["Hello.", "Tell me a long story."])
        #expect(turns.last?.response.hasPrefix("word word word") == true)
    }

    @Test("[D4] what could not be saved on a full disk is saved when the program ends") func savedAtTheEnd() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let file = folder.appending(path: "talk.sqlite")
        let store = try SQLiteArchiveStore(url: file, isReadOnly: false, maximumPageCount: 60)
        let conversation = try await Conversation(
            model: StubModel(contextSize: 2_000) { _ in String(repeating: "word ", count: 300) },
            archive: ConversationArchive(store: store), id: "a")
        var unsaved: String?
        for turn in 0..<200 where unsaved == nil {
            do { try await conversation.respond(to: "Question \(turn).") } catch ConversationError.unsaved(let answer) {
                unsaved = answer.content
            } catch ConversationError.archive {
                // The prompt itself could not be written: nothing was answered.
                break
            }
        }
        try #require(unsaved != nil)
        await #expect(throws: ConversationError.self) { try await conversation.save() }
        try await store.database.write { try $0.execute(sql: "PRAGMA max_page_count = 100000") }
        try await conversation.save()
        #expect(await conversation.archiveProblem == nil)
        let again = try await Conversation(model: StubModel(contextSize: 2_000), archive: ConversationArchive(url: file), id: "a")
        #expect(await again.unanswered == nil)
        #expect(try again.archive.turns(of: "a").last?.response == unsaved)
    }

    @Test("[D4] changes of the context are written: facts removed during a request that fails, and new instructions")
    func contextIsWritten() async throws {
        let archive = try ConversationArchive()
        let box = Mutex<Conversation?>(nil)
        let model = StubModel(contextSize: 400) { transcript in
            guard transcript.lastPrompt.contains("Forget") else { return "Yes." }
            await box.withLock { $0 }?.unpin("My address is 5 Elm Street.")
            throw Stopped()
        }
        let conversation = try await Conversation(model: model, instructions: "Old.", archive: archive, id: "a")
        box.withLock { $0 = conversation }
        try await conversation.pin("My address is 5 Elm Street.")
        await #expect(throws: (any Error).self) { try await conversation.respond(to: "Forget my address.") }
        #expect(try archive.context(of: "a")?.context.pinned == [])
        box.withLock { $0 = nil }
        let second = try await Conversation(model: model, instructions: "New.", archive: archive, id: "a")
        try await second.respond(to: "Hello.")
        #expect(try await Conversation(model: model, archive: archive, id: "a").instructions == "New.")
    }

    @Test("[D4] a revision that is damaged while the program runs is repaired, and facts in memory are kept")
    func damagedRevision() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes a leftover
        let store = try SQLiteArchiveStore(url: folder.appending(path: "talk.sqlite"), isReadOnly: false, maximumPageCount: nil)
        let archive = ConversationArchive(store: store)
        let conversation = try await Conversation(model: StubModel(contextSize: 400), archive: archive, id: "a")
        try await conversation.pin("A fact.")
        try await store.database.write {
            try $0.execute(sql: "UPDATE conversation SET revision = 'x', context = 'y', head = 'z'")
        }
        try await conversation.respond(to: "Hello.")
        try await conversation.pin("Another fact.")
        #expect(await conversation.archiveProblem == nil)
        let again = try await Conversation(model: StubModel(contextSize: 400), archive: archive, id: "a")
        #expect(await again.pinned == ["A fact.", "Another fact."])
        #expect(try archive.turns(of: "a").map(\.prompt) == ["Hello."])
    }

    @Test("[C3] calls without outputs are not kept, also if text follows them") func callsWithoutOutputs() throws {
        func calls(_ id: String) throws -> Transcript.Entry {
            .toolCalls(.init([.init(id: id, toolName: "pay", arguments: try GeneratedContent(json: "{}"))]))
        }
        let prompt = Transcript.Entry.prompt(.init(segments: [.text(.init(content: "Pay."))]))
        let output = Transcript.Entry.toolOutput(.init(id: "1", toolName: "pay", segments: [.text(.init(content: "paid"))]))
        let response = Transcript.Entry.response(.init(assetIDs: [], segments: [.text(.init(content: "I pay now."))]))
        func kept(_ entries: [Transcript.Entry]) -> [String] {
            Turn(number: 0, prompt: "Pay.", date: nil, entries: entries).partial(text: nil).entries.map(\.description)
        }
        #expect(try kept([prompt, calls("1"), response]) == [prompt, response].map(\.description))
        #expect(try kept([prompt, calls("1"), output, calls("2")]) == [prompt, calls("1"), output].map(\.description))
    }

    @Test("[D4] a transcript with options that JSON has no numbers for can be saved, with all outputs of tools")
    func numbersThatJSONLacks() throws {
        let options = GenerationOptions(samplingMode: .random(probabilityThreshold: .nan), temperature: .infinity)
        let entries: [Transcript.Entry] = [
            .prompt(.init(segments: [.text(.init(content: "Pay."))], options: options)),
            .toolOutput(.init(id: "1", toolName: "Payment", segments: [.text(.init(content: "paid 100"))])),
        ]
        let data = try JSONEncoder().encode(Transcript(entries: entries))
        let decoded = try JSONDecoder().decode(Transcript.self, from: data)
        #expect(decoded.map(\.description) == entries.map(\.description))
        let turn = Turn(number: 0, prompt: "Pay.", date: nil, entries: entries).storable
        #expect(turn.entries.map(\.description) == entries.map(\.description))
    }
}
