/// The normal form of a constraint: the set of allowed values, separately for each kind.
struct ValueType {
    var hasNull = false
    var hasTrue = false
    var hasFalse = false
    /// A union.
    var numbers: [NumberSpec] = []
    var strings: RegexID = RegexArena.empty
    /// Unions.
    var objects: [ObjectShape] = []
    var arrays: [ArrayShape] = []
    /// Whether valid values may be missing, so that nothing is known about the values outside the type.
    var isIncomplete = false

    static func anything(_ arena: ConstraintArena) -> ValueType {
        ValueType(
            hasNull: true, hasTrue: true, hasFalse: true, numbers: [.any], strings: arena.regexes.anyText,
            objects: [ObjectShape()], arrays: [ArrayShape()])
    }

    var kinds: Kinds {
        var kinds: Kinds = []
        if hasNull { kinds.insert(.null) }
        if hasTrue || hasFalse { kinds.insert(.boolean) }
        if !numbers.isEmpty { kinds.insert(.number) }
        if strings != RegexArena.empty { kinds.insert(.string) }
        if !objects.isEmpty { kinds.insert(.object) }
        if !arrays.isEmpty { kinds.insert(.array) }
        return kinds
    }

    var isNothing: Bool { kinds.isEmpty }
}

/// A set of objects: those that satisfy several constraints.
struct ObjectShape: Hashable {
    /// Indices of object constraints. Their properties, patterns and additional members must all be satisfied.
    var sources: [Int32] = []
    /// Additional constraints on the values of single names.
    var values: [NameID: ConstraintID] = [:]
    var required: Set<NameID> = []
    var forbidden: Set<NameID> = []
    /// Constraints on all names.
    var names: [ConstraintID] = []
    /// Minimum and maximum number of members.
    var minimum = 0
    var maximum: Int?
    /// Required members whose names are not fixed: for each witness, some member must have a name in the language
    /// `names` and a value that satisfies `value`. One member can serve for several witnesses.
    var witnesses: [Witness] = []

    struct Witness: Hashable {
        var names: RegexID
        var value: ConstraintID
    }

    /// Whether the counts and names alone show that no object has this shape.
    var isContradictory: Bool {
        (maximum.map { $0 < minimum || $0 < required.count } ?? false) || !required.isDisjoint(with: forbidden)
    }

    func intersection(_ other: ObjectShape, _ arena: ConstraintArena) -> ObjectShape? {
        var result = self
        for source in other.sources where !result.sources.contains(source) { result.sources.append(source) }
        for (name, value) in other.values {
            result.values[name] = arena.all([value, result.values[name] ?? ConstraintArena.anything])
        }
        result.required.formUnion(other.required)
        result.forbidden.formUnion(other.forbidden)
        for name in other.names where !result.names.contains(name) { result.names.append(name) }
        result.minimum = max(minimum, other.minimum)
        if let bound = other.maximum { result.maximum = min(maximum ?? bound, bound) }
        for witness in other.witnesses where !result.witnesses.contains(witness) { result.witnesses.append(witness) }
        return result.isContradictory ? nil : result
    }
}

/// A set of arrays: those that satisfy several constraints.
struct ArrayShape: Hashable {
    var prefix: [ConstraintID] = []
    var rest: ConstraintID = ConstraintArena.anything
    var minimum = 0
    var maximum: Int?
    var contains: [Contains] = []
    var isUnique = false

    var isContradictory: Bool { maximum.map { $0 < minimum } ?? false }

    func intersection(_ other: ArrayShape, _ arena: ConstraintArena) -> ArrayShape? {
        var result = ArrayShape()
        for index in 0..<max(prefix.count, other.prefix.count) {
            result.prefix.append(arena.all([item(index), other.item(index)]))
        }
        result.rest = arena.all([rest, other.rest])
        result.minimum = max(minimum, other.minimum)
        result.maximum = maximum
        if let bound = other.maximum { result.maximum = min(maximum ?? bound, bound) }
        result.contains = contains
        for part in other.contains where !result.contains.contains(part) { result.contains.append(part) }
        result.isUnique = isUnique || other.isUnique
        return result.isContradictory ? nil : result
    }

    func item(_ index: Int) -> ConstraintID { index < prefix.count ? prefix[index] : rest }
}
