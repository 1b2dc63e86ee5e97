public import Foundation

/// A value that a model generated, or that is on its way to one.
public struct GeneratedContent: Sendable, Equatable, Generable, CustomDebugStringConvertible {
    public enum Kind: Equatable, Sendable {
        case null
        case bool(Bool)
        case number(Double)
        case string(String)
        case array([GeneratedContent])
        case structure(properties: [String: GeneratedContent], orderedKeys: [String])
    }

    public var id: GenerationID?
    public let kind: Kind
    /// False while the value is still being generated.
    public let isComplete: Bool

    public init(kind: Kind, id: GenerationID? = nil) { self.init(kind: kind, id: id, isComplete: true) }

    init(kind: Kind, id: GenerationID? = nil, isComplete: Bool) {
        self.kind = kind
        self.id = id
        self.isComplete = isComplete
    }

    public init(_ content: GeneratedContent) throws { self = content }

    public init(_ value: some ConvertibleToGeneratedContent) { self = value.generatedContent }

    public var generatedContent: GeneratedContent { self }

    /// The content as a value of another type.
    public func value<Value>(_ type: Value.Type = Value.self) throws -> Value where Value: ConvertibleFromGeneratedContent {
        try Value(self)
    }

    /// The content as JSON, object keys in their order.
    public var jsonString: String {
        switch kind {
        case .null: return "null"
        case .bool(let value): return value ? "true" : "false"
        case .number(let value):
            if value == value.rounded(), abs(value) < 1e15 { return String(Int(value)) }
            return value.isFinite ? "\(value)" : "null"
        case .string(let text): return Self.quoted(text)
        case .array(let elements): return "[" + elements.map(\.jsonString).joined(separator: ", ") + "]"
        case .structure(let properties, let keys):
            let pairs = keys.compactMap { key in properties[key].map { "\(Self.quoted(key)): \($0.jsonString)" } }
            return "{" + pairs.joined(separator: ", ") + "}"
        }
    }

    public var debugDescription: String { jsonString }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// Content that is not what it was asked to be.
    public struct ParsingError: LocalizedError, Sendable, CustomDebugStringConvertible {
        public var rawContent: String
        public var underlyingError: (any Error)?
        public var debugDescription: String

        public init(rawContent: String, underlyingError: (any Error)? = nil, debugDescription: String) {
            self.rawContent = rawContent
            self.underlyingError = underlyingError
            self.debugDescription = debugDescription
        }

        public var errorDescription: String? { debugDescription }
    }
}
