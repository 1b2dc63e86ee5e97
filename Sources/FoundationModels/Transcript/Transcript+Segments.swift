public import Foundation

extension Transcript {
    /// A part of an entry.
    public enum Segment: Sendable, Identifiable, Equatable, CustomStringConvertible {
        /// Text.
        case text(Transcript.TextSegment)
        /// A value that a schema describes.
        case structure(Transcript.StructuredSegment)
        /// Something that is not text.
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

        /// A piece of text, under an id of its own.
        public init(id: String = UUID().uuidString, content: String) {
            self.id = id
            self.content = content
        }

        public var description: String { content }
    }

    /// A value that a schema describes.
    public struct StructuredSegment: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        /// The former name of ``schemaName``.
        @available(*, deprecated, renamed: "schemaName")
        public var source: String {
            get { schemaName }
            set { schemaName = newValue }
        }
        /// Name of the schema.
        public var schemaName: String
        /// The value, with its members in their order.
        public var content: GeneratedContent

        /// The former spelling of the initializer with `schemaName`.
        @available(*, deprecated, renamed: "init(id:schemaName:content:)")
        public init(id: String = UUID().uuidString, source: String, content: GeneratedContent) {
            self.init(id: id, schemaName: source, content: content)
        }

        /// A value, under an id of its own.
        public init(id: String = UUID().uuidString, schemaName: String, content: GeneratedContent) {
            self.id = id
            self.schemaName = schemaName
            self.content = content
        }

        public var description: String { content.jsonString }
    }

    /// Something that is not text.
    public struct AttachmentSegment: Sendable, Identifiable, Equatable, CustomStringConvertible {
        public var id: String
        /// What is attached.
        public var content: Transcript.Attachment
        /// What tools and the model know it as.
        public var label: String?

        /// An attachment; without a label, tools cannot find it.
        public init(id: String = UUID().uuidString, content: Transcript.Attachment, label: String? = nil) {
            self.id = id
            self.content = content
            self.label = label
        }

        public var description: String { label.map { "[image “\($0)”]" } ?? "[image]" }
    }

    /// Something that is not text.
    public enum Attachment: Sendable, Equatable {
        /// A picture.
        case image(Transcript.ImageAttachment)
    }

    /// A picture in a file.
    public struct ImageAttachment: Sendable, Equatable {
        /// The file; nil for pictures that came with a saved transcript.
        public let url: URL?
        /// The picture of a saved transcript: the file's bytes and their media type.
        let embedded: Embedded?

        struct Embedded: Sendable, Equatable {
            var mediaType: String
            var data: Data
        }

        /// A picture in a file, which is read when a model looks at it or the transcript is saved.
        public init(imageURL: URL) {
            url = imageURL
            embedded = nil
        }

        init(embedded: Embedded) {
            url = nil
            self.embedded = embedded
        }
    }
}

extension [Transcript.Segment] {
    /// The segments as one text, a line each.
    var text: String { map(\.description).joined(separator: "\n") }
}
