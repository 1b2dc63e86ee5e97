public import Foundation
public import FoundationModels

/// A model that can write its KV cache, what it has computed for a conversation, to a file, so that a later process need not process the
/// conversation again.
///
/// The system model and models from GGUF files conform, and guarded and recording models around them. Models on servers cannot.
public protocol KVCacheSaving: LanguageModel {
    /// Writes the KV cache of a conversation to a file, as far as it is in memory.
    ///
    /// - Parameter transcriptEntries: The entries of the conversation so far.
    /// - Returns: The number of tokens; 0 if none of them are in memory, and then no file is written.
    /// - Throws: An error if the file cannot be written.
    @discardableResult func saveKVCache(for transcriptEntries: some Collection<Transcript.Entry>, to url: URL) async throws -> Int

    /// Reads a file that ``saveKVCache(for:to:)`` has written. The next request whose transcript begins in the same way continues from
    /// it; other requests are not affected.
    ///
    /// - Returns: The number of tokens; 0 if the cache is larger than all that may be kept without a session.
    /// - Throws: An error if the file is damaged, or was written with another model or adapter.
    @discardableResult func restoreKVCache(from url: URL) async throws -> Int
}

extension SystemLanguageModel: KVCacheSaving {
    public func saveKVCache(for transcriptEntries: some Collection<Transcript.Entry>, to url: URL) async throws -> Int {
        try await localModel.writeCache(for: Array(transcriptEntries), to: url)
    }

    public func restoreKVCache(from url: URL) async throws -> Int { try await localModel.readCache(from: url) }
}
