internal import Waiting
internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// Reads pages of a hub, and downloads files from there and elsewhere.
struct Downloader: Sendable {
    /// The address of the hub, which alone receives the token.
    let hub: URL
    let token: String?
    /// How long to wait before an attempt after one that brought nothing.
    let retryDelay: Duration

    /// How many attempts in a row may bring nothing. Those that bring something are not limited.
    private static let maximumFailures = 3
    /// A page of a list is much smaller.
    private static let maximumPageBytes = 64 << 20
    /// How much to request at once. Foundation keeps in memory what arrives faster than it is written.
    private static let windowBytes = 256 << 20

    private func hasToken(_ address: URL) -> Bool { token != nil && address.hasOrigin(of: hub) }

    private func request(_ address: URL) -> URLRequest {
        var request = URLRequest(url: address)
        // Positions in a file are those of its bytes as they are.
        request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        if hasToken(address), let token {
            // One that was read from a file may end with a line end, which would end the field too.
            request.setValue("Bearer \(token.filter { !$0.isWhitespace })", forHTTPHeaderField: "Authorization")
        }
        return request
    }

    /// - Returns: The body, and the address of the next page of a list.
    /// - Throws: ``SourceError``, or `CancellationError`.
    func page(_ address: URL) async throws -> (body: Data, next: URL?) {
        let buffer = PageBuffer(limit: Self.maximumPageBytes)
        let response = try await attempts {
            buffer.empty()
            return try await HTTPTransfer.run(request(address)) { try buffer.add($1) }
        }
        guard response.statusCode == 200 else {
            throw SourceError(HTTPFailure.words(response.statusCode, hasToken: hasToken(address)))
        }
        let link = response.value(forHTTPHeaderField: "Link") ?? ""
        return (buffer.data, link.firstMatch(of: /<([^<>]+)>;\s*rel="next"/).flatMap { URL(string: String($0.output.1)) })
    }

    /// Repeats what ends with a failure of the connection or of the server.
    private func attempts(_ body: () async throws -> HTTPURLResponse) async throws -> HTTPURLResponse {
        var failures = 0
        while true {
            failures += 1
            do {
                let response = try await body()
                if response.statusCode < 500 || failures >= Self.maximumFailures { return response }
            } catch let failure as HTTPFailure {
                if !failure.isCut || failures >= Self.maximumFailures { throw SourceError(failure.reason) }
            }
            try await Task.sleep(for: retryDelay * failures)
        }
    }

    /// Adds to a file what it lacks.
    ///
    /// - Parameters:
    ///   - file: Has what an earlier download kept, if that can be continued.
    ///   - size: The size of the complete file; nil if it is not known.
    ///   - version: How the server names the version whose beginning the file has; nil if that is not known. Receives the name that the
    ///     server gives it. A server continues no other version.
    ///   - isPublished: Whether the contents of the complete file are known, so that a wrong version is noticed.
    /// - Throws: ``SourceError``, ``InstallationError``, or `CancellationError`.
    func download(
        _ address: URL, into file: PartialFile, size: Int?, version: FileVersion, isPublished: Bool, report: ProgressReport?
    ) async throws {
        if file.count > 0, file.count > size ?? .max || (!isPublished && version.tag == nil) { try file.restart() }
        if address.isFileURL { return try await copy(address, into: file, report: report) }
        var (failures, furthest) = (0, file.count)
        // Of a file whose size the server does not say, nobody knows which part is the last one.
        var hasParts = true
        while size == nil || file.count < size ?? 0 {
            var problem = "the connection was cut"
            do {
                let start = file.count
                let part = PartialResponse(file: file, start: start, size: size, version: version, report: report)
                let response = try await HTTPTransfer.run(
                    partRequest(address, start, size, version, hasParts)
                ) { try part.receive($0, $1) }
                switch response.statusCode {
                case 200, 206:
                    // A response without a body was not seen by the receiver.
                    try part.begin(response)
                    if let end = size ?? part.size {
                        if file.count >= end { return }
                    } else if response.statusCode == 200 || !hasParts || file.count < start + Self.windowBytes {
                        return
                    } else {
                        hasParts = false
                        try file.restart()
                    }
                case 416 where start > 0: try file.restart()
                case 500...: problem = HTTPFailure.words(response.statusCode, hasToken: hasToken(address))
                case let status: throw SourceError(HTTPFailure.words(status, hasToken: hasToken(address)))
                }
            } catch let failure as HTTPFailure {
                guard failure.isCut else { throw SourceError(failure.reason) }
                problem = failure.reason
            } catch is CannotContinue {
                // The server has another version, or counts otherwise: its file is downloaded from the beginning.
                try file.restart()
            }
            if file.count > furthest {
                (failures, furthest) = (0, file.count)
            } else {
                failures += 1
                guard failures < Self.maximumFailures else { throw SourceError(problem) }
                try await Task.sleep(for: retryDelay * failures)
            }
        }
    }

    private func partRequest(
        _ address: URL, _ start: Int, _ size: Int?, _ version: FileVersion, _ hasParts: Bool
    ) -> URLRequest {
        var request = request(address)
        let end = hasParts && (size ?? .max) - start > Self.windowBytes ? start + Self.windowBytes - 1 : nil
        if start > 0 || end != nil {
            request.setValue("bytes=\(start)-\(end.map(String.init) ?? "")", forHTTPHeaderField: "Range")
            if let tag = version.tag { request.setValue(tag, forHTTPHeaderField: "If-Range") }
        }
        return request
    }

    /// Copies what the file lacks of a file of this machine.
    private func copy(_ source: URL, into file: PartialFile, report: ProgressReport?) async throws {
        try await onAnotherThread(cancellable: { check in
            do {
                let handle = try FileHandle(forReadingFrom: source)
                defer { try? handle.close() }  // nothing was written to it
                try handle.seek(toOffset: UInt64(file.count))
                while let data = try handle.read(upToCount: 1 << 20), !data.isEmpty {
                    try check()
                    report?.show(try data.withUnsafeBytes { try file.add($0) })
                }
            } catch let error as InstallationError {
                throw error
            } catch let error as CancellationError {
                throw error
            } catch {
                throw SourceError("\(source.path) cannot be read: \(error.localizedDescription)")
            }
        })
    }
}
