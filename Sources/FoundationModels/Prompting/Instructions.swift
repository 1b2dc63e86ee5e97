/// What a model is told before any prompt, and follows above it: text, generable values and pictures.
public struct Instructions: Sendable {
    /// The components, in order.
    let parts: [PromptPart]

    init(parts: [PromptPart]) { self.parts = parts }

    /// Instructions from one value.
    public init(_ content: some InstructionsRepresentable) { self = content.instructionsRepresentation }

    /// Instructions from the components that the builder collects; each begins a line.
    public init(@InstructionsBuilder _ content: () throws -> Instructions) rethrows { self = try content() }
}

/// A value that can be part of instructions.
public protocol InstructionsRepresentable {
    /// The value as instructions. The body may be written in builder syntax.
    @InstructionsBuilder var instructionsRepresentation: Instructions { get }
}

// The requirement is a builder; an explicit return keeps the builder from being applied to its own result.

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

/// Collects the components of instructions.
@resultBuilder
public struct InstructionsBuilder {
    /// Several components: joined in their order.
    public static func buildBlock<each I>(_ components: repeat each I) -> Instructions
    where repeat each I: InstructionsRepresentable {
        var parts: [PromptPart] = []
        for component in repeat each components { parts += component.instructionsRepresentation.parts }
        return Instructions(parts: parts)
    }

    /// A `for` loop: what its rounds give, in order.
    public static func buildArray(_ instructions: [some InstructionsRepresentable]) -> Instructions {
        instructions.instructionsRepresentation
    }

    /// An `if` with `else`, or a `switch`: the first branch was taken.
    public static func buildEither(first component: some InstructionsRepresentable) -> Instructions {
        component.instructionsRepresentation
    }

    /// An `if` with `else`, or a `switch`: the other branch was taken.
    public static func buildEither(second component: some InstructionsRepresentable) -> Instructions {
        component.instructionsRepresentation
    }

    /// A condition that does not hold adds nothing, not even a line.
    public static func buildOptional(_ instructions: Instructions?) -> Instructions {
        instructions ?? Instructions(parts: [])
    }

    /// An `if #available`: the type is forgotten, so that older systems need not know it.
    public static func buildLimitedAvailability(_ instructions: some InstructionsRepresentable) -> Instructions {
        instructions.instructionsRepresentation
    }

    /// A value by itself: kept as it is.
    @_disfavoredOverload
    public static func buildExpression<I>(_ expression: I) -> I where I: InstructionsRepresentable { expression }

    /// Instructions among others: kept as they are.
    public static func buildExpression(_ expression: Instructions) -> Instructions { expression }

    @available(
        *, unavailable,
        message: "Only Instructions and types that conform to InstructionsRepresentable can be part of instructions."
    )
    public static func buildExpression<T>(_ expression: T) -> Instructions { Instructions(parts: []) }
}
