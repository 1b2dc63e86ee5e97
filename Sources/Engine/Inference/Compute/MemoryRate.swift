internal import CKernels

/// The memory bandwidth of this machine. It limits the generation speed, because each token reads all weights in use.
package enum MemoryRate {
    /// Measures how many bytes per second the threads of a pool read; nil if the memory cannot be allocated.
    ///
    /// - Parameter bytes: the number of bytes to read: the size of a model, because data that fits the processor's
    ///   caches is read faster.
    package static func measure(bytes: Int, pool: WorkerPool) -> Double? {
        guard let memory = try? Memory(bytes: bytes, hugePages: true) else { return nil }  // not enough free memory
        var job = ReadJob(base: memory.base, bytes: bytes, kernels: pool.kernels)
        // Reads of untouched pages would all hit the shared zero page.
        ck_pool_run(pool.handle, job.chunks, { context, chunk in ReadJob.from(context)?.fill(Int(chunk)) }, &job)
        let start = ContinuousClock.now
        ck_pool_run(pool.handle, job.chunks, { context, chunk in ReadJob.from(context)?.read(Int(chunk)) }, &job)
        return Double(bytes) / (ContinuousClock.now - start).seconds
    }

    /// Measures the same several times, each time for a few milliseconds, and returns the highest rate. Another program that uses the processor
    /// or the memory meanwhile does not make the machine look slow, unless it does so without a break.
    ///
    /// - Parameter bytes: as for ``measure(bytes:pool:)``.
    package static func highest(bytes: Int, pool: WorkerPool) -> Double? {
        guard let memory = try? Memory(bytes: bytes, hugePages: true) else { return nil }  // not enough free memory
        var job = ReadJob(base: memory.base, bytes: bytes, kernels: pool.kernels)
        ck_pool_run(pool.handle, job.chunks, { context, chunk in ReadJob.from(context)?.fill(Int(chunk)) }, &job)
        // Each thread reads a chunk, which takes less than what the system lets a program run without a break.
        let part = min(bytes, pool.threads * ReadJob.chunkBytes)
        var highest = 0.0
        for _ in 0..<passes {
            for first in stride(from: 0, through: bytes - part, by: part) {
                var job = ReadJob(base: memory.base + first, bytes: part, kernels: pool.kernels)
                let start = ContinuousClock.now
                ck_pool_run(pool.handle, job.chunks, { context, chunk in ReadJob.from(context)?.read(Int(chunk)) }, &job)
                highest = max(highest, Double(part) / max(1e-9, (ContinuousClock.now - start).seconds))
            }
        }
        return highest
    }

    private static let passes = 3

    /// The share of the memory bandwidth that generation as a whole reaches (BENCHMARKS.md).
    package static let reachedShare = 0.8
}

/// The parameters of one measurement; stored on the caller's stack while the pool runs.
private struct ReadJob {
    let base: UnsafeMutableRawPointer
    let bytes: Int
    let kernels: UnsafePointer<ck_kernels>

    static let chunkBytes = 8 << 20

    var chunks: Int32 { Int32((bytes + Self.chunkBytes - 1) / Self.chunkBytes) }

    static func from(_ context: UnsafeMutableRawPointer?) -> ReadJob? { context?.assumingMemoryBound(to: ReadJob.self).pointee }

    private func part(_ chunk: Int) -> UnsafeMutableRawBufferPointer {
        let start = chunk * Self.chunkBytes
        return UnsafeMutableRawBufferPointer(start: base + start, count: min(Self.chunkBytes, bytes - start))
    }

    func fill(_ chunk: Int) { part(chunk).initializeMemory(as: UInt8.self, repeating: 1) }

    func read(_ chunk: Int) {
        let part = part(chunk)
        _ = kernels.pointee.argmax(part.baseAddress?.assumingMemoryBound(to: Float.self), Int32(part.count / 4))
    }
}
