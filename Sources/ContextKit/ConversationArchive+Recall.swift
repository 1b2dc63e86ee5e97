import Foundation
import GRDB

extension ConversationArchive {
    /// The turns before a number that share rare words with a text, the best first.
    ///
    /// - Parameters:
    ///   - count: How many turns the conversation has.
    ///   - known: Turns that are in the context already.
    ///   - policy: How much of the text a turn has to contain.
    func turns(
        like text: String, in conversation: String, of count: Int, except known: Set<Int>, policy: RecallPolicy
    ) throws -> [Int] {
        let words = SearchText.words(of: text)
        let isLookingBack = SearchText.looksBack(text)
        let threshold = isLookingBack ? policy.threshold : policy.strictThreshold
        let fewestWords = isLookingBack ? 1 : policy.strictWordCount
        guard !words.isEmpty, count > known.count else { return [] }
        let rarest = max(4, min(count / 8, Self.mostRows))
        var total = 0.0
        var scores: [Int: (weight: Double, words: Int)] = [:]
        try read { database in
            guard let first = try Self.firstRow(database, conversation) else { return }
            for word in words {
                // No more rows than a rare word has: what a question costs does not grow with the conversation.
                let rows = try Int64.fetchAll(
                    database,
                    sql: """
                        SELECT rowid FROM turn_text WHERE turn_text MATCH ? AND rowid BETWEEN ? AND ?
                        ORDER BY rowid DESC LIMIT ?
                        """,
                    arguments: ["\"\(word)\"", first, first + Int64(count), rarest + 1])
                // BM25's inverse document frequency.
                let weight = log(1 + (Double(max(0, count - rows.count)) + 0.5) / (Double(rows.count) + 0.5))
                total += weight
                // What stands everywhere tells nothing apart.
                guard rows.count <= rarest else { continue }
                for number in rows.map({ Int($0 - first) }) where !known.contains(number) {
                    let score = scores[number] ?? (0, 0)
                    scores[number] = (score.weight + weight, score.words + 1)
                }
            }
        }
        var best = scores.filter { $0.value.weight >= threshold * total && $0.value.words >= fewestWords }
            .sorted { $0.value.weight == $1.value.weight ? $0.key > $1.key : $0.value.weight > $1.value.weight }
            .map(\.key)
        if !isLookingBack {
            // A question that was asked before says nothing about the user, and neither does the same request.
            let asked = Set(words)
            let prompts = try turns(Array(best.prefix(20)), of: conversation).mapValues(\.prompt)
            best = best.filter { number in
                guard let prompt = prompts[number], !prompt.contains(where: { "?？؟".contains($0) }) else { return false }
                return Set(SearchText.words(of: prompt)).subtracting(asked).count >= 2
            }
        }
        return Array(best.prefix(policy.greatestCount))
    }

    private static let mostRows = 200

    /// Turns by their numbers.
    func turns(_ numbers: [Int], of conversation: String) throws -> [Int: Turn] {
        guard !numbers.isEmpty else { return [:] }
        let list = numbers.map(String.init).joined(separator: ",")
        let turns = try read { try Self.turns($0, conversation, "number IN (\(list)) AND entries IS NOT NULL") }
        return Dictionary(turns.map { ($0.number, $0) }) { first, _ in first }
    }
}

/// Words as the index knows them.
enum SearchText {
    /// Puts spaces around characters of scripts that have none between words, so that each is found by itself.
    static func indexed(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            if isUnspaced(scalar) {
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
        let words = indexed(text.lowercased()).split { !$0.isLetter && !$0.isNumber }
        return words.map(String.init).filter { !common.contains($0) && seen.insert($0).inserted }.prefix(40).map { $0 }
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
