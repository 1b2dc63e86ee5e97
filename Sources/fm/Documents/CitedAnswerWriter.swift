import ArgumentParser
import Foundation
import FoundationModels
import Retrieval

/// Answers questions from the passages of an index, and writes the answers with their sources.
struct CitedAnswerWriter {
    let model: SystemLanguageModel
    let flags: GenerationFlags
    var passageTokens: Int?
    let json: Bool

    /// - Parameter search: How to search; nil for the passages of prompts.
    /// - Throws: After the answer was written, ``CommandFailure`` if the documents do not answer the question, or if the answer was ended
    ///   because it repeated itself.
    func answer(_ question: String, from index: SearchIndex, _ search: SearchOptions? = nil) async throws {
        let context = try await RetrievedContext(
            for: question, from: index, tokens: try passageBudget(model.contextSize), options: search, model: model)
        let answer = try await CitedAnswer(
            question: question, from: context, model: model, instructions: flags.instructions, options: options)
        if json { try writeJSON(answer, context) } else { try Output().write(answer.textWithSources + "\n") }
        let failure = CommandFailure.ofEnd(answer.usage, limitMessage: flags.limitMessage(CitedAnswer.defaultResponseTokens))
        if !answer.isInDocuments { throw CommandFailure(failure?.description ?? "", code: .notInDocuments) }
        if let failure { throw failure }
    }

    /// The maximum number of tokens of the passages.
    ///
    /// - Throws: `ValidationError` if there is no room for passages.
    private func passageBudget(_ contextSize: Int) throws -> Int {
        let response = flags.maxTokens ?? CitedAnswer.defaultResponseTokens
        let room = CitedAnswer.maximumPassageTokens(contextSize: contextSize, responseTokens: response)
        guard room > 0 else {
            throw ValidationError("--max-tokens leaves no room for passages in the context window of \(contextSize) tokens.")
        }
        return min(passageTokens ?? CitedAnswer.passageTokens(contextSize: contextSize, responseTokens: response), room)
    }

    /// The flags; without any on variety, the most likely answer: it is not wanted here.
    private var options: GenerationOptions {
        var options = flags.options
        options.maximumResponseTokens = flags.maxTokens ?? CitedAnswer.defaultResponseTokens
        if options.samplingMode == nil, options.temperature == nil, flags.sampling.minP == nil { options.samplingMode = .greedy }
        return options
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
                heading: citation.headings.joined(separator: " › "), isCited: cited.contains(citation.number),
                text: citation.passages.map(\.text).joined(separator: "\n"))
        }
        let report = Report(
            answer: answer.text, isInDocuments: answer.isInDocuments, statements: answer.statements, dropped: answer.dropped,
            sources: sources, passageTokens: context.tokenCount)
        try Output().writeJSON(report)
    }
}
