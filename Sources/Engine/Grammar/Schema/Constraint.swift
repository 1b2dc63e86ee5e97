internal import JSON

/// The id of a constraint in a ``ConstraintArena``.
typealias ConstraintID = Int32
/// The id of an object member's name in a ``ConstraintArena``.
typealias NameID = Int32

/// Kinds of JSON values.
struct Kinds: OptionSet, Hashable {
    let rawValue: UInt8
    static let null = Kinds(rawValue: 1)
    static let boolean = Kinds(rawValue: 2)
    static let number = Kinds(rawValue: 4)
    static let string = Kinds(rawValue: 8)
    static let object = Kinds(rawValue: 16)
    static let array = Kinds(rawValue: 32)
    static let all = Kinds(rawValue: 63)
}

/// The meaning of a schema as a set of JSON values: the typed intermediate form between JSON Schema and the automaton.
enum Constraint: Hashable {
    case anything
    case nothing
    case kinds(Kinds)
    /// Restricts numbers only; the next three cases do the same for their kinds.
    case number(NumberSpec)
    case string(RegexID)
    case object(Int32)
    case array(Int32)
    /// Exactly this value: an index in ``ConstraintArena/values``.
    case value(Int32)
    case all([ConstraintID])
    case any([ConstraintID])
    case one([ConstraintID])
    case not(ConstraintID)
    /// A reference to another schema, which may contain this one: an index in ``ConstraintArena/targets``.
    case reference(Int32)
}

struct ObjectConstraint {
    struct Property {
        var name: NameID
        var value: ConstraintID
    }

    struct Pattern {
        var names: RegexID
        var value: ConstraintID
    }

    /// In the order in which a document must contain them, if `isOrdered`.
    var properties: [Property] = []
    var isOrdered = true
    var patterns: [Pattern] = []
    /// For names that are not in `properties` and match no pattern.
    var additional: ConstraintID = ConstraintArena.anything
    var required: [NameID] = []
    var forbidden: [NameID] = []
    /// For all names, as string values.
    var names: ConstraintID = ConstraintArena.anything
    /// Minimum and maximum number of members.
    var minimum = 0
    var maximum: Int?
}

struct ArrayConstraint {
    var prefix: [ConstraintID] = []
    /// For items after the prefix.
    var rest: ConstraintID = ConstraintArena.anything
    /// Minimum and maximum number of items.
    var minimum = 0
    var maximum: Int?
    var contains: Contains?
    var isUnique = false
}

/// The number of items, from index `start` on, that must satisfy a constraint.
struct Contains: Hashable {
    var value: ConstraintID
    var minimum = 1
    var maximum: Int?
    var start = 0
}

/// Stores constraints. Equal constraints have the same id.
final class ConstraintArena {
    let regexes = RegexArena()
    private(set) var constraints: [Constraint] = []
    private var ids: [Constraint: ConstraintID] = [:]
    private(set) var objects: [ObjectConstraint] = []
    private(set) var arrays: [ArrayConstraint] = []
    private(set) var values: [JSONValue] = []
    private var valueIDs: [[UInt8]: Int32] = [:]
    private(set) var names: [[UInt8]] = []
    private var nameIDs: [[UInt8]: NameID] = [:]
    /// The constraint of each reference; set once the referenced schema has been parsed.
    var targets: [ConstraintID] = []
    /// For error messages: the JSON pointer at which each constraint was first created.
    private(set) var pointers: [String] = []
    /// JSON pointer to the part of the schema that is being parsed.
    var pointer = ""

    static let anything: ConstraintID = 0
    static let nothing: ConstraintID = 1

    init() {
        _ = add(.anything)
        _ = add(.nothing)
    }

    subscript(id: ConstraintID) -> Constraint { constraints[Int(id)] }

    private func add(_ constraint: Constraint) -> ConstraintID {
        if let id = ids[constraint] { return id }
        let id = ConstraintID(constraints.count)
        constraints.append(constraint)
        pointers.append(pointer)
        ids[constraint] = id
        return id
    }

    func name(_ bytes: [UInt8]) -> NameID {
        if let id = nameIDs[bytes] { return id }
        let id = NameID(names.count)
        names.append(bytes)
        nameIDs[bytes] = id
        return id
    }

    func kinds(_ kinds: Kinds) -> ConstraintID {
        kinds == .all ? Self.anything : kinds.isEmpty ? Self.nothing : add(.kinds(kinds))
    }
    func number(_ spec: NumberSpec) -> ConstraintID { spec == .any ? Self.anything : add(.number(spec)) }
    func string(_ language: RegexID) -> ConstraintID { language == regexes.anyText ? Self.anything : add(.string(language)) }

    func object(_ object: ObjectConstraint) -> ConstraintID {
        objects.append(object)
        return add(.object(Int32(objects.count - 1)))
    }

    func array(_ array: ArrayConstraint) -> ConstraintID {
        arrays.append(array)
        return add(.array(Int32(arrays.count - 1)))
    }

    func value(_ value: JSONValue) -> ConstraintID {
        let bytes = value.bytes
        if let id = valueIDs[bytes] { return add(.value(id)) }
        let id = Int32(values.count)
        values.append(value)
        valueIDs[bytes] = id
        return add(.value(id))
    }

    func reference(_ slot: Int32) -> ConstraintID { add(.reference(slot)) }

    func all(_ parts: [ConstraintID]) -> ConstraintID {
        var members: [ConstraintID] = []
        for part in parts where part != Self.anything {
            if case .all(let inner) = self[part] { members += inner } else { members.append(part) }
        }
        members = Array(Set(members)).sorted()
        if members.contains(Self.nothing) { return Self.nothing }
        return members.isEmpty ? Self.anything : members.count == 1 ? members[0] : add(.all(members))
    }

    func any(_ parts: [ConstraintID]) -> ConstraintID {
        var members: [ConstraintID] = []
        for part in parts where part != Self.nothing && !members.contains(part) { members.append(part) }
        if members.contains(Self.anything) { return Self.anything }
        return members.isEmpty ? Self.nothing : members.count == 1 ? members[0] : add(.any(members))
    }

    func any(unchecked parts: [ConstraintID]) -> ConstraintID { add(.any(parts)) }

    func one(_ parts: [ConstraintID]) -> ConstraintID {
        let members = parts.filter { $0 != Self.nothing }
        return members.isEmpty ? Self.nothing : members.count == 1 ? members[0] : add(.one(members))
    }

    func not(_ part: ConstraintID) -> ConstraintID {
        switch self[part] {
        case .anything: Self.nothing
        case .nothing: Self.anything
        case .not(let inner): inner
        default: add(.not(part))
        }
    }
}
