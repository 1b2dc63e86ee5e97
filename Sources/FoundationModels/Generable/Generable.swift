/// A type whose values a model can generate.
public protocol Generable: ConvertibleFromGeneratedContent, ConvertibleToGeneratedContent {
    /// What there is of a value while it is still being generated.
    associatedtype PartiallyGenerated: ConvertibleFromGeneratedContent = Self
}

/// A type that can be made from what a model generated.
public protocol ConvertibleFromGeneratedContent: SendableMetatype {
    init(_ content: GeneratedContent) throws
}

/// A type that can be put into a prompt or a transcript as generated content.
public protocol ConvertibleToGeneratedContent: InstructionsRepresentable, PromptRepresentable {
    var generatedContent: GeneratedContent { get }
}

extension ConvertibleToGeneratedContent {
    public var instructionsRepresentation: Instructions { return Instructions(components: [generatedContent.jsonString]) }
    public var promptRepresentation: Prompt { return Prompt(components: [generatedContent.jsonString]) }
}

extension String: Generable {
    /// - Throws: ``GeneratedContent/ParsingError`` if the content is not a string.
    public init(_ content: GeneratedContent) throws {
        guard case .string(let text) = content.kind else {
            throw GeneratedContent.ParsingError(rawContent: content.jsonString, debugDescription: "The content is not a string.")
        }
        self = text
    }

    public var generatedContent: GeneratedContent { GeneratedContent(kind: .string(self)) }
}

/// Identifies a generated value while it grows.
public struct GenerationID: Sendable, Hashable {
    private let value: UInt64
    public init() { value = .random(in: .min ... .max) }
}
