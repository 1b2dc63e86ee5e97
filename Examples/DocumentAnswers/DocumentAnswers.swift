/// DocumentAnswers: answers from documents, with the places that they are from.
///
///     swift run --traits Macros,SQLite DocumentAnswers Benchmarks/Answers/docs1 "Who pays for a broken window?"
///     swift run --traits Macros,SQLite DocumentAnswers --index docs.index Documentation "How is a new tensor type added?"
///
/// The index is brought up to date first: only new and changed documents are read. It needs an embedding model: `fm model pull embedder`, or
/// `ModelInstallation.default.install(.embedder)` in a program.
///
/// The model cites a passage for each statement; statements that are not in their passage are left out, and so the answer is “The documents
/// do not say.” rather than something that the model remembers or invents.

import ArgumentParser
import Foundation
import Retrieval

@main
struct DocumentAnswers: AsyncParsableCommand {
    @Option(help: "The file of the index.") var index = "answers.index"
    @Argument(help: "A folder with Markdown, text, HTML, PDF or source code.") var folder: String
    @Argument(help: "The question.") var question: String

    func run() async throws {
        let index = try await SearchIndex(url: URL(filePath: index))
        let changes = try await index.update(folder: URL(filePath: folder, directoryHint: .isDirectory))
        print("(\(changes.added + changes.changed) documents were read, \(changes.unchanged) had not changed.)")
        for problem in changes.problems { print("(Not read: \(problem))") }

        let answer = try await CitedAnswer(question: question, from: index, tokens: 1500)
        print("\n\(answer.text)\n")
        for source in answer.sources { print("[\(source.number)] \(source.place)") }
        for statement in answer.dropped { print("(Left out: “\(statement.text)”, because \(statement.reason))") }
    }
}
