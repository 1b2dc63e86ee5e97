public import Foundation
public import UniformTypeIdentifiers

extension Transcript {
    /// One step of a conversation.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive(warn)
    #endif
    public enum Entry: Sendable, Identifiable, Equatable, CustomStringConvertible {
        /// The model's instructions, which precede everything else, and the tools that it may call.
        case instructions(Transcript.Instructions)
        /// A prompt.
        case prompt(Transcript.Prompt)
        /// Tool calls that the model made in one response.
        case toolCalls(Transcript.ToolCalls)
        /// The output of a tool call.
        case toolOutput(Transcript.ToolOutput)
        /// The model's response.
        case response(Transcript.Response)
        /// The model's reasoning before its response.
        case reasoning(Transcript.Reasoning)
        /// Data that the model generated beside its response.
        case data(Transcript.DataEntry)

        public var id: String {
            switch self {
            case .instructions(let entry): entry.id
            case .prompt(let entry): entry.id
            case .toolCalls(let entry): entry.id
            case .toolOutput(let entry): entry.id
            case .response(let entry): entry.id
            case .reasoning(let entry): entry.id
            case .data(let entry): entry.id
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
            case .data(let entry): entry.description
            }
        }
    }

    /// The model's instructions, which precede everything else, and the tools that it may call.
    public struct Instructions: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        /// The parts of the instructions, in order.
        public var segments: [Transcript.Segment]
        /// The tools that the model may call.
        public var toolDefinitions: [Transcript.ToolDefinition]

        /// Creates instructions for a transcript that a program builds itself.
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

    /// A tool's definition, as models receive it.
    public struct ToolDefinition: Sendable, Equatable {
        /// The name by which the model calls the tool.
        public var name: String
        /// A description for the model of when to use the tool.
        public var description: String
        /// The schema of the arguments.
        public var parameters: GenerationSchema
        /// Whether the parameters' schema is part of the prompt.
        var explainsParameters = true
        /// Whether calls with equal arguments may be made again for the same prompt.
        var isRepeatable = false

        /// Creates a definition whose parameters' schema is part of the prompt.
        public init(name: String, description: String, parameters: GenerationSchema) {
            self.name = name
            self.description = description
            self.parameters = parameters
        }

        /// Creates the definition of a tool.
        public init(tool: some Tool) {
            self.init(name: tool.name, description: tool.description, parameters: tool.parameters)
            explainsParameters = tool.includesSchemaInInstructions
            isRepeatable = tool is any _RepeatableTool
        }

        public static func == (a: Transcript.ToolDefinition, b: Transcript.ToolDefinition) -> Bool {
            a.name == b.name && a.description == b.description && a.parameters.json == b.parameters.json
        }
    }

    /// A prompt and the options for its response.
    public struct Prompt: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        /// The parts of the prompt, in order.
        public var segments: [Transcript.Segment]
        /// Options for generating the response.
        public var options: GenerationOptions
        /// Whether the schema was part of the prompt, and the level of reasoning.
        public var contextOptions: ContextOptions
        /// Metadata that the caller passed on to the model.
        public var metadata: [String: GeneratedContent]
        /// The required format of the response; nil for text.
        public var responseFormat: Transcript.ResponseFormat?

        /// Creates a prompt for a transcript that a program builds itself.
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

        /// Creates a prompt without metadata and context options.
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

    /// The required format of a response.
    public struct ResponseFormat: Sendable, Equatable, CustomStringConvertible {
        /// A description of the format.
        public enum Kind: Sendable, Equatable {
            /// A schema that constrains the response.
            case schema(GenerationSchema)

            public static func == (a: Transcript.ResponseFormat.Kind, b: Transcript.ResponseFormat.Kind) -> Bool {
                switch (a, b) {
                case (.schema(let a), .schema(let b)): a.json == b.json
                }
            }
        }

        /// The description of the format.
        public let kind: Transcript.ResponseFormat.Kind

        /// The schema's name.
        public var name: String {
            switch kind {
            case .schema(let schema): schema.name
            }
        }

        /// Creates the format of a `Generable` type's values.
        public init<Content>(type: Content.Type) where Content: Generable { self.init(schema: Content.generationSchema) }
        /// Creates the format that a schema describes.
        public init(schema: GenerationSchema) { kind = .schema(schema) }

        var schema: GenerationSchema {
            switch kind {
            case .schema(let schema): schema
            }
        }

        public var description: String { name }
    }

    /// Tool calls that the model made in one response; they run concurrently.
    public struct ToolCalls: Sendable, Identifiable, Equatable, RandomAccessCollection, CustomStringConvertible {
        public typealias Element = Transcript.ToolCall
        public typealias Index = Int
        public typealias Indices = Range<Int>
        public typealias Iterator = IndexingIterator<Transcript.ToolCalls>
        public typealias SubSequence = Slice<Transcript.ToolCalls>

        public var id: String
        private let calls: [Transcript.ToolCall]

        /// Creates an entry from calls, in the order in which the model made them.
        public init<S>(id: String = UUID().uuidString, _ calls: S) where S: Sequence, S.Element == Transcript.ToolCall {
            self.id = id
            self.calls = Array(calls)
        }

        public subscript(position: Int) -> Transcript.ToolCall { calls[position] }
        public var startIndex: Int { calls.startIndex }
        public var endIndex: Int { calls.endIndex }

        public var description: String { "(Tool calls) " + calls.map(\.description).joined(separator: "\n") }
    }

    /// A tool call.
    public struct ToolCall: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        /// The name of the tool to call.
        public var toolName: String
        /// The arguments: an object that conforms to the tool's parameters.
        public var arguments: GeneratedContent
        /// Metadata from the model's executor about the call.
        public var metadata: [String: GeneratedContent]

        /// Creates a call without metadata.
        public init(id: String, toolName: String, arguments: GeneratedContent) {
            self.init(id: id, metadata: [:], toolName: toolName, arguments: arguments)
        }

        /// Creates a call with metadata from the model's executor.
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

    /// The output of a tool call.
    public struct ToolOutput: Sendable, Identifiable, Equatable, CustomStringConvertible {
        /// The id of the call.
        public var id: String
        /// The name of the tool that was called.
        public var toolName: String
        /// The parts of the output, in order: text, structured values, or pictures.
        public var segments: [Transcript.Segment]

        /// Creates the output of a call.
        ///
        /// - Parameter id: The id of the call.
        public init(id: String, toolName: String, segments: [Transcript.Segment]) {
            self.id = id
            self.toolName = toolName
            self.segments = segments
        }

        public var description: String { "(Tool output) \(toolName): " + segments.text }
    }

    /// The model's response.
    public struct Response: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        /// The identifiers of the models that generated the response.
        public var assetIDs: [String]
        /// The parts of the response: text, or one structured value.
        public var segments: [Transcript.Segment]
        /// Metadata from the model's executor about the response.
        public let metadata: [String: GeneratedContent]

        /// Creates a response. The asset ids are also stored in its metadata, under `assetIDs`.
        public init(id: String = UUID().uuidString, assetIDs: [String], segments: [Transcript.Segment]) {
            self.id = id
            self.assetIDs = assetIDs
            self.segments = segments
            metadata = assetIDs.isEmpty ? [:] : ["assetIDs": assetIDs.generatedContent]
        }

        /// Creates a response whose asset ids are those in the metadata under `assetIDs`, or none if there are none.
        public init(
            id: String = UUID().uuidString, metadata: [String: any ConvertibleToGeneratedContent] = [:],
            segments: [Transcript.Segment]
        ) {
            self.id = id
            self.metadata = metadata.mapValues(\.generatedContent)
            self.segments = segments
            // The metadata may contain a value of another type under this name.
            assetIDs = (try? self.metadata["assetIDs"].map { try [String]($0) } ?? []) ?? []
        }

        public var description: String { "(Response) " + segments.text }
    }

    /// The model's reasoning before its response.
    public struct Reasoning: Sendable, Identifiable, Equatable {
        public var id: String
        /// The text of the reasoning, in order.
        public var segments: [Transcript.Segment]
        /// A signature with which the model's provider can verify that it generated the reasoning.
        public var signature: Data?
        /// Metadata from the model's executor about the reasoning.
        public var metadata: [String: GeneratedContent]

        /// Creates reasoning for a transcript that a program builds itself.
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

    /// Data that the model generated beside its response, such as citations or search results. Models that do not know its type leave
    /// it out.
    public struct DataEntry: Sendable, Equatable, Identifiable, CustomStringConvertible {
        public var id: String
        /// The type of the data.
        public var contentType: UTType
        /// The data.
        public var content: Data
        /// An object with further values.
        public var metadata: GeneratedContent

        /// Creates an entry; by default it gets a new id.
        public init(
            id: String = UUID().uuidString, contentType: UTType, content: Data,
            metadata: GeneratedContent = GeneratedContent(properties: [:])
        ) {
            self.id = id
            self.contentType = contentType
            self.content = content
            self.metadata = metadata
        }

        public var description: String { "(Data) \(contentType.identifier), \(content.count) bytes" }
    }
}
