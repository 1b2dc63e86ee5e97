internal import Grammar
internal import JSON

extension GenerationSchema {
    /// Decodes any JSON Schema that can be enforced. One in the form that ``encode(to:)`` writes for types becomes the same schema
    /// again; others are kept as they are.
    public init(from decoder: any Decoder) throws {
        let json = try JSONCodable(from: decoder).value
        if let schema = try SchemaReader(path: decoder.codingPath).schema(json) {
            self = schema
            return
        }
        do throws(JSONSchemaError) { try self.init(jsonSchema: json) } catch {
            throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: error.sentence))
        }
    }
}

/// Reads JSON Schema as Apple's framework writes it, in which only few keywords occur and objects have all of theirs.
struct SchemaReader {
    let path: [any CodingKey]
    /// The maximum number of groups and classes in a pattern that is validated here, because `Regex` parses groups
    /// recursively. The grammar's parser, which has limits, validates larger patterns.
    private static let maximumPatternGroups = 100

    /// The schema has another form, which may be valid JSON Schema.
    private struct OtherForm: Error {}

    /// Nil if the schema says something that this form cannot say.
    ///
    /// - Throws: `DecodingError` for references that refer only to each other.
    func schema(_ json: JSONValue) throws -> GenerationSchema? {
        do {
            if json["$ref"] != nil { return nil }
            var definitions: [String: SchemaNode] = [:]
            if let value = json["$defs"] {
                guard case .object(let members) = value else { return nil }
                for member in members { definitions[member.name] = try node(member.value) }
            }
            let schema = GenerationSchema(node: try node(json, isRoot: true), definitions: definitions)
            let nodes = [schema.root] + definitions.values
            let isUnknown = { (node: SchemaNode) in
                if case .reference(let name) = node { definitions[name] == nil && name != schema.root.name } else { false }
            }
            if nodes.contains(where: { $0.contains(isUnknown) }) { return nil }
            for definition in definitions.values { try checkEnd(of: definition, schema) }
            // In this form a pattern matches the whole string, in other schemas any part of it. Only objects tell which form it is.
            let hasObject = nodes.contains { $0.contains { if case .object = $0 { true } else { false } } }
            let hasPattern = nodes.contains {
                $0.contains { if case .string(let text) = $0 { !text.patterns.isEmpty } else { false } }
            }
            return hasPattern && !hasObject ? nil : schema
        } catch is OtherForm { return nil }
    }

    /// A chain of references between definitions must end at a schema.
    private func checkEnd(of definition: SchemaNode, _ schema: GenerationSchema) throws {
        var node = definition
        var steps = 0
        while case .reference(let name) = node, let next = schema.definitions[name] {
            node = next
            steps += 1
            if steps > 100 {
                throw DecodingError.dataCorrupted(
                    .init(codingPath: path, debugDescription: "The reference to “\(name)” is circular."))
            }
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

    /// The schema must have no other keywords than these and those that only describe.
    private func check(_ json: JSONValue, _ keywords: Set<String>, isRoot: Bool) throws(OtherForm) {
        guard case .object(let members) = json else { throw OtherForm() }
        for name in members.map(\.name) where !keywords.contains(name) {
            if name == "$defs" ? !isRoot : !SchemaKeywords.isDescription(name) { throw OtherForm() }
        }
    }

    private func node(_ json: JSONValue, isRoot: Bool = false) throws(OtherForm) -> SchemaNode {
        func check(_ keywords: Set<String>) throws(OtherForm) { try self.check(json, keywords, isRoot: isRoot) }
        if let reference = text(json["$ref"]) {
            try check(["$ref"])
            if reference == "#" { return .root }
            guard reference.hasPrefix("#/$defs/") else { throw OtherForm() }
            let name = SchemaPointer.unescaped(reference.dropFirst(8))
            // A place within a definition is written with further slashes.
            guard !reference.dropFirst(8).contains("/") else { throw OtherForm() }
            return .reference(name)
        }
        let description = text(json["description"])
        if let value = json["anyOf"] {
            try check(["anyOf"])
            guard case .array(let list) = value, !list.isEmpty else { throw OtherForm() }
            var alternatives: [SchemaNode] = []
            for alternative in list { alternatives.append(try node(alternative)) }
            return .choice(name: json.title, description: description, alternatives)
        }
        if json["const"] != nil {
            try check(["const", "type", "pattern", "allOf"])
            guard let constant = text(json["const"]), [nil, "string"].contains(text(json["type"])) else { throw OtherForm() }
            return .string(.init(constant: constant, patterns: try patterns(json)))
        }
        switch json["type"] {
        case .string("object")?: return try object(json, description, isRoot: isRoot)
        case .string("string")?: return try string(json, description, isRoot: isRoot)
        case .string("integer")?: return .number(try number(json, isInteger: true, isRoot: isRoot))
        case .string("number")?: return .number(try number(json, isInteger: false, isRoot: isRoot))
        case .string("boolean")?:
            try check(["type"])
            return .boolean
        case .string("null")?:
            try check(["type"])
            return .null
        case .string("array")?:
            try check(["type", "items", "minItems", "maxItems"])
            guard let items = json["items"] else { throw OtherForm() }
            return .array(
                .init(
                    item: try node(items), minimumCount: try count(json["minItems"]), maximumCount: try count(json["maxItems"])))
        case nil where json["enum"] != nil: return try string(json, description, isRoot: isRoot)
        case nil:
            try check([])
            return .any
        default: throw OtherForm()
        }
    }

    private func count(_ json: JSONValue?) throws(OtherForm) -> Int? {
        guard let json else { return nil }
        guard case .number(let number) = json, let count = number.integer, count >= 0 else { throw OtherForm() }
        return count
    }

    private func number(_ json: JSONValue, isInteger: Bool, isRoot: Bool) throws(OtherForm) -> SchemaNode.Number {
        try check(json, ["type", "minimum", "maximum"], isRoot: isRoot)
        func bound(_ name: String) throws(OtherForm) -> String? {
            guard let value = json[name] else { return nil }
            guard case .number(let number) = value, !isInteger || number.isInteger else { throw OtherForm() }
            return number.text
        }
        var number = isInteger ? SchemaNode.Number.integer : .double
        number.minimum = try bound("minimum")
        number.maximum = try bound("maximum")
        return number
    }

    private func string(_ json: JSONValue, _ description: String?, isRoot: Bool) throws(OtherForm) -> SchemaNode {
        try check(json, ["type", "enum", "pattern", "allOf"], isRoot: isRoot)
        var text = SchemaNode.Text(name: json.title, description: description, choices: texts(json["enum"]))
        if json["enum"] != nil, text.choices == nil { throw OtherForm() }
        if text.name != nil, text.choices?.isEmpty != false { throw OtherForm() }
        text.patterns = try patterns(json)
        return .string(text)
    }

    private func patterns(_ json: JSONValue) throws(OtherForm) -> [String] {
        var patterns: [String] = []
        if let pattern = json["pattern"] { patterns.append(try self.pattern(pattern)) }
        if let value = json["allOf"] {
            guard case .array(let others) = value, !patterns.isEmpty else { throw OtherForm() }
            for other in others {
                guard case .object(let members) = other, members.count == 1, let pattern = other["pattern"] else {
                    throw OtherForm()
                }
                patterns.append(try self.pattern(pattern))
            }
        }
        return patterns
    }

    private func pattern(_ json: JSONValue) throws(OtherForm) -> String {
        guard let pattern = text(json) else { throw OtherForm() }
        if pattern.count(where: { "([".contains($0) }) > Self.maximumPatternGroups { return pattern }
        guard (try? Regex(pattern)) != nil else { throw OtherForm() }  // validation only
        return pattern
    }

    private func object(_ json: JSONValue, _ description: String?, isRoot: Bool) throws(OtherForm) -> SchemaNode {
        try check(json, ["type", "properties", "required", "x-order", "additionalProperties"], isRoot: isRoot)
        guard let title = json.title, json["additionalProperties"] == .bool(false),
            case .object(let members)? = json["properties"], let required = texts(json["required"]),
            let order = texts(json["x-order"])
        else { throw OtherForm() }
        let known = Dictionary(members.map { ($0.name, $0.value) }) { _, last in last }
        let requiredNames = Set(required)
        guard order.count == known.count, Set(order) == Set(known.keys), requiredNames.count == required.count,
            requiredNames.isSubset(of: order)
        else { throw OtherForm() }
        var properties: [SchemaNode.Property] = []
        for name in order {
            guard let property = known[name] else { continue }
            // The description here belongs to the property; a definition has its own description.
            properties.append(
                .init(
                    name: name, description: text(property["description"]), node: try node(property),
                    isOptional: !requiredNames.contains(name)))
        }
        return .object(.init(name: title, description: description, properties: properties))
    }
}

extension SchemaNode {
    /// Whether the node or one in it passes a test.
    fileprivate func contains(_ passes: (SchemaNode) -> Bool) -> Bool {
        if passes(self) { return true }
        return switch self {
        case .object(let object): object.properties.contains { $0.node.contains(passes) }
        case .choice(_, _, let alternatives): alternatives.contains { $0.contains(passes) }
        case .array(let list): list.item.contains(passes)
        default: false
        }
    }
}
