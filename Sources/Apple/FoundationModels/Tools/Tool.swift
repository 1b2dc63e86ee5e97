public import Foundation

/// A function that a model can call, to look up data, compute, or perform an action.
///
/// ```swift
/// struct Weather: Tool {
///     let description = "Tells the weather of a city."
///     @Generable struct Arguments { var city: String }
///     func call(arguments: Arguments) async throws -> String { … }
/// }
/// ```
///
/// Names and arguments are always valid, because a grammar constrains them. Calls of one response run concurrently.
public protocol Tool<Arguments, Output>: Sendable {
    /// The output of a call: a string, a generable value, or a prompt.
    associatedtype Output: PromptRepresentable
    /// The arguments of a call.
    associatedtype Arguments: ConvertibleFromGeneratedContent

    /// The name by which the model calls the tool; by default the name of the type.
    var name: String { get }
    /// A description for the model of when to use the tool. Each word costs a token or two in every request.
    var description: String { get }
    /// The schema of the arguments; by default that of ``Arguments``.
    var parameters: GenerationSchema { get }
    /// Whether the model's instructions contain the parameters.
    var includesSchemaInInstructions: Bool { get }

    /// Runs the tool.
    @concurrent func call(arguments: Self.Arguments) async throws -> Self.Output
}

extension Tool {
    /// Makes `@SessionProperty` available in tools.
    public typealias SessionProperty = LanguageModelSession.SessionProperty

    public var name: String { String(describing: Self.self) }
    public var includesSchemaInInstructions: Bool { true }
}

extension Tool where Self.Arguments: Generable {
    public var parameters: GenerationSchema { Arguments.generationSchema }
}

/// What `RepeatableTool` of the module ContextKit is known by here: this module has Apple's public names only.
public protocol _RepeatableTool: Tool {}

// Arguments need names, which single values do not have.

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
