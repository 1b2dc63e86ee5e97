internal import CKernels
package import Inference

package enum ProductSpeed {
    /// Operations per second of products of 8 bits with a matrix and its transpose.
    static func integers(_ pool: WorkerPool, _ matrix: FrozenMatrix) throws(TrainingError) -> Double {
        let rows = 64
        do {
            guard let packed = try IntegerMatrix(matrix, pool: pool) else { return limit(pool, rounds: true) }
            let quantized = try QuantizedRows(elements: rows * max(matrix.rows, matrix.columns), pool: pool)
            let (x, y) = (try Buffer(rows * matrix.columns), try Buffer(rows * matrix.rows))
            func run() {
                for (product, input, output) in [(packed.forward, x, y), (packed.backward, y, x)] {
                    var activations = quantized.quantize(
                        input.pointer, stride: Int(product.columns), rows: rows, columns: Int(product.columns), pool: pool)
                    let product = ck_product(matrix: product, activations: nil, y: output.pointer, ldy: product.rows, add: false)
                    withUnsafePointer(to: product) { ck_matmul(pool.handle, pool.kernels, &activations, $0, 1) }
                }
            }
            run()
            let seconds = ContinuousClock().measure { run() }.seconds
            return 4 * Double(rows * matrix.rows * matrix.columns) / seconds
        } catch let error as TrainingError {
            throw error
        } catch {
            throw .outOfMemory(bytes: IntegerMatrix.bytes(matrix.type, rows: matrix.rows, columns: matrix.columns) ?? 0)
        }
    }

    /// Operations per second of tiles whose operands stay in the first level of the cache, on all threads.
    package static func limit(_ pool: WorkerPool, rounds: Bool) -> Double {
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
