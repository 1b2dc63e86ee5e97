internal import Grammar
internal import Inference
internal import JSON
internal import ModelPrompts

/// What is known of a model before anything is computed with it.
struct ModelFacts {
    /// Whether the model was trained to call tools.
    var hasToolFormat: Bool
    var defaults: ModelDefaults

    init(hasToolFormat: Bool, defaults: ModelDefaults) { (self.hasToolFormat, self.defaults) = (hasToolFormat, defaults) }

    /// - Parameter hasTaskAdapter: an adapter for a task may teach forms that repeat words: a penalty would change them.
    init(_ model: LoadedModel, hasTaskAdapter: Bool) {
        self.init(hasToolFormat: model.toolFormat != nil, defaults: model.defaults)
        if hasTaskAdapter { defaults.repetitionPenalty = nil }
    }
}

/// What a request sends to a model: prompt, tools, the format of the response, sampling and limits. A value that is computed without
/// the model.
struct RequestPlan {
    /// The conversation, with its tools.
    let prompt: ChatPrompt
    /// The tools that may be called, and the calls that have been made. The prompts of recipients are still missing.
    let tools: TurnTools
    /// For a model that was not trained to call tools: those for which the message may be.
    let choice: ToolChoice?
    /// The format of the response; nil for text.
    let format: ResponseFormat?
    let sampling: SamplingSettings
    let maximumTokens: Int?

    /// - Throws: ``LanguageModelError/unsupportedGenerationGuide(_:)``, or ``SchemaError``.
    init(
        _ request: LanguageModelExecutorGenerationRequest, _ renderer: TranscriptRenderer, _ facts: ModelFacts
    ) throws {
        prompt = renderer.prompt(for: request.transcript, thinking: request.contextOptions.thinkingLevel)
        sampling = SamplingSettings(request.generationOptions, facts.defaults)
        maximumTokens = request.generationOptions.maximumResponseTokens.map { max(1, $0) }
        format = try Self.format(request)

        let mode = request.generationOptions.toolCallingMode?.kind ?? .allowed
        let enabled = mode == .disallowed ? [] : request.enabledToolDefinitions
        for tool in enabled { try tool.checkGuides() }
        var tools = TurnTools()
        tools.callable = enabled.map { ChatTool($0) }
        tools.areInPrompt = !prompt.tools.isEmpty || prompt.messages.contains { !$0.toolCalls.isEmpty }
        tools.mustCall = mode == .required && !enabled.isEmpty
        tools.repeatable = Set(request.enabledToolDefinitions.filter(\.isRepeatable).map(\.name))
        tools.madeCalls = request.transcript.callsOfLastPrompt
        choice =
            facts.hasToolFormat
            ? nil : ToolChoice(transcript: request.transcript, tools: enabled, allowsResponse: !tools.mustCall)
        self.tools = tools
    }

    /// The tools with the tokens of the prompts that belong to them.
    func turnTools(_ model: LoadedModel) throws -> TurnTools {
        var tools = tools
        try choice?.add(to: &tools, model)
        return tools
    }

    private static func format(_ request: LanguageModelExecutorGenerationRequest) throws -> ResponseFormat? {
        if let format = request.format { return format }
        guard let schema = request.schema else { return nil }
        var source = try schema.grammarSource()
        if case .schema(let json) = source { source = .schema(schema.forResponse(json)) }
        return ResponseFormat(source)
    }
}

extension Transcript {
    /// The calls since the last prompt whose outputs are there.
    fileprivate var callsOfLastPrompt: [ChatToolCall] {
        var calls: [ChatToolCall] = []
        var outputs: Set<String> = []
        for entry in self {
            switch entry {
            case .prompt: calls = []
            case .toolCalls(let new):
                calls += new.map { ChatToolCall(id: $0.id, name: $0.toolName, arguments: $0.arguments.json) }
            case .toolOutput(let output): outputs.insert(output.id)
            default: break
            }
        }
        return calls.filter { outputs.contains($0.id) }
    }
}

extension ContextOptions {
    var thinkingLevel: ThinkingLevel {
        switch reasoningLevel {
        case nil: .off
        case .light: .low
        case .moderate: .medium
        case .deep: .high
        case .custom(let name): ThinkingLevel(rawValue: name.lowercased()) ?? .medium
        }
    }
}

extension SamplingSettings {
    /// Settings from the options. What the options do not set is the model's default: its temperature also with an explicit sampling
    /// mode, and everything without one. The model's repetition penalty is a part of its sampling: it does not change what is most
    /// probable.
    init(_ options: GenerationOptions, _ defaults: ModelDefaults) {
        switch options.samplingMode?.kind {
        case .greedy: self.init(temperature: 0)
        case .randomTopK(let k, let seed):
            self.init(temperature: options.temperature ?? defaults.temperature ?? 1, topK: k, seed: seed)
        case .randomProbabilityThreshold(let threshold, let seed):
            self.init(temperature: options.temperature ?? defaults.temperature ?? 1, topP: threshold, seed: seed)
        case nil:
            self.init(temperature: options.temperature ?? defaults.temperature ?? 0.7, topK: defaults.topK, topP: defaults.topP)
        }
        penalties = options.penalties ?? SamplingPenalties()
        if options.penalties == nil, options.samplingMode == nil { penalties.minP = defaults.minP ?? 0 }
        if !isGreedy { penalties.repetition = penalties.repetition ?? defaults.repetitionPenalty }
    }
}
