import Foundation
import Inference
import Testing

/// Files recorded by Tests/Tools/record_golden.py.
enum GoldenFile {
    struct Logits: Decodable { var prompt: String, tokens: [TokenID], top: [Int], logProbabilities: [Double] }
    struct Tokens: Decodable { var text: String, tokens: [TokenID] }
    struct Dequantized: Decodable { var type: String, bytes: String, values: [Float] }

    static func load<Content: Decodable>(_ name: String, as type: Content.Type) throws -> Content {
        let url = try #require(Bundle.module.url(forResource: "Golden/\(name)", withExtension: "json"))
        return try JSONDecoder().decode(type, from: Data(contentsOf: url))
    }
}

/// The default model; `./test` installs it. A missing model fails the tests that need it, it does not skip them.
enum DefaultModel {
    static let path = ModelStore.directory.appendingPathComponent(ModelCatalogue.small.fileName).path
    private static let shared = Task { try await LoadedModel.load(path: path) }

    static func load() async throws -> LoadedModel { try await shared.value }
}
