internal import Foundation
package import JSON

/// Checks whether a document conforms to a JSON Schema (draft 2020-12, and the keywords of drafts 4 to 7 that it
/// replaced), keyword by keyword according to the specification. Shares only the JSON values with the decoder.
///
/// Not supported: `$dynamicRef`, `$recursiveRef` and references to other documents. A duplicate name in an object is a
/// violation.
package struct SchemaChecker: Sendable {
    /// A schema and its enclosing base URI.
    private struct Place {
        var schema: JSONValue
        var base: String

        func with(_ schema: JSONValue) -> Place { Place(schema: schema, base: base) }
    }

    /// A value of the document, its location, and the nesting depth of the check.
    private struct Instance {
        var value: JSONValue
        var pointer = ""
        var depth = 0

        func child(_ value: JSONValue, _ name: String) -> Instance {
            let token = name.replacingOccurrences(of: "~", with: "~0").replacingOccurrences(of: "/", with: "~1")
            return Instance(value: value, pointer: pointer + "/" + token, depth: depth)
        }
    }

    /// Indices of the items and members that a keyword has evaluated; `unevaluated…` does not apply to them.
    private struct Evaluated {
        var items: Set<Int> = []
        var members: Set<Int> = []

        mutating func add(_ other: Evaluated) {
            items.formUnion(other.items)
            members.formUnion(other.members)
        }
    }

    private enum Failure: Error {
        case violation(String)
        /// The schema cannot be evaluated. Unlike a violation, this is not inverted by `not`.
        case unsupported(String)
    }

    /// The maximum nesting depth of schemas and references; a greater depth is treated as infinite recursion.
    /// In a debug build, each level takes about 5 kB of stack.
    private static let maximumDepth = 400

    private let root: Place
    private let checksFormats: Bool
    /// Drafts 4 and 6 have no conditions: `if` is an unknown keyword, which is ignored.
    private let hasConditions: Bool
    /// In drafts 4 to 7, keywords next to a reference are ignored.
    private let referencesStandAlone: Bool
    /// Targets of references. The key is "URI#" for schemas with an `$id`, "URI#name" for those with an anchor.
    private var targets: [String: Place] = [:]

    package init(_ schema: JSONValue, checksFormats: Bool = true) {
        root = Place(schema: schema, base: "")
        self.checksFormats = checksFormats
        var draft = ""
        if case .string(let text)? = schema["$schema"] { draft = text }
        referencesStandAlone = ["draft-04", "draft-06", "draft-07"].contains { draft.contains($0) }
        hasConditions = !["draft-04", "draft-06"].contains { draft.contains($0) }
        targets["#"] = root
        collectTargets(root)
    }

    package func accepts(_ document: JSONValue) -> Bool { problem(document) == nil }

    /// The first violation and its location; nil if the document is valid.
    package func problem(_ document: JSONValue) -> String? {
        do {
            _ = try check(Instance(value: document), root)
            return nil
        } catch Failure.violation(let text) {
            return text
        } catch Failure.unsupported(let text) {
            return "unsupported: " + text
        } catch {
            return "unexpected: \(error)"
        }
    }

    // MARK: A schema

    private func check(_ parent: Instance, _ outer: Place) throws -> Evaluated {
        var instance = parent
        instance.depth += 1
        if instance.depth > Self.maximumDepth { throw Failure.unsupported("infinite recursion at \(instance.pointer)") }
        switch outer.schema {
        case .bool(true): return Evaluated()
        case .bool(false): throw violation(instance, "nothing is allowed here")
        case .object: break
        default: throw Failure.unsupported("this is not a schema: \(outer.schema.text)")
        }
        let place = Place(schema: outer.schema, base: base(of: outer))
        if referencesStandAlone, place.schema["$ref"] != nil { return try checkReference(instance, place) }
        try checkAnyType(instance, place.schema)
        switch instance.value {
        case .number(let number): try checkNumber(number, instance, place.schema)
        case .string(let string): try checkString(string, instance, place.schema)
        default: break
        }
        var evaluated = try checkReference(instance, place)
        evaluated.add(try checkCombinations(instance, place))
        if case .object(let members) = instance.value { try checkObject(members, instance, place, &evaluated) }
        if case .array(let values) = instance.value { try checkArray(values, instance, place, &evaluated) }
        return evaluated
    }

    /// The evaluated items and members if the value conforms, otherwise nil.
    private func attempt(_ instance: Instance, _ place: Place) throws -> Evaluated? {
        do { return try check(instance, place) } catch Failure.violation { return nil }
    }

    private func violation(_ instance: Instance, _ text: String) -> Failure {
        .violation((instance.pointer.isEmpty ? "the document" : instance.pointer) + ": " + text)
    }

    // MARK: References

    /// The base URI inside a schema.
    private func base(of place: Place) -> String {
        guard case .string(let id)? = place.schema["$id"], !id.hasPrefix("#") else { return place.base }
        if referencesStandAlone, place.schema["$ref"] != nil { return place.base }
        return address(String(id.prefix { $0 != "#" }), from: place.base)
    }

    private func address(_ reference: String, from base: String) -> String {
        if reference.isEmpty { return base }
        return URL(string: reference, relativeTo: URL(string: base))?.absoluteString ?? reference
    }

    private mutating func collectTargets(_ outer: Place) {
        guard case .object(let members) = outer.schema else { return }
        let place = Place(schema: outer.schema, base: base(of: outer))
        if place.base != outer.base { targets[place.base + "#"] = outer }
        for member in members {
            switch (member.name, member.value) {
            case ("$anchor", .string(let name)), ("$dynamicAnchor", .string(let name)):
                targets[place.base + "#" + name] = outer
            case ("$id", .string(let name)) where name.hasPrefix("#"):
                targets[place.base + name] = outer
            case ("properties", .object(let schemas)), ("patternProperties", .object(let schemas)),
                ("$defs", .object(let schemas)), ("definitions", .object(let schemas)),
                ("dependentSchemas", .object(let schemas)), ("dependencies", .object(let schemas)):
                for schema in schemas { collectTargets(place.with(schema.value)) }
            case ("allOf", .array(let schemas)), ("anyOf", .array(let schemas)), ("oneOf", .array(let schemas)),
                ("prefixItems", .array(let schemas)), ("items", .array(let schemas)):
                for schema in schemas { collectTargets(place.with(schema)) }
            case ("not", _), ("if", _), ("then", _), ("else", _), ("items", _), ("additionalItems", _), ("contains", _),
                ("additionalProperties", _), ("propertyNames", _), ("unevaluatedItems", _), ("unevaluatedProperties", _):
                collectTargets(place.with(member.value))
            default: break
            }
        }
    }

    private func checkReference(_ instance: Instance, _ place: Place) throws -> Evaluated {
        for keyword in ["$dynamicRef", "$recursiveRef"] where place.schema[keyword] != nil {
            throw Failure.unsupported(keyword)
        }
        guard let reference = try string(place.schema, "$ref") else { return Evaluated() }
        return try check(instance, try target(of: reference, from: place.base))
    }

    private func target(of reference: String, from base: String) throws -> Place {
        let document = reference.prefix { $0 != "#" }
        guard let fragment = String(reference.dropFirst(document.count + 1)).removingPercentEncoding else {
            throw Failure.unsupported("reference to \(reference)")
        }
        let address = address(String(document), from: base)
        let isPointer = fragment.hasPrefix("/")
        guard var place = targets[address + "#" + (isPointer ? "" : fragment)] else {
            throw Failure.unsupported("reference to \(reference)")
        }
        guard isPointer else { return place }
        for token in fragment.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            let name = token.replacingOccurrences(of: "~1", with: "/").replacingOccurrences(of: "~0", with: "~")
            place.base = self.base(of: place)
            if case .array(let values) = place.schema, let index = Int(name), values.indices.contains(index) {
                place.schema = values[index]
            } else if let value = place.schema[name] {
                place.schema = value
            } else {
                throw Failure.unsupported("reference to \(reference)")
            }
        }
        return place
    }

    // MARK: Values of any type

    private func checkAnyType(_ instance: Instance, _ schema: JSONValue) throws {
        if let type = schema["type"] {
            let names = try strings(oneOrMore: type, "type")
            if !names.contains(where: { Self.has(instance.value, type: $0) }) {
                throw violation(instance, "not of type \(type.text)")
            }
        }
        if let values = try array(schema, "enum"), !values.contains(where: { $0.isEqual(to: instance.value) }) {
            throw violation(instance, "not one of the values of enum")
        }
        if let value = schema["const"], !value.isEqual(to: instance.value) { throw violation(instance, "not \(value.text)") }
    }

    private static func has(_ value: JSONValue, type: String) -> Bool {
        switch (type, value) {
        case ("null", .null), ("boolean", .bool), ("number", .number), ("string", .string), ("array", .array),
            ("object", .object):
            true
        case ("integer", .number(let number)): number.isInteger
        default: false
        }
    }

    // MARK: Numbers and strings

    private func checkNumber(_ number: DecimalNumber, _ instance: Instance, _ schema: JSONValue) throws {
        func limit(_ keyword: String, _ exclusiveKeyword: String, isBroken: (DecimalNumber, DecimalNumber) -> Bool) throws {
            // In draft 4 a boolean that excludes the limit itself; later a separate limit.
            var isExclusive = false
            if case .bool(let value)? = schema[exclusiveKeyword] {
                isExclusive = value
            } else if let limit = try self.number(schema, exclusiveKeyword), isBroken(number, limit) || number == limit {
                throw violation(instance, "breaks \(exclusiveKeyword) \(limit.text)")
            }
            if let limit = try self.number(schema, keyword), isBroken(number, limit) || isExclusive && number == limit {
                throw violation(instance, "breaks \(keyword) \(limit.text)")
            }
        }
        try limit("minimum", "exclusiveMinimum", isBroken: <)
        try limit("maximum", "exclusiveMaximum", isBroken: >)
        if let divisor = try self.number(schema, "multipleOf"), !Self.isMultiple(number, of: divisor) {
            throw violation(instance, "not a multiple of \(divisor.text)")
        }
    }

    /// Represents both numbers as integers times a power of ten and computes the remainder by long division.
    private static func isMultiple(_ number: DecimalNumber, of divisor: DecimalNumber) -> Bool {
        if number.isZero || divisor.isZero { return number.isZero }
        let zeros = (number.exponent - number.digits.count) - (divisor.exponent - divisor.digits.count)
        // The last digit of `number` is not zero, so it cannot be a multiple of a number that ends in zero.
        if zeros < 0 { return false }
        var rest: [UInt8] = []
        for digit in number.digits + [UInt8](repeating: 0, count: zeros) {
            if !(rest.isEmpty && digit == 0) { rest.append(digit) }
            while !isLess(rest, divisor.digits) { rest = difference(rest, divisor.digits) }
        }
        return rest.isEmpty
    }

    private static func isLess(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        a.count != b.count ? a.count < b.count : a.lexicographicallyPrecedes(b)
    }

    /// a − b where a ≥ b, without leading zeros.
    private static func difference(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] {
        var result = a
        var borrow: UInt8 = 0
        for place in 1...a.count {
            let taken = (place <= b.count ? b[b.count - place] : 0) + borrow
            borrow = result[a.count - place] < taken ? 1 : 0
            result[a.count - place] = result[a.count - place] + 10 * borrow - taken
        }
        return Array(result.drop { $0 == 0 })
    }

    private func checkString(_ text: String, _ instance: Instance, _ schema: JSONValue) throws {
        try checkCount(text.unicodeScalars.count, "Length", instance, schema)
        if let pattern = try string(schema, "pattern"), try !matches(text, pattern) {
            throw violation(instance, "\(JSONValue.string(text).text) does not match \(pattern)")
        }
        if checksFormats, let format = try string(schema, "format"), !SchemaFormat.accepts(text, format) {
            throw violation(instance, "\(JSONValue.string(text).text) is not of format \(format)")
        }
    }

    private func matches(_ text: String, _ pattern: String) throws -> Bool {
        var translation = PatternTranslation(pattern)
        guard let expression = try? NSRegularExpression(pattern: translation.icuPattern()) else {
            throw Failure.unsupported("pattern \(pattern)")
        }
        return expression.firstMatch(in: text, range: NSRange(location: 0, length: text.utf16.count)) != nil
    }

    /// Checks `min…` and `max…` of a count.
    private func checkCount(_ count: Int, _ keyword: String, _ instance: Instance, _ schema: JSONValue) throws {
        if let limit = try number(schema, "min" + keyword), DecimalNumber(count) < limit {
            throw violation(instance, "\(count) is less than the minimum, min\(keyword) \(limit.text)")
        }
        if let limit = try number(schema, "max" + keyword), DecimalNumber(count) > limit {
            throw violation(instance, "\(count) is more than the maximum, max\(keyword) \(limit.text)")
        }
    }

    // MARK: Combinations

    private func checkCombinations(_ instance: Instance, _ place: Place) throws -> Evaluated {
        var evaluated = Evaluated()
        for schema in try array(place.schema, "allOf") ?? [] { evaluated.add(try check(instance, place.with(schema))) }
        for keyword in ["anyOf", "oneOf"] {
            guard let schemas = try array(place.schema, keyword) else { continue }
            let fitting = try schemas.compactMap { try attempt(instance, place.with($0)) }
            if fitting.isEmpty || keyword == "oneOf" && fitting.count > 1 {
                throw violation(instance, "fits \(fitting.count) schemas of \(keyword)")
            }
            for part in fitting { evaluated.add(part) }
        }
        if let schema = place.schema["not"], try attempt(instance, place.with(schema)) != nil {
            throw violation(instance, "fits the schema of not")
        }
        if hasConditions, let condition = place.schema["if"] {
            let fitting = try attempt(instance, place.with(condition))
            if let fitting { evaluated.add(fitting) }
            if let schema = place.schema[fitting == nil ? "else" : "then"] {
                evaluated.add(try check(instance, place.with(schema)))
            }
        }
        return evaluated
    }

    // MARK: Objects

    private func checkObject(
        _ members: [JSONValue.Member], _ instance: Instance, _ place: Place, _ evaluated: inout Evaluated
    ) throws {
        let schema = place.schema
        var names: Set<[UInt8]> = []
        for member in members where !names.insert(Array(member.name.utf8)).inserted {
            throw violation(instance, "\(member.name) is a duplicate name")
        }
        try checkCount(members.count, "Properties", instance, schema)
        for name in try strings(oneOrMore: schema["required"] ?? .array([]), "required") where instance.value[name] == nil {
            throw violation(instance, "\(name) is required")
        }
        evaluated.add(try checkDependencies(instance, place))
        let properties = schema["properties"] ?? .object([])
        let patterns = try self.members(schema, "patternProperties") ?? []
        for (index, member) in members.enumerated() {
            if let schema = schema["propertyNames"] {
                _ = try check(instance.child(.string(member.name), member.name), place.with(schema))
            }
            var schemas: [JSONValue] = []
            if let schema = properties[member.name] { schemas.append(schema) }
            for pattern in patterns where try matches(member.name, pattern.name) { schemas.append(pattern.value) }
            if schemas.isEmpty, let schema = schema["additionalProperties"] { schemas.append(schema) }
            for schema in schemas { _ = try check(instance.child(member.value, member.name), place.with(schema)) }
            if !schemas.isEmpty { evaluated.members.insert(index) }
        }
        if let schema = schema["unevaluatedProperties"] {
            for (index, member) in members.enumerated() where !evaluated.members.contains(index) {
                _ = try check(instance.child(member.value, member.name), place.with(schema))
                evaluated.members.insert(index)
            }
        }
    }

    private func checkDependencies(_ instance: Instance, _ place: Place) throws -> Evaluated {
        var evaluated = Evaluated()
        for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
            for dependency in try members(place.schema, keyword) ?? [] where instance.value[dependency.name] != nil {
                switch dependency.value {
                case .object, .bool:
                    evaluated.add(try check(instance, place.with(dependency.value)))
                    continue
                default: break
                }
                for name in try strings(oneOrMore: dependency.value, keyword) where instance.value[name] == nil {
                    throw violation(instance, "\(name) is required by \(dependency.name)")
                }
            }
        }
        return evaluated
    }

    // MARK: Arrays

    private func checkArray(_ values: [JSONValue], _ instance: Instance, _ place: Place, _ evaluated: inout Evaluated) throws {
        let schema = place.schema
        try checkCount(values.count, "Items", instance, schema)
        if schema["uniqueItems"] == .bool(true),
            let twice = values.indices.first(where: { index in values[..<index].contains { $0.isEqual(to: values[index]) } })
        {
            throw violation(instance, "item \(twice) is a duplicate")
        }
        let items = values.enumerated().map { instance.child($1, String($0)) }
        var first = try array(schema, "prefixItems") ?? []
        var rest = schema["items"]
        // Before 2020-12, the schemas of the first items were an array in `items`, and that of the others
        // `additionalItems`.
        if case .array(let schemas)? = rest { (first, rest) = (schemas, schema["additionalItems"]) }
        for (index, item) in items.enumerated() {
            guard let schema = index < first.count ? first[index] : rest else { continue }
            _ = try check(item, place.with(schema))
            evaluated.items.insert(index)
        }
        if let schema = schema["contains"] {
            let fitting = try items.indices.filter { try attempt(items[$0], place.with(schema)) != nil }
            evaluated.items.formUnion(fitting)
            let least = try number(place.schema, "minContains") ?? DecimalNumber(1)
            if DecimalNumber(fitting.count) < least { throw violation(instance, "contains only \(fitting.count) such items") }
            if let most = try number(place.schema, "maxContains"), DecimalNumber(fitting.count) > most {
                throw violation(instance, "contains \(fitting.count) such items")
            }
        }
        if let schema = schema["unevaluatedItems"] {
            for (index, item) in items.enumerated() where !evaluated.items.contains(index) {
                _ = try check(item, place.with(schema))
                evaluated.items.insert(index)
            }
        }
    }

    // MARK: Values of keywords

    private func number(_ schema: JSONValue, _ keyword: String) throws -> DecimalNumber? {
        guard let value = schema[keyword] else { return nil }
        guard case .number(let number) = value else { throw Failure.unsupported("\(keyword) \(value.text)") }
        return number
    }

    private func string(_ schema: JSONValue, _ keyword: String) throws -> String? {
        guard let value = schema[keyword] else { return nil }
        guard case .string(let string) = value else { throw Failure.unsupported("\(keyword) \(value.text)") }
        return string
    }

    private func array(_ schema: JSONValue, _ keyword: String) throws -> [JSONValue]? {
        guard let value = schema[keyword] else { return nil }
        guard case .array(let values) = value else { throw Failure.unsupported("\(keyword) \(value.text)") }
        return values
    }

    private func members(_ schema: JSONValue, _ keyword: String) throws -> [JSONValue.Member]? {
        guard let value = schema[keyword] else { return nil }
        guard case .object(let members) = value else { throw Failure.unsupported("\(keyword) \(value.text)") }
        return members
    }

    /// The strings of an array, or a single string as an array.
    private func strings(oneOrMore value: JSONValue, _ keyword: String) throws -> [String] {
        var values = [value]
        if case .array(let several) = value { values = several }
        return try values.map { value in
            guard case .string(let string) = value else { throw Failure.unsupported("\(keyword) \(value.text)") }
            return string
        }
    }
}
