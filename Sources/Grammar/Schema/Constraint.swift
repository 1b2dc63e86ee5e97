/// Names a constraint of a ``ConstraintArena``.
typealias ConstraintID = Int32
/// Names an object member's name of a ``ConstraintArena``.
typealias NameID = Int32

/// The kinds of JSON values.
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

/// What a schema says, as a set of JSON values: the typed form between JSON Schema and the automaton.
enum Constraint: Hashable {
    case anything
    case nothing
    case kinds(Kinds)
    /// Restricts numbers, and nothing else; so do the next three for their kinds.
    case number(NumberSpec)
    case string(RegexID)
    case object(Int32)
    case array(Int32)
    /// Exactly this value of the arena's list.
    case value(Int32)
    case all([ConstraintID])
    case any([ConstraintID])
    case one([ConstraintID])
    case not(ConstraintID)
    /// Another schema, which may contain this one.
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

    /// In the order in which they are to be written.
    var properties: [Property] = []
    var patterns: [Pattern] = []
    /// For names that are neither among the properties nor match a pattern.
    var additional: ConstraintID = ConstraintArena.anything
    var required: [NameID] = []
    var forbidden: [NameID] = []
    var names: ConstraintID = ConstraintArena.anything
    var least = 0
    var most: Int?
}

struct ArrayConstraint {
    var prefix: [ConstraintID] = []
    /// For items after the prefix.
    var rest: ConstraintID = ConstraintArena.anything
    var least = 0
    var most: Int?
    var contains: Contains?
    var isUnique = false
}

/// How many items from `start` on must satisfy something.
struct Contains: Hashable {
    var value: ConstraintID
    var least = 1
    var most: Int?
    var start = 0
}

/// Owns constraints; equal ones are one.
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
    /// What each reference leads to, filled when its schema has been read.
    var targets: [ConstraintID] = []
    /// Where each constraint was first read, for messages.
    private(set) var pointers: [String] = []
    /// Where reading is.
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
