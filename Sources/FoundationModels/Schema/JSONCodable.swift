internal import Grammar

/// JSON through `Codable`. Encoders may order members as they like; schemas say their order themselves (`x-order`).
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
            var container = encoder.singleValueContainer()
            if let integer = number.integer {
                try container.encode(integer)
            } else {
                try container.encode(number.decimal)
            }
        }
    }

    init(from decoder: any Decoder) throws {
        if decoder.codingPath.count > JSONParser.greatestDepth {
            throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "Nested too deep."))
        }
        if let container = try? decoder.container(keyedBy: Key.self) {  // asks what it is, like the lines below
            value = .object(
                try container.allKeys.map { .init($0.stringValue, try container.decode(JSONCodable.self, forKey: $0).value) })
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
            } else if let decimal = try? container.decode(DecimalNumber.Decoded.self) {
                value = .number(decimal.number)
            } else {
                value = .string(try container.decode(String.self))
            }
        }
    }
}
