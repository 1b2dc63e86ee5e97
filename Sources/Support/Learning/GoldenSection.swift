internal import Foundation

/// Search for the minimum of a function that has one, by the golden section.
package enum GoldenSection {
    /// The place of the minimum, to 10⁻⁸ of the range. The function is called 42 times.
    ///
    /// - Parameter value: The function. If it has several minima, one of them is found.
    package static func minimum(in range: ClosedRange<Double>, of value: (Double) -> Double) -> Double {
        let share = (5.0.squareRoot() - 1) / 2
        var (low, high) = (range.lowerBound, range.upperBound)
        var (left, right) = (high - share * (high - low), low + share * (high - low))
        var (atLeft, atRight) = (value(left), value(right))
        for _ in 0..<40 {
            if atLeft <= atRight {
                (high, right, atRight) = (right, left, atLeft)
                left = high - share * (high - low)
                atLeft = value(left)
            } else {
                (low, left, atLeft) = (left, right, atRight)
                right = low + share * (high - low)
                atRight = value(right)
            }
        }
        return (low + high) / 2
    }
}
