internal import Grammar

/// Samples tokens that the grammar allows and after which the response can still be completed within the token budget.
final class TokenChooser {
    private let vocabulary: TokenVocabulary
    private var mask: [UInt32]
    private var scratch: [Float]
    /// The number of samples before the chooser falls back to the shortest completion.
    private static let attempts = 24

    /// - Parameter count: number of logits, which may exceed the number of tokens in the vocabulary.
    init(vocabulary: TokenVocabulary, count: Int) {
        self.vocabulary = vocabulary
        mask = [UInt32](repeating: 0, count: vocabulary.maskWords)
        scratch = [Float](repeating: 0, count: count)
    }

    /// Returns the next token; nil if no token can be drawn. Does not change the logits.
    ///
    /// - Throws: ``GrammarBusy``. With the same random numbers, another call makes the same choice.
    func choose(
        _ step: GrammarCursor.Step, _ decoder: inout GrammarCursor, _ sampler: Sampler,
        _ logits: UnsafeMutableBufferPointer<Float>, remaining: Int
    ) throws(GrammarBusy) -> TokenID? {
        var banned: [TokenID] = []
        if case .many = step { try fillMask(decoder) }
        while banned.count < Self.attempts {
            var drawn: TokenID?
            switch step {
            case .few(let few):
                let left = banned.isEmpty ? few : few.filter { !banned.contains($0) }
                if left.isEmpty { return try decoder.closingToken }
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
            if let settled = try decoder.validated(token, remaining: remaining) { return settled }
            banned.append(token)
            if vocabulary.texts.indices.contains(Int(token)) { mask[Int(token) >> 5] &= ~(1 << UInt32(token & 31)) }
        }
        return try decoder.closingToken
    }

    private func fillMask(_ decoder: GrammarCursor) throws(GrammarBusy) {
        // The closure cannot pass a typed error on.
        let result = mask.withUnsafeMutableBufferPointer { words in
            Result { () throws(GrammarBusy) in try decoder.fillMask(words) }
        }
        try result.get()
    }

    /// Whether a token contains letters, rather than only punctuation, digits or white space of the document's syntax.
    func isWord(_ token: TokenID) -> Bool {
        guard vocabulary.texts.indices.contains(Int(token)), let text = vocabulary.texts[Int(token)] else { return false }
        return text.contains { ($0 | 0x20) >= UInt8(ascii: "a") && ($0 | 0x20) <= UInt8(ascii: "z") || $0 >= 0x80 }
    }
}
