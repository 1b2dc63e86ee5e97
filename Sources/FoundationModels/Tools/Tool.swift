public import Foundation

/// Something that a model can have done: look something up, compute, act.
///
/// ```swift
/// struct Weather: Tool {
///     let description = "Tells the weather of a city."
///     @Generable struct Arguments { var city: String }
///     func call(arguments: Arguments) async throws -> String { … }
/// }
/// ```
///
/// Names and arguments are always valid: the model is held to them. Calls that the model makes at once run side by side.
public protocol Tool<Arguments, Output>: Sendable {
    /// What a call gives: a text, a generable value, or a prompt of its own.
    associatedtype Output: PromptRepresentable
    /// What a call needs.
    associatedtype Arguments: ConvertibleFromGeneratedContent

    /// What the model calls it by; the type's name, unless declared.
    var name: String { get }
    /// When to use it, for the model. Each word costs a token or two in every request.
    var description: String { get }
    /// What the arguments must be; the schema of ``Arguments``, unless declared.
    var parameters: GenerationSchema { get }
    /// Whether the model is told the parameters in its instructions.
    var includesSchemaInInstructions: Bool { get }

    /// Does it.
    @concurrent func call(arguments: Self.Arguments) async throws -> Self.Output
}

extension Tool {
    /// Lets tools say `@SessionProperty`.
    public typealias SessionProperty = LanguageModelSession.SessionProperty

    public var name: String { String(describing: Self.self) }
    public var includesSchemaInInstructions: Bool { true }
}

extension Tool where Self.Arguments: Generable {
    public var parameters: GenerationSchema { Arguments.generationSchema }
}

// A model fills in named values; a bare one has no name.

extension Tool where Self.Arguments == String {
    @available(*, unavailable, message: "Arguments are a @Generable structure, so that each has a name.")
    public var parameters: GenerationSchema { Arguments.generationSchema }
}

extension Tool where Self.Arguments == Int {
    @available(*, unavailable, message: "Arguments are a @Generable structure, so that each has a name.")
    public var parameters: GenerationSchema { Arguments.generationSchema }
}

extension Tool where Self.Arguments == Double {
    @available(*, unavailable, message: "Arguments are a @Generable structure, so that each has a name.")
    public var parameters: GenerationSchema { Arguments.generationSchema }
}

extension Tool where Self.Arguments == Float {
    @available(*, unavailable, message: "Arguments are a @Generable structure, so that each has a name.")
    public var parameters: GenerationSchema { Arguments.generationSchema }
}

extension Tool where Self.Arguments == Decimal {
    @available(*, unavailable, message: "Arguments are a @Generable structure, so that each has a name.")
    public var parameters: GenerationSchema { Arguments.generationSchema }
}

extension Tool where Self.Arguments == Bool {
    @available(*, unavailable, message: "Arguments are a @Generable structure, so that each has a name.")
    public var parameters: GenerationSchema { Arguments.generationSchema }
}
