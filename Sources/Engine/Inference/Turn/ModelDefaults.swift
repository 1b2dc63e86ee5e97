/// A model's default sampling settings and instructions, used where a request does not override them.
package struct ModelDefaults: Sendable, Equatable {
    package var temperature: Double?
    package var topP: Double?
    package var topK: Int?
    package var repetitionPenalty: Double?
    package var minP: Double?
    /// Instructions for requests that have none; nil leaves the default to the chat template.
    package var instructions: String?
    /// Whether the model begins calls as JSON, because the token with which its format begins them was not trained: its row of the output
    /// matrix is like those of unused tokens, so that no hidden state makes it likely. Adapters for such a model learn to begin calls so.
    package var beginsCallsAsJSON: Bool
    /// Whether the model is one that repeats a tool call whose result it has.
    package private(set) var repeatsToolCalls = false

    package init(
        temperature: Double? = nil, topP: Double? = nil, topK: Int? = nil, repetitionPenalty: Double? = nil,
        minP: Double? = nil, instructions: String? = nil, beginsCallsAsJSON: Bool = false
    ) {
        self.beginsCallsAsJSON = beginsCallsAsJSON
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
        instructions = known?.instructions
        beginsCallsAsJSON = known?.beginsCallsAsJSON ?? false
        repeatsToolCalls = isSmall
    }
}
