internal import JSON

/// Keeps responses and conversations. What a call has written is there after the process ends, if the store is on a disk or a server.
protocol StateStore: Sendable {
    func save(_ response: StoredResponse) async throws
    /// Nil if there is none, or if it is of another client.
    func response(_ id: String, owner: String) async throws -> StoredResponse?
    /// - Returns: whether there was one.
    func deleteResponse(_ id: String, owner: String) async throws -> Bool
    /// Says that a server still writes a response, for some seconds.
    ///
    /// - Returns: false if nobody wants the response any more: it was deleted, or another server ended it.
    func extendLease(of id: String, by seconds: Int) async throws -> Bool
    /// Writes the last object of a response that a server writes, and ends the lease.
    ///
    /// - Returns: false, and nothing is written, if the response was deleted or has been ended.
    func finish(_ id: String, as object: JSONValue) async throws -> Bool
    /// Deletes the responses that are older than some seconds, and the oldest ones of each client beyond a number. Those that others
    /// continue stay, and those that are being written.
    func deleteResponses(olderThan seconds: Int, beyond count: Int) async throws

    func save(_ conversation: StoredConversation) async throws
    func conversation(_ id: String, owner: String) async throws -> StoredConversation?
    /// Deletes a conversation and its items.
    func deleteConversation(_ id: String, owner: String) async throws -> Bool
    /// The items of a conversation, in order, with the number of those that were ever added.
    func items(of conversation: String) async throws -> (items: [StoredItem], next: Int)
    /// Appends items. Those that are there already, which clients may send again, stay where they are.
    ///
    /// - Parameter expected: the number that ``items(of:)`` said; nil for any.
    /// - Throws: ``StateConflict`` if somebody else has added items meanwhile.
    func append(_ items: [StoredItem], to conversation: String, expected: Int?) async throws
    func deleteItem(_ id: String, of conversation: String) async throws -> Bool

    /// Writes a conversation of the console.
    ///
    /// - Parameter expected: the revision that it has, if it is there; nil if it is not known to be.
    /// - Returns: the new revision.
    /// - Throws: ``StateConflict`` if another page has written it meanwhile.
    func save(_ conversation: ConsoleConversation, expected: Int?) async throws -> Int
    func consoleConversation(_ id: String, owner: String) async throws -> ConsoleConversation?
    /// Those of a client, the newest first.
    ///
    /// - Parameter words: texts that the title or the messages contain, whatever the case.
    func consoleConversations(owner: String, containing words: [String]) async throws -> [ConsoleConversation.Summary]
    func deleteConsoleConversation(_ id: String, owner: String) async throws -> Bool
}

extension StateStore {
    /// The most conversations of a list.
    static var maximumListed: Int { 500 }
}

/// Another request has continued the same conversation.
struct StateConflict: Error {}

struct StoredResponse: Sendable {
    var id: String
    var owner: String
    var created: Int
    var previous: String?
    /// The response object.
    var object: JSONValue
    /// The items of the request, without those of earlier responses.
    var input: [JSONValue]
    /// The seconds for which a server will write it before it says so again, by the clock of the store; nil if none does.
    var lease: Int?

    /// Whether it is still being written, or was when its server ended.
    var isOpen: Bool { ["queued", "in_progress"].contains(object["status"]?.string ?? "") }

    /// The same with another status, written by nobody.
    func with(status: String) -> StoredResponse {
        var changed = self
        changed.lease = nil
        if case .object(let members) = object {
            changed.object = .object(members.map { $0.name == "status" ? .init("status", .string(status)) : $0 })
        }
        return changed
    }

    var output: [JSONValue] { if case .array(let items)? = object["output"] { items } else { [] } }
}

struct StoredConversation: Sendable {
    var id: String
    var owner: String
    var created: Int
    var metadata: JSONValue

    var json: JSONValue {
        .object([
            .init("id", .string(id)), .init("object", .string("conversation")), .init("created_at", .int(created)),
            .init("metadata", metadata),
        ])
    }
}

struct StoredItem: Sendable {
    var id: String
    var json: JSONValue
}
