internal import Foundation
internal import LanguageTable

/// Identifies the language of a text by its sequences of letters: 75 languages, and text in no language such as source code.
///
/// The work is proportional to the length of the text, up to ``maximumLetters``.
enum LanguageIdentifier {
    /// A language and its probability.
    struct Candidate {
        /// ISO 639 code; "zxx" for no language.
        var code: String
        var probability: Double
    }

    /// The number of letters and spaces of a text that are read. More do not change the result.
    static let maximumLetters = 600

    /// The code of text in no language.
    static let none = "zxx"

    private static let codes = (0..<lt_class_count()).map { String(cString: lt_code($0)) }

    /// The languages that are identified.
    static let languages = codes.filter { $0 != none }

    /// All languages with their probabilities, the most probable first; empty for a text without letters.
    static func candidates(for text: some StringProtocol) -> [Candidate] { candidates(letters(of: text)) }

    static func candidates(_ letters: [UInt32]) -> [Candidate] {
        guard letters.count > 2 else { return [] }
        var scores = [Float](repeating: 0, count: codes.count)
        lt_scores(letters, Int32(letters.count), &scores)
        guard let largest = scores.max() else { return [] }
        let powers = scores.map { exp(Double($0 - largest)) }
        let sum = powers.reduce(0, +)
        return zip(codes, powers).map { Candidate(code: $0, probability: $1 / sum) }
            .sorted { $0.probability > $1.probability }
    }

    /// Lowercase letters and marks, with one space before, between and after words.
    static func letters(of text: some StringProtocol) -> [UInt32] {
        var letters: [UInt32] = [0x20]
        for scalar in text.unicodeScalars {
            if letters.count >= maximumLetters { break }
            let value = scalar.value
            if value < 0x80 {
                if (0x61...0x7A).contains(value | 0x20), value >= 0x41 {
                    letters.append(value | 0x20)
                } else if letters.last != 0x20 {
                    letters.append(0x20)
                }
                continue
            }
            switch scalar.properties.generalCategory {
            case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .nonspacingMark,
                .spacingMark:
                for lower in scalar.properties.lowercaseMapping.unicodeScalars { letters.append(lower.value) }
            default: if letters.last != 0x20 { letters.append(0x20) }
            }
        }
        if letters.last != 0x20 { letters.append(0x20) }
        return letters
    }
}
