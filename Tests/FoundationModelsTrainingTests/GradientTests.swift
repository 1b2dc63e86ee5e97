import Foundation
import TestSupport
import Testing

@testable import FoundationModelsTraining
@testable import Inference

/// Losses and gradients of low-rank adapters of tiny models of every family, against those of PyTorch in binary64
/// (written by `Tests/Tools/record_gradients.py`).
struct GradientTests {
    struct Reference: Decodable {
        struct Half: Decodable { var norm: Double, indices: [Int], values: [Double] }
        struct Matrix: Decodable { var name: String, a: Half, b: Half }
        var name: String
        var context: Int
        var rank: Int
        var alpha: Double
        var sequences: [[Int32]]
        var targets: [[Int]]
        var loss: Double
        var base_loss: Double
        var gradient_norm: Double
        var lora: [Matrix]

        static let folder = URL(filePath: #filePath).deletingLastPathComponent().appendingPathComponent("Gradients")
        static let names: [String] = {
            let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []  // `thereAreReferences` fails
            return files.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
        }()

        static func load(_ name: String) throws -> Reference {
            try JSONDecoder().decode(Reference.self, from: Data(contentsOf: folder.appendingPathComponent(name + ".json")))
        }

        var batch: TrainingBatch {
            var batch = TrainingBatch()
            for (tokens, targets) in zip(sequences, targets) {
                batch.add(tokens, isLearned: tokens.indices.map { targets.contains($0) })
            }
            return batch
        }
    }

    @Test func thereAreReferences() { #expect(Reference.names.count >= 35) }

    private func pass(_ name: String, kept: Int, rounds: Bool = false) throws -> (GradientPass, Reference, TemporaryFile) {
        let reference = try Reference.load(name)
        let recipe = try ModelRecipe.load(name)
        let file = try TemporaryFile(recipe.builder().bytes())
        let model = try FrozenModel(path: file.path)
        let matrices = Dictionary(
            uniqueKeysWithValues: model.layers.flatMap { $0.projections.map { ($0.matrix.name, $0.matrix) } })
        let factors = try LowRankFactors(
            try reference.lora.map { item in
                let matrix = try #require(matrices[item.name])
                return (item.name, matrix.rows, matrix.columns)
            }, rank: reference.rank, scale: Float(reference.alpha) / Float(reference.rank))
        for place in factors.order {
            factors.set(
                place,
                a: recipe.numbers(place.name + ".lora_a", count: place.rank * place.columns, low: -0.1, high: 0.1),
                b: recipe.numbers(place.name + ".lora_b", count: place.rank * place.rows, low: -0.1, high: 0.1))
        }
        let pass = try GradientPass(
            model, factors, pool: .shared(), maximumRows: 18, keptLayers: kept, rounds: rounds, contextSize: reference.context)
        return (pass, reference, file)
    }

    /// The error of a half's gradient: that of its norm, and that of single elements relative to their usual size.
    private func error(_ found: [Float], _ expected: Reference.Half) -> Double {
        let norm = found.reduce(0.0) { $0 + Double($1) * Double($1) }.squareRoot()
        let usual = max(1e-12, expected.norm / Double(found.count).squareRoot())
        let elements = zip(expected.indices, expected.values).map { abs(Double(found[$0]) - $1) / max(usual, abs($1)) }
        return max(abs(norm - expected.norm) / max(1e-12, expected.norm), elements.max() ?? 0)
    }

    private func largestError(_ pass: GradientPass, _ reference: Reference) throws -> Double {
        var largest = 0.0
        for item in reference.lora {
            let place = try #require(pass.factors.places[item.name])
            let gradients = pass.factors.gradients.values
            let a = Array(gradients[place.offset..<place.bOffset])
            var b = [Float](repeating: 0, count: place.rows * place.rank)
            for row in 0..<place.rows {
                for r in 0..<place.rank { b[row * place.rank + r] = gradients[place.bOffset + r * place.rows + row] }
            }
            largest = max(largest, error(a, item.a), error(b, item.b))
        }
        return largest
    }

    @Test("[A10] gradients of every family equal those of PyTorch", arguments: Reference.names)
    func equalsPyTorch(name: String) throws {
        for kept in [0, 1, 100] {
            let (pass, reference, _) = try pass(name, kept: kept)
            let batch = reference.batch
            let result = try pass.run(batch, divisor: Double(batch.targets.count))
            #expect(result.targets == 12)
            #expect(abs(result.loss / 12 - reference.loss) < 1e-4 * reference.loss)
            let error = try largestError(pass, reference)
            #expect(error < 1e-3, "\(name), \(kept) layers kept: \(error)")
            // A second pass adds the same again.
            _ = try pass.run(batch, divisor: Double(batch.targets.count))
            let norm = ck_squares(pass.factors.gradients).squareRoot()
            #expect(abs(norm - 2 * reference.gradient_norm) < 1e-3 * norm)
        }
    }

    /// With soft caps of logits and attention, with a window, and without any.
    @Test(
        "[A10] the gradient of the divergence from known predictions equals differences", arguments: ["gemma2", "llama", "qwen3"])
    func divergence(name: String) throws {
        let (pass, reference, _) = try pass(name, kept: 1)
        let batch = reference.batch
        let likely = 8
        let predictions = try pass.predictions(batch, likely: likely, isCancelled: { false })
        #expect(predictions.tokens.count == batch.targets.count * likely)
        for target in batch.targets.indices {
            let range = target * likely..<(target + 1) * likely
            #expect(Set(predictions.tokens[range]).count == likely && predictions.probabilities[range].reduce(0, +) <= 1.00001)
        }
        // The model alone predicts what it predicts.
        pass.isBase = true
        #expect(abs(try pass.run(batch, divisor: nil, expected: predictions).loss) < 1e-4)
        pass.isBase = false
        let count = pass.factors.count
        pass.factors.gradients.clear()
        let loss = try pass.run(batch, divisor: 1, expected: predictions).loss
        #expect(loss > 1e-3)
        let gradients = pass.factors.gradients.values
        // Along the gradient, the loss changes by the square of its length.
        let square = gradients.reduce(0.0) { $0 + Double($1) * Double($1) }
        let step = Float(0.02 * loss / square)
        func moved(by factor: Float) throws -> Double {
            for index in 0..<count { pass.factors.values.pointer[index] += factor * gradients[index] }
            defer { for index in 0..<count { pass.factors.values.pointer[index] -= factor * gradients[index] } }
            return try pass.run(batch, divisor: nil, expected: predictions).loss
        }
        let slope = try (moved(by: step) - moved(by: -step)) / (2 * Double(step))
        #expect(abs(slope - square) < 0.02 * square, "\(slope) \(square)")
    }

    @Test(
        "[A10] branches of a sequence have the loss and the gradient of conversations of their own",
        arguments: ["llama", "qwen3", "olmo2"])
    func branches(name: String) throws {
        let (pass, reference, _) = try pass(name, kept: 1)
        let tokens = reference.sequences.flatMap { $0 }
        let prefix = Array(tokens.prefix(5))
        let branches = [Array(tokens[5..<9]), Array(tokens[3..<9])]
        func learned(_ branch: [Int32]) -> [Bool] { branch.indices.map { $0 > 0 } }
        var loss = 0.0
        for branch in branches {
            var batch = TrainingBatch()
            batch.add(prefix + branch, isLearned: prefix.map { _ in false } + learned(branch))
            loss += try pass.run(batch, divisor: 8).loss
        }
        let expected = pass.factors.gradients.values
        pass.factors.gradients.clear()
        var batch = TrainingBatch()
        batch.add(
            TrainingSequence(
                line: 1, tokens: prefix + branches.flatMap { $0 },
                isLearned: prefix.map { _ in false } + branches.flatMap(learned), branches: [5, 9]))
        let result = try pass.run(batch, divisor: 8)
        #expect(result.targets == 8 && abs(result.loss - loss) < 1e-4 * loss)
        let found = pass.factors.gradients.values
        let size = expected.reduce(0.0) { $0 + Double($1) * Double($1) }.squareRoot()
        let error = zip(found, expected).reduce(0.0) { $0 + Double($1.0 - $1.1) * Double($1.0 - $1.1) }.squareRoot()
        #expect(size > 0 && error < 1e-3 * size, "\(error) of \(size)")
    }

    @Test("[A10] conversations of one row that begin alike are one sequence") func mergedSequences() {
        let prefix = (0..<60).map { Int32($0) }
        func sequence(_ own: [Int32], line: Int = 1) -> TrainingSequence {
            TrainingSequence(
                line: line, tokens: prefix + own, isLearned: prefix.map { _ in false } + own.indices.map { $0 == own.count - 1 })
        }
        let own: [[Int32]] = [[100, 101, 102], [100, 104, 105, 106], [107, 108]]
        let merged = TrainingSequence.merged(own.map { sequence($0) }, maximumTokens: 100)
        #expect(merged.count == 1 && merged[0].branches == [60, 63, 67] && merged[0].learnedCount == 3)
        #expect(merged[0].tokens == prefix + own.flatMap { $0 })
        var batch = TrainingBatch()
        batch.add(merged[0])
        #expect(batch.targets.map(\.token) == [102, 106, 108] && batch.targets.map { Int($0.row) } == [61, 65, 67])
        #expect(batch.positions[60...] == [60, 61, 62, 60, 61, 62, 63, 60, 61])
        // What does not fit stays apart.
        #expect(TrainingSequence.merged(own.map { sequence($0) }, maximumTokens: 68).map(\.branches) == [[61, 63], []])
    }

    private func ck_squares(_ buffer: Buffer) -> Double { buffer.values.reduce(0) { $0 + Double($1) * Double($1) } }

    @Test("the first step of AdamW moves each value by the rate, against its gradient") func firstStep() throws {
        let factors = try LowRankFactors([("m", 2, 3)], rank: 1, scale: 1)
        factors.gradients.values = [1, -2, 0, 4, -8]
        #expect(abs(factors.gradientNorm - 85.0.squareRoot()) < 1e-6)
        try factors.step(1, pool: .shared(), rate: 0.5, factor: 1, weightDecay: 0)
        for (value, expected) in zip(factors.values.values, [-0.5, 0.5, 0, -0.5, 0.5] as [Float]) {
            #expect(abs(value - expected) < 1e-5)
        }
    }
}
