import ArgumentParser
import Foundation
import FoundationModelsTraining
import Inference
import ModelTools

extension Adapter {
    struct Merge: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "merge",
            abstract: "Write a model with an adapter merged into its weights.",
            discussion: """
                For programs that know no adapters. The matrices that the adapter changes are written with 16 bits, or with 8 bits; \
                the others stay as they are. Rounding changes them: the difference from the adapter beside the weights is measured \
                and printed. This program uses adapters beside the weights, which loses nothing.
                """)

        enum Kind: String, CaseIterable, ExpressibleByArgument {
            case f16, q8_0
            var type: TensorType { self == .f16 ? .f16 : .q8_0 }
        }

        @Argument(help: "A file, or the name of an adapter.") var adapter: String
        @Option(name: [.short, .long], help: "The model (default: the one in use).") var model: String?
        @Option(help: "The file to write, a GGUF model.") var out: String
        @Option(help: "The type of the changed matrices: f16 or q8_0.") var type = Kind.f16

        func run() async throws {
            let path = try Model.file(named: model)
            let adapterPath = try Adapter.file(named: adapter)
            try OutputFile.check(out, inputs: [path, adapterPath])
            let line = ProgressLine("Merging", total: 1_000)
            let (url, type) = (URL(filePath: out), type.type)
            try await LongWork.run(showing: line) { check in
                try ModelMerge.write(
                    model: GGUFFile(path: path), adapter: AdapterFile(path: adapterPath), type: type, to: url
                ) { share in
                    try check()
                    line.show(Int(share * 1_000), text: "\(Int(share * 100)) %")
                }
            }
            let beside = try await Self.loss(path, adapterPath)
            let merged = try await Self.loss(out, nil)
            Message.say(
                String(
                    format:
                        "Loss of a sample text: %.4f with the adapter beside the weights, %.4f merged (%+.2f %% of the perplexity).",
                    beside, merged, 100 * (exp(merged - beside) - 1)))
            print(out)
        }

        /// The mean loss of a token of a plain text, in nats.
        private static func loss(_ path: String, _ adapterPath: String?) async throws -> Double {
            let loaded = try await LoadedModel.load(path: path)
            var adapter: LowRankAdapter?
            if let adapterPath { adapter = try await loaded.adapter(paths: [adapterPath]) }
            let tokens = loaded.tokenizer.encode(PlainText.sample)
            // A vocabulary without these letters.
            guard tokens.count > 1 else { return 0 }
            let sequence = try loaded.makeSequence(contextSize: 1_024, adapter: adapter)
            let scored = Array(tokens.dropFirst().prefix(200))
            return -(try await loaded.logProbability(of: scored, after: [tokens[0]], in: sequence)) / Double(scored.count)
        }
    }
}
