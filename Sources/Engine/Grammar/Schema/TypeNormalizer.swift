internal import JSON

/// Converts constraints to normal form: a union of shapes for each kind of value.
///
/// Conjunctions are multiplied out and negations pushed inward by one level: the types of members and items stay
/// constraints until they are needed. Alternatives that contradict themselves are dropped immediately.
final class TypeNormalizer {
    let arena: ConstraintArena
    private var types: [ConstraintID: ValueType] = [:]
    var negations: [ConstraintID: ValueType] = [:]
    var inProgress: Set<ConstraintID> = []
    private var failures: [ConstraintID: SchemaError] = [:]  // of constraints that were normalized ahead of others
    private var disjointness: [[ConstraintID]: Bool] = [:]
    private var propertyIndices: [Int32: [NameID: Int]] = [:]
    private var steps = 0
    /// Why some types are incomplete; nil if all are complete.
    var incomplete: SchemaError?
    /// Valid documents that are not allowed, as sentences.
    private(set) var notes: [String] = []
    /// Deeper constraints are normalized from the innermost one outward, so that the recursion fits a small stack.
    private static let recursionDepth = 24

    static let maximumUnion = 400
    private static let maximumSteps = 60_000

    init(_ arena: ConstraintArena) { self.arena = arena }

    var regexes: RegexArena { arena.regexes }

    func error(_ kind: SchemaError.Kind, _ id: ConstraintID, _ reason: String) -> SchemaError {
        SchemaError(kind, at: arena.pointers[Int(id)], reason)
    }

    func note(_ subject: String, _ id: ConstraintID, _ consequence: String) {
        let place = arena.pointers[Int(id)]
        let note = "\(subject) at \(place.isEmpty ? "the root" : place): \(consequence)"
        if !notes.contains(note) { notes.append(note) }
    }

    func type(_ id: ConstraintID) throws(SchemaError) -> ValueType {
        if let type = types[id] { return type }
        if let failure = failures[id] { throw failure }
        if inProgress.count == Self.recursionDepth { normalizeParts(of: id) }
        guard inProgress.insert(id).inserted else { throw error(.unsatisfiable, id, "it contains a circular reference") }
        defer { inProgress.remove(id) }
        if inProgress.count > 300 { throw error(.tooComplex, id, "references are nested too deeply") }
        let type = try compute(id)
        types[id] = type
        return type
    }

    /// Normalizes everything that a constraint consists of, the innermost parts first.
    private func normalizeParts(of root: ConstraintID) {
        var seen = inProgress
        var open: [(id: ConstraintID, isExpanded: Bool)] = [(root, false)]
        while let (id, isExpanded) = open.popLast() {
            if isExpanded {
                if id == root { continue }
                do { _ = try type(id) } catch { failures[id] = error }
            } else if types[id] == nil, seen.insert(id).inserted {
                open.append((id, true))
                open += parts(of: id).map { ($0, false) }
            }
        }
        failures = failures.filter { $0.value.kind != .unsatisfiable }  // circular only while others are in progress
    }

    private func parts(of id: ConstraintID) -> [ConstraintID] {
        switch arena[id] {
        // Values are collected by the union: a list of them can be long.
        case .all(let parts), .any(let parts), .one(let parts):
            parts.filter { if case .value = arena[$0] { false } else { true } }
        case .not(let part): [part]
        case .reference(let slot): [arena.targets[Int(slot)]]
        default: []
        }
    }

    private func compute(_ id: ConstraintID) throws(SchemaError) -> ValueType {
        var type = ValueType.anything(arena)
        switch arena[id] {
        case .anything: break
        case .nothing: type = ValueType()
        case .kinds(let kinds):
            if !kinds.contains(.null) { type.hasNull = false }
            if !kinds.contains(.boolean) { (type.hasTrue, type.hasFalse) = (false, false) }
            if !kinds.contains(.number) { type.numbers = [] }
            if !kinds.contains(.string) { type.strings = RegexArena.empty }
            if !kinds.contains(.object) { type.objects = [] }
            if !kinds.contains(.array) { type.arrays = [] }
        case .number(let spec): type.numbers = spec.isEmpty ? [] : [spec]
        case .string(let language): type.strings = language
        case .object(let index): type.objects = shapes(ofObject: index)
        case .array(let index): type.arrays = shapes(ofArray: index)
        case .value(let index): type = valueType(arena.values[Int(index)])
        case .all(let parts):
            for part in parts {
                type = try intersection(type, try self.type(part), id)
                if type.isNothing { break }
            }
        case .any(let parts): type = try union(parts, id)
        case .one(let parts): type = try exactlyOne(parts, id)
        case .not(let part): type = try negation(part)
        case .reference(let slot): type = try self.type(arena.targets[Int(slot)])
        }
        return type
    }

    private func shapes(ofObject index: Int32) -> [ObjectShape] {
        let object = arena.objects[Int(index)]
        var shape = ObjectShape(
            required: Set(object.required), forbidden: Set(object.forbidden), minimum: object.minimum, maximum: object.maximum)
        let restrictsValues =
            object.additional != ConstraintArena.anything || !object.properties.isEmpty || !object.patterns.isEmpty
        if restrictsValues { shape.sources = [index] }
        if object.names != ConstraintArena.anything { shape.names = [object.names] }
        return shape.isContradictory ? [] : [shape]
    }

    private func shapes(ofArray index: Int32) -> [ArrayShape] {
        let array = arena.arrays[Int(index)]
        let shape = ArrayShape(
            prefix: array.prefix, rest: array.rest, minimum: array.minimum, maximum: array.maximum,
            contains: array.contains.map { [$0] } ?? [], isUnique: array.isUnique)
        return shape.isContradictory ? [] : [shape]
    }

    private func valueType(_ value: JSONValue) -> ValueType {
        var type = ValueType()
        switch value {
        case .null: type.hasNull = true
        case .bool(let value): if value { type.hasTrue = true } else { type.hasFalse = true }
        case .number(let number): type.numbers = [.exactly(number)]
        case .string(let text): type.strings = regexes.literal(Array(text.utf8))
        case .array(let items):
            let prefix = items.map { arena.value($0) }
            type.arrays = [ArrayShape(prefix: prefix, rest: ConstraintArena.nothing, minimum: items.count, maximum: items.count)]
        case .object(let members):
            var object = ObjectConstraint(additional: ConstraintArena.nothing)
            // If several members have the same name, the last one counts.
            for (index, member) in members.enumerated()
            where !members[(index + 1)...].contains(where: { $0.name.utf8.elementsEqual(member.name.utf8) }) {
                object.properties.append(.init(name: arena.name(Array(member.name.utf8)), value: arena.value(member.value)))
            }
            object.required = object.properties.map(\.name)
            guard case .object(let index) = arena[arena.object(object)] else { break }
            type.objects = shapes(ofObject: index)
        }
        return type
    }

    // MARK: - Union

    func union(_ parts: [ConstraintID], _ id: ConstraintID) throws(SchemaError) -> ValueType {
        var result = ValueType()
        var languages: [RegexID] = []
        var words: [[UInt8]] = []
        for part in parts {
            // Collect strings separately: a list of values can be long.
            if case .value(let index) = arena[part], case .string(let text) = arena.values[Int(index)] {
                words.append(Array(text.utf8))
                continue
            }
            let type = try self.type(part)
            result.isIncomplete = result.isIncomplete || type.isIncomplete
            result.hasNull = result.hasNull || type.hasNull
            result.hasTrue = result.hasTrue || type.hasTrue
            result.hasFalse = result.hasFalse || type.hasFalse
            for spec in type.numbers where result.numbers.count > 100 || !result.numbers.contains(spec) {
                result.numbers.append(spec)
            }
            if type.strings != RegexArena.empty { languages.append(type.strings) }
            for shape in type.objects where result.objects.count > 100 || !result.objects.contains(shape) {
                result.objects.append(shape)
            }
            for shape in type.arrays where result.arrays.count > 100 || !result.arrays.contains(shape) {
                result.arrays.append(shape)
            }
        }
        if result.numbers.contains(.any) { result.numbers = [.any] }
        if result.objects.contains(ObjectShape()) { result.objects = [ObjectShape()] }
        if result.arrays.contains(ArrayShape()) { result.arrays = [ArrayShape()] }
        if !words.isEmpty { languages.append(regexes.words(words)) }
        result.strings = regexes.alternation(languages)
        try check(result, id)
        return result
    }

    func check(_ type: ValueType, _ id: ConstraintID) throws(SchemaError) {
        if type.objects.count > Self.maximumUnion || type.arrays.count > Self.maximumUnion {
            throw error(.tooComplex, id, "its alternatives have more than \(Self.maximumUnion) combinations")
        }
        if regexes.isFull { throw error(.tooComplex, id, "its patterns need too many states") }
    }

    private func step(_ id: ConstraintID) throws(SchemaError) {
        steps += 1
        regexes.spend(1)
        if steps > Self.maximumSteps || regexes.isOutOfFuel {
            throw error(.tooComplex, id, "its keywords combine in too many ways")
        }
    }

    // MARK: - Intersection

    private func intersection(_ a: ValueType, _ b: ValueType, _ id: ConstraintID) throws(SchemaError) -> ValueType {
        var result = ValueType()
        result.isIncomplete = a.isIncomplete || b.isIncomplete
        result.hasNull = a.hasNull && b.hasNull
        result.hasTrue = a.hasTrue && b.hasTrue
        result.hasFalse = a.hasFalse && b.hasFalse
        for first in a.numbers {
            for second in b.numbers {
                if let spec = first.intersection(second) { result.numbers.append(spec) }
            }
        }
        if a.strings != RegexArena.empty, b.strings != RegexArena.empty {
            let language = regexes.intersection([a.strings, b.strings])
            result.strings = try isAlive(language, id) ? language : RegexArena.empty
        }
        result.objects = try products(a.objects, b.objects, id) { (first, second) throws(SchemaError) in
            try areDisjoint(first, second) ? nil : first.intersection(second, arena)
        }
        result.arrays = try products(a.arrays, b.arrays, id) { $0.intersection($1, arena) }
        try check(result, id)
        return result
    }

    /// The shapes that a shape of the one union and a shape of the other have in common, without duplicates.
    func products<Shape: Equatable>(
        _ a: [Shape], _ b: [Shape], _ id: ConstraintID, _ common: (Shape, Shape) throws(SchemaError) -> Shape?
    ) throws(SchemaError) -> [Shape] {
        var result: [Shape] = []
        for first in a {
            for second in b {
                try step(id)
                if let shape = try common(first, second), !result.contains(shape) { result.append(shape) }
            }
        }
        return result
    }

    func isAlive(_ language: RegexID, _ id: ConstraintID) throws(SchemaError) -> Bool {
        do { return try regexes.isAlive(language) } catch {
            throw self.error(.tooComplex, id, "its patterns need too many states")
        }
    }

    /// Whether a member that at least one of the shapes requires has no value that both allow: the discriminating
    /// property of alternatives.
    private func areDisjoint(_ a: ObjectShape, _ b: ObjectShape) throws(SchemaError) -> Bool {
        for name in a.required.union(b.required) {
            guard let first = try simpleValue(name, a), let second = try simpleValue(name, b) else { continue }
            if first == second { continue }
            if try areDisjoint(first, second) { return true }
        }
        return false
    }

    /// The constraint of a shape on the value of a name; nil if any value is allowed.
    func simpleValue(_ name: NameID, _ shape: ObjectShape) throws(SchemaError) -> ConstraintID? {
        let value = try value(of: name, in: shape)
        return value == ConstraintArena.anything ? nil : value
    }

    private func areDisjoint(_ a: ConstraintID, _ b: ConstraintID) throws(SchemaError) -> Bool {
        let key = [min(a, b), max(a, b)]
        if let known = disjointness[key] { return known }
        // Ends the recursion for recursive schemas: they are not known to be disjoint.
        disjointness[key] = false
        guard !inProgress.contains(a), !inProgress.contains(b), inProgress.count < 100, let first = try knownType(a),
            let second = try knownType(b), !first.isIncomplete, !second.isIncomplete
        else {
            disjointness[key] = nil
            return false
        }
        let result = try areDisjoint(first, second)
        disjointness[key] = result
        return result
    }

    /// The type of a constraint; nil if it cannot be computed because of a circular reference.
    private func knownType(_ id: ConstraintID) throws(SchemaError) -> ValueType? {
        do { return try type(id) } catch { if error.kind == .unsatisfiable { return nil } else { throw error } }
    }

    private func areDisjoint(_ a: ValueType, _ b: ValueType) throws(SchemaError) -> Bool {
        if a.hasNull && b.hasNull || a.hasTrue && b.hasTrue || a.hasFalse && b.hasFalse { return false }
        if !a.arrays.isEmpty && !b.arrays.isEmpty { return false }
        for first in a.numbers { for second in b.numbers where first.intersection(second) != nil { return false } }
        for first in a.objects {
            for second in b.objects {
                if first.intersection(second, arena) != nil, try !areDisjoint(first, second) { return false }
            }
        }
        if a.strings != RegexArena.empty && b.strings != RegexArena.empty {
            return try !isAlive(regexes.intersection([a.strings, b.strings]), 0)
        }
        return true
    }

    // MARK: - Exactly one

    /// Computed separately for each kind: branches that restrict only objects all allow the other kinds, so only their
    /// objects have to be distinguished.
    private func exactlyOne(_ parts: [ConstraintID], _ id: ConstraintID) throws(SchemaError) -> ValueType {
        var kinds: [Kinds] = []
        // Nothing is known about the kinds that an incomplete type does not describe.
        for part in parts { kinds.append(try type(part).isIncomplete ? .all : type(part).kinds) }
        var branches: [ConstraintID] = []
        var isComplete = true
        for kind in [Kinds.null, .boolean, .number, .string, .object, .array] {
            let members = parts.indices.filter { kinds[$0].contains(kind) }.map { index in
                kinds[index] == kind ? parts[index] : arena.all([parts[index], arena.kinds(kind)])
            }
            do {
                branches += try exclusive(members, id)
            } catch let error where error.kind == .tooComplex && kind == .object {
                guard let (name, required) = try discriminated(members) else { throw error }
                branches += required
                isComplete = false
                incomplete = incomplete ?? error
                let text = String(decoding: arena.names[Int(name)], as: UTF8.self)
                note("'oneOf'", id, "objects without \"\(text)\" are not allowed, because they combine in too many ways")
            }
        }
        var result = try union(branches, id)
        result.isIncomplete = result.isIncomplete || !isComplete
        return result
    }

    /// For each alternative, the values that no other one allows; their types are computed.
    private func exclusive(_ members: [ConstraintID], _ id: ConstraintID) throws(SchemaError) -> [ConstraintID] {
        var branches: [ConstraintID] = []
        for (index, part) in members.enumerated() {
            var conditions = [part]
            let type = try self.type(part)
            for (other, otherPart) in members.enumerated() where other != index {
                try step(id)
                if otherPart == part { conditions.append(ConstraintArena.nothing) }
                let otherType = try self.type(otherPart)
                if !otherType.isIncomplete, try areDisjoint(type, otherType) { continue }
                conditions.append(arena.not(otherPart))
            }
            let branch = arena.all(conditions)
            if branch == ConstraintArena.nothing { continue }
            _ = try self.type(branch)
            branches.append(branch)
        }
        return branches
    }

    /// The alternatives with a member whose values differ in all of them, if there is such a member: then at most one of
    /// them holds.
    private func discriminated(_ alternatives: [ConstraintID]) throws(SchemaError) -> (NameID, [ConstraintID])? {
        var shapes: [[ObjectShape]] = []
        for alternative in alternatives {
            let type = try type(alternative)
            if type.isIncomplete { return nil }
            shapes.append(type.objects)
        }
        guard let first = shapes.first?.first else { return nil }
        var names = first.values.keys.sorted()
        for source in first.sources { names += arena.objects[Int(source)].properties.map(\.name) }
        candidates: for name in names {
            var values: [[ConstraintID]] = []
            for alternative in shapes {
                var list: [ConstraintID] = []
                for shape in alternative {
                    guard let value = try simpleValue(name, shape) else { continue candidates }
                    list.append(value)
                }
                for value in values.joined() {
                    for other in list where try !areDisjoint(value, other) { continue candidates }
                }
                values.append(list)
            }
            let required = arena.object(ObjectConstraint(required: [name]))
            return (name, alternatives.map { arena.all([$0, required]) })
        }
        return nil
    }

    // MARK: - Members

    /// All constraints of a shape on the value of `name`.
    func value(of name: NameID, in shape: ObjectShape) throws(SchemaError) -> ConstraintID {
        var parts: [ConstraintID] = []
        if let value = shape.values[name] { parts.append(value) }
        for index in shape.sources {
            let known = propertyIndex(index)
            let source = arena.objects[Int(index)]
            var isKnown = false
            if let position = known[name] {
                parts.append(source.properties[position].value)
                isKnown = true
            }
            for pattern in source.patterns where regexes.matches(pattern.names, arena.names[Int(name)]) {
                parts.append(pattern.value)
                isKnown = true
            }
            if !isKnown { parts.append(source.additional) }
        }
        return arena.all(parts)
    }

    private func propertyIndex(_ index: Int32) -> [NameID: Int] {
        if let known = propertyIndices[index] { return known }
        var table: [NameID: Int] = [:]
        for (position, property) in arena.objects[Int(index)].properties.enumerated() { table[property.name] = position }
        propertyIndices[index] = table
        return table
    }

    /// The names that `additionalProperties` of a source applies to.
    func additionalNames(_ source: ObjectConstraint) -> RegexID {
        var known = source.patterns.map(\.names)
        known.append(regexes.words(source.properties.map { arena.names[Int($0.name)] }))
        return regexes.complement(regexes.alternation(known))
    }
}
