internal import JSON

/// How a number may be written.
enum NumberSpelling: Hashable {
    /// Also integers as 1.0.
    case any
    case integersWithoutFraction
    /// Each value in a single way, so that different texts are different numbers.
    case single
}

/// Reads JSON numbers digit by digit and determines whether the value is in a ``NumberSpec``.
///
/// Plain decimals are compared exactly. The number of their digits is limited to what programs read and write, unless
/// bounds require more; otherwise a model that keeps generating digits could fill its context window. Exponents are
/// allowed only without divisors: after any digits if zero is the only bound, otherwise after one nonzero digit before
/// the point, as programs write them.
///
/// A class, because its states are asked for one byte at a time: a value with this many arrays is expensive to copy.
final class NumberMachine {
    /// The interval of magnitudes for one sign. Fractions have no trailing zeros.
    final class Side {
        var lowerWhole: [UInt8] = [0], lowerFraction: [UInt8] = [], lowerIsExclusive = false
        var upperWhole: [UInt8] = [], upperFraction: [UInt8] = [], upperIsExclusive = false
        var hasUpper = false
        /// Whether any exponent may follow any digits, or exponents may follow one nonzero digit before the point.
        var anyExponent = false, scientific = false
        /// For `scientific`: significant digits and exponents of the bounds, 0.d₁d₂… × 10^exponent.
        var lowerDigits: [UInt8] = [], upperDigits: [UInt8] = [], lowerExponent = -maximumExponent,
            upperExponent = maximumExponent
    }

    struct Divisor: Hashable {
        var coefficient: Int64
        /// Number of digits after the point.
        var scale: Int16
        var divides: Bool
        /// The whole numbers that are multiples of the divisor are the multiples of this.
        var wholeCoefficient: Int64
        /// Number of digits with which any whole number becomes a multiple, or ceases to be one, as required.
        var closingDigits: Int

        init(_ coefficient: Int64, scale: Int, divides: Bool) {
            self.coefficient = coefficient
            self.scale = Int16(scale)
            self.divides = divides
            // Divides the coefficient by its common divisor with 10^scale.
            var whole = coefficient
            for prime: Int64 in [2, 5] {
                for _ in 0..<scale where whole % prime == 0 { whole /= prime }
            }
            wholeCoefficient = whole
            closingDigits = divides ? 0 : 1
            var power: Int64 = 1
            while divides, power < whole {
                power *= 10
                closingDigits += 1
            }
        }
    }

    /// Maximum absolute value of an exponent.
    static let maximumExponent = 307
    /// Maximum number of digits if no bound requires more: 2⁶⁴ has this many, and a double needs 17.
    static let commonDigits = 20
    /// Bounds with more digits before or after the point do not ask for plain notation of numbers that may have an exponent.
    private static let maximumPlainBound = 40
    /// The exponents of numbers that are written in plain notation if their type limits the digits, from this one to the
    /// number of digits.
    static let firstPlainExponent = -4
    /// Maximum number of digits after the point of integers and multiples, if no bound or divisor has more.
    static let commonFraction = 6

    let positive: Side?
    let negative: Side?
    let isInteger: Bool?
    let spelling: NumberSpelling
    let divisors: [Divisor]
    /// Maximum number of digits of a number without divisors.
    let maximumDigits: Int
    /// Whether a number has an exponent only if plain notation needs more digits than the limit.
    let prefersPlain: Bool

    /// - Throws: ``UnsupportedNumber`` with a divisor that is too long for the arithmetic.
    init(_ spec: NumberSpec, _ spelling: NumberSpelling) throws(UnsupportedNumber) {
        var divisors: [Divisor] = []
        for (values, divides) in [(spec.multiples, true), (spec.notMultiples, false)] {
            for value in values {
                let fraction = value.fractionDigits
                var coefficient: Int64 = 0
                for digit in value.wholeDigits + fraction {
                    guard coefficient < 80_000_000_000_000_000 else { throw UnsupportedNumber(value: value) }
                    coefficient = coefficient * 10 + Int64(digit)
                }
                guard coefficient > 0, fraction.count < 1_000 else { throw UnsupportedNumber(value: value) }
                divisors.append(Divisor(coefficient, scale: fraction.count, divides: divides))
            }
        }
        self.divisors = divisors
        isInteger = spec.isInteger
        let bounds = [spec.lower, spec.upper].compactMap { $0?.value }
        let wholeCount = max(Self.commonDigits, (bounds.map(\.wholeDigits.count).max() ?? 0) + 1)
        let mayHaveExponent = divisors.isEmpty && spec.isInteger == nil
        prefersPlain = mayHaveExponent && (spec.maximumDigits != nil || spelling == .single)
        let significant = (bounds.map(\.digits.count).max() ?? 0) + 1
        if prefersPlain, let limit = spec.maximumDigits {
            maximumDigits = max(limit, significant)
        } else if mayHaveExponent,
            max(wholeCount, bounds.map(\.fractionDigits.count).max() ?? 0) > Self.maximumPlainBound
        {
            maximumDigits = max(Self.commonDigits, significant)
        } else {
            maximumDigits = max(Self.commonDigits, wholeCount + (bounds.map(\.fractionDigits.count).max() ?? 0) + 3)
        }
        var spec = spec
        // With divisors, a bound would need as many states as there are remainders.
        if spec.isInteger == true, divisors.isEmpty, let largest = DecimalNumber(String(repeating: "9", count: wholeCount)) {
            if spec.upper == nil { spec.upper = .init(value: largest, isExclusive: false) }
            if spec.lower == nil { spec.lower = .init(value: largest.negated, isExclusive: false) }
        }
        self.spelling = spelling
        positive = Self.side(lower: spec.lower, upper: spec.upper, mayHaveExponent: mayHaveExponent, prefersPlain)
        func mirrored(_ bound: NumberSpec.Bound?) -> NumberSpec.Bound? {
            bound.map { NumberSpec.Bound(value: $0.value.negated, isExclusive: $0.isExclusive) }
        }
        // Allow a sign only if the lower bound is negative or absent: "-0" alone is not a reason.
        let reachesBelow = spec.lower.map { $0.value.isNegative } ?? true
        negative =
            reachesBelow
            ? Self.side(lower: mirrored(spec.upper), upper: mirrored(spec.lower), mayHaveExponent: mayHaveExponent, prefersPlain)
            : nil
    }

    struct UnsupportedNumber: Error { let value: DecimalNumber }

    /// The interval of magnitudes for one sign. The bounds are those of the number multiplied by the sign.
    private static func side(
        lower: NumberSpec.Bound?, upper: NumberSpec.Bound?, mayHaveExponent: Bool, _ prefersPlain: Bool
    ) -> Side? {
        if let upper, upper.value.isNegative { return nil }
        let side = Side()
        var lowerIsZero = true
        if let lower, !lower.value.isNegative {
            side.lowerWhole = lower.value.wholeDigits
            side.lowerFraction = lower.value.fractionDigits
            side.lowerIsExclusive = lower.isExclusive
            lowerIsZero = lower.value.isZero
        }
        if let upper {
            side.hasUpper = true
            side.upperWhole = upper.value.wholeDigits
            side.upperFraction = upper.value.fractionDigits
            side.upperIsExclusive = upper.isExclusive
        }
        side.anyExponent = mayHaveExponent && !prefersPlain && lowerIsZero && (upper?.value.isZero ?? true)
        side.scientific = mayHaveExponent && !side.anyExponent && !(upper?.value.isZero ?? false)
        if side.scientific {
            if let lower, !lowerIsZero { (side.lowerDigits, side.lowerExponent) = (lower.value.digits, lower.value.exponent) }
            if let upper { (side.upperDigits, side.upperExponent) = (upper.value.digits, upper.value.exponent) }
        }
        return side
    }

    func side(_ state: NumberState) -> Side? { state.isNegative ? negative : positive }

    var start: NumberState {
        var state = NumberState()
        state.remainders = divisors.map { _ in 0 }
        return state
    }

    /// The state after `byte`; nil if no number of the set continues this way.
    func next(_ state: NumberState, _ byte: UInt8) -> NumberState? {
        var state = state
        let digit: UInt8? = (0x30...0x39).contains(byte) ? byte - 0x30 : nil
        switch state.phase {
        case .start:
            if byte == UInt8(ascii: "-") {
                guard negative != nil else { return nil }
                state.isNegative = true
                state.phase = .minus
                return state
            }
            guard positive != nil, let digit else { return nil }
            return firstDigit(state, digit)
        case .minus:
            guard let digit else { return nil }
            return firstDigit(state, digit)
        case .zero, .whole:
            if let digit {
                if state.phase == .zero { return nil }
                return wholeDigit(state, digit)
            }
            if byte == UInt8(ascii: ".") {
                if isInteger == true, spelling != .any { return nil }
                let isSingle = state.count == 1 && state.phase == .whole
                state = endOfWhole(state)
                state.phase = .point
                // A single digit precedes the point.
                state.exponent = isSingle && side(state)?.scientific == true ? 1 : 0
                return isOutside(state) ? nil : state
            }
            return exponentStart(state, byte, afterOneDigit: state.count == 1 && state.phase == .whole, endsWhole: true)
        case .point, .fraction:
            if let digit {
                if isInteger == true, state.phase == .fraction || digit != 0 { return nil }
                guard let next = fractionDigit(state, digit), !isOutside(next) else { return nil }
                return isDivisible(next) ?? true ? next : nil
            }
            guard state.phase == .fraction else { return nil }
            return exponentStart(state, byte, afterOneDigit: state.exponent == 1, endsWhole: false)
        case .exponent, .exponentSign:
            if let digit {
                if digit == 0, spelling == .single { return nil }
                state.phase = .exponentDigits
                state.exponent = Int16(digit)
                state.count = 1
                return canReachExponent(state) ? withoutUnusedExponent(state) : nil
            }
            guard state.phase == .exponent, byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+") else { return nil }
            if spelling == .single { return nil }
            state.phase = .exponentSign
            state.exponentIsNegative = byte == UInt8(ascii: "-")
            return canReachExponent(state) ? state : nil
        case .exponentDigits:
            guard let digit, state.count < 3 else { return nil }
            let value = state.exponent * 10 + Int16(digit)
            guard value <= Self.maximumExponent else { return nil }
            state.exponent = value
            state.count += 1
            return canReachExponent(state) ? withoutUnusedExponent(state) : nil
        }
    }

    /// Whether the text so far is a number of the set.
    func accepts(_ state: NumberState) -> Bool {
        var state = state
        switch state.phase {
        case .zero, .whole: state = endOfWhole(state)
        case .fraction, .exponentDigits: break
        default: return false
        }
        guard let side = side(state) else { return false }
        if spelling == .single, state.endsInZero || state.phase == .zero && state.isNegative { return false }
        if state.phase == .exponentDigits {
            if side.scientific {
                let exponent = state.exponentIsNegative ? -Int(state.exponent) : Int(state.exponent)
                return exponents(state).contains { $0.contains(exponent) }
            }
            // The only bound is zero, so only the sign of the value counts.
            return !(side.lowerIsExclusive && state.toLower <= 0) && inUpper(state, side)
        }
        if state.toLower == 0, side.lowerFraction.count > Int(state.count) { state.toLower = -1 }
        if side.hasUpper, state.toUpper == 0, side.upperFraction.count > Int(state.count) { state.toUpper = -1 }
        guard side.lowerIsExclusive ? state.toLower > 0 : state.toLower >= 0, inUpper(state, side) else { return false }
        if isInteger == false, !state.hasFraction { return false }
        for (divisor, remainder) in zip(divisors, state.remainders) {
            var rest = remainder
            if rest >= 0 {
                for _ in 0..<max(0, divisor.scale - state.count) { rest = rest * 10 % divisor.coefficient }
            }
            if (rest == 0) != divisor.divides { return false }
        }
        return true
    }

    /// Whether arithmetic alone shows that the text can be completed to a number of the set: enough digits can follow
    /// for any remainder. A search would visit one state per remainder.
    func isSurelyAlive(_ state: NumberState) -> Bool {
        switch state.phase {
        case .exponent, .exponentSign, .exponentDigits: return true
        default: break
        }
        if isSurelyDivisible(state) { return true }
        guard !divisors.isEmpty, state.phase == .whole, isInteger != false, let side = side(state) else { return false }
        // The digits after the limit make the number divisible.
        if wholeLimit(side) != nil { return true }
        var needed: Int64 = 1
        for divisor in divisors {
            guard divisor.divides, divisor.coefficient < 1 << 30 else { return false }
            needed *= divisor.coefficient
            if needed > 1 << 32 { return false }
        }
        guard side.hasUpper else { return true }
        // All numbers with fewer digits than the upper bound and more than the lower bound are in the interval.
        let digits = side.upperWhole.count - 1
        guard digits > side.lowerWhole.count, digits > Int(state.count) else { return false }
        var room: Int64 = 1
        for _ in Int(state.count)..<digits where room <= needed { room *= 10 }
        return room > needed
    }

    /// Whether arithmetic alone shows that digits after the point can make the number divisible.
    private func isSurelyDivisible(_ state: NumberState) -> Bool { isDivisible(state) ?? false }

    /// Whether digits after the point can make the number divisible by its only divisor, at any place in the interval;
    /// nil if arithmetic alone does not show it.
    private func isDivisible(_ state: NumberState) -> Bool? {
        guard divisors.count == 1, let divisor = divisors.first, divisor.divides, divisor.scale > 0, divisor.scale < 17,
            isInteger == nil, let side = side(state), let remainder = state.remainders.first
        else { return nil }
        if remainder < 0 { return false }
        var state = state
        switch state.phase {
        case .whole, .zero: state = endOfWhole(state)
        case .point, .fraction: break
        default: return nil
        }
        guard state.toLower > 0, !side.hasUpper || state.toUpper < 0 else { return nil }
        var room: Int64 = 1
        var rest = remainder
        for _ in 0..<max(0, divisor.scale - state.count) {
            room *= 10
            rest = rest * 10 % divisor.coefficient
        }
        return (divisor.coefficient - rest) % divisor.coefficient < room
    }

    /// Whether no further digits of the fraction can bring the value into the interval, and no exponent can follow.
    private func isOutside(_ state: NumberState) -> Bool {
        guard let side = side(state), !side.anyExponent, !(side.scientific && state.exponent == 1) else { return false }
        return state.toLower < 0 || side.hasUpper && state.toUpper > 0
    }

    func inUpper(_ state: NumberState, _ side: Side) -> Bool {
        !side.hasUpper || (side.upperIsExclusive ? state.toUpper < 0 : state.toUpper <= 0)
    }
}
