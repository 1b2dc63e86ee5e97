internal import Foundation

/// Zeroed memory straight from the system: pages cost nothing until they are touched, and are returned at deinit.
final class Memory: @unchecked Sendable {  // Owners decide who writes; see KVCache, Weights and Activations.
    let base: UnsafeMutableRawPointer
    let count: Int

    /// - Parameter hugePages: asks for 2 MB pages, right for memory that is all used: a model's weights.
    init(bytes: Int, hugePages: Bool = false) throws(ModelError) {
        count = max(bytes, 1)
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        // With huge pages the start must be aligned to one: over-allocate, then give back the ends.
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
struct MemoryLayouter {
    private(set) var bytes = 0

    /// Reserves room for `count` values and returns its offset.
    mutating func reserve<Value>(_ count: Int, of type: Value.Type) -> Int {
        defer { bytes += (count * MemoryLayout<Value>.stride + 63) / 64 * 64 }
        return bytes
    }

    /// Reserves room for `count` values and returns where it is; without memory, a place that must not be used.
    mutating func pointer<Value>(_ count: Int, of type: Value.Type, in memory: Memory?) -> UnsafeMutablePointer<Value> {
        let offset = reserve(count, of: type)
        return memory?.pointer(at: offset, as: type) ?? .measuring
    }
}

extension UnsafeMutablePointer {
    /// What stands for an array while only sizes are counted: not null, so that presence can be asked for, and never read.
    static var measuring: Self { Self(bitPattern: 64).unsafelyUnwrapped }
}

/// A file of a fixed size that is being written through a mapping.
final class WritableMapping: @unchecked Sendable {  // One thread fills it, the pool's threads at places of their own.
    let base: UnsafeMutableRawPointer
    private let count: Int

    /// Creates the file and reserves its space on the disk; nil if that is not possible.
    init?(path: String, bytes: Int) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // Space that is only promised would end the process with a signal when the disk is full.
        guard posix_fallocate(descriptor, 0, off_t(bytes)) == 0,
            let address = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), address != MAP_FAILED
        else {
            unlink(path)
            return nil
        }
        (base, count) = (address, bytes)
    }

    deinit { munmap(base, count) }
}
