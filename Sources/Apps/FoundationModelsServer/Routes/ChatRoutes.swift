internal import Foundation
internal import Hummingbird
internal import JSON
internal import NIOCore

/// Chat completions.
extension ModelServer {
    var chatRoutes: [Route] {
        [
            .api(.post, "/chat/completions") { [self] exchange in
                let request = try ChatRequest(try await exchange.body())
                let run = begin(
                    [request.turn], candidates: request.reply.candidates, isStreamed: request.reply.isStreamed, exchange)
                let writer = ChatWriter(
                    id: RequestIdentifier.make("chatcmpl-"), created: Int(Date().timeIntervalSince1970),
                    model: request.turn.model,
                    turn: request.turn, reply: request.reply)
                if request.reply.isStreamed {
                    return try await stream(
                        run, ChatStream(writer: writer), exchange, candidates: request.reply.candidates)
                }
                let (answers, usage) = try await collect(
                    run, count: request.reply.candidates, candidates: request.reply.candidates)
                return .json(writer.completion(answers, usage))
            },
            .api(.post, "/chat/completions/input_tokens") { [self] exchange in
                let request = try ChatRequest(try await exchange.body())
                let count = try await tokenCount(of: request.turn, exchange)
                return .json(
                    .object([.init("object", .string("chat.completion.input_tokens")), .init("input_tokens", .int(count))]))
            },
        ]
    }

    /// The number of tokens that the engine would process for a request.
    func tokenCount(of turn: TurnRequest, _ exchange: Exchange) async throws -> Int {
        do {
            return try await localTurn(turn, exchange).tokens.count
        } catch let error as RequestError {
            // What is too long can be counted too.
            if error.code == "context_length_exceeded",
                let count = error.details.first(where: { $0.name == "n_prompt_tokens" })?.value.integer
            {
                return count
            }
            throw error
        }
    }
}

/// The stream of a chat completion.
struct ChatStream: ReplyWriter {
    static let mediaType = "text/event-stream"
    var writer: ChatWriter

    mutating func texts(for event: AnswerRun.Event) -> [ByteBuffer] {
        switch event {
        case .ping: [EventText.comment]
        case .begin(let index, _): [EventText.event(writer.begin(index))]
        case .output(let index, let output): writer.chunks(index, output).map { EventText.event($0) }
        case .end(let index, let finish): writer.end(index, finish).map { EventText.event($0) }
        }
    }

    mutating func end(_ usage: TurnUsage) -> [ByteBuffer] {
        (writer.usage(usage).map { [EventText.event($0)] } ?? []) + [EventText.done]
    }

    mutating func end(_ error: RequestError) -> [ByteBuffer] {
        [EventText.event(APIStyle.openAI.body(of: error)), EventText.done]
    }
}
