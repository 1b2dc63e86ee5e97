internal import Foundation
internal import Inference

/// Which rows each step learns. It depends on the seed and the data only, so that a run can continue anywhere.
struct Schedule {
    let stepsPerEpoch: Int
    private let sequences: [TrainingSequence]
    private let seed: UInt64

    init(_ sequences: [TrainingSequence], stepTokens: Int, seed: UInt64) {
        self.sequences = sequences
        self.seed = seed
        stepsPerEpoch = Self.stepsPerEpoch(sequences, stepTokens: stepTokens)
    }

    /// Every step has at least one row.
    static func stepsPerEpoch(_ sequences: [TrainingSequence], stepTokens: Int) -> Int {
        let learned = sequences.reduce(0) { $0 + $1.learnedCount }
        return min(sequences.count, max(1, Int((Double(learned) / Double(stepTokens)).rounded())))
    }

    /// The rows of a step, from 0: a part of the shuffled rows of its epoch, with about the same number of learned tokens as the others.
    func rows(of step: Int) -> [Int] {
        let (epoch, part) = (step / stepsPerEpoch, step % stepsPerEpoch)
        var numbers = SplitMix64(state: seed &+ UInt64(epoch) &* 0xD134_2543_DE82_EF95)
        let order = sequences.indices.shuffled(using: &numbers)
        let total = sequences.reduce(0) { $0 + $1.learnedCount }
        var rows: [Int] = []
        var seen = 0
        for (place, row) in order.enumerated() {
            // A row belongs to the part in which its middle lies; every part has at least one.
            let middle = (Double(seen) + Double(sequences[row].learnedCount) / 2) / Double(max(1, total))
            let own = min(stepsPerEpoch - 1, Int(middle * Double(stepsPerEpoch)))
            if own == part { rows.append(row) }
            seen += sequences[row].learnedCount
            if own > part, !rows.isEmpty { break }
            if own > part || place == order.count - 1, rows.isEmpty { rows.append(row) }
        }
        return rows
    }

    func endsEpoch(_ finishedSteps: Int) -> Bool { finishedSteps % stepsPerEpoch == 0 }

    /// The learning rate of a step: a linear rise, then a cosine down to a tenth.
    static func rate(_ step: Int, _ steps: Int, _ options: AdapterOptions) -> Double {
        let rate = options.rate ?? 0
        let warmup = (Double(steps) * options.warmup).rounded(.up)
        if Double(step) < warmup { return rate * Double(step + 1) / warmup }
        let place = (Double(step) - warmup) / max(1, Double(steps) - warmup)
        return rate * (0.1 + 0.45 * (1 + cos(.pi * place)))
    }
}
