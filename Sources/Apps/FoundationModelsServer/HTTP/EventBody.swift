internal import HTTPTypes
internal import Hummingbird
internal import JSON
internal import Logging
internal import NIOCore
internal import Synchronization

/// The text of a stream of events.
enum EventText {
    /// A server-sent event (https://html.spec.whatwg.org/multipage/server-sent-events.html).
    static func event(_ data: JSONValue, name: String? = nil) -> ByteBuffer {
        var buffer = ByteBuffer()
        if let name { buffer.writeString("event: \(name)\n") }
        buffer.writeString("data: ")
        buffer.writeBytes(data.bytes)
        buffer.writeString("\n\n")
        return buffer
    }

    static let done = ByteBuffer(string: "data: [DONE]\n\n")
    static let comment = ByteBuffer(string: ": ping\n\n")

    /// A line of newline-delimited JSON.
    static func line(_ data: JSONValue) -> ByteBuffer {
        var buffer = ByteBuffer(bytes: data.bytes)
        buffer.writeString("\n")
        return buffer
    }
}

/// Closes connections whose clients do not read what they are sent.
final class WriteWatch: Sendable {
    private let begin = Mutex<ContinuousClock.Instant?>(nil)
    private let watcher: Task<Void, Never>

    init(_ channel: (any Channel)?, maximumTime: Duration) {
        let box = WeakBox()
        watcher = Task {
            while true {
                do { try await Task.sleep(for: maximumTime / 4) } catch { return }
                guard let watch = box.value.withLock({ $0.object }) else { return }
                if let begin = watch.begin.withLock({ $0 }), .now - begin > maximumTime {
                    ServerLog.logger.info("A client does not read its answer: the connection is closed")
                    channel?.close(promise: nil)
                    return
                }
            }
        }
        box.value.withLock { $0.object = self }
    }

    private final class WeakBox: Sendable {
        struct Reference { weak var object: WriteWatch? }
        let value = Mutex(Reference())
    }

    deinit { watcher.cancel() }

    func during(_ write: () async throws -> Void) async throws {
        begin.withLock { $0 = .now }
        defer { begin.withLock { $0 = nil } }
        try await write()
    }
}

extension Response {
    /// A stream of events that are sent while they are made.
    ///
    /// - Parameters:
    ///   - type: the media type.
    ///   - produce: sends the text of events by the function that it receives, in order. An error ends the stream as a cut connection.
    static func stream(
        type: String, channel: (any Channel)?, stall: Duration,
        _ produce: @escaping @Sendable (_ send: (ByteBuffer) async throws -> Void) async throws -> Void
    ) -> Response {
        var headers = HTTPFields()
        headers[.contentType] = type
        headers[.cacheControl] = "no-cache"
        // nginx collects replies otherwise.
        headers[.accelBuffering] = "no"
        let body = ResponseBody { writer in
            let watch = WriteWatch(channel, maximumTime: stall)
            var output = writer
            try await produce { buffer in try await watch.during { try await output.write(buffer) } }
            try await output.finish(nil)
        }
        return Response(status: .ok, headers: headers, body: body)
    }
}
