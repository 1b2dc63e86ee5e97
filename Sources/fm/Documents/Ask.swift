import ArgumentParser
import Foundation
import FoundationModels
import Retrieval

struct Ask: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ask",
        abstract: "Answer a question from the documents of an index, with citations.",
        discussion: """
            The best passages are put before the question, as far as they fit. Before anything is printed, each statement of \
            the answer is checked: if its numbers, names and words are not in the passage that it cites, the citation is \
            corrected or the statement is left out. The numbers in the answer refer to the list of sources below it; --json \
            lists all passages that the model has read.

            The answer is the most likely one unless a flag such as --temperature or --seed asks for variety. It has at most \
            \(CitedAnswer.defaultResponseTokens) tokens unless --max-tokens is given. --instructions replaces the instructions of this command.

              fm ask --in docs.index "How do I renew a passport?"
              fm ask --in docs.index "Who signed the contract?" --json | jq -r .answer

            If the documents do not answer the question, the command prints “\(CitedAnswer.notInDocuments)” and its exit code \
            is \(CommandFailure.Code.notInDocuments.rawValue).
            """)

    @OptionGroup var search: SearchFlags
    @OptionGroup var flags: GenerationFlags
    @Argument(help: "The question.") var question: String
    @Option(help: "The maximum number of tokens of the passages (default: 30 % of the context window).") var passageTokens: Int?
    @Flag(help: "Print the answer and its sources as JSON.") var json = false

    func validate() throws {
        try requireText(question, "question")
        if let passageTokens, passageTokens < 1 { throw ValidationError("--passage-tokens must be at least 1.") }
    }

    func run() async throws {
        let model = try flags.modelFlags.choice().systemModel(guardrails: flags.guardrails.value)
        let writer = CitedAnswerWriter(model: model, flags: flags, passageTokens: passageTokens, json: json)
        try await writer.answer(question, from: try await search.index(), search.options(.forPrompts))
    }
}
