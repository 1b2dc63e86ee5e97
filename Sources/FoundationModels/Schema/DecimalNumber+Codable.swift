internal import Foundation
internal import Grammar

extension DecimalNumber {
    /// The nearest number that encoders know.
    var decimal: Decimal { Decimal(string: text) ?? Decimal(Double(text) ?? 0) }

    struct Decoded: Decodable {
        let number: DecimalNumber

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            let text = "\(try container.decode(Decimal.self))"
            guard let number = DecimalNumber(text) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "The number \(text) cannot be used.")
            }
            self.number = number
        }
    }
}
