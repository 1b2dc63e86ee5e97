import FoundationModels
import ModelPrompts

/// Asks the model whether its answer answers the question.
///
/// Small models seldom say by themselves that there is no answer: they repeat a sentence about something else. The odds of “yes”
/// against “no” for the finished answer tell the two apart.
struct AnswerCheck {
    private let reader: OptionReader

    /// - Returns: nil for models that do not run on this machine: the probabilities of words are not known of them.
    init?(model: some LanguageModel) {
        guard let reader = OptionReader(model: model) else { return nil }
        self.reader = reader
    }

    /// The maximum number of bytes of the passages.
    private static let maximumPassages = 4_000

    /// The minimum log odds of “yes”. Of 50 questions for development, it leaves out 9 of 17 wrong answers and 2 of 21 right ones; 0.45
    /// leaves out 15 and 3, but on other documents too many right ones (BENCHMARKS.md).
    private static let minimumLogOdds = 0.0
    /// The same for the second of two answers: where the first one was none, there is often no answer.
    private static let minimumLogOddsOfSecond = 1.0

    func isAnswer(_ answer: String, to question: String, from passages: [String], isSecond: Bool) async throws -> Bool {
        let text = String(decoding: passages.joined(separator: "\n").utf8.prefix(Self.maximumPassages), as: UTF8.self)
        let odds = try await reader.logOdds(
            ModelPrompts.isAnswer(answer, to: question, from: text), instructions: ModelPrompts.answerCheckInstructions)
        return odds >= (isSecond ? Self.minimumLogOddsOfSecond : Self.minimumLogOdds)
    }
}
