/// Exponents, and those that the digits before them allow.
extension NumberMachine {
    func exponentStart(_ state: NumberState, _ byte: UInt8, afterOneDigit: Bool, endsWhole: Bool) -> NumberState? {
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

    /// If all exponents are allowed, only the number of digits that may follow depends on the exponent so far. Equal states
    /// have equal masks.
    func withoutUnusedExponent(_ state: NumberState) -> NumberState {
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
    func exponents(_ state: NumberState) -> [ClosedRange<Int>] {
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
    func canReachExponent(_ state: NumberState) -> Bool {
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
}
