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

extension SystemLanguageModel: WindowedLanguageModel {}

#if canImport(FoundationModelsGGUF)
    extension GGUFLanguageModel: WindowedLanguageModel {}
#endif
