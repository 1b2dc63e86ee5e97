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
        // Nobody writes it. Of one that is written, the lease goes on until it is ended or deleted.
        #expect(try await !store.extendLease(of: "resp_1", to: 100))
        var open = response
        (open.id, open.created, open.lease) = ("resp_2", 8, 50)
        try await store.save(open)
        #expect(try await store.extendLease(of: "resp_2", to: 100))
        #expect(try await store.response("resp_2", owner: "a")?.lease == 100)
        try await store.save(open.with(status: "cancelled"))
        #expect(try await !store.extendLease(of: "resp_2", to: 200))
        #expect(try await store.response("resp_2", owner: "a")?.object["status"]?.string == "cancelled")
        // The oldest ones are deleted beyond a number, and those before a time.
        for number in 3...6 {
            open.id = "resp_\(number)"
            open.created = number + 10
            try await store.save(open)
        }
        try await store.deleteResponses(before: 0, beyond: 4)
        #expect(try await store.response("resp_1", owner: "a") == nil)
        #expect(try await store.response("resp_2", owner: "a") == nil)
        try await store.deleteResponses(before: 14, beyond: 4)
        #expect(try await store.response("resp_3", owner: "a") == nil)
        #expect(try await store.response("resp_4", owner: "a") != nil)
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
