internal import Grammar

/// What a schema is made of, before it is written as JSON Schema.
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
    /// A type's own schema: asked for when it is needed, because types may contain themselves.
    case type(any Generable.Type)
    /// The schema of that name.
    case reference(String)
    /// The schema that this is a part of.
    case root
    /// Something that no schema can say, and why; found out when a response is asked for.
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
        /// Bounds that guides set, inclusive, as JSON numbers.
        var minimum: String?
        var maximum: String?
        /// The least and the greatest number that fit the type; they go without saying.
        var least: String
        var greatest: String

        static let integer = Number(isInteger: true, least: String(Int.min), greatest: String(Int.max))
        static let float = Number(
            isInteger: false, least: "-340282346638528860000000000000000000000",
            greatest: "340282346638528860000000000000000000000")
        static let double = Number(isInteger: false, least: "-1e300", greatest: "1e300")
        static let decimal = Number(isInteger: false, least: "-1e120", greatest: "1e120")
    }

    struct List: Sendable {
        var item: SchemaNode
        var minimumCount: Int?
        var maximumCount: Int?
    }

    /// The schema of a type where it is used.
    init(type: any Generable.Type) {
        if let inline = type as? any InlineGenerable.Type { self = inline.schemaNode } else { self = .type(type) }
    }

    /// The name under which the schema is known.
    var name: String? {
        switch self {
        case .object(let object): object.name
        case .choice(let name, _, _): name
        case .string(let text): text.name
        default: nil
        }
    }
}

extension SchemaNode {
    /// The same with a guide added: guides combine, the narrower bound counts.
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
                return .unsupported("a regular expression without a text of its own, such as one with custom components")
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
