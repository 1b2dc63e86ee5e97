import Embeddings
import Foundation
import FoundationModels
import FoundationModelsTesting
import Synchronization
import Testing

@testable import ContextKit

struct HybridSearchTests {
    /// Each word has a direction of its own; synonyms share it.
    private struct Words: EmbeddingModel {
        final class Log: Sendable { let texts = Mutex<[String]>([]) }
        let log = Log()
        var fails = false
        var dimension = 512
        static let synonyms = ["dentist": "tooth", "doctor": "tooth", "called": "name", "dog": "pet"]

        func info() async throws -> EmbeddingModelInfo {
            EmbeddingModelInfo(name: "words", identifier: "w", dimension: dimension, maximumTokenCount: 100)
        }
        func embed(_ texts: [String], as role: EmbeddingRole) async throws -> [[Float]] {
            if fails { throw EmbeddingError("no model") }
            if role == .document { log.texts.withLock { $0 += texts } }
            return texts.map { text in
                var sum = [Float](repeating: 0, count: dimension)
                for word in text.lowercased().split(whereSeparator: { !$0.isLetter }).map(String.init) {
                    let key = Self.synonyms[word] ?? word
                    sum[Int(key.utf8.reduce(UInt64(7)) { $0 &* 131 &+ UInt64($1) } % UInt64(dimension))] += 1
                }
                let length = sum.reduce(0) { $0 + $1 * $1 }.squareRoot()
                return length > 0 ? sum.map { $0 / length } : sum
            }
        }
        func tokenCounts(of texts: [String], as role: EmbeddingRole) async throws -> [Int] { texts.map { $0.count } }
    }

    /// A model that returns the same for any texts.
    private struct Fixed: EmbeddingModel {
        var vectors: [[Float]]
        func info() async throws -> EmbeddingModelInfo {
            EmbeddingModelInfo(name: "fixed", identifier: "f", dimension: 2, maximumTokenCount: 100)
        }
        func embed(_ texts: [String], as role: EmbeddingRole) async throws -> [[Float]] { vectors }
        func tokenCounts(of texts: [String], as role: EmbeddingRole) async throws -> [Int] { texts.map { _ in 1 } }
    }

    private func archive(_ prompts: [String]) throws -> ConversationArchive {
        let archive = try ConversationArchive()
        try archive.begin("c", .init())
        for (number, prompt) in prompts.enumerated() {
            _ = try archive.recordPrompt(prompt, number: number, date: nil, in: "c")
            try archive.recordAnswer(
                Turn(
                    number: number, prompt: prompt, date: nil,
                    entries: [
                        .prompt(.init(segments: [.text(.init(content: prompt))])),
                        .response(.init(assetIDs: [], segments: [.text(.init(content: "Fine."))])),
                    ]), in: "c")
        }
        return archive
    }

    private static let talk =
        ["My dentist is called Okonkwo."] + (0..<60).map { "Tell me about rivers number \($0)." } + ["Good night."]

    @Test func otherWordsFindATurn() async throws {
        let archive = try archive(Self.talk)
        let search = HybridSearch(model: Words())
        let known = Set(55..<62)
        let question = "What is the name of my tooth doctor?"
        // Nothing is prepared yet: as by words.
        #expect(
            try await search.turns(for: question, in: "c", of: archive, count: 62, except: known)
                == HybridSearch(model: nil).turns(for: question, in: "c", of: archive, count: 62, except: known))
        try await search.prepare("c", of: archive)
        let found = try await search.turns(for: question, in: "c", of: archive, count: 62, except: known)
        #expect(found.first?.number == 0 && (found.first?.evidence ?? 0) >= 0.5)
        #expect(!found.contains { known.contains($0.number) })
        // Talk, and statements, need nothing.
        for prompt in ["Do you like lakes?", "I went to the tooth doctor.", "Tell me about rivers number 99."] {
            let evidence = try await search.turns(for: prompt, in: "c", of: archive, count: 62, except: known).map(\.evidence)
                .max()
            #expect((evidence ?? 0) < 0.5, "\(prompt)")
        }
    }

    /// Each turn is computed once, also by another instance, and another model computes its own.
    @Test func vectorsAreKept() async throws {
        let archive = try archive(Self.talk)
        let model = Words()
        try await HybridSearch(model: model).prepare("c", of: archive)
        let count = model.log.texts.withLock { $0.count }
        #expect(count == 2 * Self.talk.count)
        try await HybridSearch(model: model).prepare("c", of: archive)
        #expect(model.log.texts.withLock { $0.count } == count)
        #expect(try archive.turnsWithoutVectors(in: "c", model: "other", limit: 100).count == Self.talk.count)
    }

    @Test func failuresLeaveTheSearchByWords() async throws {
        let archive = try archive(Self.talk)
        let missing = HybridSearch(model: GGUFEmbeddingModel(url: URL(filePath: "/nowhere/model.gguf")))
        try await missing.prepare("c", of: archive)
        let found = try await missing.turns(for: "What is my dentist called?", in: "c", of: archive, count: 62, except: [])
        #expect(found.first?.number == 0)
        var broken = Words()
        broken.fails = true
        await #expect(throws: EmbeddingError.self) { try await HybridSearch(model: broken).prepare("c", of: archive) }
        // Vectors are there, but the model fails now.
        try await HybridSearch(model: Words()).prepare("c", of: archive)
        let again = try await HybridSearch(model: broken)
            .turns(for: "What is my dentist called?", in: "c", of: archive, count: 62, except: [])
        #expect(again == found)
        for vectors in [[[Float]](), [[.nan, 1]], [[1]]] {
            let wrong = HybridSearch(model: Fixed(vectors: vectors))
            await #expect(throws: EmbeddingError.self) { try await wrong.prepare("c", of: archive) }
            #expect(
                try await wrong.turns(for: "What is my dentist called?", in: "c", of: archive, count: 62, except: []) == found)
        }
    }

    @Test("a missing embedding model is an error that says what an app can do") func missingModel() async throws {
        let error = await #expect(throws: EmbeddingError.self) {
            try await GGUFEmbeddingModel(url: URL(filePath: "/nowhere/model.gguf")).info()
        }
        #expect(error?.description.contains("/nowhere/model.gguf") == true && error?.description.contains("fm ") == false)
    }
}
