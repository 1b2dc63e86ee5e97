internal import JSON

/// The structure of a schema, before it is converted to JSON Schema.
indirect enum SchemaNode: Sendable {
    case object(Object)
    case choice(name: String?, description: String?, [SchemaNode])
    case string(Text)
    case number(Number)
    case boolean
    case null
    case array(List)
    /// Any value.
    case any
    /// A JSON Schema that the other cases cannot express, as it is.
    case document(JSONValue)
    /// The schema of a type, resolved when it is needed, because types may contain themselves.
    case type(any Generable.Type)
    /// A reference to the schema with this name.
    case reference(String)
    /// A reference to the root of the schema that contains the node.
    case root
    /// A guide that no schema can express, with the reason; reported when a response is requested.
    case unsupported(String)

    struct Object: Sendable {
        var name: String
        var description: String?
        var properties: [Property]
    }

    struct Property: Sendable {
        var name: String
        var description: String?
        var node: SchemaNode
        var isOptional: Bool
    }

    struct Text: Sendable {
        var name: String?
        var description: String?
        var choices: [String]?
        var constant: String?
        var patterns: [String] = []
    }

    struct Number: Sendable {
        var isInteger: Bool
        /// Bounds of guides, inclusive, as JSON numbers.
        var minimum: String?
        var maximum: String?
        /// The minimum and maximum values of the type, which the published schema omits.
        var typeMinimum: String
        var typeMaximum: String
        /// The number of decimal digits that the type needs at most; nil for integers, which their bounds limit.
        var typeDigits: Int?

        static let integer = Number(isInteger: true, typeMinimum: String(Int.min), typeMaximum: String(Int.max))
        static let float = Number(
            isInteger: false, typeMinimum: "-3.4028234e38", typeMaximum: "3.4028234e38", typeDigits: 9)
        static let double = Number(isInteger: false, typeMinimum: "-1e300", typeMaximum: "1e300", typeDigits: 17)
        static let decimal = Number(isInteger: false, typeMinimum: "-1e120", typeMaximum: "1e120", typeDigits: 38)
    }

    struct List: Sendable {
        var item: SchemaNode
        var minimumCount: Int?
        var maximumCount: Int?
    }

    /// The schema of a type at its use.
    init(type: any Generable.Type) {
        if let inline = type as? any InlineGenerable.Type { self = inline.schemaNode } else { self = .type(type) }
    }

    /// The name of the schema, if it has one.
    var name: String? {
        switch self {
        case .object(let object): object.name
        case .choice(let name, _, _): name
        case .string(let text): text.name
        case .document(let json): json.title
        default: nil
        }
    }
}

extension SchemaNode {
    /// The schema with a guide added. Guides combine; the narrower bound applies.
    func applying(_ rule: GuideRule) -> SchemaNode {
        switch (self, rule) {
        case (.array(var list), .minimumCount(let count)):
            list.minimumCount = max(list.minimumCount ?? 0, count)
            return .array(list)
        case (.array(var list), .maximumCount(let count)):
            list.maximumCount = min(list.maximumCount ?? .max, count)
            return .array(list)
        case (.array(var list), .element(let rules)):
            list.item = rules.reduce(list.item) { $0.applying($1) }
            return .array(list)
        case (.string(var text), .constant(let value)):
            text.constant = value
            return .string(text)
        case (.string(var text), .anyOf(let values)):
            text.choices = text.choices.map { $0.filter(values.contains) } ?? values
            return .string(text)
        case (.string(var text), .pattern(let pattern)):
            guard let pattern else {
                return .unsupported("a regular expression without a literal pattern, such as one with custom components")
            }
            text.patterns.append(pattern)
            return .string(text)
        case (.number(var number), .minimum(let bound)):
            guard DecimalNumber(bound) != nil else { return .unsupported("the minimum \(bound)") }
            number.minimum = [number.minimum, bound].narrowest(>)
            return .number(number)
        case (.number(var number), .maximum(let bound)):
            guard DecimalNumber(bound) != nil else { return .unsupported("the maximum \(bound)") }
            number.maximum = [number.maximum, bound].narrowest(<)
            return .number(number)
        default: return self
        }
    }
}

extension [String?] {
    fileprivate func narrowest(_ isNarrower: (DecimalNumber, DecimalNumber) -> Bool) -> String? {
        compactMap { $0 }.reduce(nil) { best, next in
            guard let best, let a = DecimalNumber(best), let b = DecimalNumber(next) else { return next }
            return isNarrower(b, a) ? next : best
        }
    }
}
