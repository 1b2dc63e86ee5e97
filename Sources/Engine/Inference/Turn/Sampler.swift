internal import Foundation

/// Samples tokens according to ``SamplingSettings``. Sorts only the tokens that can be drawn, not the whole vocabulary.
final class Sampler {
    private let settings: SamplingSettings
    /// The state of the random numbers; who draws again sets it back.
    var random: SplitMix64
    private var candidates: [Candidate] = []
    /// The tokens of the response, for the penalties; empty if there are none.
    private var past: [TokenID] = []
    /// Whether a token ends what may be repeated: no repetition goes on across it.
    private let breaksRepetition: (TokenID) -> Bool

    private struct Candidate {
        var token: TokenID
        var weight: Float

        /// The most probable first; of equal probabilities, the lower id first.
        func isBefore(_ other: Candidate) -> Bool { weight != other.weight ? weight > other.weight : token < other.token }
    }

    /// - Parameter breaksRepetition: Whether a token ends a part of the text that DRY compares: a line, a quotation.
    init(_ settings: SamplingSettings, breaksRepetition: @escaping (TokenID) -> Bool = { _ in false }) {
        self.settings = settings
        self.breaksRepetition = breaksRepetition
        random = SplitMix64(state: settings.seed ?? UInt64.random(in: .min ... .max))
    }

    /// Samples and remembers the next token. See ``SamplingSettings`` for the order of steps.
    ///
    /// - Parameter logits: `[vocabulary]`; overwritten.
    /// - Returns: nil if the logits have no finite maximum.
    func next(_ logits: UnsafeMutableBufferPointer<Float>) -> TokenID? {
        penalize(logits)
        guard let token = draw(logits) else { return nil }
        remember(token)
        return token
    }

    /// Samples the next token from a few candidates, without penalty and without remembering it, because the grammar
    /// rather than the model determines such tokens.
    ///
    /// - Parameter scratch: a buffer for at least one logit per candidate; overwritten.
    func next(
        _ logits: UnsafeMutableBufferPointer<Float>, among candidates: [TokenID], scratch: UnsafeMutableBufferPointer<Float>
    ) -> TokenID? {
        for (index, token) in candidates.enumerated() { scratch[index] = logits[Int(token)] + bias(of: token) }
        let few = UnsafeMutableBufferPointer(rebasing: scratch[..<candidates.count])
        return draw(few).map { candidates[Int($0)] }
    }

    /// The same for candidates in ascending order, without a buffer: overwrites the logits.
    func next(_ logits: UnsafeMutableBufferPointer<Float>, among candidates: [TokenID]) -> TokenID? {
        // A candidate's logit is never before its place.
        for (index, token) in candidates.enumerated() { logits[index] = logits[Int(token)] + bias(of: token) }
        let few = UnsafeMutableBufferPointer(rebasing: logits[..<candidates.count])
        return draw(few).map { candidates[Int($0)] }
    }

    /// Samples the next token from those whose mask bits are set; the logits of the others are set to -∞.
    ///
    /// The token is not remembered; call ``remember(_:)`` if it should be.
    func next(_ logits: UnsafeMutableBufferPointer<Float>, mask: UnsafeBufferPointer<UInt32>) -> TokenID? {
        penalize(logits)
        for (index, word) in mask.enumerated() where word != .max {
            let first = index * 32
            for bit in 0..<min(32, logits.count - first) where word >> UInt32(bit) & 1 == 0 { logits[first + bit] = -.infinity }
        }
        if mask.count * 32 < logits.count { for index in mask.count * 32..<logits.count { logits[index] = -.infinity } }
        return draw(logits)
    }

    /// Makes the penalties apply to a token.
    func remember(_ token: TokenID) { if settings.penalties.readsTokens { past.append(token) } }

    private func bias(of token: TokenID) -> Float {
        settings.biases.isEmpty ? 0 : settings.biases.reduce(0) { $0 + ($1.token == token ? $1.value : 0) }
    }

    private func penalize(_ logits: UnsafeMutableBufferPointer<Float>) {
        for bias in settings.biases where logits.indices.contains(Int(bias.token)) { logits[Int(bias.token)] += bias.value }
        let penalties = settings.penalties
        guard penalties.readsTokens, !past.isEmpty else { return }
        let recent = past.suffix(SamplingPenalties.window)
        for (index, token) in zip(recent.indices, recent) where !recent[..<index].contains(token) {
            var logit = logits[Int(token)]
            if let factor = penalties.repetition.map({ Float($0) }) { logit = logit > 0 ? logit / factor : logit * factor }
            if penalties.frequency != 0 || penalties.presence != 0 {
                let count = recent[index...].reduce(0) { $0 + ($1 == token ? 1 : 0) }
                logit -= Float(penalties.presence + penalties.frequency * Double(count))
            }
            logits[Int(token)] = logit
        }
        if penalties.dry != 0 { penalizeRepetition(logits) }
    }

    /// DRY: for each earlier place whose tokens before it equal the last ones, the token there continues a repetition.
    private func penalizeRepetition(_ logits: UnsafeMutableBufferPointer<Float>) {
        let penalties = settings.penalties
        let recent = Array(past.suffix(SamplingPenalties.dryWindow))
        // A repetition does not go on across the end of a line.
        let length = recent.reversed().prefix { !breaksRepetition($0) }.count
        guard length > 0, recent.count > 1 else { return }
        var longest: [TokenID: Int] = [:]
        for place in 1..<recent.count {
            var equal = 0
            while equal < min(length, place), equal < Self.maximumEqual,
                recent[place - 1 - equal] == recent[recent.count - 1 - equal]
            {
                equal += 1
            }
            if equal >= penalties.dryAllowedLength { longest[recent[place]] = max(equal, longest[recent[place]] ?? 0) }
        }
        for (token, equal) in longest {
            logits[Int(token)] -= Float(
                min(penalties.dry * Foundation.pow(penalties.dryBase, Double(equal - penalties.dryAllowedLength)), 1e6))
        }
    }

    /// Longer repetitions have the same penalty, so that the search takes time in proportion to the text.
    private static let maximumEqual = 48

    /// Samples a token; nil if the logits have no finite maximum (a damaged model computes NaN).
    ///
    /// - Parameter logits: `[vocabulary]`; overwritten.
    private func draw(_ logits: UnsafeMutableBufferPointer<Float>) -> TokenID? {
        guard !logits.isEmpty else { return nil }
        let best = TokenID(logits.indexOfMaximum)
        let maximum = logits[Int(best)]
        guard maximum.isFinite else { return nil }
        if settings.isGreedy { return best }

        if settings.keepsAll(of: logits.count) {
            // No order is needed, so nothing is sorted: that would take longer than the model for 100,000 tokens.
            let total = logits.exponentials(
                maximum: maximum, inverseTemperature: Float(1 / settings.temperature), to: logits)
            guard total.isFinite, total >= 1 else { return nil }
            return TokenID(index(atShare: random.unit(), of: UnsafeBufferPointer(logits)) ?? Int(best))
        }
        // Computes exp(logit − maximum) in place: weights relative to the most probable token, whose weight is 1.
        let total = logits.exponentials(maximum: maximum, to: logits)
        guard total.isFinite, total >= 1 else { return nil }
        keepPlausible(UnsafeBufferPointer(logits), total: total)
        var sum: Float = 0
        let exponent = Float(1 / settings.temperature)
        for index in candidates.indices {
            // Weights are at most 1, so the power does not overflow.
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

    /// The index at which the sum of the weights up to and including it first exceeds a share of the sum of all; nil if
    /// rounding prevents that.
    private func index(atShare share: Float, of weights: UnsafeBufferPointer<Float>) -> Int? {
        // Sums of blocks in parallel lanes, and binary64 between blocks: exact enough for any vocabulary.
        let bytes = UnsafeRawBufferPointer(weights)
        func sum(from start: Int) -> Double {
            var lanes = SIMD16<Float>()
            let end = min(start + Self.block, weights.count)
            var index = start
            while index + 16 <= end {
                lanes += bytes.loadUnaligned(fromByteOffset: index * MemoryLayout<Float>.stride, as: SIMD16<Float>.self)
                index += 16
            }
            return Double(weights[index..<end].reduce(lanes.sum(), +))
        }
        let starts = stride(from: 0, to: weights.count, by: Self.block)
        var remaining = Double(share) * starts.reduce(0) { $0 + sum(from: $1) }
        for start in starts {
            let block = sum(from: start)
            if remaining >= block {
                remaining -= block
                continue
            }
            for index in start..<min(start + Self.block, weights.count) where weights[index] > 0 {
                remaining -= Double(weights[index])
                if remaining < 0 { return index }
            }
            // The sum of the block was rounded up: continue with the next one.
            remaining = max(0, remaining)
        }
        return nil
    }

    private static let block = 1024

    /// Collects the tokens that top-k and top-p keep, most probable first; of equal probabilities, the lower id first.
    private func keepPlausible(_ weights: UnsafeBufferPointer<Float>, total: Float) {
        let limit = settings.topK ?? weights.count
        let mass = settings.topP.map { Float($0) * total } ?? .infinity
        // Weights are relative to the most probable token.
        let minimum = Float(min(settings.penalties.minP, 1))
        // The plausible tokens nearly always have more than a thousandth of the maximum weight; otherwise, lower the
        // threshold.
        for threshold: Float in [1e-3, 1e-6, 0] {
            candidates.removeAll(keepingCapacity: true)
            var found: Float = 0
            for (index, weight) in weights.enumerated() where weight > threshold && weight >= minimum {
                candidates.append(Candidate(token: TokenID(index), weight: weight))
                found += weight
            }
            if threshold == 0 || candidates.count >= limit || found >= mass { break }
        }
        sortCandidates(limit: limit, mass: mass)
    }

    /// Keeps the first candidates in order, up to a number or a sum of weights: a heap sort in place that ends there.
    private func sortCandidates(limit: Int, mass: Float) {
        let count = candidates.count
        let kept = candidates.withUnsafeMutableBufferPointer { heap in
            func siftDown(_ start: Int, _ size: Int) {
                var parent = start
                while true {
                    var child = 2 * parent + 1
                    if child >= size { return }
                    if child + 1 < size, heap[child + 1].isBefore(heap[child]) { child += 1 }
                    guard heap[child].isBefore(heap[parent]) else { return }
                    heap.swapAt(parent, child)
                    parent = child
                }
            }
            for start in stride(from: count / 2 - 1, through: 0, by: -1) { siftDown(start, count) }
            var size = count
            var sum: Float = 0
            while size > 0, count - size < limit, sum < mass || size == count {
                size -= 1
                heap.swapAt(0, size)
                sum += heap[size].weight
                siftDown(0, size)
            }
            // The sorted candidates are at the end, the most probable one last.
            heap.reverse()
            return count - size
        }
        candidates.removeLast(count - kept)
    }

    private static func power(_ base: Float, _ exponent: Float) -> Float {
        exponent == 1 ? base : Float(Foundation.pow(Double(base), Double(exponent)))
    }
}

/// The SplitMix64 random number generator with a 64-bit state (Steele, Lea & Flood, OOPSLA 2014), implemented here so
/// that a seed gives the same numbers on every platform.
package struct SplitMix64: RandomNumberGenerator {
    package var state: UInt64

    package init(state: UInt64) { self.state = state }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// A uniformly distributed number in 0..<1, with 24 random bits.
    package mutating func unit() -> Float { Float(next() >> 40) * 0x1p-24 }
}
