import Foundation
import TestSupport
import Testing

@testable import Inference

/// Late interaction, on tiny random encoders.
struct RankingTests {
    private static let texts: [[TokenID]] = [[5, 6, 7], [9], [4, 4, 8, 3, 2, 10], [7, 6, 5]]

    private func embedder(_ name: String) async throws -> (TextEmbedder, TemporaryFile) {
        let file = try Self.model(name)
        return (try await TextEmbedder.load(path: file.path, threads: 2), file)
    }

    /// A tiny encoder with a tokenizer.
    static func model(_ name: String) throws -> TemporaryFile {
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
        return try TemporaryFile(builder.bytes())
    }

    private func logits(
        _ embedder: TextEmbedder, of candidates: [TextEmbedder.Candidate], for question: [TokenID], ranker: RankerFile
    ) async throws -> [Double] {
        let codes = try await embedder.codes(of: candidates, ranker: ranker)
        let question = try await embedder.question(question, ranker: ranker)
        return codes.map { text in text.withUnsafeBufferPointer { question.logit(of: $0) } }
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
        let logits = try await logits(embedder, of: [candidate([9]), candidate([5])], for: [5], ranker: ranker)
        #expect(abs(logits[0] - expected) < 0.02)
        #expect(abs(logits[1] - 1.25) < 0.02)
    }

    @Test func aTextOfTheSameTokensIsTheMostSimilar() async throws {
        let (embedder, file) = try await embedder("bert")
        defer { withExtendedLifetime(file) {} }
        let ranker = RankerFile(scale: 1, bias: 0.5)
        for text in Self.texts {
            let logits = try await logits(embedder, of: Self.texts.map { candidate($0) }, for: text, ranker: ranker)
            let best = try #require(logits.max())
            #expect(abs(best - 1) < 0.01)
            #expect(zip(Self.texts, logits).allSatisfy { $0 == text || $1 < best })
        }
    }

    @Test func otherTextsOfABatchDoNotMatter() async throws {
        let (embedder, file) = try await embedder("bert")
        defer { withExtendedLifetime(file) {} }
        let ranker = RankerFile(scale: 1, bias: 0)
        let many = (0..<150).map { candidate(Self.texts[$0 % 4] + Self.texts[($0 + 1) % 4], Self.texts[$0 % 4].count) }
        let together = try await logits(embedder, of: many, for: [8, 5, 2], ranker: ranker)
        for (index, one) in many.enumerated().prefix(8) {
            #expect(try await logits(embedder, of: [one], for: [8, 5, 2], ranker: ranker)[0] == together[index])
        }
        // What stands after the compared tokens is read: it changes their vectors.
        let alone = try await logits(embedder, of: [candidate(Self.texts[0])], for: [8, 5, 2], ranker: ranker)[0]
        #expect(alone != together[0])
        #expect(try await logits(embedder, of: [], for: [8], ranker: ranker).isEmpty)
        #expect(try await logits(embedder, of: [candidate([])], for: [8], ranker: ranker).count == 1)
    }

    // MARK: - The trained part

    /// An adapter for the tiny `bert`, in the form of `.fmadapter`.
    static func adapter(
        rank: Int = 2, weights: Int, change: Float, projection: [Float16] = [], recall: [Float] = []
    ) throws -> Data {
        var random = SeededGenerator(4)
        let name = "blk.0.attn_output.weight"
        let sizes = ["lora_a": [rank, weights], "lora_b": [weights, rank]]
        var data = Data()
        var header: [String: Any] = [
            "__metadata__": [
                "format": "fmadapter", "version": "1", "architecture": "bert", "alpha": "\(rank)", "scale": "3", "bias": "-1",
                "question_weights": (0..<weights).map { $0 == 0 ? "5" : "0" }.joined(separator: " "),
                "projection": projection.withUnsafeBytes { Data($0).base64EncodedString() },
                "recall_weights": recall.map { "\($0)" }.joined(separator: " "),
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
        func ranked(_ contents: Data, onDisk: Bool) async throws -> [Double] {
            let file = try TemporaryFile(Array(contents), suffix: ".fmadapter")
            let adapter = try onDisk ? AdapterFile(path: file.path) : AdapterFile(contents: contents, name: "the ranker")
            return try await self.logits(
                embedder, of: Self.texts.map { candidate($0) }, for: [5, 6, 9], ranker: RankerFile(adapter: adapter))
        }
        let same = try await ranked(Self.adapter(weights: width, change: 0), onDisk: false)
        let changed = try await ranked(Self.adapter(weights: width, change: 1), onDisk: false)
        #expect(zip(same, changed).contains { abs($0 - $1) > 1e-3 })
        #expect(try await ranked(Self.adapter(weights: width, change: 1), onDisk: true) == changed)
        #expect(try await ranked(Self.adapter(weights: width, change: 0), onDisk: false) == same)
        // Vectors of texts are those of the model without it.
        let before = try await embedder.embed([Self.texts[2]])
        _ = try await ranked(Self.adapter(weights: width, change: 1), onDisk: false)
        #expect(try await embedder.embed([Self.texts[2]]) == before)
    }

    /// Vectors are compared after the projection; the weights of prompts see them before it.
    @Test func theProjectionShortensVectors() async throws {
        let (embedder, file) = try await embedder("bert")
        defer { withExtendedLifetime(file) {} }
        let width = embedder.shape.width
        let kept = 4
        let rows = (0..<kept * width).map { Float16($0 / width == $0 % width ? 1 : 0) }
        let recall = (0..<width).map { Float($0 % 3) } + [0.5]
        func ranker(_ projection: [Float16], _ recall: [Float]) throws -> RankerFile {
            try RankerFile(
                adapter: AdapterFile(
                    contents: Self.adapter(weights: width, change: 0, projection: projection, recall: recall), name: "the ranker")
            )
        }
        let short = try ranker(rows, recall)
        let vectors = try await embedder.embed([[5], [9]])
        let (one, other) = (Array(vectors[0].prefix(kept)), Array(vectors[1].prefix(kept)))
        let expected = cosine(one, other) / (cosine(one, one) * cosine(other, other)).squareRoot()
        let codes = try await embedder.codes(of: [candidate([9]), candidate([])], ranker: short)
        #expect(codes.map(\.count) == [kept, 0])
        let logit = try await logits(embedder, of: [candidate([9])], for: [5], ranker: short)[0]
        #expect(abs(logit - ((expected - 0.5) * 3 - 1)) < 0.05)
        let asked = try #require(try await embedder.question([5], ranker: short).recall)
        #expect(abs(asked - zip(vectors[0], recall).reduce(0.5) { $0 + Double($1.0) * Double($1.1) }) < 1e-3)
        #expect(try await embedder.question([5], ranker: ranker([], [])).recall == nil)
        let wrongs: [(projection: [Float16], recall: [Float])] = [
            (Array(rows.dropLast()), []), ([Float16](repeating: 1, count: (width + 1) * width), []), ([], [1, 2]),
        ]
        for (projection, recall) in wrongs {
            let wrong = try ranker(projection, recall)
            await #expect(throws: ModelError.self) { try await embedder.question([5], ranker: wrong) }
            await #expect(throws: ModelError.self) { try await embedder.codes(of: [candidate([5])], ranker: wrong) }
        }
    }

    @Test func damagedBytesAreErrors() async throws {
        let (embedder, file) = try await embedder("bert")
        defer { withExtendedLifetime(file) {} }
        let whole = try Self.adapter(weights: embedder.shape.width, change: 1)
        for count in [0, 7, 8, 40, whole.count / 2, whole.count - 1] {
            #expect(throws: ModelError.self) { try AdapterFile(contents: whole.prefix(count), name: "the ranker") }
        }
        // It is made for another width.
        let other = try RankerFile(adapter: AdapterFile(contents: Self.adapter(weights: 8, change: 1), name: "the ranker"))
        await #expect(throws: ModelError.self) { try await logits(embedder, of: [candidate([5])], for: [5], ranker: other) }
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
