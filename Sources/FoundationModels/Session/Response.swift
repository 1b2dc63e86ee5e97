extension LanguageModelSession {
    /// A finished response.
    public struct Response<Content> where Content: Generable {
        /// What was asked for: the text, or the value.
        public let content: Content
        /// The same as generated content: of a value, with its members in their order.
        public let rawContent: GeneratedContent
        /// The entries this request added to the transcript.
        public let transcriptEntries: ArraySlice<Transcript.Entry>
        /// What this request cost.
        public let usage: Usage
    }

    /// Tokens that requests cost. `metadata` has, from the built-in model: `stopReason`, `loadSeconds`,
    /// `promptSeconds`, `generationSeconds` and, of responses held to a format, `forcedTokens`.
    public struct Usage: Sendable {
        /// Tokens that models read.
        public struct Input: Sendable {
            /// Tokens of the whole prompt: instructions, history and template included.
            public var totalTokenCount: Int
            /// Those of them that did not have to be computed again.
            public var cachedTokenCount: Int

            /// Cached tokens are part of the total.
            public init(totalTokenCount: Int, cachedTokenCount: Int) {
                self.totalTokenCount = totalTokenCount
                self.cachedTokenCount = cachedTokenCount
            }
        }

        /// Tokens that models wrote.
        public struct Output: Sendable {
            /// All of them, thoughts and tool calls included.
            public var totalTokenCount: Int
            /// Those of them that were thoughts.
            public var reasoningTokenCount: Int

            /// Tokens of thoughts are part of the total.
            public init(totalTokenCount: Int, reasoningTokenCount: Int) {
                self.totalTokenCount = totalTokenCount
                self.reasoningTokenCount = reasoningTokenCount
            }
        }

        /// What was read.
        public var input: Input
        /// What was written.
        public var output: Output
        /// What else the model says; of several requests, what it said of the last.
        public var metadata: [String: GeneratedContent]

        /// Made by sessions; a program needs it in tests only.
        public init(input: Input, output: Output, metadata: [String: any ConvertibleToGeneratedContent] = [:]) {
            self.input = input
            self.output = output
            self.metadata = metadata.mapValues(\.generatedContent)
        }

        /// Tokens that were read or written.
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
    /// Adds a count that someone else reported: what is too large stays the largest there is.
    mutating func add(_ count: Int) {
        let (sum, overflow) = addingReportingOverflow(Swift.max(0, count))
        self = overflow ? .max : sum
    }
}
