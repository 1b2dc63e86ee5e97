/// The digits before and after the point, compared with the bounds and counted.
extension NumberMachine {
    func firstDigit(_ state: NumberState, _ digit: UInt8) -> NumberState? {
        var state = state
        state.phase = digit == 0 ? .zero : .whole
        state.count = 0
        return wholeDigit(state, digit)
    }

    func wholeDigit(_ state: NumberState, _ digit: UInt8) -> NumberState? {
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
    func wholeLimit(_ side: Side) -> Int? {
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
    func endOfWhole(_ state: NumberState) -> NumberState {
        guard let side = side(state) else { return state }
        var state = state
        let count = Int(state.count)
        if count != side.lowerWhole.count { state.toLower = count < side.lowerWhole.count ? -1 : 1 }
        if side.hasUpper, count != side.upperWhole.count { state.toUpper = count < side.upperWhole.count ? -1 : 1 }
        state.count = 0
        if !divisors.isEmpty { state.digits = 0 }
        return state
    }

    func fractionDigit(_ state: NumberState, _ digit: UInt8) -> NumberState? {
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

    private func order(_ a: UInt8, _ b: UInt8) -> Int8 { a < b ? -1 : a > b ? 1 : 0 }
}
