public import Foundation

extension Transcript {
    /// One step of a conversation.
    public enum Entry: Sendable, Identifiable, Equatable, CustomStringConvertible {
        /// What the model was told before anything else, and the tools it may call.
        case instructions(Transcript.Instructions)
        /// What was asked.
        case prompt(Transcript.Prompt)
        /// The calls that the model made at once.
        case toolCalls(Transcript.ToolCalls)
        /// What a call gave.
        case toolOutput(Transcript.ToolOutput)
        /// What the model answered.
        case response(Transcript.Response)
        /// What the model thought on the way.
        case reasoning(Transcript.Reasoning)

        public var id: String {
            switch self {
            case .instructions(let entry): entry.id
            case .prompt(let entry): entry.id
            case .toolCalls(let entry): entry.id
            case .toolOutput(let entry): entry.id
            case .response(let entry): entry.id
            case .reasoning(let entry): entry.id
            }
        }

        public var description: String {
            switch self {
            case .instructions(let entry): entry.description
            case .prompt(let entry): entry.description
            case .toolCalls(let entry): entry.description
            case .toolOutput(let entry): entry.description
            case .response(let entry): entry.description
            case .reasoning(let entry): entry.description
            }
        }
    }

    /// What the model was told before anything else, and the tools it may call.
    public struct Instructions: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        /// What the model was told, in order.
        public var segments: [Transcript.Segment]
        /// The tools that the model may call.
        public var toolDefinitions: [Transcript.ToolDefinition]

        /// Instructions for transcripts that a program makes itself.
        public init(
            id: String = UUID().uuidString, segments: [Transcript.Segment], toolDefinitions: [Transcript.ToolDefinition]
        ) {
            self.id = id
            self.segments = segments
            self.toolDefinitions = toolDefinitions
        }

        public var description: String {
            let tools = toolDefinitions.isEmpty ? "" : "\n(Tools) " + toolDefinitions.map(\.name).joined(separator: ", ")
            return "(Instructions) " + segments.text + tools
        }
    }

    /// A tool as models know it.
    public struct ToolDefinition: Sendable, Equatable {
        /// What the model calls it by.
        public var name: String
        /// When to use it, for the model.
        public var description: String
        /// What the arguments must be.
        public var parameters: GenerationSchema
        /// Whether models are told the parameters.
        var explainsParameters = true

        /// A tool whose parameters models are told.
        public init(name: String, description: String, parameters: GenerationSchema) {
            self.name = name
            self.description = description
            self.parameters = parameters
        }

        /// A tool as it describes itself.
        public init(tool: some Tool) {
            self.init(name: tool.name, description: tool.description, parameters: tool.parameters)
            explainsParameters = tool.includesSchemaInInstructions
        }

        public static func == (a: Transcript.ToolDefinition, b: Transcript.ToolDefinition) -> Bool {
            a.name == b.name && a.description == b.description && a.parameters.json == b.parameters.json
        }
    }

    /// What was asked, and how it was to be answered.
    public struct Prompt: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        /// What was asked, in order.
        public var segments: [Transcript.Segment]
        /// How the response was to be generated.
        public var options: GenerationOptions
        /// What the model was to be told besides, and how long it was to think.
        public var contextOptions: ContextOptions
        /// What the caller passed on to the model.
        public var metadata: [String: GeneratedContent]
        /// What the response had to be; nil for text.
        public var responseFormat: Transcript.ResponseFormat?

        /// A prompt for transcripts that a program makes itself.
        public init(
            id: String = UUID().uuidString, metadata: [String: any ConvertibleToGeneratedContent] = [:],
            segments: [Transcript.Segment], options: GenerationOptions = GenerationOptions(),
            responseFormat: Transcript.ResponseFormat? = nil, contextOptions: ContextOptions = ContextOptions()
        ) {
            self.id = id
            self.metadata = metadata.mapValues(\.generatedContent)
            self.segments = segments
            self.options = options
            self.responseFormat = responseFormat
            self.contextOptions = contextOptions
        }

        /// A prompt without metadata and context options.
        public init(
            id: String = UUID().uuidString, segments: [Transcript.Segment],
            options: GenerationOptions = GenerationOptions(), responseFormat: Transcript.ResponseFormat? = nil
        ) {
            self.init(
                id: id, metadata: [:], segments: segments, options: options, responseFormat: responseFormat,
                contextOptions: ContextOptions())
        }

        public var description: String { "(Prompt) " + segments.text }
    }

    /// What a response has to be.
    public struct ResponseFormat: Sendable, Equatable, CustomStringConvertible {
        /// What describes the response.
        public enum Kind: Sendable, Equatable {
            /// A schema that the response is held to.
            case schema(GenerationSchema)

            public static func == (a: Transcript.ResponseFormat.Kind, b: Transcript.ResponseFormat.Kind) -> Bool {
                switch (a, b) {
                case (.schema(let a), .schema(let b)): a.json == b.json
                }
            }
        }

        /// What describes the response.
        public let kind: Transcript.ResponseFormat.Kind

        /// The schema's name.
        public var name: String {
            switch kind {
            case .schema(let schema): schema.name
            }
        }

        /// A value of a type.
        public init<Content>(type: Content.Type) where Content: Generable { self.init(schema: Content.generationSchema) }
        /// What a schema describes.
        public init(schema: GenerationSchema) { kind = .schema(schema) }

        var schema: GenerationSchema {
            switch kind {
            case .schema(let schema): schema
            }
        }

        public var description: String { name }
    }

    /// The calls that the model made at once: they run side by side.
    public struct ToolCalls: Sendable, Identifiable, Equatable, RandomAccessCollection, CustomStringConvertible {
        public typealias Element = Transcript.ToolCall
        public typealias Index = Int
        public typealias Indices = Range<Int>
        public typealias Iterator = IndexingIterator<Transcript.ToolCalls>
        public typealias SubSequence = Slice<Transcript.ToolCalls>

        public var id: String
        private let calls: [Transcript.ToolCall]

        /// Calls in the order in which the model made them.
        public init<S>(id: String = UUID().uuidString, _ calls: S) where S: Sequence, S.Element == Transcript.ToolCall {
            self.id = id
            self.calls = Array(calls)
        }

        public subscript(position: Int) -> Transcript.ToolCall { calls[position] }
        public var startIndex: Int { calls.startIndex }
        public var endIndex: Int { calls.endIndex }

        public var description: String { "(Tool calls) " + calls.map(\.description).joined(separator: "\n") }
    }

    /// A call of a tool.
    public struct ToolCall: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        /// Name of the tool that is called.
        public var toolName: String
        /// What the tool is given: an object, as its parameters describe it.
        public var arguments: GeneratedContent
        /// What the model's executor says about the call.
        public var metadata: [String: GeneratedContent]

        /// A call that there is nothing more to say about.
        public init(id: String, toolName: String, arguments: GeneratedContent) {
            self.init(id: id, metadata: [:], toolName: toolName, arguments: arguments)
        }

        /// A call with what the model's executor says about it.
        public init(
            id: String, metadata: [String: any ConvertibleToGeneratedContent], toolName: String, arguments: GeneratedContent
        ) {
            self.id = id
            self.metadata = metadata.mapValues(\.generatedContent)
            self.toolName = toolName
            self.arguments = arguments
        }

        public var description: String { "\(toolName): \(arguments.jsonString)" }
    }

    /// What a call gave.
    public struct ToolOutput: Sendable, Identifiable, Equatable, CustomStringConvertible {
        /// The call's.
        public var id: String
        /// Name of the tool that was called.
        public var toolName: String
        /// What it gave, in order: text, a value, pictures.
        public var segments: [Transcript.Segment]

        /// What a call gave.
        ///
        /// - Parameter id: The call's.
        public init(id: String, toolName: String, segments: [Transcript.Segment]) {
            self.id = id
            self.toolName = toolName
            self.segments = segments
        }

        public var description: String { "(Tool output) \(toolName): " + segments.text }
    }

    /// What the model answered.
    public struct Response: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        /// The models that made the response.
        public var assetIDs: [String]
        /// What the model said: text, or one value.
        public var segments: [Transcript.Segment]
        /// What the model's executor says about the response.
        public let metadata: [String: GeneratedContent]

        /// A response of these models, which are also in its metadata, as `assetIDs`.
        public init(id: String = UUID().uuidString, assetIDs: [String], segments: [Transcript.Segment]) {
            self.id = id
            self.assetIDs = assetIDs
            self.segments = segments
            metadata = assetIDs.isEmpty ? [:] : ["assetIDs": assetIDs.generatedContent]
        }

        /// A response of the models that the metadata names as `assetIDs`; of none if it does not.
        public init(
            id: String = UUID().uuidString, metadata: [String: any ConvertibleToGeneratedContent] = [:],
            segments: [Transcript.Segment]
        ) {
            self.id = id
            self.metadata = metadata.mapValues(\.generatedContent)
            self.segments = segments
            // Metadata may use the name for something else.
            assetIDs = (try? self.metadata["assetIDs"].map { try [String]($0) } ?? []) ?? []
        }

        public var description: String { "(Response) " + segments.text }
    }

    /// What the model thought on the way.
    public struct Reasoning: Sendable, Identifiable, Equatable {
        public var id: String
        /// The thoughts, in order.
        public var segments: [Transcript.Segment]
        /// What proves to the model's provider that the thoughts are its own.
        public var signature: Data?
        /// What the model's executor says about the thoughts.
        public var metadata: [String: GeneratedContent]

        /// Thoughts for transcripts that a program makes itself.
        public init(
            id: String = UUID().uuidString, metadata: [String: any ConvertibleToGeneratedContent] = [:],
            segments: [Transcript.Segment], signature: Data? = nil
        ) {
            self.id = id
            self.metadata = metadata.mapValues(\.generatedContent)
            self.segments = segments
            self.signature = signature
        }

        public var description: String { "(Reasoning) " + segments.text }
    }
}
