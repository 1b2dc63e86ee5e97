extension LanguageModelSession {
    /// A complete response.
    public struct Response<Content> where Content: Generable {
        /// The requested text or value.
        public let content: Content
        /// The response as generated content; members keep their order.
        public let rawContent: GeneratedContent
        /// The entries that this request added to the transcript.
        public let transcriptEntries: ArraySlice<Transcript.Entry>
        /// The token usage of this request.
        public let usage: Usage
    }

    /// Token usage of requests. With the built-in model, `metadata` contains `stopReason` (`endOfTurn`, `stopString`, `maximumTokens`,
    /// `loop`, `contextFull` or `grammarLimit`), `loadSeconds`, `promptSeconds`, `generationSeconds` and `forcedTokens` (the number of tokens that the grammar determined
    /// completely).
    public struct Usage: Sendable {
        /// Input tokens.
        public struct Input: Sendable {
            /// The number of tokens in the whole prompt, including instructions, history and chat template.
            public var totalTokenCount: Int
            /// The number of these tokens that were read from a cache and not computed again.
            public var cachedTokenCount: Int

            /// Creates the counts; the total includes cached tokens.
            public init(totalTokenCount: Int, cachedTokenCount: Int) {
                self.totalTokenCount = totalTokenCount
                self.cachedTokenCount = cachedTokenCount
            }
        }

        /// Output tokens.
        public struct Output: Sendable {
            /// The number of all generated tokens, including reasoning and tool calls.
            public var totalTokenCount: Int
            /// The number of these tokens that were reasoning.
            public var reasoningTokenCount: Int

            /// Creates the counts; the total includes reasoning tokens.
            public init(totalTokenCount: Int, reasoningTokenCount: Int) {
                self.totalTokenCount = totalTokenCount
                self.reasoningTokenCount = reasoningTokenCount
            }
        }

        /// Tokens that models processed as input.
        public var input: Input
        /// Tokens that models generated.
        public var output: Output
        /// Additional values from the model; for several requests, those of the last one.
        public var metadata: [String: GeneratedContent]

        /// Creates usage. Sessions do this; a program needs it only in tests.
        public init(input: Input, output: Output, metadata: [String: any ConvertibleToGeneratedContent] = [:]) {
            self.input = input
            self.output = output
            self.metadata = metadata.mapValues(\.generatedContent)
        }

        /// The total number of input and output tokens.
        public var totalTokenCount: Int {
            var total = input.totalTokenCount
            total.add(output.totalTokenCount)
            return total
        }

        static var zero: Usage {
            Usage(
                input: Input(totalTokenCount: 0, cachedTokenCount: 0), output: Output(totalTokenCount: 0, reasoningTokenCount: 0))
        }

        mutating func add(_ other: Usage) {
            input.totalTokenCount.add(other.input.totalTokenCount)
            input.cachedTokenCount.add(other.input.cachedTokenCount)
            output.totalTokenCount.add(other.output.totalTokenCount)
            output.reasoningTokenCount.add(other.output.reasoningTokenCount)
            metadata = other.metadata
        }
    }
}

extension LanguageModelSession.Response: Sendable where Content: Sendable {}

extension Int {
    /// Adds a count from an untrusted source: negative counts are ignored, and overflow saturates at the maximum.
    mutating func add(_ count: Int) {
        let (sum, overflow) = addingReportingOverflow(Swift.max(0, count))
        self = overflow ? .max : sum
    }
}
