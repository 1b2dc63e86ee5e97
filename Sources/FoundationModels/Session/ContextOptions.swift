/// What a prompt contains besides what was asked. Nil leaves the choice to the model.
public struct ContextOptions: Sendable, Equatable {
    /// Whether the model is told the schema that its response is held to. Without it the prompt is shorter; the response is
    /// held to the schema all the same.
    public var includeSchemaInPrompt: Bool?
    /// How long the model thinks before it answers, if it can.
    public var reasoningLevel: ReasoningLevel?

    /// What is nil is left to the model.
    public init(includeSchemaInPrompt: Bool? = nil, reasoningLevel: ReasoningLevel? = nil) {
        self.includeSchemaInPrompt = includeSchemaInPrompt
        self.reasoningLevel = reasoningLevel
    }

    /// How long a model thinks before it answers.
    public enum ReasoningLevel: Sendable, Equatable {
        /// The shortest of the three.
        case light
        /// Between the other two.
        case moderate
        /// The longest of the three.
        case deep
        /// A level that a model knows by name.
        case custom(String)
    }
}
