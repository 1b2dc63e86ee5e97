/// TrainAdapter: teaches a model one task from examples, on the CPU, and compares its answers before and after.
///
///     swift run -c release TrainAdapter Examples/Adapters/checklists.jsonl --model small
///
/// 60 rows that turn a message into a checklist take half a minute with the small model. An adapter is a small file beside the model, whose
/// own file does not change; one process can use the model with and without it.

import ArgumentParser
import Foundation
import FoundationModels
import FoundationModelsGGUF
import FoundationModelsTraining

@main
struct TrainAdapter: AsyncParsableCommand {
    @Option(help: "The name of an installed model, or the path of a GGUF file.") var model = "small"
    @Option(help: "Where to write the adapter.") var out = "checklists.fmadapter"
    @Option(help: "What the model is told in the examples.") var instructions = "Turn the message into a checklist."
    @Option(help: "A message that is not in the examples.") var message = "Get bread, two lemons and rice, and call the plumber."
    @Argument(help: "The examples: JSON Lines with conversations.") var data: String

    func run() async throws {
        let trainer = try AdapterTrainer(model: model, data: TrainingData(contentsOf: URL(filePath: data)))
        let plan = trainer.plan
        print("\(plan.rows) rows, \(plan.steps) steps, some \(Int(plan.seconds)) seconds")
        let url = URL(filePath: out)
        let summary = try await trainer.train(to: url) { progress in
            if let loss = progress.validationLoss { print("step \(progress.step): loss of rows that are not learned \(loss)") }
        }
        print("trained in \(Int(summary.seconds)) seconds\n")

        let file = URL(filePath: plan.modelPath)
        print("Before:\n\(try await answer(GGUFLanguageModel(url: file)))\n")
        print("After:\n\(try await answer(GGUFLanguageModel(url: file, adapter: url)))")
    }

    private func answer(_ model: GGUFLanguageModel) async throws -> String {
        let session = LanguageModelSession(model: model, instructions: instructions)
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 120)
        return try await session.respond(to: message, options: options).content
    }
}
