internal import Foundation

/// Angles of rotary position embedding (RoFormer, arXiv:2104.09864), computed for a batch at a time and shared by all
/// layers and heads.
struct RotaryTable {
    /// Radians per position of each rotated pair.
    let frequencies: [Double]
    /// Multiplies both sine and cosine: YaRN's attention temperature.
    let magnitude: Double

    /// - Parameter factors: `rope_freqs.weight` where the file has it (Llama 3): divides each pair's frequency.
    init(_ configuration: ModelConfiguration, factors: [Float]?) {
        let dimensions = configuration.rotaryDimensions
        let base = configuration.rotaryBase
        var frequencies = (0..<dimensions / 2).map { pow(base, -2 * Double($0) / Double(dimensions)) }
        var magnitude = 1.0
        switch configuration.rotaryScaling {
        case .none: break
        case .linear(let factor): frequencies = frequencies.map { $0 / factor }
        case .yarn(let factor, let originalContext):
            // Pairs that turn more than 32 times within the original context keep their frequency, those that turn
            // less than once are interpolated, those between are blended (arXiv:2309.00071, section 3.2).
            func pair(turns: Double) -> Double {
                Double(dimensions) * log(Double(originalContext) / (turns * 2 * .pi)) / (2 * log(base))
            }
            let low = max(0, pair(turns: 32).rounded(.down))
            let high = min(Double(dimensions - 1), pair(turns: 1).rounded(.up))
            for i in frequencies.indices {
                let ramp = min(1, max(0, (Double(i) - low) / max(0.001, high - low)))
                frequencies[i] *= (1 - ramp) + ramp / factor
            }
            magnitude = 1 + 0.1 * log(factor)
        }
        if let factors {
            for i in frequencies.indices where i < factors.count { frequencies[i] /= Double(factors[i]) }
        }
        self.frequencies = frequencies
        self.magnitude = magnitude
    }

    /// Writes cosine and sine of every pair (`[pairs]`) at one position.
    func fill(position: Int, cosine: UnsafeMutablePointer<Float>, sine: UnsafeMutablePointer<Float>) {
        for i in frequencies.indices {
            let angle = Double(position) * frequencies[i]
            cosine[i] = Float(cos(angle) * magnitude)
            sine[i] = Float(sin(angle) * magnitude)
        }
    }
}
