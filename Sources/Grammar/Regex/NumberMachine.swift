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
    private static let maximumExponent = 307
    /// Maximum number of digits if no bound requires more: 2⁶⁴ has this many, and a double needs 17.
    private static let commonDigits = 20
    /// Bounds with more digits before or after the point do not ask for plain notation of numbers that may have an exponent.
    private static let maximumPlainBound = 40
    /// The exponents of numbers that are written in plain notation if their type limits the digits, from this one to the
    /// number of digits.
    private static let firstPlainExponent = -4
    /// Maximum number of digits after the point of integers and multiples, if no bound or divisor has more.
    private static let commonFraction = 6

    let positive: Side?
    let negative: Side?
    let isInteger: Bool?
    private let spelling: NumberSpelling
    let divisors: [Divisor]
    /// Maximum number of digits of a number without divisors.
    private let maximumDigits: Int
    /// Whether a number has an exponent only if plain notation needs more digits than the limit.
    private let prefersPlain: Bool

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

    /// If all exponents are allowed, only the number of digits that may follow depends on the exponent so far. Equal states
    /// have equal masks.
    private func withoutUnusedExponent(_ state: NumberState) -> NumberState {
        guard side(state)?.anyExponent == true else { return state }
        var state = state
        if state.count == 3 {
            state.exponent = 0
            return state
        }
        let limit = Int16(state.count == 1 ? Self.maximumExponent / 100 : Self.maximumExponent / 10)
        if state.exponent != limit { state.exponent = state.exponent < limit ? 0 : limit + 1 }
        return state
    }

    /// The exponents with which the digits of `state` are in the interval.
    private func exponents(_ state: NumberState) -> [ClosedRange<Int>] {
        guard let range = exponentRange(state) else { return [] }
        guard prefersPlain else { return [range] }
        let large = maximumDigits...max(maximumDigits, Self.maximumExponent)
        // In a single spelling, small numbers have no exponent: they can be written with zeros after the point.
        let small = -Self.maximumExponent...(Self.firstPlainExponent - 1)
        return (spelling == .single ? [large] : [small, large]).filter { $0.overlaps(range) }.map { $0.clamped(to: range) }
    }

    private func exponentRange(_ state: NumberState) -> ClosedRange<Int>? {
        guard let side = side(state), side.scientific else { return -Self.maximumExponent...Self.maximumExponent }
        // With one digit before the point, d.dd × 10^e is 0.ddd × 10^(e+1).
        let isBelow = side.upperIsExclusive ? state.digitsToUpper < 0 : state.digitsToUpper <= 0
        let isAbove = side.lowerIsExclusive ? state.digitsToLower > 0 : state.digitsToLower >= 0
        let last = side.hasUpper ? side.upperExponent - (isBelow ? 1 : 2) : Self.maximumExponent
        let first = side.lowerDigits.isEmpty ? -Self.maximumExponent : side.lowerExponent - (isAbove ? 1 : 0)
        return first <= last ? first...last : nil
    }

    /// Whether the digits of the exponent so far can be completed to an allowed exponent.
    private func canReachExponent(_ state: NumberState) -> Bool {
        exponents(state).contains { allowed in
            let mirrored = -allowed.upperBound...(-allowed.lowerBound)
            if state.phase == .exponent { return canReach(allowed, 0, digits: 0) || canReach(mirrored, 0, digits: 0) }
            return canReach(
                state.exponentIsNegative ? mirrored : allowed, state.phase == .exponentDigits ? Int(state.exponent) : 0,
                digits: state.phase == .exponentDigits ? Int(state.count) : 0)
        }
    }

    private func canReach(_ range: ClosedRange<Int>, _ value: Int, digits: Int) -> Bool {
        var first = value
        var last = value
        for count in digits...3 {
            if count > 0, first <= min(range.upperBound, Self.maximumExponent),
                min(last, Self.maximumExponent) >= range.lowerBound
            {
                return true
            }
            first *= 10
            last = last * 10 + 9
        }
        return false
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

    private func inUpper(_ state: NumberState, _ side: Side) -> Bool {
        !side.hasUpper || (side.upperIsExclusive ? state.toUpper < 0 : state.toUpper <= 0)
    }

    private func firstDigit(_ state: NumberState, _ digit: UInt8) -> NumberState? {
        var state = state
        state.phase = digit == 0 ? .zero : .whole
        state.count = 0
        return wholeDigit(state, digit)
    }

    private func wholeDigit(_ state: NumberState, _ digit: UInt8) -> NumberState? {
        guard let side = side(state) else { return nil }
        var state = state
        let place = Int(state.count)
        guard divisors.isEmpty ? countDigit(&state, digit) : countWholeDigit(&state, digit, side) else { return nil }
        if state.toLower == 0, place < side.lowerWhole.count { state.toLower = order(digit, side.lowerWhole[place]) }
        if state.toUpper == 0, place < side.upperWhole.count { state.toUpper = order(digit, side.upperWhole[place]) }
        if side.scientific {
            if place == 0 {
                state.digitsToLower = side.lowerDigits.first.map { order(digit, $0) } ?? 1
                state.digitsToUpper = side.upperDigits.first.map { order(digit, $0) } ?? -1
            } else {
                // Only a single digit before the point can have an exponent, so there is nothing to compare.
                (state.digitsToLower, state.digitsToUpper) = (0, 0)
            }
        }
        // Stop counting where no bound can make a difference; count at least to two, to recognize a single digit.
        state.count = Int16(min(place + 1, max(side.lowerWhole.count, side.upperWhole.count, 1) + 1))
        for (index, divisor) in divisors.enumerated() {
            state.remainders[index] = (state.remainders[index] * 10 + Int64(digit)) % divisor.coefficient
        }
        return isBeyondBounds(state, side) ? nil : state
    }

    /// Whether the digits before the point show that no number of the interval begins with them. A search would have to try
    /// all digits that can follow.
    private func isBeyondBounds(_ state: NumberState, _ side: Side) -> Bool {
        if side.anyExponent || !side.hasUpper { return false }
        if side.scientific, state.count == 1 {
            // Digits after the point may still make the number smaller or greater than a bound that begins like it.
            var open = state
            if open.digitsToLower == 0 { open.digitsToLower = 1 }
            if open.digitsToUpper == 0 { open.digitsToUpper = -1 }
            if !exponents(open).isEmpty { return false }
        }
        // The number of digits before the point of a number that the digits so far can become.
        let shortest = max(Int(state.count), side.lowerWhole.count)
        let longest = state.phase == .zero ? 1 : side.upperWhole.count
        if shortest > longest { return true }
        let onlyLowest = longest == side.lowerWhole.count && state.toLower < 0
        let onlyHighest = shortest == side.upperWhole.count && state.toUpper > 0
        return onlyLowest || onlyHighest
    }

    /// The number of digits before the point that a multiple may have; nil if a bound limits them. A few more may follow
    /// that make the number a multiple. With several divisors, that would need a search, and there is no limit.
    private func wholeLimit(_ side: Side) -> Int? {
        guard divisors.count == 1, !side.hasUpper, divisors[0].divides || divisors[0].scale == 0 && divisors[0].coefficient > 1
        else { return nil }
        return max(Self.commonDigits, side.lowerWhole.count + 1)
    }

    /// Counts one more digit before the point of a multiple. Returns false if the number would have too many.
    private func countWholeDigit(_ state: inout NumberState, _ digit: UInt8, _ side: Side) -> Bool {
        guard let limit = wholeLimit(side) else { return true }
        let divisor = divisors[0]
        state.digits += 1
        let missing = limit + divisor.closingDigits + 1 - Int(state.digits)
        if Int(state.digits) <= limit { return true }
        guard missing > 0 else { return false }
        if !divisor.divides { return (state.remainders[0] * 10 + Int64(digit)) % divisor.coefficient != 0 }
        // The number that the missing digits must form, of which this is the first digit.
        var rest = state.remainders[0] % divisor.wholeCoefficient
        var power: Int64 = 1
        for place in 0..<missing {
            rest = rest * 10 % divisor.wholeCoefficient
            if place > 0 { power *= 10 }
        }
        return Int64(digit) == (divisor.wholeCoefficient - rest) % divisor.wholeCoefficient / power
    }

    /// Counts one more digit of a number without divisors. Returns false if the number would have too many. Bounds limit
    /// integers.
    private func countDigit(_ state: inout NumberState, _ digit: UInt8) -> Bool {
        if isInteger == true || !divisors.isEmpty { return true }
        if prefersPlain, spelling != .single, state.digits <= 0, digit == 0 {
            // Zeros in front do not count, but there are no more of them than plain notation needs.
            state.digits -= 1
            return Int(state.digits) >= Self.firstPlainExponent - 1
        }
        state.digits = max(state.digits, 0) + 1
        return Int(state.digits) <= maximumDigits
    }

    /// Finishes the comparisons: the number of digits takes precedence over the digits.
    private func endOfWhole(_ state: NumberState) -> NumberState {
        guard let side = side(state) else { return state }
        var state = state
        let count = Int(state.count)
        if count != side.lowerWhole.count { state.toLower = count < side.lowerWhole.count ? -1 : 1 }
        if side.hasUpper, count != side.upperWhole.count { state.toUpper = count < side.upperWhole.count ? -1 : 1 }
        state.count = 0
        if !divisors.isEmpty { state.digits = 0 }
        return state
    }

    private func fractionDigit(_ state: NumberState, _ digit: UInt8) -> NumberState? {
        guard let side = side(state) else { return nil }
        var state = state
        let place = Int(state.count)
        guard countDigit(&state, digit) else { return nil }
        if state.toLower == 0 { state.toLower = order(digit, place < side.lowerFraction.count ? side.lowerFraction[place] : 0) }
        if side.hasUpper, state.toUpper == 0 {
            state.toUpper = order(digit, place < side.upperFraction.count ? side.upperFraction[place] : 0)
        }
        for (index, divisor) in divisors.enumerated() where state.remainders[index] >= 0 {
            if place < Int(divisor.scale) {
                state.remainders[index] = (state.remainders[index] * 10 + Int64(digit)) % divisor.coefficient
            } else if digit != 0 {
                state.remainders[index] = -1
            }
        }
        if digit != 0 { state.hasFraction = true }
        if spelling == .single { state.endsInZero = digit == 0 }
        if side.scientific, state.exponent == 1 {
            let lower = place + 1 < side.lowerDigits.count ? side.lowerDigits[place + 1] : 0
            let upper = place + 1 < side.upperDigits.count ? side.upperDigits[place + 1] : 0
            if state.digitsToLower == 0 { state.digitsToLower = order(digit, lower) }
            if state.digitsToUpper == 0 { state.digitsToUpper = order(digit, upper) }
        }
        var finest = max(
            side.lowerDigits.count, side.upperDigits.count, side.lowerFraction.count, side.upperFraction.count,
            divisors.map { Int($0.scale) }.max() ?? 0)
        // With several divisors, the product of remainders and positions would be too many states.
        if isInteger == true || divisors.count == 1 {
            finest = max(finest, Self.commonFraction)
            if place >= finest { return nil }
        }
        state.count = Int16(min(place + 1, finest))
        state.phase = .fraction
        return state
    }

    private func exponentStart(_ state: NumberState, _ byte: UInt8, afterOneDigit: Bool, endsWhole: Bool) -> NumberState? {
        guard byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E"), let side = side(state) else { return nil }
        var state = state
        guard side.anyExponent || (side.scientific && afterOneDigit) else { return nil }
        if spelling == .single, byte == UInt8(ascii: "E") || state.endsInZero { return nil }
        if side.anyExponent {
            // The only bound is zero: the digits alone determine whether the number is above or below.
            let digits = endsWhole ? endOfWhole(state) : state
            if side.lowerIsExclusive, digits.toLower <= 0 { return nil }
            if side.hasUpper, !inUpper(digits, side) { return nil }
        }
        if side.scientific {
            // Digits of a bound that have not been compared are compared with zeros.
            let read = endsWhole ? 1 : Int(state.count) + 1
            var rest = state
            if rest.digitsToLower == 0, side.lowerDigits.count > read { rest.digitsToLower = -1 }
            if rest.digitsToUpper == 0, side.upperDigits.count > read { rest.digitsToUpper = -1 }
            state = rest
        }
        if endsWhole { state = endOfWhole(state) }
        state.phase = .exponent
        state.count = 0
        state.digits = 0
        state.hasFraction = false
        state.exponent = 0
        // The digits have been compared: either all exponents are allowed, or those of `exponents(_:)`, which does not read
        // these comparisons.
        (state.toLower, state.toUpper) = side.anyExponent ? (1, -1) : (0, 0)
        return canReachExponent(state) ? state : nil
    }

    private func order(_ a: UInt8, _ b: UInt8) -> Int8 { a < b ? -1 : a > b ? 1 : 0 }
}
