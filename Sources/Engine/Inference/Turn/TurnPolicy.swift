/// How turns of a model go where its training alone does not decide it: thresholds that were measured with the model, and the form in
/// which it reads the results of its calls.
///
/// Each of these changes what a model says, so each stands in the catalogue with its measurement. The values here change nothing.
package struct TurnPolicy: Sendable, Equatable {
    /// The minimum log odds (natural logarithm) of an optional argument versus the end of the arguments; optional arguments below it
    /// are removed. Nil keeps all arguments that the model writes.
    package var minimumOptionalArgumentLogOdds: Double?
    /// The log odds (natural logarithm) of another call versus the end of the JSON block that contains the calls; above it, the model
    /// generates another call. Nil for models that begin further calls by themselves.
    package var minimumNextCallLogOdds: Double?
    /// The minimum probability of the tokens with which calls begin, as the first token of a turn: from it on, the model makes a call.
    /// Nil for models whose first token decides that as they were trained to.
    package var minimumCallProbability: Double?
    /// Whether the model answers better from the results of its calls as plain text, without tools, than in the trained format.
    package var answersFromResults: Bool
    /// Added to the logits of null where a property may have it or another value.
    package var nullBias: Double
    /// Whether the model is one that repeats a tool call whose result it has.
    package var repeatsToolCalls: Bool

    package init(
        minimumOptionalArgumentLogOdds: Double? = nil, minimumNextCallLogOdds: Double? = nil,
        minimumCallProbability: Double? = nil,
        answersFromResults: Bool = false, nullBias: Double = 0, repeatsToolCalls: Bool = false
    ) {
        self.minimumOptionalArgumentLogOdds = minimumOptionalArgumentLogOdds
        self.minimumNextCallLogOdds = minimumNextCallLogOdds
        self.minimumCallProbability = minimumCallProbability
        self.answersFromResults = answersFromResults
        self.nullBias = nullBias
        self.repeatsToolCalls = repeatsToolCalls
    }
}
