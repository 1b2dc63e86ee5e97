/// An exact decimal number of arbitrary precision: ±0.d₁d₂d₃… × 10^exponent, where d₁ and the last digit are not zero.
package struct DecimalNumber: Sendable, Hashable, Comparable {
    package private(set) var isNegative: Bool
    /// Significant digits, each 0…9; empty for zero.
    package private(set) var digits: [UInt8]
    /// Number of digits before the decimal point; negative if zeros follow the point. 0 for zero.
    package private(set) var exponent: Int
    /// The number as it was written.
    package let text: String

    /// Numbers with more digits before or after the point are rejected because they would use too much memory.
    private static let maximumExponent = 4_000

    /// Returns nil unless `text` is a JSON number within the size limit.
    package init?(_ text: some StringProtocol) {
        var digits: [UInt8] = []
        var point: Int?
        var scientific = 0
        var bytes = Array(text.utf8)[...]
        isNegative = bytes.first == UInt8(ascii: "-")
        if isNegative { bytes.removeFirst() }
        let firstIsZero = bytes.first == UInt8(ascii: "0")
        scan: while let byte = bytes.first {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                digits.append(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "."):
                guard point == nil, !digits.isEmpty else { return nil }
                point = digits.count
            case UInt8(ascii: "e"), UInt8(ascii: "E"):
                break scan
            default:
                return nil
            }
            bytes.removeFirst()
        }
        let whole = point ?? digits.count
        guard whole > 0, point != digits.count, !(firstIsZero && whole > 1) else { return nil }
        if !bytes.isEmpty {
            bytes.removeFirst()
            let negative = bytes.first == UInt8(ascii: "-")
            if negative || bytes.first == UInt8(ascii: "+") { bytes.removeFirst() }
            guard !bytes.isEmpty, bytes.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
            for byte in bytes { scientific = min(scientific * 10 + Int(byte - UInt8(ascii: "0")), 1_000_000) }
            if negative { scientific = -scientific }
        }
        self.text = String(text)
        exponent = whole + scientific
        let leading = digits.prefix { $0 == 0 }.count
        digits.removeFirst(leading)
        exponent -= leading
        while digits.last == 0 { digits.removeLast() }
        self.digits = digits
        if digits.isEmpty {
            exponent = 0
            isNegative = false
        }
        guard abs(exponent) <= Self.maximumExponent, digits.count <= Self.maximumExponent else { return nil }
    }

    package init(_ value: Int) {
        text = String(value)
        isNegative = value < 0
        var digits: [UInt8] = []
        var rest = value.magnitude
        while rest > 0 {
            digits.append(UInt8(rest % 10))
            rest /= 10
        }
        exponent = digits.count
        let trailing = digits.prefix { $0 == 0 }.count
        self.digits = digits.dropFirst(trailing).reversed()
    }

    package var isZero: Bool { digits.isEmpty }
    package var isInteger: Bool { digits.count <= exponent || isZero }

    /// The digits before the decimal point, without leading zeros; "0" if there are none.
    package var wholeDigits: [UInt8] {
        guard exponent > 0 else { return [0] }
        return digits.prefix(exponent) + [UInt8](repeating: 0, count: max(0, exponent - digits.count))
    }

    /// The digits after the decimal point, without trailing zeros; empty for an integer.
    package var fractionDigits: [UInt8] {
        guard exponent < digits.count else { return [] }
        return exponent >= 0
            ? Array(digits[exponent...]) : [UInt8](repeating: 0, count: -exponent) + digits
    }

    /// The value as an integer; nil if it has a fraction or does not fit.
    package var integer: Int? {
        guard isInteger, exponent <= 19 else { return nil }
        var value = 0
        for digit in isZero ? [] : wholeDigits {
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.subtractingReportingOverflow(Int(digit))
            if overflow || carry { return nil }
            value = sum
        }
        return isNegative ? value : value == .min ? nil : -value
    }

    package static func < (a: DecimalNumber, b: DecimalNumber) -> Bool {
        if a.isNegative != b.isNegative { return a.isNegative }
        return a.isNegative ? magnitude(b, isLess: a) : magnitude(a, isLess: b)
    }

    private static func magnitude(_ a: DecimalNumber, isLess b: DecimalNumber) -> Bool {
        if a.isZero || b.isZero { return a.isZero && !b.isZero }
        if a.exponent != b.exponent { return a.exponent < b.exponent }
        return a.digits.lexicographicallyPrecedes(b.digits)
    }

    /// Compares the values: 1, 1.0 and 1e0 are equal.
    package static func == (a: DecimalNumber, b: DecimalNumber) -> Bool {
        a.isNegative == b.isNegative && a.exponent == b.exponent && a.digits == b.digits
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(isNegative)
        hasher.combine(exponent)
        hasher.combine(digits)
    }

    package var negated: DecimalNumber {
        var copy = self
        if !isZero { copy.isNegative.toggle() }
        return copy
    }
}
