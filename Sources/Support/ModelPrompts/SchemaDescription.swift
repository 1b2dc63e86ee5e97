package import JSON

/// A compact description of a schema for the prompt: `{"name": text, "age": integer 0...99, "tags": [text]}`.
///
/// It needs a third of the tokens of JSON Schema, and small models do not mistake it for an answer. The response is
/// constrained by the schema itself.
package struct SchemaDescription {
    private let root: JSONValue
    private var defined: Set<String> = []
    /// References to named types, in the order of their first use.
    private var named: [String] = []

    private init(_ root: JSONValue) { self.root = root }

    /// The part of a prompt that asks for a value of a schema.
    package static func request(for schema: JSONValue) -> String {
        let text = text(of: schema, isArguments: false)
        return ModelPrompts.value(text, hasOptionals: text.contains(" or null"))
    }

    /// - Parameter isArguments: Whether an object at the root is a list of arguments, which is written without braces
    ///   and quotes.
    package static func text(of json: JSONValue, isArguments: Bool) -> String {
        var writer = SchemaDescription(json)
        var text = isArguments ? writer.members(json, quoted: false) : writer.value(json)
        // Definitions of named types follow, each once.
        guard !writer.named.isEmpty else { return text }
        var schemas = ["#": json]
        if case .object(let members)? = json["$defs"] {
            for member in members { schemas["#/$defs/" + SchemaPointer.escaped(member.name)] = member.value }
        }
        var index = 0
        while index < writer.named.count {
            let reference = writer.named[index]
            let schema = schemas[reference] ?? json.target(of: reference) ?? .object([])
            text += "\n\(writer.name(reference)) = " + writer.value(schema)
            index += 1
        }
        return text
    }

    private mutating func value(_ schema: JSONValue) -> String {
        if case .string(let reference)? = schema["$ref"] { return named(reference) }
        if case .string(let constant)? = schema["const"] { return JSONValue.string(constant).text }
        if case .array(let choices)? = schema["enum"] { return choices.map(\.text).joined(separator: " or ") }
        // What the keywords of the schema itself say comes before what they are combined with.
        var parts = [single(schema)]
        if case .array(let all)? = schema["allOf"] { parts += all.map { value($0) } }
        parts.removeAll { $0 == Self.anything || $0 == "{}" }
        if !parts.isEmpty { return parts.joined(separator: " and ") }
        if case .array(let alternatives)? = schema["anyOf"] ?? schema["oneOf"], !alternatives.isEmpty {
            return alternatives.map { value($0) }.joined(separator: " or ")
        }
        return type(of: schema) == "object" ? "{}" : Self.anything
    }

    private static let anything = "anything"

    /// The description of a schema without what it is combined with.
    private mutating func single(_ schema: JSONValue) -> String {
        if case .array(let types)? = schema["type"] {
            // A type, or null. Each type once, so that the work does not multiply with each level.
            var seen: Set<String> = []
            let names = types.compactMap(\.string).filter { seen.insert($0).inserted }
            guard case .object(let members) = schema else { return Self.anything }
            return names.map { name in
                single(.object(members.filter { $0.name != "type" } + [.init("type", .string(name))]))
            }.joined(separator: " or ")
        }
        switch type(of: schema) {
        // The grammar enforces patterns; a small model mistakes them for examples.
        case "string": return "text"
        case "integer": return "integer" + range(schema, "minimum", "maximum")
        case "number": return "number" + range(schema, "minimum", "maximum")
        case "boolean": return "true or false"
        case "null": return "null"
        case "array": return "[\(value(schema["items"] ?? .object([])))]" + range(schema, "minItems", "maxItems")
        case "object": return "{" + members(schema, quoted: true) + "}"
        default: return Self.anything
        }
    }

    /// The type of a schema, which may follow from its keywords.
    private func type(of schema: JSONValue) -> String? {
        if case .string(let type)? = schema["type"] { return type }
        if ["properties", "required", "additionalProperties", "patternProperties"].contains(where: { schema[$0] != nil }) {
            return "object"
        }
        return schema["items"] == nil ? nil : "array"
    }

    private mutating func members(_ schema: JSONValue, quoted: Bool) -> String {
        var properties: [JSONValue.Member] = []
        if case .object(let members)? = schema["properties"] { properties = members }
        var required: [String] = []
        if case .array(let names)? = schema["required"] {
            required = names.compactMap { if case .string(let name) = $0 { name } else { nil } }
        }
        // A required member may have no description.
        let described = Set(properties.map(\.name))
        properties += required.filter { !described.contains($0) }.map { JSONValue.Member($0, .object([])) }
        let names = Set(required)
        var texts = properties.map { property in
            let name = quoted ? JSONValue.string(property.name).text : property.name
            var text = name + (names.contains(property.name) ? "" : "?") + ": " + value(property.value)
            if case .string(let description)? = property.value["description"], !description.isEmpty {
                text += " (\(description))"
            }
            return text
        }
        // A dictionary: any number of members whose names are not known.
        if let others = schema["additionalProperties"], case .object = others { texts.append("text: \(value(others)), …") }
        if case .object(let patterns)? = schema["patternProperties"] {
            texts += patterns.map { "text: \(value($0.value)), …" }
        }
        return texts.joined(separator: ", ")
    }

    private func range(_ schema: JSONValue, _ minimumKey: String, _ maximumKey: String) -> String {
        let (from, to) = (schema[minimumKey]?.text, schema[maximumKey]?.text)
        if from == nil, to == nil { return "" }
        return from == to ? " \(from ?? "")" : " \(from ?? "")...\(to ?? "")"
    }

    private mutating func named(_ reference: String) -> String {
        if defined.insert(reference).inserted { named.append(reference) }
        return name(reference)
    }

    /// The name of a type in the description.
    private func name(_ reference: String) -> String {
        if reference == "#" { return root["title"]?.string ?? "Answer" }
        // The last part of the reference: #/$defs/Person, #/components/schemas/Person.
        let last = reference.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        let name = SchemaPointer.unescaped(last)
        // A type may have the name of a keyword of this notation.
        return Self.words.contains(name) ? name + " object" : name
    }

    private static let words: Set<String> = ["text", "integer", "number", "true", "false", "null", "anything", "or"]
}
