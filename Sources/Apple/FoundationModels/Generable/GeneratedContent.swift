public import Foundation

/// A generated value, complete or partial: any value that JSON can express. Members keep their order.
public struct GeneratedContent: Sendable, Equatable, Generable, CustomDebugStringConvertible {
    /// The type and contents of a value.
    public enum Kind: Equatable, Sendable {
        /// No value.
        case null
        /// True or false.
        case bool(Bool)
        /// A number, as the nearest `Double`.
        case number(Double)
        /// A string.
        case string(String)
        /// An array.
        case array([GeneratedContent])
        /// An object: members by name, and the names in order.
        case structure(properties: [String: GeneratedContent], orderedKeys: [String])
    }

    /// Like ``Kind``, but numbers keep their digits.
    enum Storage: Equatable, Sendable {
        case null
        case bool(Bool)
        case number(GeneratedNumber)
        case string(String)
        case array([GeneratedContent])
        case structure(properties: [String: GeneratedContent], orderedKeys: [String])
    }

    /// Whether it is an object without members or a list without elements.
    var isEmptyContainer: Bool {
        switch storage {
        case .array(let elements): elements.isEmpty
        case .structure(let properties, _): properties.isEmpty
        default: false
        }
    }

    /// Stays the same while a value is being generated; nil for values that were not generated.
    public var id: GenerationID?
    let storage: Storage
    /// False while the value is still being generated.
    public let isComplete: Bool

    init(storage: Storage, id: GenerationID? = nil, isComplete: Bool = true) {
        self.storage = storage
        self.id = id
        self.isComplete = isComplete
    }

    /// Creates content of a kind.
    public init(kind: Kind, id: GenerationID? = nil) {
        let storage: Storage =
            switch kind {
            case .null: .null
            case .bool(let value): .bool(value)
            case .number(let value): .number(GeneratedNumber(value))
            case .string(let text): .string(text)
            case .array(let elements): .array(elements)
            case .structure(let properties, let keys): .structure(properties: properties, orderedKeys: keys)
            }
        self.init(storage: storage, id: id)
    }

    /// The type and contents of the value. Numbers are rounded to `Double`; ``value(_:)`` converts their exact digits.
    public var kind: Kind {
        switch storage {
        case .null: .null
        case .bool(let value): .bool(value)
        case .number(let number): .number(number.value)
        case .string(let text): .string(text)
        case .array(let elements): .array(elements)
        case .structure(let properties, let keys): .structure(properties: properties, orderedKeys: keys)
        }
    }

    /// Copies the content.
    public init(_ content: GeneratedContent) throws { self = content }

    /// Creates the content of a value.
    public init(_ value: some ConvertibleToGeneratedContent) { self = value.generatedContent }

    /// Creates the content of a value, with an id.
    public init(_ value: some ConvertibleToGeneratedContent, id: GenerationID) {
        self = value.generatedContent
        self.id = id
    }

    /// Creates an object with these members. If a name occurs more than once, its last value is used.
    public init(properties: KeyValuePairs<String, any ConvertibleToGeneratedContent>, id: GenerationID? = nil) {
        self.init(properties: properties.map { ($0.key, $0.value) }, id: id) { (_: GeneratedContent, last) in last }
    }

    /// Creates an object with these members, in the order in which their names first occur.
    ///
    /// - Parameter combine: Combines the values of a name that occurs more than once.
    public init<S>(
        properties: S, id: GenerationID? = nil,
        uniquingKeysWith combine: (GeneratedContent, GeneratedContent) throws -> some ConvertibleToGeneratedContent
    ) rethrows where S: Sequence, S.Element == (String, any ConvertibleToGeneratedContent) {
        var members: [String: GeneratedContent] = [:]
        var keys: [String] = []
        for (key, value) in properties {
            if let known = members[key] {
                members[key] = try combine(known, value.generatedContent).generatedContent
            } else {
                members[key] = value.generatedContent
                keys.append(key)
            }
        }
        self.init(storage: .structure(properties: members, orderedKeys: keys), id: id)
    }

    /// Creates an array.
    public init<S>(elements: S, id: GenerationID? = nil)
    where S: Sequence, S.Element == any ConvertibleToGeneratedContent {
        self.init(storage: .array(elements.map(\.generatedContent)), id: id)
    }

    public var generatedContent: GeneratedContent { self }

    /// A schema that any value satisfies.
    public static var generationSchema: GenerationSchema { GenerationSchema(node: schemaNode) }

    public static func == (a: GeneratedContent, b: GeneratedContent) -> Bool { a.id == b.id && a.storage == b.storage }

    /// The content as JSON.
    public var debugDescription: String { jsonString }
}

extension GeneratedContent: InlineGenerable {
    static var schemaNode: SchemaNode { .any }
}

extension GeneratedContent {
    /// Converts the content to a value of a type.
    public func value<Value>(_ type: Value.Type = Value.self) throws -> Value where Value: ConvertibleFromGeneratedContent {
        try Value(self)
    }

    /// Converts a member to a value of a type.
    ///
    /// - Throws: ``ParsingError`` if there is no such member, or it cannot be converted.
    public func value<Value>(_ type: Value.Type = Value.self, forProperty property: String) throws -> Value
    where Value: ConvertibleFromGeneratedContent {
        guard let member = try member(property) else {
            throw ParsingError(
                rawContent: jsonString, debugDescription: "The content does not contain a property '\(property)'.")
        }
        return try Value(member)
    }

    /// Converts a member to a value of a type; nil if it is missing, null, or incomplete and not yet convertible.
    ///
    /// - Throws: ``ParsingError`` if the content is not an object, or the member is complete and cannot be converted.
    public func value<Value>(_ type: Value?.Type = Value?.self, forProperty property: String) throws -> Value?
    where Value: ConvertibleFromGeneratedContent {
        guard let member = try member(property), member.storage != .null else { return nil }
        do {
            return try Value(member)
        } catch {
            if member.isComplete { throw error }
            return nil
        }
    }

    /// Used by the macros: the string that names an enumeration case.
    ///
    /// - Throws: ``ParsingError`` if the content is not a string, or is incomplete: "red" may become "redder".
    public func _caseName() throws -> String {
        guard isComplete else { throw mismatch("a complete name") }
        return try value(String.self)
    }

    /// Used by the macros: the member that names an enumeration case.
    ///
    /// - Throws: ``ParsingError`` if there is no such member, or it is not a string, or it is incomplete.
    public func _caseName(forProperty property: String) throws -> String {
        try value(GeneratedContent.self, forProperty: property)._caseName()
    }

    /// Used by the macros: whether a property has the same value in two partially generated values.
    public static func _areEqual<Value: Equatable>(_ first: Value?, _ second: Value?) -> Bool { first == second }

    /// Used by the macros, for properties that cannot be compared: they only have the same value if both are missing. A view
    /// then updates too often, but never too rarely.
    public static func _areEqual<Value>(_ first: Value?, _ second: Value?) -> Bool { first == nil && second == nil }

    private func member(_ name: String) throws -> GeneratedContent? {
        guard case .structure(let properties, _) = storage else { throw mismatch("an object") }
        return properties[name]
    }
}

extension GeneratedContent {
    /// An error of content that cannot be converted to the requested type.
    public struct ParsingError: LocalizedError, Sendable, CustomDebugStringConvertible {
        /// The content's text.
        public var rawContent: String
        /// The error that was thrown while the content was parsed, if any.
        public var underlyingError: (any Error)?
        public var debugDescription: String

        /// Creates an error, for hand-written conformances that cannot convert the content.
        public init(rawContent: String, underlyingError: (any Error)? = nil, debugDescription: String) {
            self.rawContent = rawContent
            self.underlyingError = underlyingError
            self.debugDescription = debugDescription
        }

        public var errorDescription: String? { debugDescription }
    }
}

/// A number with its original digits: integers beyond 2⁵³ and decimal fractions stay exact.
struct GeneratedNumber: Sendable, Equatable {
    let value: Double
    /// The number as JSON; "null" if the value is not finite.
    let text: String

    init(value: Double, text: String) {
        self.value = value
        self.text = text
    }

    init(_ value: Double) {
        self.value = value
        let isWhole = value == value.rounded() && abs(value) < 1e15
        text = isWhole ? String(Int(value)) : value.isFinite ? "\(value)" : "null"
    }

    static func == (a: GeneratedNumber, b: GeneratedNumber) -> Bool { a.value == b.value }
}
