internal import Grammar

/// Samples tokens that the grammar allows and after which the response can still be completed within the token budget.
final class TokenChooser {
    private let vocabulary: TokenVocabulary
    private var mask: [UInt32]
    private var scratch: [Float]
    /// Whether the mask is that of the next step.
    private(set) var isPrepared = false
    /// The number of samples before the chooser falls back to the shortest completion.
    private static let attempts = 24

    /// - Parameter count: number of logits, which may exceed the number of tokens in the vocabulary.
    init(vocabulary: TokenVocabulary, count: Int) {
        self.vocabulary = vocabulary
        mask = [UInt32](repeating: 0, count: vocabulary.maskWords)
        scratch = [Float](repeating: 0, count: count)
    }

    /// Begins another text.
    func reset() { isPrepared = false }

    /// Computes the mask of the next step before its logits are known.
    func prepareMask(_ decoder: inout GrammarCursor) {
        mask.withUnsafeMutableBufferPointer { decoder.fillMask($0) }
        isPrepared = true
    }

    /// Returns the next token; nil if no token can be drawn.
    func choose(
        _ step: GrammarCursor.Step, _ decoder: inout GrammarCursor, _ sampler: inout Sampler,
        _ logits: UnsafeMutableBufferPointer<Float>, remaining: Int
    ) -> TokenID? {
        var banned: [TokenID] = []
        if case .many = step, !isPrepared { prepareMask(&decoder) }
        isPrepared = false
        while banned.count < Self.attempts {
            var drawn: TokenID?
            switch step {
            case .few(let few):
                let left = banned.isEmpty ? few : few.filter { !banned.contains($0) }
                if left.isEmpty { return decoder.closingToken }
                drawn = scratch.withUnsafeMutableBufferPointer {
                    sampler.next(logits, among: left, scratch: $0)
                }
            default:
                // Sampling overwrites the logits, so each attempt works on a copy.
                drawn = scratch.withUnsafeMutableBufferPointer { copy in
                    if let source = logits.baseAddress {
                        copy.baseAddress?.update(from: source, count: min(copy.count, logits.count))
                    }
                    return mask.withUnsafeBufferPointer { sampler.next(copy, mask: $0) }
                }
            }
            guard let token = drawn else { return nil }
            if let settled = decoder.validated(token, remaining: remaining) {
                if case .many = step, isWord(settled) { sampler.remember(settled) }
                return settled
            }
            banned.append(token)
            if vocabulary.texts.indices.contains(Int(token)) { mask[Int(token) >> 5] &= ~(1 << UInt32(token & 31)) }
        }
        return decoder.closingToken
    }

    /// Whether a token contains letters, rather than only punctuation, digits or white space of the document's syntax.
    private func isWord(_ token: TokenID) -> Bool {
        guard vocabulary.texts.indices.contains(Int(token)), let text = vocabulary.texts[Int(token)] else { return false }
        return text.contains { ($0 | 0x20) >= UInt8(ascii: "a") && ($0 | 0x20) <= UInt8(ascii: "z") || $0 >= 0x80 }
    }
}
