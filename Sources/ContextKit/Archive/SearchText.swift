/// Words as the index knows them.
enum SearchText {
    /// Puts spaces around characters of scripts that have none between words, so that each is found by itself.
    static func indexed(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            if scalar == "\0" {
                result += " "
            } else if isUnspaced(scalar) {
                result += " \(scalar) "
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// The words of a question, each once, without those that only make it one.
    static func words(of text: String) -> [String] {
        var seen: Set<String> = []
        // By scalars: a quotation mark may be part of a character that begins with a letter.
        let words = indexed(text.lowercased()).unicodeScalars.split {
            !$0.properties.isAlphabetic && $0.properties.numericType == nil && !$0.properties.isDiacritic
        }
        return words.map { String($0) }.filter { !common.contains($0) && seen.insert($0).inserted }.prefix(40).map { $0 }
    }

    private static func isUnspaced(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0E00...0x0E7F, 0x1780...0x17FF, 0x3040...0x30FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xF900...0xFAFF,
            0x20000...0x323AF:
            true
        default: false
        }
    }

    /// Whether a text speaks of the user or of the past. Texts in scripts without spaces always may.
    static func looksBack(_ text: String) -> Bool {
        if text.unicodeScalars.contains(where: isUnspaced) { return true }
        let words = text.lowercased().split { !$0.isLetter && $0 != "'" && $0 != "’" }.map(String.init)
        return words.contains(where: backward.contains)
            || zip(words, words.dropFirst()).contains { backwardPairs.contains("\($0) \($1)") }
    }

    /// Words of users about what is theirs and about what was: English, German, French, Spanish, Italian, Portuguese, Dutch.
    /// "I" alone is not among them: "What should I avoid?" asks for nothing from before.
    private static let backward: Set<String> = [
        "my", "mine", "our", "ours", "i've", "earlier", "before", "again", "remember", "recall", "said", "told", "mentioned",
        "talked", "discussed", "recommended", "suggested", "yesterday", "previous", "previously", "still", "mein", "meine",
        "meinen", "meinem", "meiner", "unser", "unsere", "vorhin", "gestern", "nochmal", "wieder", "sagte", "erwähnt", "j'ai",
        "mon", "ma", "mes", "notre", "nos", "déjà", "hier", "avant", "mi", "mis", "nuestro", "nuestra", "antes", "ayer", "dije",
        "mio", "mia", "miei", "nostro", "prima", "ieri", "meu", "minha", "nosso", "ontem", "mijn", "onze", "eerder", "gisteren",
    ]
    private static let backwardPairs: Set<String> = [
        "do i", "did i", "am i", "was i", "have i", "had i", "did we", "have we", "had we", "were we", "are we", "did you",
        "have you", "you did", "about me", "habe ich", "haben wir", "bin ich", "hast du",
    ]

    private static let common: Set<String> = [
        "a", "about", "again", "an", "and", "are", "as", "at", "be", "by", "can", "could", "did", "do", "does", "for", "from",
        "had", "has", "have", "how", "i", "in", "is", "it", "its", "know", "me", "my", "of", "on", "or", "please", "s", "said",
        "say", "should", "t", "tell", "that", "the", "then", "there", "this", "to", "told", "was", "we", "were", "what", "when",
        "where", "which", "who", "why", "will", "with", "would", "you", "your",
    ]
}
