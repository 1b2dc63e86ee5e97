/// What is asked of a model: text, generable values and pictures.
public struct Prompt: Sendable {
    /// The components, in order.
    let parts: [PromptPart]

    init(parts: [PromptPart]) { self.parts = parts }

    /// A prompt from one value.
    public init(_ content: some PromptRepresentable) { self = content.promptRepresentation }

    /// A prompt from the components that the builder collects; each begins a line.
    public init(@PromptBuilder _ content: () throws -> Prompt) rethrows { self = try content() }
}

/// A value that can be part of a prompt.
public protocol PromptRepresentable {
    /// The value as a prompt. The body may be written in builder syntax.
    @PromptBuilder var promptRepresentation: Prompt { get }
}

// The requirement is a builder; an explicit return keeps the builder from being applied to its own result.

extension Prompt: PromptRepresentable {
    public var promptRepresentation: Prompt { return self }
}

extension String: PromptRepresentable {
    public var promptRepresentation: Prompt { return Prompt(parts: [.text(self)]) }
}

extension Array: PromptRepresentable where Element: PromptRepresentable {
    public var promptRepresentation: Prompt { return Prompt(parts: flatMap(\.promptRepresentation.parts)) }
}

/// Collects the components of a prompt.
@resultBuilder
public struct PromptBuilder {
    /// Several components: joined in their order.
    public static func buildBlock<each P>(_ components: repeat each P) -> Prompt where repeat each P: PromptRepresentable {
        var parts: [PromptPart] = []
        for component in repeat each components { parts += component.promptRepresentation.parts }
        return Prompt(parts: parts)
    }

    /// A `for` loop: what its rounds give, in order.
    public static func buildArray(_ prompts: [some PromptRepresentable]) -> Prompt { prompts.promptRepresentation }

    /// An `if` with `else`, or a `switch`: the first branch was taken.
    public static func buildEither(first component: some PromptRepresentable) -> Prompt { component.promptRepresentation }

    /// An `if` with `else`, or a `switch`: the other branch was taken.
    public static func buildEither(second component: some PromptRepresentable) -> Prompt { component.promptRepresentation }

    /// A condition that does not hold adds nothing, not even a line.
    public static func buildOptional(_ component: Prompt?) -> Prompt { component ?? Prompt(parts: []) }

    /// An `if #available`: the type is forgotten, so that older systems need not know it.
    public static func buildLimitedAvailability(_ prompt: some PromptRepresentable) -> Prompt { prompt.promptRepresentation }

    /// A value by itself: kept as it is.
    @_disfavoredOverload
    public static func buildExpression<P>(_ expression: P) -> P where P: PromptRepresentable { expression }

    /// A prompt within a prompt: kept as it is.
    public static func buildExpression(_ expression: Prompt) -> Prompt { expression }

    @available(*, unavailable, message: "Only Prompt and types that conform to PromptRepresentable can be part of a prompt.")
    public static func buildExpression<T>(_ expression: T) -> Prompt { Prompt(parts: []) }
}
