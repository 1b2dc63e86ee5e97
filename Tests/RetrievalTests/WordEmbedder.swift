import Embeddings
import Foundation

/// An embedding model for tests: the vector of a text is the sum of fixed random vectors of its words. Words of a group in
/// `synonyms` have the same vector. A token is a word.
struct WordEmbedder: EmbeddingModel {
    var identifier = "words-1"
    var dimension = 64
    var maximumTokens = 256
    var synonyms: [String: String] = [:]
    /// Called before texts are embedded.
    var embedding: @Sendable () -> Void = {}

    func info() async throws -> EmbeddingModelInfo {
        EmbeddingModelInfo(name: "words", identifier: identifier, dimension: dimension, maximumTokenCount: maximumTokens)
    }

    private func words(_ text: String) -> [String] {
        text.lowercased().split { !$0.isLetter && !$0.isNumber }.map { synonyms[String($0)] ?? String($0) }
    }

    func embed(_ texts: [String], as role: EmbeddingRole) async throws -> [[Float]] {
        embedding()
        return texts.map { text in
            var sum = [Float](repeating: 0, count: dimension)
            for word in words(text) {
                var state = word.utf8.reduce(UInt64(14_695_981_039_346_656_037)) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
                for index in sum.indices {
                    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    sum[index] += Float(Int64(bitPattern: state) >> 40) / Float(1 << 23)
                }
            }
            let length = sum.reduce(0) { $0 + $1 * $1 }.squareRoot()
            return length > 0 ? sum.map { $0 / length } : sum
        }
    }

    func tokenCounts(of texts: [String], as role: EmbeddingRole) async throws -> [Int] { texts.map { words($0).count + 2 } }
}

/// A folder that is removed with the value.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }  // the system removes what is left

    func write(_ name: String, _ text: String) throws {
        let file = url.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
    }
}
