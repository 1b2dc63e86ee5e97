internal import JSON

/// Keeps responses and conversations. What a call has written is there after the process ends, if the store is on a disk or a server.
protocol StateStore: Sendable {
    func save(_ response: StoredResponse) async throws
    /// Nil if there is none, or if it is of another client.
    func response(_ id: String, owner: String) async throws -> StoredResponse?
    /// - Returns: whether there was one.
    func deleteResponse(_ id: String, owner: String) async throws -> Bool

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
