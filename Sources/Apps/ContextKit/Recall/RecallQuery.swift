import Foundation
import TextSearch

/// What a prompt says about what it needs.
struct RecallQuery {
    struct Word: Equatable {
        /// The form in the index.
        var text: String
        /// The form shown to people.
        var shown: String
        var isDate = false
    }

    /// The words without common ones, and the dates.
    let words: [Word]
    /// The number of words, with common ones.
    let length: Int
    let sentenceCount: Int
    /// The sentences that end in a question mark.
    let questions: [String]
    /// All of it.
    let prompt: String

    /// The maximum number of words that are searched.
    private static let maximumWords = 40
    private static let maximumDates = 12
    private static let maximumQuestions = 3

    init(_ prompt: String, now: Date = Conversation.today ?? Date()) {
        self.prompt = prompt
        let sentences = TextUnits.sentences(of: prompt).map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
            .filter { !$0.isEmpty }
        sentenceCount = sentences.count
        questions = sentences.filter { Self.isQuestion($0) }
        // People tell of yesterday more often than they ask about it.
        let relative = questions.isEmpty ? [] : DateWords.relativeWords(in: questions.joined(separator: " "), now: now)
        let dates = (DateWords.words(in: prompt) + relative).prefix(Self.maximumDates)
        // “7” in “7 May” is part of the date and not a separate number.
        let ofDates = Set(dates.flatMap { $0.split { !$0.isNumber }.map(String.init) })
        var words = SearchText.words(of: prompt, limit: Self.maximumWords).filter { !ofDates.contains($0) }.map {
            Word(text: $0, shown: $0)
        }
        for date in dates where !words.contains(where: { $0.text == date }) {
            words.append(Word(text: date, shown: "its date", isDate: true))
        }
        self.words = words
        length = SearchText.wordCount(of: prompt)
    }

    /// The texts whose meaning is searched: all of the prompt, and its questions, which say what is wanted.
    var texts: [String] {
        let wanted = questions.suffix(Self.maximumQuestions).joined(separator: " ")
        return wanted.isEmpty || wanted == prompt ? [prompt] : [prompt, wanted]
    }

    /// Whether a text has a question mark of any script.
    static func isQuestion(_ text: some StringProtocol) -> Bool {
        text.unicodeScalars.contains { $0 == "?" || $0 == "？" || $0 == "؟" }
    }
}
