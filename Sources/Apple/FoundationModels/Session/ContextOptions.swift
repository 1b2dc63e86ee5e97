/// Options for the contents of a prompt. Nil selects the model's default.
public struct ContextOptions: Sendable, Equatable {
    /// Whether the prompt contains the schema of the response. Omitting it makes the prompt shorter; the schema
    /// constrains the response in either case.
    public var includeSchemaInPrompt: Bool?
    /// How much the model reasons before it responds, for models that support reasoning.
    public var reasoningLevel: ReasoningLevel?

    /// Creates options; nil selects the model's default.
    public init(includeSchemaInPrompt: Bool? = nil, reasoningLevel: ReasoningLevel? = nil) {
        self.includeSchemaInPrompt = includeSchemaInPrompt
        self.reasoningLevel = reasoningLevel
    }

    /// How much a model reasons before it responds.
    public enum ReasoningLevel: Sendable, Equatable {
        /// The least reasoning of the three levels.
        case light
        /// More reasoning than `light`, less than `deep`.
        case moderate
        /// The most reasoning of the three levels.
        case deep
        /// A level that the model defines by name.
        case custom(String)
    }
}
