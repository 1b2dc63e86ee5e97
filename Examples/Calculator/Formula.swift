import Foundation

/// Why a formula has no result.
enum ArithmeticError: LocalizedError, Equatable {
    case endsTooEarly, unexpected(Character), divisionByZero, tooManyDigits, tooLarge, nestedTooDeep

    var errorDescription: String? {
        switch self {
        case .endsTooEarly: "The formula is incomplete."
        case .unexpected(let character): "Unexpected character “\(character)”."
        case .divisionByZero: "Division by zero."
        case .tooManyDigits: "A number has more than 38 digits."
        case .tooLarge: "The result is too large."
        case .nestedTooDeep: "The parentheses are nested too deeply."
        }
    }
}

/// Parses and evaluates a formula: a sum of products of numbers, negated factors and sums in parentheses.
struct Formula {
    private var rest: Substring
    private var depth = 0
    /// A decimal has 38 digits. Results that may require more digits are marked as rounded.
    private var isExact = true

    static func result(of text: String) throws(ArithmeticError) -> String {
        var formula = Formula(rest: text[...])
        let value = try formula.sum()
        if let character = formula.next() { throw .unexpected(character) }
        return "\(value)" + (formula.isExact ? "" : " (rounded)")
    }

    private mutating func next() -> Character? {
        rest = rest.drop { $0 == " " }
        return rest.first
    }

    private mutating func sum() throws(ArithmeticError) -> Decimal {
        var value = try product()
        while let sign = next(), sign == "+" || sign == "-" {
            rest.removeFirst()
            let other = try product()
            let top = max(value.exponent + digits(value), other.exponent + digits(other))
            let isExact = top - min(value.exponent, other.exponent) < 38  // a carry adds one digit
            try accept(sign == "+" ? value + other : value - other, isExact, &value)
        }
        return value
    }

    private mutating func product() throws(ArithmeticError) -> Decimal {
        var value = try factor()
        while let sign = next(), sign == "*" || sign == "/" {
            rest.removeFirst()
            let other = try factor()
            if sign == "*" {
                try accept(value * other, hasExactProduct(value, other), &value)
            } else {
                guard !other.isZero else { throw .divisionByZero }
                let quotient = value / other
                try accept(quotient, hasExactProduct(quotient, other) && quotient * other == value, &value)
            }
        }
        return value
    }

    private mutating func factor() throws(ArithmeticError) -> Decimal {
        depth += 1
        defer { depth -= 1 }
        guard depth <= 64 else { throw .nestedTooDeep }
        let first = next()
        if first == "-" || first == "(" { rest.removeFirst() }
        if first == "-" {
            let value = try factor()
            return value.isZero ? value : -value
        }
        guard first == "(" else { return try number() }
        let value = try sum()
        guard next() == ")" else { throw rest.first.map { .unexpected($0) } ?? .endsTooEarly }
        rest.removeFirst()
        return value
    }

    private mutating func number() throws(ArithmeticError) -> Decimal {
        guard let text = rest.prefixMatch(of: /[0-9]+(?:\.[0-9]+)?/)?.output,
            let value = Decimal(string: String(text))
        else { throw rest.first.map { .unexpected($0) } ?? .endsTooEarly }
        guard text.count(where: { $0 != "." }) <= 38 else { throw .tooManyDigits }
        rest.removeFirst(text.count)
        return value
    }

    private mutating func accept(_ result: Decimal, _ isExact: Bool, _ value: inout Decimal) throws(ArithmeticError) {
        guard !result.isNaN else { throw .tooLarge }
        self.isExact = self.isExact && isExact
        value = result
    }

    private func digits(_ value: Decimal) -> Int { "\(value.significand)".count }

    private func hasExactProduct(_ a: Decimal, _ b: Decimal) -> Bool {
        !a.isNaN && digits(a) + digits(b) <= 38 && a.exponent + b.exponent >= -127
    }
}
