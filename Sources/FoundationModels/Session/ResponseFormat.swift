package import Grammar

/// What a response must be where schemas cannot say it, and how it is written.
package struct ResponseFormat: Sendable {
    package var source: GrammarSource
    package var options: GrammarOptions

    package init(_ source: GrammarSource, options: GrammarOptions = GrammarOptions(allowsZeroFraction: false)) {
        self.source = source
        self.options = options
    }

    func grammar(for vocabulary: TokenVocabulary) async throws -> Grammar {
        try await GrammarCache.shared.grammar(source, vocabulary: vocabulary, options: options)
    }
}

extension LanguageModelSession {
    /// Answers a prompt in a format, piece by piece, as text.
    package func streamResponse(
        to prompt: Prompt, format: ResponseFormat, options: GenerationOptions
    ) -> sending ResponseStream<String> {
        stream(SessionRequest(prompt: prompt, options: options, format: format))
    }
}
