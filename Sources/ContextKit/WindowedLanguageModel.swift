public import FoundationModels

#if canImport(FoundationModelsGGUF)
    import FoundationModelsGGUF
#endif

/// A model whose window has a known size, and that counts tokens as it processes them.
///
/// ``Conversation`` and the rest of this module need no more of a model than this. The system model and models from files
/// conform; another one conforms if its counts are exact: `tokenCount(for:)` of everything a request shows the model has to be
/// what the model then reads.
public protocol WindowedLanguageModel: LanguageModel {
    /// Tokens that instructions, prompts and responses may have together.
    var contextSize: Int { get }

    /// Tokens of a conversation: what a request that ends with it processes, template and tool definitions included.
    nonisolated(nonsending) func tokenCount(for transcriptEntries: some Collection<Transcript.Entry>) async throws -> Int
}

extension WindowedLanguageModel {
    /// Tokens of a text, as one message.
    func tokenCount(of text: String) async throws -> Int {
        try await tokenCount(for: [.instructions(.init(segments: [.text(.init(content: text))], toolDefinitions: []))])
    }
}

extension SystemLanguageModel: WindowedLanguageModel {}

#if canImport(FoundationModelsGGUF)
    extension GGUFLanguageModel: WindowedLanguageModel {}
#endif
