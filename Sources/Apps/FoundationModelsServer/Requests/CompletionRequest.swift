internal import Inference
internal import JSON

/// POST /v1/completions: https://platform.openai.com/docs/api-reference/completions/create
struct CompletionRequest: Sendable {
    /// One for each prompt.
    var turns: [TurnRequest] = []
    var reply = ReplyOptions()

    init(_ body: JSONValue) throws(RequestError) {
        var fields = try Fields(body)
        var turn = TurnRequest(model: try fields.string("model") ?? "default", input: .text(""))
        turn.inputName = "prompt"
        let inputs = try Self.inputs(&fields)
        try fields.readSampling(into: &turn.sampling)
        try fields.readLimits(into: &turn)
        turn.maximumTokens = try fields.int("max_tokens", in: 0...Int.max) ?? 16
        reply.answers = try fields.int("n", in: 1...128) ?? 1
        reply.candidates = try fields.int("best_of", in: 1...128) ?? reply.answers
        guard reply.candidates >= reply.answers else { throw .invalid("best_of", "“best_of” must be at least “n”.") }
        guard inputs.count * reply.candidates <= 512 else {
            throw .invalid("prompt", "The request asks for more than 512 answers.")
        }
        turn.echoes = try fields.bool("echo") ?? false
        turn.topScores = try fields.int("logprobs", in: 0...20)
        reply.isStreamed = try fields.bool("stream") ?? false
        if reply.isStreamed, reply.candidates > reply.answers {
            throw .invalid("best_of", "Answers that are chosen at the end cannot be streamed.")
        }
        if var options = try fields.object("stream_options") {
            guard reply.isStreamed else { throw .invalid("stream_options", "“stream_options” needs “stream”: true.") }
            reply.includesUsage = try options.bool("include_usage") ?? false
            options.ignore("include_obfuscation", "continuous_usage_stats")
            try options.finish()
        }
        let other = try fields.readOtherFormats()
        turn.format = try fields.readResponseFormat() ?? other
        try fields.refuse("suffix", unless: { $0.string == "" }, "texts are continued at their end only.")
        try fields.readCacheFields(into: &turn)
        try fields.finish()
        // The best answers are found by their probabilities.
        if reply.candidates > reply.answers, turn.topScores == nil { turn.topScores = 0 }
        for input in inputs {
            turn.input = input
            turns.append(turn)
        }
    }

    private static func inputs(_ fields: inout Fields) throws(RequestError) -> [TurnRequest.Input] {
        guard let prompt = fields.value("prompt") else { throw .invalid("prompt", "“prompt” is missing.") }
        let wrong = RequestError.invalid("prompt", "“prompt” must be a text, a list of tokens, or a list of these.")
        func tokens(_ values: [JSONValue]) throws(RequestError) -> [TokenID] {
            var tokens: [TokenID] = []
            for value in values {
                guard let token = value.integer.flatMap({ TokenID(exactly: $0) }) else { throw wrong }
                tokens.append(token)
            }
            return tokens
        }
        if let text = prompt.string { return [.text(text)] }
        guard case .array(let values) = prompt, let first = values.first else { throw wrong }
        if first.integer != nil { return [.tokens(try tokens(values))] }
        var inputs: [TurnRequest.Input] = []
        for value in values {
            if let text = value.string {
                inputs.append(.text(text))
            } else if case .array(let parts) = value, !parts.isEmpty {
                inputs.append(.tokens(try tokens(parts)))
            } else {
                throw wrong
            }
        }
        return inputs
    }
}
