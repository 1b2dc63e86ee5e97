import Foundation
import FoundationModels
internal import TokenCounts

#if canImport(FoundationModelsGGUF)
import FoundationModelsGGUF
#endif

extension TokenCounting {
    /// The number of tokens of a text as one message.
    func tokenCount(of text: String) async throws -> Int {
        try await tokenCount(for: [.instructions(.init(segments: [.text(.init(content: text))], toolDefinitions: []))])
    }
}

/// Token counts of entries that consist of a part and the rest. The template puts tokens around entries and between
/// them, so that the tokens of a part are only known as a difference.
struct PartCounts {
    /// Tokens of all entries.
    let whole: Int
    /// Tokens of the entries without the part.
    let rest: Int
    /// Tokens that the part adds to the rest.
    var part: Int { whole - rest }
}

extension TokenCounting {
    /// The number of tokens of a context, which may be empty: some templates require at least one message.
    nonisolated(nonsending) func tokenCount(ofContext entries: some Collection<Transcript.Entry>) async throws -> Int {
        entries.isEmpty ? 0 : try await tokenCount(for: entries)
    }

    /// Counts entries with and without a part of them.
    nonisolated(nonsending) func tokenCounts(
        of whole: [Transcript.Entry], without rest: [Transcript.Entry]
    ) async throws -> PartCounts {
        PartCounts(whole: try await tokenCount(ofContext: whole), rest: try await tokenCount(ofContext: rest))
    }
}

/// Saves what a model has computed for a conversation, and reads it again.
struct KVCacheStore: Sendable {
    var save: @Sendable ([Transcript.Entry], URL) async throws -> Void
    var restore: @Sendable (URL) async throws -> Void
}

extension TokenCounting {
    /// Nil for models that do not run in this process.
    var kvCacheStore: KVCacheStore? {
        #if canImport(FoundationModelsGGUF)
        guard let file = self as? GGUFLanguageModel ?? (self as? SystemLanguageModel).map({ GGUFLanguageModel($0) }) else {
            return nil
        }
        return KVCacheStore(
            save: { _ = try await file.saveKVCache(for: $0, to: $1) },
            restore: { _ = try await file.restoreKVCache(from: $0) })
        #else
        return nil
        #endif
    }
}
