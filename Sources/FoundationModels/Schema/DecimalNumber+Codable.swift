internal import Foundation
internal import Grammar

extension DecimalNumber {
    /// The number as encoders know numbers: exactly if an `Int`, a `Double` or a `Decimal` holds it, else the nearest `Double`.
    func encode(to container: inout any SingleValueEncodingContainer) throws {
        if let integer { return try container.encode(integer) }
        let double = nearestDouble
        if DecimalNumber("\(double)") != self, let decimal = Decimal(string: text), DecimalNumber("\(decimal)") == self {
            // Formats other than JSON may write decimals as objects.
            return try container.encode(decimal)
        }
        try container.encode(double)
    }

    /// The nearest of the finite numbers.
    var nearestDouble: Double {
        guard let double = Double(text) else { return 0 }
        return min(max(double, -Double.greatestFiniteMagnitude), Double.greatestFiniteMagnitude)
    }

    /// A number that is no `Int`.
    init?(from container: any SingleValueDecodingContainer) {
        // Which types the number fits is found out by trying; the decimal counts unless it is further from the number.
        let double = try? container.decode(Double.self)
        if let decimal = try? container.decode(Decimal.self), !decimal.isNaN, double == nil || Double("\(decimal)") == double {
            self.init("\(decimal)")
        } else if let double {
            self.init("\(double)")
        } else {
            return nil
        }
    }
}
