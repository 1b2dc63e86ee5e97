import Foundation

/// Converts texts to the words of a full-text index (FTS5 of SQLite with the tokenizer `unicode61`).
public enum SearchText {
    /// Puts spaces around the characters of scripts that do not separate words by spaces, so that each character is a
    /// word of the index.
    public static func indexed(_ text: String) -> String {
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

    /// The distinct words of a text, without common words.
    ///
    /// - Parameter includesCommon: whether common words are included.
    public static func words(of text: String, limit: Int = 40, includesCommon: Bool = false) -> [String] {
        var seen: Set<String> = []
        // Splits by Unicode scalars: a character that begins with a letter may contain a quotation mark.
        let words = indexed(text.lowercased()).unicodeScalars.split {
            !$0.properties.isAlphabetic && $0.properties.numericType == nil && !$0.properties.isDiacritic
        }
        return words.map { String($0) }.filter { (includesCommon || !common.contains($0)) && seen.insert($0).inserted }.prefix(
            limit
        ).map { $0 }
    }

    /// What a word says about the texts that contain it: the rarer it is, the more (the inverse document frequency of BM25:
    /// Robertson and Zaragoza, doi:10.1561/1500000019).
    ///
    /// - Parameters:
    ///   - count: The number of texts with the word.
    ///   - total: The number of all texts.
    public static func weight(count: Int, total: Int) -> Double {
        log(1 + (Double(max(0, total - count)) + 0.5) / (Double(count) + 0.5))
    }

    /// Number of words in a text, which is the length of a turn in the ranking.
    public static func wordCount(of text: String) -> Int {
        var (count, isInWord) = (0, false)
        for scalar in text.unicodeScalars {
            let isWord = scalar.properties.isAlphabetic || scalar.properties.numericType != nil
            if isWord, !isInWord { count += 1 }
            isInWord = isWord
        }
        return count
    }

    private static func isUnspaced(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0E00...0x0E7F, 0x1780...0x17FF, 0x3040...0x30FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xF900...0xFAFF,
            0x20000...0x323AF:
            true
        default: false
        }
    }

    /// Common words, which carry no information about the topic of a text.
    private static let common: Set<String> = Set(
        """
        a about actually again ago all also always am an and another any anyone anything are aren as ask asked at away back bad be \
        because been before being best better big bit but by came can come comes could couldn day days definitely did didn do does \
        doesn doing don done down else even ever every everyone everything feel feels few first for from fun get gets getting go goes \
        going gone good got great guess had haha has have he hello her here hers hey hi him his hmm how huh i if in into is isn it its \
        just keep kind know last let lets like little ll lol long look looking looks lot lots made make makes making many may maybe me \
        mean means more most much must my need never new next nice no not nothing now of off oh ok okay old on one only or other our \
        ours out over own people perhaps please probably put quite re really right s said same saw say says see seem seems seen serious \
        seriously shall she should shouldn since so some someone something sorry sort still stuff such sure t take takes tell than \
        thank thanks that the their them then there these they thing things think this those thought time times to today told \
        tomorrow too took tried try trying two up us use used using ve very want wants was wasn way ways we welcome well went were \
        what when where which while who whom whose why will with won work works would wouldn wow wrong yeah yes yesterday yet you your \
        yours
        """.split(whereSeparator: \.isWhitespace).map(String.init))
}
