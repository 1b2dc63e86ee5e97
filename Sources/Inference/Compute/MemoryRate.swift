internal import CKernels

/// How fast this machine reads memory: what limits how fast a model generates, because each token reads all weights in use.
package enum MemoryRate {
    /// Bytes a second that the threads of a pool read; nil if there is not as much memory.
    ///
    /// - Parameter bytes: how much to read: as much as a model has, because what fits the processor's caches is read faster.
    package static func measure(bytes: Int, pool: WorkerPool) -> Double? {
        guard let memory = try? Memory(bytes: bytes, hugePages: true) else { return nil }  // too little of it is free
        var job = ReadJob(base: memory.base, bytes: bytes, kernels: pool.kernels)
        // Untouched pages would all be the same one.
        ck_pool_run(pool.handle, job.chunks, { context, chunk in ReadJob.from(context)?.fill(Int(chunk)) }, &job)
        let start = ContinuousClock.now
        ck_pool_run(pool.handle, job.chunks, { context, chunk in ReadJob.from(context)?.read(Int(chunk)) }, &job)
        return Double(bytes) / (ContinuousClock.now - start).seconds
    }

    /// What of that rate generation reaches, the rest of its work included (BENCHMARKS.md).
    package static let reachedShare = 0.8
}

/// What a reading chunk needs; lives on the caller's stack while the pool runs.
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
