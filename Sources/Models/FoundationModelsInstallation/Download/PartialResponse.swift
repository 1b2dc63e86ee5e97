internal import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The version of a file as its server names it (`ETag`).
final class FileVersion: Sendable {
    private let value: Mutex<String?>
    /// Nil if it is not known.
    var tag: String? { value.withLock { $0 } }

    init(_ tag: String? = nil) { value = Mutex(tag) }

    /// A weak tag names versions that need not have the same bytes.
    func set(_ tag: String?) { value.withLock { $0 = tag.flatMap { $0.hasPrefix("\"") && $0.count < 1_000 ? $0 : nil } } }
}

/// The response cannot be added to what the file has.
struct CannotContinue: Error {}

/// The response to a request for a file, or for what of it is missing.
final class PartialResponse: Sendable {
    private let file: PartialFile
    private let start: Int
    private let expectedSize: Int?
    private let version: FileVersion
    private let report: ProgressReport?
    private let state = Mutex((isBegun: false, size: Int?.none))

    /// - Parameters:
    ///   - start: The position that was requested.
    ///   - size: The size of the complete file; nil if it is not known.
    init(file: PartialFile, start: Int, size: Int?, version: FileVersion, report: ProgressReport?) {
        (self.file, self.start, expectedSize, self.version, self.report) = (file, start, size, version, report)
    }

    /// The size of the complete file, as the response says; nil if it does not.
    var size: Int? { state.withLock { $0.size } }

    func receive(_ response: HTTPURLResponse, _ data: Data) throws {
        guard [200, 206].contains(response.statusCode) else { return }  // the text of an error
        try begin(response)
        if let limit = expectedSize ?? size, file.count + data.count > limit {
            throw SourceError("the server sends more than the \(limit) bytes of the file")
        }
        report?.show(try data.withUnsafeBytes { try file.add($0) })
    }

    /// Compares the beginning of the response with what was requested, once.
    func begin(_ response: HTTPURLResponse) throws {
        let isBegun = state.withLock { state in
            defer { state.isBegun = true }
            return state.isBegun
        }
        if isBegun { return }
        var size: Int?
        if response.statusCode == 206 {
            let range = response.value(forHTTPHeaderField: "Content-Range") ?? ""
            guard let match = range.wholeMatch(of: /bytes (\d+)-\d+\/(\d+|\*)/), Int(match.output.1) == start else {
                throw CannotContinue()
            }
            size = Int(match.output.2)
        } else {
            if file.count > 0 { try file.restart() }
            size = response.value(forHTTPHeaderField: "Content-Length").flatMap { Int($0) }
        }
        if let size, let expectedSize, size != expectedSize {
            throw SourceError("the file differs from the published one: it has \(size) bytes, not \(expectedSize)")
        }
        state.withLock { $0.size = size }
        version.set(response.value(forHTTPHeaderField: "ETag"))
    }
}

/// The body of a page, in memory.
final class PageBuffer: Sendable {
    private let content = Mutex(Data())
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    var data: Data { content.withLock { $0 } }

    func empty() { content.withLock { $0 = Data() } }

    func add(_ data: Data) throws {
        try content.withLock {
            guard $0.count + data.count <= limit else { throw SourceError("the response is larger than \(limit >> 20) MiB") }
            $0 += data
        }
    }
}
