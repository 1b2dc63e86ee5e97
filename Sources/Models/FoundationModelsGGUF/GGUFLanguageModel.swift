public import Foundation
public import FoundationModels
public import TokenCounts

/// A language model in a GGUF file that runs on the CPU of this machine.
///
/// ```swift
/// let model = GGUFLanguageModel(url: URL(filePath: "model.gguf"))
/// let session = LanguageModelSession(model: model, instructions: "Be brief.")
/// ```
///
/// A model is a value: two models of one file with different adapters or settings are two models. They share the weights in memory, also
/// in sessions at the same time. If the file or the adapter cannot be used, the first request throws an error.
public struct GGUFLanguageModel: TokenCounting, KVCacheSaving, HasLocalModel {
    package let localModel: LocalModel

    /// - Parameters:
    ///   - url: The GGUF file.
    ///   - adapter: A low-rank adapter (LoRA) of the model: a `.fmadapter` file, or a GGUF adapter as llama.cpp reads it; nil for the
    ///     model with no other adapter than the one that was installed with it. If it cannot be read or does not fit the model, the
    ///     first request throws `SystemLanguageModel.Error.assetsUnavailable`.
    ///   - usesInstalledAdapter: Whether the adapter is used that was installed with the model, if there is one: a file
    ///     `NAME.assistant.fmadapter` beside `NAME.gguf`, which teaches the model the usual tasks of programs. Together with `adapter`, it is
    ///     used only if that one was trained on top of it. `FM_ADAPTER=none` in the environment has the effect of false.
    ///   - contextSize: The maximum number of tokens of a session's instructions, prompts and responses together,
    ///     limited to the context length that the model was trained with. Each token uses memory (23 KB for a model
    ///     with 135 million weights).
    ///   - checksText: Whether prompts and text responses are checked for safety. Structured responses are always
    ///     checked.
    ///   - stopsRepeatedToolCalls: Whether the model must respond after three consecutive rounds of identical tool calls
    ///     with identical outputs; nil for only those models that are so small that they repeat calls. Independently of
    ///     this, a request has at most 16 rounds.
    ///   - cacheBits: With 8 bits, keys and values take half the memory, with a small loss of precision. Nil for 16 bits,
    ///     unless the environment has `FM_CACHE_BITS=8`.
    public init(
        url: URL, adapter: URL? = nil, usesInstalledAdapter: Bool = true, contextSize: Int = 4096, checksText: Bool = true,
        stopsRepeatedToolCalls: Bool? = nil,
        cacheBits: CacheBits? = nil
    ) {
        localModel = LocalModel(
            path: url.path, maximumContext: max(1, contextSize), adapter: adapter?.path,
            usesInstalledAdapter: usesInstalledAdapter, checksText: checksText,
            stopsRepeatedCalls: stopsRepeatedToolCalls, cacheBits: cacheBits?.rawValue)
    }

    /// The number of bits of each element of keys and values in the KV cache.
    public enum CacheBits: Int, Sendable {
        case eight = 8
        case sixteen = 16
    }

    public var capabilities: LanguageModelCapabilities { localModel.capabilities }

    /// The name of the model, from the file.
    public var name: String { localModel.description.name }

    /// The maximum number of tokens of a session's instructions, prompts and responses together.
    public var contextSize: Int { localModel.contextSize }

    /// The languages that the file specifies; empty if the file specifies none.
    public var supportedLanguages: Set<Locale.Language> { localModel.description.languages }

    /// The number of tokens that a request with these transcript entries processes.
    public nonisolated(nonsending) func tokenCount(
        for transcriptEntries: some Collection<Transcript.Entry>
    ) async throws -> Int {
        try await localModel.tokenCount(Array(transcriptEntries))
    }

    /// The file of the system model, with its options.
    public init(_ systemModel: SystemLanguageModel) { localModel = systemModel.localModel }

    // MARK: - Saved KV caches

    /// Writes the KV cache of a conversation to a file, as far as it is in memory, so that a later process need not process the
    /// conversation again. The default model takes about 30 KB for each token. The file is readable by its owner only.
    ///
    /// - Parameter transcriptEntries: The entries of the conversation so far.
    /// - Returns: The number of tokens; 0 if none of them are in memory, and then no file is written.
    /// - Throws: An error if the file cannot be written.
    public func saveKVCache(for transcriptEntries: some Collection<Transcript.Entry>, to url: URL) async throws -> Int {
        try await localModel.writeCache(for: Array(transcriptEntries), to: url)
    }

    /// Reads a KV cache from a file that ``saveKVCache(for:to:)`` has written. The next request whose transcript begins in the same
    /// way continues from it; other requests are not affected.
    ///
    /// - Returns: The number of tokens; 0 if the cache is larger than all that may be kept without a session.
    /// - Throws: An error if the file is damaged, or was written with another model or adapter.
    public func restoreKVCache(from url: URL) async throws -> Int { try await localModel.readCache(from: url) }

    /// Frees the memory of models that no request is using, also of the system model, and what was kept of sessions that are gone.
    ///
    /// A model stays in memory after a request until others need the memory. Call this when a program will not need a model for a
    /// while; the next request loads it again. Sessions keep their KV caches.
    public static func releaseUnusedModels() { LocalModel.releaseUnused() }

    public var executorConfiguration: Executor.Configuration { Executor.Configuration(model: localModel) }

    /// Runs the requests of sessions on the model.
    public struct Executor: LanguageModelExecutor {
        /// The model that this executor runs.
        public typealias Model = GGUFLanguageModel

        /// The file and the options it is used with.
        public struct Configuration: Hashable, Sendable {
            let model: LocalModel
        }

        private let executor: LocalModelExecutor

        /// Called by sessions. The file is loaded by the first request or the first call of `prewarm`.
        public init(configuration: Configuration) { executor = LocalModelExecutor(configuration.model) }

        public func prewarm(model: GGUFLanguageModel, transcript: Transcript) { executor.prewarm(transcript) }

        public nonisolated(nonsending) func respond(
            to request: LanguageModelExecutorGenerationRequest, model: GGUFLanguageModel,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            try await executor.respond(to: request, channel)
        }
    }
}
