internal import Inference
internal import JSON

extension ChatTool {
    /// A tool with the schema that constrains its calls, and with a simplified schema for the prompt.
    init(_ definition: Transcript.ToolDefinition) {
        let parameters = definition.parameters.json
        self.init(
            name: definition.name, description: definition.description, parameters: parameters,
            promptParameters: definition.explainsParameters ? Self.plain(parameters) : nil)
    }

    private static func plain(_ schema: JSONValue) -> JSONValue {
        switch schema {
        case .object(let members):
            .object(
                members.filter { !["title", "x-order", "additionalProperties"].contains($0.name) || isProperty($0.value) }
                    .map { .init($0.name, plain($0.value)) })
        case .array(let values): .array(values.map(plain))
        default: schema
        }
    }

    /// A property may have the name of a keyword; its value is then a schema.
    private static func isProperty(_ value: JSONValue) -> Bool {
        if case .object = value { value["type"] != nil || value["$ref"] != nil || value["anyOf"] != nil } else { false }
    }
}
