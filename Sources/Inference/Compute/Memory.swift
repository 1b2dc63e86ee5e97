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
}
