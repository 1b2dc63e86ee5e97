internal import Inference
internal import JSON

/// What a model's turn produces, in order.
enum TurnOutput: Sendable {
    case text(String, [TokenLogprob])
    case thought(String)
    case call(ChatToolCall)
}

/// The probability of a token, and of the most probable ones in its place.
struct TokenLogprob: Sendable {
    struct Alternative: Sendable {
        var token: TokenID
        var bytes: [UInt8]
        var logprob: Double
    }

    var token: TokenID
    var bytes: [UInt8]
    /// The natural logarithm; 0 for a token that was the only one allowed, nil for one that has nothing before it.
    var logprob: Double?
    var top: [Alternative]

    /// The first token of a text.
    init(first token: TokenID, _ tokenizer: Tokenizer) {
        (self.token, bytes, logprob, top) = (token, tokenizer.decode([token]), nil, [])
    }

    init(_ score: TokenScore, _ tokenizer: Tokenizer) {
        token = score.token
        bytes = tokenizer.decode([score.token])
        logprob = score.logProbability ?? 0
        top = score.top.map { Alternative(token: $0.token, bytes: tokenizer.decode([$0.token]), logprob: $0.logProbability) }
    }
}

/// How a turn ended.
struct TurnFinish: Sendable {
    enum Reason: Sendable {
        /// The model ended its turn, or a stop string did.
        case stop
        /// A limit of tokens or a full window did: the answer is not complete.
        case length
        case calls
        /// The guardrails did.
        case filtered
    }

    var reason: Reason
    /// The stop string that ended the answer.
    var stopString: String?
    var usage: TurnUsage
}

/// Token counts and times of a turn.
struct TurnUsage: Sendable {
    var promptTokens = 0
    var cachedTokens = 0
    var completionTokens = 0
    var reasoningTokens = 0
    var queueSeconds = 0.0
    var loadSeconds = 0.0
    var promptSeconds = 0.0
    var generationSeconds = 0.0

    init() {}

    init(_ result: GenerationResult) {
        promptTokens = result.usage.promptTokens
        cachedTokens = result.usage.cachedTokens
        completionTokens = result.usage.generatedTokens
        reasoningTokens = result.thoughtTokens
        (queueSeconds, promptSeconds) = (result.usage.queueSeconds, result.usage.promptSeconds)
        generationSeconds = result.usage.generationSeconds
    }

    /// Adds another answer to the same prompt, which counts once.
    mutating func add(_ other: TurnUsage) {
        promptTokens = max(promptTokens, other.promptTokens)
        // The answers after the first one find its prompt in the cache, which is nothing that the client has saved.
        cachedTokens = min(cachedTokens, other.cachedTokens)
        completionTokens += other.completionTokens
        reasoningTokens += other.reasoningTokens
        promptSeconds = max(promptSeconds, other.promptSeconds)
        generationSeconds = max(generationSeconds, other.generationSeconds)
    }
}
