import Foundation
import FoundationModels
import GRDB
import Synchronization
import Testing

@testable import ContextKit

/// What the deletion of one conversation does to the others of its archive.
struct DeletionTests {
    /// Conversations of this many turns, and a row of the index for the second one that is lost if the index is built again.
    private static func archive(_ turns: [Int]) throws -> (ConversationArchive, SQLiteArchiveStore) {
        let store = try SQLiteArchiveStore()
        let archive = ConversationArchive(store: store)
        for (name, count) in zip(["a", "b"], turns) {
            try archive.begin(name, .init())
            for number in 0..<count {
                let prompt = "Prompt \(number) of \(name)."
                #expect(try archive.recordPrompt(prompt, number: number, date: Date(), in: name))
                let response = Transcript.Response(assetIDs: [], segments: [.text(.init(content: "Answer \(number)."))])
                try archive.recordAnswer(
                    Turn(number: number, prompt: prompt, date: Date(), entries: [.response(response)]), in: name)
            }
        }
        try store.database.write { database in
            try database.execute(
                sql: "INSERT INTO turn_text (rowid, text) SELECT (number << 32) + 1000, 'marker' FROM conversation WHERE id = 'b'"
            )
        }
        return (archive, store)
    }

    private static func isMarked(_ archive: ConversationArchive) throws -> Bool {
        try archive.store.turns(with: ["marker"], in: "b", count: 2_000, limit: 5) == [[1000]]
    }

    @Test(
        "[D8] a deletion reads and changes only the turns of its conversation, and lets others write before the index is tidied")
    func statements() throws {
        let (archive, store) = try Self.archive([3, 40])
        let log = Mutex<[String]>([])
        store.database.writeWithoutTransaction { database in
            database.trace { event in log.withLock { $0.append("\(event)") } }
        }
        try archive.delete("a")
        let statements = log.withLock { $0 }
        #expect(statements.count { $0.hasPrefix("INSERT INTO turn_text (turn_text, rowid, text) VALUES ('delete'") } == 3)
        #expect(!statements.contains { $0.contains("'delete-all'") || $0.hasPrefix("INSERT INTO turn_text (rowid") })
        #expect(statements.count { $0.contains("prompt, entries") } == 1)
        let commit = try #require(statements.firstIndex { $0.hasPrefix("COMMIT") })
        let merge = try #require(statements.firstIndex { $0.contains("'merge'") })
        #expect(commit < merge)
        #expect(try Self.isMarked(archive) && archive.turns(of: "b").count == 40)
    }

    @Test("[D8] words that were indexed in another time zone are removed too") func otherTimeZone() throws {
        let (archive, store) = try Self.archive([1, 1])
        let texts = try #require(try archive.turns(of: "a").first).searchedTexts
        #expect(Set(texts).count == 3)
        try store.database.write { database in
            let row = try #require(try SQLiteArchiveStore.firstRow(database, "a"))
            try database.execute(
                sql: "INSERT INTO turn_text (turn_text, rowid, text) VALUES ('delete', ?, ?)", arguments: [row, texts[0]])
            try database.execute(sql: "INSERT INTO turn_text (rowid, text) VALUES (?, ?)", arguments: [row, texts[2]])
            try database.execute(
                sql: "UPDATE turn SET text_checksum = ? WHERE conversation = 'a'",
                arguments: [SQLiteArchiveStore.checksum(texts[2])])
        }
        try archive.delete("a")
        #expect(try Self.isMarked(archive))
        let rows = try store.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM turn_text_docsize") }
        #expect(rows == 2)
    }
}
