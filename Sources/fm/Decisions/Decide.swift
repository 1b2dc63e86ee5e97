import ArgumentParser
import Decisions
import Foundation
import FoundationModels
import Reports
internal import JSON

/// `fm decide`: answers of which every possibility is known, with probabilities.
struct Decide: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Answer a question about a text with probabilities: yes or no, one of several options, or a level.",
        discussion: """
            The text is standard input, or a file that --about names. Nothing is generated: the model says how probable each answer \
            is. A terminal gets bars, a pipe lines with the answer, a tabulator and its probability, the most probable one first.

            EXAMPLES
              fm decide "Is the writer angry?" < mail.txt
              fm decide "Which team should answer?" -o billing -o support -o "sales: offers, prices" < mail.txt
              fm decide "How urgent is it?" --level "can wait" --level today --level now < mail.txt
              fm decide --schema ticket.json < mail.txt      every enumeration, boolean and range of a JSON Schema
              fm decide --questions questions.json --json < mail.txt
              if fm decide --minimum 0.8 "Is this spam?" < mail.txt >/dev/null; then mv mail.txt spam/; fi

            A file of questions has the form of /v1/decisions: a list of {"type": "predicate", "instructions": …}, \
            {"type": "choice", "instructions": …, "choices": [{"value": …, "description": …}]} and {"type": "score", \
            "instructions": …, "levels": [{"label": …}]}, each with a "name" if you like.

            EXIT CODES
              0 as usual; with --minimum: the first answer is as probable   1 it is less probable
            """)

    @Argument(help: "The question, or a statement that is true or false.")
    var question: String?

    @Option(
        name: [.short, .long],
        help: ArgumentHelp(
            "One of the answers, with a description after “: ” if it needs one. Give several.", valueName: "text"))
    var option: [String] = []

    @Option(help: ArgumentHelp("A level of a scale, the lowest one first. Give several.", valueName: "text"))
    var level: [String] = []

    @Option(help: ArgumentHelp("Decide a value of this JSON Schema: a file, or the schema itself.", valueName: "schema"))
    var schema: String?

    @Option(help: ArgumentHelp("Answer the questions of a JSON file.", valueName: "file"))
    var questions: String?

    @Option(help: ArgumentHelp("The text that is asked about (default: standard input).", valueName: "file"))
    var about: String?

    @Option(name: .shortAndLong, help: "Instructions for the model.")
    var instructions: String?

    @OptionGroup var modelFlags: ModelFlags

    @Flag(help: "Ask with the options in several orders, and average: the place of an option matters less. Takes longer.")
    var averageOrders = false

    @Option(help: ArgumentHelp("Use the temperatures that “fm eval --fit” has written.", valueName: "file"))
    var calibration: String?

    @Option(
        help: ArgumentHelp("Fail unless the first question's answer, or yes, is as probable as this, 0 to 1.", valueName: "p"))
    var minimum: Double?

    @Flag(help: "Write JSON.")
    var json = false

    func validate() throws {
        let kinds = [!option.isEmpty, !level.isEmpty, schema != nil, questions != nil].count { $0 }
        if kinds > 1 { throw ValidationError("Give one of --option, --level, --schema and --questions.") }
        if questions != nil, question != nil {
            throw ValidationError("The questions are in the file: leave out “\(question ?? "")”.")
        }
        if kinds == 0 || !option.isEmpty || !level.isEmpty, question == nil { throw ValidationError("There is no question.") }
        if option.count == 1 || level.count == 1 { throw ValidationError("There must be several answers to choose from.") }
        if let minimum, !(0...1).contains(minimum) { throw ValidationError("--minimum must be from 0 to 1.") }
        if let question { try requireText(question, "question") }
    }

    func run() async throws {
        let form = try form()
        let text = try state()
        let model = try modelFlags.choice()
        var options = DecisionOptions(averagesOrders: averageOrders)
        if let calibration { options.calibration = try CalibrationFile.read(calibration) }
        let session = LanguageModelSession(
            model: model.systemModel(guardrails: .permissiveContentTransformations), instructions: instructions)
        let output = DecisionOutput(isJSON: json)
        let first: Double
        if let schema {
            let json = try SchemaFile.read(schema)
            let decided = try await session.decide(
                question, about: text, schema: GenerationSchema(checked: json), options: options)
            try output.write(decided)
            first = decided.leastProbability
        } else {
            guard let form else { return }
            let run = try await session.decisions(about: text, form.items.map(\.question), options: options)
            try output.write(run, form.items)
            guard let answer = run.answers.first else { return }
            first =
                if case .predicate = answer.question.kind { answer.probability } else {
                    answer.distribution.probabilityOfMostLikely
                }
        }
        if let minimum, first < minimum { throw CommandFailure() }
    }

    private func form() throws -> DecisionForm? {
        if let questions {
            do {
                let json = try JSONParser.parse(try TextFile.data(questions))
                return try DecisionForm(json["questions"] ?? json)
            } catch let error as DecisionForm.Problem {
                throw CommandFailure("“\(questions)”: \(error.path): \(error.reason).", code: .wrongUsage)
            } catch let error as JSONSyntaxError {
                throw CommandFailure("“\(questions)”: \(error)", code: .wrongUsage)
            }
        }
        guard schema == nil, let question else { return nil }
        func listed(_ texts: [String], _ key: String) -> JSONValue {
            .array(
                texts.map { text in
                    // “10:15” is a name.
                    let parts = text.split(separator: ": ", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return .string(text) }
                    return .object([.init(key, .string(parts[0])), .init("description", .string(parts[1]))])
                })
        }
        let kind = level.isEmpty ? (option.isEmpty ? "predicate" : "choice") : "score"
        var members: [JSONValue.Member] = [.init("type", .string(kind)), .init("instructions", .string(question))]
        if kind == "choice" { members.append(.init("choices", listed(option, "value"))) }
        if kind == "score" { members.append(.init("levels", listed(level, "label"))) }
        do { return try DecisionForm(list: [.object(members)]) } catch {
            throw CommandFailure("\(error.reason)", code: .wrongUsage)
        }
    }

    /// The text that is asked about; nil if there is none.
    private func state() throws -> String? {
        if let about { return try TextFile.read(about) }
        guard isatty(STDIN_FILENO) == 0 else { return nil }
        let text = try TextFile.read("-")
        return text.isBlank ? nil : text
    }
}

/// Temperatures of decisions in a file.
enum CalibrationFile {
    static func read(_ path: String) throws -> Calibration {
        do { return try JSONDecoder().decode(Calibration.self, from: try TextFile.data(path)) } catch is DecodingError {
            throw CommandFailure(
                "“\(path)” has no temperatures of decisions. “fm eval --fit” writes such a file.", code: .wrongUsage)
        }
    }
}
