package import Grammar
package import JSON

/// The reason why a JSON Schema cannot be enforced. ``GenerationSchema`` has a type with the name `SchemaError`.
package typealias JSONSchemaError = SchemaError

extension GenerationSchema {
    /// Creates a schema from any JSON Schema, which is enforced and encoded as it is.
    ///
    /// - Throws: ``JSONSchemaError`` if the schema is not valid, not supported or cannot be satisfied.
    package init(jsonSchema: JSONValue) throws(JSONSchemaError) {
        try Grammar.check(.schema(jsonSchema))
        self.init(node: .document(jsonSchema.withMemberOrder))
    }

    /// A schema that the caller has checked.
    package init(checked jsonSchema: JSONValue) { self.init(node: .document(jsonSchema.withMemberOrder)) }

    /// Whether the schema is a JSON Schema that is kept as it is.
    package var isDocument: Bool { if case .document = root { true } else { false } }

    /// A form of the schema as a response needs it. Schemas from types and their parts have null for a missing property, see
    /// ``JSONValue/withNullForOptionalProperties``; a JSON Schema says itself what may be missing and what may be null.
    package var responseJSON: JSONValue { forResponse(json) }

    func forResponse(_ json: JSONValue) -> JSONValue { isDocument ? json : json.withNullForOptionalProperties }
}

extension JSONValue {
    /// The title of a schema.
    var title: String? { if case .string(let title)? = self["title"] { title } else { nil } }

    /// A JSON Schema with each of its schemas changed, inner ones first. The values of unknown keywords and of those that are not
    /// schemas, such as `default`, stay as they are.
    func mappingSchemas(_ change: (JSONValue) -> JSONValue) -> JSONValue {
        guard case .object(let members) = self else { return change(self) }
        func mapped(_ member: Member) -> JSONValue {
            switch member.value {
            case .object(let parts) where SchemaKeywords.containers.contains(member.name):
                .object(parts.map { Member($0.name, $0.value.mappingSchemas(change)) })
            case .array(let parts) where SchemaKeywords.schemas.contains(member.name):
                .array(parts.map { $0.mappingSchemas(change) })
            case let value: SchemaKeywords.schemas.contains(member.name) ? value.mappingSchemas(change) : value
            }
        }
        return change(.object(members.map { Member($0.name, mapped($0)) }))
    }

    /// A JSON Schema whose properties are in the order of `x-order`. Encoders and decoders lose the order of members, so that it is
    /// added where the order is not that of the names.
    fileprivate var withMemberOrder: JSONValue {
        mappingSchemas { schema in
            guard case .object(var members) = schema, case .object(let properties)? = schema["properties"] else { return schema }
            guard case .array(let order)? = schema["x-order"] else {
                let names = properties.map(\.name)
                if zip(names, names.dropFirst()).allSatisfy({ $0 < $1 }) { return schema }
                return .object(members + [.init("x-order", .array(names.withoutRepetitions.map { .string($0) }))])
            }
            let ranks = Dictionary(order.enumerated().map { ($1, $0) }) { first, _ in first }
            let ranked = properties.enumerated().map { (rank: ranks[.string($1.name)] ?? .max, index: $0, property: $1) }
            let sorted = ranked.sorted { ($0.rank, $0.index) < ($1.rank, $1.index) }.map(\.property)
            members = members.map { $0.name == "properties" ? .init($0.name, .object(sorted)) : $0 }
            return .object(members)
        }
    }

    /// A JSON Schema that is put at another place of a document: its references begin there, except in schemas with an identifier, at
    /// which they begin anyway.
    ///
    /// - Parameter pointer: The JSON pointer to the place.
    func moved(to pointer: String) -> JSONValue {
        let schemas = placesOfSchemas
        func moved(_ value: JSONValue, at place: [String]) -> JSONValue {
            switch value {
            case .array(let values): return .array(values.enumerated().map { moved($1, at: place + ["\($0)"]) })
            case .object(let members):
                let isSchema = schemas.contains(place)
                return .object(
                    members.map { member in
                        guard isSchema, member.name == "$ref", case .string(let text) = member.value,
                            text == "#" || text.hasPrefix("#/")
                        else { return .init(member.name, moved(member.value, at: place + [member.name])) }
                        return .init(member.name, .string("#" + pointer + text.dropFirst()))
                    })
            default: return value
            }
        }
        return moved(self, at: [])
    }

    /// The paths of the schemas whose references begin at this document. The value of an unknown keyword has only those that
    /// references lead to; the rest of it is data.
    private var placesOfSchemas: Set<[String]> {
        var places: Set<[String]> = []
        var open: [(place: [String], value: JSONValue)] = [([], self)]
        while let (place, value) = open.popLast() {
            guard case .object(let members) = value, !value.hasIdentifier, places.insert(place).inserted else { continue }
            for member in members {
                let inner = place + [member.name]
                switch member.value {
                case .object(let parts) where SchemaKeywords.containers.contains(member.name):
                    for part in parts { open.append((inner + [part.name], part.value)) }
                case .array(let parts) where SchemaKeywords.schemas.contains(member.name):
                    for (index, part) in parts.enumerated() { open.append((inner + ["\(index)"], part)) }
                case .string(let reference) where member.name == "$ref" && reference.hasPrefix("#/"):
                    let path = SchemaPointer.path(of: reference)
                    if places.contains(path) { continue }
                    let values = values(along: path)
                    if let target = values.last, values.count > path.count, !values.dropLast().contains(where: \.hasIdentifier) {
                        open.append((path, target))
                    }
                default: if SchemaKeywords.schemas.contains(member.name) { open.append((inner, member.value)) }
                }
            }
        }
        return places
    }

    /// Whether references in the schema begin at it. An identifier that begins with `#` only names a place of the document.
    private var hasIdentifier: Bool { if case .string(let id)? = self["$id"] { !id.hasPrefix("#") } else { false } }
}
