internal import NIOCore
internal import NIOHTTP1

/// Frames replies as their requests need it: clients of HTTP/1.0 know no chunks, so that a body of unknown length ends with the connection
/// (RFC 9112, section 6.3), and a reply to HEAD has no body.
///
/// The server's framework does not tell such requests apart, so that this is done where they are still known.
final class ReplyFraming: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private struct Request {
        var isHead: Bool
        /// Whether it is of HTTP/1.0.
        var isOld: Bool
        var endsConnection: Bool
    }

    /// The requests that have no complete reply.
    private var requests = CircularBuffer<Request>()
    private var closes = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head(let head) = unwrapInboundIn(data) {
            let isOld = head.version.major == 1 && head.version.minor == 0
            requests.append(
                Request(isHead: head.method == .HEAD, isOld: isOld, endsConnection: isOld && !head.isKeepAlive))
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        // Informational replies come before the reply.
        case .head(var head) where head.status.code >= 200 && requests.first?.isOld == true:
            head.version = .http1_0
            closes = requests.first?.endsConnection == true || !head.headers.contains(name: "content-length")
            head.headers.replaceOrAdd(name: "connection", value: closes ? "close" : "keep-alive")
            head.headers.remove(name: "transfer-encoding")
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .end(let trailers):
            _ = requests.popFirst()
            guard closes else { return context.write(data, promise: promise) }
            let promise = promise ?? context.eventLoop.makePromise()
            // Closed once everything has been written, and only for writing: a client that still sends would lose the reply otherwise.
            promise.futureResult.assumeIsolated().whenComplete { _ in context.close(mode: .output, promise: nil) }
            context.write(wrapOutboundOut(.end(trailers)), promise: promise)
        case .body where requests.first?.isHead == true: promise?.succeed()
        default: context.write(data, promise: promise)
        }
    }

    /// Puts a ``ReplyFraming`` behind the decoder of requests, which is there when the server's own handlers are added.
    final class Installer: ChannelInboundHandler, RemovableChannelHandler, Sendable {
        typealias InboundIn = NIOAny

        func handlerAdded(context: ChannelHandlerContext) {
            let pipeline = context.pipeline.syncOperations
            do {
                let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
                try pipeline.addHandler(ReplyFraming(), position: .after(decoder))
            } catch { context.fireErrorCaught(error) }
        }
    }
}
