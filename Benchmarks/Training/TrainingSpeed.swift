import Foundation
import FoundationModelsTraining
import Inference

/// The speed of training on this machine, with the limit of its matrix products.
struct TrainingSpeed: CustomStringConvertible {
    var tokensPerSecond: [Double]
    var operationsPerToken: Double
    /// Operations per second of a product whose operands are in the caches.
    var limit: Double
    var peakBytes: Int

    var description: String {
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
    static func measure(
        model path: String, rank: Int, rows: Int, length: Int, keptLayers: Int, batches: Int, learned: Double, rounds: Bool,
        integers: Bool,
        layers: Int?
    ) throws -> TrainingSpeed {
        let model = try FrozenModel(path: path)
        let matrices = AdapterTrainer.matrices(model, .all, layers: layers)
        let factors = try LowRankFactors(matrices, rank: rank, scale: 2)
        factors.initialize(seed: 1)
        let pool = try WorkerPool.shared()
        let pass = try GradientPass(
            model, factors, pool: pool, maximumRows: rows, keptLayers: keptLayers, rounds: rounds, usesIntegers: integers,
            contextSize: length)
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
        let weights = matrices.reduce(0) { $0 + $1.rows * $1.columns }
        let head = model.shape.vocabularySize * model.shape.width
        let perToken = Double((keptLayers >= model.shape.layers.count ? 4 : 6) * weights) + 4 * learned * Double(head)
        return TrainingSpeed(
            tokensPerSecond: speeds, operationsPerToken: perToken, limit: ProductSpeed.limit(pool, rounds: pass.rounds),
            peakBytes: SystemMemory.peakBytes)
    }
}
