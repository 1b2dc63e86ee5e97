/// Instructions for a model, which precede all prompts and take priority over them: text, generable values and
/// pictures.
public struct Instructions: Sendable {
    /// The components, in order.
    let parts: [PromptPart]

    init(parts: [PromptPart]) { self.parts = parts }

    /// Creates instructions from one value.
    public init(_ content: some InstructionsRepresentable) { self = content.instructionsRepresentation }

    /// Creates instructions from the components of a builder; each component begins a new line.
    public init(@InstructionsBuilder _ content: () throws -> Instructions) rethrows { self = try content() }
}

/// A value that can be part of instructions.
public protocol InstructionsRepresentable {
    /// The value as instructions. The body may be written in builder syntax.
    @InstructionsBuilder var instructionsRepresentation: Instructions { get }
}

// The requirement is a builder; an explicit return prevents the builder from being applied to its own result.

extension Instructions: InstructionsRepresentable {
    public var instructionsRepresentation: Instructions { return self }
}

extension String: InstructionsRepresentable {
    public var instructionsRepresentation: Instructions { return Instructions(parts: [.text(self)]) }
}

extension Array: InstructionsRepresentable where Element: InstructionsRepresentable {
    public var instructionsRepresentation: Instructions {
        return Instructions(parts: flatMap(\.instructionsRepresentation.parts))
    }
}

/// Combines the components of instructions.
@resultBuilder
public struct InstructionsBuilder {
    /// Joins several components in their order.
    public static func buildBlock<each I>(_ components: repeat each I) -> Instructions
    where repeat each I: InstructionsRepresentable {
        var parts: [PromptPart] = []
        for component in repeat each components { parts += component.instructionsRepresentation.parts }
        return Instructions(parts: parts)
    }

    /// Joins the results of a `for` loop in their order.
    public static func buildArray(_ instructions: [some InstructionsRepresentable]) -> Instructions {
        instructions.instructionsRepresentation
    }

    /// The first branch of an `if` with `else`, or of a `switch`.
    public static func buildEither(first component: some InstructionsRepresentable) -> Instructions {
        component.instructionsRepresentation
    }

    /// The second branch of an `if` with `else`, or of a `switch`.
    public static func buildEither(second component: some InstructionsRepresentable) -> Instructions {
        component.instructionsRepresentation
    }

    /// An `if` without `else`; a false condition adds nothing, not even an empty line.
    public static func buildOptional(_ instructions: Instructions?) -> Instructions {
        instructions ?? Instructions(parts: [])
    }

    /// An `if #available`: erases the type, so that it need not exist on older systems.
    public static func buildLimitedAvailability(_ instructions: some InstructionsRepresentable) -> Instructions {
        instructions.instructionsRepresentation
    }

    /// A single value, unchanged.
    @_disfavoredOverload
    public static func buildExpression<I>(_ expression: I) -> I where I: InstructionsRepresentable { expression }

    /// Nested instructions, unchanged.
    public static func buildExpression(_ expression: Instructions) -> Instructions { expression }

    @available(
        *, unavailable,
        message: "Only Instructions and types that conform to InstructionsRepresentable can be part of instructions."
    )
    public static func buildExpression<T>(_ expression: T) -> Instructions { Instructions(parts: []) }
}
