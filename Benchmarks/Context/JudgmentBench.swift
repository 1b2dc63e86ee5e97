import ArgumentParser
import Embeddings
import Foundation
import Retrieval

/// Measures how often a search finds the passage that answers a question.
struct JudgmentBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "judgments", abstract: "Measures what searches find, against questions with known answers.",
        discussion: """
            Benchmarks/search fetches the documents and calls this. A question is a line of JSON: the question, a phrase of the \
            passage that answers it, and “same” or “other”: whether it uses the words of the text.
            """)

    @Argument(help: "The folder of documents.") var folder: String
    @Argument(help: "The file of questions.") var questions: String
    @Option(help: "The embedding model.") var embedder: String?
    @Option(help: "The index, a file or postgresql://…; kept if it is given.") var index: String?
    @Option(help: "Tokens of the context with the best passages.") var budget = 1_000
    @Flag(help: "Prints the questions that the combined search does not answer.") var misses = false

    private struct Question: Decodable {
        var question: String
        var answer: String
        var kind: String
    }

    private struct Scores {
        var first = 0.0
        var three = 0.0
        var five = 0.0
        var ten = 0.0
        var reciprocal = 0.0

        mutating func add(rank: Int?) {
            guard let rank else { return }
            if rank == 1 { first += 1 }
            if rank <= 3 { three += 1 }
            if rank <= 5 { five += 1 }
            if rank <= 10 { ten += 1 }
            reciprocal += 1 / Double(rank)
        }
    }

    private static func normalized(_ text: String) -> String {
        text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    func run() async throws {
        let model = embedder.map { GGUFEmbeddingModel(url: URL(filePath: $0)) } ?? .default
        let temporary = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: temporary) }  // the system removes what is left
        let index = try await benchIndex(
            index ?? temporary.appendingPathComponent("index").path, model: model)
        try await index.update(folder: URL(filePath: folder), source: "documents")
        let all = try String(contentsOfFile: questions, encoding: .utf8).split(separator: "\n").map {
            try JSONDecoder().decode(Question.self, from: Data($0.utf8))
        }
        let counts = try await index.counts()
        print("\(all.count) questions, \(counts.documents) documents, \(counts.passages) passages")
        print()
        print("| questions | search | first | among 3 | among 5 | among 10 | mean reciprocal rank (10) |")
        print("|---|---|---|---|---|---|---|")
        var missed: [Question] = []
        for kind in ["same", "other", nil] {
            let questions = all.filter { kind == nil || $0.kind == kind }
            let searches: [(mode: SearchOptions.Mode, reranks: Bool, name: String)] = [
                (.words, false, "words"), (.meaning, false, "meaning"), (.hybrid, false, "both"), (.hybrid, true, "both, ranked"),
            ]
            for (mode, reranks, search) in searches {
                var scores = Scores()
                for question in questions {
                    var options = SearchOptions()
                    (options.limit, options.mode, options.reranks) = (10, mode, reranks)
                    let results = try await index.search(question.question, options: options)
                    let answer = Self.normalized(question.answer)
                    let rank = results.firstIndex { Self.normalized($0.passage.text).contains(answer) }.map { $0 + 1 }
                    scores.add(rank: rank)
                    if kind == nil, reranks, rank == nil { missed.append(question) }
                }
                let name = kind == "same" ? "in the text's words" : kind == "other" ? "in other words" : "all"
                func percent(_ value: Double) -> String { String(format: "%.0f %%", 100 * value / Double(questions.count)) }
                print(
                    "| \(name) | \(search) | \(percent(scores.first)) | \(percent(scores.three)) | \(percent(scores.five)) "
                        + "| \(percent(scores.ten)) "
                        + String(format: "| %.3f |", scores.reciprocal / Double(questions.count)))
            }
        }
        var found = 0
        for question in all {
            let context = try await RetrievedContext(for: question.question, from: index, tokens: budget) { text in
                try await model.tokenCounts(of: [text], as: .document).first ?? 0
            }
            if Self.normalized(context.text).contains(Self.normalized(question.answer)) { found += 1 }
        }
        print()
        print("The answer is in a context of \(budget) tokens: \(found * 100 / max(1, all.count)) % of questions.")
        if misses { for question in missed { print("- \(question.question) (\(question.answer))") } }
    }
}
