internal import CKernels
internal import Foundation
internal import Inference

/// The speed of training on this machine, with the limit of its matrix products.
package struct TrainingSpeed: CustomStringConvertible {
    package var tokensPerSecond: [Double]
    package var operationsPerToken: Double
    /// Operations per second of a product whose operands are in the caches.
    package var limit: Double
    package var peakBytes: Int

    package var description: String {
        let best = tokensPerSecond.max() ?? 0
        let list = tokensPerSecond.map { String(format: "%.1f", $0) }.joined(separator: ", ")
        return """
            tokens/s: \(list)
            GFLOP/s: \(String(format: "%.0f", best * operationsPerToken / 1e9)) of \(String(format: "%.0f", limit / 1e9)) \
            (\(String(format: "%.0f", 100 * best * operationsPerToken / limit)) %)
            peak resident memory: \(peakBytes >> 20) MB
            """
    }

    /// Trains on random tokens.
    package static func measure(
        model path: String, rank: Int, rows: Int, length: Int, keptLayers: Int, batches: Int, learned: Double, rounds: Bool
    ) throws -> TrainingSpeed {
        let model = try FrozenModel(path: path)
        let factors = try LowRankFactors(
            model.layers.flatMap { $0.projections.map { ($0.matrix.name, $0.matrix.rows, $0.matrix.columns) } }, rank: rank,
            scale: 2)
        factors.initialize(seed: 1)
        let pool = try WorkerPool.shared()
        let pass = try GradientPass(
            model, factors, pool: pool, maximumRows: rows, keptLayers: keptLayers, rounds: rounds, contextSize: length)
        var numbers = SplitMix64(state: 7)
        var speeds: [Double] = []
        for _ in 0..<batches {
            var batch = TrainingBatch()
            while batch.tokens.count + length <= rows {
                let tokens = (0..<length).map { _ in Int32.random(in: 0..<Int32(model.shape.vocabularySize), using: &numbers) }
                batch.add(tokens, isLearned: tokens.map { _ in Double(numbers.unit()) < learned })
            }
            let clock = ContinuousClock()
            let seconds = try clock.measure { _ = try pass.run(batch, divisor: Double(max(1, batch.targets.count))) }.seconds
            speeds.append(Double(batch.tokens.count) / seconds)
        }
        let weights = model.layers.reduce(0) { $0 + $1.projections.reduce(0) { $0 + $1.matrix.rows * $1.matrix.columns } }
        let head = model.shape.vocabularySize * model.shape.width
        let perToken = Double((keptLayers >= model.layers.count ? 4 : 6) * weights) + 4 * learned * Double(head)
        return TrainingSpeed(
            tokensPerSecond: speeds, operationsPerToken: perToken, limit: productLimit(pool, rounds: pass.rounds),
            peakBytes: SystemMemory.peakBytes)
    }

    /// The speed of tiles whose operands stay in the first level of the cache, on all threads.
    static func productLimit(_ pool: WorkerPool, rounds: Bool) -> Double {
        guard let kernels = ck_training_best() else { return 0 }
        let rounds = rounds && kernels.pointee.rounded_tile != nil
        struct Job {
            var kernels: UnsafePointer<ck_training_kernels>
            var rounds: Bool
        }
        let repeats = 20_000
        let depth = 256
        var job = Job(kernels: kernels, rounds: rounds)
        func run() {
            withUnsafeMutablePointer(to: &job) { job in
                ck_pool_run(
                    pool.handle, Int32(pool.threads),
                    { context, _ in
                        guard let job = context?.assumingMemoryBound(to: Job.self).pointee else { return }
                        let a = [UInt32](repeating: 0x3F80_3F80, count: 256 * 12)
                        let b = [UInt32](repeating: 0x3F80_3F80, count: 256 * 32)
                        var c = [Float](repeating: 0, count: 12 * 32)
                        for _ in 0..<20_000 {
                            if job.rounds {
                                job.kernels.pointee.rounded_tile(a, b, 128, 12, 32, 1, false, &c, 32)
                            } else {
                                a.withUnsafeBytes { a in
                                    b.withUnsafeBytes { b in
                                        job.kernels.pointee.tile(
                                            a.baseAddress?.assumingMemoryBound(to: Float.self),
                                            b.baseAddress?.assumingMemoryBound(to: Float.self), 32, 256, 12, 32, 1, false, &c, 32)
                                    }
                                }
                            }
                        }
                    }, job)
            }
        }
        run()
        let seconds = ContinuousClock().measure { run() }.seconds
        return Double(repeats * pool.threads * 2 * 12 * 32 * depth) / seconds
    }
}
