/// The state of a ``NumberMachine``: how much of a number has been read.
struct NumberState: Hashable {
    enum Phase: UInt8 { case start, minus, zero, whole, point, fraction, exponent, exponentSign, exponentDigits }

    var phase = Phase.start
    var isNegative = false
    /// Digits read before the point, or after it; counted only as far as bounds and divisors need.
    var count: Int16 = 0
    /// Total number of digits read, if it is limited; for multiples those before the point. Negative while only zeros
    /// have been read that do not count.
    var digits: Int16 = 0
    /// Comparison of the digits so far with the minimum and the maximum magnitude: -1, 0 or 1.
    var toLower: Int8 = 0
    var toUpper: Int8 = 0
    var hasFraction = false
    /// Whether the fraction ends in a zero, where that matters.
    var endsInZero = false
    /// The exponent so far. In the fraction: 1 if a single digit precedes the point.
    var exponent: Int16 = 0
    var exponentIsNegative = false
    /// Comparison of the significant digits with those of the bounds, for numbers with one digit before the point.
    var digitsToLower: Int8 = 0
    var digitsToUpper: Int8 = 0
    /// Scaled remainder for each divisor; -1 after a digit that is finer than the divisor.
    var remainders: [Int64] = []
}
