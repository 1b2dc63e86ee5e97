internal import JSON
public import Foundation
public import UniformTypeIdentifiers

extension Transcript {
    /// A part of an entry.
    public enum Segment: Sendable, Identifiable, Equatable, CustomStringConvertible {
        /// Text.
        case text(Transcript.TextSegment)
        /// A value with a schema.
        case structure(Transcript.StructuredSegment)
        /// Content that is not text.
        case attachment(Transcript.AttachmentSegment)

        public var id: String {
            switch self {
            case .text(let segment): segment.id
            case .structure(let segment): segment.id
            case .attachment(let segment): segment.id
            }
        }

        public var description: String {
            switch self {
            case .text(let segment): segment.description
            case .structure(let segment): segment.description
            case .attachment(let segment): segment.description
            }
        }
    }

    /// Text.
    public struct TextSegment: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        /// The text; it may have several lines.
        public var content: String

        /// Creates a text segment; by default it gets a new id.
        public init(id: String = UUID().uuidString, content: String) {
            self.id = id
            self.content = content
        }

        public var description: String { content }
    }

    /// A value with a schema.
    public struct StructuredSegment: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        /// The former name of ``schemaName``.
        @available(*, deprecated, renamed: "schemaName")
        public var source: String {
            get { schemaName }
            set { schemaName = newValue }
        }
        /// The name of the schema.
        public var schemaName: String
        /// The value; its members keep their order.
        public var content: GeneratedContent

        /// The former spelling of the initializer with `schemaName`.
        @available(*, deprecated, renamed: "init(id:schemaName:content:)")
        public init(id: String = UUID().uuidString, source: String, content: GeneratedContent) {
            self.init(id: id, schemaName: source, content: content)
        }

        /// Creates a structured segment; by default it gets a new id.
        public init(id: String = UUID().uuidString, schemaName: String, content: GeneratedContent) {
            self.id = id
            self.schemaName = schemaName
            self.content = content
        }

        public var description: String { content.jsonString }
    }

    /// Content that is not text.
    public struct AttachmentSegment: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        /// The attached content.
        public var content: Transcript.Attachment
        /// The label by which tools and the model refer to the attachment.
        public var label: String?

        /// Creates an attachment. Without a label, tools cannot find it.
        public init(id: String = UUID().uuidString, content: Transcript.Attachment, label: String? = nil) {
            self.id = id
            self.content = content
            self.label = label
        }

        public var description: String {
            let kind =
                switch content {
                case .image: "image"
                case .data(let data): data.contentType.identifier
                }
            return label.map { "[\(kind) “\($0)”]" } ?? "[\(kind)]"
        }
    }

    /// Content that is not text.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive(warn)
    #endif
    public enum Attachment: Sendable, Equatable {
        /// A picture.
        case image(Transcript.ImageAttachment)
        /// Data of a type that the model must know.
        case data(Transcript.DataAttachment)
    }

    /// Data that is attached to a prompt, a tool's output or a response.
    public struct DataAttachment: Sendable, Equatable {
        /// The type of the data.
        public var contentType: UTType
        /// The data.
        public var content: Data
        /// An object with further values.
        public var metadata: GeneratedContent

        /// Creates an attachment.
        public init(
            contentType: UTType, content: Data, metadata: GeneratedContent = GeneratedContent(properties: [:])
        ) {
            self.contentType = contentType
            self.content = content
            self.metadata = metadata
        }
    }

    /// A picture in a file.
    public struct ImageAttachment: Sendable, Equatable {
        /// The file. For a picture from a saved transcript, a `data:` URL that contains the picture (RFC 2397).
        public var url: URL? { file ?? embedded.flatMap { URL(string: $0.dataURL) } }
        /// The file; nil for pictures decoded from a saved transcript.
        let file: URL?
        /// The picture from a saved transcript: the file's bytes and their media type.
        let embedded: Embedded?

        struct Embedded: Sendable, Equatable {
            var mediaType: String
            var data: Data

            var dataURL: String { "data:\(mediaType);base64,\(data.base64EncodedString())" }
        }

        /// Creates a reference to a picture file. The file is read when a model processes it or the transcript is
        /// saved.
        public init(imageURL: URL) {
            file = imageURL
            embedded = nil
        }

        init(embedded: Embedded) {
            file = nil
            self.embedded = embedded
        }
    }
}

extension [Transcript.Segment] {
    /// The text of all segments, one per line.
    var text: String { map(\.description).joined(separator: "\n") }
}

extension Transcript {
    /// The text of the last prompt, for the checks of prompts; empty if there is none.
    var lastPromptText: String {
        guard case .prompt(let prompt)? = last(where: { if case .prompt = $0 { true } else { false } }) else { return "" }
        return prompt.segments.modelText
    }
}

extension [Transcript.Segment] {
    /// The segments' text for the model: structures are compact JSON, as the model generates it.
    package var modelText: String {
        map { segment in
            switch segment {
            case .text(let text): text.content
            case .structure(let structure): structure.content.json.text
            case .attachment(let attachment): attachment.description
            }
        }.joined(separator: "\n")
    }
}
