extension LanguageModelSession {
    /// A finished response.
    public struct Response<Content> where Content: Generable {
        public let content: Content
        public let rawContent: GeneratedContent
        /// The entries this request added to the transcript.
        public let transcriptEntries: ArraySlice<Transcript.Entry>
        /// What this request cost.
        public let usage: Usage
    }

    /// Tokens that requests cost. `metadata` has, from the built-in model: `stopReason`, `loadSeconds`,
    /// `promptSeconds`, `generationSeconds` and, of responses held to a format, `forcedTokens`.
    public struct Usage: Sendable {
        public struct Input: Sendable {
            /// Tokens of the whole prompt: instructions, history and template included.
            public var totalTokenCount: Int
            /// Those of them that did not have to be computed again.
            public var cachedTokenCount: Int

            public init(totalTokenCount: Int, cachedTokenCount: Int) {
                self.totalTokenCount = totalTokenCount
                self.cachedTokenCount = cachedTokenCount
            }
        }

        public struct Output: Sendable {
            public var totalTokenCount: Int
            public var reasoningTokenCount: Int

            public init(totalTokenCount: Int, reasoningTokenCount: Int) {
                self.totalTokenCount = totalTokenCount
                self.reasoningTokenCount = reasoningTokenCount
            }
        }

        public var input: Input
        public var output: Output
        public var metadata: [String: GeneratedContent]

        public init(input: Input, output: Output, metadata: [String: any ConvertibleToGeneratedContent] = [:]) {
            self.input = input
            self.output = output
            self.metadata = metadata.mapValues(\.generatedContent)
        }

        public var totalTokenCount: Int { input.totalTokenCount + output.totalTokenCount }

        static var zero: Usage {
            Usage(
                input: Input(totalTokenCount: 0, cachedTokenCount: 0), output: Output(totalTokenCount: 0, reasoningTokenCount: 0))
        }

        mutating func add(_ other: Usage) {
            input.totalTokenCount += other.input.totalTokenCount
            input.cachedTokenCount += other.input.cachedTokenCount
            output.totalTokenCount += other.output.totalTokenCount
            output.reasoningTokenCount += other.output.reasoningTokenCount
            metadata = other.metadata
        }
    }
}

extension LanguageModelSession.Response: Sendable where Content: Sendable {}
