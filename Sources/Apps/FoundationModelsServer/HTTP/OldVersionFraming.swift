internal import NIOCore
internal import NIOHTTP1

/// Replies to clients of HTTP/1.0, which know no chunks: a body of unknown length ends with the connection (RFC 9112, section 6.3).
///
/// The server's framework does not tell requests of the versions apart, so that this is done where they are still known.
final class OldVersionFraming: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// The requests that have no complete reply, and whether each one is of the old version and ends its connection.
    private var requests = CircularBuffer<(isOld: Bool, endsConnection: Bool)>()
    private var closes = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head(let head) = unwrapInboundIn(data) {
            let isOld = head.version.major == 1 && head.version.minor == 0
            requests.append((isOld, isOld && !head.isKeepAlive))
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
            // Closed once everything before it has been written.
            promise.futureResult.assumeIsolated().whenComplete { _ in context.close(promise: nil) }
            context.write(wrapOutboundOut(.end(trailers)), promise: promise)
        default: context.write(data, promise: promise)
        }
    }

    /// Puts an ``OldVersionFraming`` behind the decoder of requests, which is there when the server's own handlers are added.
    final class Installer: ChannelInboundHandler, RemovableChannelHandler, Sendable {
        typealias InboundIn = NIOAny

        func handlerAdded(context: ChannelHandlerContext) {
            let pipeline = context.pipeline.syncOperations
            do {
                let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
                try pipeline.addHandler(OldVersionFraming(), position: .after(decoder))
            } catch { context.fireErrorCaught(error) }
        }
    }
}
