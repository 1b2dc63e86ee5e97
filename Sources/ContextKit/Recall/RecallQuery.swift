import TextSearch

/// The words of a prompt by which turns are searched.
struct RecallQuery {
    struct Word: Equatable {
        /// The form in the index.
        var text: String
        /// The form shown to people.
        var shown: String
        /// Whether it is capitalized within a sentence.
        var isName = false
        var isNumber = false
        var isDate = false
    }

    struct Sentence {
        var words: Set<String>
        var isQuestion: Bool
        /// Whether it ends in punctuation other than a question mark. Keywords and titles do not.
        var isStatement: Bool
    }

    let words: [Word]
    let sentences: [Sentence]

    init(_ prompt: String) {
        let names = Self.names(in: prompt)
        let dates = DateWords.words(in: prompt).prefix(12)
        // “7” in “7 May” is part of the date and not a separate number.
        let ofDates = Set(dates.flatMap { $0.split { !$0.isNumber }.map(String.init) })
        var words = SearchText.words(of: prompt).filter { !ofDates.contains($0) }.map { word in
            Word(
                text: word, shown: word, isName: names.contains(word),
                isNumber: word.unicodeScalars.contains { $0.properties.numericType != nil })
        }
        for date in dates where !words.contains(where: { $0.text == date }) {
            words.append(Word(text: date, shown: "its date", isDate: true))
        }
        self.words = words
        sentences = Self.sentences(of: prompt)
    }

    private static func sentences(of prompt: String) -> [Sentence] {
        var sentences: [Sentence] = []
        var sentence = ""
        func end(isQuestion: Bool = false, isStatement: Bool = false) {
            let words = Set(SearchText.words(of: sentence))
            if !words.isEmpty { sentences.append(Sentence(words: words, isQuestion: isQuestion, isStatement: isStatement)) }
            sentence = ""
        }
        for scalar in prompt.unicodeScalars {
            switch scalar {
            case "?", "？", "؟": end(isQuestion: true)
            case ".", "!", "…", "。", "！": end(isStatement: true)
            case "\n": end()
            default: sentence.unicodeScalars.append(scalar)
            }
        }
        end()
        return sentences
    }

    /// Capitalized words that do not begin a sentence, in lower case. Days, months and names by which someone is
    /// addressed (“Thanks, Nadia.”, “Hey Nadia!”) are not included.
    private static func names(in prompt: String) -> Set<String> {
        var names: Set<String> = []
        var wordsBefore = 0
        var followsComma = false
        for part in prompt.split(whereSeparator: \.isWhitespace) {
            guard let last = part.last else { continue }
            let endsClause = ".,!?…;:".contains(last)
            if let word = part.split(whereSeparator: { !$0.isLetter && !$0.isNumber }).first {
                let isSpokenTo = followsComma || wordsBefore == 1 && endsClause
                let name = word.lowercased()
                if wordsBefore > 0, !isSpokenTo, word.count > 1, word.first?.isUppercase == true, !DateWords.isOfCalendar(name) {
                    names.insert(name)
                }
                wordsBefore += 1
            }
            followsComma = last == ","
            if ".!?…:".contains(last) { wordsBefore = 0 }
        }
        return names
    }
}
