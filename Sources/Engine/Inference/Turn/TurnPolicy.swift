/// How turns of a model go where its training alone does not decide it.
///
/// Each of these changes what a model says, so each stands in the catalogue with its measurement. The values here change nothing.
package struct TurnPolicy: Sendable, Equatable {
    /// Added to the logits of null where a property may have it or another value.
    package var nullBias: Double
    /// Whether the model is one that repeats a tool call whose result it has.
    package var repeatsToolCalls: Bool

    package init(nullBias: Double = 0, repeatsToolCalls: Bool = false) {
        self.nullBias = nullBias
        self.repeatsToolCalls = repeatsToolCalls
    }
}
