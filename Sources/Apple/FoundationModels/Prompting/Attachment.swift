public import Foundation

/// Content of a prompt that is not text.
///
/// ```swift
/// let prompt = Prompt {
///     "What is in this picture?"
///     Attachment(imageURL: url).label("photo")
/// }
/// ```
public struct Attachment<Content> {
    private let content: Transcript.Attachment
    private let label: String?

    private init(content: Transcript.Attachment, label: String?) {
        self.content = content
        self.label = label
    }

    /// The attachment with a label by which tools can find it.
    public func label(_ label: String) -> Attachment<Content> { Attachment(content: content, label: label) }

    private var part: PromptPart { .attachment(.init(content: content, label: label)) }
}

extension Attachment: PromptRepresentable {
    public var promptRepresentation: Prompt { return Prompt(parts: [part]) }
}

extension Attachment: InstructionsRepresentable {
    public var instructionsRepresentation: Instructions { return Instructions(parts: [part]) }
}

extension Attachment where Content == ImageAttachmentContent {
    /// Creates an attachment from a picture file, which is read when the prompt is used.
    public init(imageURL: URL) { self.init(content: .image(.init(imageURL: imageURL)), label: nil) }
}

extension Attachment where Content: DataAttachmentRepresentable {
    /// Creates an attachment from a value, which is sent as data of its type. The model must support this type.
    public init(_ content: Content) { self.init(content: .data(content.transcriptRepresentation), label: nil) }
}

/// A type whose values can be attached to prompts as data.
public protocol DataAttachmentRepresentable: Sendable {
    /// Creates a value from an attachment of a transcript.
    ///
    /// - Throws: An error of the conforming type if the attachment is not such a value.
    init(_ attachment: Transcript.DataAttachment) throws
    /// The value as an attachment.
    var transcriptRepresentation: Transcript.DataAttachment { get }
}

/// A type whose values models generate as entries of data.
public protocol DataEntryRepresentable: Sendable {
    /// Creates a value from an entry of a transcript.
    ///
    /// - Throws: An error of the conforming type if the entry is not such a value.
    init(_ entry: Transcript.DataEntry) throws
    /// The value as an entry.
    var transcriptRepresentation: Transcript.DataEntry { get }
}

/// The content type of attachments that are pictures.
public struct ImageAttachmentContent: Sendable, Equatable {}

/// A reference to a picture of the conversation by its label: the argument type with which a model passes a picture to
/// a tool.
public struct ImageReference: Sendable, Equatable {
    /// The label of the attached picture.
    public let attachmentLabel: String

    /// The picture with the label; nil if there is none.
    public func resolved(in transcript: some Sequence<Transcript.Entry>) -> Transcript.ImageAttachment? {
        for entry in transcript {
            for case .attachment(let attachment) in entry.segments where attachment.label == attachmentLabel {
                if case .image(let image) = attachment.content { return image }
            }
        }
        return nil
    }
}

extension ImageReference: nonisolated Generable {
    public nonisolated static var generationSchema: GenerationSchema {
        GenerationSchema(type: Self.self, properties: [.init(name: "attachmentLabel", type: String.self)])
    }

    public nonisolated var generatedContent: GeneratedContent {
        GeneratedContent(properties: ["attachmentLabel": attachmentLabel])
    }

    public nonisolated init(_ content: GeneratedContent) throws {
        attachmentLabel = try content.value(forProperty: "attachmentLabel")
    }

    /// A reference that is still being generated.
    public nonisolated struct PartiallyGenerated: Identifiable, nonisolated ConvertibleFromGeneratedContent, Equatable, Sendable {
        public var id: GenerationID
        /// The label generated so far; nil before it begins.
        public var attachmentLabel: String.PartiallyGenerated?

        public nonisolated init(_ content: GeneratedContent) throws {
            id = content.id ?? GenerationID()
            attachmentLabel = try content.value(forProperty: "attachmentLabel")
        }
    }
}
