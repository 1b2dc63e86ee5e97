internal import Inference
internal import JSON

/// Writes replies of chat completions: https://platform.openai.com/docs/api-reference/chat/object and …/chat/streaming
struct ChatWriter: Sendable {
    let id: String
    let created: Int
    let model: String
    let turn: TurnRequest
    let reply: ReplyOptions
    /// The number of calls of each answer so far.
    private var calls: [Int: Int] = [:]
    /// The answers that have had text.
    private var written: Set<Int> = []

    init(id: String, created: Int, model: String, turn: TurnRequest, reply: ReplyOptions) {
        (self.id, self.created, self.model, self.turn, self.reply) = (id, created, model, turn, reply)
    }

    // MARK: - Streams

    private func chunk(_ choices: [JSONValue], usage: TurnUsage? = nil) -> JSONValue {
        var members = head("chat.completion.chunk") + [.init("choices", .array(choices))]
        // All chunks have the member if the last one has its value.
        if reply.includesUsage { members.append(.init("usage", usage?.json ?? .null)) }
        return .object(members)
    }

    private func choice(
        _ index: Int, _ delta: [JSONValue.Member], finish: String? = nil, logprobs: [TokenLogprob]? = nil
    ) -> JSONValue {
        var members: [JSONValue.Member] = [
            .init("index", .int(index)), .init("delta", .object(delta)),
            .init("logprobs", logprobs.map { Self.logprobs($0) } ?? .null),
        ]
        members.append(.init("finish_reason", .optional(finish)))
        return .object(members)
    }

    func begin(_ index: Int) -> JSONValue {
        chunk([choice(index, [.init("role", .string("assistant")), .init("content", .null), .init("refusal", .null)])])
    }

    mutating func chunks(_ index: Int, _ output: TurnOutput) -> [JSONValue] {
        switch output {
        case .text(let text, let logprobs):
            written.insert(index)
            return [
                chunk([choice(index, [.init("content", .string(text))], logprobs: turn.topScores == nil ? nil : logprobs)])
            ]
        case .thought(let text): return [chunk([choice(index, [.init("reasoning_content", .string(text))])])]
        case .call(let call):
            let number = calls[index, default: 0]
            calls[index] = number + 1
            if reply.usesFunctionCall {
                return [chunk([choice(index, [.init("function_call", Self.function(call))])])]
            }
            let head = JSONValue.object([
                .init("index", .int(number)), .init("id", .string(call.id)), .init("type", .string("function")),
                .init("function", .object([.init("name", .string(call.name)), .init("arguments", .string(""))])),
            ])
            let arguments = JSONValue.object([
                .init("index", .int(number)),
                .init("function", .object([.init("arguments", .string(call.arguments.spacedText))])),
            ])
            return [head, arguments].map { chunk([choice(index, [.init("tool_calls", .array([$0]))])]) }
        }
    }

    func end(_ index: Int, _ finish: TurnFinish) -> [JSONValue] {
        // Clients that send an empty answer back need a text.
        let isEmpty = !written.contains(index) && calls[index, default: 0] == 0
        let empty = isEmpty ? [chunk([choice(index, [.init("content", .string(""))])])] : []
        return empty + [chunk([choice(index, [], finish: reason(finish))])]
    }

    /// The last chunk of a stream whose client asked for the token counts.
    func usage(_ usage: TurnUsage) -> JSONValue? { reply.includesUsage ? chunk([], usage: usage) : nil }

    // MARK: - Whole answers

    func completion(_ answers: [CollectedAnswer], _ usage: TurnUsage) -> JSONValue {
        let choices = answers.enumerated().map { index, answer in
            JSONValue.object([
                .init("index", .int(index)), .init("message", message(answer)),
                .init("logprobs", turn.topScores == nil ? .null : Self.logprobs(answer.logprobs)),
                .init("finish_reason", .optional(answer.finish.map { reason($0) })),
            ])
        }
        return .object(
            head("chat.completion") + [
                .init("choices", .array(choices)), .init("usage", usage.json), .init("timings", usage.timings),
            ])
    }

    private func message(_ answer: CollectedAnswer) -> JSONValue {
        let isCall = answer.text.isEmpty && !answer.calls.isEmpty
        var members: [JSONValue.Member] = [
            .init("role", .string("assistant")), .init("content", isCall ? .null : .string(answer.text)), .init("refusal", .null),
            .init("annotations", .array([])),
        ]
        if !answer.thought.isEmpty { members.append(.init("reasoning_content", .string(answer.thought))) }
        if reply.usesFunctionCall, let call = answer.calls.first {
            members.append(.init("function_call", Self.function(call)))
        } else if !answer.calls.isEmpty {
            members.append(
                .init(
                    "tool_calls",
                    .array(
                        answer.calls.map {
                            .object([
                                .init("id", .string($0.id)), .init("type", .string("function")),
                                .init("function", Self.function($0)),
                            ])
                        })))
        }
        return .object(members)
    }

    // MARK: - Parts

    private func head(_ object: String) -> [JSONValue.Member] {
        [
            .init("id", .string(id)), .init("object", .string(object)), .init("created", .int(created)),
            .init("model", .string(model)), .init("system_fingerprint", .string(ServerVersion.fingerprint)),
        ]
    }

    /// A call that the request names ends with “stop”, as OpenAI's server does.
    private func reason(_ finish: TurnFinish) -> String {
        switch finish.reason {
        case .stop: return "stop"
        case .length: return "length"
        case .filtered: return "content_filter"
        case .calls:
            if case .named = turn.tools.choice { return "stop" }
            return reply.usesFunctionCall ? "function_call" : "tool_calls"
        }
    }

    private static func function(_ call: ChatToolCall) -> JSONValue {
        .object([.init("name", .string(call.name)), .init("arguments", .string(call.arguments.spacedText))])
    }

    private static func logprobs(_ logprobs: [TokenLogprob]) -> JSONValue {
        .object([.init("content", .array(logprobs.map(\.json))), .init("refusal", .null)])
    }
}

extension TurnUsage {
    /// As chat completions and completions have it.
    var json: JSONValue {
        .object([
            .init("prompt_tokens", .int(promptTokens)), .init("completion_tokens", .int(completionTokens)),
            .init("total_tokens", .int(promptTokens + completionTokens)),
            .init("prompt_tokens_details", .object([.init("cached_tokens", .int(cachedTokens))])),
            .init("completion_tokens_details", .object([.init("reasoning_tokens", .int(reasoningTokens))])),
        ])
    }

    /// As llama.cpp's server reports them.
    var timings: JSONValue {
        let processed = promptTokens - cachedTokens
        func rate(_ count: Int, _ seconds: Double) -> JSONValue { seconds > 0 ? .double(Double(count) / seconds) : .null }
        return .object([
            .init("cache_n", .int(cachedTokens)), .init("prompt_n", .int(processed)),
            .init("prompt_ms", .double(promptSeconds * 1_000)), .init("prompt_per_second", rate(processed, promptSeconds)),
            .init("predicted_n", .int(completionTokens)), .init("predicted_ms", .double(generationSeconds * 1_000)),
            .init("predicted_per_second", rate(completionTokens, generationSeconds)),
            .init("queue_ms", .double(queueSeconds * 1_000)),
        ])
    }
}
