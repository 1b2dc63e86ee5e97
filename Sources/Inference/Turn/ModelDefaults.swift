/// A model's default sampling settings and instructions, used where a request does not override them.
package struct ModelDefaults: Sendable, Equatable {
    package var temperature: Double?
    package var topP: Double?
    package var topK: Int?
    package var repetitionPenalty: Double?
    package var minP: Double?
    /// Instructions for requests that have none; nil leaves the default to the chat template.
    package var instructions: String?
    /// Additional instructions for requests with tools; nil for none.
    package var toolInstructions: String?
    /// The minimum log odds (natural logarithm) of an optional argument versus the end of the arguments; optional
    /// arguments below it are removed. Nil keeps all arguments that the model writes.
    package var minimumOptionalArgumentLogOdds: Double?
    /// The log odds (natural logarithm) of another call versus the end of the JSON block that contains the calls; above
    /// it, the model generates another call. Nil for models that begin further calls by themselves.
    package var minimumNextCallLogOdds: Double?
    /// The minimum probability of the tokens with which calls begin, as the first token of a turn: from it on, the model makes
    /// a call. Nil for models whose first token decides that as they were trained to.
    package var minimumCallProbability: Double?
    /// Whether the model answers better from the results of its calls as plain text, without tools, than in the trained format.
    package var answersFromResults = false
    /// Added to the logits of null where a property may have it or another value; nil for 0.
    package var nullBias: Double?
    /// Whether the model is one that repeats a tool call whose result it has.
    package private(set) var repeatsToolCalls: Bool

    package init(
        temperature: Double? = nil, topP: Double? = nil, topK: Int? = nil, repetitionPenalty: Double? = nil,
        minP: Double? = nil, instructions: String? = nil, toolInstructions: String? = nil,
        minimumOptionalArgumentLogOdds: Double? = nil,
        minimumNextCallLogOdds: Double? = nil, minimumCallProbability: Double? = nil, nullBias: Double? = nil,
        answersFromResults: Bool = false, repeatsToolCalls: Bool = false
    ) {
        self.nullBias = nullBias
        self.answersFromResults = answersFromResults
        self.minimumCallProbability = minimumCallProbability
        self.repeatsToolCalls = repeatsToolCalls
        self.minimumOptionalArgumentLogOdds = minimumOptionalArgumentLogOdds
        self.minimumNextCallLogOdds = minimumNextCallLogOdds
        self.toolInstructions = toolInstructions
        self.temperature = temperature
        self.topP = topP
        self.topK = topK
        self.repetitionPenalty = repetitionPenalty
        self.minP = minP
        self.instructions = instructions
    }

    /// The settings in the file's metadata, completed from those that are known for the model and from general defaults.
    ///
    /// - Parameters:
    ///   - isSmall: whether the model is so small that it repeats tool calls.
    ///   - known: what a catalogue says of the model; nil if none does.
    package init(file: GGUFFile, isSmall: Bool, known: ModelDefaults?) throws(ModelError) {
        let written = try file.metadata.float("general.sampling.temp")
        temperature = written ?? known?.temperature ?? 0.7
        topP = try file.metadata.float("general.sampling.top_p") ?? known?.topP ?? (written == nil ? 0.9 : nil)
        topK = try file.metadata.integer("general.sampling.top_k", in: 0...(1 << 20)) ?? known?.topK
        if topK == 0 { topK = nil }
        // No penalty unless the model's own configuration has one: it would make equal answers different.
        repetitionPenalty =
            try file.metadata.float("general.sampling.penalty_repeat", in: 0.01...10) ?? known?.repetitionPenalty
        minP = try file.metadata.float("general.sampling.min_p", in: 0...1) ?? known?.minP
        repeatsToolCalls = isSmall || known?.repeatsToolCalls ?? false
        instructions = known?.instructions
        toolInstructions = known?.toolInstructions
        minimumOptionalArgumentLogOdds = known?.minimumOptionalArgumentLogOdds
        minimumNextCallLogOdds = known?.minimumNextCallLogOdds
        minimumCallProbability = known?.minimumCallProbability
        nullBias = known?.nullBias
        answersFromResults = known?.answersFromResults ?? false
    }
}
