internal import JSON

/// Translates JSON Schema (2020-12, and drafts 4 to 2019-09 where they differ only in syntax) to constraints.
///
/// No restriction is ignored: an unsupported keyword is an error that names its location. Keywords that only describe
/// (titles) are not enforced; formats without a regular language and keywords without effect, such as misspelt ones, are
/// reported in ``notes``.
struct SchemaParser {
    let arena: ConstraintArena
    private let document: JSONValue
    /// Whether `$ref` overrides its sibling keywords, as up to draft 7.
    let referencesStandAlone: Bool
    private let isDraft3: Bool
    /// Whether the draft has `if`, `then` and `else`: up to draft 6 they are unknown keywords, which are ignored.
    let hasConditions: Bool
    /// Whether 1.0 is not an integer.
    let integersHaveNoFraction: Bool
    /// Slots of ``ConstraintArena/targets`` by pointer. Keys are bytes because `String` compares by canonical
    /// equivalence.
    private var slots: [[UInt8]: Int32] = [:]
    private var pending: [(slot: Int32, place: Place, depth: Int)] = []
    /// Schemas with an identifier or an anchor, by absolute URI.
    private var identified: [[UInt8]: Place] = [:]
    /// Keywords that are not enforced or have no effect.
    var noted = SchemaNotes()
    var notes: [String] { noted.sentences(referencedPointers: slots.keys) }

    /// A part of the document, and the base URI of the references in it.
    struct Place {
        var pointer: String
        var value: JSONValue
        var base: String

        func child(_ name: String, _ value: JSONValue) -> Place {
            var token = ""
            for scalar in name.unicodeScalars {
                switch scalar {
                case "~": token += "~0"
                case "/": token += "~1"
                default: token.unicodeScalars.append(scalar)
                }
            }
            return Place(pointer: pointer + "/" + token, value: value, base: base)
        }
    }

    private static let maximumDepth = 150
    /// Schemas nested this deeply in the one that is being translated wait for their turn, so that the recursion fits a
    /// small stack.
    private static let recursionDepth = 16
    private static let maximumArray = 10_000

    init(_ document: JSONValue, arena: ConstraintArena) {
        self.document = document
        self.arena = arena
        var dialect = ""
        if case .string(let text) = document["$schema"] { dialect = text }
        referencesStandAlone = ["draft-03", "draft-04", "draft-05", "draft-06", "draft-07"].contains { dialect.contains($0) }
        hasConditions = !["draft-03", "draft-04", "draft-05", "draft-06"].contains { dialect.contains($0) }
        isDraft3 = dialect.contains("draft-03")
        integersHaveNoFraction = dialect.contains("draft-04")
    }

    /// The constraint of the whole document.
    mutating func parse() throws(SchemaError) -> ConstraintID {
        if isDraft3 { throw SchemaError(.unsupported, at: "/$schema", "draft 3 of JSON Schema") }
        identified = SchemaIdentifiers(of: Place(pointer: "", value: document, base: "")).places
        var base = ""
        if case .string(let id) = document["$id"] ?? document["id"] ?? .null { base = SchemaURI.resolve(id, against: "") }
        let root = slot(of: Place(pointer: "", value: document, base: SchemaURI.withoutFragment(base)))
        while let next = pending.popLast() {
            arena.targets[Int(next.slot)] = try schema(next.place, depth: next.depth, isDeferred: true)
        }
        return arena.reference(root)
    }

    mutating func slot(of place: Place, depth: Int = 0) -> Int32 {
        let key = Array(place.pointer.utf8)
        if let slot = slots[key] { return slot }
        let slot = Int32(arena.targets.count)
        arena.targets.append(ConstraintArena.nothing)
        slots[key] = slot
        pending.append((slot, place, depth))
        return slot
    }

    // MARK: - References

    func resolve(_ reference: String, from place: Place) throws(SchemaError) -> Place {
        let absolute = SchemaURI.resolve(reference, against: place.base)
        let base = SchemaURI.withoutFragment(absolute)
        let fragment = SchemaURI.decoded(String(absolute.dropFirst(base.count).drop { $0 == "#" }))
        var target: Place
        if let known = identified[Array(base.utf8)] {
            target = known
        } else if base == SchemaURI.withoutFragment(place.base) || base.isEmpty {
            target = Place(pointer: "", value: document, base: base)
        } else {
            throw SchemaError(
                .unsupported, at: place.pointer + "/$ref",
                "the reference '\(reference)' refers to another document; copy its target into '$defs'")
        }
        if fragment.isEmpty { return target }
        guard fragment.utf8.first == UInt8(ascii: "/") else {
            guard let known = identified[Array((base + "#" + fragment).utf8)] else {
                throw SchemaError(.invalid, at: place.pointer, "the reference '\(reference)' cannot be resolved")
            }
            return known
        }
        for token in Array(fragment.utf8).split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst() {
            let name = Self.unescaped(token)
            var next: JSONValue?
            switch target.value {
            case .object: next = target.value[name]
            case .array(let values): next = Int(name).flatMap { values.indices.contains($0) ? values[$0] : nil }
            default: break
            }
            guard let next else {
                throw SchemaError(.invalid, at: place.pointer, "the reference '\(reference)' cannot be resolved")
            }
            target = target.child(name, next)
            if case .string(let id) = next["$id"] ?? .null, !id.hasPrefix("#") {
                target.base = SchemaURI.withoutFragment(SchemaURI.resolve(id, against: target.base))
            }
        }
        return target
    }

    /// The member name or index that a token of a JSON pointer denotes (RFC 6901, section 4).
    private static func unescaped(_ token: ArraySlice<UInt8>) -> String {
        var bytes: [UInt8] = []
        var rest = token
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "~"), let digit = rest.first, digit == UInt8(ascii: "0") || digit == UInt8(ascii: "1") {
                bytes.append(digit == UInt8(ascii: "0") ? UInt8(ascii: "~") : UInt8(ascii: "/"))
                rest.removeFirst()
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: - Schemas

    mutating func schema(
        _ place: Place, depth: Int, isDeferred: Bool = false
    ) throws(SchemaError) -> ConstraintID {
        if depth > Self.maximumDepth {
            throw SchemaError(.tooComplex, at: place.pointer, "schemas are nested more than \(Self.maximumDepth) levels deep")
        }
        if depth > 0, depth % Self.recursionDepth == 0, !isDeferred { return arena.reference(slot(of: place, depth: depth)) }
        let outer = arena.pointer
        arena.pointer = place.pointer
        defer { arena.pointer = outer }
        switch place.value {
        case .bool(let value): return value ? ConstraintArena.anything : ConstraintArena.nothing
        case .object: break
        default: throw SchemaError(.invalid, at: place.pointer, "a schema is an object, true or false")
        }
        var place = place
        if case .string(let id) = place.value["$id"] ?? .null, !id.hasPrefix("#") {
            place.base = SchemaURI.withoutFragment(SchemaURI.resolve(id, against: place.base))
            if let known = identified[Array(place.base.utf8)], known.pointer == place.pointer { place.base = known.base }
        }
        noteKeywordsWithoutEffect(place)
        var parts: [ConstraintID] = []
        if let reference = place.value["$ref"] {
            guard case .string(let text) = reference else { throw invalid(place, "$ref", "a string") }
            parts.append(arena.reference(slot(of: try resolve(text, from: place))))
            if referencesStandAlone { return parts[0] }
        }
        for keyword in ["$dynamicRef", "$recursiveRef"] where place.value[keyword] != nil {
            throw SchemaError(.unsupported, at: place.pointer + "/" + keyword, "dynamic references")
        }
        parts.append(try types(place))
        parts += try values(place)
        parts.append(try numbers(place))
        parts.append(try strings(place))
        parts.append(try object(place, depth))
        parts += try dependencies(place, depth)
        parts.append(try array(place, depth))
        parts += try combinations(place, depth)
        parts += try unevaluated(place, depth)
        return arena.all(parts)
    }

    func invalid(_ place: Place, _ keyword: String, _ expected: String) -> SchemaError {
        SchemaError(.invalid, at: place.pointer + "/" + keyword, "'\(keyword)' must be \(expected)")
    }

    private func types(_ place: Place) throws(SchemaError) -> ConstraintID {
        guard let value = place.value["type"] else { return ConstraintArena.anything }
        var names: [JSONValue] = [value]
        if case .array(let list) = value { names = list }
        var kinds: Kinds = []
        var hasNumber = false
        for name in names {
            guard case .string(let text) = name else { throw invalid(place, "type", "a type name or a list of type names") }
            switch text {
            case "null": kinds.insert(.null)
            case "boolean": kinds.insert(.boolean)
            case "integer": kinds.insert(.number)
            case "number":
                kinds.insert(.number)
                hasNumber = true
            case "string": kinds.insert(.string)
            case "object": kinds.insert(.object)
            case "array": kinds.insert(.array)
            default: throw SchemaError(.invalid, at: place.pointer + "/type", "'\(text)' is not a type of JSON Schema")
            }
        }
        let integers = kinds.contains(.number) && !hasNumber
        return arena.all([arena.kinds(kinds), integers ? arena.number(NumberSpec(isInteger: true)) : ConstraintArena.anything])
    }

    private func values(_ place: Place) throws(SchemaError) -> [ConstraintID] {
        var parts: [ConstraintID] = []
        if let value = place.value["const"] { parts.append(arena.value(value)) }
        if let list = place.value["enum"] {
            guard case .array(let values) = list else { throw invalid(place, "enum", "a list of values") }
            if values.isEmpty { throw SchemaError(.unsatisfiable, at: place.pointer + "/enum", "the list of values is empty") }
            if values.count > 100_000 { throw SchemaError(.tooComplex, at: place.pointer + "/enum", "more than 100,000 values") }
            var seen: Set<ConstraintID> = []
            parts.append(arena.any(distinct: values.map { arena.value($0) }.filter { seen.insert($0).inserted }))
        }
        return parts
    }

    private func decimal(_ place: Place, _ keyword: String) throws(SchemaError) -> DecimalNumber? {
        guard let value = place.value[keyword] else { return nil }
        guard case .number(let number) = value else { throw invalid(place, keyword, "a number") }
        return number
    }

    private func count(_ place: Place, _ keyword: String) throws(SchemaError) -> Int? {
        guard let number = try decimal(place, keyword) else { return nil }
        guard number.isInteger, !number.isNegative else { throw invalid(place, keyword, "an integer of at least 0") }
        return min(number.integer ?? Int(Int32.max), Int(Int32.max))
    }

    private func numbers(_ place: Place) throws(SchemaError) -> ConstraintID {
        var spec: NumberSpec? = .any
        func restrict(_ other: NumberSpec) { spec = spec?.intersection(other) }
        for (plain, exclusive, isLower) in [("minimum", "exclusiveMinimum", true), ("maximum", "exclusiveMaximum", false)] {
            var plainIsExclusive = false
            if case .bool(let flag) = place.value[exclusive] ?? .null {
                plainIsExclusive = flag
            } else if let value = try decimal(place, exclusive) {
                let bound = NumberSpec.Bound(value: value, isExclusive: true)
                restrict(isLower ? NumberSpec(lower: bound) : NumberSpec(upper: bound))
            }
            if let value = try decimal(place, plain) {
                let bound = NumberSpec.Bound(value: value, isExclusive: plainIsExclusive)
                restrict(isLower ? NumberSpec(lower: bound) : NumberSpec(upper: bound))
            }
        }
        if let divisor = try decimal(place, "multipleOf") {
            guard !divisor.isNegative, !divisor.isZero else { throw invalid(place, "multipleOf", "more than 0") }
            restrict(NumberSpec(multiples: [divisor]))
        }
        // The digits of the type of a generated value; not a keyword of JSON Schema.
        if let digits = try count(place, "x-digits") { restrict(NumberSpec(maximumDigits: max(1, digits))) }
        guard let spec else {
            // The minimum is greater than the maximum: no number is valid.
            return arena.kinds(Kinds.all.subtracting(.number))
        }
        return arena.number(spec)
    }

    private mutating func strings(_ place: Place) throws(SchemaError) -> ConstraintID {
        let regexes = arena.regexes
        var parts: [RegexID] = []
        let minimum = try count(place, "minLength") ?? 0
        let maximum = try count(place, "maxLength")
        if minimum > 0 || maximum != nil {
            let isEmpty = maximum.map { $0 < minimum } ?? false
            parts.append(isEmpty ? RegexArena.empty : regexes.repetition(regexes.anyCharacter, minimum, maximum))
        }
        if let value = place.value["pattern"] {
            guard case .string(let pattern) = value else { throw invalid(place, "pattern", "a string") }
            parts.append(try language(pattern, at: place.pointer + "/pattern"))
        }
        if let value = place.value["format"] {
            guard case .string(let format) = value else { throw invalid(place, "format", "a string") }
            if let pattern = Formats.pattern(format) {
                parts.append(try language(pattern, at: place.pointer + "/format"))
            } else {
                noted.add("'format': \"\(format)\" at \(place.name) is not enforced")
            }
        }
        guard !parts.isEmpty else { return ConstraintArena.anything }
        let language = regexes.intersection(parts)
        do {
            if try regexes.isAlive(language) { return arena.string(language) }
        } catch { throw SchemaError(.tooComplex, at: place.pointer, "the pattern needs too many states") }
        return arena.kinds(Kinds.all.subtracting(.string))
    }

    func language(_ pattern: String, at pointer: String) throws(SchemaError) -> RegexID {
        do {
            return try RegexParser.language(of: pattern, in: arena.regexes)
        } catch {
            throw SchemaError(error.isUnsupported ? .unsupported : .invalid, at: pointer, error.reason)
        }
    }

    private mutating func object(_ place: Place, _ depth: Int) throws(SchemaError) -> ConstraintID {
        var object = ObjectConstraint()
        var isUsed = false
        if let value = place.value["properties"] {
            guard case .object(let members) = value else { throw invalid(place, "properties", "an object of schemas") }
            let parent = place.child("properties", value)
            var index: [NameID: Int] = [:]
            for member in members {
                let schema = try schema(parent.child(member.name, member.value), depth: depth + 1)
                let property = ObjectConstraint.Property(name: name(member.name), value: schema)
                if let known = index[property.name] {
                    object.properties[known] = property
                } else {
                    index[property.name] = object.properties.count
                    object.properties.append(property)
                }
            }
            if let order = place.value["x-order"] { sort(&object.properties, by: order) }
            isUsed = true
        }
        if let value = place.value["patternProperties"] {
            guard case .object(let members) = value else { throw invalid(place, "patternProperties", "an object of schemas") }
            let parent = place.child("patternProperties", value)
            for member in members {
                let inner = parent.child(member.name, member.value)
                object.patterns.append(
                    .init(names: try language(member.name, at: inner.pointer), value: try schema(inner, depth: depth + 1)))
            }
            isUsed = true
        }
        let additional =
            place.value["additionalProperties"] != nil || !mayUseUnevaluated(place)
            ? "additionalProperties" : "unevaluatedProperties"
        if let value = place.value[additional] {
            object.additional = try schema(place.child(additional, value), depth: depth + 1)
            isUsed = true
        }
        if let value = place.value["propertyNames"] {
            object.names = try schema(place.child("propertyNames", value), depth: depth + 1)
            isUsed = true
        }
        if let value = place.value["required"] {
            object.required = try names(value, place, "required")
            isUsed = true
        }
        if let minimum = try count(place, "minProperties") {
            object.minimum = minimum
            isUsed = true
        }
        object.maximum = try count(place, "maxProperties")
        return isUsed || object.maximum != nil ? arena.object(object) : ConstraintArena.anything
    }

    func name(_ text: String) -> NameID { arena.name(Array(text.utf8)) }

    private func names(_ value: JSONValue, _ place: Place, _ keyword: String) throws(SchemaError) -> [NameID] {
        guard case .array(let list) = value else { throw invalid(place, keyword, "a list of names") }
        var names: [NameID] = []
        for item in list {
            guard case .string(let text) = item else { throw invalid(place, keyword, "a list of names") }
            names.append(name(text))
        }
        return names
    }

    /// Sorts the properties by a list of names; the others follow in their original order.
    private func sort(_ properties: inout [ObjectConstraint.Property], by order: JSONValue) {
        guard case .array(let list) = order else { return }
        var rank: [NameID: Int] = [:]
        for (index, item) in list.enumerated() { if case .string(let text) = item { rank[name(text)] = index } }
        let sorted = properties.enumerated().sorted { a, b in
            (rank[a.element.name] ?? Int.max, a.offset) < (rank[b.element.name] ?? Int.max, b.offset)
        }
        properties = sorted.map(\.element)
    }

    private mutating func dependencies(_ place: Place, _ depth: Int) throws(SchemaError) -> [ConstraintID] {
        var parts: [ConstraintID] = []
        for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
            guard let value = place.value[keyword] else { continue }
            guard case .object(let members) = value else { throw invalid(place, keyword, "an object") }
            let parent = place.child(keyword, value)
            for member in members {
                let absent = arena.object(ObjectConstraint(forbidden: [name(member.name)]))
                let present = ObjectConstraint(required: [name(member.name)])
                if case .array = member.value, keyword != "dependentSchemas" {
                    let needed = try names(member.value, parent, member.name)
                    parts.append(arena.any([absent, arena.object(ObjectConstraint(required: present.required + needed))]))
                } else if keyword == "dependentRequired" {
                    throw invalid(parent, member.name, "a list of names")
                } else {
                    let inner = try schema(parent.child(member.name, member.value), depth: depth + 1)
                    parts.append(arena.any([absent, arena.all([arena.object(present), inner])]))
                }
            }
        }
        return parts
    }

    private mutating func array(_ place: Place, _ depth: Int) throws(SchemaError) -> ConstraintID {
        var array = ArrayConstraint()
        var isUsed = false
        var rest = "items"
        var prefix = "prefixItems"
        if case .array = place.value["items"] ?? .null { (prefix, rest) = ("items", "additionalItems") }
        if let value = place.value[prefix] {
            guard case .array(let list) = value else { throw invalid(place, prefix, "a list of schemas") }
            let parent = place.child(prefix, value)
            for (index, item) in list.enumerated() {
                array.prefix.append(try schema(parent.child(String(index), item), depth: depth + 1))
            }
            isUsed = true
        }
        if place.value[rest] == nil, mayUseUnevaluated(place), place.value["contains"] == nil { rest = "unevaluatedItems" }
        if let value = place.value[rest] {
            array.rest = try schema(place.child(rest, value), depth: depth + 1)
            isUsed = true
        }
        if let minimum = try count(place, "minItems") {
            array.minimum = minimum
            isUsed = true
        }
        array.maximum = try count(place, "maxItems")
        if case .bool(true) = place.value["uniqueItems"] ?? .null { array.isUnique = true }
        if let value = place.value["contains"] {
            let inner = try schema(place.child("contains", value), depth: depth + 1)
            let minimum = try count(place, "minContains") ?? 1
            array.contains = Contains(value: inner, minimum: minimum, maximum: try count(place, "maxContains"))
            isUsed = true
        }
        if array.minimum > Self.maximumArray {
            throw SchemaError(.tooComplex, at: place.pointer + "/minItems", "more than \(Self.maximumArray) items are required")
        }
        return isUsed || array.maximum != nil || array.isUnique ? arena.array(array) : ConstraintArena.anything
    }

    private mutating func combinations(_ place: Place, _ depth: Int) throws(SchemaError) -> [ConstraintID] {
        var parts: [ConstraintID] = []
        for keyword in ["allOf", "anyOf", "oneOf"] {
            guard let value = place.value[keyword] else { continue }
            guard case .array(let list) = value, !list.isEmpty else { throw invalid(place, keyword, "a list of schemas") }
            let parent = place.child(keyword, value)
            var members: [ConstraintID] = []
            for (index, item) in list.enumerated() {
                members.append(try schema(parent.child(String(index), item), depth: depth + 1))
            }
            parts.append(keyword == "allOf" ? arena.all(members) : keyword == "anyOf" ? arena.any(members) : arena.one(members))
        }
        if let value = place.value["not"] {
            parts.append(arena.not(try schema(place.child("not", value), depth: depth + 1)))
        }
        if hasConditions, let value = place.value["if"] {
            let condition = try schema(place.child("if", value), depth: depth + 1)
            var branches: [ConstraintID] = []
            for (keyword, test) in [("then", condition), ("else", arena.not(condition))] {
                guard let branch = place.value[keyword] else {
                    branches.append(test)
                    continue
                }
                branches.append(arena.all([test, try schema(place.child(keyword, branch), depth: depth + 1)]))
            }
            if place.value["then"] != nil || place.value["else"] != nil { parts.append(arena.any(branches)) }
        }
        return parts
    }

    /// Whether no other keyword of the schema can evaluate members or items that the plain keywords do not:
    /// `unevaluated…` then means the same as the plain keyword.
    func mayUseUnevaluated(_ place: Place) -> Bool {
        ["$ref", "allOf", "anyOf", "oneOf", "if", "not", "dependentSchemas", "dependencies"].allSatisfy { place.value[$0] == nil }
    }
}

extension ConstraintArena {
    /// The union of alternatives that are known to differ. Avoids the quadratic comparison, since lists of values can
    /// be long.
    func any(distinct parts: [ConstraintID]) -> ConstraintID {
        parts.count == 1 ? parts[0] : any(unchecked: parts)
    }
}
