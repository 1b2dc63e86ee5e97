#if PostgreSQL
import Foundation
import TextSearch

/// Converts texts to words for the full text of PostgreSQL.
enum SearchWords {
    /// A text search configuration `words` that reduces English words to their stems and keeps all others. PostgreSQL's own one
    /// for English leaves out frequent words.
    static let configuration = """
        CREATE TEXT SEARCH DICTIONARY stem (TEMPLATE = pg_catalog.snowball, LANGUAGE = english);
        CREATE TEXT SEARCH CONFIGURATION words (COPY = pg_catalog.simple);
        ALTER TEXT SEARCH CONFIGURATION words ALTER MAPPING FOR asciiword, word, numword WITH stem;
        """

    /// The words of a text in lowercase without diacritics, separated by spaces, so that PostgreSQL does not take a path or an
    /// address for one word. Scripts that do not separate words have a word for each character.
    static func normalized(_ text: String) -> String {
        var result = ""
        for scalar in SearchText.indexed(text).decomposedStringWithCompatibilityMapping.unicodeScalars {
            let properties = scalar.properties
            if properties.generalCategory == .nonspacingMark { continue }
            if properties.isAlphabetic || properties.numericType != nil {
                // The last letter of a Greek word has another form.
                result += scalar == "ς" ? "σ" : properties.lowercaseMapping
            } else if result.utf8.last != 0x20 {
                result += " "
            }
        }
        return result.precomposedStringWithCompatibilityMapping.trimmingCharacters(in: .whitespaces)
    }

    /// The text in parts of limited size, cut between words: a vector of words has a maximum of 1 MB.
    static func parts(of normalized: String) -> [Substring] {
        var parts: [Substring] = []
        var rest = normalized[...]
        while let end = rest.utf8.index(rest.utf8.startIndex, offsetBy: 200_000, limitedBy: rest.utf8.endIndex) {
            let cut = rest.utf8[..<end].lastIndex(of: 0x20) ?? rest.utf8[end...].firstIndex(of: 0x20) ?? rest.endIndex
            parts.append(rest[..<cut])
            rest = rest[cut...].dropFirst()
        }
        return rest.isEmpty ? parts : parts + [rest]
    }
}
#endif
