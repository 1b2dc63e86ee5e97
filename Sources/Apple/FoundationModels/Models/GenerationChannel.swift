public import Foundation
public import UniformTypeIdentifiers

/// Carries events from an executor's model to the session.
///
/// A session processes events as they are sent. A channel that a program creates itself buffers them until they are
/// read.
public struct LanguageModelExecutorGenerationChannel: AsyncSequence, Sendable {
    public typealias Element = LanguageModelExecutorGenerationChannel.Event

    /// Called with each event as it is sent; nil buffers the events in the stream.
    private let receiver: (@Sendable (Event) -> Void)?
    /// Decides whether an entry of data that an executor sends becomes part of the output; nil admits all.
    private let admits: (@Sendable (DataEntry) async -> Bool)?
    private let stream: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation

    /// Creates a channel that buffers events until they are read.
    public init() { self.init(receiver: nil) }

    /// Creates a channel that passes each event to a function as it is sent.
    package init(receiver: (@Sendable (Event) -> Void)?) { self.init(receiver: receiver, admits: nil) }

    init(receiver: (@Sendable (Event) -> Void)?, admits: (@Sendable (DataEntry) async -> Bool)?) {
        self.receiver = receiver
        self.admits = admits
        (stream, continuation) = AsyncStream.makeStream()
    }

    /// Sends an event.
    public nonisolated(nonsending) func send(_ event: LanguageModelExecutorGenerationChannel.Event) async {
        if let admits, case .data(let entry) = event.kind, await !admits(entry) { return }
        emit(event)
    }

    /// Sends an event synchronously, for executors that receive tokens in a callback.
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

    /// An event in the output of a model.
    public struct Event: Sendable {
        enum Kind: Sendable {
            case response(Response)
            case reasoning(Reasoning)
            case toolCalls(ToolCalls)
            case data(DataEntry)
        }

        let kind: Kind

        /// Text that is appended to the response, or replaces a part of it.
        package struct ResponseText {
            package var text: String
            package var tokenCount: Int
            package var isReplacement: Bool
            package var entryID: String?
            package var segmentID: String?
        }

        /// The text that the event appends or replaces; nil for other events.
        package var responseText: ResponseText? {
            guard case .response(let response) = kind else { return nil }
            return switch response.action.kind {
            case .appendText(let fragment):
                ResponseText(
                    text: fragment.content, tokenCount: fragment.tokenCount, isReplacement: false, entryID: response.entryID,
                    segmentID: fragment.segmentID)
            case .replaceText(let replacement):
                ResponseText(
                    text: replacement.content, tokenCount: replacement.tokenCount, isReplacement: true, entryID: response.entryID,
                    segmentID: replacement.segmentID)
            default: nil
            }
        }

        /// The event with another text; other events stay as they are.
        package func withResponseText(_ text: String, tokenCount: Int) -> Event {
            guard case .response(let response) = kind else { return self }
            let action: Response.Action
            switch response.action.kind {
            case .appendText(let fragment):
                action = .appendText(text, segmentID: fragment.segmentID, tokenCount: tokenCount)
            case .replaceText(let replacement):
                action = .replaceTextSegment(text, segmentID: replacement.segmentID, tokenCount: tokenCount)
            default: return self
            }
            return .response(entryID: response.entryID, action: action)
        }

        /// Creates an event for the response.
        ///
        /// - Parameter entryID: The transcript entry that the event belongs to; nil for the current one.
        public static func response(
            entryID: String? = nil, action: LanguageModelExecutorGenerationChannel.Response.Action
        ) -> LanguageModelExecutorGenerationChannel.Event {
            Event(kind: .response(Response(entryID: entryID, action: action)))
        }

        /// Creates an event for the model's reasoning.
        public static func reasoning(
            entryID: String? = nil, action: LanguageModelExecutorGenerationChannel.Reasoning.Action
        ) -> LanguageModelExecutorGenerationChannel.Event {
            Event(kind: .reasoning(Reasoning(entryID: entryID, action: action)))
        }

        /// Creates an event for tool calls.
        public static func toolCalls(
            entryID: String? = nil, action: LanguageModelExecutorGenerationChannel.ToolCalls.Action
        ) -> LanguageModelExecutorGenerationChannel.Event {
            Event(kind: .toolCalls(ToolCalls(entryID: entryID, action: action)))
        }

        /// Creates an event for an entry of data. The model must support its type
        /// (``LanguageModel/supportsDataEntryType(_:)``); otherwise the entry and all that is sent after it are left out, and the
        /// request fails when the executor returns.
        ///
        /// - Parameter entryID: The entry whose contents are replaced; nil for a new one.
        public static func data(
            entryID: String? = nil, action: LanguageModelExecutorGenerationChannel.DataEntry.Action
        ) -> LanguageModelExecutorGenerationChannel.Event {
            Event(kind: .data(DataEntry(entryID: entryID, action: action)))
        }
    }
}

// MARK: - Event contents

extension LanguageModelExecutorGenerationChannel {
    /// An event for a response entry.
    public struct Response: Sendable {
        /// The transcript entry that the event belongs to; nil for the current one.
        public var entryID: String?
        /// The change to the entry.
        public var action: LanguageModelExecutorGenerationChannel.Response.Action

        /// A change to a response entry.
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

            /// Appends text to a segment; nil for the current segment.
            public static func appendText(
                _ text: String, segmentID: String? = nil, tokenCount: Int
            ) -> LanguageModelExecutorGenerationChannel.Response.Action {
                Action(kind: .appendText(TextFragment(content: text, segmentID: segmentID, tokenCount: tokenCount)))
            }

            /// Replaces the text of a segment; nil for the current segment.
            public static func replaceTextSegment(
                _ text: String, segmentID: String? = nil, tokenCount: Int
            ) -> LanguageModelExecutorGenerationChannel.Response.Action {
                Action(kind: .replaceText(TextSegmentReplacement(content: text, segmentID: segmentID, tokenCount: tokenCount)))
            }

            /// Appends an attachment to the entry.
            public static func addAttachmentSegment(
                _ segment: Transcript.AttachmentSegment
            ) -> LanguageModelExecutorGenerationChannel.Response.Action {
                Action(kind: .addAttachment(segment))
            }

            /// Removes the entry's attachment with this id, if there is one.
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

            /// Replaces the token usage of the request. The values are totals so far, not increments.
            public static func updateUsage(
                input: LanguageModelExecutorGenerationChannel.Usage.Input,
                output: LanguageModelExecutorGenerationChannel.Usage.Output,
                metadata: [String: any ConvertibleToGeneratedContent] = [:]
            ) -> LanguageModelExecutorGenerationChannel.Response.Action {
                Action(kind: .usage(Usage(input: input, output: output, metadata: metadata)))
            }
        }
    }

    /// An event for a reasoning entry.
    public struct Reasoning: Sendable {
        /// The transcript entry that the event belongs to; nil for the current one, or for a new one if the previous
        /// event was not reasoning.
        public var entryID: String?
        /// The change to the entry.
        public var action: LanguageModelExecutorGenerationChannel.Reasoning.Action

        /// A change to a reasoning entry.
        public struct Action: Sendable {
            enum Kind: Sendable {
                case appendText(TextFragment)
                case replaceText(TextSegmentReplacement)
                case signature(ReasoningSignature)
                case metadata(Metadata)
                case usage(Usage)
            }

            let kind: Kind

            /// Appends reasoning text to a segment; nil for the current segment.
            public static func appendText(
                _ text: String, segmentID: String? = nil, tokenCount: Int
            ) -> LanguageModelExecutorGenerationChannel.Reasoning.Action {
                Action(kind: .appendText(TextFragment(content: text, segmentID: segmentID, tokenCount: tokenCount)))
            }

            /// Replaces the reasoning text of a segment; nil for the current segment.
            public static func replaceTextSegment(
                _ text: String, segmentID: String? = nil, tokenCount: Int
            ) -> LanguageModelExecutorGenerationChannel.Reasoning.Action {
                Action(kind: .replaceText(TextSegmentReplacement(content: text, segmentID: segmentID, tokenCount: tokenCount)))
            }

            /// Replaces the entry's signature.
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

            /// Replaces the token usage of the request. The values are totals so far, not increments.
            public static func updateUsage(
                input: LanguageModelExecutorGenerationChannel.Usage.Input,
                output: LanguageModelExecutorGenerationChannel.Usage.Output,
                metadata: [String: any ConvertibleToGeneratedContent] = [:]
            ) -> LanguageModelExecutorGenerationChannel.Reasoning.Action {
                Action(kind: .usage(Usage(input: input, output: output, metadata: metadata)))
            }
        }
    }

    /// A signature with which the model's provider can verify that it generated the reasoning.
    public struct ReasoningSignature: Sendable {
        /// Opaque bytes, meaningful to the provider only; the transcript stores them.
        public var signature: Data
        /// The number of tokens to count as reasoning.
        public var tokenCount: Int
    }

    /// An event for a tool-calls entry.
    public struct ToolCalls: Sendable {
        /// The transcript entry that the event belongs to; nil for the current one.
        public var entryID: String?
        /// The change to the entry.
        public var action: LanguageModelExecutorGenerationChannel.ToolCalls.Action

        /// A change to a tool-calls entry.
        public struct Action: Sendable {
            enum Kind: Sendable {
                case toolCall(ToolCall)
                case removeToolCall(id: String)
                case metadata(Metadata)
                case usage(Usage)
            }

            let kind: Kind

            /// Changes the call with this id; the first event with an id creates the call.
            public static func toolCall(
                id: String, name: String, action: LanguageModelExecutorGenerationChannel.ToolCalls.ToolCall.Action
            ) -> LanguageModelExecutorGenerationChannel.ToolCalls.Action {
                Action(kind: .toolCall(ToolCall(id: id, name: name, action: action)))
            }

            /// Removes the call with this id: its tool does not run.
            public static func removeToolCall(
                id: String
            ) -> LanguageModelExecutorGenerationChannel.ToolCalls.Action {
                Action(kind: .removeToolCall(id: id))
            }

            /// Replaces the metadata of the entry as a whole. Transcripts store only the metadata of individual calls.
            public static func updateMetadata(
                _ values: [String: any ConvertibleToGeneratedContent]
            ) -> LanguageModelExecutorGenerationChannel.ToolCalls.Action {
                Action(kind: .metadata(Metadata(values)))
            }

            /// Replaces the token usage of the request. The values are totals so far, not increments.
            public static func updateUsage(
                input: LanguageModelExecutorGenerationChannel.Usage.Input,
                output: LanguageModelExecutorGenerationChannel.Usage.Output,
                metadata: [String: any ConvertibleToGeneratedContent] = [:]
            ) -> LanguageModelExecutorGenerationChannel.ToolCalls.Action {
                Action(kind: .usage(Usage(input: input, output: output, metadata: metadata)))
            }
        }

        /// A change to one tool call.
        public struct ToolCall: Sendable {
            /// Identifies the call; all events of a call have the same id.
            public var id: String
            /// The name of the tool; the name in the first event of a call is used.
            public var name: String
            /// The change to the call.
            public var action: LanguageModelExecutorGenerationChannel.ToolCalls.ToolCall.Action

            /// A change to one call.
            public struct Action: Sendable {
                enum Kind: Sendable {
                    case arguments(ArgumentsFragment)
                    case metadata(Metadata)
                }

                let kind: Kind

                /// Appends to the JSON of the arguments.
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

            /// A fragment of a call's arguments.
            public struct ArgumentsFragment: Sendable {
                /// A fragment of the arguments' JSON, to be appended to the fragments before it.
                public var content: String
                /// The number of tokens generated; added to the usage, unless the executor reports the usage itself.
                public var tokenCount: Int
            }
        }
    }

    /// An event for an entry of data.
    public struct DataEntry: Sendable {
        /// The transcript entry whose contents are replaced; nil for a new one.
        public var entryID: String?
        /// The change to the entry.
        public var action: LanguageModelExecutorGenerationChannel.DataEntry.Action

        /// A change to an entry of data.
        public struct Action: Sendable {
            enum Kind: Sendable {
                case update(Update)
            }

            let kind: Kind

            /// Sets the contents of the entry.
            public static func update(
                contentType: UTType, content: Data, metadata: GeneratedContent = GeneratedContent(properties: [:])
            ) -> LanguageModelExecutorGenerationChannel.DataEntry.Action {
                Action(kind: .update(Update(contentType: contentType, content: content, metadata: metadata)))
            }
        }

        /// The contents of an entry of data.
        public struct Update: Sendable {
            /// The type of the data.
            public var contentType: UTType
            /// The data.
            public var content: Data
            /// An object with further values.
            public var metadata: GeneratedContent
        }

        /// The entry of the transcript that the event makes.
        var entry: Transcript.DataEntry {
            switch action.kind {
            case .update(let update):
                .init(
                    id: entryID ?? UUID().uuidString, contentType: update.contentType, content: update.content,
                    metadata: update.metadata)
            }
        }
    }

    /// A fragment of text to append to a segment.
    public struct TextFragment: Sendable {
        /// The fragment, including leading whitespace.
        public var content: String
        /// The segment that the fragment belongs to; nil for the current one.
        public var segmentID: String?
        /// The number of tokens generated; added to the usage, unless the executor reports the usage itself.
        public var tokenCount: Int
    }

    /// A text that replaces the text of a segment.
    public struct TextSegmentReplacement: Sendable {
        /// The complete new text.
        public var content: String
        /// The segment whose text is replaced; nil for the current one.
        public var segmentID: String?
        /// The number of tokens generated; added to the usage, unless the executor reports the usage itself.
        public var tokenCount: Int
    }

    /// Metadata to store with an entry or a call.
    public struct Metadata: Sendable {
        /// The values by name. They replace all previous metadata.
        public var values: [String: GeneratedContent]

        init(_ values: [String: any ConvertibleToGeneratedContent]) { self.values = values.mapValues(\.generatedContent) }
    }

    /// The token usage of a request, as counted by its executor.
    public struct Usage: Sendable {
        /// The tokens that the model processed as input.
        public var input: LanguageModelExecutorGenerationChannel.Usage.Input
        /// The tokens that the model generated.
        public var output: LanguageModelExecutorGenerationChannel.Usage.Output
        /// Additional values by name, which appear in the usage of the response.
        public var metadata: [String: GeneratedContent]

        /// Creates the usage of the whole request so far.
        public init(
            input: LanguageModelExecutorGenerationChannel.Usage.Input,
            output: LanguageModelExecutorGenerationChannel.Usage.Output,
            metadata: [String: any ConvertibleToGeneratedContent] = [:]
        ) {
            self.input = input
            self.output = output
            self.metadata = metadata.mapValues(\.generatedContent)
        }

        /// Input tokens.
        public struct Input: Sendable {
            /// The number of tokens in the whole prompt.
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
            /// The number of all generated tokens, including reasoning.
            public var totalTokenCount: Int
            /// The number of these tokens that were reasoning.
            public var reasoningTokenCount: Int

            /// Creates the counts; the total includes reasoning tokens.
            public init(totalTokenCount: Int, reasoningTokenCount: Int) {
                self.totalTokenCount = totalTokenCount
                self.reasoningTokenCount = reasoningTokenCount
            }
        }
    }
}
