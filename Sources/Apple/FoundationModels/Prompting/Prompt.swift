/// A prompt for a model: text, generable values and pictures.
public struct Prompt: Sendable {
    /// The components, in order.
    let parts: [PromptPart]

    init(parts: [PromptPart]) { self.parts = parts }

    /// Creates a prompt from one value.
    public init(_ content: some PromptRepresentable) { self = content.promptRepresentation }

    /// Creates a prompt from the components of a builder; each component begins a new line.
    public init(@PromptBuilder _ content: () throws -> Prompt) rethrows { self = try content() }
}

/// A value that can be part of a prompt.
public protocol PromptRepresentable {
    /// The value as a prompt. The body may be written in builder syntax.
    @PromptBuilder var promptRepresentation: Prompt { get }
}

// The requirement is a builder; an explicit return prevents the builder from being applied to its own result.

extension Prompt: PromptRepresentable {
    public var promptRepresentation: Prompt { return self }
}

extension String: PromptRepresentable {
    public var promptRepresentation: Prompt { return Prompt(parts: [.text(self)]) }
}

extension Array: PromptRepresentable where Element: PromptRepresentable {
    public var promptRepresentation: Prompt { return Prompt(parts: flatMap(\.promptRepresentation.parts)) }
}

/// Combines the components of a prompt.
@resultBuilder
public struct PromptBuilder {
    /// Joins several components in their order.
    public static func buildBlock<each P>(_ components: repeat each P) -> Prompt where repeat each P: PromptRepresentable {
        var parts: [PromptPart] = []
        for component in repeat each components { parts += component.promptRepresentation.parts }
        return Prompt(parts: parts)
    }

    /// Joins the results of a `for` loop in their order.
    public static func buildArray(_ prompts: [some PromptRepresentable]) -> Prompt { prompts.promptRepresentation }

    /// The first branch of an `if` with `else`, or of a `switch`.
    public static func buildEither(first component: some PromptRepresentable) -> Prompt { component.promptRepresentation }

    /// The second branch of an `if` with `else`, or of a `switch`.
    public static func buildEither(second component: some PromptRepresentable) -> Prompt { component.promptRepresentation }

    /// An `if` without `else`; a false condition adds nothing, not even an empty line.
    public static func buildOptional(_ component: Prompt?) -> Prompt { component ?? Prompt(parts: []) }

    /// An `if #available`: erases the type, so that it need not exist on older systems.
    public static func buildLimitedAvailability(_ prompt: some PromptRepresentable) -> Prompt { prompt.promptRepresentation }

    /// A single value, unchanged.
    @_disfavoredOverload
    public static func buildExpression<P>(_ expression: P) -> P where P: PromptRepresentable { expression }

    /// A nested prompt, unchanged.
    public static func buildExpression(_ expression: Prompt) -> Prompt { expression }

    @available(*, unavailable, message: "Only Prompt and types that conform to PromptRepresentable can be part of a prompt.")
    public static func buildExpression<T>(_ expression: T) -> Prompt { Prompt(parts: []) }
}
