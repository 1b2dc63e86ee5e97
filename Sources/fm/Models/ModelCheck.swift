import ArgumentParser
import Foundation
import FoundationModels
import FoundationModelsGGUF
import Inference
import Reports

extension Model {
    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Ask an installed model twenty questions with known answers.",
            discussion: """
                A file that does not work here, such as one with a wrong chat template or of a model that is not supported well, \
                answers almost none; small models answer some, good ones nearly all. The exit code is 1 if fewer than a quarter \
                are right. “fm model pull” asks five of them.
                """)

        @Argument(help: "The model (default: the one in use).") var name: String?
        @Flag(help: "Print one JSON object.") var json = false

        func run() async throws {
            let path = try Model.file(named: name)
            let line = ProgressLine("Checking", total: ModelQuestions.all.count)
            let answers: [ModelQuestions.Answer]
            do {
                answers = try await ModelQuestions.ask(path, ModelQuestions.all) {
                    line.show($0, text: "\($0) of \(ModelQuestions.all.count) questions")
                }
            } catch { throw ExitMessage.exit(for: error) }
            line.end()
            let right = answers.count(where: \.isRight)
            if json {
                struct Report: Encodable { var right: Int, answers: [ModelQuestions.Answer] }
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
                try Output().write(
                    String(decoding: try encoder.encode(Report(right: right, answers: answers)), as: UTF8.self) + "\n")
            } else {
                for answer in answers {
                    print(
                        "  \(answer.isRight ? "✓" : "✗") \(answer.question)  \(answer.isRight ? "" : TerminalText.line(answer.answer))"
                    )
                }
                print("\(right) of \(answers.count) right: \(ModelQuestions.judgement(right, of: answers.count))")
            }
            if right * 4 < answers.count { throw ExitCode(1) }
        }
    }
}

/// Questions that almost every language model answers.
enum ModelQuestions {
    struct Question { var text: String, answers: [String] }
    struct Answer: Encodable { var question: String, answer: String, isRight: Bool }

    /// The first five are asked after a download.
    static let all: [Question] = [
        .init(text: "What is the capital of France?", answers: ["paris"]),
        .init(text: "What is 7 plus 5?", answers: ["12", "twelve"]),
        .init(text: "What color is the sky on a clear day?", answers: ["blue"]),
        .init(text: "Which animal says “meow”?", answers: ["cat"]),
        .init(text: "What is the opposite of “hot”?", answers: ["cold"]),
        .init(text: "How many days are in a week?", answers: ["7", "seven"]),
        .init(text: "What is the capital of Japan?", answers: ["tokyo"]),
        .init(text: "Who wrote “Romeo and Juliet”?", answers: ["shakespeare"]),
        .init(text: "What is the chemical formula of water?", answers: ["h2o", "h₂o"]),
        .init(text: "Which planet is known as the red planet?", answers: ["mars"]),
        .init(text: "What is 9 times 6?", answers: ["54", "fifty-four"]),
        .init(text: "What is the largest ocean on Earth?", answers: ["pacific"]),
        .init(text: "Translate “dog” into Spanish. Answer with one word.", answers: ["perro"]),
        .init(text: "At how many degrees Celsius does water boil at sea level?", answers: ["100"]),
        .init(text: "What is the plural of “mouse”, the animal?", answers: ["mice"]),
        .init(text: "Which month comes after March?", answers: ["april"]),
        .init(text: "Which country has the shape of a boot?", answers: ["italy"]),
        .init(text: "How many legs does a spider have?", answers: ["8", "eight"]),
        .init(text: "What do bees make?", answers: ["honey"]),
        .init(text: "Which metal has the symbol Fe?", answers: ["iron"]),
    ]

    static func ask(
        _ path: String, _ questions: [Question], progress: (Int) -> Void = { _ in }
    ) async throws -> [Answer] {
        let model = GGUFLanguageModel(url: URL(filePath: path), contextSize: 1_024, checksText: false)
        var answers: [Answer] = []
        for question in questions {
            // Reasoning comes before the answer.
            let text = try await LanguageModelSession(model: model).respond(
                to: question.text, options: GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 300)
            ).content
            let words = text.lowercased()
            answers.append(
                Answer(question: question.text, answer: text, isRight: question.answers.contains { words.contains($0) }))
            progress(answers.count)
        }
        return answers
    }

    static func judgement(_ right: Int, of count: Int) -> String {
        switch Double(right) / Double(max(1, count)) {
        case 0.75...: "the model works."
        case 0.25...: "the model works; it is a small one, or this is not its language."
        default: "the model does not work here, or is not meant for questions."
        }
    }
}
