internal import Waiting
internal import Files
package import Foundation
internal import Synchronization

/// A file on its way: it is written under another name, is continued later if it was not completed, and is hashed meanwhile.
final class PartialFile: Sendable {
    private struct State {
        /// Nil once the file is closed.
        var writer: FileWriter?
        var hash = ContentHash()
        var count = 0
    }

    /// Called before bytes are written, with the number of bytes that the file then has. Returns the number of the system's error if they
    /// cannot be written: tests fill disks with it.
    typealias WriteCheck = @Sendable (Int) -> Int32?

    private let url: URL
    private let target: URL
    private let writeCheck: WriteCheck
    private let state: Mutex<State>

    /// Opens or begins the file, whose contents must be kept by ``keep(_:report:)`` or emptied by ``restart()`` before more is added.
    ///
    /// - Parameter url: The name of the file until it is complete.
    init(_ url: URL, for target: URL, writeCheck: @escaping WriteCheck) throws {
        (self.url, self.target, self.writeCheck) = (url, target, writeCheck)
        do {
            try FileManager.default.createDirectory(at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
        } catch {
            throw InstallationError.cannotWrite(target, reason: error.localizedDescription)
        }
        do { state = Mutex(State(writer: try FileWriter(target.path, continuing: url.path))) } catch {
            throw InstallationError.cannotWrite(url, reason: error.reason)
        }
    }

    /// The number of bytes of the file.
    var count: Int { state.withLock { $0.count } }

    /// SHA-256 of the file.
    var hash: String { state.withLock { $0.hash.text } }

    /// Keeps the first bytes of what an earlier process wrote.
    func keep(_ limit: Int = .max, report: ProgressReport?) async throws {
        try await onAnotherThread(cancellable: { check in
            var hash = ContentHash()
            let count = try hash.add(self.url, limit: limit) {
                try check()
                report?.show($0)
            }
            try self.write { (state, writer) throws(FileError) in
                try writer.keep(count)
                (state.hash, state.count) = (hash, count)
            }
        })
    }

    /// What the file has at some moment.
    struct Mark: Sendable {
        fileprivate var hash = ContentHash()
        fileprivate var count = 0
    }

    var mark: Mark { state.withLock { Mark(hash: $0.hash, count: $0.count) } }

    /// Removes what was added after a moment.
    func restart(from mark: Mark = Mark()) throws {
        try write { (state, writer) throws(FileError) in
            try writer.keep(mark.count)
            (state.hash, state.count) = (mark.hash, mark.count)
        }
    }

    /// - Returns: The number of bytes of the file.
    @discardableResult
    func add(_ bytes: UnsafeRawBufferPointer) throws -> Int {
        try write { (state, writer) throws(FileError) in
            if let code = writeCheck(state.count + bytes.count) { throw FileError(target.path, code: code) }
            try writer.write(bytes)
            state.hash.add(bytes)
            state.count += bytes.count
            return state.count
        }
    }

    /// Gives the file its name. Waits until it is on the disk.
    func complete() throws {
        try write { (_, writer) throws(FileError) in try writer.finish() }
    }

    /// Gives the file its name.
    func finish() async throws { try await onAnotherThread { () throws in try self.complete() } }

    /// Closes the file, so that another installation can continue it. What a connection or a thread that has been cancelled still adds is
    /// refused.
    func close() { state.withLock { $0.writer = nil } }

    /// Removes the file, which cannot become the right one.
    func remove() { unlink(url.path) }

    private func write<Value: Sendable>(_ body: (inout State, FileWriter) throws(FileError) -> Value) throws -> Value {
        try state.withLock { state in
            guard let writer = state.writer else { throw CancellationError() }
            do throws(FileError) { return try body(&state, writer) } catch {
                if error.code == ENOSPC || error.code == EDQUOT {
                    throw InstallationError.diskFull(needed: nil, directory: target.deletingLastPathComponent())
                }
                throw InstallationError.cannotWrite(target, reason: error.reason)
            }
        }
    }
}

/// The size of a file in bytes; nil if there is none.
func fileSize(_ file: URL) -> Int? {
    var status = stat()
    return stat(file.path, &status) == 0 ? Int(status.st_size) : nil
}

/// The free space of the disk of a folder, which need not exist yet; nil if it is not known.
package func freeSpace(of directory: URL) -> Int? {
    var status = statvfs()
    var url = directory
    while statvfs(url.path, &status) != 0 {
        let parent = url.deletingLastPathComponent()
        if parent.path == url.path { return nil }
        url = parent
    }
    // Some file systems of networks say that they have no end.
    let (bytes, isTooLarge) = Int(clamping: status.f_bavail).multipliedReportingOverflow(by: Int(clamping: status.f_frsize))
    return isTooLarge ? .max : bytes
}
