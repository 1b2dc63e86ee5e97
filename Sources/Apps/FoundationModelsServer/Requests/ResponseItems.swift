internal import Inference
internal import JSON

/// Items of the Responses API: what they say as messages of a conversation.
struct ResponseItems {
    private(set) var messages: [ChatMessage] = []
    /// The types that this server does not know, which are left out.
    private(set) var skipped: [String] = []
    private var names: [String: String] = [:]

    /// Items that are stored were checked when they came.
    mutating func add(stored items: [JSONValue]) throws(RequestError) { for item in items { try add(item, place: "input") } }

    /// - Parameter place: where the item is in the request.
    mutating func add(_ item: JSONValue, place: String) throws(RequestError) {
        var fields = try Fields(item, place)
        let type = try fields.string("type") ?? "message"
        switch type {
        case "message":
            let role = try fields.choice("role", ["user", "assistant", "system", "developer"])
            guard let role else { throw .invalid(fields.place("role"), "“\(fields.place("role"))” is missing.") }
            let text = try Self.text(&fields)
            messages.append(
                ChatMessage(role: role == "user" ? .user : role == "assistant" ? .assistant : .system, content: text))
        case "function_call":
            let call = ChatToolCall(
                id: try fields.string(required: "call_id"), name: try fields.string(required: "name"),
                arguments: ChatRequest.arguments(try fields.string("arguments")))
            names[call.id] = call.name
            if let last = messages.indices.last, messages[last].role == .assistant {
                messages[last].toolCalls.append(call)
            } else {
                var message = ChatMessage(role: .assistant, content: "")
                message.toolCalls = [call]
                messages.append(message)
            }
        case "function_call_output":
            let id = try fields.string(required: "call_id")
            var message = ChatMessage(role: .tool, content: try Self.text(&fields, "output"))
            (message.toolCallID, message.toolName) = (id, names[id])
            messages.append(message)
        case "reasoning":
            // What a model has thought is for the next part of the same turn.
            break
        default: skipped.append(type)
        }
    }

    private static func text(_ fields: inout Fields, _ name: String = "content") throws(RequestError) -> String {
        guard let value = fields.value(name) else {
            throw .invalid(fields.place(name), "“\(fields.place(name))” is missing.")
        }
        if let text = value.string { return text }
        var texts: [String] = []
        for var part in try fields.objects(name) ?? [] {
            switch try part.string(required: "type") {
            case "input_text", "output_text", "text": texts.append(try part.string(required: "text"))
            case "refusal": texts.append(try part.string(required: "refusal"))
            default: throw .unsupportedValue(part.place("type"), "models of this server read text only.")
            }
        }
        return texts.joined(separator: "\n")
    }

    /// An item as it is listed: with an identifier, a type, and contents in parts.
    static func listed(_ item: JSONValue) -> JSONValue {
        guard case .object(var members) = item else { return item }
        let type = item["type"]?.string ?? "message"
        members.removeAll { ["id", "type"].contains($0.name) }
        let prefix =
            ["message": "msg_", "function_call": "fc_", "function_call_output": "fco_", "reasoning": "rs_"][type] ?? "item_"
        let id = item["id"]?.string ?? RequestIdentifier.make(prefix)
        if type == "message" {
            if item["status"] == nil { members.append(.init("status", .string("completed"))) }
            if let text = item["content"]?.string {
                let isOutput = item["role"]?.string == "assistant"
                var part: [JSONValue.Member] = [
                    .init("type", .string(isOutput ? "output_text" : "input_text")), .init("text", .string(text)),
                ]
                if isOutput { part.append(.init("annotations", .array([]))) }
                members = members.map { $0.name == "content" ? .init("content", .array([.object(part)])) : $0 }
            }
        }
        return .object([.init("id", .string(id)), .init("type", .string(type))] + members)
    }
}
