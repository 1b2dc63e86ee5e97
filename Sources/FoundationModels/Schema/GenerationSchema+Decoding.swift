internal import JSON

extension GenerationSchema {
    /// Decodes the JSON Schema that ``encode(to:)`` writes. Other keywords are ignored.
    public init(from decoder: any Decoder) throws {
        self = try SchemaReader(path: decoder.codingPath).schema(try JSONCodable(from: decoder).value)
    }
}

/// Reads JSON Schema as Apple's framework writes it.
struct SchemaReader {
    let path: [any CodingKey]
    /// The maximum number of groups and classes in a pattern that is validated here, because `Regex` parses groups
    /// recursively. The grammar's parser, which has limits, validates larger patterns.
    private static let maximumPatternGroups = 100

    func schema(_ json: JSONValue) throws -> GenerationSchema {
        if json["$ref"] != nil { throw corrupted("The root of a schema cannot be a reference.") }
        var definitions: [String: SchemaNode] = [:]
        if case .object(let members)? = json["$defs"] {
            for member in members {
                guard definitions.updateValue(try node(member.value), forKey: member.name) == nil else {
                    throw corrupted("Two schemas have the name “\(member.name)”.")
                }
            }
        }
        let schema = GenerationSchema(node: try node(json), definitions: definitions)
        try checkReferences(in: schema.root, schema)
        for definition in definitions.values {
            try checkReferences(in: definition, schema)
            try checkEnd(of: definition, schema)
        }
        return schema
    }

    /// A chain of references between definitions must end at a schema.
    private func checkEnd(of definition: SchemaNode, _ schema: GenerationSchema) throws {
        var node = definition
        var steps = 0
        while case .reference(let name) = node, let next = schema.definitions[name] {
            node = next
            steps += 1
            if steps > 100 { throw corrupted("The reference to “\(name)” is circular.") }
        }
    }

    private func corrupted(_ reason: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: path, debugDescription: reason))
    }

    private func checkReferences(in node: SchemaNode, _ schema: GenerationSchema) throws {
        switch node {
        case .reference(let name):
            guard schema.definitions[name] != nil || name == schema.root.name else {
                throw corrupted("There is no schema with the referenced name “\(name)”.")
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
        guard case .object(let members) = json else { throw corrupted("A schema must be an object.") }
        if let reference = text(json["$ref"]) {
            if reference == "#" { return .root }
            guard reference.hasPrefix("#/$defs/") else { throw corrupted("The reference “\(reference)” is not in “#/$defs/”.") }
            return .reference(SchemaPointer.unescaped(reference.dropFirst(8)))
        }
        if json["allOf"] != nil, json["pattern"] == nil { throw corrupted("“allOf” is supported only together with “pattern”.") }
        let description = text(json["description"])
        if case .array(let alternatives)? = json["anyOf"] {
            guard !alternatives.isEmpty else { throw corrupted("“anyOf” has no alternatives.") }
            return .choice(name: text(json["title"]), description: description, try alternatives.map { try node($0) })
        }
        if let constant = text(json["const"]) {
            return .string(.init(constant: constant, patterns: try patterns(json)))
        }
        switch json["type"] {
        case .string("object")?: return try object(json, description)
        case .string("string")?: return try string(json, description)
        case .string("integer")?: return .number(try number(json, isInteger: true))
        case .string("number")?: return .number(try number(json, isInteger: false))
        case .string("boolean")?: return .boolean
        case .string("null")?: return .null
        case .string("array")?:
            guard let items = json["items"] else { throw corrupted("An array has no “items”.") }
            return .array(
                .init(
                    item: try node(items), minimumCount: try count(json["minItems"]), maximumCount: try count(json["maxItems"])))
        case nil where json["enum"] != nil: return try string(json, description)
        case nil where members.allSatisfy({ ["title", "description", "$defs"].contains($0.name) }): return .any
        case .string(let other)?: throw corrupted("Unknown type “\(other)”.")
        case .some:
            throw DecodingError.typeMismatch(String.self, .init(codingPath: path, debugDescription: "“type” is not a string."))
        case nil: throw corrupted("A schema has no “type”.")
        }
    }

    private func count(_ json: JSONValue?) throws -> Int? {
        guard let json else { return nil }
        guard case .number(let number) = json, let count = number.integer, count >= 0 else {
            throw corrupted("A count is not a non-negative integer.")
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
        if json["enum"] != nil, text.choices == nil { throw corrupted("“enum” is not an array of strings.") }
        if text.name != nil, text.choices?.isEmpty != false { throw corrupted("A string with a “title” has no “enum”.") }
        text.patterns = try patterns(json)
        return .string(text)
    }

    private func patterns(_ json: JSONValue) throws -> [String] {
        guard let first = text(json["pattern"]) else { return [] }
        var patterns = [first]
        if case .array(let others)? = json["allOf"] {
            patterns += try others.map {
                guard let pattern = text($0["pattern"]) else { throw corrupted("“allOf” may contain only patterns.") }
                return pattern
            }
        }
        for pattern in patterns where pattern.count(where: { "([".contains($0) }) <= Self.maximumPatternGroups {
            guard (try? Regex(pattern)) != nil else {  // validation only
                throw corrupted("The pattern \(pattern) is not a regular expression.")
            }
        }
        return patterns
    }

    private func object(_ json: JSONValue, _ description: String?) throws -> SchemaNode {
        guard let title = text(json["title"]) else { throw corrupted("An object has no “title”.") }
        guard case .bool? = json["additionalProperties"] else {
            throw corrupted("“\(title)” has no “additionalProperties” that is true or false.")
        }
        guard case .object(let members)? = json["properties"], let required = texts(json["required"]),
            let order = texts(json["x-order"])
        else { throw corrupted("“\(title)” lacks one of “properties”, “required” and “x-order”.") }
        let known = Dictionary(members.map { ($0.name, $0.value) }) { _, last in last }
        let names = Set(order)
        let requiredNames = Set(required)
        guard names.count == order.count, requiredNames.count == required.count else {
            throw corrupted("“\(title)” lists a property twice.")
        }
        guard requiredNames.isSubset(of: names) else {
            throw corrupted("“\(title)” requires a property that is not in its “x-order”.")
        }
        let properties = try order.map { name -> SchemaNode.Property in
            guard let property = known[name] else {
                throw corrupted("“\(title)” has no property “\(name)”, which its “x-order” lists.")
            }
            let node = try node(property)
            if case .any = node {
                throw corrupted("The property “\(name)” of “\(title)” has no “type”, “const”, “enum”, “$ref” or “anyOf”.")
            }
            // The description here belongs to the property; a definition has its own description.
            return .init(
                name: name, description: text(property["description"]), node: node,
                isOptional: !requiredNames.contains(name))
        }
        return .object(.init(name: title, description: description, properties: properties))
    }
}
