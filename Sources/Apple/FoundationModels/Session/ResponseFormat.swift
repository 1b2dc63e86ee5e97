package import Grammar

/// A format of responses that schemas cannot express, with options for its grammar.
package struct ResponseFormat: Sendable {
    package var source: GrammarSource
    package var options: GrammarOptions

    /// - Parameter options: By default a space follows each comma and colon, as in most JSON that models have seen: without it they
    ///   invent values more often (see BENCHMARKS.md).
    package init(
        _ source: GrammarSource, options: GrammarOptions = GrammarOptions(isSpaced: true, allowsZeroFraction: false)
    ) {
        self.source = source
        self.options = options
    }
}

extension LanguageModelSession {
    /// Streams a text response that conforms to a format.
    package func streamResponse(
        to prompt: Prompt, format: ResponseFormat, options: GenerationOptions
    ) -> sending ResponseStream<String> {
        stream(SessionRequest(prompt: prompt, options: options, format: format))
    }
}
