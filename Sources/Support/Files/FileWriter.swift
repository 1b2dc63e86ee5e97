package import Foundation

/// Why a file cannot be written.
package struct FileError: Error, Equatable, CustomStringConvertible {
    package var path: String
    /// The number of the system's error.
    package var code: Int32
    package var reason: String

    /// - Parameter reason: nil for the system's text.
    package init(_ path: String, code: Int32 = errno, reason: String? = nil) {
        self.path = path
        self.code = code
        let isFull = code == ENOSPC || code == EDQUOT
        self.reason =
            reason
            ?? (isFull ? "the disk is full: remove other files, or write to another disk" : String(cString: strerror(code)))
    }

    package var description: String { "Cannot write \(path): \(reason)." }
}

/// A file that gets its name when it is complete and on the disk: whatever happens, there is the old file or the whole new one.
///
/// It is written under another name beside it. Without ``finish()``, what was written is removed.
package final class FileWriter {
    private let path: String
    private let temporary: String
    private let descriptor: Int32
    /// Whether an unfinished file is kept, for a later process that continues it.
    private let isKept: Bool
    /// The number of bytes that an earlier process wrote.
    package let existingBytes: Int
    private var isFinished = false

    /// Begins a new file. The temporary name ends with the number of the process, so that others recognise what a killed one left.
    package init(_ path: String, mode: mode_t = 0o644) throws(FileError) {
        let temporary = "\(path).\(String(UInt32.random(in: .min ... .max), radix: 36)).\(getpid()).part"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw FileError(path) }
        (self.path, self.temporary, self.descriptor, isKept, existingBytes) = (path, temporary, descriptor, false, 0)
    }

    /// Continues what is in `part`, or begins it. An unfinished file is kept. Two processes cannot write it.
    package init(_ path: String, continuing part: String) throws(FileError) {
        let descriptor = open(part, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw FileError(part) }
        var (information, current) = (stat(), stat())
        var problem: FileError?
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            problem = FileError(part, reason: errno == EWOULDBLOCK ? "another process is writing it" : nil)
        } else if fstat(descriptor, &information) != 0 {
            problem = FileError(part)
        } else if stat(part, &current) != 0 || current.st_ino != information.st_ino || current.st_dev != information.st_dev {
            // Between opening and locking, another process may have completed the file: it must not be emptied.
            problem = FileError(part, reason: "another process has just completed it")
        }
        if let problem {
            close(descriptor)
            throw problem
        }
        (self.path, temporary, self.descriptor, isKept, existingBytes) = (path, part, descriptor, true, Int(information.st_size))
    }

    deinit {
        close(descriptor)
        if !isFinished, !isKept { unlink(temporary) }
    }

    /// Keeps the first bytes of what an earlier process wrote, and goes on after them.
    package func keep(_ count: Int) throws(FileError) {
        guard ftruncate(descriptor, off_t(count)) == 0, lseek(descriptor, off_t(count), SEEK_SET) == count else {
            throw FileError(temporary)
        }
    }

    package func write(_ bytes: UnsafeRawBufferPointer) throws(FileError) {
        var rest = bytes
        while !rest.isEmpty {
            let count = Foundation.write(descriptor, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw FileError(path) }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    package func write(_ data: Data) throws(FileError) {
        try data.withUnsafeBytes { bytes in Result { () throws(FileError) in try write(bytes) } }.get()
    }

    /// Waits until everything written is on the disk.
    package func synchronize() throws(FileError) {
        guard fsync(descriptor) == 0 else { throw FileError(path) }
    }

    /// Gives the file its name.
    package func finish() throws(FileError) {
        try synchronize()
        guard rename(temporary, path) == 0 else { throw FileError(path) }
        isFinished = true
    }

    /// Writes a whole file.
    package static func write(_ data: Data, to path: String, mode: mode_t = 0o644) throws(FileError) {
        let file = try FileWriter(path, mode: mode)
        try file.write(data)
        try file.finish()
    }
}
