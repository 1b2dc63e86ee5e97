internal import CKernels
internal import Foundation

/// Logits in the memory of this process, of all tokens or of some: the arithmetic of sampling and scoring. Wherever a model computes them,
/// they are computed with here on the calling thread, with the kernels for its processor.
typealias HostLogits = UnsafeMutableBufferPointer<Float>

extension HostLogits {
    /// The index of the first maximum; 0 if there is none.
    var indexOfMaximum: Int {
        guard let baseAddress else { return 0 }
        return Int(ck_kernels_best().pointee.argmax(baseAddress, Int32(count)))
    }

    /// Writes exp((logit − maximum) · inverseTemperature) to as many elements of `output`, which may be these logits. Returns the sum.
    func exponentials(maximum: Float, inverseTemperature: Float = 1, to output: HostLogits) -> Float {
        guard let baseAddress, let target = output.baseAddress, output.count >= count else { return 0 }
        return ck_kernels_best().pointee.exp_shifted(baseAddress, maximum, inverseTemperature, Int32(count), target)
    }

    /// The natural logarithm of the probability of a token. Overwrites the logits.
    func logProbability(of token: TokenID) -> Double {
        guard !isEmpty else { return 0 }
        let chosen = self[Int(token)]
        let (maximum, logTotal) = normalise()
        return Double(chosen - maximum) - logTotal
    }

    /// The natural logarithms of the probabilities of some tokens. Overwrites the logits.
    func logProbabilities(of tokens: [TokenID]) -> [Double] {
        guard !isEmpty else { return tokens.map { _ in 0 } }
        let chosen = tokens.map { self[Int($0)] }
        let (maximum, logTotal) = normalise()
        return chosen.map { Double($0 - maximum) - logTotal }
    }

    /// Overwrites the logits. Returns their maximum, and the logarithm of the sum of exp(logit − maximum).
    private func normalise() -> (maximum: Float, logTotal: Double) {
        let maximum = self[indexOfMaximum]
        return (maximum, log(Double(exponentials(maximum: maximum, to: self))))
    }
}
