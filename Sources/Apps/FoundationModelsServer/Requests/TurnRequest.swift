internal import Grammar
internal import Inference
internal import JSON

/// What a request asks of a model, whichever API it came by.
struct TurnRequest: Sendable {
    /// What the model continues.
    enum Input: Sendable {
        case chat(Chat)
        /// A text without a chat template.
        case text(String)
        case tokens([TokenID])
    }

    /// A conversation.
    struct Chat: Sendable {
        var messages: [ChatMessage] = []
        var thinking = ThinkingLevel.off
        /// The beginning of the answer, which the model continues. It is not part of what is returned.
        var prefill: String?
        /// Whether the schema of the answer is described in the prompt.
        var describesFormat = true
    }

    var model: String
    var input: Input
    var sampling = SamplingFields()
    /// The maximum number of tokens of reasoning and answer; nil for the server's default.
    var maximumTokens: Int?
    var minimumTokens = 0
    /// Whether only the maximum number of tokens, or a stop string, ends the answer.
    var ignoresEnd = false
    var stops: [String] = []
    var stopTokens: [TokenID] = []
    /// The number of most probable tokens to report for each token; nil for no probabilities.
    var topScores: Int?
    var format: AnswerFormat?
    var tools = ToolUse()
    /// Whether the server leaves out parts of a conversation that does not fit the window, and searches them for what the last message
    /// needs.
    var truncates = false
    /// Identifies the conversation among those that the server keeps; nil if the client sends all of it.
    var conversation: String?
    /// Requests with different texts share no computed prompts.
    var cacheSalt: String?

    /// Whether the client gets the answer as a whole, so that nothing of it is sent before it is complete.
    var isWhole = false
    /// Whether the answer begins with the prompt.
    var echoes = false

    /// The name of the field that holds the conversation, for errors.
    var inputName = "messages"
}

/// The form of an answer.
enum AnswerFormat: Sendable {
    /// A JSON document that a schema accepts.
    case schema(JSONValue, place: String)
    /// A text that a pattern matches as a whole.
    case pattern(String, place: String)
    case choices([String], place: String)

    /// Any JSON object.
    static func anyObject(place: String) -> AnswerFormat {
        .schema(.object([.init("type", .string("object"))]), place: place)
    }

    /// The field that names the form.
    var place: String {
        switch self {
        case .schema(_, let place), .pattern(_, let place), .choices(_, let place): place
        }
    }

    /// Without line breaks and indentation: models that may write any white space go on writing it.
    static let options = GrammarOptions(isSpaced: true, allowsZeroFraction: false)

    var source: GrammarSource {
        switch self {
        case .schema(let schema, _): .schema(schema)
        // The whole text, not a part of it.
        case .pattern(let pattern, _): .pattern("^(?:\(pattern))$")
        case .choices(let texts, _): .texts(texts)
        }
    }
}

/// The tools of a request, and which of them must or may be called.
struct ToolUse: Sendable {
    struct Tool: Sendable {
        var name: String
        var description: String
        var parameters: JSONValue
        var isStrict: Bool
        /// The field of the parameters, for errors.
        var place: String
    }

    enum Choice: Sendable, Equatable {
        case none, auto, required
        case named(String)
        case allowed([String], isRequired: Bool)
    }

    private static let maximumTools = 256

    var tools: [Tool] = []
    var choice = Choice.auto
    var allowsSeveral = true

    /// The tools that may be called, of those in the prompt.
    var callable: [Tool] {
        switch choice {
        case .none: []
        case .auto, .required: tools
        case .named(let name): tools.filter { $0.name == name }
        case .allowed(let names, _):
            {
                let names = Set(names)
                return tools.filter { names.contains($0.name) }
            }()
        }
    }

    var mustCall: Bool {
        switch choice {
        case .none, .auto: false
        case .required, .named: true
        case .allowed(_, let isRequired): isRequired
        }
    }

    /// - Throws: if a choice names a tool that does not exist, or needs one where there is none.
    func check(param: String) throws(RequestError) {
        guard tools.count <= Self.maximumTools else {
            throw .invalid("tools", "“tools” has more than \(Self.maximumTools) tools.")
        }
        var names: Set<String> = []
        for tool in tools where !names.insert(tool.name).inserted {
            throw .invalid(tool.place, "Two tools have the name “\(tool.name)”.")
        }
        let wanted: [String] =
            switch choice {
            case .none, .auto: []
            case .required: []
            case .named(let name): [name]
            case .allowed(let names, _): names
            }
        if tools.isEmpty, choice != .none, choice != .auto {
            throw .invalid(param, "“\(param)” needs tools, but there are none.")
        }
        for name in wanted where !names.contains(name) {
            throw .invalid(param, "“\(param)” names the tool “\(name)”, which is not among the tools.")
        }
    }
}

/// How tokens are chosen, as far as the request says it. The rest are the defaults of the model.
struct SamplingFields: Sendable {
    var temperature: Double?
    var topP: Double?
    var topK: Int?
    var minP: Double?
    var seed: UInt64?
    var repetition: Double?
    var presence: Double?
    var frequency: Double?
    var dry: Double?
    var dryBase: Double?
    var dryAllowedLength: Int?
    var biases: [TokenBias] = []

    /// - Parameter number: the number of the answer, of several to one request, each with a seed of its own.
    func settings(_ defaults: ModelDefaults, answer number: Int = 0) -> SamplingSettings {
        var penalties = SamplingPenalties()
        penalties.presence = presence ?? 0
        penalties.frequency = frequency ?? 0
        // What the client says of probabilities replaces all that the model's defaults say of them.
        let isOwn = topP != nil || topK != nil || minP != nil
        penalties.minP = minP ?? (isOwn ? 0 : defaults.minP ?? 0)
        penalties.dry = dry ?? 0
        penalties.dryBase = dryBase ?? penalties.dryBase
        penalties.dryAllowedLength = dryAllowedLength ?? penalties.dryAllowedLength
        var settings = SamplingSettings(
            temperature: temperature ?? defaults.temperature ?? 0.7, topK: isOwn ? topK : defaults.topK,
            topP: isOwn ? topP : defaults.topP, seed: seed.map { $0 &+ UInt64(number) }, penalties: penalties)
        // The model's own penalty is a part of its sampling: it does not change what is most probable.
        settings.penalties.repetition = repetition ?? (settings.isGreedy ? nil : defaults.repetitionPenalty)
        settings.biases = biases
        return settings
    }
}
