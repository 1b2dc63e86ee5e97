package import JSON

extension JSONValue {
    /// A schema in which optional properties are required, but may be null: `"phone": null`.
    ///
    /// A model that must leave out what it does not know decides that before it has written the property's name, and writes
    /// the next name instead. With the name before it, it decides better. Null is read as a missing value.
    package var withNullForOptionalProperties: JSONValue {
        switch self {
        case .array(let values): return .array(values.map(\.withNullForOptionalProperties))
        case .object(let members):
            var required: Set<String> = []
            if case .array(let names)? = self["required"] {
                required = Set(names.compactMap { if case .string(let name) = $0 { name } else { nil } })
            }
            guard case .object(let properties)? = self["properties"], self["type"] == .string("object") else {
                // A property may have any name, also that of a keyword: names are not looked at.
                return .object(members.map { .init($0.name, $0.value.withNullForOptionalProperties) })
            }
            let nullable = properties.map { property in
                let schema = property.value.withNullForOptionalProperties
                return Member(property.name, required.contains(property.name) ? schema : schema.orNull)
            }
            let rest = members.filter { $0.name != "properties" && $0.name != "required" }
                .map { Member($0.name, $0.name == "$defs" ? $0.value.withNullForOptionalProperties : $0.value) }
            return .object(
                rest + [
                    .init("properties", .object(nullable)), .init("required", .array(properties.map { .string($0.name) })),
                ])
        default: return self
        }
    }

    /// The schema of the same values and null; descriptions stay where they are.
    private var orNull: JSONValue {
        var alternatives = [Member("anyOf", .array([self, .object([.init("type", .string("null"))])]))]
        if let description = self["description"] { alternatives.append(.init("description", description)) }
        return .object(alternatives)
    }
}
