/// A type whose values a model can generate.
///
/// The ``Generable(description:)`` macro generates the conformance for structures and enumerations.
public protocol Generable: ConvertibleFromGeneratedContent, ConvertibleToGeneratedContent {
    /// The type of a value that is still being generated.
    associatedtype PartiallyGenerated: ConvertibleFromGeneratedContent = Self

    /// The schema that constrains the model when it generates a value.
    static var generationSchema: GenerationSchema { get }
}

/// A type that can be created from generated content.
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
    /// The value converted to its partially generated type.
    public func asPartiallyGenerated() -> PartiallyGenerated {
        let content = generatedContent
        do {
            return try PartiallyGenerated(content)
        } catch {
            // The type must be able to read its own content; a failure is a bug in a hand-written conformance.
            preconditionFailure("\(Self.self).PartiallyGenerated cannot be created from \(content.jsonString): \(error)")
        }
    }
}

/// Identifies a generated value while it is being generated. The id is not saved with the value.
public struct GenerationID: Sendable, Hashable {
    private let value: UInt64

    /// Creates a unique id.
    public init() { value = .random(in: .min ... .max) }
}
