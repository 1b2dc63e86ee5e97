import Foundation
import FoundationModels
import FoundationModelsServer
import Retrieval

/// Answers from an index, for the console.
enum DocumentAnswers {
    static func answer(
        from path: String, _ choice: ModelChoice
    ) async throws -> @Sendable (String) async throws -> ModelServer.DocumentAnswer {
        let index = try await SearchIndex(readingFrom: URL(filePath: path), model: Embedder.installedModel(nil))
        let model = choice.systemModel()
        return { question in
            let tokens = CitedAnswer.passageTokens(
                contextSize: model.contextSize, responseTokens: CitedAnswer.defaultResponseTokens)
            let context = try await RetrievedContext(for: question, from: index, tokens: tokens, model: model)
            let answer = try await CitedAnswer(question: question, from: context, model: model)
            return ModelServer.DocumentAnswer(
                text: answer.text,
                citations: answer.sources.map { source -> ModelServer.DocumentAnswer.Citation in
                    // A place is a path with the lines, or pages, after a colon.
                    let path = source.passages.first?.path ?? source.place
                    return .init(
                        number: source.number, source: path,
                        lines: source.place.hasPrefix(path + ":") ? String(source.place.dropFirst(path.count + 1)) : "",
                        text: source.passages.map(\.text).joined(separator: "\n"))
                })
        }
    }
}
