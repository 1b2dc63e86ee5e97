internal import Foundation

/// A file that is read with `pread`, never mapped: a file that shrinks while it is read causes an error, not SIGBUS.
final class SourceFile: Sendable {
    let path: String
    /// Size in bytes when the file was opened.
    let size: Int
    private let descriptor: Int32

    init(path: String) throws(ModelError) {
        self.path = path
        // A named pipe without a writer must not block; for regular files, the flag means nothing.
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
        var status = stat()
        let isKnown = fstat(descriptor, &status) == 0
        size = Int(status.st_size)
        guard isKnown else { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw .unreadable(path: path, reason: "it is not a regular file")
        }
        guard size > 0 else { throw .unreadable(path: path, reason: "it is empty") }
    }

    deinit { close(descriptor) }

    /// Fills `buffer` with the bytes at `offset`.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ModelError) {
        var done = 0
        while done < buffer.count {
            let count = pread(descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done, off_t(offset + done))
            if count > 0 {
                done += count
            } else if count == 0 {
                throw .unreadable(path: path, reason: "it became shorter while it was read")
            } else if errno != EINTR {
                throw .unreadable(path: path, reason: String(cString: strerror(errno)))
            }
        }
    }
}

/// The first bytes of a file, in memory.
final class FileHeader: @unchecked Sendable {  // The memory is written only by the initializer.
    let bytes: UnsafeRawBufferPointer

    init(of file: SourceFile, count: Int) throws(ModelError) {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        bytes = UnsafeRawBufferPointer(memory)
        try file.read(into: memory, at: 0)
    }

    deinit { bytes.deallocate() }
}
