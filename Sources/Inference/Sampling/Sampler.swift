internal import CKernels
internal import Foundation

/// Draws tokens by ``SamplingSettings``. Never sorts the vocabulary: only tokens that can be drawn are collected.
struct Sampler {
    private let settings: SamplingSettings
    private var random: SplitMix64
    private var candidates: [Candidate] = []
    /// The last tokens drawn, a ring.
    private var recent: [TokenID] = []
    private var drawn = 0

    private static let window = 64

    private struct Candidate { var token: TokenID, weight: Float }

    init(_ settings: SamplingSettings) {
        self.settings = settings
        random = SplitMix64(state: settings.seed ?? UInt64.random(in: .min ... .max))
    }

    /// The next token, chosen and remembered. See ``SamplingSettings`` for the order of steps.
    mutating func next(_ logits: UnsafeMutableBufferPointer<Float>, kernels: UnsafePointer<ck_kernels>) -> TokenID? {
        if settings.repetitionPenalty != 1 { penalizeRecent(logits) }
        guard let token = draw(logits, kernels: kernels) else { return nil }
        remember(token)
        return token
    }

    /// The next token among few, chosen but not remembered: what a grammar asks for is no habit of the model.
    ///
    /// - Parameter scratch: room for as many logits as there are candidates; overwritten.
    mutating func next(
        _ logits: UnsafeMutableBufferPointer<Float>, among candidates: [TokenID], scratch: UnsafeMutableBufferPointer<Float>,
        kernels: UnsafePointer<ck_kernels>
    ) -> TokenID? {
        for (index, token) in candidates.enumerated() { scratch[index] = logits[Int(token)] }
        let few = UnsafeMutableBufferPointer(rebasing: scratch[..<candidates.count])
        return draw(few, kernels: kernels).map { candidates[Int($0)] }
    }

    /// The next token among those whose bits are set; logits of the others become -∞.
    ///
    /// Like the few, it is not remembered by itself: see ``remember(_:)``.
    mutating func next(
        _ logits: UnsafeMutableBufferPointer<Float>, mask: UnsafeBufferPointer<UInt32>, kernels: UnsafePointer<ck_kernels>
    ) -> TokenID? {
        if settings.repetitionPenalty != 1 { penalizeRecent(logits) }
        for (index, word) in mask.enumerated() where word != .max {
            let first = index * 32
            for bit in 0..<min(32, logits.count - first) where word >> UInt32(bit) & 1 == 0 { logits[first + bit] = -.infinity }
        }
        if mask.count * 32 < logits.count { for index in mask.count * 32..<logits.count { logits[index] = -.infinity } }
        return draw(logits, kernels: kernels)
    }

    /// Counts a token as one that should not be repeated.
    mutating func remember(_ token: TokenID) {
        if recent.count < Self.window { recent.append(token) } else { recent[drawn % Self.window] = token }
        drawn += 1
    }

    private func penalizeRecent(_ logits: UnsafeMutableBufferPointer<Float>) {
        let penalty = Float(settings.repetitionPenalty)
        for (index, token) in recent.enumerated() where !recent[..<index].contains(token) {
            let logit = logits[Int(token)]
            logits[Int(token)] = logit > 0 ? logit / penalty : logit * penalty
        }
    }

    /// Nil if the logits have no greatest value (a damaged model gives NaN).
    ///
    /// - Parameter logits: `[vocabulary]`; overwritten.
    private mutating func draw(_ logits: UnsafeMutableBufferPointer<Float>, kernels: UnsafePointer<ck_kernels>) -> TokenID? {
        guard let base = logits.baseAddress else { return nil }
        let count = Int32(logits.count)
        let best = kernels.pointee.argmax(base, count)
        let greatest = logits[Int(best)]
        guard greatest.isFinite else { return nil }
        if settings.isGreedy { return best }

        // exp(logit − greatest) in place: weights relative to the best token, which has 1.
        let total = kernels.pointee.exp_shifted(base, greatest, 1, count, base)
        guard total.isFinite, total >= 1 else { return nil }
        keepPlausible(UnsafeBufferPointer(logits), total: total)
        var sum: Float = 0
        let exponent = Float(1 / settings.temperature)
        for index in candidates.indices {
            // Weights are relative to the best, so that the power never overflows.
            candidates[index].weight = Self.power(candidates[index].weight, exponent)
            sum += candidates[index].weight
        }
        var remaining = random.unit() * sum
        for candidate in candidates {
            remaining -= candidate.weight
            if remaining < 0 { return candidate.token }
        }
        return candidates.last?.token ?? best
    }

    /// Collects the tokens that top-k and top-p leave, most probable first, lower ids first among equals.
    private mutating func keepPlausible(_ weights: UnsafeBufferPointer<Float>, total: Float) {
        let limit = settings.topK ?? weights.count
        let mass = settings.topP.map { Float($0) * total } ?? .infinity
        // Almost always the plausible tokens are those within a thousandth of the best; if not, look further down.
        for threshold: Float in [1e-3, 1e-6, 0] {
            candidates.removeAll(keepingCapacity: true)
            var found: Float = 0
            for (index, weight) in weights.enumerated() where weight > threshold {
                candidates.append(Candidate(token: TokenID(index), weight: weight))
                found += weight
            }
            if threshold == 0 || candidates.count >= limit || found >= mass { break }
        }
        candidates.sort { $0.weight != $1.weight ? $0.weight > $1.weight : $0.token < $1.token }
        if candidates.count > limit { candidates.removeLast(candidates.count - limit) }
        var sum: Float = 0
        if let end = candidates.firstIndex(where: { candidate in
            sum += candidate.weight
            return sum >= mass
        }) {
            candidates.removeLast(candidates.count - end - 1)
        }
    }

    private static func power(_ base: Float, _ exponent: Float) -> Float {
        exponent == 1 ? base : Float(Foundation.pow(Double(base), Double(exponent)))
    }
}

/// A small generator with a 64-bit state (Steele, Lea & Flood, OOPSLA 2014): its whole behaviour is these lines, so
/// that a seed means the same on every platform.
struct SplitMix64: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// Uniform in 0..<1, with 24 bits.
    mutating func unit() -> Float { Float(next() >> 40) * 0x1p-24 }
}
