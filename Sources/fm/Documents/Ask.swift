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
            \(Ask.defaultMaxTokens) tokens unless --max-tokens is given. --instructions replaces the instructions of this command.

              fm ask --in docs.index "How do I renew a passport?"
              fm ask --in docs.index "Who signed the contract?" --json | jq -r .answer

            If the documents do not answer the question, the command prints “\(CitedAnswer.notInDocuments)” and its exit code \
            is \(CommandFailure.Code.notInDocuments.rawValue).
            """)

    /// Enough for three statements. Room that the answer does not need is missing for passages.
    static let defaultMaxTokens = 400

    /// The number of tokens that instructions, task and schema need, and a question of some length.
    static let reservedTokens = 350

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
        try flags.selectModel()
        let writer = CitedAnswerWriter(model: flags.systemModel, flags: flags, passageTokens: passageTokens, json: json)
        try await writer.answer(question, from: try await search.index(), search.options(limit: 24, diversity: 0.3))
    }
}

/// Answers questions from the passages of an index, and writes the answers with their sources.
struct CitedAnswerWriter {
    let model: SystemLanguageModel
    let flags: GenerationFlags
    var passageTokens: Int?
    let json: Bool

    /// - Throws: After the answer was written, ``CommandFailure`` if the documents do not answer the question, or if the answer was ended
    ///   because it repeated itself.
    func answer(_ question: String, from index: SearchIndex, _ search: SearchOptions) async throws {
        let context = try await RetrievedContext(
            for: question, from: index, tokens: try passageBudget(model.contextSize), options: search, model: model)
        let answer = try await CitedAnswer(
            question: question, from: context, model: model, instructions: flags.instructions, options: options)
        if json { try writeJSON(answer, context) } else { try write(answer) }
        let failure = CommandFailure.ofEnd(answer.usage, limitMessage: flags.limitMessage(Ask.defaultMaxTokens))
        if !answer.isInDocuments { throw CommandFailure(failure?.description ?? "", code: .notInDocuments) }
        if let failure { throw failure }
    }

    /// The maximum number of tokens of the passages.
    ///
    /// - Throws: `ValidationError` if there is no room for passages.
    private func passageBudget(_ contextSize: Int) throws -> Int {
        let room = contextSize - (flags.maxTokens ?? Ask.defaultMaxTokens) - Ask.reservedTokens
        guard room > 0 else {
            throw ValidationError("--max-tokens leaves no room for passages in the context window of \(contextSize) tokens.")
        }
        // Small models answer better from a few good passages than from many.
        return min(passageTokens ?? contextSize * 3 / 10, room)
    }

    /// The flags; without any on variety, the most likely answer: it is not wanted here.
    private var options: GenerationOptions {
        var options = flags.options
        options.maximumResponseTokens = flags.maxTokens ?? Ask.defaultMaxTokens
        if options.samplingMode == nil, options.temperature == nil, flags.sampling.minP == nil { options.samplingMode = .greedy }
        return options
    }

    private func write(_ answer: CitedAnswer) throws {
        var lines = [answer.text]
        if answer.isInDocuments {
            lines += ["", "Sources"] + answer.sources.map { "  [\($0.number)] \($0.place)\(headings(of: $0, prefix: "  "))" }
        }
        let text = lines.joined(separator: "\n") + "\n"
        try Output().write(text)
    }

    /// The headings above a source; empty if there are none.
    private func headings(of source: RetrievedContext.Citation, prefix: String = "") -> String {
        guard let headings = source.passages.first?.headings, !headings.isEmpty else { return "" }
        return prefix + headings.joined(separator: " › ")
    }

    private struct Source: Encodable {
        var number: Int
        var place: String
        var file: String
        var heading: String
        var isCited: Bool
        var text: String
    }

    private struct Report: Encodable {
        var answer: String
        var isInDocuments: Bool
        var statements: [CitedAnswer.Statement]
        var dropped: [CitedAnswer.Dropped]
        var sources: [Source]
        var passageTokens: Int
    }

    private func writeJSON(_ answer: CitedAnswer, _ context: RetrievedContext) throws {
        let cited = Set(answer.sources.map(\.number))
        let sources = context.citations.map { citation in
            Source(
                number: citation.number, place: citation.place, file: citation.passages.first?.path ?? "",
                heading: headings(of: citation), isCited: cited.contains(citation.number),
                text: citation.passages.map(\.text).joined(separator: "\n"))
        }
        let report = Report(
            answer: answer.text, isInDocuments: answer.isInDocuments, statements: answer.statements, dropped: answer.dropped,
            sources: sources, passageTokens: context.tokenCount)
        try Output().writeJSON(report)
    }
}
