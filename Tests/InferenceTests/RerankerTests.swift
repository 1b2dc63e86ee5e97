import Embeddings
import Foundation
import FoundationModels
import TestSupport
import Testing

@testable import ContextKit

/// The ranker as programs use it, with a tiny random encoder.
struct RerankerTests {
    private let model: TemporaryFile
    private let trained: TemporaryFile

    init() throws {
        model = try RankingTests.model("bert")
        trained = try TemporaryFile(Array(RankingTests.adapter(weights: 64, change: 1)), suffix: ".fmadapter")
    }

    private var embedder: GGUFEmbeddingModel { GGUFEmbeddingModel(url: URL(filePath: model.path)) }
    private var reranker: Reranker { Reranker(model: embedder, file: URL(filePath: trained.path)) }
    private static let texts = ["word5 word6", "word9", "word40 word41 word42 word5", ""]

    @Test func preparedTextsHaveTheSameScores() async throws {
        let candidates = Self.texts.map { Reranker.Candidate($0, context: "word7 word8") }
        let prepared = try await reranker.prepared(candidates)
        let scores = try await reranker.scores(of: prepared, for: "word5")
        #expect(try await reranker.scores(of: candidates, for: "word5") == scores)
        let stored = prepared.map { Reranker.PreparedText(data: $0.data) }
        #expect(try await reranker.scores(of: stored, for: "word5") == scores)
        #expect(scores.allSatisfy { (0...1).contains($0) })
        // The context is read.
        #expect(try await reranker.scores(of: Self.texts, for: "word5") != scores)
        #expect(try await reranker.identifier() != nil)
        // Another model, or none.
        #expect(try await Reranker(model: embedder).identifier() == nil)
        let missing = Reranker(model: GGUFEmbeddingModel(url: URL(filePath: "/nowhere/model.gguf")))
        #expect(try await missing.identifier() == nil)
        await #expect(throws: EmbeddingError.self) { try await missing.scores(of: ["a"], for: "b") }
    }

    @Test func longTextsAreReadInParts() async throws {
        // The model reads 64 tokens: 26, two marks and a context.
        let words = (0..<100).map { "word\(5 + $0 % 80)" }
        let long = try await reranker.prepared([.init(words.joined(separator: " "))])[0]
        // Four parts of 25 tokens, each with two marks.
        #expect(long.data.count == 4 * (4 + 27 * 64))
        let parts = stride(from: 0, to: 100, by: 25).map { words[$0..<$0 + 25].joined(separator: " ") }
        let scores = try await reranker.scores(of: parts, for: "word11 word12")
        #expect(try await reranker.scores(of: [long], for: "word11 word12")[0] == scores.max())
        let endless = try await reranker.prepared([.init([String](repeating: "word9", count: 50_000).joined(separator: " "))])[0]
        #expect(endless.data.count == Reranker.maximumParts * (4 + 28 * 64))
    }

    @Test func damagedDataHasNoScore() async throws {
        let whole = try await reranker.prepared([.init("word5 word6 word7")])[0].data
        var texts: [Data] = [
            Data(), Data([1]), Data([255, 255, 255, 255]), Data([0, 0, 0, 0]), Data([255, 255, 255, 255, 1, 2]),
        ]
        texts += (1..<whole.count).map { whole.prefix($0) }
        texts.append(Data([5, 0, 0, 0, 1, 2, 3, 4, 5]))
        let scores = try await reranker.scores(of: texts.map { .init(data: $0) }, for: "word5")
        #expect(scores.allSatisfy { (0...1).contains($0) })
        #expect(scores.dropLast().allSatisfy { $0 == 0 })
    }

    // MARK: - Conversations

    private func archive(turns: Int) throws -> ConversationArchive {
        let archive = try ConversationArchive()
        try archive.begin("c", .init())
        for number in 0..<turns {
            let prompt = "word\(5 + number) word\(6 + number)"
            let entries: [Transcript.Entry] = [
                .prompt(.init(segments: [.text(.init(content: prompt))])),
                .response(.init(assetIDs: [], segments: [.text(.init(content: number % 4 == 0 ? "" : "word\(60 + number)"))])),
            ]
            _ = try archive.recordPrompt(prompt, number: number, date: nil, in: "c")
            try archive.recordAnswer(Turn(number: number, prompt: prompt, date: nil, entries: entries), in: "c")
        }
        return archive
    }

    @Test func conversationsAreRanked() async throws {
        let archive = try archive(turns: 30)
        try await HybridSearch(model: embedder, reranker: reranker).prepare("c", of: archive)
        let plain = HybridSearch(model: embedder, reranker: nil)
        let ranked = HybridSearch(model: embedder, reranker: reranker)
        let known = Set(20..<30)
        let before = try await plain.turns(for: "word12", in: "c", of: archive, count: 30, except: known)
        let after = try await ranked.turns(for: "word12", in: "c", of: archive, count: 30, except: known)
        #expect(before.map(\.score) != after.map(\.score))
        #expect(Set(after.map(\.number)).isDisjoint(with: known))
        #expect(after.map(\.score) == after.map(\.score).sorted(by: >))
        // The same again, from the archive alone.
        #expect(try await ranked.turns(for: "word12", in: "c", of: archive, count: 30, except: known) == after)
        // Another ranker has read nothing: the search goes on without it.
        let other = try TemporaryFile(Array(RankingTests.adapter(weights: 64, change: 0.5)), suffix: ".fmadapter")
        let unread = HybridSearch(model: embedder, reranker: Reranker(model: embedder, file: URL(filePath: other.path)))
        #expect(try await unread.turns(for: "word12", in: "c", of: archive, count: 30, except: known) == before)
    }
}
