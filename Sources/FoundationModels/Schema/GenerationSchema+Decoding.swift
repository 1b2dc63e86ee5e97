internal import Grammar

extension GenerationSchema {
    /// Reads the JSON Schema that ``encode(to:)`` writes. Keywords it does not write are passed over.
    public init(from decoder: any Decoder) throws {
        self = try SchemaReader(path: decoder.codingPath).schema(try JSONCodable(from: decoder).value)
    }
}

/// Reads JSON Schema as Apple's framework writes it.
struct SchemaReader {
    let path: [any CodingKey]

    func schema(_ json: JSONValue) throws -> GenerationSchema {
        if json["$ref"] != nil { throw corrupted("The root of a schema cannot be a reference.") }
        var definitions: [String: SchemaNode] = [:]
        if case .object(let members)? = json["$defs"] {
            for member in members {
                let node = try node(member.value)
                let name = node.name ?? member.name
                guard definitions.updateValue(node, forKey: name) == nil else {
                    throw corrupted("Two schemas have the name “\(name)”.")
                }
            }
        }
        let root = try node(json)
        let schema = GenerationSchema(node: root, definitions: definitions)
        try checkReferences(in: root, schema)
        for definition in definitions.values { try checkReferences(in: definition, schema) }
        return schema
    }

    private func corrupted(_ reason: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: path, debugDescription: reason))
    }

    private func checkReferences(in node: SchemaNode, _ schema: GenerationSchema) throws {
        switch node {
        case .reference(let name):
            guard schema.definitions[name] != nil || name == schema.root.name || name == "#" else {
                throw corrupted("No schema has the name “\(name)”, which is referred to.")
            }
        case .object(let object): for property in object.properties { try checkReferences(in: property.node, schema) }
        case .choice(_, _, let alternatives): for alternative in alternatives { try checkReferences(in: alternative, schema) }
        case .array(let list): try checkReferences(in: list.item, schema)
        default: break
        }
    }

    private func text(_ json: JSONValue?) -> String? {
        if case .string(let text)? = json { text } else { nil }
    }

    private func texts(_ json: JSONValue?) -> [String]? {
        guard case .array(let values)? = json else { return nil }
        let texts = values.compactMap { text($0) }
        return texts.count == values.count ? texts : nil
    }

    private func node(_ json: JSONValue) throws -> SchemaNode {
        guard case .object(let members) = json else { throw corrupted("A schema is an object.") }
        if let reference = text(json["$ref"]) {
            if reference == "#" { return .reference("#") }
            let name = reference.hasPrefix("#/$defs/") ? String(reference.dropFirst(8)) : reference
            return .reference(name.replacing("~1", with: "/").replacing("~0", with: "~"))
        }
        if json["allOf"] != nil, json["pattern"] == nil { throw corrupted("“allOf” is not supported here.") }
        let description = text(json["description"])
        if case .array(let alternatives)? = json["anyOf"] {
            guard !alternatives.isEmpty else { throw corrupted("“anyOf” has no alternatives.") }
            return .choice(name: text(json["title"]), description: description, try alternatives.map { try node($0) })
        }
        if let constant = text(json["const"]) { return .string(.init(constant: constant)) }
        switch json["type"] {
        case .string("object")?: return try object(json, description)
        case .string("string")?: return try string(json, description)
        case .string("integer")?: return .number(try number(json, isInteger: true))
        case .string("number")?: return .number(try number(json, isInteger: false))
        case .string("boolean")?: return .boolean
        case .string("null")?: return .null
        case .string("array")?:
            guard let items = json["items"] else { throw corrupted("A list has no “items”.") }
            return .array(
                .init(
                    item: try node(items), minimumCount: try count(json["minItems"]), maximumCount: try count(json["maxItems"])))
        case nil where members.allSatisfy({ ["title", "description", "$defs"].contains($0.name) }): return .any
        case .string(let other)?: throw corrupted("The type “\(other)” is not known.")
        case .some: throw DecodingError.typeMismatch(String.self, .init(codingPath: path, debugDescription: "“type” is no text."))
        case nil: throw corrupted("A schema has no “type”.")
        }
    }

    private func count(_ json: JSONValue?) throws -> Int? {
        guard let json else { return nil }
        guard case .number(let number) = json, let count = number.integer, count >= 0 else {
            throw corrupted("A count is not a whole number.")
        }
        return count
    }

    private func number(_ json: JSONValue, isInteger: Bool) throws -> SchemaNode.Number {
        func bound(_ name: String) throws -> String? {
            guard let value = json[name] else { return nil }
            guard case .number(let number) = value, !isInteger || number.isInteger else {
                throw corrupted("“\(name)” is not \(isInteger ? "an integer" : "a number").")
            }
            return number.text
        }
        var number = isInteger ? SchemaNode.Number.integer : .double
        number.minimum = try bound("minimum")
        number.maximum = try bound("maximum")
        return number
    }

    private func string(_ json: JSONValue, _ description: String?) throws -> SchemaNode {
        var text = SchemaNode.Text(name: text(json["title"]), description: description, choices: texts(json["enum"]))
        if text.name != nil, text.choices?.isEmpty != false { throw corrupted("A named text has no “enum”.") }
        if let pattern = self.text(json["pattern"]) {
            do { _ = try Regex(pattern) } catch { throw corrupted("The pattern \(pattern) is not a regular expression.") }
            text.patterns = [pattern]
            if case .array(let others)? = json["allOf"] { text.patterns += others.compactMap { self.text($0["pattern"]) } }
        }
        return .string(text)
    }

    private func object(_ json: JSONValue, _ description: String?) throws -> SchemaNode {
        guard let title = text(json["title"]) else { throw corrupted("An object has no “title”.") }
        guard case .bool? = json["additionalProperties"] else {
            throw corrupted("“\(title)” has no “additionalProperties”, true or false.")
        }
        guard case .object? = json["properties"], let required = texts(json["required"]), let order = texts(json["x-order"])
        else { throw corrupted("“\(title)” lacks one of “properties”, “required” and “x-order”.") }
        guard order.withoutRepetitions.count == order.count, required.withoutRepetitions.count == required.count else {
            throw corrupted("“\(title)” names a property twice.")
        }
        guard required.allSatisfy(order.contains) else {
            throw corrupted("“\(title)” requires a property that is not in its “x-order”.")
        }
        let properties = try order.map { name -> SchemaNode.Property in
            guard let property = json["properties"]?[name] else {
                throw corrupted("“\(title)” has no property “\(name)”, which its “x-order” names.")
            }
            let node = try node(property)
            // A definition has a description of its own; what stands here belongs to the property.
            return .init(
                name: name, description: text(property["description"]), node: node, isOptional: !required.contains(name))
        }
        return .object(.init(name: title, description: description, properties: properties))
    }
}
