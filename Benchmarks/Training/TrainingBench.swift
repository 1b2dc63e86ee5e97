import ArgumentParser
import Foundation
import FoundationModelsTraining

@main
struct TrainingBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "training-bench", abstract: "Measures the speed and memory of training.")

    @Option(help: "A GGUF file.") var model: String?
    @Option(help: "A folder of Tests/Tools/peft_run.py: repeat the run of PEFT, and compare the losses of all steps.") var peft:
        String?
    @Option(help: "Tokens of a sequence.") var length = 256
    @Option(help: "Tokens of a batch.") var rows = 1024
    @Option(help: "The rank of the adapter.") var rank = 16
    @Option(help: "The number of layers whose intermediate results are kept.") var kept = 0
    @Option(help: "Batches.") var count = 3
    @Option(help: "The share of the tokens that are learned.") var share = 0.5
    @Flag(help: "Products of binary32.") var exact = false

    func run() throws {
        if let peft {
            let (losses, largest) = try ReferenceRun.compare(URL(filePath: peft), rounds: !exact)
            for (index, loss) in losses.enumerated() where index % 20 == 0 || index == losses.count - 1 {
                print(String(format: "step %3d   %.5f   PEFT %.5f", index + 1, loss.own, loss.peft))
            }
            return print(String(format: "largest difference: %.4f %%", 100 * largest))
        }
        guard let model else { throw ValidationError("Give --model or --peft.") }
        let report = try TrainingSpeed.measure(
            model: model, rank: rank, rows: rows, length: length, keptLayers: kept, batches: count, learned: share,
            rounds: !exact)
        print(report.description)
    }
}
