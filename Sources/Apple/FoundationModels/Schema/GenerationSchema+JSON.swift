internal import Foundation
internal import Grammar
package import JSON
internal import ModelPrompts

extension GenerationSchema {
    /// The schema as JSON Schema, in the form in which it is encoded.
    package var json: JSONValue {
        var writer = SchemaWriter(isForGrammar: false)
        return writer.document(self)
    }

    /// The grammar source that constrains a response: the same schema, with patterns that match the whole string.
    ///
    /// - Throws: ``FoundationModels/LanguageModelError/unsupportedGenerationGuide(_:)`` if a guide is not supported.
    func grammarSource() throws -> GrammarSource {
        let (document, unsupported) = grammarDocument
        if let reason = unsupported {
            throw LanguageModelError.unsupportedGenerationGuide(
                .init(schemaName: name, debugDescription: "The schema “\(name)” has \(reason), which cannot be enforced."))
        }
        return .schema(document)
    }

    /// The schema of ``grammarSource()``, and the reason why a guide cannot be expressed in it.
    var grammarDocument: (json: JSONValue, unsupported: String?) {
        var writer = SchemaWriter(isForGrammar: true)
        let document = writer.document(self)
        return (document, writer.unsupported)
    }

    public func encode(to encoder: any Encoder) throws { try JSONCodable(json).encode(to: encoder) }
}

/// Converts schemas to JSON Schema. Named objects and unions below the root become entries of `$defs`, and so do the
/// targets of references. Each is written once, so that recursive and frequently used schemas have a finite and
/// compact form.
struct SchemaWriter {
    /// The target of a reference. Names are local to the schema that declares them; another schema may use the same
    /// names.
    private enum Key: Hashable {
        case root
        case type(ObjectIdentifier)
        case definition(scope: Int, String)
    }

    /// The schema in which names are resolved.
    private struct Scope {
        let definitions: [String: SchemaNode]
        let root: SchemaNode
        let key: Key
    }

    private let isForGrammar: Bool
    /// The reason why the first unsupported guide cannot be expressed.
    private(set) var unsupported: String?
    private var scopes: [Scope] = []
    private var scopesOfTypes: [ObjectIdentifier: Int] = [:]
    /// The names of definitions, including those not written yet; nil for the root.
    private var names: [Key: String?] = [:]
    private var taken: Set<String> = []
    private var definitions: [JSONValue.Member] = []
    /// Definitions that have a position but are not written yet. A queue instead of recursion, because chains of them
    /// can be long.
    private var pending: [(place: Int, node: SchemaNode, scope: Int)] = []
    /// Types that are currently being written in place.
    private var open: Set<ObjectIdentifier> = []

    init(isForGrammar: Bool) { self.isForGrammar = isForGrammar }

    mutating func document(_ schema: GenerationSchema) -> JSONValue {
        var scope = addScope(of: schema, key: .root)
        names[.root] = .some(nil)
        if let type = schema.rootType { names[.type(ObjectIdentifier(type))] = .some(nil) }
        // If the root is only a reference to a schema, that schema becomes the root.
        var root = schema.root
        while let (key, node, inner) = resolved(root, in: scope) {
            guard names.updateValue(nil, forKey: key) == nil else {
                root = .any
                break
            }
            (root, scope) = (node, inner)
        }
        if let name = root.name { taken.insert(name) }
        var document = write(root, in: scope, isNamed: true)
        var index = 0
        while index < pending.count {
            let next = pending[index]
            if case .document(let json) = next.node {
                let name = definitions[next.place].name
                definitions[next.place].value = json.moved(to: "/$defs/" + SchemaPointer.escaped(name))
            } else {
                definitions[next.place].value = write(next.node, in: next.scope, isNamed: true)
            }
            index += 1
        }
        if case .object(var members) = document, !definitions.isEmpty {
            members.append(.init("$defs", .object(definitions)))
            document = .object(members)
        }
        return document
    }

    private mutating func addScope(of schema: GenerationSchema, key: Key) -> Int {
        scopes.append(Scope(definitions: schema.definitions, root: schema.root, key: key))
        return scopes.count - 1
    }

    /// The schema of a type or a reference, and the scope of the names in it; nil for other nodes.
    private mutating func resolved(_ node: SchemaNode, in scope: Int) -> (key: Key, node: SchemaNode, scope: Int)? {
        switch node {
        case .type(let type):
            let id = ObjectIdentifier(type)
            let schema = type.generationSchema
            let inner = scopesOfTypes[id] ?? addScope(of: schema, key: .type(id))
            scopesOfTypes[id] = inner
            return (.type(id), schema.root, inner)
        case .reference(let name):
            guard let node = scopes[scope].definitions[name] else { return nil }
            return (.definition(scope: scope, name), node, scope)
        default: return nil
        }
    }

    /// - Parameter isNamed: Whether the node is the root or a definition, and not nested in one.
    private mutating func write(_ node: SchemaNode, in scope: Int, isNamed: Bool = false) -> JSONValue {
        var members: [JSONValue.Member] = []
        switch node {
        case .object(let object):
            members = self.object(object, in: scope)
        case .choice(let name, let ownDescription, let alternatives):
            if let name { members.append(.init("title", .string(name))) }
            if let ownDescription { members.append(.init("description", .string(ownDescription))) }
            members.append(.init("anyOf", .array(alternatives.map { nested($0, in: scope) })))
        case .string(let text):
            members = self.text(text, isNamed: isNamed)
        case .number(let number):
            members.append(.init("type", .string(number.isInteger ? "integer" : "number")))
            // The bounds of a type are not part of the published schema, but generated numbers must be within them.
            let minimum = number.minimum ?? (isForGrammar ? number.typeMinimum : nil)
            let maximum = number.maximum ?? (isForGrammar ? number.typeMaximum : nil)
            if let bound = minimum.flatMap({ DecimalNumber($0) }) { members.append(.init("minimum", .number(bound))) }
            if let bound = maximum.flatMap({ DecimalNumber($0) }) { members.append(.init("maximum", .number(bound))) }
            if isForGrammar, let digits = number.typeDigits { members.append(.init("x-digits", .number(DecimalNumber(digits)))) }
        case .boolean: members.append(.init("type", .string("boolean")))
        case .null: members.append(.init("type", .string("null")))
        case .array(let list):
            members.append(.init("type", .string("array")))
            members.append(.init("items", nested(list.item, in: scope)))
            if let count = list.minimumCount { members.append(.init("minItems", .number(DecimalNumber(max(0, count))))) }
            if let count = list.maximumCount { members.append(.init("maxItems", .number(DecimalNumber(max(0, count))))) }
            if let count = list.maximumCount, count < 0 || count < list.minimumCount ?? 0 {
                reject("a maximum count that is negative or less than the minimum count")
            }
        case .any: break
        case .document(let json): return json
        case .type, .reference, .root: return nested(node, in: scope)
        case .unsupported(let reason): reject(reason)
        }
        return .object(members)
    }

    private mutating func reject(_ reason: String) { unsupported = unsupported ?? reason }

    private mutating func object(_ object: SchemaNode.Object, in scope: Int) -> [JSONValue.Member] {
        var object = object
        var known: Set<String> = []
        object.properties.removeAll {
            if known.insert($0.name).inserted { return false }
            reject("two properties named “\($0.name)”")
            return true
        }
        var members: [JSONValue.Member] = [.init("title", .string(object.name)), .init("type", .string("object"))]
        if let description = object.description { members.append(.init("description", .string(description))) }
        let order = JSONValue.array(object.properties.map { .string($0.name) })
        let required = object.properties.filter { !$0.isOptional }.map { JSONValue.string($0.name) }
        let properties = object.properties.map {
            JSONValue.Member($0.name, nested($0.node, in: scope, description: $0.description))
        }
        return members + [
            .init("properties", .object(properties)), .init("required", .array(required)), .init("x-order", order),
            .init("additionalProperties", .bool(false)),
        ]
    }

    private mutating func text(_ text: SchemaNode.Text, isNamed: Bool) -> [JSONValue.Member] {
        if let constant = text.constant {
            if let choices = text.choices, !choices.contains(constant) { reject("a constant that is not among its choices") }
            return [.init("const", .string(constant))] + patterns(text.patterns)
        }
        var members: [JSONValue.Member] = [.init("type", .string("string"))]
        if let choices = text.choices {
            // The name and description are written only for the root and definitions; elsewhere the choices suffice.
            if isNamed, let name = text.name { members.insert(.init("title", .string(name)), at: 0) }
            if isNamed, let description = text.description { members.append(.init("description", .string(description))) }
            if choices.isEmpty { reject("an empty list of choices") }
            members.append(.init("enum", .array(choices.withoutRepetitions.map { .string($0) })))
        }
        return members + patterns(text.patterns)
    }

    private func patterns(_ patterns: [String]) -> [JSONValue.Member] {
        // A JSON Schema pattern may match anywhere in a string; a guide's pattern must match the whole string.
        let written = patterns.map { JSONValue.string(isForGrammar ? "^(?:\($0))$" : $0) }
        guard let first = written.first else { return [] }
        let others = written.dropFirst().map { JSONValue.object([.init("pattern", $0)]) }
        return [.init("pattern", first)] + (others.isEmpty ? [] : [.init("allOf", .array(others))])
    }

    /// Writes a schema nested in another one: as a reference if it has a name, otherwise in place.
    private mutating func nested(_ node: SchemaNode, in scope: Int, description: String? = nil) -> JSONValue {
        switch node {
        case .root:
            let (key, root) = (scopes[scope].key, scopes[scope].root)
            if names[key] == nil { define(key, root.name ?? "Schema", root, in: scope) }
            return reference(to: key, description) ?? .object([])
        case .reference(let name):
            guard let (key, node, inner) = resolved(node, in: scope) else {
                return name == scopes[scope].root.name ? nested(.root, in: scope, description: description) : .object([])
            }
            if names[key] == nil { define(key, node.name ?? name, node, in: inner) }
            return reference(to: key, description) ?? .object([])
        case .type(let type):
            let id = ObjectIdentifier(type)
            if let known = reference(to: .type(id), description) { return known }
            guard let (key, root, inner) = resolved(node, in: scope) else { return .object([]) }
            if case .any = root { return nested(.any, in: inner, description: description) }
            let isOpen = !open.insert(id).inserted
            if root.isHoisted || isOpen {
                if !isOpen { open.remove(id) }
                define(key, root.name ?? "\(type)", root, in: inner)
                return reference(to: key, description) ?? .object([])
            }
            // Written in place, unless the type contains itself.
            let value = write(root, in: inner)
            open.remove(id)
            return reference(to: key, description) ?? describing(value, description)
        case .object, .choice(.some, _, _), .document:
            // Declared in place, but a name makes it a definition.
            let name = freeName(node.name ?? "Object")
            place(name, node, in: scope)
            return describing(reference(name), description)
        case .any where !isForGrammar:
            // An empty schema would not say that any value is meant; the name of a definition does.
            let key = Key.definition(scope: -1, "GeneratedContent")
            if names[key] == nil { define(key, "GeneratedContent", node, in: scope) }
            return reference(to: key, description) ?? .object([])
        default: return describing(write(node, in: scope), description)
        }
    }

    /// Adds a definition for a schema.
    private mutating func define(_ key: Key, _ name: String, _ node: SchemaNode, in scope: Int) {
        let name = freeName(name)
        names[key] = name
        place(name, node, in: scope)
    }

    private mutating func place(_ name: String, _ node: SchemaNode, in scope: Int) {
        definitions.append(.init(name, .null))
        pending.append((definitions.count - 1, node.named(name), scope))
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

    /// A reference to a schema that already has a name; nil if it has none.
    private func reference(to key: Key, _ description: String?) -> JSONValue? {
        names[key].map { describing(reference($0), description) }
    }

    /// - Parameter name: nil for the root.
    private func reference(_ name: String?) -> JSONValue {
        let pointer = name.map { "/$defs/" + SchemaPointer.escaped($0) }
        return .object([.init("$ref", .string("#" + (pointer ?? "")))])
    }

    private func describing(_ schema: JSONValue, _ description: String?) -> JSONValue {
        guard let description, case .object(var members) = schema else { return schema }
        members.removeAll { $0.name == "description" }
        return .object(members + [.init("description", .string(description))])
    }
}

extension SchemaDescription {
    static func text(of schema: GenerationSchema, isArguments: Bool = false) -> String {
        text(of: schema.json, isArguments: isArguments)
    }
}

extension SchemaNode {
    /// Whether the schema becomes a definition where it is used.
    fileprivate var isHoisted: Bool {
        switch self {
        case .object, .document: true
        case .choice(let name, _, _): name != nil
        default: false
        }
    }

    /// The schema with the name of its definition, if it has a name at all.
    fileprivate func named(_ name: String) -> SchemaNode {
        switch self {
        case .object(var object):
            object.name = name
            return .object(object)
        case .choice(.some, let description, let alternatives):
            return .choice(name: name, description: description, alternatives)
        case .string(var text) where text.name != nil:
            text.name = name
            return .string(text)
        default: return self
        }
    }
}
