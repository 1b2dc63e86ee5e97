import ArgumentParser
import Foundation
import FoundationModels
import FoundationModelsGGUF
import Inference

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
                answers = try await ModelQuestions.ask(path, ModelQuestions.all) { line.show($0, text: "\($0) of 20 questions") }
            } catch { throw Failure.exit(for: error) }
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

    struct Recommend: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "recommend",
            abstract: "Show which model is best for this machine.",
            discussion: """
                The speed is estimated: a token needs all weights, so the rate at which this machine reads memory divided by the \
                size of the file. The scores are those of the publishers (MMLU-Pro, without reasoning where there are two).
                """)

        func run() throws {
            let memory = SystemMemory.current.available() ?? SystemMemory.total
            let rate = ModelAdvice.rate
            let best = ModelAdvice.best(memory: memory, bytesPerSecond: rate)
            print("  \(TerminalText.padded("name", cells: 22))   size     memory   tokens/s   MMLU-Pro")
            for model in ModelAdvice.ranked {
                let needs = Model.memory(forBytes: model.size)
                let fits = needs < memory
                let speed = ModelAdvice.tokensPerSecond(model, rate)
                let text =
                    (model.name == best.name ? "* " : "  ") + TerminalText.padded(model.name, cells: 22)
                    + String(format: "%5d MB %7d MB %9.0f   ", model.size / 1_000_000, needs / 1_000_000, speed)
                print(text + (model.score.map { "\($0)" } ?? "–") + (fits ? "" : "   too large for the free memory"))
            }
            let isInstalled = ModelStore.installed.contains { $0.name == best.name }
            print("\n\(best.title) is the best for this machine: fm model \(isInstalled ? "use" : "pull") \(best.name)")
        }
    }
}

/// Which model of the catalogue suits a machine.
enum ModelAdvice {
    /// The models that are recommended, the best first.
    static let ranked = ["qwen3-4b-2507", "gemma-4-e2b", "qwen3.5-2b", ModelCatalogue.standard.name, ModelCatalogue.small.name]
        .compactMap { ModelCatalogue.entry(named: $0) }

    /// Bytes per second that the processor reads; measured.
    static var rate: Double {
        // Without memory for the measurement, a usual machine is assumed.
        guard let pool = try? WorkerPool.shared(), let rate = MemoryRate.measure(bytes: 256 << 20, pool: pool) else {
            return 20e9
        }
        return rate
    }

    /// Below this speed, reading is faster than writing.
    private static let minimumSpeed = 6.0

    static func tokensPerSecond(_ model: PublishedModel, _ bytesPerSecond: Double) -> Double {
        // Gemma 4 E2B reads a part of its weights, the embeddings of its layers, only for the tokens that occur.
        let share = model.name == "gemma-4-e2b" ? 0.55 : 1
        return bytesPerSecond * MemoryRate.reachedShare / (Double(model.size) * share)
    }

    static func best(memory: Int, bytesPerSecond: Double) -> PublishedModel {
        ranked.first { model in
            // Half of the free memory stays for other programs.
            Model.memory(forBytes: model.size) * 2 < memory && tokensPerSecond(model, bytesPerSecond) >= minimumSpeed
        } ?? ModelCatalogue.small
    }

    /// Says once that a better model than the default one would run here. Only people are told: not scripts, and nobody who has chosen
    /// a model.
    static func sayOnce() {
        let environment = ProcessInfo.processInfo.environment
        let standard = ModelCatalogue.standard
        guard isatty(STDERR_FILENO) == 1, environment["FM_MODEL"] ?? "" == "", ModelStore.chosenModel == nil,
            ModelStore.systemModelPath.hasSuffix("/" + standard.fileName)
        else { return }
        let note = ModelStore.sourceDirectory.appendingPathComponent(".recommended")
        guard !FileManager.default.fileExists(atPath: note.path), let memory = SystemMemory.current.available() else { return }
        let best = best(memory: memory, bytesPerSecond: rate)
        guard best.name != standard.name, best.name != ModelCatalogue.small.name else { return }
        do { try Data().write(to: note) } catch { return }  // it would be said each time
        Shell.say("(This machine can run a better model, \(best.title): “fm model recommend” says more.)")
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
