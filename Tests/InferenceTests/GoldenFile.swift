import Foundation
import Inference
import InstalledModels
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

/// The small model of the catalogue, which `./test` installs. If it is missing, tests that need it fail; they are not
/// skipped.
enum SmallModel {
    static let path = ModelStore.directory.appendingPathComponent(ModelCatalogue.small.fileName).path
    private static let shared = Task { try await LoadedModel.load(path: path, defaults: ModelCatalogue.defaults) }

    static func load() async throws -> LoadedModel { try await shared.value }
}
