import ArgumentParser
import Embeddings
import Foundation
import Retrieval
import TextSearch

#if PostgreSQL
import FoundationModelsPostgreSQL
#endif

/// Builds an index of generated passages and measures searches in it.
struct SearchBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "search", abstract: "Measures exact vector search and hybrid search in an index.")

    @Option(help: "Number of passages.") var passages = 100_000
    @Option(help: "Number of queries.") var queries = 200
    @Option(help: "The index, a file or postgresql://…; kept if it is given.") var index: String?

    func run() async throws {
        try vectors()
        try await query()
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system removes what is left
        var random = Numbers(seed: 1)
        // The frequencies of words are those of natural texts: the word of rank r has the frequency 1/r.
        let words = (0..<30_000).map { "w" + String($0, radix: 36) }
        func word(_ random: inout Numbers) -> String {
            words[min(words.count - 1, Int(exp(Double(random.next(1_000_000)) / 1_000_000 * log(Double(words.count)))))]
        }
        let model = RandomEmbedder()
        let index = try await benchIndex(
            index ?? folder.appendingPathComponent("bench.index").path, model: model)
        let perDocument = 500
        if try await index.counts().passages == 0 {
            for document in 0..<passages / perDocument {
                // Each paragraph is a passage.
                let blocks = (0..<perDocument).map { number in
                    ExtractedText.Block(
                        text: (0..<120).map { _ in word(&random) }.joined(separator: " ") + ".", headings: ["\(number)"])
                }
                try await index.add(ExtractedText(blocks: blocks), path: "\(document).txt")
            }
        }
        var times: [SearchOptions.Mode: [Double]] = [:]
        _ = try await index.search("warm up")
        for _ in 0..<queries {
            let query = (0..<6).map { _ in word(&random) }.joined(separator: " ")
            for mode in SearchOptions.Mode.allCases {
                var options = SearchOptions()
                options.mode = mode
                let start = ContinuousClock.now
                _ = try await index.search(query, options: options)
                times[mode, default: []].append(start.duration(to: .now).milliseconds)
            }
        }
        print("\(try await index.counts().passages) passages, \(queries) queries of six words")
        for mode in SearchOptions.Mode.allCases {
            let sorted = (times[mode] ?? []).sorted()
            print(
                String(
                    format: "  %-8@ median %.1f ms, 95 %% below %.1f ms", mode.rawValue as NSString, sorted[sorted.count / 2],
                    sorted[sorted.count * 95 / 100]))
        }
    }

    /// The vector of a query, with the default embedding model.
    private func query() async throws {
        let model = GGUFEmbeddingModel.default
        guard model.isAvailable else { return }
        let text = "where can a passport be renewed in the city"
        let tokens = try await model.tokenCounts(of: [text], as: .query).first ?? 0
        var times: [Double] = []
        for _ in 0..<200 {
            let start = ContinuousClock.now
            _ = try await model.embed([text], as: .query)
            times.append(start.duration(to: .now).milliseconds)
        }
        print(String(format: "vector of a query of %d tokens: median %.2f ms", tokens, times.sorted()[100]))
    }

    /// Exact search alone, on one core.
    private func vectors() throws {
        var table = VectorTable(dimension: 384)
        var random = Numbers(seed: 2)
        let all = (0..<1_000).map { _ in RandomEmbedder.vector(&random) }
        for key in 0..<passages { table.append(Int64(key), all[key % all.count]) }
        var times: [Double] = []
        for query in all.prefix(100) {
            let start = ContinuousClock.now
            _ = table.nearest(to: query, count: 100)
            times.append(start.duration(to: .now).milliseconds)
        }
        print(String(format: "exact search in %d vectors of 384 elements: median %.2f ms", passages, times.sorted()[50]))
    }
}

/// Opens an index in a file or on a server.
func benchIndex(
    _ place: String, model: any EmbeddingModel
) async throws -> SearchIndex {
    if place.hasPrefix("postgresql:") {
        #if PostgreSQL
        return try await SearchIndex(postgreSQL: place, schema: "bench", model: model)
        #else
        throw ValidationError("this program was built without PostgreSQL")
        #endif
    }
    return try await SearchIndex(url: URL(filePath: place), model: model)
}

/// Vectors that depend on the text only by its hash: searches cost the same as with real ones.
private struct RandomEmbedder: EmbeddingModel {
    func info() async throws -> EmbeddingModelInfo {
        EmbeddingModelInfo(name: "random", identifier: "random", dimension: 384, maximumTokenCount: 256)
    }

    func embed(_ texts: [String], as role: EmbeddingRole) async throws -> [[Float]] {
        texts.map { text in
            var random = Numbers(seed: text.utf8.reduce(7) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 })
            return Self.vector(&random)
        }
    }

    static func vector(_ random: inout Numbers) -> [Float] {
        let values = (0..<384).map { _ in Float(random.next(2_001) - 1_000) }
        let length = values.reduce(0) { $0 + $1 * $1 }.squareRoot()
        return values.map { $0 / length }
    }

    func tokenCounts(of texts: [String], as role: EmbeddingRole) async throws -> [Int] {
        texts.map { $0.utf8.count { $0 == 0x20 } + 3 }
    }
}
