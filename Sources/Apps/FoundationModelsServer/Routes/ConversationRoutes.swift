internal import Foundation
internal import Hummingbird
internal import JSON

/// Conversations of the Responses API: https://platform.openai.com/docs/api-reference/conversations
extension ModelServer {
    var conversationRoutes: [Route] {
        [
            .api(.post, "/conversations") { [self] exchange in
                var fields = try Fields(try await exchange.body())
                let metadata = fields.value("metadata") ?? .object([])
                let items = try Self.items(&fields)
                try fields.finish()
                let conversation = StoredConversation(
                    id: RequestIdentifier.make("conv_"), owner: exchange.owner, created: Int(Date().timeIntervalSince1970),
                    metadata: metadata)
                try await store.save(conversation)
                try await store.append(items, to: conversation.id, expected: nil)
                return .json(conversation.json)
            },
            .api(.get, "/conversations/{id}") { [self] exchange in .json(try await conversation(exchange).json) },
            .api(.post, "/conversations/{id}") { [self] exchange in
                var conversation = try await conversation(exchange)
                var fields = try Fields(try await exchange.body())
                conversation.metadata = fields.value("metadata") ?? .object([])
                try fields.finish()
                try await store.save(conversation)
                return .json(conversation.json)
            },
            .api(.delete, "/conversations/{id}") { [self] exchange in
                let id = try exchange.parameter("id")
                guard try await store.deleteConversation(id, owner: exchange.owner) else { throw Self.unknownConversation(id) }
                return .json(
                    .object([
                        .init("id", .string(id)), .init("object", .string("conversation.deleted")), .init("deleted", .bool(true)),
                    ]))
            },
            .api(.get, "/conversations/{id}/items") { [self] exchange in
                let conversation = try await conversation(exchange)
                return .json(Self.list(try await store.items(of: conversation.id).items.map(\.json), exchange))
            },
            .api(.post, "/conversations/{id}/items") { [self] exchange in
                let conversation = try await conversation(exchange)
                var fields = try Fields(try await exchange.body())
                let items = try Self.items(&fields)
                try fields.finish()
                try await store.append(items, to: conversation.id, expected: nil)
                return .json(Self.list(items.reversed().map(\.json), exchange))
            },
            .api(.get, "/conversations/{id}/items/{item}") { [self] exchange in
                let conversation = try await conversation(exchange)
                let id = try exchange.parameter("item")
                guard let item = try await store.items(of: conversation.id).items.first(where: { $0.id == id }) else {
                    throw RequestError(404, code: "not_found", param: "item_id", "There is no item “\(id)”.")
                }
                return .json(item.json)
            },
            .api(.delete, "/conversations/{id}/items/{item}") { [self] exchange in
                let conversation = try await conversation(exchange)
                let id = try exchange.parameter("item")
                guard try await store.deleteItem(id, of: conversation.id) else {
                    throw RequestError(404, code: "not_found", param: "item_id", "There is no item “\(id)”.")
                }
                return .json(conversation.json)
            },
        ]
    }

    private func conversation(_ exchange: Exchange) async throws -> StoredConversation {
        let id = try exchange.parameter("id")
        guard let conversation = try await store.conversation(id, owner: exchange.owner) else {
            throw Self.unknownConversation(id)
        }
        return conversation
    }

    private static func items(_ fields: inout Fields) throws -> [StoredItem] {
        guard let values = try fields.array("items") else { return [] }
        guard values.count <= ChatRequest.maximumMessages else {
            throw RequestError.invalid("items", "“items” has too many items.")
        }
        var check = ResponseItems()
        return try values.enumerated().map { index, value in
            try check.add(value, place: "items[\(index)]")
            let item = ResponseItems.listed(value)
            return StoredItem(id: item["id"]?.string ?? "", json: item)
        }
    }
}
