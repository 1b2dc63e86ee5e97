internal import Foundation

/// Zeroed numbers in memory, aligned to cache lines. Kernels read up to 32 numbers after the last one, which are zeros.
package final class Buffer: @unchecked Sendable {  // Its owner writes it from one thread at a time.
    let pointer: UnsafeMutablePointer<Float>
    let count: Int

    private static let slack = 64

    init(_ count: Int) throws(TrainingError) {
        self.count = count
        let bytes = (count + Self.slack) * MemoryLayout<Float>.stride
        // Pages take no memory until they are written.
        guard
            let address = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
            address != MAP_FAILED
        else { throw .outOfMemory(bytes: bytes) }
        pointer = address.bindMemory(to: Float.self, capacity: count + Self.slack)
    }

    deinit { munmap(pointer, (count + Self.slack) * MemoryLayout<Float>.stride) }

    package func clear() { pointer.update(repeating: 0, count: count) }

    var values: [Float] {
        get { Array(UnsafeBufferPointer(start: pointer, count: count)) }
        set { pointer.update(from: newValue, count: min(count, newValue.count)) }
    }
}
