internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import Inference
internal import JSON
internal import Logging
internal import NIOCore

/// Messages of Anthropic's API.
extension ModelServer {
    var messagesRoutes: [Route] {
        [
            .api(.post, "/messages", style: .anthropic) { [self] exchange in
                let request = try MessagesRequest(try await exchange.body())
                let run = begin([request.turn], candidates: 1, isStreamed: request.isStreamed, exchange)
                let writer = MessagesWriter(id: RequestIdentifier.make("msg_"), model: request.turn.model)
                var response: Response
                if request.isStreamed {
                    response = try await stream(run, writer, exchange)
                } else {
                    let (answers, _) = try await collect(run, count: 1)
                    response = .json(writer.message(answers[0]))
                }
                Self.note(request.skipped, exchange, in: &response)
                return response
            },
            .api(.post, "/messages/count_tokens", style: .anthropic) { [self] exchange in
                let request = try MessagesRequest(try await exchange.body(), needsLimit: false)
                return .json(.object([.init("input_tokens", .int(try await tokenCount(of: request.turn, exchange)))]))
            },
        ]
    }

    /// Says what was left out of a request.
    static func note(_ skipped: [String], _ exchange: Exchange, in response: inout Response) {
        if skipped.isEmpty { return }
        let text = skipped.prefix(20).joined(separator: ", ").filter { $0.isASCII && !$0.isNewline }
        response.headers[.skipped] = String(text.prefix(1_000))
        ServerLog.logger.info("skipped", metadata: ["request": "\(exchange.id)", "fields": "\(text)"])
    }
}

/// Writes messages and their streams: https://docs.anthropic.com/en/api/messages-streaming
struct MessagesWriter: ReplyWriter {
    static let mediaType = "text/event-stream"
    let id: String
    let model: String
    private enum Block { case text, thinking }
    /// The block that is open, and the number of those before it.
    private var open: Block?
    private var count = 0

    init(id: String, model: String) { (self.id, self.model) = (id, model) }

    // MARK: - Whole messages

    func message(_ answer: CollectedAnswer) -> JSONValue {
        var content: [JSONValue] = []
        if !answer.thought.isEmpty {
            content.append(
                .object([
                    .init("type", .string("thinking")), .init("thinking", .string(answer.thought)),
                    .init("signature", .string("")),
                ]))
        }
        if !answer.text.isEmpty {
            content.append(.object([.init("type", .string("text")), .init("text", .string(answer.text))]))
        }
        content += answer.calls.map { Self.use($0, input: $0.arguments) }
        let usage = answer.finish?.usage ?? TurnUsage()
        return .object(
            head(content) + [
                .init("stop_reason", .optional(answer.finish.map { Self.reason($0) })),
                .init("stop_sequence", .optional(answer.finish?.stopString)), .init("usage", Self.usage(usage)),
            ])
    }

    private func head(_ content: [JSONValue]) -> [JSONValue.Member] {
        [
            .init("id", .string(id)), .init("type", .string("message")), .init("role", .string("assistant")),
            .init("model", .string(model)), .init("content", .array(content)),
        ]
    }

    private static func use(_ call: ChatToolCall, input: JSONValue) -> JSONValue {
        .object([
            .init("type", .string("tool_use")), .init("id", .string(call.id)), .init("name", .string(call.name)),
            .init("input", input),
        ])
    }

    private static func reason(_ finish: TurnFinish) -> String {
        switch finish.reason {
        case .stop: finish.stopString == nil ? "end_turn" : "stop_sequence"
        case .length: "max_tokens"
        case .calls: "tool_use"
        case .filtered: "refusal"
        }
    }

    /// Tokens from the cache are counted apart from the others.
    private static func usage(_ usage: TurnUsage) -> JSONValue {
        .object([
            .init("input_tokens", .int(usage.promptTokens - usage.cachedTokens)),
            .init("cache_creation_input_tokens", .int(0)), .init("cache_read_input_tokens", .int(usage.cachedTokens)),
            .init("output_tokens", .int(usage.completionTokens)),
        ])
    }

    // MARK: - Streams

    private func event(_ name: String, _ members: [JSONValue.Member]) -> ByteBuffer {
        EventText.event(.object([.init("type", .string(name))] + members), name: name)
    }

    private mutating func close() -> [ByteBuffer] {
        guard open != nil else { return [] }
        open = nil
        defer { count += 1 }
        return [event("content_block_stop", [.init("index", .int(count))])]
    }

    private mutating func begin(_ block: Block, _ content: [JSONValue.Member]) -> [ByteBuffer] {
        if open == block { return [] }
        let closing = close()
        open = block
        return closing + [event("content_block_start", [.init("index", .int(count)), .init("content_block", .object(content))])]
    }

    private func delta(_ type: String, _ name: String, _ text: String) -> ByteBuffer {
        event(
            "content_block_delta",
            [.init("index", .int(count)), .init("delta", .object([.init("type", .string(type)), .init(name, .string(text))]))])
    }

    mutating func texts(for event: AnswerRun.Event) -> [ByteBuffer] {
        switch event {
        case .ping: return [self.event("ping", [])]
        case .begin(_, let tokens):
            var usage = TurnUsage()
            usage.promptTokens = tokens
            let message = JSONValue.object(
                head([]) + [
                    .init("stop_reason", .null), .init("stop_sequence", .null), .init("usage", Self.usage(usage)),
                ])
            return [self.event("message_start", [.init("message", message)])]
        case .output(_, .text(let text, _)):
            return begin(.text, [.init("type", .string("text")), .init("text", .string(""))])
                + [delta("text_delta", "text", text)]
        case .output(_, .thought(let text)):
            return begin(
                .thinking, [.init("type", .string("thinking")), .init("thinking", .string("")), .init("signature", .string(""))])
                + [delta("thinking_delta", "thinking", text)]
        case .output(_, .call(let call)):
            var texts = close()
            texts += [
                self.event(
                    "content_block_start",
                    [.init("index", .int(count)), .init("content_block", Self.use(call, input: .object([])))]),
                delta("input_json_delta", "partial_json", call.arguments.spacedText),
                self.event("content_block_stop", [.init("index", .int(count))]),
            ]
            count += 1
            return texts
        case .end(_, let finish):
            return close() + [
                self.event(
                    "message_delta",
                    [
                        .init(
                            "delta",
                            .object([
                                .init("stop_reason", .string(Self.reason(finish))),
                                .init("stop_sequence", .optional(finish.stopString)),
                            ])), .init("usage", Self.usage(finish.usage)),
                    ])
            ]
        }
    }

    mutating func end(_ usage: TurnUsage) -> [ByteBuffer] { [event("message_stop", [])] }

    mutating func end(_ error: RequestError) -> [ByteBuffer] {
        [EventText.event(APIStyle.anthropic.body(of: error), name: "error")]
    }
}
