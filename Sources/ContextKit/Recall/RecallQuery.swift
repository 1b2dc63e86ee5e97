/// The words of a prompt that turns are looked up by.
struct RecallQuery {
    struct Word: Equatable {
        /// As the index knows it.
        var text: String
        /// As people know it.
        var shown: String
        /// Written with a capital letter where a sentence goes on.
        var isName = false
        var isNumber = false
        var isDate = false
    }

    struct Sentence {
        var words: Set<String>
        var isQuestion: Bool
        /// Whether it ends in a mark that is none of a question: keywords and titles do not.
        var isStatement: Bool
    }

    let words: [Word]
    let sentences: [Sentence]

    init(_ prompt: String) {
        let names = Self.names(in: prompt)
        let dates = DateWords.words(in: prompt).prefix(12)
        // “7” of “7 May” is no number of its own.
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

    /// Words with a capital letter that do not begin a sentence, in lower case. Days and months are not among them, nor is whoever is
    /// spoken to (“Thanks, Nadia.”, “Hey Nadia!”).
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
