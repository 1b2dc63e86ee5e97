internal import Foundation

/// Zeroed anonymous memory from `mmap`: pages use no memory until they are touched. Unmapped at deinit.
package final class Memory: @unchecked Sendable {  // Owners synchronize writes; see KVCache, Weights, Scratch.
    package let base: UnsafeMutableRawPointer
    let count: Int

    /// - Parameter hugePages: requests 2 MB pages, suitable for memory that is used completely, such as a model's
    ///   weights.
    package init(bytes: Int, hugePages: Bool = false) throws(ModelError) {
        count = max(bytes, 1)
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        // The start must be aligned to a huge page: allocate one page more and use the aligned part.
        let alignment = hugePages ? 2 << 20 : 1
        guard let address = mmap(nil, count + alignment, PROT_READ | PROT_WRITE, flags, -1, 0), address != MAP_FAILED
        else { throw .outOfMemory(bytes: bytes) }
        mapped = (address, count + alignment)
        let start = (Int(bitPattern: address) + alignment - 1) / alignment * alignment
        base = address + (start - Int(bitPattern: address))
        #if os(Linux)
        if hugePages { madvise(base, count, Int32(MADV_HUGEPAGE)) }
        #endif
    }

    private let mapped: (UnsafeMutableRawPointer, Int)

    func pointer<Value>(at offset: Int = 0, as type: Value.Type) -> UnsafeMutablePointer<Value> {
        (base + offset).assumingMemoryBound(to: Value.self)
    }

    deinit { munmap(mapped.0, mapped.1) }
}

/// Lays out several arrays in one block of memory, each aligned to a cache line.
struct MemoryLayoutBuilder {
    private(set) var bytes = 0

    /// Reserves space for `count` values and returns its offset in bytes.
    mutating func reserve<Value>(_ count: Int, of type: Value.Type) -> Int {
        defer { bytes += (count * MemoryLayout<Value>.stride + 63) / 64 * 64 }
        return bytes
    }

    /// Reserves space for `count` values and returns a pointer to it; if `memory` is nil, a placeholder that must not
    /// be dereferenced.
    mutating func pointer<Value>(_ count: Int, of type: Value.Type, in memory: Memory?) -> UnsafeMutablePointer<Value> {
        let offset = reserve(count, of: type)
        return memory?.pointer(at: offset, as: type) ?? .measuring
    }
}

extension UnsafeMutablePointer {
    /// The pointer of an array while only sizes are computed: it is not null, so that a missing optional array is recognized,
    /// and never dereferenced.
    static var measuring: Self { Self(bitPattern: 64).unsafelyUnwrapped }
}

/// A new file of a fixed size that is written through a shared mapping, and locked until this object is released.
final class WritableMapping: @unchecked Sendable {  // The pool's threads write to disjoint ranges.
    let base: UnsafeMutableRawPointer
    private let count: Int
    private let descriptor: Int32

    /// Creates the file and reserves its space on the disk; nil if that is not possible, or if the file exists.
    init?(path: String, bytes: Int) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        // Between its creation and its lock, another process may have removed the file.
        var status = stat()
        // Without reserved disk space, a write to the mapping would end the process with SIGBUS when the disk is full.
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, fstat(descriptor, &status) == 0, status.st_nlink > 0,
            posix_fallocate(descriptor, 0, off_t(bytes)) == 0,
            let address = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), address != MAP_FAILED
        else {
            unlink(path)
            close(descriptor)
            return nil
        }
        (base, count, self.descriptor) = (address, bytes, descriptor)
        // Files written in pages of 2 MB stay in such pages, also for later processes.
        #if os(Linux)
        madvise(address, bytes, Int32(MADV_HUGEPAGE))
        #endif
    }

    deinit {
        munmap(base, count)
        close(descriptor)
    }
}

/// A file mapped read-only for as long as this object lives.
final class MappedFile: @unchecked Sendable {  // The mapping is never written and lives until deinit.
    let bytes: UnsafeRawBufferPointer

    /// Maps a file of exactly `size` bytes with `MAP_SHARED`; nil if there is no such file.
    init?(shared path: String, size: Int) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, Int(status.st_size) == size,
            let address = mmap(nil, size, PROT_READ, MAP_SHARED, descriptor, 0), address != MAP_FAILED
        else { return nil }
        bytes = UnsafeRawBufferPointer(start: address, count: size)
        #if os(Linux)
        madvise(address, size, Int32(MADV_HUGEPAGE))
        // A file that does not fit is read where it is needed: parts of it, such as experts, may never be.
        if let available = SystemMemory.current.available(), available > size { populate() }
        #else
        madvise(address, size, Int32(MADV_WILLNEED))
        #endif
    }

    #if os(Linux)
    /// Reads the file and maps its pages in the background, in pages of 2 MB where the file system has them and the file is not
    /// yet in smaller ones: the program reads all of it, and one fault for each 64 KB takes longer.
    private func populate() {
        let populateRead: Int32 = 22  // MADV_POPULATE_READ, Linux 5.14
        let step = 64 << 20
        let count = bytes.count
        DispatchQueue.global(qos: .userInitiated).async { [weak self] in
            for offset in stride(from: 0, to: count, by: step) {
                // Nothing holds the mapping between two parts, so that it can go.
                guard let self, let base = self.bytes.baseAddress else { return }
                let part = UnsafeMutableRawPointer(mutating: base + offset)
                if madvise(part, min(step, count - offset), populateRead) == 0 { continue }
                madvise(UnsafeMutableRawPointer(mutating: base), count, Int32(MADV_WILLNEED))
                return
            }
        }
    }
    #endif

    deinit {
        munmap(UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count)
    }
}
