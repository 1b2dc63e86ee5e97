internal import CZlib
internal import Hummingbird
internal import JSON
internal import NIOCore

/// Reads bodies of requests: within a size, a time, and a depth, compressed or not.
struct RequestBodyReader: Sendable {
    /// The bytes of a body, compressed and not.
    let maximumBytes: Int
    /// The time until all of it must have come.
    let maximumTime: Duration

    /// - Throws: ``RequestError``
    func json(of request: Request) async throws -> JSONValue {
        // A page of another site may send texts and forms without asking, but no JSON.
        let media = request.headers[.contentType]?.split(separator: ";").first.map { $0.lowercased().trimmingSpaces } ?? ""
        guard media == "application/json" || media.hasSuffix("+json") else {
            throw RequestError(
                415, code: "unsupported_media_type", "The body must be JSON: send “Content-Type: application/json”.")
        }
        let bytes = try await self.bytes(of: request)
        if bytes.isEmpty { throw RequestError(400, "The body is empty.") }
        guard bytes.isValidUTF8 else { throw RequestError(400, "The body is not valid UTF-8.") }
        do { return try JSONParser.parse(bytes) } catch {
            throw RequestError(400, "The body is not valid JSON: \(error).")
        }
    }

    func bytes(of request: Request) async throws -> [UInt8] {
        let encoding = request.headers[.contentEncoding]?.lowercased().trimmingSpaces ?? "identity"
        let zstandard = encoding == "zstd" ? Zstandard.shared : nil
        guard ["identity", "gzip", "x-gzip", "deflate"].contains(encoding) || zstandard != nil else {
            throw RequestError(415, code: "unsupported_encoding", "The body's encoding must be gzip, deflate or none.")
        }
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > maximumBytes { throw tooLarge }
        let bytes = try await withDeadline { try await collect(request.body) }
        if let zstandard {
            switch zstandard.decompress(bytes, maximumBytes: maximumBytes) {
            case .success(let bytes): return bytes
            case .failure(.tooLarge): throw tooLarge
            case .failure(.damaged): throw damaged
            }
        }
        return encoding == "identity" ? bytes : try inflated(bytes)
    }

    private var tooLarge: RequestError {
        RequestError(413, code: "request_too_large", "The body has more than \(maximumBytes) bytes.")
    }

    private var damaged: RequestError { RequestError(400, "The compressed body is damaged.") }

    private func collect(_ body: RequestBody) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        do {
            for try await buffer in body {
                guard bytes.count + buffer.readableBytes <= maximumBytes else { throw tooLarge }
                bytes.append(contentsOf: buffer.readableBytesView)
            }
        } catch let error as RequestError {
            throw error
        } catch let error as CancellationError {
            throw error
        } catch {
            throw RequestError(400, "The body could not be read.")
        }
        return bytes
    }

    private func withDeadline(_ read: @escaping @Sendable () async throws -> [UInt8]) async throws -> [UInt8] {
        try await withThrowingTaskGroup(of: [UInt8].self) { group in
            group.addTask(operation: read)
            group.addTask {
                try await Task.sleep(for: maximumTime)
                throw RequestError(408, code: "request_timeout", "The body did not come within \(maximumTime).")
            }
            defer { group.cancelAll() }
            return try await group.next() ?? []
        }
    }

    private func inflated(_ bytes: [UInt8]) throws -> [UInt8] {
        var stream = z_stream()
        // 32: gzip or zlib, whichever the header says.
        guard inflateInit2_(&stream, 15 + 32, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw RequestError.fault
        }
        defer { inflateEnd(&stream) }
        var output: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 16)
        var input = bytes
        try input.withUnsafeMutableBufferPointer { input in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(input.count)
            while true {
                let (status, count) = part.withUnsafeMutableBufferPointer { part in
                    stream.next_out = part.baseAddress
                    stream.avail_out = UInt32(part.count)
                    return (inflate(&stream, Z_NO_FLUSH), part.count - Int(stream.avail_out))
                }
                guard status == Z_OK || status == Z_STREAM_END else { throw damaged }
                guard output.count + count <= maximumBytes else { throw tooLarge }
                output.append(contentsOf: part[..<count])
                if status == Z_STREAM_END { return }
                if count == 0, stream.avail_in == 0 { throw damaged }
            }
        }
        return output
    }
}

extension String {
    var trimmingSpaces: String {
        var text = Substring(self)
        while text.first?.isWhitespace == true { text.removeFirst() }
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text)
    }
}

extension [UInt8] {
    var isValidUTF8: Bool { String(validating: self, as: UTF8.self) != nil }
}
