internal import Synchronization

extension LanguageModelSession {
    /// Creates a session with the system model and a string as instructions; nil for none.
    @_disfavoredOverload
    public convenience init(
        model: SystemLanguageModel = .default, tools: [any Tool] = [], instructions: String? = nil
    ) {
        self.init(fixed: model, tools, instructions.map { Instructions($0) })
    }

    /// Creates a session with the system model.
    public convenience init(
        model: SystemLanguageModel = .default, tools: [any Tool] = [],
        @InstructionsBuilder instructions: () throws -> Instructions
    ) rethrows {
        self.init(fixed: model, tools, try instructions())
    }

    /// Creates a session with the system model.
    public convenience init(
        model: SystemLanguageModel = .default, tools: [any Tool] = [], instructions: Instructions? = nil
    ) {
        self.init(fixed: model, tools, instructions)
    }

    /// Creates a session that continues a transcript. Tools are not part of a transcript and must be passed again.
    public convenience init(model: SystemLanguageModel = .default, tools: [any Tool] = [], transcript: Transcript) {
        self.init(behavior: SessionBehavior(source: .fixed(model: model, tools: tools)), transcript: transcript)
    }

    // Disfavored, unlike Apple's initializer: with the system model, the call would otherwise be ambiguous with the
    // initializer above.
    /// Creates a session with any model.
    @_disfavoredOverload
    public convenience init<Failure>(
        model: some LanguageModel, tools: [any Tool] = [],
        @InstructionsBuilder instructions: () throws(Failure) -> Instructions
    ) throws(Failure) where Failure: Swift.Error {
        self.init(fixed: model, tools, try instructions())
    }

    /// Creates a session that continues a transcript with any model.
    public convenience init(model: some LanguageModel, tools: [any Tool] = [], transcript: Transcript) {
        self.init(behavior: SessionBehavior(source: .fixed(model: model, tools: tools)), transcript: transcript)
    }

    /// Creates a session with any model.
    public convenience init(model: some LanguageModel, tools: [any Tool] = [], instructions: Instructions? = nil) {
        self.init(fixed: model, tools, instructions)
    }

    /// Creates a session with any model and a string as instructions; nil for none.
    @_disfavoredOverload
    public convenience init(model: some LanguageModel, tools: [any Tool] = [], instructions: String? = nil) {
        self.init(fixed: model, tools, instructions.map { Instructions($0) })
    }

    /// Creates a session whose instructions, tools, model and options come from a profile, which is evaluated before
    /// each model request.
    ///
    /// - Parameter history: The previous entries, without instructions.
    public convenience init(
        profile: sending some DynamicProfile, history: some Collection<Transcript.Entry> = []
    ) {
        self.init(behavior: SessionBehavior(source: .profile(profile)), transcript: Transcript(entries: history))
    }

    /// Creates a session whose instructions and tools are evaluated before each model request.
    ///
    /// - Parameter history: The previous entries, without instructions.
    public convenience init(
        model: some LanguageModel = SystemLanguageModel.default, dynamicInstructions: sending some DynamicInstructions,
        history: some Collection<Transcript.Entry> = []
    ) {
        self.init(
            behavior: SessionBehavior(source: .instructions(dynamicInstructions, model: model)),
            transcript: Transcript(entries: history))
    }

    private convenience init(fixed model: any LanguageModel, _ tools: [any Tool], _ instructions: Instructions?) {
        var transcript = Transcript()
        transcript.setInstructions(Transcript.Instructions(parts: instructions?.parts, tools: tools))
        self.init(behavior: SessionBehavior(source: .fixed(model: model, tools: tools)), transcript: transcript)
    }
}

extension Transcript.Instructions {
    /// Creates the entry for instructions and tools; nil if there are neither.
    init?(id: String? = nil, parts: [PromptPart]?, tools: [any Tool]) {
        if parts == nil, tools.isEmpty { return nil }
        let definitions = tools.map { Transcript.ToolDefinition(tool: $0) }
        self.init(segments: (parts ?? []).segments, toolDefinitions: definitions)
        if let id { self.id = id }
    }
}

extension LanguageModelSession {
    /// Loads the model and processes the common beginning of the next requests in the background.
    ///
    /// Call it about a second before a request is likely: the first token of the response then arrives sooner.
    public func prewarm(promptPrefix: Prompt? = nil) {
        // Skipped during a request: its own cache covers more than a prewarm could compute for the next request.
        if state.withLock({ $0.isResponding }) { return }
        let profile = SessionPropertyValues.$current.withValue(properties) { behavior.resolved() }
        var transcript = behavior.completed(state.withLock { $0.transcript }, profile)
        if let promptPrefix { transcript.append(.prompt(.init(segments: promptPrefix.parts.segments))) }
        let model: any LanguageModel = profile.model ?? SystemLanguageModel.default
        prewarm(model, transcript)
    }

    private func prewarm(_ model: some LanguageModel, _ transcript: Transcript) {
        // Prewarming is a hint and has no way to report errors; the request itself throws them.
        guard let executor = try? executors.executor(for: model) else { return }
        executor.prewarm(model: model, transcript: transcript)
    }
}
