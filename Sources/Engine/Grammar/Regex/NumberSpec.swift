internal import JSON

/// A set of numbers: an interval, and conditions on divisors.
struct NumberSpec: Hashable {
    struct Bound: Hashable {
        var value: DecimalNumber
        var isExclusive: Bool
    }

    var lower: Bound?
    var upper: Bound?
    /// True for integers only, false for non-integers only, nil for both.
    var isInteger: Bool?
    /// The number must be a multiple of each of these.
    var multiples: [DecimalNumber] = []
    /// The number must not be a multiple of any of these.
    var notMultiples: [DecimalNumber] = []
    /// The maximum number of digits that the numbers' type can hold; nil if it is unknown. Numbers of such a type are
    /// written with an exponent only where plain notation would need more digits. This is a limit of notation: the
    /// complement ignores it.
    var maximumDigits: Int?

    static let any = NumberSpec()

    static func exactly(_ value: DecimalNumber) -> NumberSpec {
        let bound = Bound(value: value, isExclusive: false)
        return NumberSpec(lower: bound, upper: bound)
    }

    /// The numbers that both allow; nil if ``isEmpty`` holds for them.
    func intersection(_ other: NumberSpec) -> NumberSpec? {
        if self == .any { return other }
        if other == .any { return self }
        var result = self
        if let bound = other.lower, lower.map({ Self.isTighterBelow(bound, than: $0) }) ?? true { result.lower = bound }
        if let bound = other.upper, upper.map({ Self.isTighterAbove(bound, than: $0) }) ?? true { result.upper = bound }
        if let integer = other.isInteger {
            if isInteger == !integer { return nil }
            result.isInteger = integer
        }
        for multiple in other.multiples where !multiples.contains(multiple) { result.multiples.append(multiple) }
        for multiple in other.notMultiples where !notMultiples.contains(multiple) { result.notMultiples.append(multiple) }
        result.maximumDigits = [maximumDigits, other.maximumDigits].compactMap { $0 }.min()
        return result.isEmpty ? nil : result
    }

    /// Whether the bounds or contradictory conditions show that no number is allowed; other conditions on divisors are
    /// left to the automaton.
    var isEmpty: Bool {
        if multiples.contains(where: notMultiples.contains) { return true }
        guard let lower, let upper else { return false }
        if lower.value == upper.value {
            return lower.isExclusive || upper.isExclusive || isInteger == !lower.value.isInteger
        }
        return upper.value < lower.value
    }

    /// The numbers that are not allowed, as a union.
    var complement: [NumberSpec] {
        var parts: [NumberSpec] = []
        if let lower { parts.append(NumberSpec(upper: Bound(value: lower.value, isExclusive: !lower.isExclusive))) }
        if let upper { parts.append(NumberSpec(lower: Bound(value: upper.value, isExclusive: !upper.isExclusive))) }
        if let isInteger { parts.append(NumberSpec(isInteger: !isInteger)) }
        for multiple in multiples { parts.append(NumberSpec(notMultiples: [multiple])) }
        for multiple in notMultiples { parts.append(NumberSpec(multiples: [multiple])) }
        return parts
    }

    private static func isTighterBelow(_ a: Bound, than b: Bound) -> Bool {
        a.value == b.value ? a.isExclusive && !b.isExclusive : a.value > b.value
    }

    private static func isTighterAbove(_ a: Bound, than b: Bound) -> Bool {
        a.value == b.value ? a.isExclusive && !b.isExclusive : a.value < b.value
    }
}
