import ArgumentParser
import Foundation
import FoundationModelsInstallation
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
            let line = ProgressLine("Checking", total: ModelCheck.questionCount)
            defer { line.end() }
            let check = try await ModelCheck.of(URL(filePath: path)) {
                line.show($0, text: "\($0) of \(ModelCheck.questionCount) questions")
            }
            line.end()
            if json {
                struct Report: Encodable { var right: Int, answers: [ModelCheck.Answer] }
                try Output().writeJSON(Report(right: check.right, answers: check.answers))
            } else {
                for answer in check.answers {
                    print(
                        "  \(answer.isRight ? "✓" : "✗") \(answer.question)  \(answer.isRight ? "" : TerminalText.line(answer.answer))"
                    )
                }
                print("\(check.right) of \(check.answers.count) right: \(words(check.judgement))")
            }
            if check.judgement == .fails { throw CommandFailure() }
        }

        private func words(_ judgement: ModelCheck.Judgement) -> String {
            switch judgement {
            case .works: "the model works."
            case .worksPartly: "the model works; it is a small one, or this is not its language."
            case .fails: "the model does not work here, or is not meant for questions."
            }
        }
    }
}
