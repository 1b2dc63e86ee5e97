internal import Foundation

/// Text as vocabularies of WordPiece see it: words and single signs, each behind a space, in lower case and without accents where
/// the file asks for it (Devlin et al., arXiv:1810.04805, `BasicTokenizer`).
struct WordPieceText: Sendable {
    let isLowercased: Bool
    let stripsAccents: Bool

    func callAsFunction(_ bytes: [UInt8]) -> [UInt8] {
        var text = String(decoding: bytes, as: UTF8.self)
        if stripsAccents { text = text.decomposedStringWithCanonicalMapping }
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count + bytes.count / 4)
        var isInWord = false
        for scalar in text.unicodeScalars {
            let category = scalar.properties.generalCategory
            if scalar.properties.isWhitespace {
                isInWord = false
                continue
            }
            // Control characters, U+FFFD, and what is left of letters with accents.
            if scalar == "\u{FFFD}" || [.control, .format, .privateUse, .surrogate].contains(category)
                || stripsAccents && category == .nonspacingMark
            {
                continue
            }
            let isAlone = Self.isSign(scalar, category) || Self.isIdeograph(scalar.value)
            if isAlone || !isInWord { output.append(0x20) }
            isInWord = !isAlone
            output.append(contentsOf: (isLowercased ? scalar.properties.lowercaseMapping : String(scalar)).utf8)
        }
        return output
    }

    private static func isSign(_ scalar: Unicode.Scalar, _ category: Unicode.GeneralCategory) -> Bool {
        switch category {
        case .connectorPunctuation, .dashPunctuation, .openPunctuation, .closePunctuation, .initialPunctuation,
            .finalPunctuation, .otherPunctuation:
            true
        case .mathSymbol, .currencySymbol, .modifierSymbol, .otherSymbol: scalar.isASCII
        default: false
        }
    }

    /// Chinese characters stand alone.
    private static func isIdeograph(_ value: UInt32) -> Bool {
        switch value {
        case 0x4E00...0x9FFF, 0x3400...0x4DBF, 0x20000...0x2A6DF, 0x2A700...0x2B73F, 0x2B740...0x2B81F, 0x2B820...0x2CEAF,
            0xF900...0xFAFF, 0x2F800...0x2FA1F:
            true
        default: false
        }
    }
}

/// WordPiece: the longest token that a word begins with, again and again; a word that cannot be covered is one unknown token.
struct WordPieceEncoder {
    /// Appends the tokens of a word, which begins with a space.
    func encode(_ word: UnsafeBufferPointer<UInt8>, with vocabulary: Vocabulary, into output: inout [TokenID]) {
        let first = output.count
        var start = 0
        while start < word.count {
            var end = min(word.count, start + vocabulary.longestToken)
            while end > start {
                if let token = vocabulary.token(for: UnsafeBufferPointer(rebasing: word[start..<end])) {
                    output.append(token)
                    break
                }
                end -= 1
            }
            guard end > start else {
                output.removeLast(output.count - first)
                if let unknown = vocabulary.unknownToken { output.append(unknown) }
                return
            }
            start = end
        }
    }
}
