extension NumberMachine {
    /// The shortest completion, if it has one or two characters or if arithmetic finds it; nil otherwise.
    func shortWord(_ state: NumberState) -> [UInt8]? {
        let characters = Array("0123456789-.eE+".utf8)
        var seconds: [(UInt8, NumberState)] = []
        for character in characters {
            guard let next = next(state, character) else { continue }
            if accepts(next) { return [character] }
            seconds.append((character, next))
        }
        for (first, state) in seconds {
            for character in characters {
                if let next = next(state, character), accepts(next) { return [first, character] }
            }
        }
        return multiple(state).word
    }

    /// Whether arithmetic shows that no completion is a multiple of the divisor within the bounds.
    func hasNoMultiple(_ state: NumberState) -> Bool {
        let (isKnown, word) = multiple(state)
        return isKnown && word == nil
    }

    /// The shortest completion to a multiple of the only divisor, a whole number, by arithmetic: a search would visit one state per
    /// remainder. For each number of further digits, the smallest multiple that the lower bound allows decides; a few more are tried, in
    /// case the bound itself is excluded.
    ///
    /// - Returns: nil without a completion, which means that there is none if `isKnown`.
    private func multiple(_ state: NumberState) -> (isKnown: Bool, word: [UInt8]?) {
        guard divisors.count == 1, let divisor = divisors.first, divisor.divides, divisor.scale == 0, isInteger != false,
            divisor.coefficient < 1 << 30
        else { return (false, nil) }
        var before: [UInt8] = []
        var start = state
        // Where both signs are allowed, only positive numbers are tried.
        let isKnown = state.phase != .start || positive == nil || negative == nil
        if state.phase == .start, positive == nil {
            guard let negative = next(state, UInt8(ascii: "-")) else { return (false, nil) }
            (before, start) = ([UInt8(ascii: "-")], negative)
        }
        let isFirst = start.phase == .start || start.phase == .minus
        guard isFirst || start.phase == .whole, let side = start.phase == .start ? positive : side(start),
            side.lowerWhole.count < Self.digitsOfMultiples, side.upperWhole.count < Self.digitsOfMultiples
        else { return (false, nil) }
        let place = isFirst ? 0 : Int(start.count)
        var rest = start.remainders.first ?? 0
        var power: Int64 = 1
        for length in 1...Self.digitsOfMultiples {
            // The smallest number that the digits may be: the first ones have no zeros in front.
            var least: Int64 = isFirst ? power : 0
            power *= 10
            rest = rest * 10 % divisor.coefficient
            // The digits so far are those of the bound, so that the others must not be less.
            if start.toLower == 0, place + length == side.lowerWhole.count {
                least = max(least, side.lowerWhole[place...].reduce(0) { $0 * 10 + Int64($1) })
            }
            var number = least + (divisor.coefficient - (rest + least) % divisor.coefficient) % divisor.coefficient
            for _ in 0..<Self.triedMultiples where number < power {
                let text = String(number)
                let digits = [UInt8](repeating: UInt8(ascii: "0"), count: length - text.utf8.count) + Array(text.utf8)
                var end: NumberState? = start
                for digit in digits { end = end.flatMap { next($0, digit) } }
                if let end, accepts(end) { return (isKnown, before + digits) }
                number += divisor.coefficient
            }
        }
        return (isKnown, nil)
    }

    /// More digits than any remainder of a divisor of less than ten digits needs to become zero.
    private static let digitsOfMultiples = 17
    private static let triedMultiples = 3
}
