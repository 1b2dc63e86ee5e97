internal import JSON

/// The text of a JSON value of a schema, divided at the places where only a limited number of values is possible.
///
/// The text has the form in which sessions generate values: a space after each comma and colon.
struct ValueText {
    /// A part of a value whose possible values are known.
    struct Field {
        /// The place of the part, as in a JSON Pointer.
        let path: [String]
        let options: [JSONValue]
        /// The option that the value has; nil if there is no value yet.
        var chosen: Int?
    }

    enum Piece {
        case text(String)
        case field(Field)
    }

    private(set) var pieces: [Piece] = []
    private let document: JSONValue

    /// The text of any value of a schema.
    ///
    /// - Throws: ``DecisionError/openValue(pointer:)`` if a part of it can be anything.
    init(anyValueOf schema: JSONValue) throws {
        document = schema
        try add(schema, nil, [], depth: 0)
    }

    /// The text of a value; parts that can be anything are as they are.
    init(_ value: JSONValue, of schema: JSONValue) throws {
        document = schema
        try add(schema, value, [], depth: 0)
    }

    /// The fields of all values, whatever the rest is: without those of arrays, and of what the schema only combines.
    static func closedFields(of schema: JSONValue) -> [Field] {
        var text = ValueText(document: schema)
        text.skipsOpen = true
        // A schema over the limits has no decision, and `init` says why; the fields until there are of use to a reader.
        try? text.add(schema, nil, [], depth: 0)
        return text.fields
    }

    private init(document: JSONValue) { self.document = document }

    /// Whether parts that can be anything are left out instead of being an error.
    private var skipsOpen = false

    var fields: [Field] {
        pieces.compactMap { if case .field(let field) = $0 { field } else { nil } }
    }

    /// Chooses an option of the piece at an index, which is a field.
    mutating func choose(_ option: Int, at index: Int) {
        guard case .field(var field) = pieces[index] else { return }
        field.chosen = option
        pieces[index] = .field(field)
    }

    /// The text before the piece at an index, whose fields have been chosen.
    func text(before index: Int) -> String { pieces[..<index].map(Self.text).joined() }

    /// The first character after the piece at an index, which ends each of its options in the same way; nil at the end of the text.
    func character(after index: Int) -> String? {
        guard pieces.indices.contains(index + 1), case .text(let text) = pieces[index + 1] else { return nil }
        return text.first.map { String($0) }
    }

    private static func text(_ piece: Piece) -> String {
        switch piece {
        case .text(let text): text
        case .field(let field): field.chosen.map { field.options[$0].spacedText } ?? ""
        }
    }

    private mutating func add(_ text: String) {
        if case .text(let before)? = pieces.last {
            pieces[pieces.count - 1] = .text(before + text)
        } else {
            pieces.append(.text(text))
        }
    }

    // MARK: - Schemas

    private static let maximumDepth = 32

    /// The most parts of a schema and a value that are looked at: definitions that use each other multiply.
    private static let maximumWork = 4_096
    private var work = 0

    private mutating func add(_ schema: JSONValue, _ value: JSONValue?, _ path: [String], depth: Int) throws {
        work += 1
        guard work < Self.maximumWork else { throw DecisionError.tooManyParts }
        var schema = resolved(schema)
        if value == nil, let constant = schema["const"] { return add(constant.spacedText) }
        if let options = options(of: schema) {
            if value == nil, options.count == 1 { return add(options[0].spacedText) }
            let chosen = value.flatMap { value in options.firstIndex { $0.isEqual(to: value) } }
            if options.count > 1, value == nil || chosen != nil {
                return pieces.append(.field(Field(path: path, options: options, chosen: chosen)))
            }
        }
        guard depth < Self.maximumDepth else { return try addOpen(value, path) }
        if let value { schema = alternative(of: schema, for: value) }
        switch value {
        case .object(let members)?:
            add("{")
            for (index, member) in members.enumerated() {
                add((index > 0 ? ", " : "") + JSONValue.string(member.name).text + ": ")
                try add(schema["properties"]?[member.name] ?? .object([]), member.value, path + [member.name], depth: depth + 1)
            }
            add("}")
        case .array(let items)?:
            add("[")
            for (index, item) in items.enumerated() {
                if index > 0 { add(", ") }
                try add(schema["items"] ?? .object([]), item, path + ["\(index)"], depth: depth + 1)
            }
            add("]")
        case nil:
            guard case .object(let properties)? = schema["properties"], !properties.isEmpty else { return try addOpen(nil, path) }
            add("{")
            for (index, property) in properties.enumerated() {
                add((index > 0 ? ", " : "") + JSONValue.string(property.name).text + ": ")
                try add(property.value, nil, path + [property.name], depth: depth + 1)
            }
            add("}")
        default: try addOpen(value, path)
        }
    }

    /// Of a schema with alternatives, such as an object or null, the one that has the parts of a value.
    private func alternative(of schema: JSONValue, for value: JSONValue) -> JSONValue {
        guard case .array(let alternatives)? = schema["anyOf"] ?? schema["oneOf"] else { return schema }
        let key: String
        switch value {
        case .object: key = "properties"
        case .array: key = "items"
        default: return schema
        }
        return alternatives.lazy.map { resolved($0) }.first { $0[key] != nil } ?? schema
    }

    private mutating func addOpen(_ value: JSONValue?, _ path: [String]) throws {
        if value == nil, skipsOpen { return }
        guard let value else { throw DecisionError.openValue(pointer: path.jsonPointer) }
        add(value.spacedText)
    }

    /// The schema that a reference leads to.
    private func resolved(_ schema: JSONValue) -> JSONValue {
        var schema = schema
        for _ in 0..<Self.maximumDepth {
            guard case .string(let reference)? = schema["$ref"], let target = document.target(of: reference) else { break }
            schema = target
        }
        return schema
    }

    /// All values of a schema, in its order; nil if they cannot be listed, or are too many to decide.
    private func options(of schema: JSONValue) -> [JSONValue]? {
        var found: [JSONValue] = []
        var work = 0
        return collect(schema, depth: 0, &work, &found) && !found.isEmpty ? found : nil
    }

    /// - Returns: false if the values cannot be listed.
    private func collect(_ schema: JSONValue, depth: Int, _ work: inout Int, _ found: inout [JSONValue]) -> Bool {
        let limit = DecisionQuestion.maximumOptions
        func add(_ value: JSONValue) -> Bool {
            work += 1
            if !found.contains(where: { $0.isEqual(to: value) }) { found.append(value) }
            return found.count <= limit && work <= 4 * limit
        }
        let schema = resolved(schema)
        if let constant = schema["const"] { return Self.isSimple(constant) && add(constant) }
        if case .array(let values)? = schema["enum"] {
            return values.count <= 4 * limit && values.allSatisfy { Self.isSimple($0) && add($0) }
        }
        if case .array(let alternatives)? = schema["anyOf"] ?? schema["oneOf"] {
            guard depth < 4, alternatives.count <= limit else { return false }
            for alternative in alternatives where !collect(alternative, depth: depth + 1, &work, &found) { return false }
            return true
        }
        switch schema["type"] {
        case .string("boolean")?: return add(.bool(true)) && add(.bool(false))
        case .string("null")?: return add(.null)
        case .string("integer")?:
            guard let low = schema["minimum"]?.integer, let high = schema["maximum"]?.integer, low <= high,
                !high.subtractingReportingOverflow(low).overflow, high - low < limit, schema["exclusiveMinimum"] == nil,
                schema["exclusiveMaximum"] == nil
            else { return false }
            let step = schema["multipleOf"]?.integer ?? 1
            guard step > 0 else { return false }
            return (low...high).allSatisfy { $0 % step != 0 || add(.number(DecimalNumber($0))) }
        // A type, or null.
        case .array(let types)?:
            guard case .object(let members) = schema, types.count <= 2, depth < 4 else { return false }
            return types.allSatisfy { type in
                let single = members.filter { $0.name != "type" } + [JSONValue.Member("type", type)]
                return collect(.object(single), depth: depth + 1, &work, &found)
            }
        default: return false
        }
    }

    private static func isSimple(_ value: JSONValue) -> Bool {
        switch value {
        case .object, .array: false
        default: true
        }
    }
}

extension [String] {
    /// The names as a JSON Pointer (RFC 6901).
    var jsonPointer: String {
        map { "/" + $0.replacing("~", with: "~0").replacing("/", with: "~1") }.joined()
    }
}
