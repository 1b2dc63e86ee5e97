internal import Foundation
internal import Hummingbird
internal import JSON
internal import NIOCore

/// Completions of texts and tokens.
extension ModelServer {
    var completionRoutes: [Route] {
        [
            .api(.post, "/completions") { [self] exchange in
                let request = try CompletionRequest(try await exchange.body())
                guard let first = request.turns.first else { throw RequestError.invalid("prompt", "“prompt” is empty.") }
                let run = begin(
                    request.turns, candidates: request.reply.candidates, isStreamed: request.reply.isStreamed, exchange)
                let writer = CompletionWriter(
                    id: RequestIdentifier.make("cmpl-"), created: Int(Date().timeIntervalSince1970), model: first.model,
                    hasScores: first.topScores != nil, reply: request.reply)
                if request.reply.isStreamed {
                    return try await stream(run, writer, exchange, candidates: request.reply.candidates)
                }
                let (all, usage) = try await collect(
                    run, count: request.turns.count * request.reply.candidates, candidates: request.reply.candidates)
                // Of each prompt's candidates, the most probable ones in the order of their probabilities.
                var answers: [CollectedAnswer] = []
                for start in stride(from: 0, to: all.count, by: request.reply.candidates) {
                    var own = Array(all[start..<start + request.reply.candidates])
                    if request.reply.candidates > request.reply.answers { own.sort { $0.meanLogprob > $1.meanLogprob } }
                    answers += own.prefix(request.reply.answers)
                }
                return .json(writer.completion(answers, usage))
            }
        ]
    }
}

/// Writes completions: https://platform.openai.com/docs/api-reference/completions/object
struct CompletionWriter: ReplyWriter {
    static let mediaType = "text/event-stream"
    let id: String
    let created: Int
    let model: String
    let hasScores: Bool
    let reply: ReplyOptions
    /// The characters of each answer so far.
    private var offsets: [Int: Int] = [:]

    init(id: String, created: Int, model: String, hasScores: Bool, reply: ReplyOptions) {
        (self.id, self.created, self.model, self.hasScores, self.reply) = (id, created, model, hasScores, reply)
    }

    private func object(_ choices: [JSONValue], _ usage: JSONValue?) -> JSONValue {
        var members: [JSONValue.Member] = [
            .init("id", .string(id)), .init("object", .string("text_completion")), .init("created", .int(created)),
            .init("model", .string(model)), .init("system_fingerprint", .string(ServerVersion.fingerprint)),
            .init("choices", .array(choices)),
        ]
        if let usage { members.append(.init("usage", usage)) }
        return .object(members)
    }

    private func choice(_ index: Int, _ text: String, _ logprobs: JSONValue, _ finish: TurnFinish?) -> JSONValue {
        let reason =
            finish.map { finish in
                switch finish.reason {
                case .stop, .calls: "stop"
                case .length: "length"
                case .filtered: "content_filter"
                }
            }
        return .object([
            .init("text", .string(text)), .init("index", .int(index)), .init("logprobs", logprobs),
            .init("finish_reason", .optional(reason)),
        ])
    }

    private static func logprobs(_ scores: [TokenLogprob], offset: Int) -> JSONValue {
        var offset = offset
        var offsets: [JSONValue] = []
        func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
        for score in scores {
            offsets.append(.int(offset))
            offset += text(score.bytes).unicodeScalars.count
        }
        return .object([
            .init("tokens", .array(scores.map { .string(text($0.bytes)) })),
            .init("token_logprobs", .array(scores.map { $0.logprob.map { .double($0) } ?? .null })),
            .init(
                "top_logprobs",
                .array(
                    scores.map { score in
                        guard score.logprob != nil else { return .null }
                        var members: [JSONValue.Member] = []
                        for other in score.top where !members.contains(where: { $0.name == text(other.bytes) }) {
                            members.append(.init(text(other.bytes), .double(other.logprob)))
                        }
                        return .object(members)
                    })),
            .init("text_offset", .array(offsets)),
        ])
    }

    func completion(_ answers: [CollectedAnswer], _ usage: TurnUsage) -> JSONValue {
        object(
            answers.enumerated().map { index, answer in
                choice(
                    index, answer.text, hasScores ? Self.logprobs(answer.logprobs, offset: 0) : .null, answer.finish)
            }, usage.json)
    }

    mutating func texts(for event: AnswerRun.Event) -> [ByteBuffer] {
        let usage: JSONValue? = reply.includesUsage ? .null : nil
        switch event {
        case .ping: return [EventText.comment]
        case .begin: return []
        case .output(let index, .text(let text, let scores)):
            let offset = offsets[index, default: 0]
            offsets[index] = offset + text.unicodeScalars.count
            let logprobs = hasScores ? Self.logprobs(scores, offset: offset) : .null
            return [EventText.event(object([choice(index, text, logprobs, nil)], usage))]
        case .output: return []
        case .end(let index, let finish): return [EventText.event(object([choice(index, "", .null, finish)], usage))]
        }
    }

    mutating func end(_ usage: TurnUsage) -> [ByteBuffer] {
        (reply.includesUsage ? [EventText.event(object([], usage.json))] : []) + [EventText.done]
    }

    mutating func end(_ error: RequestError) -> [ByteBuffer] {
        [EventText.event(APIStyle.openAI.body(of: error)), EventText.done]
    }
}
