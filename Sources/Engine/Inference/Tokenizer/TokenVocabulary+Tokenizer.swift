package import Grammar

extension TokenVocabulary {
    /// Creates a vocabulary from the texts of a tokenizer's tokens; special tokens have no text.
    package convenience init(_ tokenizer: Tokenizer) {
        let vocabulary = tokenizer.vocabulary
        self.init(
            texts: (0..<vocabulary.count).map { index in
                let token = TokenID(index)
                switch vocabulary.kind(of: token) {
                case .normal, .byte: return Array(vocabulary.bytes(of: token))
                default: return nil
                }
            }, endTokens: tokenizer.stopTokens.sorted())
    }
}
