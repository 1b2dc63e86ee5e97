internal import Foundation

/// The angles of one rotary embedding, computed per batch and shared by all layers that use it.
package struct RotaryTable {
    /// Radians per position of each rotated pair. `longFrequencies`, if any, apply to contexts larger than
    /// `originalContext`.
    package let frequencies: [Double]
    private let longFrequencies: [Double]?
    private let originalContext: Int
    /// The factor of both sine and cosine.
    let magnitude: Double
    /// The coordinate by which each pair is rotated; nil for the first one.
    private let axes: [RowPosition.Axis]?

    /// - Parameters:
    ///   - factors: divisors of each pair's frequency, from the tensor `rotary.factors`.
    ///   - longFactors: the divisors for contexts larger than the original one, from the tensor `rotary.longFactors`.
    package init(_ rotary: ModelShape.Rotary, factors: [Float]? = nil, longFactors: [Float]? = nil) {
        let dimensions = rotary.dimensions
        let base = rotary.base
        var frequencies = (0..<dimensions / 2).map { pow(base, -2 * Double($0) / Double(dimensions)) }
        let plain = frequencies
        switch rotary.scaling {
        case .none: break
        case .linear(let factor): frequencies = frequencies.map { $0 / factor }
        case .yarn(let factor, let originalContext, let fast, let slow):
            // Pairs with many rotations within the original context keep their frequency, those with few are
            // interpolated, those in between are blended (arXiv:2309.00071, section 3.2).
            func pair(turns: Double) -> Double {
                Double(dimensions) * log(Double(originalContext) / (turns * 2 * .pi)) / (2 * log(base))
            }
            var (low, high) = (pair(turns: fast), pair(turns: slow))
            if rotary.roundsBlend { (low, high) = (low.rounded(.down), high.rounded(.up)) }
            (low, high) = (max(0, low), min(Double(dimensions - 1), high))
            for i in frequencies.indices {
                let ramp = min(1, max(0, (Double(i) - low) / max(0.001, high - low)))
                frequencies[i] *= (1 - ramp) + ramp / factor
            }
        }
        func divided(_ frequencies: [Double], by factors: [Float]?) -> [Double] {
            guard let factors else { return frequencies }
            return frequencies.indices.map { $0 < factors.count ? frequencies[$0] / Double(factors[$0]) : frequencies[$0] }
        }
        self.frequencies = divided(frequencies, by: factors)
        longFrequencies = longFactors.map { divided(plain, by: $0) }
        originalContext = rotary.originalContext
        magnitude = rotary.magnitude
        axes = rotary.sections.map { sections in frequencies.indices.map { sections.axis(ofPair: $0) } }
    }

    /// Writes cosine and sine of every pair (`[pairs]`) at one position of a sequence with a capacity of `capacity`
    /// tokens.
    package func fill(
        position: RowPosition, capacity: Int, cosine: UnsafeMutablePointer<Float>, sine: UnsafeMutablePointer<Float>
    ) {
        let frequencies = capacity > originalContext ? longFrequencies ?? self.frequencies : self.frequencies
        for i in frequencies.indices {
            let coordinate =
                switch axes?[i] {
                case nil, .time: position.time
                case .height: position.height
                case .width: position.width
                }
            let angle = Double(coordinate) * frequencies[i]
            cosine[i] = Float(cos(angle) * magnitude)
            sine[i] = Float(sin(angle) * magnitude)
        }
    }
}
