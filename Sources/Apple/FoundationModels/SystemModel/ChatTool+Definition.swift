package import Inference
internal import JSON

extension Transcript.ToolDefinition {
    /// Checks that calls of the tool can be constrained to all guides of its parameters: ``ChatTool`` leaves out the others.
    ///
    /// - Throws: ``LanguageModelError/unsupportedGenerationGuide(_:)``.
    func checkGuides() throws { _ = try parameters.grammarSource() }
}

extension ChatTool {
    /// A tool with the schema that constrains its calls, and with a simplified schema for the prompt.
    package init(_ definition: Transcript.ToolDefinition) {
        self.init(
            name: definition.name, description: definition.description,
            parameters: Self.arguments(definition.parameters.grammarDocument.json),
            promptParameters: definition.explainsParameters ? Self.plain(definition.parameters.json) : nil)
    }

    /// The schema for the prompt, without the keywords that only programs need. Properties may have the names of these keywords.
    private static func plain(_ schema: JSONValue) -> JSONValue {
        schema.mappingSchemas { schema in
            guard case .object(let members) = schema else { return schema }
            return .object(
                members.filter { member in
                    // The schema of other members is a part of what the model must know.
                    if member.name == "additionalProperties", case .object = member.value { return true }
                    return !["title", "x-order", "additionalProperties", "$schema", "$comment"].contains(member.name)
                })
        }
    }

    /// A schema of arguments in the form in which calls need it: that of an object, in which each required argument is described,
    /// because some formats of calls write one argument after the other. JSON Schema demands neither.
    private static func arguments(_ schema: JSONValue) -> JSONValue {
        guard case .object(var members) = resolved(schema) else { return schema == .bool(true) ? .anyObject : schema }
        func change(_ name: String, _ value: JSONValue) {
            members.removeAll { $0.name == name }
            members.append(.init(name, value))
        }
        let schema = JSONValue.object(members)
        switch schema["type"] {
        case nil: change("type", .string("object"))
        case .array(let types)? where types.contains(.string("object")): change("type", .string("object"))
        default: break
        }
        var properties: [JSONValue.Member] = []
        if case .object(let known)? = schema["properties"] { properties = known }
        let others = schema["additionalProperties"] ?? .object([])
        if case .array(let required)? = schema["required"], others != .bool(false), schema["patternProperties"] == nil {
            var names = Set(properties.map(\.name))
            for case .string(let name) in required where names.insert(name).inserted { properties.append(.init(name, others)) }
            if !properties.isEmpty { change("properties", .object(properties)) }
        }
        return .object(members)
    }

    /// The schema that the root refers to, together with the definitions beside the reference. The root of some generators is only
    /// a reference.
    private static func resolved(_ schema: JSONValue) -> JSONValue {
        let rest: Set = ["$ref", "$defs", "definitions", "$schema", "title", "description"]
        guard case .object(let members) = schema, members.allSatisfy({ rest.contains($0.name) }),
            case .string(let reference)? = schema["$ref"], case .object(let target)? = schema.target(of: reference),
            !target.contains(where: { $0.name == "$ref" || $0.name == "$id" })
        else { return schema }
        let names = Set(target.map(\.name))
        return .object(target + members.filter { $0.name != "$ref" && !names.contains($0.name) })
    }
}

extension JSONValue {
    fileprivate static let anyObject = JSONValue.object([.init("type", .string("object"))])
}
