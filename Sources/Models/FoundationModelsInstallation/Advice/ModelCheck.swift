package import Foundation
internal import FoundationModels
internal import FoundationModelsGGUF

/// How a model answers questions with known answers.
///
/// A file that does not work here, such as one with a wrong chat template, answers almost none; small models answer some, good ones nearly
/// all.
public struct ModelCheck: Codable, Hashable, Sendable {
    /// An answer to a question.
    public struct Answer: Codable, Hashable, Sendable {
        /// The question.
        public let question: String
        /// What the model answered.
        public let answer: String
        /// Whether the answer has what was expected.
        public let isRight: Bool
    }

    /// What the answers say of a model.
    public enum Judgement: Sendable {
        /// It answers most questions.
        case works
        /// It works, but it is a small one, or the questions are not in its language.
        case worksPartly
        /// It does not work here, or is not meant for questions.
        case fails
    }

    /// The answers, in the order of the questions.
    public let answers: [Answer]

    /// The number of right answers.
    public var right: Int { answers.count(where: \.isRight) }

    /// What the number of right answers says of the model.
    public var judgement: Judgement {
        switch Double(right) / Double(max(1, answers.count)) {
        case 0.75...: .works
        case 0.25...: .worksPartly
        default: .fails
        }
    }

    /// The number of questions that there are.
    public static let questionCount = questions.count

    /// Questions that almost every language model answers, each with the words of which an answer has one.
    private static let questions: [(text: String, answers: [String])] = [
        ("What is the capital of France?", ["paris"]),
        ("What is 7 plus 5?", ["12", "twelve"]),
        ("What color is the sky on a clear day?", ["blue"]),
        ("Which animal says “meow”?", ["cat"]),
        ("What is the opposite of “hot”?", ["cold"]),
        ("How many days are in a week?", ["7", "seven"]),
        ("What is the capital of Japan?", ["tokyo"]),
        ("Who wrote “Romeo and Juliet”?", ["shakespeare"]),
        ("What is the chemical formula of water?", ["h2o", "h₂o"]),
        ("Which planet is known as the red planet?", ["mars"]),
        ("What is 9 times 6?", ["54", "fifty-four"]),
        ("What is the largest ocean on Earth?", ["pacific"]),
        ("Translate “dog” into Spanish. Answer with one word.", ["perro"]),
        ("At how many degrees Celsius does water boil at sea level?", ["100"]),
        ("What is the plural of “mouse”, the animal?", ["mice"]),
        ("Which month comes after March?", ["april"]),
        ("Which country has the shape of a boot?", ["italy"]),
        ("How many legs does a spider have?", ["8", "eight"]),
        ("What do bees make?", ["honey"]),
        ("Which metal has the symbol Fe?", ["iron"]),
    ]

    /// Asks the model in a file.
    package static func of(
        _ url: URL, questions count: Int = questionCount, progress: (Int) -> Void = { _ in }
    ) async throws -> ModelCheck {
        let model = GGUFLanguageModel(url: url, contextSize: 1_024, checksText: false)
        var answers: [Answer] = []
        for question in questions.prefix(count) {
            // Reasoning comes before the answer.
            let text = try await LanguageModelSession(model: model).respond(
                to: question.text, options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 300)
            ).content
            let words = text.lowercased()
            answers.append(
                Answer(question: question.text, answer: text, isRight: question.answers.contains { words.contains($0) }))
            progress(answers.count)
        }
        return ModelCheck(answers: answers)
    }
}

extension ModelInstallation {
    /// Asks a model questions with known answers.
    ///
    /// - Parameters:
    ///   - questions: How many of the ``ModelCheck/questionCount`` questions to ask. Five are enough to see whether a new file works.
    ///   - progress: Called with the number of questions that are answered.
    /// - Throws: The errors of sessions, if the file cannot be used.
    public func check(
        _ model: InstalledModel, questions: Int = ModelCheck.questionCount, progress: @Sendable (Int) -> Void = { _ in }
    ) async throws -> ModelCheck {
        try await ModelCheck.of(model.url, questions: questions, progress: progress)
    }
}
