import ArgumentParser
import Foundation
import FoundationModels
import Retrieval

struct Ask: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ask",
        abstract: "Answer a question from the documents of an index, with citations.",
        discussion: """
            The best passages are put before the question, as far as they fit. The numbers in the answer refer to the list of \
            sources below it; --json lists all passages that the model has read.

              fm ask --in docs.index "How do I renew a passport?"
              fm ask --in docs.index "Who signed the contract?" --json | jq -r .answer
            """)

    @OptionGroup var search: SearchFlags
    @Argument(help: "The question.") var question: String
    @Option(help: "The maximum number of tokens of the passages (default: 30 % of the context window).") var passageTokens: Int?
    @Option(help: "The maximum number of tokens of the answer.") var maxTokens = 400
    @Option(help: ArgumentHelp("The language model to use this time.", valueName: "name")) var model: String?
    @Flag(help: "Print the answer and its sources as JSON.") var json = false

    func run() async throws {
        if let model { setenv("FM_MODEL", model, 1) }
        do {
            let index = try await search.index()
            let model = SystemLanguageModel.default
            // Small models answer better from a few good passages than from many.
            let budget = passageTokens ?? model.contextSize * 3 / 10
            let context = try await RetrievedContext(
                for: question, from: index, tokens: min(budget, model.contextSize - maxTokens - 200),
                options: search.options(limit: 24, diversity: 0.3), model: model)
            let session = LanguageModelSession(
                model: model, instructions: "You answer questions about the user's documents, briefly and exactly.")
            // The most likely answer: variety is not wanted here.
            let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: maxTokens)
            if json {
                let answer = try await session.respond(to: context.prompt(), options: options).content
                try write(answer, context)
                return
            }
            var (written, answer) = (0, "")
            let output = Output()
            for try await snapshot in session.streamResponse(to: context.prompt(), options: options)
            where snapshot.content.utf8.count > written {
                try output.write(Substring(snapshot.content.utf8.dropFirst(written)))
                written = snapshot.content.utf8.count
                answer = snapshot.content
            }
            try output.write("\n")
            guard !context.citations.isEmpty else {
                Shell.say("(Nothing was found in the documents.)")
                return
            }
            try output.write("\nSources\n" + cited(in: answer, context).map { "  [\($0.number)] \($0.place)\n" }.joined())
        } catch {
            throw Failure.exit(for: error)
        }
    }

    /// The sources that an answer cites; all of them if it cites none.
    private func cited(in answer: String, _ context: RetrievedContext) -> [RetrievedContext.Citation] {
        let cited = context.citations.filter { answer.contains("[\($0.number)]") }
        return cited.isEmpty ? context.citations : cited
    }

    private func write(_ answer: String, _ context: RetrievedContext) throws {
        struct Source: Encodable {
            var number: Int
            var place: String
            var file: String
            var isCited: Bool
            var text: String
        }
        struct Result: Encodable {
            var answer: String
            var sources: [Source]
            var passageTokens: Int
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let sources = context.citations.map { citation in
            Source(
                number: citation.number, place: citation.place, file: citation.passages.first?.path ?? "",
                isCited: answer.contains("[\(citation.number)]"),
                text: citation.passages.map(\.text).joined(separator: "\n"))
        }
        let result = Result(answer: answer, sources: sources, passageTokens: context.tokenCount)
        try Output().write(String(decoding: try encoder.encode(result), as: UTF8.self) + "\n")
    }
}
