internal import Foundation
internal import JSON

extension DecimalNumber {
    /// Encodes the number exactly if it is representable as `Int`, `Double` or `Decimal`; otherwise as the nearest
    /// `Double`.
    func encode(to container: inout any SingleValueEncodingContainer) throws {
        if let integer { return try container.encode(integer) }
        let double = nearestDouble
        if DecimalNumber("\(double)") != self, let decimal = Decimal(string: text), DecimalNumber("\(decimal)") == self {
            // Formats other than JSON may write decimals as objects.
            return try container.encode(decimal)
        }
        try container.encode(double)
    }

    /// The nearest finite `Double`.
    var nearestDouble: Double {
        guard let double = Double(text) else { return 0 }
        return min(max(double, -Double.greatestFiniteMagnitude), Double.greatestFiniteMagnitude)
    }

    /// Decodes a number that is not an `Int`.
    init?(from container: any SingleValueDecodingContainer) {
        // The decoder does not report the type of a number, so both are tried. The decimal is used unless it is less
        // accurate.
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
