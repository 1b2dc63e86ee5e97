import ArgumentParser
import Foundation
import FoundationModelsTraining

@main
struct TrainingBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "training-bench", abstract: "Measures the speed and memory of training.")

    @Option(help: "A GGUF file.") var model: String
    @Option(help: "Tokens of a sequence.") var length = 256
    @Option(help: "Tokens of a batch.") var rows = 1024
    @Option(help: "The rank of the adapter.") var rank = 16
    @Option(help: "The number of layers whose intermediate results are kept.") var kept = 0
    @Option(help: "Batches.") var count = 3
    @Option(help: "The share of the tokens that are learned.") var share = 0.5
    @Flag(help: "Products of binary32.") var exact = false

    func run() throws {
        let report = try TrainingSpeed.measure(
            model: model, rank: rank, rows: rows, length: length, keptLayers: kept, batches: count, learned: share,
            rounds: !exact)
        print(report.description)
    }
}
