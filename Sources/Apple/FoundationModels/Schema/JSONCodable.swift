internal import JSON

/// Encodes and decodes JSON through `Codable`. Encoders may reorder members, so decoded members are sorted by name.
/// Types that need another order encode it themselves, as schemas do (`x-order`).
struct JSONCodable: Codable {
    let value: JSONValue

    init(_ value: JSONValue) { self.value = value }

    private struct Key: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(_ name: String) { stringValue = name }
        init?(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { nil }
    }

    /// Whether the object is a `Decimal` as property lists encode it.
    private static func isDecimal(_ container: KeyedDecodingContainer<Key>) -> Bool {
        Set(container.allKeys.map(\.stringValue)) == ["exponent", "length", "isNegative", "isCompact", "mantissa"]
    }

    func encode(to encoder: any Encoder) throws {
        switch value {
        case .object(let members):
            var container = encoder.container(keyedBy: Key.self)
            for member in members { try container.encode(JSONCodable(member.value), forKey: Key(member.name)) }
        case .array(let values):
            var container = encoder.unkeyedContainer()
            for value in values { try container.encode(JSONCodable(value)) }
        case .null:
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        case .bool(let value):
            var container = encoder.singleValueContainer()
            try container.encode(value)
        case .string(let value):
            var container = encoder.singleValueContainer()
            try container.encode(value)
        case .number(let number):
            var container: any SingleValueEncodingContainer = encoder.singleValueContainer()
            try number.encode(to: &container)
        }
    }

    init(from decoder: any Decoder) throws {
        if decoder.codingPath.count > JSONParser.maximumDepth {
            throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "Nested too deeply."))
        }
        if let container = try? decoder.container(keyedBy: Key.self) {  // tries a kind of container, as below
            if Self.isDecimal(container), let number = DecimalNumber(from: try decoder.singleValueContainer()) {
                value = .number(number)
                return
            }
            let keys = container.allKeys.sorted { $0.stringValue < $1.stringValue }
            value = .object(
                try keys.map { .init($0.stringValue, try container.decode(JSONCodable.self, forKey: $0).value) })
        } else if var container = try? decoder.unkeyedContainer() {
            var values: [JSONValue] = []
            while !container.isAtEnd { values.append(try container.decode(JSONCodable.self).value) }
            value = .array(values)
        } else {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                value = .null
            } else if let bool = try? container.decode(Bool.self) {
                value = .bool(bool)
            } else if let integer = try? container.decode(Int.self) {
                value = .number(DecimalNumber(integer))
            } else if let number = DecimalNumber(from: container) {
                value = .number(number)
            } else {
                value = .string(try container.decode(String.self))
            }
        }
    }
}

extension JSONValue {
    /// Whether the members of all objects are sorted by name, as they are after decoding.
    var isSorted: Bool {
        switch self {
        case .object(let members):
            zip(members, members.dropFirst()).allSatisfy { $0.name < $1.name } && members.allSatisfy(\.value.isSorted)
        case .array(let values): values.allSatisfy(\.isSorted)
        default: true
        }
    }
}
