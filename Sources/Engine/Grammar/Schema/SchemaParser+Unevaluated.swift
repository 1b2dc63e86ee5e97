internal import JSON

/// `unevaluatedProperties` and `unevaluatedItems` next to keywords that combine schemas (2020-12, section 11).
///
/// What a schema evaluates is collected from its own keywords, from references and from `allOf`. Where it depends on the
/// document (`anyOf`, `oneOf`, `if`), the constraint is a union over the branches that may hold.
extension SchemaParser {
    /// The members and items that a schema evaluates in every document that satisfies it.
    private struct Evaluated {
        var names: Set<NameID> = []
        var patterns: Set<RegexID> = []
        var hasAllMembers = false
        /// Number of evaluated items at the beginning of an array.
        var itemCount = 0
        var hasAllItems = false
        /// Whether `contains` evaluates items, which depends on the array.
        var hasMatchingItems = false

        var isEmpty: Bool {
            names.isEmpty && patterns.isEmpty && !hasAllMembers && itemCount == 0 && !hasAllItems && !hasMatchingItems
        }

        mutating func formUnion(_ other: Evaluated) {
            names.formUnion(other.names)
            patterns.formUnion(other.patterns)
            hasAllMembers = hasAllMembers || other.hasAllMembers
            itemCount = max(itemCount, other.itemCount)
            hasAllItems = hasAllItems || other.hasAllItems
            hasMatchingItems = hasMatchingItems || other.hasMatchingItems
        }
    }

    /// A condition, and what is evaluated if it holds.
    private typealias Branch = (condition: ConstraintID, evaluated: Evaluated)

    private static let maximumBranches = 64
    /// Maximum number of references and combinations within each other, so that the recursion fits a small stack.
    private static let maximumLevels = 40

    /// The constraints of the `unevaluated…` keywords of a schema that also combines schemas.
    mutating func unevaluated(_ place: Place, _ depth: Int) throws(SchemaError) -> [ConstraintID] {
        if mayUseUnevaluated(place), place.value["contains"] == nil { return [] }
        var parts: [ConstraintID] = []
        if let value = place.value["unevaluatedProperties"], value != .bool(true), !mayUseUnevaluated(place) {
            let rest = try schema(place.child("unevaluatedProperties", value), depth: depth + 1)
            parts.append(
                try union(over: branches(place, depth, "unevaluatedProperties"), { $0.hasAllMembers }) { evaluated in
                    // The order of the members comes from the schemas that evaluate them.
                    var object = ObjectConstraint(isOrdered: false, additional: rest)
                    object.properties = evaluated.names.sorted().map { .init(name: $0, value: ConstraintArena.anything) }
                    object.patterns = evaluated.patterns.sorted().map { .init(names: $0, value: ConstraintArena.anything) }
                    return arena.object(object)
                })
        }
        if let value = place.value["unevaluatedItems"], value != .bool(true) {
            let rest = try schema(place.child("unevaluatedItems", value), depth: depth + 1)
            let branches = try branches(place, depth, "unevaluatedItems")
            if branches.contains(where: { $0.evaluated.hasMatchingItems && !$0.evaluated.hasAllItems }) {
                throw SchemaError(.unsupported, at: place.pointer + "/unevaluatedItems", "'unevaluatedItems' next to 'contains'")
            }
            parts.append(
                union(over: branches, { $0.hasAllItems }) { evaluated in
                    let prefix = [ConstraintID](repeating: ConstraintArena.anything, count: evaluated.itemCount)
                    return arena.array(ArrayConstraint(prefix: prefix, rest: rest))
                })
        }
        return parts
    }

    private func union(
        over branches: [Branch], _ hasAll: (Evaluated) -> Bool, _ constraint: (Evaluated) -> ConstraintID
    ) -> ConstraintID {
        arena.any(
            branches.map { branch in
                hasAll(branch.evaluated)
                    ? branch.condition : arena.all([branch.condition, constraint(branch.evaluated)])
            })
    }

    /// All combinations of branches of a schema that may hold together; a single one without a condition if nothing
    /// depends on the document.
    private mutating func branches(_ place: Place, _ depth: Int, _ keyword: String) throws(SchemaError) -> [Branch] {
        func unsupported() -> SchemaError {
            SchemaError(
                .unsupported, at: place.pointer + "/" + keyword,
                "'\(keyword)' next to keywords that combine schemas in too many ways, or within each other")
        }
        var seen: Set<[UInt8]> = [Array(place.pointer.utf8)]
        guard let fixed = try evaluated(place, &seen, isOuter: true) else { throw unsupported() }
        var result: [Branch] = [(ConstraintArena.anything, fixed)]
        for choice in try choices(place, depth) {
            guard let choice else { throw unsupported() }
            if choice.allSatisfy(\.evaluated.isEmpty) { continue }
            if result.count * choice.count > Self.maximumBranches { throw unsupported() }
            result = result.flatMap { first in
                choice.map { second in
                    var evaluated = first.evaluated
                    evaluated.formUnion(second.evaluated)
                    return (arena.all([first.condition, second.condition]), evaluated)
                }
            }
        }
        return result
    }

    /// The branches of each keyword of which only some hold; nil where what they evaluate depends on the document, too.
    private mutating func choices(_ place: Place, _ depth: Int) throws(SchemaError) -> [[Branch]?] {
        var choices: [[Branch]?] = []
        func branch(_ keyword: String, _ value: JSONValue, in parent: Place) throws(SchemaError) -> Branch? {
            let inner = parent.child(keyword, value)
            var seen: Set<[UInt8]> = []
            guard let evaluated = try evaluated(inner, &seen) else { return nil }
            // A reference, because the keyword itself is translated as well.
            return (arena.reference(slot(of: inner, depth: depth + 1)), evaluated)
        }
        for keyword in ["anyOf", "oneOf"] {
            guard let value = place.value[keyword], case .array(let list) = value else { continue }
            var branches: [Branch]? = []
            for (index, item) in list.enumerated() {
                guard let next = try branch(String(index), item, in: place.child(keyword, value)) else {
                    branches = nil
                    break
                }
                branches?.append(next)
            }
            // Several alternatives of `anyOf` may hold, and all of them evaluate.
            if keyword == "anyOf" { branches = branches.flatMap { subsets($0) } }
            choices.append(branches)
        }
        if let condition = place.value["if"] {
            guard var holds = try branch("if", condition, in: place) else { return choices + [nil] }
            var fails: Branch = (arena.not(holds.condition), Evaluated())
            for keyword in ["then", "else"] {
                guard let value = place.value[keyword] else { continue }
                guard let next = try branch(keyword, value, in: place) else { return choices + [nil] }
                if keyword == "then" { holds.evaluated.formUnion(next.evaluated) } else { fails.evaluated = next.evaluated }
            }
            choices.append([holds, fails])
        }
        for keyword in ["dependentSchemas", "dependencies"] {
            guard let value = place.value[keyword], case .object(let members) = value else { continue }
            for member in members {
                if case .array = member.value { continue }
                guard let next = try branch(member.name, member.value, in: place.child(keyword, value)) else {
                    choices.append(nil)
                    continue
                }
                let present = arena.object(ObjectConstraint(required: [name(member.name)]))
                choices.append([(present, next.evaluated), (arena.not(present), Evaluated())])
            }
        }
        return choices
    }

    /// A branch for each set of alternatives that hold; nil if there are too many.
    private func subsets(_ branches: [Branch]) -> [Branch]? {
        // Alternatives that evaluate nothing need no branches of their own.
        let some = branches.filter { !$0.evaluated.isEmpty }
        guard some.count <= 6 else { return nil }
        var result: [Branch] = some.count < branches.count ? [(ConstraintArena.anything, Evaluated())] : []
        for mask in 1..<(1 << some.count) {
            var conditions: [ConstraintID] = []
            var evaluated = Evaluated()
            for (index, branch) in some.enumerated() where mask >> index & 1 == 1 {
                conditions.append(branch.condition)
                evaluated.formUnion(branch.evaluated)
            }
            result.append((arena.all(conditions), evaluated))
        }
        return result
    }

    /// What a schema evaluates in every document that satisfies it; nil if that depends on the document.
    ///
    /// - Parameters:
    ///   - seen: Pointers of the schemas that have been visited, for schemas that refer to themselves.
    ///   - isOuter: Whether the schema is the one with the `unevaluated…` keyword, whose branches are treated separately.
    private mutating func evaluated(
        _ place: Place, _ seen: inout Set<[UInt8]>, isOuter: Bool = false, level: Int = 0
    ) throws(SchemaError) -> Evaluated? {
        if level > Self.maximumLevels {
            throw SchemaError(.tooComplex, at: place.pointer, "references are nested too deeply for 'unevaluated…'")
        }
        guard case .object = place.value else { return Evaluated() }
        var result = Evaluated()
        func add(_ inner: Place) throws(SchemaError) -> Bool {
            guard seen.insert(Array(inner.pointer.utf8)).inserted else { return true }
            guard let found = try evaluated(inner, &seen, level: level + 1) else { return false }
            result.formUnion(found)
            return true
        }
        if let reference = place.value["$ref"], case .string(let text) = reference {
            guard try add(resolve(text, from: place)) else { return nil }
            if referencesStandAlone { return result }
        }
        if case .object(let members) = place.value["properties"] ?? .null {
            result.names.formUnion(members.map { name($0.name) })
        }
        if case .object(let members) = place.value["patternProperties"] ?? .null {
            for member in members { result.patterns.insert(try language(member.name, at: place.pointer + "/patternProperties")) }
        }
        if place.value["additionalProperties"] != nil { result.hasAllMembers = true }
        for keyword in ["prefixItems", "items"] {
            guard case .array(let list) = place.value[keyword] ?? .null else { continue }
            result.itemCount = max(result.itemCount, list.count)
            if keyword == "items", place.value["additionalItems"] != nil { result.hasAllItems = true }
        }
        if let items = place.value["items"] { if case .array = items {} else { result.hasAllItems = true } }
        if place.value["contains"] != nil { result.hasMatchingItems = true }
        if case .array(let list) = place.value["allOf"] ?? .null, let value = place.value["allOf"] {
            let parent = place.child("allOf", value)
            for (index, item) in list.enumerated() where try !add(parent.child(String(index), item)) { return nil }
        }
        if isOuter { return result }
        if place.value["unevaluatedProperties"] != nil { result.hasAllMembers = true }
        if place.value["unevaluatedItems"] != nil { result.hasAllItems = true }
        // Branches that evaluate nothing do not matter.
        for keyword in ["anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies"] {
            guard let value = place.value[keyword] else { continue }
            let parent = place.child(keyword, value)
            var parts = [parent]
            if case .array(let list) = value { parts = list.enumerated().map { parent.child(String($0), $1) } }
            if keyword.hasPrefix("depend"), case .object(let members) = value {
                parts = members.map { parent.child($0.name, $0.value) }
            }
            for part in parts {
                // What has been visited is evaluated anyway, or evaluates nothing.
                guard let found = try evaluated(part, &seen, level: level + 1), found.isEmpty else { return nil }
            }
        }
        return result
    }
}
