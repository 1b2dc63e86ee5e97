import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import FoundationModelsServer

@Suite struct ReplyFramingTests {
    private func channel() throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.addHandlers([HTTPResponseEncoder(), ReplyFraming()])
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        return channel
    }

    private func ask(_ channel: EmbeddedChannel, _ version: HTTPVersion, _ method: HTTPMethod = .GET, keepsAlive: Bool = false)
        throws
    {
        let headers: HTTPHeaders = keepsAlive ? ["connection": "keep-alive"] : [:]
        try channel.writeInbound(
            HTTPServerRequestPart.head(HTTPRequestHead(version: version, method: method, uri: "/", headers: headers)))
        try channel.writeInbound(HTTPServerRequestPart.end(nil))
    }

    /// What is sent for a reply of two parts.
    private func reply(_ channel: EmbeddedChannel, length: Int? = nil) throws -> String {
        var head = HTTPResponseHead(version: .http1_1, status: .ok)
        if let length { head.headers.add(name: "content-length", value: "\(length)") }
        if length == nil { head.headers.add(name: "transfer-encoding", value: "chunked") }
        try channel.writeOutbound(HTTPServerResponsePart.head(head))
        for part in ["ab", "cd"] { try channel.writeOutbound(HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(string: part)))) }
        try channel.writeOutbound(HTTPServerResponsePart.end(nil))
        var text = ""
        while var buffer = try channel.readOutbound(as: ByteBuffer.self) {
            text += buffer.readString(length: buffer.readableBytes) ?? ""
        }
        return text
    }

    @Test func newRequestsGetChunks() throws {
        let channel = try channel()
        try ask(channel, .http1_1)
        #expect(try reply(channel) == "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n")
        #expect(channel.isActive)
    }

    @Test func oldRequestsGetABodyThatEndsWithTheConnection() throws {
        let channel = try channel()
        try ask(channel, .http1_0, keepsAlive: true)
        // Its length is known: the connection stays.
        #expect(try reply(channel, length: 4) == "HTTP/1.0 200 OK\r\ncontent-length: 4\r\nconnection: keep-alive\r\n\r\nabcd")
        #expect(channel.isActive)
        try ask(channel, .http1_0, keepsAlive: true)
        #expect(try reply(channel) == "HTTP/1.0 200 OK\r\nconnection: close\r\n\r\nabcd")
        #expect(!channel.isActive)
    }

    @Test func repliesToHeadHaveNoBody() throws {
        let channel = try channel()
        try ask(channel, .http1_1, .HEAD)
        try ask(channel, .http1_1)
        #expect(try reply(channel, length: 4) == "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n")
        #expect(try reply(channel, length: 4) == "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd")
    }
}
