import Foundation
import FoundationModelsTraining
import Inference

/// The same run as PEFT's, step by step: the same model, first values, rows and optimiser (`Tests/Tools/peft_run.py` writes the folder).
enum ReferenceRun {
    /// - Returns: the loss of each step here and there, and the largest relative difference.
    static func compare(_ folder: URL, rounds: Bool) throws -> (losses: [(own: Double, peft: Double)], largest: Double) {
        struct Losses: Decodable { var losses: [Double] }
        struct Row: Decodable { var tokens: [Int32], supervised: [Bool] }
        func read<Content: Decodable>(_ type: Content.Type, _ name: String) throws -> Content {
            try JSONDecoder().decode(type, from: Data(contentsOf: folder.appendingPathComponent(name)))
        }
        let expected = try read(Losses.self, "losses.json").losses
        let steps = try read([[Row]].self, "tokens.json")
        let model = try FrozenModel(path: folder.appendingPathComponent("model.gguf").path)
        let initial = try AdapterData(contentsOf: folder.appendingPathComponent("initial.gguf"))
        let rank = initial.pairs.values.first?.rank ?? 1
        let factors = try LowRankFactors(
            AdapterTrainer.matrices(model, .all), rank: rank, scale: Float(initial.pairs.values.first?.scale ?? 1))
        for place in factors.order {
            guard let pair = initial.pairs[place.name] else { throw TrainingError.invalidAdapter("\(place.name) is missing") }
            factors.set(place, a: pair.a, b: pair.b)
        }
        let rows = steps.map { $0.reduce(0) { $0 + $1.tokens.count } }.max() ?? 1
        let pass = try GradientPass(
            model, factors, pool: .shared(), maximumRows: rows, keptLayers: 0, rounds: rounds, contextSize: 512)
        var losses: [(own: Double, peft: Double)] = []
        for (index, step) in steps.enumerated() {
            var batch = TrainingBatch()
            for row in step { batch.add(row.tokens, isLearned: row.supervised) }
            factors.gradients.clear()
            let result = try pass.run(batch, divisor: Double(batch.targets.count))
            losses.append((result.loss / Double(result.targets), expected[index]))
            let norm = factors.gradientNorm
            factors.step(index + 1, pool: pass.pool, rate: 5e-4, factor: norm > 1 ? Float(1 / norm) : 1, weightDecay: 0)
        }
        return (losses, losses.map { abs($0.own - $0.peft) / $0.peft }.max() ?? 0)
    }
}
