public import Foundation

/// Takes what an executor's model says to the session.
///
/// A session reads events as they are sent. A channel of one's own keeps them until they are read.
public struct LanguageModelExecutorGenerationChannel: AsyncSequence, Sendable {
    public typealias Element = LanguageModelExecutorGenerationChannel.Event

    /// What takes events as they come; nil keeps them in the stream.
    private let receiver: (@Sendable (Event) -> Void)?
    private let stream: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation

    /// A channel that keeps what is sent until it is read.
    public init() { self.init(receiver: nil) }

    /// A channel whose events go to a function as they are sent.
    package init(receiver: (@Sendable (Event) -> Void)?) {
        self.receiver = receiver
        (stream, continuation) = AsyncStream.makeStream()
    }

    /// Sends an event.
    public nonisolated(nonsending) func send(_ event: LanguageModelExecutorGenerationChannel.Event) async { emit(event) }

    /// The same without waiting, for executors whose tokens come in a callback.
    package func emit(_ event: Event) {
        if let receiver { receiver(event) } else { continuation.yield(event) }
    }

    public func makeAsyncIterator() -> LanguageModelExecutorGenerationChannel.AsyncIterator {
        AsyncIterator(events: stream.makeAsyncIterator())
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
        public typealias Element = LanguageModelExecutorGenerationChannel.Event

        fileprivate var events: AsyncStream<Event>.Iterator

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws -> LanguageModelExecutorGenerationChannel.Event? {
            await events.next(isolation: actor)
        }
    }

    /// Something that a model said or did.
    public struct Event: Sendable {
        enum Kind: Sendable {
            case response(Response)
            case reasoning(Reasoning)
            case toolCalls(ToolCalls)
        }

        let kind: Kind

        /// Part of the answer.
        ///
        /// - Parameter entryID: The transcript entry it belongs to; nil for the one that is being written.
        public static func response(
            entryID: String? = nil, action: LanguageModelExecutorGenerationChannel.Response.Action
        ) -> LanguageModelExecutorGenerationChannel.Event {
            Event(kind: .response(Response(entryID: entryID, action: action)))
        }

        /// Part of the model's thoughts.
        public static func reasoning(
            entryID: String? = nil, action: LanguageModelExecutorGenerationChannel.Reasoning.Action
        ) -> LanguageModelExecutorGenerationChannel.Event {
            Event(kind: .reasoning(Reasoning(entryID: entryID, action: action)))
        }

        /// Part of tool calls.
        public static func toolCalls(
            entryID: String? = nil, action: LanguageModelExecutorGenerationChannel.ToolCalls.Action
        ) -> LanguageModelExecutorGenerationChannel.Event {
            Event(kind: .toolCalls(ToolCalls(entryID: entryID, action: action)))
        }
    }
}

// MARK: - What events say

extension LanguageModelExecutorGenerationChannel {
    /// Part of an answer, as an event carries it.
    public struct Response: Sendable {
        /// The transcript entry it belongs to; nil for the one that is being written.
        public var entryID: String?
        /// What happens to the entry.
        public var action: LanguageModelExecutorGenerationChannel.Response.Action

        /// A change of an answer.
        public struct Action: Sendable {
            enum Kind: Sendable {
                case appendText(TextFragment)
                case replaceText(TextSegmentReplacement)
                case addAttachment(Transcript.AttachmentSegment)
                case removeAttachment(id: String)
                case metadata(Metadata)
                case usage(Usage)
            }

            let kind: Kind

            /// More text at the end of a segment; nil for the one that is being written.
            public static func appendText(
                _ text: String, segmentID: String? = nil, tokenCount: Int
            ) -> LanguageModelExecutorGenerationChannel.Response.Action {
                Action(kind: .appendText(TextFragment(content: text, segmentID: segmentID, tokenCount: tokenCount)))
            }

            /// Another text in place of a segment's.
            public static func replaceTextSegment(
                _ text: String, segmentID: String? = nil, tokenCount: Int
            ) -> LanguageModelExecutorGenerationChannel.Response.Action {
                Action(kind: .replaceText(TextSegmentReplacement(content: text, segmentID: segmentID, tokenCount: tokenCount)))
            }

            /// An attachment at the end of the entry.
            public static func addAttachmentSegment(
                _ segment: Transcript.AttachmentSegment
            ) -> LanguageModelExecutorGenerationChannel.Response.Action {
                Action(kind: .addAttachment(segment))
            }

            /// Takes the entry's attachment with that id back, if there is one.
            public static func removeAttachmentSegment(
                id: String
            ) -> LanguageModelExecutorGenerationChannel.Response.Action {
                Action(kind: .removeAttachment(id: id))
            }

            /// Replaces the entry's metadata.
            public static func updateMetadata(
                _ values: [String: any ConvertibleToGeneratedContent]
            ) -> LanguageModelExecutorGenerationChannel.Response.Action {
                Action(kind: .metadata(Metadata(values)))
            }

            /// Replaces what the request has cost so far: totals, not increments.
            public static func updateUsage(
                input: LanguageModelExecutorGenerationChannel.Usage.Input,
                output: LanguageModelExecutorGenerationChannel.Usage.Output,
                metadata: [String: any ConvertibleToGeneratedContent] = [:]
            ) -> LanguageModelExecutorGenerationChannel.Response.Action {
                Action(kind: .usage(Usage(input: input, output: output, metadata: metadata)))
            }
        }
    }

    /// Part of the model's thoughts, as an event carries it.
    public struct Reasoning: Sendable {
        /// The transcript entry it belongs to; nil for the one that is being written, or a new one after anything but thoughts.
        public var entryID: String?
        /// What happens to the entry.
        public var action: LanguageModelExecutorGenerationChannel.Reasoning.Action

        /// A change of thoughts.
        public struct Action: Sendable {
            enum Kind: Sendable {
                case appendText(TextFragment)
                case replaceText(TextSegmentReplacement)
                case signature(ReasoningSignature)
                case metadata(Metadata)
                case usage(Usage)
            }

            let kind: Kind

            /// More thoughts at the end of a segment; nil for the one that is being written.
            public static func appendText(
                _ text: String, segmentID: String? = nil, tokenCount: Int
            ) -> LanguageModelExecutorGenerationChannel.Reasoning.Action {
                Action(kind: .appendText(TextFragment(content: text, segmentID: segmentID, tokenCount: tokenCount)))
            }

            /// Other thoughts in place of a segment's.
            public static func replaceTextSegment(
                _ text: String, segmentID: String? = nil, tokenCount: Int
            ) -> LanguageModelExecutorGenerationChannel.Reasoning.Action {
                Action(kind: .replaceText(TextSegmentReplacement(content: text, segmentID: segmentID, tokenCount: tokenCount)))
            }

            /// Replaces the signature of the entry.
            public static func updateSignature(
                _ signature: Data, tokenCount: Int
            ) -> LanguageModelExecutorGenerationChannel.Reasoning.Action {
                Action(kind: .signature(ReasoningSignature(signature: signature, tokenCount: tokenCount)))
            }

            /// Replaces the entry's metadata.
            public static func updateMetadata(
                _ values: [String: any ConvertibleToGeneratedContent]
            ) -> LanguageModelExecutorGenerationChannel.Reasoning.Action {
                Action(kind: .metadata(Metadata(values)))
            }

            /// Replaces what the request has cost so far: totals, not increments.
            public static func updateUsage(
                input: LanguageModelExecutorGenerationChannel.Usage.Input,
                output: LanguageModelExecutorGenerationChannel.Usage.Output,
                metadata: [String: any ConvertibleToGeneratedContent] = [:]
            ) -> LanguageModelExecutorGenerationChannel.Reasoning.Action {
                Action(kind: .usage(Usage(input: input, output: output, metadata: metadata)))
            }
        }
    }

    /// What proves to the model's provider that the thoughts are its own.
    public struct ReasoningSignature: Sendable {
        /// Bytes that mean something to the provider only; the transcript keeps them.
        public var signature: Data
        /// Tokens to be counted as thoughts.
        public var tokenCount: Int
    }

    /// Part of tool calls, as an event carries it.
    public struct ToolCalls: Sendable {
        /// The transcript entry it belongs to; nil for the one that is being written.
        public var entryID: String?
        /// What happens to the entry.
        public var action: LanguageModelExecutorGenerationChannel.ToolCalls.Action

        /// A change of calls.
        public struct Action: Sendable {
            enum Kind: Sendable {
                case toolCall(ToolCall)
                case removeToolCall(id: String)
                case metadata(Metadata)
                case usage(Usage)
            }

            let kind: Kind

            /// Part of the call with that id; its first part opens it.
            public static func toolCall(
                id: String, name: String, action: LanguageModelExecutorGenerationChannel.ToolCalls.ToolCall.Action
            ) -> LanguageModelExecutorGenerationChannel.ToolCalls.Action {
                Action(kind: .toolCall(ToolCall(id: id, name: name, action: action)))
            }

            /// Takes the call with that id back: its tool does not run.
            public static func removeToolCall(
                id: String
            ) -> LanguageModelExecutorGenerationChannel.ToolCalls.Action {
                Action(kind: .removeToolCall(id: id))
            }

            /// Replaces the metadata of the calls together. Transcripts keep that of single calls only.
            public static func updateMetadata(
                _ values: [String: any ConvertibleToGeneratedContent]
            ) -> LanguageModelExecutorGenerationChannel.ToolCalls.Action {
                Action(kind: .metadata(Metadata(values)))
            }

            /// Replaces what the request has cost so far: totals, not increments.
            public static func updateUsage(
                input: LanguageModelExecutorGenerationChannel.Usage.Input,
                output: LanguageModelExecutorGenerationChannel.Usage.Output,
                metadata: [String: any ConvertibleToGeneratedContent] = [:]
            ) -> LanguageModelExecutorGenerationChannel.ToolCalls.Action {
                Action(kind: .usage(Usage(input: input, output: output, metadata: metadata)))
            }
        }

        /// Part of one call.
        public struct ToolCall: Sendable {
            /// Tells calls apart: all parts of one have the same.
            public var id: String
            /// Name of the tool; that of the first part counts.
            public var name: String
            /// What happens to the call.
            public var action: LanguageModelExecutorGenerationChannel.ToolCalls.ToolCall.Action

            /// A change of one call.
            public struct Action: Sendable {
                enum Kind: Sendable {
                    case arguments(ArgumentsFragment)
                    case metadata(Metadata)
                }

                let kind: Kind

                /// More of the arguments' JSON.
                public static func appendArguments(
                    _ content: String, tokenCount: Int
                ) -> LanguageModelExecutorGenerationChannel.ToolCalls.ToolCall.Action {
                    Action(kind: .arguments(ArgumentsFragment(content: content, tokenCount: tokenCount)))
                }

                /// Replaces the call's metadata.
                public static func updateMetadata(
                    _ values: [String: any ConvertibleToGeneratedContent]
                ) -> LanguageModelExecutorGenerationChannel.ToolCalls.ToolCall.Action {
                    Action(kind: .metadata(Metadata(values)))
                }
            }

            /// More of a call's arguments.
            public struct ArgumentsFragment: Sendable {
                /// A piece of their JSON, to be joined to those before it.
                public var content: String
                /// Tokens that it took; added to the usage, unless the executor says that itself.
                public var tokenCount: Int
            }
        }
    }

    /// A piece of text at the end of a segment.
    public struct TextFragment: Sendable {
        /// The piece, with the spaces before it.
        public var content: String
        /// The segment it belongs to; nil for the one that is being written.
        public var segmentID: String?
        /// Tokens that it took; added to the usage, unless the executor says that itself.
        public var tokenCount: Int
    }

    /// A text in place of a segment's.
    public struct TextSegmentReplacement: Sendable {
        /// The whole of the new text.
        public var content: String
        /// The segment whose text it replaces; nil for the one that is being written.
        public var segmentID: String?
        /// Tokens that it took; added to the usage, unless the executor says that itself.
        public var tokenCount: Int
    }

    /// What is to be kept with an entry or a call.
    public struct Metadata: Sendable {
        /// By name. They take the place of all that was there.
        public var values: [String: GeneratedContent]

        init(_ values: [String: any ConvertibleToGeneratedContent]) { self.values = values.mapValues(\.generatedContent) }
    }

    /// What a request has cost, as its executor counts it.
    public struct Usage: Sendable {
        /// What the model read.
        public var input: LanguageModelExecutorGenerationChannel.Usage.Input
        /// What the model wrote.
        public var output: LanguageModelExecutorGenerationChannel.Usage.Output
        /// What else there is to say, by name; programs find it in their response's usage.
        public var metadata: [String: GeneratedContent]

        /// The cost of the whole request so far.
        public init(
            input: LanguageModelExecutorGenerationChannel.Usage.Input,
            output: LanguageModelExecutorGenerationChannel.Usage.Output,
            metadata: [String: any ConvertibleToGeneratedContent] = [:]
        ) {
            self.input = input
            self.output = output
            self.metadata = metadata.mapValues(\.generatedContent)
        }

        /// Tokens that a model read.
        public struct Input: Sendable {
            /// Tokens of the whole prompt.
            public var totalTokenCount: Int
            /// Those of them that did not have to be computed again.
            public var cachedTokenCount: Int

            /// Cached tokens are part of the total.
            public init(totalTokenCount: Int, cachedTokenCount: Int) {
                self.totalTokenCount = totalTokenCount
                self.cachedTokenCount = cachedTokenCount
            }
        }

        /// Tokens that a model wrote.
        public struct Output: Sendable {
            /// All of them, thoughts included.
            public var totalTokenCount: Int
            /// Those of them that were thoughts.
            public var reasoningTokenCount: Int

            /// Tokens of thoughts are part of the total.
            public init(totalTokenCount: Int, reasoningTokenCount: Int) {
                self.totalTokenCount = totalTokenCount
                self.reasoningTokenCount = reasoningTokenCount
            }
        }
    }
}
