internal import Foundation

/// Rejects prompts in languages that a model does not support.
///
/// A rejected prompt that the model could have answered is worse than an answered one that it cannot answer well: short texts,
/// source code, numbers, names, and prompts with a sentence in a supported language pass.
struct LanguageCheck {
    /// Codes of the supported languages and of those that cannot be told from them.
    private let accepted: Set<String>
    private let supported: [String]

    /// Languages whose short texts are often the same.
    private static let similar: [Set<String>] = [
        ["bs", "hr", "sl", "sr"], ["az", "tr"], ["nb", "nn", "no", "da"], ["id", "ms"], ["xh", "zu"], ["cs", "sk"], ["st", "tn"],
    ]

    init(supported: Set<Locale.Language>) {
        self.supported = Set(supported.compactMap { $0.languageCode?.identifier }).sorted()
        accepted = self.supported.reduce(into: Set(self.supported)) { accepted, code in
            for group in Self.similar where group.contains(code) { accepted.formUnion(group) }
        }
    }

    /// The minimum number of letters of a text whose language is significant, and of one that consists of ideographs.
    private static let minimumLetters = 20
    private static let minimumIdeographs = 6
    private static let minimumLettersOfSentence = 15
    private static let minimumLettersWithQuotation = 10
    /// The minimum probability that a text is in a language that is not supported.
    private static let certainty = 0.93
    /// The minimum probability of the most probable language, for a text in Latin letters.
    private static let minimumProbability = 0.7
    /// The maximum number of sentences that are examined one by one, and of characters that are read.
    private static let maximumSentences = 64
    private static let maximumCharacters = 4_000
    private static let maximumQuotation = 300

    /// The language of a text, if it is almost certainly one that is not supported.
    func unsupportedLanguage(of text: String) -> String? {
        guard !supported.isEmpty else { return nil }
        let own = Self.withoutQuotations(text)
        guard own.contains(where: \.isLetter) else { return unsupportedLanguage(ofOwn: text) }
        if let language = unsupportedLanguage(ofOwn: own) { return language }
        // A quotation and a few words in its language: “…,” he said.
        let letters = LanguageIdentifier.letters(of: own)
        let few = Self.minimumLettersWithQuotation..<Self.minimumLetters
        guard few.contains(letters.count(where: { $0 != 0x20 })), !Self.isName(own),
            let language = unsupportedLanguage(ofOwn: String(text.prefix(Self.maximumCharacters))),
            let best = LanguageIdentifier.candidates(letters).first, Self.group(of: language).contains(best.code)
        else { return nil }
        return language
    }

    /// The same for a text without quotations.
    private func unsupportedLanguage(ofOwn text: String) -> String? {
        guard !Self.isName(text), let language = unsupported(LanguageIdentifier.letters(of: text), isProse: Self.isProse(text)),
            !Self.isCode(text, in: language)
        else { return nil }
        // Instructions in a supported language, followed by a long text in another one.
        let sentences = text.split(maxSplits: Self.maximumSentences) { ".!?:;\n。！？：".contains($0) }
        for sentence in sentences where sentences.count > 1 {
            let letters = LanguageIdentifier.letters(of: sentence)
            let count = letters.count { $0 != 0x20 }
            guard count >= Self.minimumLettersOfSentence else { continue }
            let languages = LanguageIdentifier.candidates(letters).filter { $0.code != LanguageIdentifier.none }
            let (likely, all) = languages.reduce((0.0, 0.0)) {
                ($0.0 + (accepted.contains($1.code) ? $1.probability : 0), $0.1 + $1.probability)
            }
            if likely > 0.7 * all { return nil }
        }
        return language
    }

    /// The beginning of a text, without what is quoted in it, which is not what the user says.
    private static func withoutQuotations(_ text: String) -> String {
        let scalars = Array(text.unicodeScalars.prefix(maximumCharacters))
        let ends: [Unicode.Scalar: [Unicode.Scalar]] = [
            "“": ["”"], "„": ["“", "”"], "«": ["»"], "\"": ["\""], "`": ["`"],
        ]
        var result = ""
        var index = 0
        while index < scalars.count {
            let scalar = scalars[index]
            if let ends = ends[scalar] {
                let rest = scalars[(index + 1)...].prefix(maximumQuotation)
                if let end = rest.firstIndex(where: { ends.contains($0) }) {
                    result += " "
                    index = end + 1
                    continue
                }
            }
            result.unicodeScalars.append(scalar)
            index += 1
        }
        return result
    }

    /// Languages that write prefixes before the capital letter of a name: uFlorian, eAdelaide, neAfrica.
    private static let prefixing: Set<String> = ["sn", "ts", "xh", "zu"]

    /// Whether a text has as much punctuation or as many names in several words as source code, data and addresses have.
    private static func isCode(_ text: String, in language: String) -> Bool {
        let words = text.split(whereSeparator: \.isWhitespace)
        let compounds = words.count { word in
            word.utf8.count > 3
                && zip(word.utf8, word.utf8.dropFirst()).contains {
                    (0x61...0x7A).contains($0) && (0x41...0x5A).contains($1)
                }
        }
        if compounds * 8 > words.count, !prefixing.contains(language) { return true }
        let digits = text.utf8.count { (0x30...0x39).contains($0) }
        if digits * 4 > text.utf8.count { return true }
        var punctuation = text.utf8.count { "{}[]<>=;_/\\|&#@$%^*~+".utf8.contains($0) }
        // A parenthesis after a letter calls a function; prose has a space before it.
        let calls = zip(text.utf8, text.utf8.dropFirst()).count { before, byte in
            byte == UInt8(ascii: "(") && before < 0x80 && before != UInt8(ascii: " ")
        }
        punctuation += 2 * calls
        return punctuation * 25 > text.utf8.count
    }

    /// Whether nearly all of few words are capitalized.
    private static func isName(_ text: String) -> Bool {
        let words = text.split(whereSeparator: \.isWhitespace)
        return words.count <= 5 && words.count { $0.first?.isUppercase ?? false } * 4 >= words.count * 3
    }

    private static func isLongEnough(_ letters: [UInt32]) -> Bool {
        let count = letters.count { $0 != 0x20 }
        if count >= minimumLetters || (count >= minimumLetters / 2 && !isLatin(letters)) { return true }
        return letters.count { (0x3040...0x9FFF).contains($0) || (0xAC00...0xD7AF).contains($0) } >= minimumIdeographs
    }

    /// Names, terms and source code are in Latin letters in most languages.
    private static func isLatin(_ letters: [UInt32]) -> Bool {
        letters.count { $0 < 0x250 && $0 != 0x20 } * 2 > letters.count { $0 != 0x20 }
    }

    /// A language and those that cannot be told from it.
    private static func group(of code: String) -> Set<String> { similar.first { $0.contains(code) } ?? [code] }

    /// Whether a text is a sentence, or several: words and their punctuation, from a letter that is not lowercase to the last full
    /// stop. Source code and data are hardly ever.
    private static func isProse(_ text: String) -> Bool {
        guard let first = text.first(where: { !$0.isWhitespace }), first.isLetter, !first.isLowercase,
            let last = text.last(where: { !$0.isWhitespace }), ".!?…".contains(last)
        else { return false }
        return text.unicodeScalars.allSatisfy {
            $0.properties.isAlphabetic || $0.properties.isWhitespace || $0.properties.generalCategory == .nonspacingMark
                || ".,;:!?'’-–…".unicodeScalars.contains($0)
        }
    }

    /// - Parameter isProse: whether the text is in a language; then its probability of being in none is disregarded.
    private func unsupported(_ letters: [UInt32], isProse: Bool) -> String? {
        guard Self.isLongEnough(letters) else { return nil }
        let candidates = LanguageIdentifier.candidates(letters)
        guard let best = candidates.first, best.code != LanguageIdentifier.none, !accepted.contains(best.code) else { return nil }
        func sum(_ isCounted: (String) -> Bool) -> Double {
            candidates.reduce(0) { isCounted($1.code) ? $0 + $1.probability : $0 }
        }
        let all = isProse ? sum { $0 != LanguageIdentifier.none } : 1
        let group = Self.group(of: best.code)
        if Self.isLatin(letters), sum(group.contains) < Self.minimumProbability * all { return nil }
        return sum { $0 != LanguageIdentifier.none && !accepted.contains($0) } >= Self.certainty * all ? best.code : nil
    }

    /// - Throws: ``LanguageModelError/unsupportedLanguageOrLocale(_:)`` if the last prompt is in a language that the model does not
    ///   support. A model without a list of languages accepts all of them.
    func check(_ transcript: Transcript) throws {
        guard let language = unsupportedLanguage(of: transcript.lastPromptText) else { return }
        let name = Locale(identifier: "en").localizedString(forLanguageCode: language) ?? language
        throw LanguageModelError.unsupportedLanguageOrLocale(
            .init(
                languageCode: Locale.LanguageCode(language),
                debugDescription:
                    "The prompt appears to be in \(name) (\(language)), for which the model was not trained. It supports: "
                    + supported.joined(separator: ", ") + "."))
    }
}
