#if PostgreSQL
import Foundation
import FoundationModels
@testable import FoundationModelsPostgreSQL
import TestSupport
import Testing

@testable import ContextKit

/// Archives on a server that goes away. `./test` starts one where it can.
@Suite(.enabled(if: TestDatabase.available.count > 1, "no PostgreSQL server: see Tests/Tools/postgresql.sh"), .serialized)
struct PostgreSQLArchiveTests {
    private let server = TestDatabase.available.lazy.compactMap(\.server).first ?? ""

    private func schema() -> String { "test \(UUID().uuidString)" }

    @Test("[D4] a server crashes during a conversation: nothing that was answered is lost")
    func crash() async throws {
        let schema = schema()
        let archive = try ConversationArchive(postgreSQL: server, schema: schema)
        let model = StubModel(contextSize: 300) { transcript in
            if transcript.lastPrompt.contains("crash") { try? TestDatabase.control("crash") }
            return "Yes."
        }
        let conversation = try await Conversation(model: model, archive: archive, id: "a")
        for turn in 0..<30 { try await conversation.respond(to: "Message \(turn) of subject\(turn).") }
        // The server goes away while the model answers: the answer is kept in memory, and further prompts are refused.
        await #expect(throws: ConversationError.self) { try await conversation.respond(to: "Now a crash of Halcyon.") }
        #expect(await conversation.archiveProblem?.errorDescription?.contains("server") == true)
        await #expect(throws: ConversationError.self) { try await conversation.respond(to: "Refused.") }
        try TestDatabase.control("restart")
        try await conversation.respond(to: "Again.")
        #expect(await conversation.archiveProblem == nil)
        let reader = try ConversationArchive(postgreSQL: server, schema: schema, isReadOnly: true)
        let turns = try reader.turns(of: "a")
        #expect(turns.map(\.number) == Array(0..<32) && turns.allSatisfy { $0.response == "Yes." })
        #expect(turns[30].prompt == "Now a crash of Halcyon.")
        #expect(try reader.conversations().map(\.turnCount) == [32] && reader.compactions(of: "a").count > 0)
        let again = try await Conversation(model: model, archive: reader, id: "a")
        #expect(try await again.recall(for: "What was subject17 about?").recalledItems.map(\.turn).contains(17))
        await #expect(throws: ConversationError.self) { try await again.respond(to: "No.") }
    }

    @Test("[D4] a lock of another program ends a request with an error, and blocks no other task", .timeLimit(.minutes(2)))
    func locked() async throws {
        let schema = schema()
        let archive = try ConversationArchive(postgreSQL: server + " options='-c lock_timeout=300ms'", schema: schema)
        let conversation = try await Conversation(model: StubModel(contextSize: 300), archive: archive, id: "a")
        try await conversation.respond(to: "Hello.")
        let other = try PostgreSQLConnection(server)
        try other.execute("BEGIN; SET LOCAL search_path TO \(PostgreSQLConnection.quoted(schema)); LOCK TABLE turn")
        // More requests than cores wait for the lock. Meanwhile other tasks go on.
        let count = ProcessInfo.processInfo.activeProcessorCount + 2
        let results = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<count {
                group.addTask {
                    do {
                        let copy = try await Conversation(model: StubModel(contextSize: 300), archive: archive, id: "a")
                        try await copy.respond(to: "Are you there?")
                        return false
                    } catch { return error is ConversationError }
                }
            }
            for _ in 0..<100 { await Task.yield() }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results == Array(repeating: true, count: count))
        try other.execute("ROLLBACK")
        try await conversation.respond(to: "And now?")
        #expect(try archive.turns(of: "a").count == 2)
    }

    @Test("[D4] an answer whose commit may have been lost is written again; another answer is refused")
    func writtenAgain() throws {
        let archive = try ConversationArchive(
            postgreSQL: server + " options='-c bytea_output=escape -c extra_float_digits=0'", schema: schema())
        try archive.begin("a", .init())
        let date = Date(timeIntervalSince1970: 1_753_900_000.123456)
        func turn(_ text: String) -> Turn {
            let segments: [Transcript.Segment] = [.text(.init(id: "1", content: text))]
            return Turn(
                number: 0, prompt: "Hello.", date: date,
                entries: [
                    .prompt(.init(id: "2", segments: [.text(.init(id: "3", content: "Hello."))])),
                    .response(.init(id: "4", assetIDs: ["x"], segments: segments)),
                ])
        }
        for _ in 0..<20 { try archive.recordAnswer(turn("Fine."), in: "a") }
        #expect(throws: ConversationError.self) { try archive.recordAnswer(turn("No."), in: "a") }
        #expect(try archive.turns(of: "a").map(\.response) == ["Fine."])
        #expect(try archive.turns(of: "a").first?.date == date && archive.damage(in: "a").isEmpty)
    }

    @Test("[D4] both databases find the same turns by words")
    func sameTurns() async throws {
        let prompts = [
            "My dog Rex ate 3 apples.", "Naïve café owners run.", "東京は大きい都市です。", "The path is /usr/share/doc.",
            "O'Brien's well-known boat.", "Running dogs and running cats.", "Нам нравится море.", "a\0b zebra",
            "v2.0 or 3.14?",
            String(repeating: "words ", count: 100_000) + "Quetzal",
        ]
        let archives = [
            try ConversationArchive(), try ConversationArchive(postgreSQL: server, schema: schema()),
        ]
        for archive in archives {
            try archive.begin("it's \\", .init())
            for (number, prompt) in prompts.enumerated() {
                #expect(try archive.recordPrompt(prompt, number: number, date: nil, in: "it's \\"))
                #expect(try !archive.recordPrompt(prompt, number: number, date: nil, in: "it's \\"))
                let response = Transcript.Response(assetIDs: [], segments: [.text(.init(content: "Fine."))])
                let date = Date(timeIntervalSince1970: 1_700_000_000)
                let turn = Turn(number: number, prompt: prompt, date: date, entries: [.response(response)])
                try archive.recordAnswer(turn, in: "it's \\")
            }
            #expect(try archive.turns(of: "it's \\").map(\.prompt) == prompts)
        }
        let words = [
            "rex", "dog", "run", "cafe", "都", "市", "share", "brien", "known", "море", "zebra", "2", "14", "quetzal", "fine",
            "yes",
            "zzy2023", "zzm11",
        ]
        let found = try archives.map { try $0.store.turns(with: words, in: "it's \\", count: 20, limit: 5) }
        for (number, word) in words.enumerated() { #expect(found[0][number] == found[1][number], "\(word)") }
        #expect(found[1][1] == [5, 0] && found[1][15] == [])
        #expect(
            try archives[1].store.wordCounts(of: [0, 9], in: "it's \\")
                == archives[0].store.wordCounts(of: [0, 9], in: "it's \\"))
        await #expect(throws: ConversationError.self) {
            try await Conversation(model: StubModel(contextSize: 300), archive: archives[1], id: "a\0b")
        }
    }

    @Test("[D4] vectors of turns are read in the order in which programs added them")
    func vectors() async throws {
        let schema = schema()
        let archive = try ConversationArchive(postgreSQL: server, schema: schema)
        try archive.begin("a", .init())
        let server = server
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                group.addTask {
                    let own = try ConversationArchive(postgreSQL: server, schema: schema)
                    for turn in 0..<40 {
                        try own.store.addVectors([(turn, Data([UInt8(writer)]))], in: "a", model: "m")
                    }
                }
            }
            var (last, seen): (Int64, [Int]) = (0, [])
            try await eventually {
                for record in try archive.vectors(in: "a", model: "m", after: last) {
                    last = record.row
                    seen.append(record.turn)
                }
                return seen.count >= 40
            }
            try await group.waitForAll()
            #expect(seen.sorted() == Array(0..<40))
        }
    }
}
#endif
