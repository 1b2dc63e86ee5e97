public import Foundation

/// A value that a model generated, or that is on its way to one: what JSON can say, with members in their order.
public struct GeneratedContent: Sendable, Equatable, Generable, CustomDebugStringConvertible {
    /// What a value is.
    public enum Kind: Equatable, Sendable {
        /// No value.
        case null
        /// True or false.
        case bool(Bool)
        /// A number, as the nearest `Double`.
        case number(Double)
        /// A text.
        case string(String)
        /// A list, in order.
        case array([GeneratedContent])
        /// Members by name, and their names in order.
        case structure(properties: [String: GeneratedContent], orderedKeys: [String])
    }

    /// As ``Kind``, but numbers keep their digits.
    enum Storage: Equatable, Sendable {
        case null
        case bool(Bool)
        case number(GeneratedNumber)
        case string(String)
        case array([GeneratedContent])
        case structure(properties: [String: GeneratedContent], orderedKeys: [String])
    }

    /// Stays the same while a value grows; nil for values that were not generated.
    public var id: GenerationID?
    let storage: Storage
    /// False while the value is still being generated.
    public let isComplete: Bool

    init(storage: Storage, id: GenerationID? = nil, isComplete: Bool = true) {
        self.storage = storage
        self.id = id
        self.isComplete = isComplete
    }

    /// Content of a kind.
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

    /// What the value is. Numbers are rounded to `Double` here; ``value(_:)`` reads their exact digits.
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

    /// The same content.
    public init(_ content: GeneratedContent) throws { self = content }

    /// The content of a value.
    public init(_ value: some ConvertibleToGeneratedContent) { self = value.generatedContent }

    /// The content of a value, under an identity.
    public init(_ value: some ConvertibleToGeneratedContent, id: GenerationID) {
        self = value.generatedContent
        self.id = id
    }

    /// An object with these members; of several with one name the last counts.
    public init(properties: KeyValuePairs<String, any ConvertibleToGeneratedContent>, id: GenerationID? = nil) {
        self.init(properties: properties.map { ($0.key, $0.value) }, id: id) { (_: GeneratedContent, last) in last }
    }

    /// An object with these members, in the order in which their names first appear.
    ///
    /// - Parameter combine: what a member is when its name appears again.
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

    /// A list.
    public init<S>(elements: S, id: GenerationID? = nil)
    where S: Sequence, S.Element == any ConvertibleToGeneratedContent {
        self.init(storage: .array(elements.map(\.generatedContent)), id: id)
    }

    public var generatedContent: GeneratedContent { self }

    /// Any value.
    public static var generationSchema: GenerationSchema { GenerationSchema(node: schemaNode) }

    public static func == (a: GeneratedContent, b: GeneratedContent) -> Bool { a.id == b.id && a.storage == b.storage }

    /// The content as JSON.
    public var debugDescription: String { jsonString }
}

extension GeneratedContent: InlineGenerable {
    static var schemaNode: SchemaNode { .any }
}

extension GeneratedContent {
    /// The content as a value of another type.
    public func value<Value>(_ type: Value.Type = Value.self) throws -> Value where Value: ConvertibleFromGeneratedContent {
        try Value(self)
    }

    /// A member as a value.
    ///
    /// - Throws: ``ParsingError`` if there is no such member, or it is not such a value.
    public func value<Value>(_ type: Value.Type = Value.self, forProperty property: String) throws -> Value
    where Value: ConvertibleFromGeneratedContent {
        guard let member = try member(property) else {
            throw ParsingError(
                rawContent: jsonString, debugDescription: "The content does not contain a property '\(property)'.")
        }
        return try Value(member)
    }

    /// A member as a value; nil if it is missing or null, or is still too short to be one.
    ///
    /// - Throws: ``ParsingError`` if the content is no object, or the member is complete and not such a value.
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

    /// What the macros use: the text that names a case.
    ///
    /// - Throws: ``ParsingError`` if the content is no text, or is still growing: "red" may become "redder".
    public func _caseName() throws -> String {
        guard isComplete else { throw mismatch("a whole name yet") }
        return try value(String.self)
    }

    /// What the macros use: the member that names a case.
    ///
    /// - Throws: ``ParsingError`` if there is no such member, it is no text, or it is still growing.
    public func _caseName(forProperty property: String) throws -> String {
        try value(GeneratedContent.self, forProperty: property)._caseName()
    }

    private func member(_ name: String) throws -> GeneratedContent? {
        guard case .structure(let properties, _) = storage else { throw mismatch("an object") }
        return properties[name]
    }
}

extension GeneratedContent {
    /// Content that is not what it was asked to be.
    public struct ParsingError: LocalizedError, Sendable, CustomDebugStringConvertible {
        /// The content's text.
        public var rawContent: String
        /// What was thrown while the content was read, if anything was.
        public var underlyingError: (any Error)?
        public var debugDescription: String

        /// For conformances written by hand, where content is not what they need.
        public init(rawContent: String, underlyingError: (any Error)? = nil, debugDescription: String) {
            self.rawContent = rawContent
            self.underlyingError = underlyingError
            self.debugDescription = debugDescription
        }

        public var errorDescription: String? { debugDescription }
    }
}

/// A number with the digits it was written with: integers beyond 2⁵³ and decimal fractions stay exact.
struct GeneratedNumber: Sendable, Equatable {
    let value: Double
    /// JSON, unless the value is not finite.
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
