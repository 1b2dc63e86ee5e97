internal import CKernels
internal import Grammar

/// Draws tokens that a grammar allows and its budget has room for.
final class TokenChooser {
    private let vocabulary: TokenVocabulary
    private var mask: [UInt32]
    private var scratch: [Float]
    /// Attempts before the shortest ending is followed.
    private static let attempts = 24

    /// - Parameter count: logits of the model, which may be more than the vocabulary has tokens.
    init(vocabulary: TokenVocabulary, count: Int) {
        self.vocabulary = vocabulary
        mask = [UInt32](repeating: 0, count: vocabulary.maskWords)
        scratch = [Float](repeating: 0, count: count)
    }

    /// Nil if the logits are not numbers.
    func choose(
        _ step: ConstrainedDecoder.Step, _ decoder: inout ConstrainedDecoder, _ sampler: inout Sampler,
        _ logits: UnsafeMutableBufferPointer<Float>, remaining: Int, kernels: UnsafePointer<ck_kernels>
    ) -> TokenID? {
        var banned: [TokenID] = []
        if case .many = step { mask.withUnsafeMutableBufferPointer { decoder.fillMask($0) } }
        while banned.count < Self.attempts {
            var drawn: TokenID?
            switch step {
            case .few(let few):
                let left = few.filter { !banned.contains($0) }
                if left.isEmpty { return decoder.closingToken }
                drawn = scratch.withUnsafeMutableBufferPointer {
                    sampler.next(logits, among: left, scratch: $0, kernels: kernels)
                }
            default:
                // Drawing overwrites logits, so each attempt works on a copy, unless the first one will do.
                drawn = scratch.withUnsafeMutableBufferPointer { copy in
                    if let source = logits.baseAddress {
                        copy.baseAddress?.update(from: source, count: min(copy.count, logits.count))
                    }
                    return mask.withUnsafeBufferPointer { sampler.next(copy, mask: $0, kernels: kernels) }
                }
            }
            guard let token = drawn else { return nil }
            if let settled = decoder.settle(token, remaining: remaining) {
                if case .many = step, isWord(settled) { sampler.remember(settled) }
                return settled
            }
            banned.append(token)
            if vocabulary.texts.indices.contains(Int(token)) { mask[Int(token) >> 5] &= ~(1 << UInt32(token & 31)) }
        }
        return decoder.closingToken
    }

    /// Whether a token is a piece of text rather than of a document's form.
    private func isWord(_ token: TokenID) -> Bool {
        guard vocabulary.texts.indices.contains(Int(token)), let text = vocabulary.texts[Int(token)] else { return false }
        return text.contains { ($0 | 0x20) >= UInt8(ascii: "a") && ($0 | 0x20) <= UInt8(ascii: "z") || $0 >= 0x80 }
    }
}
