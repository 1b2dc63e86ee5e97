internal import Files
internal import Foundation

/// A file that is read with `pread`, never mapped: a file that shrinks while it is read causes an error, not SIGBUS. Or bytes in memory
/// that are read in the same way.
package final class SourceFile: Sendable {
    let path: String
    /// Size in bytes when the file was opened.
    package let size: Int
    /// Size, modification time and inode when the file was opened.
    let state: [UInt64]
    private let descriptor: Int32
    private let contents: Data?

    /// - Parameter name: what errors call the bytes.
    init(_ contents: Data, name: String) {
        (path, size, self.contents, descriptor) = (name, contents.count, contents, -1)
        state = [UInt64(contents.count), contents.withUnsafeBytes { FNV.hash($0) }]
    }

    package init(path: String) throws(ModelError) {
        self.path = path
        contents = nil
        // A named pipe without a writer must not block; for regular files, the flag means nothing.
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
        var status = stat()
        let isKnown = fstat(descriptor, &status) == 0
        size = Int(status.st_size)
        state = GGUFFile.state(status)
        guard isKnown else { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw .unreadable(path: path, reason: "it is not a regular file")
        }
        guard size > 0 else { throw .unreadable(path: path, reason: "it is empty") }
    }

    deinit { if contents == nil { close(descriptor) } }

    /// Fills `buffer` with the bytes at `offset`.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ModelError) {
        if let contents {
            guard offset >= 0, offset <= size, buffer.count <= size - offset else {
                throw .unreadable(path: path, reason: "it is shorter than it says")
            }
            let start = contents.startIndex + offset
            contents.copyBytes(to: buffer, from: start..<start + buffer.count)
            return
        }
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

/// The first bytes of a file. They are read into memory when they are needed: the size of the header, with all tokens of the
/// vocabulary, is not stored in the file.
final class FileHeader: @unchecked Sendable {  // One thread opens the file; then nothing is written.
    let bytes: UnsafeRawBufferPointer
    private let memory: Memory
    private let file: SourceFile
    private var loaded = 0

    /// - Parameter limit: the maximum number of bytes.
    init(of file: SourceFile, limit: Int) throws(ModelError) {
        self.file = file
        // Pages that are not written take no memory.
        memory = try Memory(bytes: min(limit, file.size))
        bytes = UnsafeRawBufferPointer(start: memory.base, count: memory.count)
    }

    /// Reads at least the bytes before `end`, which is at most the number of all, and returns how many are in memory.
    func load(upTo end: Int) throws(ModelError) -> Int {
        let wanted = min(bytes.count, max(end, loaded + 1 << 20))
        if wanted > loaded {
            try file.read(into: UnsafeMutableRawBufferPointer(start: memory.base + loaded, count: wanted - loaded), at: loaded)
            loaded = wanted
        }
        return loaded
    }
}
