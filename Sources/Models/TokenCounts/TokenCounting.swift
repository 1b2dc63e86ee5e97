public import FoundationModels

/// A model whose window has a known size and that counts tokens.
///
/// Conversations, long documents and search results must fit into a window; all they require of a model is this. The system model conforms,
/// as do models from GGUF files, models on servers with a stated window, guarded, recording and scripted models. Counting never loads another
/// model than the one that is asked.
public protocol TokenCounting: LanguageModel {
    /// Maximum number of tokens of instructions, prompts and responses together.
    var contextSize: Int { get }

    /// The number of tokens that a request which ends with these entries processes, including the template and tool definitions. A model that
    /// cannot know this number returns one that is not smaller.
    ///
    /// - Throws: The model's errors, for example if its file cannot be used.
    nonisolated(nonsending) func tokenCount(for transcriptEntries: some Collection<Transcript.Entry>) async throws -> Int
}

extension SystemLanguageModel: TokenCounting {}
