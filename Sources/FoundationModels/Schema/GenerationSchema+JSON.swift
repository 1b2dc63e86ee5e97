package import Grammar

extension GenerationSchema {
    /// The schema as JSON Schema, in the shape in which it is encoded.
    package var json: JSONValue {
        var writer = SchemaWriter(isForGrammar: false)
        return writer.document(self)
    }

    /// What the decoder holds a response to: the same, with patterns that match the whole text.
    ///
    /// - Throws: ``FoundationModels/LanguageModelError/unsupportedGenerationGuide(_:)`` if a guide cannot be used.
    func grammarSource() throws -> GrammarSource {
        var writer = SchemaWriter(isForGrammar: true)
        let document = writer.document(self)
        if let reason = writer.unsupported {
            throw LanguageModelError.unsupportedGenerationGuide(
                .init(schemaName: name, debugDescription: "The schema “\(name)” has \(reason), which cannot be enforced."))
        }
        return .schema(document)
    }

    public func encode(to encoder: any Encoder) throws { try JSONCodable(json).encode(to: encoder) }
}

/// Writes schemas as JSON Schema. Named objects and unions below the root go to `$defs`, once each.
struct SchemaWriter {
    private let isForGrammar: Bool
    /// The first guide that cannot be said.
    private(set) var unsupported: String?
    private var names: [ObjectIdentifier: String] = [:]
    private var definitions: [JSONValue.Member] = []
    /// Names taken by definitions, whether written yet or not.
    private var taken: Set<String> = []
    /// Schemas that references name, and those of them that have been written.
    private var named: [String: SchemaNode] = [:]
    private var rootName: String?

    init(isForGrammar: Bool) { self.isForGrammar = isForGrammar }

    mutating func document(_ schema: GenerationSchema) -> JSONValue {
        rootName = schema.root.name
        named = schema.definitions
        if let type = schema.rootType { names[ObjectIdentifier(type)] = "" }
        if let rootName { taken.insert(rootName) }
        guard case .object(var members) = write(schema.root, isRoot: true) else { return .object([]) }
        if !definitions.isEmpty { members.append(.init("$defs", .object(definitions))) }
        return .object(members)
    }

    private mutating func write(_ node: SchemaNode, isRoot: Bool = false, description: String? = nil) -> JSONValue {
        var members: [JSONValue.Member] = []
        switch node {
        case .object(let object):
            members = self.object(object)
        case .choice(let name, let ownDescription, let alternatives):
            if let name { members.append(.init("title", .string(name))) }
            if let ownDescription { members.append(.init("description", .string(ownDescription))) }
            members.append(.init("anyOf", .array(alternatives.map { nested($0) })))
        case .string(let text):
            members = self.text(text, isRoot: isRoot)
        case .number(let number):
            members.append(.init("type", .string(number.isInteger ? "integer" : "number")))
            // Nobody needs to read the bounds of a type, but what is written has to fit it.
            let minimum = number.minimum ?? (isForGrammar ? number.least : nil)
            let maximum = number.maximum ?? (isForGrammar ? number.greatest : nil)
            if let bound = minimum.flatMap({ DecimalNumber($0) }) { members.append(.init("minimum", .number(bound))) }
            if let bound = maximum.flatMap({ DecimalNumber($0) }) { members.append(.init("maximum", .number(bound))) }
        case .boolean: members.append(.init("type", .string("boolean")))
        case .null: members.append(.init("type", .string("null")))
        case .array(let list):
            members.append(.init("type", .string("array")))
            members.append(.init("items", nested(list.item)))
            if let count = list.minimumCount { members.append(.init("minItems", .number(DecimalNumber(max(0, count))))) }
            if let count = list.maximumCount { members.append(.init("maxItems", .number(DecimalNumber(max(0, count))))) }
            if let count = list.maximumCount, count < 0 || count < list.minimumCount ?? 0 {
                reject("a count that no list has")
            }
        case .any: break
        case .type, .reference: return nested(node, description: description)
        case .unsupported(let reason): reject(reason)
        }
        if let description {
            members.removeAll { $0.name == "description" }
            members.append(.init("description", .string(description)))
        }
        return .object(members)
    }

    private mutating func reject(_ reason: String) { unsupported = unsupported ?? reason }

    private mutating func object(_ object: SchemaNode.Object) -> [JSONValue.Member] {
        var members: [JSONValue.Member] = [.init("title", .string(object.name)), .init("type", .string("object"))]
        if let description = object.description { members.append(.init("description", .string(description))) }
        let order = JSONValue.array(object.properties.map { .string($0.name) })
        let required = object.properties.filter { !$0.isOptional }.map { JSONValue.string($0.name) }
        let properties = object.properties.map {
            JSONValue.Member($0.name, nested($0.node, description: $0.description))
        }
        return members + [
            .init("properties", .object(properties)), .init("required", .array(required)), .init("x-order", order),
            .init("additionalProperties", .bool(false)),
        ]
    }

    private mutating func text(_ text: SchemaNode.Text, isRoot: Bool) -> [JSONValue.Member] {
        if let constant = text.constant {
            if let choices = text.choices, !choices.contains(constant) { reject("a constant that is not among its choices") }
            return [.init("const", .string(constant))] + patterns(text.patterns)
        }
        var members: [JSONValue.Member] = [.init("type", .string("string"))]
        if let choices = text.choices {
            // A name and a description stand at the root only; below it a list of texts says enough.
            if isRoot, let name = text.name { members.insert(.init("title", .string(name)), at: 0) }
            if isRoot, let description = text.description { members.append(.init("description", .string(description))) }
            if choices.isEmpty { reject("no text to choose from") }
            members.append(.init("enum", .array(choices.withoutRepetitions.map { .string($0) })))
        }
        return members + patterns(text.patterns)
    }

    private func patterns(_ patterns: [String]) -> [JSONValue.Member] {
        // JSON Schema looks for a pattern anywhere in a text; a guide is about the whole of it.
        let written = patterns.map { JSONValue.string(isForGrammar ? "^(?:\($0))$" : $0) }
        guard let first = written.first else { return [] }
        let others = written.dropFirst().map { JSONValue.object([.init("pattern", $0)]) }
        return [.init("pattern", first)] + (others.isEmpty ? [] : [.init("allOf", .array(others))])
    }

    /// A schema inside another one: a reference if it has a name, else itself.
    private mutating func nested(_ node: SchemaNode, description: String? = nil) -> JSONValue {
        switch node {
        case .type(let type):
            if let name = names[ObjectIdentifier(type)] { return reference(name, description) }
            let schema = type.generationSchema
            // A type may lend another one's schema.
            if case .type(let lent) = schema.root, lent == type { return .object([]) }
            guard schema.root.isHoisted else {
                named.merge(schema.definitions) { known, _ in known }
                return write(schema.root, description: description)
            }
            let name = freeName(schema.root.name ?? "\(type)")
            names[ObjectIdentifier(type)] = name
            named.merge(schema.definitions) { known, _ in known }
            define(name, schema.root)
            return reference(name, description)
        case .reference(let name):
            if name == rootName || name == "#" { return reference("", description) }
            if let node = named[name] {
                guard node.isHoisted else { return write(node, description: description) }
                if taken.insert(name).inserted { define(name, node) }
            }
            return reference(name, description)
        case .object, .choice(.some, _, _):
            // Declared in place; a name makes it a definition all the same.
            let name = freeName(node.name ?? "Object")
            define(name, node)
            return reference(name, description)
        default: return write(node, description: description)
        }
    }

    private mutating func define(_ name: String, _ node: SchemaNode) {
        // The place first: what the definition contains may define more.
        let place = definitions.count
        definitions.append(.init(name, .null))
        var node = node
        if case .object(var object) = node, object.name != name {
            object.name = name
            node = .object(object)
        }
        definitions[place].value = write(node)
    }

    private mutating func freeName(_ name: String) -> String {
        var candidate = name
        var number = 2
        while !taken.insert(candidate).inserted {
            candidate = "\(name)\(number)"
            number += 1
        }
        return candidate
    }

    /// - Parameter name: empty for the root.
    private func reference(_ name: String, _ description: String?) -> JSONValue {
        let escaped = name.replacing("~", with: "~0").replacing("/", with: "~1")
        var members: [JSONValue.Member] = [.init("$ref", .string(name.isEmpty ? "#" : "#/$defs/\(escaped)"))]
        if let description { members.append(.init("description", .string(description))) }
        return .object(members)
    }
}

extension SchemaNode {
    /// Whether it becomes a definition where it is used.
    fileprivate var isHoisted: Bool {
        switch self {
        case .object: true
        case .choice(let name, _, _): name != nil
        default: false
        }
    }
}
