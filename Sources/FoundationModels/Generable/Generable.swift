/// A type whose values a model can generate.
///
/// The ``Generable(description:)`` macro writes the conformance for structures and enumerations.
public protocol Generable: ConvertibleFromGeneratedContent, ConvertibleToGeneratedContent {
    /// What there is of a value while it is still being generated.
    associatedtype PartiallyGenerated: ConvertibleFromGeneratedContent = Self

    /// What the model is held to when it generates a value.
    static var generationSchema: GenerationSchema { get }
}

/// A type that can be made from what a model generated.
public protocol ConvertibleFromGeneratedContent: SendableMetatype {
    /// - Throws: ``GeneratedContent/ParsingError`` if the content is not a value of this type.
    init(_ content: GeneratedContent) throws
}

/// A type that can be put into a prompt or a transcript as generated content.
public protocol ConvertibleToGeneratedContent: InstructionsRepresentable, PromptRepresentable {
    /// The value as generated content.
    var generatedContent: GeneratedContent { get }
}

extension ConvertibleToGeneratedContent {
    /// The value's JSON, as part of instructions.
    public var instructionsRepresentation: Instructions { return Instructions(parts: [.text(generatedContent.jsonString)]) }
    /// The value's JSON, as part of a prompt.
    public var promptRepresentation: Prompt { return Prompt(parts: [.text(generatedContent.jsonString)]) }
}

extension Generable {
    /// The value's JSON, as part of instructions.
    public var instructionsRepresentation: Instructions { return Instructions(parts: [.text(generatedContent.jsonString)]) }
    /// The value's JSON, as part of a prompt.
    public var promptRepresentation: Prompt { return Prompt(parts: [.text(generatedContent.jsonString)]) }
}

extension Generable {
    /// The value as if it had just been generated to its end.
    public func asPartiallyGenerated() -> PartiallyGenerated {
        let content = generatedContent
        do {
            return try PartiallyGenerated(content)
        } catch {
            // What the type itself wrote it must be able to read: that it cannot is a mistake in a conformance written by hand.
            preconditionFailure("\(Self.self).PartiallyGenerated cannot be made from \(content.jsonString): \(error)")
        }
    }
}

/// Identifies a generated value while it grows, and no longer: it is not saved with the value.
public struct GenerationID: Sendable, Hashable {
    private let value: UInt64

    /// A new identity.
    public init() { value = .random(in: .min ... .max) }
}
