internal import Synchronization

extension LanguageModelSession {
    /// A session with the system model, and a text as instructions; nil for none.
    @_disfavoredOverload
    public convenience init(
        model: SystemLanguageModel = .default, tools: [any Tool] = [], instructions: String? = nil
    ) {
        self.init(fixed: model, tools, instructions.map { Instructions($0) })
    }

    /// A session with the system model.
    public convenience init(
        model: SystemLanguageModel = .default, tools: [any Tool] = [],
        @InstructionsBuilder instructions: () throws -> Instructions
    ) rethrows {
        self.init(fixed: model, tools, try instructions())
    }

    /// A session with the system model.
    public convenience init(
        model: SystemLanguageModel = .default, tools: [any Tool] = [], instructions: Instructions? = nil
    ) {
        self.init(fixed: model, tools, instructions)
    }

    /// Continues a conversation where it stopped. Tools are not part of a transcript: they are passed again.
    public convenience init(model: SystemLanguageModel = .default, tools: [any Tool] = [], transcript: Transcript) {
        self.init(behavior: SessionBehavior(source: .fixed(model: model, tools: tools)), transcript: transcript)
    }

    // Disfavored, unlike Apple's: with the system model both this and the initializer above would do, and the compiler would
    // not choose.
    /// A session with a model of any kind.
    @_disfavoredOverload
    public convenience init<Failure>(
        model: some LanguageModel, tools: [any Tool] = [],
        @InstructionsBuilder instructions: () throws(Failure) -> Instructions
    ) throws(Failure) where Failure: Swift.Error {
        self.init(fixed: model, tools, try instructions())
    }

    /// Continues a conversation where it stopped, with a model of any kind.
    public convenience init(model: some LanguageModel, tools: [any Tool] = [], transcript: Transcript) {
        self.init(behavior: SessionBehavior(source: .fixed(model: model, tools: tools)), transcript: transcript)
    }

    /// A session with a model of any kind.
    public convenience init(model: some LanguageModel, tools: [any Tool] = [], instructions: Instructions? = nil) {
        self.init(fixed: model, tools, instructions)
    }

    /// A session with a model of any kind, and a text as instructions; nil for none.
    @_disfavoredOverload
    public convenience init(model: some LanguageModel, tools: [any Tool] = [], instructions: String? = nil) {
        self.init(fixed: model, tools, instructions.map { Instructions($0) })
    }

    /// A session whose instructions, tools, model and options a profile says anew before each model request.
    ///
    /// - Parameter history: What was said before, without instructions.
    public convenience init(
        profile: sending some DynamicProfile, history: some Collection<Transcript.Entry> = []
    ) {
        self.init(behavior: SessionBehavior(source: .profile(profile)), transcript: Transcript(entries: history))
    }

    /// A session whose instructions and tools are said anew before each model request.
    ///
    /// - Parameter history: What was said before, without instructions.
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
    /// The entry for instructions and tools; nil if there are neither.
    init?(id: String? = nil, parts: [PromptPart]?, tools: [any Tool]) {
        if parts == nil, tools.isEmpty { return nil }
        let definitions = tools.map { Transcript.ToolDefinition(tool: $0) }
        self.init(segments: (parts ?? []).segments, toolDefinitions: definitions)
        if let id { self.id = id }
    }
}

extension LanguageModelSession {
    /// Loads the model and computes what a request that begins like this will need, in the background.
    ///
    /// Call it when a request is likely, about a second ahead: its first token then comes sooner.
    public func prewarm(promptPrefix: Prompt? = nil) {
        // What is computed for a running request is more than could be prepared for the next.
        if state.withLock({ $0.isResponding }) { return }
        let profile = SessionPropertyValues.$current.withValue(properties) { behavior.resolved() }
        var transcript = behavior.completed(state.withLock { $0.transcript }, profile)
        if let promptPrefix { transcript.append(.prompt(.init(segments: promptPrefix.parts.segments))) }
        let model: any LanguageModel = profile.model ?? SystemLanguageModel.default
        prewarm(model, transcript)
    }

    private func prewarm(_ model: some LanguageModel, _ transcript: Transcript) {
        // A hint has no one to report to: the request itself will say what is wrong.
        guard let executor = try? executors.executor(for: model) else { return }
        executor.prewarm(model: model, transcript: transcript)
    }
}
