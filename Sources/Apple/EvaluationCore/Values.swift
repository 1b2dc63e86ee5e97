internal import Foundation
public import FoundationModels

/// A value of an argument.
public enum ArgumentValue: Sendable, Codable, Hashable {
    case string(String)
    case int(Int)
    case double(Double)
    case bool(Bool)

    /// The value as a part of a structure.
    public var structuredValue: StructuredValue {
        switch self {
        case .string(let value): .string(value)
        case .int(let value): .int(value)
        case .double(let value): .double(value)
        case .bool(let value): .bool(value)
        }
    }

    // Values are encoded as they are: 5, "five", true.

    public func encode(to encoder: any Encoder) throws { try structuredValue.encode(to: encoder) }

    public init(from decoder: any Decoder) throws {
        switch try StructuredValue(from: decoder) {
        case .string(let value): self = .string(value)
        case .int(let value): self = .int(value)
        case .double(let value): self = .double(value)
        case .bool(let value): self = .bool(value)
        default:
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "Expected a text, a number or a Boolean value."))
        }
    }
}

extension ArgumentValue: nonisolated Generable {
    public static var generationSchema: GenerationSchema {
        GenerationSchema(type: ArgumentValue.self, anyOf: [String.self, Int.self, Double.self, Bool.self])
    }

    public var generatedContent: GeneratedContent {
        switch self {
        case .string(let value): value.generatedContent
        case .int(let value): value.generatedContent
        case .double(let value): value.generatedContent
        case .bool(let value): value.generatedContent
        }
    }

    public init(_ content: GeneratedContent) throws {
        switch content.kind {
        case .string(let value): self = .string(value)
        case .bool(let value): self = .bool(value)
        case .number(let value): self = Int(exactly: value).map { .int($0) } ?? .double(value)
        default:
            throw GeneratedContent.ParsingError(
                rawContent: content.jsonString, debugDescription: "Expected a text, a number or a Boolean value.")
        }
    }
}

extension ArgumentValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int) { self = .int(value) }
    public init(floatLiteral value: Double) { self = .double(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
}

/// A value of JSON.
public enum StructuredValue: Sendable, Hashable, Codable {
    case string(String)
    case int(Int)
    case double(Double)
    case bool(Bool)
    case null
    case array([StructuredValue])
    case dictionary([String: StructuredValue])

    /// The value as a Swift value: a text, a number, a Boolean value, `Void` for null, an array or a dictionary.
    public var value: Any {
        switch self {
        case .string(let value): value
        case .int(let value): value
        case .double(let value): value
        case .bool(let value): value
        case .null: ()
        case .array(let values): values.map(\.value)
        case .dictionary(let values): values.mapValues(\.value)
        }
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        // One of these fits; the errors of the others say nothing.
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int.self) {
            self = .int(value)
        } else if let value = try? container.decode(Double.self) {
            self = .double(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([StructuredValue].self) {
            self = .array(value)
        } else {
            self = .dictionary(try container.decode([String: StructuredValue].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .string(let value): try container.encode(value)
        case .int(let value): try container.encode(value)
        case .double(let value): try container.encode(value)
        case .bool(let value): try container.encode(value)
        case .null: try container.encodeNil()
        case .array(let values): try container.encode(values)
        case .dictionary(let values): try container.encode(values)
        }
    }
}

extension StructuredValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int) { self = .int(value) }
    public init(floatLiteral value: Double) { self = .double(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(arrayLiteral elements: StructuredValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, StructuredValue)...) {
        self = .dictionary(Dictionary(elements) { $1 })
    }
}

/// Values as people and models read them.
package enum ValueText {
    /// A text as it is, and other values as JSON.
    package static func text(of value: Any) -> String {
        if case .string(let text)? = value as? StructuredValue { return text }
        if let text = value as? String { return text }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // A value that cannot be encoded, such as an infinite number, still has a description.
        guard let value = value as? any Encodable, let data = try? encoder.encode(value) else { return "\(value)" }
        return String(decoding: data, as: UTF8.self)
    }
}
