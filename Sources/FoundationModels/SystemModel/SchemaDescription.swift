package import JSON
import ModelPrompts

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
    static func text(of schema: GenerationSchema, isArguments: Bool = false) -> String {
        text(of: schema.json, isArguments: isArguments)
    }

    private static func text(of json: JSONValue, isArguments: Bool) -> String {
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
            let schema = schemas[reference] ?? .object([])
            text +=
                "\n\(writer.name(reference)) = " + (schema["anyOf"] == nil ? writer.value(schema) : writer.alternatives(schema))
            index += 1
        }
        return text
    }

    private func title(_ schema: JSONValue) -> String {
        if case .string(let title)? = schema["title"] { title } else { "Answer" }
    }

    private mutating func value(_ schema: JSONValue) -> String {
        if case .string(let reference)? = schema["$ref"] { return named(reference) }
        if case .string(let constant)? = schema["const"] { return JSONValue.string(constant).text }
        if case .array(let choices)? = schema["enum"] { return choices.map(\.text).joined(separator: " or ") }
        if schema["anyOf"] != nil { return alternatives(schema) }
        if case .array(let types)? = schema["type"] {
            // A type, or null.
            return types.map { type in
                guard case .object(let members) = schema else { return "anything" }
                return value(.object(members.filter { $0.name != "type" } + [.init("type", type)]))
            }.joined(separator: " or ")
        }
        guard case .string(let type)? = schema["type"] else { return "anything" }
        switch type {
        // The grammar enforces patterns; a small model mistakes them for examples.
        case "string": return "text"
        case "integer", "number": return type + range(schema, "minimum", "maximum")
        case "boolean": return "true or false"
        case "null": return "null"
        case "array": return "[\(value(schema["items"] ?? .object([])))]" + range(schema, "minItems", "maxItems")
        default: return "{" + members(schema, quoted: true) + "}"
        }
    }

    private mutating func members(_ schema: JSONValue, quoted: Bool) -> String {
        guard case .object(let properties)? = schema["properties"] else { return "" }
        var required: Set<String> = []
        if case .array(let names)? = schema["required"] {
            required = Set(names.compactMap { if case .string(let name) = $0 { name } else { nil } })
        }
        return properties.map { property in
            let name = quoted ? JSONValue.string(property.name).text : property.name
            var text = name + (required.contains(property.name) ? "" : "?") + ": " + value(property.value)
            if case .string(let description)? = property.value["description"] { text += " (\(description))" }
            return text
        }.joined(separator: ", ")
    }

    private mutating func alternatives(_ schema: JSONValue) -> String {
        guard case .array(let alternatives)? = schema["anyOf"] else { return "" }
        return alternatives.map { value($0) }.joined(separator: " or ")
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
        if reference == "#" { return title(root) }
        let name = SchemaPointer.unescaped(reference.dropFirst("#/$defs/".count))
        // A type may have the name of a keyword of this notation.
        return Self.words.contains(name) ? name + " object" : name
    }

    private static let words: Set<String> = ["text", "integer", "number", "true", "false", "null", "anything", "or"]
}
