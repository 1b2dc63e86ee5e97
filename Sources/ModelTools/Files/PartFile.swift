internal import Foundation
internal import Inference

/// A file under a temporary name until it is complete. After an interruption, writing continues where it stopped.
///
/// Beside the file `NAME.partial` lies `NAME.partial.state` with what it is made of and how much of it is certainly on the disk. Two processes
/// cannot write the same file.
struct PartFile {
    private let target: URL
    private let part: URL
    private let state: URL
    private let identity: String?
    private let handle: FileHandle
    /// Bytes that are written already.
    private(set) var written = 0
    private var recorded = 0

    /// The state is recorded each time that this number of bytes has been written.
    private static let step = 256 << 20

    /// - Parameter identity: what the file is made of. A part that was made of something else is written again; nil if nothing is kept.
    init(_ target: URL, identity: String?) throws(ModelError) {
        (self.target, self.identity) = (target, identity)
        let part = target.appendingPathExtension("partial")
        (self.part, state) = (part, part.appendingPathExtension("state"))
        func failed() -> ModelError { .unreadable(path: part.path, reason: String(cString: strerror(errno))) }
        let descriptor = open(part.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw failed() }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw errno == EWOULDBLOCK ? .unreadable(path: part.path, reason: "another process is writing it") : failed()
        }
        var (information, current) = (stat(), stat())
        guard fstat(descriptor, &information) == 0 else { throw failed() }
        // Between opening and locking, another process may have completed the file: it must not be emptied.
        guard stat(part.path, &current) == 0, current.st_ino == information.st_ino, current.st_dev == information.st_dev else {
            throw .unreadable(path: part.path, reason: "another process has just completed it")
        }
        // Without a record, or with another one, nothing is kept.
        let lines = (try? String(contentsOf: state, encoding: .utf8))?.split(separator: "\n") ?? []
        if let identity, lines.count == 2, lines[0] == identity, let count = Int(lines[1]),
            (0...Int(information.st_size)).contains(count)
        {
            written = count
        }
        recorded = written
        guard ftruncate(descriptor, off_t(written)) == 0, lseek(descriptor, off_t(written), SEEK_SET) == written else {
            throw failed()
        }
    }

    mutating func write(_ data: Data) throws {
        try handle.write(contentsOf: data)
        written += data.count
        if written - recorded >= Self.step { try record() }
    }

    /// Records what is written, so that another process can continue.
    mutating func record() throws {
        guard let identity else { return }
        try handle.synchronize()
        try Data("\(identity)\n\(written)\n".utf8).write(to: state, options: .atomic)
        recorded = written
    }

    /// Gives the file its name.
    ///
    /// - Parameter check: receives the path of the complete file. If it throws, the file keeps its temporary name.
    func finish(_ check: (String) throws -> Void) throws {
        try handle.synchronize()
        try check(part.path)
        guard rename(part.path, target.path) == 0 else {
            throw ModelError.unreadable(path: target.path, reason: String(cString: strerror(errno)))
        }
        unlink(state.path)
    }

    /// Removes what is written.
    func remove() {
        unlink(part.path)
        unlink(state.path)
    }
}
