import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// A local server that responds to requests with predefined responses, in order, and refuses messages of chats as strict servers do.
final class ChatServer: Sendable {
    struct Answer: Sendable {
        var status = "200 OK"
        var headers = ""
        var body = ""
        /// Keeps the connection open after the response, without sending more data.
        var hangs = false
    }

    private let log: Log
    private let channel: any Channel

    var url: String { "http://127.0.0.1:\(channel.localAddress?.port ?? 0)/v1" }
    var requests: [String] { log.requests.map(\.body) }
    /// The paths of the requests with their queries.
    var targets: [String] { log.requests.map(\.target) }

    init(_ answers: [Answer]) async throws {
        let log = Log(answers)
        self.log = log
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { $0.pipeline.addHandler(Handler { log.answer($0, $1) }) }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    deinit { channel.close(promise: nil) }

    private final class Log: Sendable {
        private let state: Mutex<(answers: [Answer], requests: [(target: String, body: String)])>

        init(_ answers: [Answer]) { state = Mutex((answers, [])) }
        var requests: [(target: String, body: String)] { state.withLock { $0.requests } }

        func answer(_ target: String, _ body: String) -> Answer {
            state.withLock { state in
                state.requests.append((target, body))
                if target.contains("/chat/"), let objection = Self.objection(to: body) {
                    return Answer(status: "400 Bad Request", body: "{\"error\":{\"message\":\"\(objection)\"}}")
                }
                return state.answers.isEmpty ? Answer(status: "500 No response left") : state.answers.removeFirst()
            }
        }

        /// What servers with strict templates object to; nil for messages that all servers accept.
        private static func objection(to body: String) -> String? {
            struct Request: Decodable {
                struct Message: Decodable {
                    struct Call: Decodable { var id: String }
                    var role: String
                    var tool_calls: [Call]?
                    var tool_call_id: String?
                }
                var messages: [Message]
            }
            guard let request = try? JSONDecoder().decode(Request.self, from: Data(body.utf8)) else { return "no messages" }
            var last = ""
            var open: Set<String> = []
            for message in request.messages {
                if message.role != "tool", !open.isEmpty { return "calls without outputs" }
                switch message.role {
                case "system" where last.isEmpty: break
                case "user", "assistant":
                    if message.role == last { return "two messages of the role \(last) in a row" }
                    open = Set((message.tool_calls ?? []).map(\.id))
                case "tool":
                    if open.remove(message.tool_call_id ?? "") == nil { return "an output without its call" }
                default: return "the role \(message.role) after \(last)"
                }
                last = message.role
            }
            return open.isEmpty ? nil : "calls without outputs"
        }
    }

    private final class Handler: ChannelInboundHandler, @unchecked Sendable {  // Used on its channel's event loop.
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private var received = ""
        private let answer: @Sendable (_ target: String, _ body: String) -> Answer

        init(_ answer: @escaping @Sendable (String, String) -> Answer) { self.answer = answer }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            received += String(buffer: unwrapInboundIn(data))
            guard let end = received.range(of: "\r\n\r\n") else { return }
            let header = received[..<end.lowerBound].lowercased()
            let length =
                header.split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
                .flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) } ?? 0
            let body = String(received[end.upperBound...])
            guard body.utf8.count >= length else { return }
            let target = received.split(separator: " ", maxSplits: 2).dropFirst().first ?? ""
            let answer = answer(String(target), body)
            received = ""
            let text =
                "HTTP/1.1 \(answer.status)\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\(answer.headers)\r\n\(answer.body)"
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
            if !answer.hangs { context.close(promise: nil) }
        }
    }
}
