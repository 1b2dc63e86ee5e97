import Foundation
public import FoundationModels

#if canImport(FoundationModelsGGUF)
    import FoundationModelsGGUF
#endif

/// A model whose window has a known size and that counts tokens exactly.
///
/// ``Conversation`` and the rest of this module require nothing else of a model. The system model and models from GGUF
/// files conform to it. Other models may conform if their counts are exact: `tokenCount(for:)` must return the number
/// of tokens that the model processes for a request with these entries.
public protocol WindowedLanguageModel: LanguageModel {
    /// Maximum number of tokens of instructions, prompts and responses together.
    var contextSize: Int { get }

    /// The number of tokens that a request which ends with these entries processes, including the template and tool
    /// definitions.
    nonisolated(nonsending) func tokenCount(for transcriptEntries: some Collection<Transcript.Entry>) async throws -> Int
}

extension WindowedLanguageModel {
    /// The number of tokens of a text as one message.
    func tokenCount(of text: String) async throws -> Int {
        try await tokenCount(for: [.instructions(.init(segments: [.text(.init(content: text))], toolDefinitions: []))])
    }
}

/// Token counts of entries that consist of a part and the rest. The template puts tokens around entries and between
/// them, so that the tokens of a part are only known as a difference.
struct TokenCounts {
    /// Tokens of all entries.
    let whole: Int
    /// Tokens of the entries without the part.
    let rest: Int
    /// Tokens that the part adds to the rest.
    var part: Int { whole - rest }
}

extension WindowedLanguageModel {
    /// The number of tokens of a context, which may be empty: some templates require at least one message.
    nonisolated(nonsending) func tokenCount(ofContext entries: some Collection<Transcript.Entry>) async throws -> Int {
        entries.isEmpty ? 0 : try await tokenCount(for: entries)
    }

    /// Counts entries with and without a part of them.
    nonisolated(nonsending) func tokenCounts(
        of whole: [Transcript.Entry], without rest: [Transcript.Entry]
    ) async throws -> TokenCounts {
        TokenCounts(whole: try await tokenCount(ofContext: whole), rest: try await tokenCount(ofContext: rest))
    }
}

extension SystemLanguageModel: WindowedLanguageModel {}

#if canImport(FoundationModelsGGUF)
    extension GGUFLanguageModel: WindowedLanguageModel {}
#endif

/// Saves what a model has computed for a conversation, and reads it again.
struct KVCacheStore: Sendable {
    var save: @Sendable ([Transcript.Entry], URL) async throws -> Void
    var restore: @Sendable (URL) async throws -> Void
}

extension WindowedLanguageModel {
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
