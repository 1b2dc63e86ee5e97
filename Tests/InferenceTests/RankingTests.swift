import Foundation
import TestSupport
import Testing

@testable import Inference

/// Late interaction, on tiny random encoders.
struct RankingTests {
    private static let texts: [[TokenID]] = [[5, 6, 7], [9], [4, 4, 8, 3, 2, 10], [7, 6, 5]]

    private func embedder(_ name: String) async throws -> (TextEmbedder, TemporaryFile) {
        let recipe = try GoldenFile.load("Encoders/\(name)", as: ArchitectureTests.Recipe.self)
        var builder = recipe.builder()
        // The recorded models have no tokenizer. Nothing is tokenised here.
        builder.metadata.removeAll { $0.0 == "tokenizer.ggml.model" }
        let tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + (4..<96).map { "\u{2581}word\($0)" }
        builder.metadata += [
            ("tokenizer.ggml.model", .string("bert")), ("tokenizer.ggml.tokens", .strings(tokens)),
            ("tokenizer.ggml.unknown_token_id", .uint32(1)), ("tokenizer.ggml.bos_token_id", .uint32(2)),
            ("tokenizer.ggml.eos_token_id", .uint32(3)),
        ]
        let file = try TemporaryFile(builder.bytes())
        return (try await TextEmbedder.load(path: file.path, threads: 2), file)
    }

    private func candidate(_ tokens: [TokenID], _ compared: Int? = nil) -> TextEmbedder.Candidate {
        .init(tokens: tokens, compared: compared ?? tokens.count)
    }

    private func cosine(_ one: [Float], _ other: [Float]) -> Double {
        zip(one, other).reduce(0) { $0 + Double($1.0) * Double($1.1) }
    }

    /// The vector of a text of one token is that of its token.
    @Test(arguments: ["bert", "modern-bert"])
    func logitsAreCosinesOfTokens(name: String) async throws {
        let (embedder, file) = try await embedder(name)
        defer { withExtendedLifetime(file) {} }
        let ranker = RankerFile(scale: 2, bias: 0.25)
        let vectors = try await embedder.embed([[5], [9]])
        let expected = (cosine(vectors[0], vectors[1]) - 0.5) * 2 + 0.25
        let logits = try await embedder.logits(of: [candidate([9]), candidate([5])], for: [5], ranker: ranker)
        #expect(abs(logits[0] - expected) < 1e-4)
        #expect(abs(logits[1] - 1.25) < 1e-4)
    }

    @Test func aTextOfTheSameTokensIsTheMostSimilar() async throws {
        let (embedder, file) = try await embedder("bert")
        defer { withExtendedLifetime(file) {} }
        let ranker = RankerFile(scale: 1, bias: 0.5)
        for text in Self.texts {
            let logits = try await embedder.logits(of: Self.texts.map { candidate($0) }, for: text, ranker: ranker)
            let best = try #require(logits.max())
            #expect(abs(best - 1) < 1e-4)
            #expect(zip(Self.texts, logits).allSatisfy { $0 == text || $1 < best })
        }
    }

    @Test func otherTextsOfABatchDoNotMatter() async throws {
        let (embedder, file) = try await embedder("bert")
        defer { withExtendedLifetime(file) {} }
        let ranker = RankerFile(scale: 1, bias: 0)
        let many = (0..<150).map { candidate(Self.texts[$0 % 4] + Self.texts[($0 + 1) % 4], Self.texts[$0 % 4].count) }
        let together = try await embedder.logits(of: many, for: [8, 5, 2], ranker: ranker)
        for (index, one) in many.enumerated().prefix(8) {
            #expect(try await embedder.logits(of: [one], for: [8, 5, 2], ranker: ranker)[0] == together[index])
        }
        // What stands after the compared tokens is read: it changes their vectors.
        let alone = try await embedder.logits(of: [candidate(Self.texts[0])], for: [8, 5, 2], ranker: ranker)[0]
        #expect(alone != together[0])
        #expect(try await embedder.logits(of: [], for: [8], ranker: ranker).isEmpty)
        #expect(try await embedder.logits(of: [candidate([])], for: [8], ranker: ranker).count == 1)
    }

    // MARK: - The trained part

    /// An adapter for the tiny `bert`, in the form of `.fmadapter`.
    private func adapter(rank: Int = 2, weights: Int, change: Float) throws -> Data {
        var random = SeededGenerator(4)
        let name = "blk.0.attn_output.weight"
        let sizes = ["lora_a": [rank, weights], "lora_b": [weights, rank]]
        var data = Data()
        var header: [String: Any] = [
            "__metadata__": [
                "format": "fmadapter", "version": "1", "architecture": "bert", "alpha": "\(rank)", "scale": "3", "bias": "-1",
                "question_weights": (0..<weights).map { $0 == 0 ? "5" : "0" }.joined(separator: " "),
            ]
        ]
        for (half, shape) in sizes.sorted(by: { $0.key < $1.key }) {
            let values = (0..<shape[0] * shape[1]).map { _ in random.uniform(-1...1) * change }
            let start = data.count
            for value in values { withUnsafeBytes(of: value.bitPattern.littleEndian) { data.append(contentsOf: $0) } }
            header["\(name).\(half)"] = ["dtype": "F32", "shape": shape, "data_offsets": [start, data.count]]
        }
        let text = try JSONSerialization.data(withJSONObject: header)
        return withUnsafeBytes(of: UInt64(text.count).littleEndian) { Data($0) } + text + data
    }

    @Test func theTrainedPartIsUsed() async throws {
        let (embedder, file) = try await embedder("bert")
        defer { withExtendedLifetime(file) {} }
        let width = embedder.shape.width
        func logits(_ contents: Data, onDisk: Bool) async throws -> [Double] {
            let file = try TemporaryFile(Array(contents), suffix: ".fmadapter")
            let adapter = try onDisk ? AdapterFile(path: file.path) : AdapterFile(contents: contents, name: "the ranker")
            return try await embedder.logits(
                of: Self.texts.map { candidate($0) }, for: [5, 6, 9], ranker: RankerFile(adapter: adapter))
        }
        let same = try await logits(adapter(weights: width, change: 0), onDisk: false)
        let changed = try await logits(adapter(weights: width, change: 1), onDisk: false)
        #expect(zip(same, changed).contains { abs($0 - $1) > 1e-3 })
        #expect(try await logits(adapter(weights: width, change: 1), onDisk: true) == changed)
        #expect(try await logits(adapter(weights: width, change: 0), onDisk: false) == same)
        // Vectors of texts are those of the model without it.
        let before = try await embedder.embed([Self.texts[2]])
        _ = try await logits(adapter(weights: width, change: 1), onDisk: false)
        #expect(try await embedder.embed([Self.texts[2]]) == before)
    }

    @Test func damagedBytesAreErrors() async throws {
        let (embedder, file) = try await embedder("bert")
        defer { withExtendedLifetime(file) {} }
        let whole = try adapter(weights: embedder.shape.width, change: 1)
        for count in [0, 7, 8, 40, whole.count / 2, whole.count - 1] {
            #expect(throws: ModelError.self) { try AdapterFile(contents: whole.prefix(count), name: "the ranker") }
        }
        // It is made for another width.
        let other = try RankerFile(adapter: AdapterFile(contents: adapter(weights: 8, change: 1), name: "the ranker"))
        await #expect(throws: ModelError.self) { try await embedder.logits(of: [candidate([5])], for: [5], ranker: other) }
        #expect(throws: ModelError.self) {
            let text = String(decoding: whole, as: UTF8.self)
            #expect(text.contains("question_weights"))
            var damaged = whole
            let range = try #require(damaged.range(of: Data("\"bias\":\"-1\"".utf8)))
            damaged.replaceSubrange(range, with: Data("\"bias\":\"xx\"".utf8))
            _ = try RankerFile(adapter: AdapterFile(contents: damaged, name: "the ranker"))
        }
    }
}
