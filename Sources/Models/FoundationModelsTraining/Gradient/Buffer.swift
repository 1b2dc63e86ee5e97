internal import Inference

/// Zeroed numbers in memory, aligned to cache lines. Kernels read up to 32 numbers after the last one, which are zeros.
package final class Buffer: @unchecked Sendable {  // Its owner writes it from one thread at a time.
    let pointer: UnsafeMutablePointer<Float>
    let count: Int

    private static let slack = 64
    private let memory: Memory

    init(_ count: Int) throws(TrainingError) {
        self.count = count
        let bytes = (count + Self.slack) * MemoryLayout<Float>.stride
        do { memory = try Memory(bytes: bytes) } catch { throw .outOfMemory(bytes: bytes) }
        pointer = memory.base.bindMemory(to: Float.self, capacity: count + Self.slack)
    }

    package func clear() { pointer.update(repeating: 0, count: count) }

    var values: [Float] {
        get { Array(UnsafeBufferPointer(start: pointer, count: count)) }
        set { pointer.update(from: newValue, count: min(count, newValue.count)) }
    }
}
