internal import JSON

extension ChatTool {
    /// One argument, for formats that write arguments separately.
    struct Property {
        var name: String
        var schema: JSONValue
        var isRequired: Bool

        /// Whether the value is a string that can be written without JSON syntax.
        var isText: Bool {
            if choices != nil { return true }
            guard case .string("string")? = schema["type"] else { return false }
            // What restricts the string can be enforced for JSON strings only.
            let plain: Set = [
                "type", "title", "description", "default", "example", "examples", "$defs", "definitions", "$comment",
            ]
            guard case .object(let members) = schema else { return false }
            return members.allSatisfy { plain.contains($0.name) || $0.name.hasPrefix("x-") }
        }

        var choices: [String]? {
            guard case .array(let values)? = schema["enum"] else {
                if case .string(let constant)? = schema["const"] { return [constant] }
                return nil
            }
            let texts = values.compactMap { value -> String? in if case .string(let text) = value { text } else { nil } }
            return texts.count == values.count && !texts.isEmpty ? texts : nil
        }
    }

    var properties: [Property] {
        guard case .object(let members)? = parameters["properties"] else { return [] }
        var required: Set<String> = []
        if case .array(let names)? = parameters["required"] {
            for case .string(let name) in names { required.insert(name) }
        }
        return members.map { member in
            var schema = member.value
            // References are resolved against the definitions of the whole schema.
            for keyword in ["$defs", "definitions"] {
                if case .object(var own) = schema, let definitions = parameters[keyword], schema[keyword] == nil {
                    own.append(.init(keyword, definitions))
                    schema = .object(own)
                }
            }
            return Property(name: member.name, schema: schema, isRequired: required.contains(member.name))
        }
    }
}
