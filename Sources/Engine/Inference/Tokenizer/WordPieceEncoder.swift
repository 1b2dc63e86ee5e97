internal import Foundation

/// The text normalization of WordPiece vocabularies: words and single signs, each preceded by a space; in lower case
/// and without accents if the file requires it (Devlin et al., arXiv:1810.04805, `BasicTokenizer`).
struct WordPieceText: Sendable {
    let isLowercased: Bool
    let stripsAccents: Bool

    func callAsFunction(_ bytes: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count + bytes.count / 4)
        var isInWord = false
        var start = 0
        while start < bytes.count {
            if bytes[start] < 0x80 {
                append(bytes[start], to: &output, &isInWord)
                start += 1
            } else {
                // ASCII characters do not combine with preceding characters, so the text between them can be decomposed
                // separately.
                let end = bytes[start...].firstIndex { $0 < 0x80 } ?? bytes.count
                append(bytes[start..<end], to: &output, &isInWord)
                start = end
            }
        }
        return output
    }

    /// Appends an ASCII character.
    private func append(_ byte: UInt8, to output: inout [UInt8], _ isInWord: inout Bool) {
        switch byte {
        case 0x09...0x0D, 0x20: isInWord = false
        case 0x00...0x1F, 0x7F: break
        default:
            let isLetter = UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
            let isAlone = !isLetter && !(UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte)
            if isAlone || !isInWord { output.append(0x20) }
            isInWord = !isAlone
            output.append(isLowercased && isLetter ? byte | 0x20 : byte)
        }
    }

    /// Appends characters that are not ASCII.
    private func append(_ bytes: ArraySlice<UInt8>, to output: inout [UInt8], _ isInWord: inout Bool) {
        var text = String(decoding: bytes, as: UTF8.self)
        if stripsAccents { text = text.decomposedStringWithCanonicalMapping }
        for scalar in text.unicodeScalars {
            if scalar.isASCII {  // the base letter of a decomposed accented letter
                append(UInt8(scalar.value), to: &output, &isInWord)
                continue
            }
            let category = scalar.properties.generalCategory
            if scalar.properties.isWhitespace {
                isInWord = false
                continue
            }
            // Skip control characters, U+FFFD, and the accents of decomposed letters.
            if scalar == "\u{FFFD}" || [.control, .format, .privateUse, .surrogate].contains(category)
                || stripsAccents && category == .nonspacingMark
            {
                continue
            }
            let isAlone = Self.isPunctuation(category) || Self.isIdeograph(scalar.value)
            if isAlone || !isInWord { output.append(0x20) }
            isInWord = !isAlone
            output.append(contentsOf: (isLowercased ? scalar.properties.lowercaseMapping : String(scalar)).utf8)
        }
    }

    private static func isPunctuation(_ category: Unicode.GeneralCategory) -> Bool {
        switch category {
        case .connectorPunctuation, .dashPunctuation, .openPunctuation, .closePunctuation, .initialPunctuation,
            .finalPunctuation, .otherPunctuation:
            true
        default: false
        }
    }

    /// Whether a character is a CJK ideograph; each ideograph is a separate word.
    private static func isIdeograph(_ value: UInt32) -> Bool {
        switch value {
        case 0x4E00...0x9FFF, 0x3400...0x4DBF, 0x20000...0x2A6DF, 0x2A700...0x2B73F, 0x2B740...0x2B81F, 0x2B820...0x2CEAF,
            0xF900...0xFAFF, 0x2F800...0x2FA1F:
            true
        default: false
        }
    }
}

/// WordPiece: repeatedly takes the longest token that is a prefix of the rest of the word; a word that cannot be
/// covered becomes one unknown token.
struct WordPieceEncoder {
    /// Longer words are unknown, in characters.
    private static let maximumLength = 100

    /// Appends the tokens of a word, which begins with a space.
    func encode(_ word: UnsafeBufferPointer<UInt8>, with vocabulary: Vocabulary, into output: inout [TokenID]) {
        let first = output.count
        // The start of a UTF-8 sequence is a character; one more is the space.
        if word.count > Self.maximumLength, word.count(where: { $0 & 0xC0 != 0x80 }) - 1 > Self.maximumLength {
            if let unknown = vocabulary.unknownToken { output.append(unknown) }
            return
        }
        var start = 0
        while start < word.count {
            var longest: (token: TokenID, end: Int)?
            vocabulary.pieces.forEachToken(from: start, in: word) { longest = ($0, $1) }
            guard let longest else {
                output.removeLast(output.count - first)
                if let unknown = vocabulary.unknownToken { output.append(unknown) }
                return
            }
            output.append(longest.token)
            start = longest.end
        }
    }
}
