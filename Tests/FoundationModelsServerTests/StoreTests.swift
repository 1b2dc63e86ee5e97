import Foundation
import JSON
import TestSupport
import Testing

@testable import FoundationModelsServer

@Suite struct StoreTests {
    @Test func memory() async throws { try await check(SQLiteStateStore(nil)) }

    @Test func fileHasEverythingAfterwards() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "state.sqlite")
        try await check(SQLiteStateStore(file))
        let again = try SQLiteStateStore(file)
        #expect(try await again.response("resp_1", owner: "a")?.object["status"]?.string == "completed")
        // Nobody else may read it.
        for name in ["state.sqlite", "state.sqlite-wal"] {
            let mode =
                try FileManager.default.attributesOfItem(atPath: folder.appending(path: name).path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
    }

    #if PostgreSQL
    @Test(.enabled(if: ProcessInfo.processInfo.environment["FM_TEST_POSTGRESQL"] != nil))
    func postgreSQL() async throws {
        let server = ProcessInfo.processInfo.environment["FM_TEST_POSTGRESQL"] ?? ""
        try await check(PostgreSQLStateStore(server))
    }
    #endif

    private func check(_ store: any StateStore) async throws {
        // A server may have those of an earlier run.
        for number in 1...8 {
            for owner in ["a", "b"] { _ = try await store.deleteResponse("resp_\(number)", owner: owner) }
        }
        var response = StoredResponse(
            id: "resp_1", owner: "a", created: 5, previous: nil, object: .object([.init("status", .string("queued"))]),
            input: [.string("x\u{0}y")])
        try await store.save(response)
        response.object = .object([.init("status", .string("completed"))])
        try await store.save(response)
        let read = try await store.response("resp_1", owner: "a")
        #expect(read?.object["status"]?.string == "completed" && read?.input == [.string("x\u{0}y")])
        // What belongs to another client is not there.
        #expect(try await store.response("resp_1", owner: "b") == nil)
        #expect(try await !store.deleteResponse("resp_1", owner: "b"))
        // Nobody writes it. Of one that is written, the lease goes on until it is finished or deleted.
        #expect(try await !store.extendLease(of: "resp_1", by: 100))
        #expect(try await !store.finish("resp_1", as: .null))
        let now = Int(Date().timeIntervalSince1970)
        var open = response
        (open.id, open.created, open.lease) = ("resp_2", now - 50, -5)
        try await store.save(open)
        #expect(try #require(try await store.response("resp_2", owner: "a")?.lease) <= 0)
        #expect(try await store.extendLease(of: "resp_2", by: 1_000))
        #expect(try #require(try await store.response("resp_2", owner: "a")?.lease) > 900)
        // The first end holds.
        #expect(try await store.finish("resp_2", as: open.with(status: "cancelled").object))
        #expect(try await !store.finish("resp_2", as: .null))
        #expect(try await !store.extendLease(of: "resp_2", by: 1_000))
        let ended = try await store.response("resp_2", owner: "a")
        #expect(ended?.object["status"]?.string == "cancelled" && ended?.lease == nil)
        // The oldest ones of a client are deleted beyond a number, and those before a time; not those that others continue or that are
        // being written.
        for number in 3...8 {
            open.id = "resp_\(number)"
            open.created = now - 50 + number
            open.owner = number == 8 ? "b" : "a"
            open.lease = number == 3 ? 1_000 : nil
            open.previous = number == 6 ? "resp_4" : nil
            try await store.save(open)
        }
        func kept() async throws -> [Int] {
            var kept: [Int] = []
            for number in 1...8 where try await store.response("resp_\(number)", owner: number == 8 ? "b" : "a") != nil {
                kept.append(number)
            }
            return kept
        }
        try await store.deleteResponses(olderThan: 1_000, beyond: 10)
        #expect(try await kept() == [2, 3, 4, 5, 6, 7, 8])
        try await store.deleteResponses(olderThan: 1_000, beyond: 2)
        #expect(try await kept() == [3, 4, 6, 7, 8])
        try await store.deleteResponses(olderThan: 0, beyond: 10)
        #expect(try await kept() == [3, 4])
        try await store.save(response)

        let id = RequestIdentifier.make("conv_")
        try await store.save(StoredConversation(id: id, owner: "a", created: 1, metadata: .object([])))
        try await store.append([StoredItem(id: "1", json: .int(1)), StoredItem(id: "2", json: .int(2))], to: id, expected: 0)
        let (items, next) = try await store.items(of: id)
        #expect(items.map(\.id) == ["1", "2"] && next == 2)
        // Two requests that continue the same conversation at once: the second one is told.
        try await store.append([StoredItem(id: "3", json: .int(3))], to: id, expected: next)
        await #expect(throws: StateConflict.self) {
            try await store.append([StoredItem(id: "4", json: .int(4))], to: id, expected: next)
        }
        // Items that are there already stay.
        try await store.append([StoredItem(id: "1", json: .int(9)), StoredItem(id: "5", json: .int(5))], to: id, expected: nil)
        #expect(try await store.deleteItem("2", of: id))
        #expect(try await store.items(of: id).items.map(\.id) == ["1", "3", "5"])
        #expect(try await store.items(of: id).items.first?.json == .int(1))
        #expect(try await store.deleteConversation(id, owner: "a"))
        #expect(try await store.conversation(id, owner: "a") == nil)
    }
}
