internal import Foundation
internal import JSON

/// Reads the members of a JSON object, and remembers which ones: what is left at the end is refused, so that no field is dropped in
/// silence. Null is like a field that is not there.
struct Fields {
    private let members: [(name: String, value: JSONValue)]
    private var read: Set<String> = []
    /// The path of the object in the request, such as `messages[0]`; empty for the request itself.
    let path: String

    init(_ value: JSONValue, _ path: String = "") throws(RequestError) {
        guard case .object(let members) = value else {
            throw path.isEmpty
                ? RequestError(400, "The body must be a JSON object.") : .invalid(path, "“\(path)” must be an object.")
        }
        self.members = members.map { ($0.name, $0.value) }
        self.path = path
    }

    func place(_ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

    /// The value of a field; nil if it is not there or null.
    mutating func value(_ name: String) -> JSONValue? {
        read.insert(name)
        guard let value = members.last(where: { $0.name == name })?.value, value != .null else { return nil }
        return value
    }

    /// Whether the field is there, also if it is null.
    func has(_ name: String) -> Bool { members.contains { $0.name == name } }

    private func wrong(_ name: String, _ kind: String) -> RequestError {
        .invalid(place(name), "“\(place(name))” must be \(kind).")
    }

    mutating func string(_ name: String) throws(RequestError) -> String? {
        guard let value = value(name) else { return nil }
        guard let text = value.string else { throw wrong(name, "a string") }
        return text
    }

    mutating func string(required name: String) throws(RequestError) -> String {
        guard let text = try string(name) else { throw .invalid(place(name), "“\(place(name))” is missing.") }
        return text
    }

    mutating func bool(_ name: String) throws(RequestError) -> Bool? {
        guard let value = value(name) else { return nil }
        guard case .bool(let isTrue) = value else { throw wrong(name, "true or false") }
        return isTrue
    }

    mutating func int(_ name: String, in range: ClosedRange<Int> = Int.min...Int.max) throws(RequestError) -> Int? {
        guard let value = value(name) else { return nil }
        // Some clients write whole numbers as 5.0.
        guard let number = value.integer ?? value.double.flatMap({ Int(exactly: $0) }) else {
            throw wrong(name, "a whole number")
        }
        guard range.contains(number) else { throw wrong(name, Self.text(range)) }
        return number
    }

    private static func text(_ range: ClosedRange<Int>) -> String {
        switch (range.lowerBound, range.upperBound) {
        case (let low, .max): "at least \(low)"
        case (let low, let high): "from \(low) to \(high)"
        }
    }

    mutating func number(_ name: String, in range: ClosedRange<Double>) throws(RequestError) -> Double? {
        guard let value = value(name) else { return nil }
        guard let number = value.double, number.isFinite else { throw wrong(name, "a number") }
        guard range.contains(number) else {
            throw wrong(name, "from \(range.lowerBound.formatted()) to \(range.upperBound.formatted())")
        }
        return number
    }

    mutating func array(_ name: String) throws(RequestError) -> [JSONValue]? {
        guard let value = value(name) else { return nil }
        guard case .array(let values) = value else { throw wrong(name, "an array") }
        return values
    }

    mutating func object(_ name: String) throws(RequestError) -> Fields? {
        guard let value = value(name) else { return nil }
        return try Fields(value, place(name))
    }

    /// The objects of an array.
    mutating func objects(_ name: String) throws(RequestError) -> [Fields]? {
        guard let values = try array(name) else { return nil }
        var objects: [Fields] = []
        for (index, value) in values.enumerated() { objects.append(try Fields(value, "\(place(name))[\(index)]")) }
        return objects
    }

    /// A string, or an array of them.
    mutating func strings(_ name: String) throws(RequestError) -> [String]? {
        guard let value = value(name) else { return nil }
        if let text = value.string { return [text] }
        guard case .array(let values) = value else { throw wrong(name, "a string or an array of strings") }
        var texts: [String] = []
        for value in values {
            guard let text = value.string else { throw wrong(name, "a string or an array of strings") }
            texts.append(text)
        }
        return texts
    }

    /// One of some texts.
    mutating func choice(_ name: String, _ choices: [String]) throws(RequestError) -> String? {
        guard let text = try string(name) else { return nil }
        guard choices.contains(text) else {
            throw wrong(name, "one of " + choices.map { "“\($0)”" }.joined(separator: ", "))
        }
        return text
    }

    /// Fields that change nothing that this server promises, and whose values are not looked at.
    mutating func ignore(_ names: String...) { read.formUnion(names) }

    /// Refuses a field unless its value is the one that asks for nothing.
    mutating func refuse(_ name: String, unless isHarmless: (JSONValue) -> Bool = { _ in false }, _ reason: String)
        throws(RequestError)
    {
        guard let value = value(name), !isHarmless(value) else { return }
        throw .unsupported(place(name), reason)
    }

    /// The names of the fields that nobody has read, and that are not null.
    var unreadNames: [String] { members.filter { !read.contains($0.name) && $0.value != .null }.map(\.name) }

    /// - Throws: ``RequestError/unknown(_:)`` for the first field that nobody has read.
    func finish() throws(RequestError) {
        if let name = unreadNames.first { throw .unknown(place(name)) }
    }
}
